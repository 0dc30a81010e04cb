"""Drives a robot from a program: looks, arms, drives one metre, stops and parks. usage: drive.py ADDRESS"""

import math
import sys
import time

import tautline

METRES, SPEED, SECONDS_MAX = 1.0, 0.5, 60.0

begun = time.monotonic()


def tell(what: str) -> None:
    print(f"{time.monotonic() - begun:.1f} s after the address was opened: {what}", flush=True)


def driven(operator: tautline.Operator, metres: float) -> bool:
    """Arms and drives so far; returns whether it came there, or was stopped by the guard."""
    operator.arm(operator.picture())
    start = operator.status.state.position
    for picture in operator.pictures():
        status = operator.status
        if status is None or status.mode == "held" or status.mode == "manoeuvre":
            tell(f"the guard stopped it: {status.cause if status else 'silent'}")
            return False
        if math.dist(start[:2], status.state.position[:2]) >= metres:
            tell(f"it has driven {metres} m, and drives at {status.state.speed:.2f} m/s")
            return True
        operator.drive(picture, forward=SPEED)


with tautline.Operator(sys.argv[1]) as operator:
    picture = operator.picture(timeout=SECONDS_MAX)
    tell(f"the first picture, {picture.width}x{picture.height}, {picture.age * 1e3:.0f} ms old")
    operator.wait(lambda status: status.state is not None, timeout=SECONDS_MAX)
    while True:
        try:
            if driven(operator, METRES):
                break
        except (tautline.Refused, TimeoutError) as refused:
            # Right after a stop, or before the guard knows enough, it does not arm yet.
            if time.monotonic() - begun > SECONDS_MAX:
                sys.exit(f"not driven: {refused}")
            time.sleep(0.1)
    for picture in operator.pictures():
        operator.drive(picture)
        if abs(operator.status.state.speed) < 0.02:
            break
    operator.park()
    tell("it stands, parked")
