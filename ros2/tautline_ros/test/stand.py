"""A guard, a vehicle that proposes to it, and the nodes, each as a process, for tests."""

import json
import math
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
BINARY = os.environ.get("TAUTLINE", "tautline")
CONSOLE, SESSION = 0xC0FFEE, 1
ARM = 1
MODES = "held", "armed", "driving", "limited", "manoeuvre"
HEADER = struct.Struct(">HHIIQ")
PROPOSAL_ID, STATUS_ID = 0x54475033, 0x54475333
AXES = 16


def table():
    """Returns the table of CRC-32/P4."""
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ 0xC8DF352F * (value & 1)
        yield value


TABLE = tuple(table())


def checksum(frame):
    """Returns the CRC-32/P4 of a frame, its own field left out."""
    value = 0xFFFFFFFF
    for byte in frame[:8] + frame[12:]:
        value = value >> 8 ^ TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


@dataclass
class Status:
    """The head of a status frame, in the order of its fields."""

    tick: int
    mode: int
    cause: int
    value: float
    limit: float
    stop: int
    latched: int
    emergency: int
    act_console: int
    act_number: int
    outcome: int
    blockers: int

    LAYOUT = struct.Struct(">IBBffIBIQIBI")


class Vehicle:
    """Proposes a person's commands every 10 ms, which cite the newest tick."""

    def __init__(self, folder):
        self.address = str(folder / "vehicle.sock")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # A socket without a path has a name in its own network namespace alone.
        self.socket.bind(str(folder / "proposer.sock"))
        self.socket.setblocking(False)
        self.twist, self.act, self.status = (0.0, 0.0, 0.0), 0, None
        # Set points by number, and the actions that are on as bits.
        self.axes, self.actions = {}, 0
        # Time and mode, cause, value, limit of each change.
        self.changes = []
        self.counter = self.sequence = 0
        self.is_over = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        """Takes turns until the end; as urgent as a vehicle, where allowed."""
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        while not self.is_over:
            self.receive()
            self.propose()
            time.sleep(0.010)

    def receive(self):
        """Takes all status frames."""
        while True:
            try:
                frame = self.socket.recv(1024)
            except OSError:
                return
            if HEADER.unpack_from(frame)[2] == STATUS_ID:
                status = Status(*Status.LAYOUT.unpack_from(frame, HEADER.size))
                before = self.status
                if before is None or (before.mode, before.cause) != (status.mode, status.cause):
                    self.changes.append((time.monotonic(), status))
                self.status = status

    def propose(self):
        """Sends a proposal."""
        self.counter, self.sequence = self.counter + 1 & 0xFFFF, self.sequence + 1
        tick = self.status.tick if self.status else 0
        act = (CONSOLE, self.act, ARM, 0, 5) if self.act else (0, 0, 0, 0, 65535)
        body = struct.pack(">IIQQQ", SESSION, 0, self.sequence, CONSOLE, 0)
        body += controls(self.twist, self.axes, self.actions)
        body += struct.pack(">BIIHI", 0, 0, tick, 5, 0) + struct.pack(">QIBIH", *act)
        frame = HEADER.pack(
            HEADER.size + len(body), self.counter, PROPOSAL_ID, 0, time.monotonic_ns()
        )
        frame += body
        frame = frame[:8] + struct.pack(">I", checksum(frame)) + frame[12:]
        # Perhaps the guard is not there yet.
        with suppress(OSError):
            self.socket.sendto(frame, self.address)

    def mode(self):
        """Returns the guard's mode by name."""
        return MODES[self.status.mode] if self.status else "none"

    def arm(self):
        """Arms; returns whether it was done within 30 s."""
        self.twist = (0.0, 0.0, 0.0)
        for _ in range(60):
            self.act += 1
            if waited(lambda: self.mode() == "armed", 0.5):
                return True
        return False

    def close(self):
        """Ends it."""
        self.is_over = True
        self.thread.join()


def hurry():
    """Gives a process precedence, where allowed: other programs must not make the robot's late."""
    with suppress(OSError):
        os.nice(-15)


def clear(domain):
    """Removes the ports of a DDS domain from shared memory.

    A process that was killed while it held a port's lock would block the port for later tests.
    """
    first = 7400 + 250 * domain
    for path in Path("/dev/shm").glob("*fast*_port*"):
        port = re.search(r"_port(\d+)", path.name)
        if port and first <= int(port[1]) < first + 250:
            path.unlink(missing_ok=True)


def free_port():
    """Returns a UDP port that no program uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def controls(twist, axes, actions):
    """Returns the block of controls."""
    set_points = [axes.get(number, math.nan) for number in range(AXES)]
    parts = 0.0, 0.0, 0.0, 0, 0, *twist, *set_points, actions
    return struct.pack(f">fffBB fff {AXES}f I", *parts)


class Truth:
    """True motion of the simulated robot: time, speed, yaw rate, position."""

    def __init__(self, folder):
        self.address = str(folder / "truth.sock")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.address)
        self.steps = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        """Takes all steps."""
        while True:
            self.steps.append(json.loads(self.socket.recv(1024)))

    def now(self):
        """Returns the newest step."""
        return self.steps[-1]

    def moved(self, at):
        """Returns whether the robot moved at that time."""
        return moves(next(it for it in reversed(self.steps) if it["at"] <= at))

    def way(self, since):
        """Returns metres and seconds from `since` until the robot stood for good.

        Fails the test if it still moves, or did not move then.
        """
        after = [it for it in self.steps if it["at"] >= since]
        assert after and moves(after[0]), f"it did not move: {after[:1]}"
        assert not moves(after[-1]), f"still moves: {after[-1]}"
        moving = [it["at"] for it in after if moves(it)]
        ended = max(moving) if moving else since
        pairs = zip(after, after[1:])
        metres = sum(abs(a["speed"]) * (b["at"] - a["at"]) for a, b in pairs)
        return metres, ended - since


def moves(step):
    """Returns whether the robot moves, a turn on the spot included."""
    return abs(step["speed"]) > 0.02 or abs(step["yaw_rate"]) > 0.02


def waited(condition, seconds):
    """Waits until the condition holds; returns whether it did."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.005)
    return bool(condition())


class Stand:
    """Processes of a test in a folder of their own, on a DDS domain of their own."""

    def __init__(self, domain):
        clear(domain)
        self.folder = Path(tempfile.mkdtemp(prefix="tautline-ros-"))
        self.environment = {
            **os.environ,
            "ROS_DOMAIN_ID": str(domain),
            "ROS_LOG_DIR": str(self.folder),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")]),
        }
        self.processes, self.logs = {}, {}
        self.truth, self.vehicle = None, None
        self.heartbeat = f"127.0.0.1:{free_port()}"

    def start(self, name, command, **options):
        """Starts a process, whose output is shown if the test fails."""
        self.logs[name] = self.folder / f"{name}.log"
        with open(self.logs[name], "w", encoding="utf-8") as log:
            settings = {"cwd": self.folder, "env": self.environment, "preexec_fn": hurry, **options}
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, **settings)

    def node(self, module, parameters, inside=(), name=None, remap=None):
        """Starts a node of the package with these parameters, as `name` for this test.

        `inside`: a command that runs another one. SIGUSR1 hangs the node's main thread, SIGUSR2 all
        its Python for three seconds.
        """
        code = f"{HANGS}\nfrom tautline_ros.{module} import main; main()"
        command = [*inside, sys.executable, "-c", code, "--ros-args"]
        for key, value in parameters.items():
            command += ["-p", f"{key}:={value}"]
        for topic, other in (remap or {}).items():
            command += ["-r", f"{topic}:={other}"]
        self.start(name or module, command)

    def guard(self, inside=()):
        """Starts the guard, and the vehicle."""
        shutil.copy(PACKAGE / "test" / "guard.toml", self.folder)
        self.start("guard", [*inside, BINARY, "guard", "--config", "guard.toml"])
        self.vehicle = Vehicle(self.folder)

    def robot(self, inside=(), **parameters):
        """Starts the simulated robot and `tautline_stop`."""
        self.truth = Truth(self.folder)
        told = {"truth": self.truth.address, "pictures_per_second": 0, **parameters}
        self.node("sim_robot", told, inside)
        self.node("stop", {"heartbeat": self.heartbeat}, inside)

    def machine(self, description="robot.yaml", inside=(), **parameters):
        """Starts the machine's node."""
        told = {
            "robot": PACKAGE / "config" / description,
            "guard": self.folder / "machine.sock",
            "heartbeat": self.heartbeat,
            # As in guard.toml.
            "control_timeout_ms": 100,
            **parameters,
        }
        self.node("machine", told, inside)

    def drive(self, forward=0.8, yaw_rate=0.0):
        """Arms and drives until the robot has this motion."""
        assert waited(lambda: self.truth.steps, 10), self.told()

        def is_reached():
            now = self.truth.now()
            reached = abs(now["speed"] - forward) < 0.05 and abs(now["yaw_rate"] - yaw_rate) < 0.05
            return reached and self.vehicle.mode() in ("driving", "limited")

        # On a busy computer the guard may stop it before it is there.
        for _ in range(4):
            assert self.vehicle.arm(), self.told()
            self.vehicle.twist = (forward, 0.0, yaw_rate)
            if waited(is_reached, 4):
                return
        raise AssertionError(self.told())

    def set_odometry(self, fault):
        """Gives the simulated robot's odometry a fault; returns a time just before."""
        code = SET.format(node="/tautline_sim_robot", name="odometry", value=fault)
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, env=self.environment, check=True, capture_output=True, text=True
        )
        return float(done.stdout)

    def transition(self, name):
        """Asks the machine's lifecycle node for a transition; returns whether it was made."""
        code = TRANSITION.format(name=name.upper())
        done = subprocess.run([sys.executable, "-c", code], env=self.environment, check=False)
        assert done.returncode in (0, 3), self.told()
        return done.returncode == 0

    def signal(self, name, number):
        """Sends a signal to a process, and returns the time."""
        at = time.monotonic()
        self.processes[name].send_signal(number)
        return at

    def told(self):
        """Returns what explains a failure."""
        status = self.vehicle.status if self.vehicle else None
        motion = self.truth.steps[-1:] if self.truth else None
        logs = [f"== {name}\n{path.read_text()}" for name, path in self.logs.items()]
        return "\n".join([f"{status}", f"{motion}", *logs])

    def close(self):
        """Ends all processes and removes the folder."""
        if self.vehicle:
            self.vehicle.close()
        for process in reversed(self.processes.values()):
            process.send_signal(signal.SIGCONT)
            process.kill()
        for process in self.processes.values():
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


# A sleep of Python's lets other threads run; one of C's that is called so does not.
HANGS = """
import ctypes, signal, time
signal.signal(signal.SIGUSR1, lambda *_: time.sleep(60))
signal.signal(signal.SIGUSR2, lambda *_: ctypes.PyDLL(None).usleep(3_000_000))
"""

# Program that sets a text parameter of a node, and prints when.
SET = """
import time
import rclpy
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
rclpy.init()
node = rclpy.create_node("setter")
client = node.create_client(SetParameters, "{node}/set_parameters")
assert client.wait_for_service(10)
parameter = Parameter("{name}", value="{value}").to_parameter_msg()
request = SetParameters.Request(parameters=[parameter])
print(time.monotonic(), flush=True)
future = client.call_async(request)
rclpy.spin_until_future_complete(node, future, timeout_sec=5)
assert future.result().results[0].successful, future.result()
"""

# Program that asks for a transition; its exit code is 3 if that fails.
TRANSITION = """
import sys
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
rclpy.init()
node = rclpy.create_node("asker")
client = node.create_client(ChangeState, "/tautline_machine/change_state")
assert client.wait_for_service(10)
request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_{name}))
future = client.call_async(request)
rclpy.spin_until_future_complete(node, future, timeout_sec=5)
sys.exit(0 if future.result().success else 3)
"""
