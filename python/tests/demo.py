"""`tautline demo` as a test's system: switchboard, guard, machine, vehicle and operator as processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from stand import TAUTLINE

import tautline


# Longer limits, so that late pictures and frames on a busy computer do not stop the machine.
DELAYS = {
    "machine": "\ncontrol_timeout_ms = 100\n",
    "guard": """
[guard.latency]
loop_age_full_ms = 1000
loop_age_max_ms = 2000
picture_age_max_ms = 900
command_timeout_ms = 900
proposal_timeout_ms = 100
machine_timeout_ms = 100
step_gap_max_ms = 100
""",
}


# Causes of stops that are the computer's, where processes wait for a processor.
BUSY = ("camera stopped", "encoder stopped", "machine timeout", "proposal timeout", "guard late", "guard silent")


@dataclass
class Demo:
    """A running demo of a machine, whose guard allows for a busy computer."""

    folder: Path
    machine: str = "robot"
    flags: tuple[str, ...] = ()
    said: list[str] = field(default_factory=list)
    restarted: list[subprocess.Popen[str]] = field(default_factory=list)

    def __enter__(self) -> Demo:
        command = [TAUTLINE, "demo", "--console", "127.0.0.1:0", "--links", "direct", *self.flags]
        command += ["--machine", self.machine, "--blackbox", str(self.blackbox), "--pictures-per-second", "15"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        threading.Thread(target=self._listen, daemon=True).start()
        self.find(r"Ctrl-C")
        for name, further in DELAYS.items():
            self.restarted.append(restart(self, name, further))
        return self

    def __exit__(self, *_: object) -> None:
        # The vehicle stops its machine first, so guard and machine end last.
        self.process.send_signal(signal.SIGINT)
        try:
            assert self.process.wait(30) == 0
        finally:
            self.process.kill()
            for process in self.restarted:
                process.terminate()
                process.wait(10)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        self.said.extend(self.process.stdout)

    def find(self, pattern: str, count: int = 1) -> str:
        """Returns what the demo prints, by a pattern: its `count`-th match."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            found = re.findall(pattern, "".join(list(self.said)), re.MULTILINE)
            if len(found) >= count:
                return found[count - 1]
            time.sleep(0.01)
        raise AssertionError(f"no {pattern}: {self.said}")

    @property
    def blackbox(self) -> Path:
        """Folder of the guard's black box."""
        return self.folder / "blackbox"

    @property
    def address(self) -> str:
        """Address of the first console."""
        return self.find(r"^Open +(\S+)")

    def next_address(self, number: int = 1) -> str:
        """Address of the console after `number` others."""
        return self.find(r"^Opened\. Another browser: +(\S+)", number)

    def id_of(self, process: str) -> int:
        """Process id by name."""
        return int(self.find(rf"Processes: .*\b{process} (\d+)"))


def armed(operator: tautline.Operator) -> None:
    """Arms the machine; asks again while what prevents it may pass."""
    until = time.monotonic() + 20
    while True:
        try:
            return operator.arm(operator.picture())
        except (tautline.Refused, TimeoutError):
            if time.monotonic() > until:
                raise


def drive_until(operator: tautline.Operator, until, timeout: float = 20.0, **command) -> tautline.Status:
    """Drives by each picture until the status is as wanted. Arms again after a stop by a busy computer."""
    end = time.monotonic() + timeout
    for picture in operator.pictures():
        operator.drive(picture, **command)
        status = operator.status
        if status is not None and status.mode == "held" and status.cause in BUSY:
            armed(operator)
        if status is not None and until(status):
            return status
        assert time.monotonic() < end, status
    raise AssertionError("no pictures")


def moves(speed: float):
    """Returns what tells a status in which the robot drives faster."""
    return lambda status: status.drives and status.state is not None and status.state.speed > speed


def stands(status: tautline.Status) -> bool:
    """Tells a status in which the machine stands."""
    return status.state is not None and abs(status.state.speed) < 0.02 and abs(status.state.yaw_rate) < 0.02


def settings_of(demo: Demo, process: str) -> Path:
    """Returns the settings file of a demo's process."""
    words = Path(f"/proc/{demo.id_of(process)}/cmdline").read_text().split("\0")
    return Path(words[words.index("--config") + 1])


def restart(demo: Demo, process: str, further: str) -> subprocess.Popen[str]:
    """Starts a demo's process again with further settings; the caller ends it."""
    settings, number = settings_of(demo, process), demo.id_of(process)
    settings.write_text(settings.read_text() + further)
    os.kill(number, signal.SIGKILL)
    while Path(f"/proc/{number}").exists():
        time.sleep(0.01)
    command = [TAUTLINE, process, "--config", str(settings)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
