"""Node `tautline_machine`: a ROS 2 robot as the machine of Tautline's guard.

Each control of the guard, every 10 ms, is published at once on the thread of the frames; what the
robot reports comes from the executor's thread. A heartbeat with each control lets `tautline_stop`
stop the robot when either thread, or this process, hangs.
"""

import math
import os
import signal
import threading
import time
from dataclasses import asdict

import rclpy
import tautline
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

from tautline_ros import description, heartbeat, parameters, realtime
from tautline_ros.commands import Commands
from tautline_ros.heartbeat import Condition, Sender
from tautline_ros.reports import Reports

LIMITS = "low", "high", "warn_low", "warn_high", "alarm_low", "alarm_high"
# Fields of a value that its description declares; the other ones name its source.
VALUE_FIELDS = "name", "form", "unit", *LIMITS
# m/s and rad/s below which the robot stands.
STANDING = 0.05
# Seconds between two controls above which this process has paused.
PAUSE_MAX = 0.05
# Seconds without odometry until an ending node no longer waits for a standstill: after 5,
# `ros2 launch` sends the next signal.
UNKNOWN_MAX = 3.0


class Robot(tautline.Machine):
    """The machine: applies controls, and tells the guard what the robot reports."""

    def __init__(self, described, commands, reports, sender):
        super().__init__()
        self.described, self.commands, self.reports, self.sender = (
            described,
            commands,
            reports,
            sender,
        )
        self.report = reports.report()
        self.applied = -math.inf

    def describe(self):
        """Returns axes, actions and values."""
        return wheel_description(self.described)

    def apply(self, control):
        """Publishes the control, and then the heartbeat.

        Without fresh odometry the heartbeat says so: perhaps the robot's commands do not arrive
        either. The first control after a pause is left out: it may be as old as the pause, in which
        `tautline_stop` has stopped the robot.
        """
        before, self.applied = self.applied, time.monotonic()
        if self.applied - before > PAUSE_MAX:
            return
        twist = self.commands.follow(control)
        is_cut = "unreachable" in self.report.faults
        self.sender.send(Condition.UNSAFE if is_cut else Condition.WELL, twist)

    def state(self):
        """Returns the state that the robot reports."""
        self.report = it = self.reports.report()
        notices = {"local stop": it.local_stop, "local control": it.local_control}
        return tautline.State(
            speed=it.speed,
            sideways=it.sideways,
            yaw_rate=it.yaw_rate,
            position=it.position,
            place=it.place,
            axes=it.axes,
            actions=self.commands.on,
            values=it.values,
            faults=it.faults,
            notices={name for name, is_there in notices.items() if is_there},
        )

    def request(self, name):
        """Passes a request on; refuses it if no node listens."""
        return self.commands.request(name)


def wheel_description(described):
    """Returns the description as the wheel takes it."""

    def value(it):
        return tautline.Value(**{name: getattr(it, name) for name in VALUE_FIELDS})

    return tautline.Description(
        described.motion,
        axes=[tautline.Axis(**asdict(it)) for it in described.axes],
        actions=[tautline.Action(**asdict(it)) for it in described.actions],
        values=[value(it) for it in described.values],
    )


class MachineNode(LifecycleNode):
    """The lifecycle node: inactive, it publishes nothing and the guard has no machine."""

    def __init__(self):
        super().__init__("tautline_machine")
        self.parameters = parameters.declare(self, parameters.MACHINE)
        self.commands, self.reports, self.sender, self.serving = None, None, None, None

    def on_configure(self, _state):
        """Reads the robot's description and subscribes to its topics."""
        self.parameters = parameters.declare(self, parameters.MACHINE)
        try:
            self.described = description.read(self.parameters["robot"])
            arguments = self, self.described, self.parameters, time.monotonic
            self.commands, self.reports = Commands(*arguments), Reports(*arguments)
            self.sender = Sender(self.parameters["heartbeat"])
        except (OSError, ValueError) as error:
            for mistake in getattr(error, "mistakes", [str(error)]):
                self.get_logger().error(mistake)
            self.release()
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state):
        """Begins to serve the guard."""
        robot = Robot(self.described, self.commands, self.reports, self.sender)
        self.serving = Serving(robot, self.parameters)
        return super().on_activate(state)

    def on_deactivate(self, state):
        """Ends serving; fails while the robot moves."""
        if not stands(self.reports.report()):
            self.get_logger().error("not deactivated: the robot moves, or its speed is not known")
            return TransitionCallbackReturn.FAILURE
        self.end()
        return super().on_deactivate(state)

    def on_cleanup(self, _state):
        """Ends publishers and subscriptions."""
        self.release()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, _state):
        """Ends serving, and the rest."""
        self.end()
        self.release()
        return TransitionCallbackReturn.SUCCESS

    def end(self):
        """Ends serving: the robot brakes by itself to a standstill."""
        if self.serving is not None:
            self.serving.end()
            self.serving.join()
            self.serving = None
            self.sender.send(Condition.ENDED)

    def release(self):
        """Ends what was configured."""
        for it in (self.commands, self.reports, self.sender):
            if it is not None:
                it.close()
        self.commands, self.reports, self.sender = None, None, None


def stands(report):
    """Returns whether the robot is known to stand."""
    # False for NaN.
    return all(abs(it) < STANDING for it in (report.speed, report.sideways, report.yaw_rate))


class Serving:
    """The wheel's loop, on a thread of its own."""

    def __init__(self, robot, settings):
        self.stop = tautline.Stop()
        rates = settings["deceleration"], settings["yaw_deceleration"]
        self.thread = threading.Thread(
            target=tautline.serve,
            args=(robot,),
            kwargs={
                "guard": settings["guard"],
                "safe": tautline.Safe.udp(
                    settings["heartbeat"], heartbeat.encode(Condition.UNSAFE)
                ),
                "control_timeout": settings["control_timeout_ms"] / 1e3,
                "deceleration": rates[0],
                "yaw_deceleration": rates[1],
                "stop": self.stop,
            },
            daemon=True,
        )
        self.thread.start()

    def end(self):
        """Asks it to end."""
        self.stop.set()

    def is_over(self):
        """Returns whether it has ended."""
        return not self.thread.is_alive()

    def join(self):
        """Waits until it has ended."""
        self.thread.join()


def main():
    """Runs the node; on SIGTERM and SIGINT the robot brakes to a standstill first."""
    refused = realtime.raise_process()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    asked = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: asked.set())
    node = MachineNode()
    if refused:
        node.get_logger().warning(refused)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    if node.parameters["autostart"]:
        node.trigger_configure()
        node.trigger_activate()
    while not asked.is_set():
        executor.spin_once(timeout_sec=0.1)
    leave(node, executor)
    rclpy.try_shutdown()


def leave(node, executor):
    """Ends serving at standstill, which the robot's reports must show meanwhile.

    If they have ended too, the process ends after a while all the same: the wheel's watchdog then
    tells `tautline_stop` that the robot must stop.
    """
    if node.serving is None:
        return
    node.serving.end()
    known = time.monotonic()
    while not node.serving.is_over() and time.monotonic() - known < UNKNOWN_MAX:
        executor.spin_once(timeout_sec=0.1)
        if "unreachable" not in node.reports.report().faults:
            known = time.monotonic()
    if not node.serving.is_over():
        node.get_logger().error("the robot's speed is not known: it is left to tautline_stop")
        # The thread that serves cannot be ended, and must not meet an interpreter that is.
        os._exit(1)
    node.end()
