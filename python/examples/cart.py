"""A cart that drives straight ahead: the machine of adapters/python/machine.py on this package.

usage: cart.py GUARD    where the guard listens for the machine: a path, or host:port for UDP"""

import logging
import sys
import time

import tautline


class Cart(tautline.Machine):
    def __init__(self):
        self.speed = self.x = 0.0  # m/s, m
        self.control = None
        self.at = time.monotonic()

    def describe(self):
        lights = tautline.Action("lights", "switch", on_stop="keep", allowed_while_held=True)
        hazard = tautline.Action("hazard", "switch", on_stop="on", allowed_while_held=True)
        odometer = tautline.Value("odometer", unit="m")
        return tautline.Description("ackermann", actions=[lights, hazard], values=[odometer])

    def apply(self, control):
        self.control = control

    def state(self):
        seconds, self.at = time.monotonic() - self.at, time.monotonic()
        control = self.control
        pull = 4.2 * control.throttle * (-1 if control.gear == "reverse" else 1) * seconds
        held = (8 * control.brake + 3 * control.parking_brake + 0.2) * seconds
        pulled = self.speed + pull
        self.speed = max(0.0, abs(pulled) - held) * (1 if pulled >= 0 else -1)
        self.x += self.speed * seconds
        return tautline.State(
            speed=self.speed,
            steering_angle=0.52 * control.steering,
            gear=control.gear,
            position=(self.x, 0.0, 0.0),
            notices={"parking brake"} if control.parking_brake else (),
            actions=control.actions,
            values={"odometer": self.x},
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    tautline.serve(Cart(), guard=sys.argv[1])
