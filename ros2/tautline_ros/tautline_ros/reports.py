"""What the robot reports: odometry, joints, battery and other values, diagnostics, position."""

import math
import threading
from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState, NavSatFix, NavSatStatus
from std_msgs.msg import Bool

from tautline_ros import messages
from tautline_ros.freshness import Freshness

# Seconds for which a position that tf corrects, or a satellite fix, is used.
POSITION_MAX_AGE = 2.0


@dataclass
class Report:
    """The newest reports; NaN and `None`: not known."""

    speed: float = math.nan
    sideways: float = math.nan
    yaw_rate: float = math.nan
    # x, y in m and heading in rad.
    position: tuple = None
    # Latitude, longitude in degrees and height in m.
    place: tuple = None
    # Measured position or speed of axes, by name.
    axes: dict = None
    # Number or text, by name.
    values: dict = None
    faults: frozenset = frozenset()
    local_stop: bool = False
    local_control: bool = False


class Reports:
    """Subscribes to what the robot publishes; `report` may be called from any thread."""

    def __init__(self, node, description, parameters, clock):
        self.node, self.description, self.clock = node, description, clock
        self.timeout = parameters["odometry_timeout_ms"] / 1e3
        self.position_frame = parameters["position_frame"]
        self.fresh = Freshness(parameters["odometry_stamps"])
        self.lock = threading.Lock()
        self.motion, self.pose, self.odometry_frame = (math.nan,) * 3, None, ""
        self.correction, self.place = None, None
        self.joints, self.values, self.statuses, self.locals = {}, {}, {}, {}
        self.subscriptions = list(self.subscribed())

    def subscribed(self):
        """Creates the subscriptions."""
        subscribe = self.node.create_subscription
        newest = messages.newest()
        yield subscribe(Odometry, "odom", self.take_odometry, newest)
        yield subscribe(NavSatFix, "fix", self.take_place, newest)
        if self.description.axes:
            yield subscribe(JointState, "joint_states", self.take_joints, newest)
        # Diagnostics of several nodes share the topic.
        yield subscribe(DiagnosticArray, "/diagnostics", self.take_diagnostics, 20)
        for name in ("local_stop", "local_control"):
            yield subscribe(Bool, name, lambda it, name=name: self.take_local(name, it), 1)
        for value in self.description.values:
            if value.topic:
                kind = messages.message_class(value.type)
                take = lambda it, value=value: self.take_value(value, it)  # noqa: E731
                yield subscribe(kind, value.topic, take, newest)
        if self.position_frame:
            yield subscribe(
                messages.message_class("tf2_msgs/msg/TFMessage"), "/tf", self.take_transforms, 100
            )

    def close(self):
        """Ends the subscriptions."""
        for it in self.subscriptions:
            self.node.destroy_subscription(it)

    def take_odometry(self, message):
        """Takes speeds and position, if the message is news."""
        with self.lock:
            if not self.fresh.take(messages.seconds_of(message.header.stamp), self.clock()):
                return
            twist, pose = message.twist.twist, message.pose.pose
            self.motion = twist.linear.x, twist.linear.y, twist.angular.z
            heading = messages.heading_of(pose.orientation)
            self.pose = pose.position.x, pose.position.y, heading
            self.odometry_frame = message.header.frame_id

    def take_transforms(self, message):
        """Takes the correction from the odometry's frame to the position's."""
        for it in message.transforms:
            frames = it.header.frame_id, it.child_frame_id
            if frames == (self.position_frame, self.odometry_frame):
                moved = it.transform.translation
                heading = messages.heading_of(it.transform.rotation)
                with self.lock:
                    self.correction = (moved.x, moved.y, heading), self.clock()

    def take_place(self, message):
        """Takes a satellite fix; without a fix the place is not known."""
        has_fix = message.status.status >= NavSatStatus.STATUS_FIX
        place = message.latitude, message.longitude, message.altitude
        with self.lock:
            self.place = (place, self.clock()) if has_fix else None

    def take_joints(self, message):
        """Takes positions and speeds of the axes by their names."""
        with self.lock:
            for axis in self.description.axes:
                if axis.name not in message.name:
                    continue
                index = message.name.index(axis.name)
                found = message.position if axis.form == "position" else message.velocity
                if index < len(found):
                    self.joints[axis.name] = found[index], self.clock()

    def take_value(self, value, message):
        """Takes a value from a topic's field."""
        found = messages.field_at(message, value.field)
        if value.form == "number":
            found = messages.number_of(found) * value.scale
        elif found is not None:
            found = shortened(str(found))
        with self.lock:
            self.values[value.name] = found, self.clock()

    def take_diagnostics(self, message):
        """Takes statuses that the description names: their levels, and their keys as values."""
        named = {it.diagnostics for it in self.description.faults}
        with self.lock:
            for status in message.status:
                level = int.from_bytes(status.level, "big")
                if status.name in named:
                    self.statuses[status.name] = level
                for value in self.description.values:
                    if value.diagnostics == status.name:
                        self.take_key(value, {it.key: it.value for it in status.values})

    def take_key(self, value, keys):
        """Takes a value from a status's key; called with the lock held."""
        text = keys.get(value.key)
        if text is None:
            return
        found = (
            messages.number_of(text) * value.scale if value.form == "number" else shortened(text)
        )
        self.values[value.name] = found, self.clock()

    def take_local(self, name, message):
        """Takes an input of a person at the robot."""
        with self.lock:
            self.locals[name] = message.data

    def report(self):
        """Returns the newest reports.

        Odometry older than its limit is a fault, and its speeds are not known: the guard stops a
        robot of which it does not know whether it moves.
        """
        with self.lock:
            now = self.clock()
            is_fresh = self.fresh.age(now) <= self.timeout
            motion = self.motion if is_fresh else (math.nan,) * 3
            faults = {
                it.fault
                for it in self.description.faults
                if self.statuses.get(it.diagnostics, 0) >= ERROR
            }
            if not is_fresh:
                faults.add("unreachable")
            limits = {it.name: it.max_age for it in self.description.values}
            known = {
                name: value
                for name, (value, at) in self.values.items()
                if value is not None and now - at <= limits[name]
            }
            axes = {name: it for name, (it, at) in self.joints.items() if now - at <= JOINT_MAX_AGE}
            return Report(
                *motion,
                position=self.position(now) if is_fresh else None,
                place=self.place[0]
                if self.place and now - self.place[1] <= POSITION_MAX_AGE
                else None,
                axes=axes,
                values=known,
                faults=frozenset(faults),
                local_stop=self.locals.get("local_stop", False),
                local_control=self.locals.get("local_control", False),
            )

    def position(self, now):
        """Returns the pose in the position's frame; `None` without a correction that it needs."""
        if not self.position_frame or self.pose is None:
            return self.pose
        if self.correction is None or now - self.correction[1] > POSITION_MAX_AGE:
            return None
        return composed(self.correction[0], self.pose)


def shortened(text):
    """Returns the beginning of a text that a value has room for."""
    return text.encode()[:TEXT_BYTES_MAX].decode(errors="ignore")


def composed(outer, inner):
    """Returns the pose `inner` of the frame that stands at `outer`, in that frame's parent."""
    (x, y, heading), (ahead, left, turn) = outer, inner
    sin, cos = math.sin(heading), math.cos(heading)
    turned = math.remainder(heading + turn, math.tau)
    return x + cos * ahead - sin * left, y + sin * ahead + cos * left, turned


ERROR = int.from_bytes(DiagnosticStatus.ERROR, "big")
# Bytes of a value's text in a frame.
TEXT_BYTES_MAX = 64
# Seconds after which a joint's report is not known.
JOINT_MAX_AGE = 0.5
