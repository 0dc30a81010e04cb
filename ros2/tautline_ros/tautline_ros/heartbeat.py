"""Datagrams from `tautline_machine` to `tautline_stop`: one every 10 ms while the machine is well.

28 bytes, big-endian: "TLHB", condition u8, 3 bytes 0, and the twist that was published last:
forward m/s, sideways m/s, yaw rate rad/s, f64 each. NaN: as before.
"""

import math
import socket
import struct
from dataclasses import dataclass
from enum import IntEnum

LAYOUT = struct.Struct(">4sB3x3d")
MAGIC = b"TLHB"


class Condition(IntEnum):
    """Condition of the machine node."""

    # The robot's commands go out, and its odometry is fresh.
    WELL = 0
    # The robot must stop: the node has a fault, or no longer answers.
    UNSAFE = 1
    # The node was deactivated and leaves the robot to others.
    ENDED = 2


@dataclass(frozen=True)
class Twist:
    """A motion in the robot's frame: m/s forward, m/s to the left, rad/s counterclockwise."""

    forward: float = 0.0
    sideways: float = 0.0
    yaw_rate: float = 0.0

    def is_known(self):
        """Returns whether every part is a finite number."""
        return all(map(math.isfinite, (self.forward, self.sideways, self.yaw_rate)))

    def slowed(self, deceleration, yaw_deceleration, seconds):
        """Returns the twist after `seconds` of a stop on its arc.

        The part that takes longer sets the pace, so that the curvature stays.
        """

        def left(value, rate):
            return max(0.0, 1.0 - rate * seconds / value) if value > 0.0 else 0.0

        speed = math.hypot(self.forward, self.sideways)
        share = max(left(speed, deceleration), left(abs(self.yaw_rate), yaw_deceleration))
        return Twist(self.forward * share, self.sideways * share, self.yaw_rate * share)


# Twist of a datagram that says nothing about it.
UNKNOWN = Twist(math.nan, math.nan, math.nan)


def encode(condition, twist=UNKNOWN):
    """Returns the datagram."""
    return LAYOUT.pack(MAGIC, condition, twist.forward, twist.sideways, twist.yaw_rate)


def decode(datagram):
    """Returns condition and twist; `None` if it is no heartbeat."""
    if len(datagram) != LAYOUT.size:
        return None
    magic, condition, *parts = LAYOUT.unpack(datagram)
    if magic != MAGIC or condition not in list(Condition):
        return None
    return Condition(condition), Twist(*parts)


def udp_address(text):
    """Returns host and port as `socket` takes them. Raises ValueError."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"heartbeat is {text!r}: host:port is needed")
    return host or "127.0.0.1", int(port)


class Sender:
    """Sends heartbeats; never waits, and a missing receiver is no error."""

    def __init__(self, address):
        self.address = udp_address(address)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)

    def send(self, condition, twist=UNKNOWN):
        """Sends one; returns whether the system took it."""
        try:
            self.socket.sendto(encode(condition, twist), self.address)
        except OSError:
            return False
        return True

    def close(self):
        """Closes the socket."""
        self.socket.close()


class Receiver:
    """Receives heartbeats at `address`."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(udp_address(address))

    def receive(self):
        """Returns all heartbeats that are queued, in order; others' datagrams are left out."""
        received = []
        # A queue of the kernel holds at most this many that matter.
        for _ in range(256):
            try:
                datagram = self.socket.recv(LAYOUT.size + 1)
            except OSError:
                break
            heartbeat = decode(datagram)
            if heartbeat is not None:
                received.append(heartbeat)
        return received

    def close(self):
        """Closes the socket."""
        self.socket.close()
