"""Messages of `cmd_vel`."""

from geometry_msgs.msg import Twist as TwistMessage
from geometry_msgs.msg import TwistStamped

TYPES = {"TwistStamped": TwistStamped, "Twist": TwistMessage}


def message_type(name):
    """Returns the message class of a `cmd_vel_type`."""
    return TYPES[name]


def message_of(twist, stamp, frame, stamped):
    """Returns the message of a twist (heartbeat.Twist)."""
    message = TwistStamped() if stamped else TwistMessage()
    body = message.twist if stamped else message
    body.linear.x, body.linear.y = float(twist.forward), float(twist.sideways)
    body.angular.z = float(twist.yaw_rate)
    if stamped:
        message.header.stamp, message.header.frame_id = stamp, frame
    return message
