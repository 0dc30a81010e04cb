"""Node `tautline_sim_robot`: a simulated robot on two wheels, with odometry, battery and camera.

It follows `cmd_vel` with a drive's lag and limits, and does not stop by itself when `cmd_vel` is
silent unless told to: what stops it must do so.
"""

import array
import json
import math
import socket
import time
from contextlib import suppress

import numpy
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import BatteryState, Image

from tautline_ros import messages, parameters, realtime, running, twist

STEP = 0.010


class Drive:
    """Motion of the robot: speed and yaw rate follow their set points; the pose is integrated."""

    def __init__(self, acceleration, yaw_acceleration, lag):
        self.rates, self.lag = (acceleration, yaw_acceleration), lag
        self.motion, self.set_points = [0.0, 0.0], (0.0, 0.0)
        self.x = self.y = self.heading = 0.0

    def step(self, seconds):
        """Moves on."""
        share = 1.0 - math.exp(-seconds / self.lag) if self.lag > 0.0 else 1.0
        for index, (wanted, rate) in enumerate(zip(self.set_points, self.rates)):
            change = (wanted - self.motion[index]) * share
            most = rate * seconds
            self.motion[index] += max(-most, min(most, change))
        speed, yaw_rate = self.motion
        middle = self.heading + 0.5 * yaw_rate * seconds
        self.x += speed * math.cos(middle) * seconds
        self.y += speed * math.sin(middle) * seconds
        self.heading = math.remainder(self.heading + yaw_rate * seconds, math.tau)


class Camera:
    """A drawn view: a chequered ground with posts below a sky, from 0.4 m above the ground."""

    HEIGHT, TILE, POSTS, FIELD = 0.4, 0.5, 40, 1.2

    def __init__(self, width, height, seed):
        self.width, self.height = width, height
        self.focal = width / 2.0 / math.tan(self.FIELD / 2.0)
        self.horizon = int(height * 0.4)
        columns = (numpy.arange(width) + 0.5 - width / 2.0) / self.focal
        rows = numpy.arange(self.horizon, height) + 1.0 - self.horizon
        self.ahead = (self.HEIGHT * self.focal / rows)[:, None] * numpy.ones(width)
        self.left = -self.ahead * columns
        # Far tiles become one colour, as they would flicker.
        self.contrast = numpy.clip(6.0 / self.ahead, 0.0, 1.0)
        random = numpy.random.default_rng(seed)
        self.posts = random.uniform(-12.0, 12.0, (self.POSTS, 2))
        self.colours = random.integers(64, 255, (self.POSTS, 3), dtype=numpy.uint8)

    def draw(self, x, y, heading):
        """Returns the picture, rows x columns x RGB, at a pose."""
        picture = numpy.empty((self.height, self.width, 3), numpy.uint8)
        picture[: self.horizon] = (110, 160, 210)
        sin, cos = math.sin(heading), math.cos(heading)
        east = x + cos * self.ahead - sin * self.left
        north = y + sin * self.ahead + cos * self.left
        tiles = numpy.floor(east / self.TILE) + numpy.floor(north / self.TILE)
        light = 118.0 + 40.0 * self.contrast * (numpy.mod(tiles, 2.0) * 2.0 - 1.0)
        picture[self.horizon :] = light[:, :, None].astype(numpy.uint8)
        offsets = self.posts - (x, y)
        ahead = offsets[:, 0] * cos + offsets[:, 1] * sin
        left = offsets[:, 1] * cos - offsets[:, 0] * sin
        for index in numpy.argsort(-ahead):
            if ahead[index] > 0.3:
                self.draw_post(picture, ahead[index], left[index], self.colours[index])
        return picture

    def draw_post(self, picture, ahead, left, colour):
        """Draws a post of 0.1 m width and 1 m height."""
        scale = self.focal / ahead
        middle = self.width / 2.0 - left * scale
        first, last = int(middle - 0.05 * scale), int(middle + 0.05 * scale) + 1
        foot = int(self.horizon + self.HEIGHT * scale)
        top = int(self.horizon - (1.0 - self.HEIGHT) * scale)
        picture[max(top, 0) : max(foot, 0), max(first, 0) : max(last, 0)] = colour


class SimRobot(Node):
    """The node."""

    def __init__(self):
        super().__init__("tautline_sim_robot")
        read = parameters.declare(self, (*parameters.SIM_ROBOT, parameters.ODOMETRY))
        self.fault = read["odometry"]
        self.drive = Drive(read["acceleration"], read["yaw_acceleration"], read["lag_s"])
        self.timeout = read["cmd_vel_timeout_s"]
        self.commanded = self.stepped = time.monotonic()
        self.charge = 1.0
        self.reported = Odometry()
        self.open_truth(read["truth"])
        self.add_on_set_parameters_callback(self.set_fault)
        self.odometry = self.create_publisher(Odometry, "odom", QoSProfile(depth=1))
        self.battery = self.create_publisher(BatteryState, "battery_state", QoSProfile(depth=1))
        stamped = read["cmd_vel_type"] == "TwistStamped"
        kind = twist.message_type(read["cmd_vel_type"])
        take = (lambda it: self.follow(it.twist)) if stamped else self.follow
        self.create_subscription(kind, "cmd_vel", take, QoSProfile(depth=1))
        self.create_timer(STEP, self.step)
        self.create_timer(1.0, self.tell_battery)
        if read["pictures_per_second"]:
            self.camera = Camera(read["width"], read["height"], seed=1)
            self.pictures = self.create_publisher(Image, "camera/image_raw", messages.newest())
            self.create_timer(1.0 / read["pictures_per_second"], self.show)

    def open_truth(self, address):
        """Opens the socket to which the true motion is sent."""
        self.truth, self.truth_at = None, address
        if address:
            self.truth = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.truth.setblocking(False)

    def set_fault(self, changed):
        """Takes another fault of the odometry."""
        for it in changed:
            if it.name == parameters.ODOMETRY.name:
                if it.value not in parameters.ODOMETRY.choices:
                    return SetParametersResult(successful=False, reason="no such fault")
                self.fault = it.value
        return SetParametersResult(successful=True)

    def follow(self, message):
        """Takes a set point."""
        self.drive.set_points = message.linear.x, message.angular.z
        self.commanded = time.monotonic()

    def step(self):
        """Moves on and reports."""
        now = time.monotonic()
        if self.timeout and now - self.commanded > self.timeout:
            self.drive.set_points = 0.0, 0.0
        self.drive.step(now - self.stepped)
        self.stepped = now
        self.tell_odometry()
        if self.truth is not None:
            speed, yaw_rate = self.drive.motion
            told = {
                "at": now,
                "speed": speed,
                "yaw_rate": yaw_rate,
                "x": self.drive.x,
                "y": self.drive.y,
            }
            # Perhaps nobody listens yet.
            with suppress(OSError):
                self.truth.sendto(json.dumps(told).encode(), self.truth_at)

    def tell_odometry(self):
        """Publishes the odometry, with its fault."""
        if self.fault == "silent":
            return
        if self.fault in ("sound", "reversed"):
            sign = -1.0 if self.fault == "reversed" else 1.0
            pose, twist_now = self.reported.pose.pose, self.reported.twist.twist
            pose.position.x, pose.position.y = self.drive.x, self.drive.y
            pose.orientation.z = math.sin(self.drive.heading / 2.0)
            pose.orientation.w = math.cos(self.drive.heading / 2.0)
            speed, yaw_rate = self.drive.motion
            twist_now.linear.x, twist_now.angular.z = sign * speed, sign * yaw_rate
        if self.fault != "repeated":
            self.reported.header.stamp = self.get_clock().now().to_msg()
        self.reported.header.frame_id, self.reported.child_frame_id = "odom", "base_link"
        self.odometry.publish(self.reported)

    def tell_battery(self):
        """Publishes the battery, which lasts four hours."""
        self.charge = max(0.0, self.charge - 1.0 / (4 * 3600))
        told = BatteryState(percentage=self.charge, voltage=22.0 + 3.2 * self.charge, present=True)
        told.header.stamp = self.get_clock().now().to_msg()
        self.battery.publish(told)

    def show(self):
        """Publishes a picture."""
        picture = self.camera.draw(self.drive.x, self.drive.y, self.drive.heading)
        shown = Image(height=self.camera.height, width=self.camera.width, encoding="rgb8")
        shown.header.stamp, shown.header.frame_id = self.get_clock().now().to_msg(), "camera"
        shown.step = 3 * self.camera.width
        shown.data = array.array("B", picture.tobytes())
        self.pictures.publish(shown)


def main():
    """Runs the node until it is asked to end."""
    # A robot's base is not late on a busy computer.
    realtime.raise_process()
    running.run(SimRobot)
