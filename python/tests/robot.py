"""A robot on two wheels whose program goes wrong as its argument says, after half a second of driving.

usage: robot.py HOW GUARD ACTUATOR"""

import ctypes
import itertools
import logging
import os
import signal
import sys
import time
from contextlib import suppress

import tautline


class Robot(tautline.Machine):
    def __init__(self, how):
        self.how, self.speed, self.yaw_rate, self.drives, self.at = how, 0.0, 0.0, 0, time.monotonic()

    def describe(self):
        return tautline.Description(motion="differential")

    def apply(self, control):
        now = time.monotonic()
        share = min(1.0, (now - self.at) / 0.1)
        self.at = now
        self.speed += (control.forward - self.speed) * share
        self.yaw_rate += (control.yaw_rate - self.yaw_rate) * share
        self.drives += control.mode == "driving"
        if self.drives == 50:
            self.drives += 1
            print(f"{time.monotonic():.6f}", flush=True)
            getattr(self, self.how)()
        if self.how == "raise_always" and self.drives > 50:
            raise ValueError("again")

    def state(self):
        return tautline.State(speed=self.speed, yaw_rate=self.yaw_rate)

    def drive_on(self):
        pass

    def sleep_short(self):
        time.sleep(0.020)

    def sleep_long(self):
        time.sleep(0.5)

    def hang(self):
        time.sleep(1e6)

    def spin(self):
        while True:
            pass

    def hold_lock(self):
        sum(itertools.repeat(0))  # a loop in C that never releases Python's lock

    def raise_once(self):
        raise RuntimeError("the motor controller is gone")

    def raise_always(self):
        pass

    def stop_itself(self):
        os.kill(os.getpid(), signal.SIGSTOP)

    def crash(self):
        ctypes.string_at(0)


if __name__ == "__main__":
    with suppress(OSError):
        os.nice(-10)  # a busy computer must not delay it
    logging.basicConfig(level=logging.INFO)
    how, guard, actuator = sys.argv[1:]
    tautline.serve(Robot(how), guard, safe=tautline.Safe.udp(actuator, b"stop"))
    print("ended", flush=True)
