"""Serving a machine to the guard."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tautline import _tautline
from tautline._machine import Control, Description, Machine, State
from tautline._tautline import Safe, Stop

log = logging.getLogger("tautline")


def serve(
    machine: Machine,
    guard: str | os.PathLike[str] = "/run/tautline/machine.sock",
    *,
    safe: Safe | Iterable[Safe] | None = None,
    stop: Stop | None = None,
    control_timeout: float = 0.030,
    brake: float = 0.5,
    deceleration: float = 1.0,
    yaw_deceleration: float = 2.0,
) -> None:
    """Serves the machine to the guard until Ctrl-C, SIGTERM or `stop`, and until it stands.

    The frames are exchanged every 10 ms by a thread without Python, at real-time priority where the
    system allows it (a warning says if not). This thread calls `machine.apply` and `machine.state`.
    A call that takes over 30 ms, raises or never returns makes the other thread send the bytes of
    `safe` every 10 ms, and report a fault with an unknown speed, until later calls end in time.
    Another process sends them if this one is killed or stopped. An exception is logged with its
    traceback once a place; later ones are counted.

    If the guard is silent for `control_timeout` seconds, or the end was requested, the machine is
    braked along its arc: an Ackermann machine with the share `brake` of its brake, another one by
    `deceleration` in m/s² and `yaw_deceleration` in rad/s². One that still moves 30 s after the
    request is left on its full brake. After Ctrl-C, `KeyboardInterrupt` is raised at the end.

    `guard` is the address at which the guard listens for the machine: a path, or "host:port" for
    UDP.
    """
    description = machine.describe()
    if not isinstance(description, Description):
        raise TypeError(f"describe() must return a Description, not {type(description).__name__}")
    bounds = (
        ("control_timeout", control_timeout, 0.020, 0.500),
        ("brake", brake, 0.0, 1.0),
        ("deceleration", deceleration, 0.1, 20.0),
        ("yaw_deceleration", yaw_deceleration, 0.1, 50.0),
    )
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise ValueError(f"{name}: {value} is not within {low} to {high}")
    address = os.fspath(guard)
    is_udp = isinstance(guard, str) and ":" in address and "/" not in address
    if not is_udp:
        address = os.path.join(".", address)
    places = [] if safe is None else [safe] if isinstance(safe, Safe) else list(safe)
    if not places:
        log.warning("no safe bytes: only the actuators' own watchdog stops the machine if this program hangs")
    stop = Stop() if stop is None else stop
    failures = _Failures()

    def turn(
        mode: Any,
        pedals: tuple[float, float, float],
        is_reverse: bool,
        parking_brake: bool,
        twist: tuple[float, float, float],
        axes: dict[str, float],
        actions: list[str],
    ) -> State:
        machine.apply(
            Control(
                mode,
                *pedals,
                "reverse" if is_reverse else "drive",
                parking_brake,
                *twist,
                axes,
                frozenset(actions),
            )
        )
        return machine.state()

    try:
        with _signals(stop) as set_wakeup:
            _tautline.serve(
                description,
                machine.request,
                turn,
                failures.add,
                log.log,
                address,
                places,
                _watchdog(),
                (control_timeout, brake, deceleration, yaw_deceleration),
                stop,
                set_wakeup,
            )
    finally:
        failures.tell()


class _Failures:
    """Exceptions of the machine's calls, by their kind and place."""

    def __init__(self) -> None:
        self.counts: dict[tuple[type, str, int], int] = {}

    def add(self, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        place = (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
        key = (type(error), *place)
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if count == 1:
            log.error("the machine failed: it is made safe until it answers again", exc_info=error)

    def tell(self) -> None:
        for (kind, file, line), count in self.counts.items():
            if count > 1:
                log.error("%s at %s:%d: %d times", kind.__name__, file, line, count)


def _watchdog() -> list[str] | None:
    """Returns the command of the watchdog's process; None if this program has no interpreter."""
    if not sys.executable:
        log.warning("no Python to run the watchdog with: nothing sends the safe bytes if this program is killed")
        return None
    script = Path(__file__).with_name("_watchdog.py")
    return [sys.executable, "-I", "-S", str(script), str(_tautline.__file__)]


@contextmanager
def _signals(stop: Stop) -> Iterator[Any]:
    """Makes SIGTERM request the stop; only the main thread may."""
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    is_default = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if is_default:
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield lambda fd: signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
    finally:
        if is_default:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
