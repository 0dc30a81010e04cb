"""A robot on two wheels, simulated: replace the two marked lines by your motors and sensors.

usage: robot.py [GUARD]    where the guard listens for the machine, default guard.sock"""

import logging
import sys
import time

import tautline


class Robot(tautline.Machine):
    def __init__(self):
        self.speed = self.yaw_rate = 0.0
        self.at = time.monotonic()

    def describe(self):
        return tautline.Description(motion="differential")

    def apply(self, control):
        share = min(1.0, (time.monotonic() - self.at) / 0.1)  # wheels that follow within 0.1 s
        self.at = time.monotonic()
        self.speed += (control.forward - self.speed) * share  # your motors
        self.yaw_rate += (control.yaw_rate - self.yaw_rate) * share

    def state(self):
        return tautline.State(speed=self.speed, yaw_rate=self.yaw_rate)  # your sensors


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    tautline.serve(Robot(), guard=sys.argv[1] if len(sys.argv) > 1 else "guard.sock")
