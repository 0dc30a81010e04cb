"""Node `tautline_stop`: stops the robot when `tautline_machine` hangs, ends, or reports a fault.

It publishes `cmd_vel` while the machine node is not well, and nothing while it is. It belongs on
the computer of the robot's base, so that it also acts when the network between the two is cut.
"""

import time

from rclpy.node import Node
from rclpy.qos import QoSProfile

from tautline_ros import parameters, realtime, running
from tautline_ros.heartbeat import Condition, Receiver, Twist
from tautline_ros.twist import message_of, message_type

# Seconds between two looks at the socket; of a longer pause of this process no more counts as
# silence of the machine node.
TURN = 0.010


class Watch:
    """Decides from heartbeats and their absence what to publish.

    It begins as unsafe: a robot whose machine node is gone stands until one is well.
    """

    def __init__(self, silence, deceleration, yaw_deceleration, now):
        """Times in seconds, decelerations in m/s² and rad/s²."""
        self.silence, self.rates = silence, (deceleration, yaw_deceleration)
        self.condition, self.twist = Condition.UNSAFE, Twist()
        self.silent, self.turned = 0.0, now

    def turn(self, heartbeats, now):
        """Takes the heartbeats since the last turn; returns the twist to publish, or `None`."""
        elapsed, self.turned = max(0.0, now - self.turned), now
        self.silent += min(elapsed, TURN)
        was = self.condition
        for condition, twist in heartbeats:
            self.silent, self.condition = 0.0, condition
            # A twist that was sent with a fault is that of a stop in progress: it must not
            # accelerate the robot again.
            if condition == Condition.WELL and twist.is_known():
                self.twist = twist
        if self.condition == Condition.WELL and self.silent > self.silence:
            self.condition = Condition.UNSAFE
        if self.condition != Condition.UNSAFE:
            return None
        # The first turn after a fault slows too, by one turn's share.
        seconds = elapsed if was == Condition.UNSAFE else TURN
        self.twist = self.twist.slowed(*self.rates, seconds)
        return self.twist


class StopNode(Node):
    """The node around [`Watch`]."""

    def __init__(self, refused):
        """`refused`: why it has no real-time priority, or `None`."""
        super().__init__("tautline_stop")
        if refused:
            self.get_logger().warning(refused)
        read = parameters.declare(self, parameters.STOP)
        self.stamped = read["cmd_vel_type"] == "TwistStamped"
        self.frame = read["frame"]
        rates = read["deceleration"], read["yaw_deceleration"]
        self.watch = Watch(read["silence_ms"] / 1e3, *rates, time.monotonic())
        self.receiver = Receiver(read["heartbeat"])
        kind = message_type(read["cmd_vel_type"])
        self.commands = self.create_publisher(kind, "cmd_vel", QoSProfile(depth=1))
        self.was_unsafe = False
        self.create_timer(TURN, self.turn)

    def turn(self):
        """Publishes if the machine node is not well; logs when that changes."""
        twist = self.watch.turn(self.receiver.receive(), time.monotonic())
        if (twist is not None) != self.was_unsafe:
            self.was_unsafe = twist is not None
            said = "the machine node is not well: stopping" if self.was_unsafe else "released"
            self.get_logger().warning(said)
        if twist is not None:
            stamp = self.get_clock().now().to_msg()
            self.commands.publish(message_of(twist, stamp, self.frame, self.stamped))


def main():
    """Runs the node until it is asked to end."""
    refused = realtime.raise_process()
    running.run(lambda: StopNode(refused))
