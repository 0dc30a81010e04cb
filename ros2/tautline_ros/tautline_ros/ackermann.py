"""Set points of a car-like robot: shares of pedals and steering become m/s and rad."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Maxima of the robot: rad, m/s, m/s²."""

    steering_angle: float
    speed: float
    acceleration: float
    deceleration: float


@dataclass(frozen=True)
class SetPoint:
    """What AckermannDrive has: m/s, m/s² (0: as fast as possible), rad."""

    speed: float = 0.0
    acceleration: float = 0.0
    steering_angle: float = 0.0


class Pedals:
    """Follows the pedals: throttle raises the speed's set point, the brake lowers it."""

    def __init__(self, limits):
        self.limits = limits
        self.set_point = SetPoint()

    def follow(self, steering, throttle, brake, is_reverse, seconds):
        """Returns the set point after `seconds` with these shares.

        Without either pedal the speed is kept; throttle against the motion brakes first.
        """
        limits, speed = self.limits, self.set_point.speed
        pull = throttle * limits.acceleration * (-1.0 if is_reverse else 1.0)
        pulled = speed + pull * seconds
        held = brake * limits.deceleration * seconds
        if abs(pulled) <= held:
            pulled = 0.0
        else:
            pulled -= held if pulled > 0.0 else -held
        most = limits.speed
        speed = max(-most, min(most, pulled))
        rate = max(abs(pull), brake * limits.deceleration)
        self.set_point = SetPoint(speed, rate, steering * limits.steering_angle)
        return self.set_point


def message_of(set_point, stamp, frame):
    """Returns the AckermannDriveStamped. Needs the package ackermann_msgs."""
    from ackermann_msgs.msg import AckermannDriveStamped

    message = AckermannDriveStamped()
    message.header.stamp, message.header.frame_id = stamp, frame
    message.drive.speed = float(set_point.speed)
    message.drive.acceleration = float(set_point.acceleration)
    message.drive.steering_angle = float(set_point.steering_angle)
    return message
