"""Message classes by name, and fields by path."""

import importlib
import math

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from tautline_ros.parameters import Mistakes


def message_class(name):
    """Returns the class of a type such as `sensor_msgs/msg/Image`."""
    parts = name.split("/")
    if len(parts) != 3 or parts[1] != "msg":
        raise Mistakes([f"{name!r} is no message type: package/msg/Name"])
    try:
        return getattr(importlib.import_module(f"{parts[0]}.msg"), parts[2])
    except (ImportError, AttributeError) as error:
        raise Mistakes([f"there is no message type {name}: is {parts[0]} installed?"]) from error


def field_at(message, path):
    """Returns the field at a path such as `twist.linear.x` or `cells.0`; `None` if absent."""
    for part in path.split("."):
        try:
            message = message[int(part)] if part.isdecimal() else getattr(message, part)
        except (AttributeError, IndexError, TypeError):
            return None
    return message


def number_of(field):
    """Returns a field as a number; NaN if it is none."""
    try:
        return float(field)
    except (TypeError, ValueError):
        return math.nan


def seconds_of(stamp):
    """Returns a header's stamp in seconds."""
    return stamp.sec + stamp.nanosec * 1e-9


def heading_of(orientation):
    """Returns the heading of a quaternion, rad counterclockwise from x."""
    x, y, z, w = orientation.x, orientation.y, orientation.z, orientation.w
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def newest():
    """Returns the quality of service of sensors: best effort, newest wins."""
    return QoSProfile(
        depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT
    )


def kept():
    """Returns the quality of service of states: reliable, and a later subscriber gets the last."""
    return QoSProfile(
        depth=1,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )
