"""A guard as its own process, a vehicle that drives it, and an actuator that hears the safe bytes."""

from __future__ import annotations

import math
import os
import random
import socket
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import frames

TAUTLINE = os.environ.get("TAUTLINE", str(Path(__file__).parents[2] / "target/debug/tautline"))

SETTINGS = """
vehicle = "{folder}/vehicle.sock"
machine = "{folder}/machine.sock"
latch = "{folder}/latch"
[guard.presence]
dead_man_required = false
[guard.machine]
motion = "differential"
track_width_m = 0.5
length_m = 0.8
wheel_speed_max_m_per_s = 3.0
deceleration_max_m_per_s2 = 3.0
acceleration_max_m_per_s2 = 3.0
mass_kg = 40
[guard.envelope]
speed_max_m_per_s = 1.5
reverse_speed_max_m_per_s = 0.5
yaw_rate_max_rad_per_s = 1.0
speed_bound_slope_m_per_s2 = 0.8
acceleration_m_per_s2 = 0.8
deceleration_m_per_s2 = 1.0
jerk_m_per_s3 = 3.0
yaw_acceleration_rad_per_s2 = 2.0
yaw_deceleration_rad_per_s2 = 3.0
lateral_acceleration_m_per_s2 = 1.0
[guard.manoeuvre]
deceleration_begin_m_per_s2 = 0.5
deceleration_m_per_s2 = 1.0
jerk_m_per_s3 = 3.0
deceleration_emergency_m_per_s2 = 2.0
yaw_deceleration_rad_per_s2 = 2.0
yaw_deceleration_emergency_rad_per_s2 = 4.0
slope_max = 0.1
"""

HELD, ARMED, DRIVING, LIMITED, MANOEUVRE = range(5)
MACHINE_TIMEOUT, MACHINE_FAULT = 4, 16
UNREACHABLE, OTHER = 1 << 0, 1 << 8
ARM, REQUEST = 1, 9
DESCRIPTION = 1 << 20

def hurry() -> None:
    """Gives this thread real-time priority, so that a busy computer delays no frame; if it may."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))


@dataclass
class Status:
    """Status of the guard, as far as tests need it."""

    at: float
    fields: dict

    def __getattr__(self, name: str):
        return self.fields[name]

    @property
    def act(self) -> tuple[int, int]:
        return self.fields["act's number"], self.fields["act's outcome"]

    @property
    def faults(self) -> int:
        return self.fields["machine.faults"]


class Vehicle(threading.Thread):
    """Proposes every 10 ms: arms the machine, then drives it forward."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind("")
        self.sock.setblocking(False)
        self.address = address
        self.session, self.console = random.getrandbits(32) | 1, random.getrandbits(64) | 1
        self.forward, self.axes, self.actions = 0.0, [], 0
        self.wants: tuple[int, int] | None = None
        self.act = 0
        self.counter = self.sequence = 0
        self.history: list[Status] = []
        self.over = threading.Event()

    def run(self) -> None:
        hurry()
        while not self.over.wait(0.010):
            self.receive()
            self.propose()

    def receive(self) -> None:
        while True:
            try:
                frame = self.sock.recv(1024)
            except OSError:
                return
            if fields := frames.unpack("status", frame):
                self.history.append(Status(time.monotonic(), fields))

    def propose(self) -> None:
        newest = self.history[-1] if self.history else None
        if self.wants == (ARM, 0) and newest and newest.mode == HELD and newest.act[0] == self.act:
            self.act += 1
        self.sequence += 1
        self.counter = (self.counter + 1) & 0xFFFF
        fields = {
            "session": self.session,
            "sequence": self.sequence,
            "console": self.console,
            "controls.steering": 0.0,
            "controls.throttle": 0.0,
            "controls.brake": 0.0,
            "controls.forward": self.forward,
            "controls.sideways": 0.0,
            "controls.yaw rate": 0.0,
            "controls.axes": self.axes + [math.nan] * (16 - len(self.axes)),
            "controls.actions": self.actions,
            "dead man": 1,
            "cited tick": newest.tick if newest else 0,
        }
        if self.wants is not None:
            action, argument = self.wants
            act = {"act's number": self.act, "act's action": action, "act's argument": argument}
            fields |= {"act's console": self.console, **act}
        frame = frames.pack("proposal", self.counter, fields)
        try:
            self.sock.connect(self.address)
            self.sock.send(frame)
        except OSError:
            pass

    def wait(self, what, seconds: float = 20.0) -> Status:
        """Waits for a status for which `what` is true; returns it."""
        until, seen = time.monotonic() + seconds, len(self.history)
        while time.monotonic() < until:
            for status in self.history[seen:]:
                seen += 1
                if what(status):
                    return status
            time.sleep(0.002)
        raise AssertionError(f"did not come to be; newest: {self.history[-1:]}")

    def arm(self) -> None:
        """Arms the machine, once it stands ready."""
        self.forward = 0.0
        self.wait(lambda status: status.mode == HELD)
        self.act += 1
        self.wants = (ARM, 0)
        self.wait(lambda status: status.mode in (ARMED, DRIVING))
        self.wants = None

    def drive(self, forward: float) -> None:
        """Arms and drives."""
        self.arm()
        self.forward = forward
        self.wait(lambda status: status.mode == DRIVING)


    def request(self, action: int) -> int:
        """Asks for a declared action; returns the outcome: 1 done, else refused."""
        self.act += 1
        self.wants = (REQUEST, action)
        outcome = self.wait(lambda status: status.act[0] == self.act).act[1]
        self.wants = None
        return outcome


class Actuator(threading.Thread):
    """Receives datagrams, with their times."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]
        self.received: list[tuple[float, bytes]] = []

    def run(self) -> None:
        hurry()
        while True:
            data = self.sock.recv(2048)
            self.received.append((time.monotonic(), data))

    def safe_since(self, since: float) -> list[float]:
        """Returns the times of the safe bytes since a time."""
        return [at for at, data in list(self.received) if data == b"stop" and at >= since]


@dataclass
class Stand:
    """Guard, vehicle and actuator; the machine's program is the test's."""

    folder: Path
    guard: subprocess.Popen[bytes] = field(init=False)
    vehicle: Vehicle = field(init=False)
    actuator: Actuator = field(init=False)

    def __enter__(self) -> Stand:
        settings = self.folder / "guard.toml"
        settings.write_text(SETTINGS.format(folder=self.folder))
        self.guard = subprocess.Popen([TAUTLINE, "guard", "--config", str(settings)], stderr=subprocess.DEVNULL)
        self.vehicle, self.actuator = Vehicle(f"{self.folder}/vehicle.sock"), Actuator()
        self.vehicle.start()
        self.actuator.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.vehicle.over.set()
        self.guard.kill()
        self.guard.wait()

    @property
    def address(self) -> str:
        return f"{self.folder}/machine.sock"
