"""A robot on two wheels, simulated: replace the two marked lines by your motors and sensors.

usage: robot.py [GUARD]    where the guard listens for the machine, default guard.sock"""

import logging
import math
import sys
import time

import tautline


class Robot(tautline.Machine):
    def __init__(self):
        self.speed = self.yaw_rate = self.x = self.y = self.heading = 0.0
        self.at = time.monotonic()

    def describe(self):
        return tautline.Description(motion="differential")

    def apply(self, control):
        passed, self.at = time.monotonic() - self.at, time.monotonic()
        share = min(1.0, passed / 0.1)  # wheels that follow within 0.1 s
        self.speed += (control.forward - self.speed) * share  # your motors
        self.yaw_rate += (control.yaw_rate - self.yaw_rate) * share
        self.heading += self.yaw_rate * passed
        self.x += self.speed * passed * math.cos(self.heading)
        self.y += self.speed * passed * math.sin(self.heading)

    def state(self):
        where = (self.x, self.y, self.heading)
        return tautline.State(speed=self.speed, yaw_rate=self.yaw_rate, position=where)  # your sensors


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    tautline.serve(Robot(), guard=sys.argv[1] if len(sys.argv) > 1 else "guard.sock")
