"""What the robot is commanded: `cmd_vel` or `ackermann_cmd`, `joint_command`, `joy`, and actions."""

import math

from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Bool

from tautline_ros import ackermann, messages
from tautline_ros import twist as cmd_vel
from tautline_ros.heartbeat import Twist

# Longest step of a car-like robot's set point, s: after a pause it must not jump.
STEP_MAX = 0.05


class Commands:
    """Publishes controls; called on the thread of the guard's frames."""

    def __init__(self, node, description, parameters, clock):
        self.node, self.description, self.clock = node, description, clock
        self.frame = parameters["frame"]
        self.stamped = parameters["cmd_vel_type"] == "TwistStamped"
        self.is_car = description.motion == "ackermann"
        self.publishers, self.on, self.asked = {}, set(), set()
        newest = QoSProfile(depth=1)
        create = node.create_publisher
        if self.is_car:
            limits = (
                parameters[f"{name}_max"]
                for name in ("steering_angle", "speed", "acceleration", "deceleration")
            )
            self.pedals = ackermann.Pedals(ackermann.Limits(*limits))
            self.stepped = clock()
            kind = messages.message_class("ackermann_msgs/msg/AckermannDriveStamped")
            self.drive = create(kind, "ackermann_cmd", newest)
        else:
            kind = cmd_vel.message_type(parameters["cmd_vel_type"])
            self.drive = create(kind, "cmd_vel", newest)
        self.joints = create(JointState, "joint_command", newest) if description.axes else None
        has_joy = description.axes or description.actions
        self.joy = create(Joy, "joy", newest) if has_joy else None
        for action in description.actions:
            topic = f"action/{topic_name(action.name)}"
            # A request is an event: a later subscriber must not get it.
            quality = newest if action.form == "request" else messages.kept()
            self.publishers[action.name] = create(Bool, topic, quality)

    def close(self):
        """Ends the publishers."""
        for it in (self.drive, self.joints, self.joy, *self.publishers.values()):
            if it is not None:
                self.node.destroy_publisher(it)

    def follow(self, control):
        """Publishes a control; returns the twist for `tautline_stop`."""
        stamp = self.node.get_clock().now().to_msg()
        if self.is_car:
            twist = self.follow_pedals(control, stamp)
        else:
            twist = Twist(control.forward, control.sideways, control.yaw_rate)
            self.drive.publish(cmd_vel.message_of(twist, stamp, self.frame, self.stamped))
        if self.joints is not None:
            self.joints.publish(self.joint_command(control.axes, stamp))
        on = set(control.actions)
        if self.joy is not None:
            self.joy.publish(joy(self.description, control.axes, on | self.asked, stamp))
            self.asked = set()
        self.switch(on)
        return twist

    def follow_pedals(self, control, stamp):
        """Publishes the set point of a car-like robot; returns its speed."""
        now = self.clock()
        seconds, self.stepped = min(now - self.stepped, STEP_MAX), now
        brake = 1.0 if control.parking_brake else control.brake
        shares = control.steering, control.throttle, brake
        is_reverse = control.gear == "reverse"
        set_point = self.pedals.follow(*shares, is_reverse, seconds)
        self.drive.publish(ackermann.message_of(set_point, stamp, self.frame))
        return Twist(set_point.speed)

    def joint_command(self, set_points, stamp):
        """Returns the message of the axes that have a set point.

        With both forms of axes each has an entry in both lists, of which one is NaN.
        """
        message = JointState()
        message.header.stamp, message.header.frame_id = stamp, self.frame
        axes = [
            it for it in self.description.axes if not math.isnan(set_points.get(it.name, math.nan))
        ]
        forms = {it.form for it in self.description.axes}
        message.name = [it.name for it in axes]
        for form, field in (("position", "position"), ("speed", "velocity")):
            if form in forms:
                known = [set_points[it.name] if it.form == form else math.nan for it in axes]
                setattr(message, field, known)
        return message

    def switch(self, on):
        """Publishes the actions whose state has changed."""
        for name in on ^ self.on:
            if name in self.publishers:
                self.publishers[name].publish(Bool(data=name in on))
        self.on = on

    def request(self, name):
        """Publishes a request; returns whether somebody listens."""
        self.asked.add(name)
        publisher = self.publishers[name]
        publisher.publish(Bool(data=True))
        return publisher.get_subscription_count() > 0


def joy(description, set_points, on, stamp):
    """Returns axes and actions as a gamepad's: -1 to 1, and 0 or 1."""
    message = Joy()
    message.header.stamp = stamp
    message.axes = [share(it, set_points.get(it.name, math.nan)) for it in description.axes]
    message.buttons = [int(it.name in on) for it in description.actions]
    return message


def share(axis, set_point):
    """Returns a set point as a share of the axis's range, -1 to 1; of a speed 0 at standstill.

    NaN for a position without a set point: it has none that changes nothing.
    """
    if axis.form == "speed":
        known = 0.0 if math.isnan(set_point) else set_point
        return known / max(abs(axis.low), abs(axis.high))
    return 2.0 * (set_point - axis.low) / (axis.high - axis.low) - 1.0


def topic_name(name):
    """Returns an action's name as a part of a topic: other characters become `_`."""
    letters = "".join(it if it.isascii() and it.isalnum() else "_" for it in name).lower()
    return f"_{letters}" if letters[:1].isdecimal() else letters
