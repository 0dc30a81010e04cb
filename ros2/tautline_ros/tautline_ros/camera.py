"""Node `tautline_camera`: passes the pictures of a topic to the vehicle, newest first."""

import time

import tautline
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image

from tautline_ros import messages, parameters, pictures, running

# Age in seconds above which a stamp is not believed; then the arrival counts.
AGE_MAX = 1.0
# Seconds between two logs of pictures that cannot be used.
LOG_INTERVAL = 10.0


class CameraNode(Node):
    """The node."""

    def __init__(self):
        super().__init__("tautline_camera")
        read = parameters.declare(self, parameters.CAMERA)
        self.camera = tautline.Camera(read["camera"], full_range=read["full_range"])
        self.said = -LOG_INTERVAL
        kind = CompressedImage if read["compressed"] else Image
        take = self.take_compressed if read["compressed"] else self.take
        self.create_subscription(kind, "image", take, messages.newest())

    def take(self, message):
        """Passes a picture on."""
        try:
            pixels, form, size = pictures.raw(message)
        except pictures.Unusable as error:
            return self.say(str(error))
        self.write(pixels, message.header.stamp, form, size)

    def take_compressed(self, message):
        """Passes a JPEG on."""
        try:
            size = pictures.jpeg_size(message.data)
        except pictures.Unusable as error:
            return self.say(str(error))
        self.write(message.data, message.header.stamp, "jpeg", size)

    def write(self, data, stamp, form, size):
        """Writes a picture with the time of its capture, if its stamp is plausible."""
        age = self.get_clock().now().nanoseconds * 1e-9 - messages.seconds_of(stamp)
        captured = time.monotonic() - age if 0.0 <= age <= AGE_MAX else None
        self.camera.write(data, captured, format=form, size=size)

    def say(self, text):
        """Logs why a picture was left out, at most every 10 s."""
        now = time.monotonic()
        if now - self.said >= LOG_INTERVAL:
            self.said = now
            self.get_logger().error(text)


def main():
    """Runs the node until it is asked to end."""
    running.run(CameraNode)
