"""Node `tautline_camera`: passes the pictures of a topic to the vehicle, newest first."""

import time

import tautline
from rclpy.node import Node
from rclpy.time import Time
from sensor_msgs.msg import CompressedImage, Image

from tautline_ros import messages, parameters, pictures, running

# Seconds between two logs of pictures that cannot be used.
LOG_INTERVAL = 10.0


class CameraNode(Node):
    """The node."""

    def __init__(self):
        super().__init__("tautline_camera")
        read = parameters.declare(self, parameters.CAMERA)
        self.camera = tautline.Camera(
            read["camera"], rate=read["pictures_per_second"], full_range=read["full_range"]
        )
        self.stamps = read["image_stamps"]
        self.said = -LOG_INTERVAL
        kind = CompressedImage if read["compressed"] else Image
        self.create_subscription(kind, "image", self.take, messages.newest())

    def take(self, message):
        """Sends a picture, with the time of its stamp: the vehicle refuses one that is too old."""
        try:
            self.camera.send(message.data, self.captured(message), **pictures.options(message))
        except ValueError as error:
            now = time.monotonic()
            if now - self.said >= LOG_INTERVAL:
                self.said = now
                self.get_logger().error(f"a picture is left out: {error}")

    def captured(self, message):
        """Returns the time of the stamp on the monotonic clock; `None` if stamps do not count."""
        if not self.stamps:
            return None
        now, stamp = self.get_clock().now(), Time.from_msg(message.header.stamp)
        age = (now.nanoseconds - stamp.nanoseconds) * 1e-9
        # A stamp of 0 is long past, and refused as such.
        return max(0.0, time.monotonic() - age)


def main():
    """Runs the node until it is asked to end."""
    running.run(CameraNode)
