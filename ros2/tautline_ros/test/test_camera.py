"""Pictures of a topic reach the vehicle's socket over real DDS, in time and with their stamps."""

import socket
import struct
import sys
import time

# Head of a picture: "TPIC", version, flags, format, width, height, bytes of a row and of all,
# number, capture in ns, rate, clock.
HEADER = struct.Struct(">4sHH4sIIIIIQfI16x")


def received(connection, count):
    """Returns `count` bytes."""
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(count - len(parts))
        assert part, "the camera's node has closed the connection"
        parts += part
    return bytes(parts)


def connected(stand, **parameters):
    """Starts a simulated robot and the camera's node; returns the node's connection."""
    stand.robot(pictures_per_second=30)
    return started(stand, {"image": "camera/image_raw"}, **parameters)


def started(stand, remap, **parameters):
    """Starts the camera's node; returns its connection."""
    path = stand.folder / "camera.sock"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    listener.settimeout(20)
    stand.node("camera", {"camera": path, **parameters}, remap=remap)
    connection, _ = listener.accept()
    connection.settimeout(5)
    return connection


def test_pictures_arrive_with_their_time_of_capture(stand):
    connection = connected(stand, pictures_per_second=30.0)
    ages, began, numbers = [], time.monotonic(), []
    for _ in range(30):
        magic, version, flags, form, width, height, stride, count, number, captured, rate, clock = (
            HEADER.unpack(received(connection, HEADER.size))
        )
        assert (magic, version, flags, form, clock) == (b"TPIC", 1, 1, b"RGB3", 1)
        assert (width, height, stride, count) == (352, 198, 1056, 352 * 198 * 3)
        assert rate == 30.0
        picture = received(connection, count)
        assert len(set(picture)) > 3
        ages.append(time.monotonic() - captured / 1e9)
        numbers.append(number)
    seconds = time.monotonic() - began
    assert numbers == list(range(numbers[0], numbers[0] + 30))
    ages.sort()
    print(
        f"{30 / seconds:.1f} pictures/s, age {ages[15] * 1e3:.1f} ms, at most {ages[-1] * 1e3:.1f}"
    )
    assert ages[0] > 0.0 and ages[15] < 0.2 and seconds < 6.0


def test_without_stamps_the_arrival_is_the_end_of_the_capture(stand):
    connection = connected(stand, image_stamps=False)
    head = HEADER.unpack(received(connection, HEADER.size))
    assert head[2] == 3 and head[10] == 0.0
    assert 0.0 <= time.monotonic() - head[9] / 1e9 < 2.0


# Head of a JPEG of 480x270, as far as it is read on the way.
JPEG = b"\xff\xd8\xff\xc0\x00\x11\x08\x01\x0e\x01\xe0\x03" + bytes(500)

# Program that publishes it with stamps of 0.1 s ago, as a camera with a slow pipeline does.
PUBLISHER = f"""
import array, time
import rclpy
from rclpy.duration import Duration
from sensor_msgs.msg import CompressedImage
rclpy.init()
node = rclpy.create_node("publisher")
publisher = node.create_publisher(CompressedImage, "camera/image_raw/compressed", 1)
while True:
    message = CompressedImage(format="jpeg", data=array.array("B", {JPEG!r}))
    message.header.stamp = (node.get_clock().now() - Duration(seconds=0.1)).to_msg()
    publisher.publish(message)
    time.sleep(0.05)
"""


def test_jpegs_are_passed_on_as_they_are_with_their_stamps(stand):
    stand.start("publisher", [sys.executable, "-c", PUBLISHER])
    connection = started(stand, {"image": "camera/image_raw/compressed"}, compressed=True)
    for _ in range(5):
        head = HEADER.unpack(received(connection, HEADER.size))
        assert head[3:8] == (b"MJPG", 480, 270, 0, len(JPEG))
        assert received(connection, len(JPEG)) == JPEG
        assert 0.1 <= time.monotonic() - head[9] / 1e9 < 1.0
