#!/usr/bin/env python3
"""Template of a machine behind Tautline's guard: put your actuators into `apply`, your sensors into `state`.

usage: machine.py ADDRESS    where `tautline guard --machine ADDRESS` listens: a path, or host:port for UDP"""
import json, os, sys, time
from adapter import FACT, FACT_ID, NO_AXES, Guard, follow

PARKING_BRAKE, NAN = 1, float("nan")

class Machine:  # replace it by yours; this one simulates a cart that drives straight ahead
    speed = x = 0.0  # speed in m/s, nan while unknown; position in m
    # Mode, steering, throttle, brake, gear, parking brake; for a differential or omni machine forward and sideways in m/s and
    # yaw rate in rad/s; set points of 16 axes, bits of actions, number and action of the newest request. A differential or omni
    # machine also keeps `yaw_rate`, and an omni one `sideways`, as this one keeps `speed`.
    controls = (0, 0.0, 0.0, 1.0, 0, 1, 0.0, 0.0, 0.0, *NO_AXES, 0, 0, 0)
    told_at = 0.0

    def __init__(self, guard):
        self.guard = guard

    def apply(self, controls):  # called every 10 ms, also without changes; must not block
        self.controls = controls

    def state(self, seconds, notices):  # called every 10 ms; seconds since the last call; notices of the adapter
        _, steering, throttle, brake, gear, parking, *_ = self.controls
        actions = self.controls[25]
        pull = 4.2 * throttle * (-1 if gear else 1) * seconds
        held = (8 * brake + 3 * parking + 0.2) * seconds
        self.speed = (self.speed + pull) if abs(self.speed + pull) > held else 0.0
        self.speed -= held if self.speed > 0 else -held if self.speed < 0 else 0
        self.x += self.speed * seconds
        self.tell()
        if os.environ.get("MACHINE_PRINTS"):
            print(f"{self.speed:.3f} {self.x:.3f}", flush=True)
        notices |= PARKING_BRAKE * parking
        motion, place = (self.speed, 0.0, NAN, 0.52 * steering), (self.x, 0.0, 0.0, NAN, NAN, NAN)
        told = NAN, NAN, NAN  # optional numbers: acceleration along and across, charge (docs/guard.md, frame machine)
        return *motion, gear, notices, 0, *place, *NO_AXES, actions, 0, 0, 0, *told  # no answer, no description

    def tell(self):  # optional: facts for the black box, at most 1000 bytes, five times a second
        if time.monotonic() - self.told_at > 1.0:
            self.told_at = time.monotonic()
            text = json.dumps({"software": "machine.py", "supply": {"volts": 48.5}, "fault_memory": []}).encode()
            self.guard.send(FACT, FACT_ID, 3, len(text), text)

def main(address):
    guard = Guard(address)
    follow(guard, Machine(guard))

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
