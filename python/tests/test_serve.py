"""The wheel behind the real guard: a machine whose program is slow, fails, hangs or dies is made safe."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from stand import HELD, MACHINE_FAULT, MACHINE_TIMEOUT, MANOEUVRE, OTHER, UNREACHABLE, Stand

ROBOT = Path(__file__).with_name("robot.py")
LATE = 0.050  # s until the safe bytes must have arrived


@contextmanager
def robot(stand, how):
    command = [sys.executable, str(ROBOT), how, stand.address, stand.actuator.address]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield program
    finally:
        program.kill()
        program.wait()


@pytest.fixture
def stand(tmp_path):
    with Stand(tmp_path) as stand:
        yield stand


def wrong_since(program):
    """Returns the time at which the program went wrong."""
    return float(program.stdout.readline())


def assert_safe(stand, since, faults):
    stopped = stand.vehicle.wait(lambda status: status.mode in (MANOEUVRE, HELD))
    time.sleep(0.2)
    times = stand.actuator.safe_since(since)
    assert times, "no safe bytes"
    assert times[0] - since <= LATE, f"{1e3 * (times[0] - since):.1f} ms"
    gaps = [after - before for before, after in zip(times, times[1:])]
    assert len(times) >= 10 and max(gaps) < 0.05, "they are repeated"
    assert stopped.cause in (MACHINE_FAULT, MACHINE_TIMEOUT)
    assert all(status.mode in (MANOEUVRE, HELD) for status in stand.vehicle.history if status.at > stopped.at)
    if faults:
        assert stand.vehicle.history[-1].faults & faults
    return times


def test_a_robot_is_driven_and_stands_at_the_end(stand):
    with robot(stand, "drive_on") as program:
        stand.vehicle.drive(1.0)
        wrong_since(program)
        time.sleep(1.0)
        program.send_signal(signal.SIGTERM)
        out, errors = program.communicate(timeout=10)
        assert (out, program.returncode) == ("ended\n", 0), errors
        assert not stand.actuator.safe_since(0.0)


def test_ctrl_c_stops_the_robot_first(stand):
    with robot(stand, "drive_on") as program:
        stand.vehicle.drive(1.0)
        wrong_since(program)
        asked = time.monotonic()
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=10)
        assert time.monotonic() - asked > 0.3, "1 m/s takes time"
        assert program.returncode != 0 and errors.rstrip().endswith("KeyboardInterrupt")
        assert not stand.actuator.safe_since(0.0)


def test_a_call_of_20_ms_is_in_time(stand):
    with robot(stand, "sleep_short") as program:
        stand.vehicle.drive(1.0)
        since = wrong_since(program)
        time.sleep(0.3)
        assert not stand.actuator.safe_since(since)
        assert stand.vehicle.history[-1].mode not in (MANOEUVRE, HELD)


@pytest.mark.parametrize("how", ["hang", "spin", "hold_lock"])
def test_a_call_that_never_returns(stand, how):
    with robot(stand, how) as program:
        stand.vehicle.drive(1.0)
        assert_safe(stand, wrong_since(program), UNREACHABLE)


def test_a_call_that_returns_late_is_safe_until_it_answers_again(stand):
    with robot(stand, "sleep_long") as program:
        stand.vehicle.drive(1.0)
        since = wrong_since(program)
        times = assert_safe(stand, since, UNREACHABLE)
        time.sleep(0.6)
        times = stand.actuator.safe_since(since)
        assert 0.4 < times[-1] - since < 0.6, "until the call has returned"
        stand.vehicle.wait(lambda status: status.mode == HELD and not status.faults)
        stand.vehicle.drive(0.5)


def test_an_exception_is_logged_once_and_safe(stand):
    with robot(stand, "raise_always") as program:
        stand.vehicle.drive(1.0)
        assert_safe(stand, wrong_since(program), OTHER)
        program.send_signal(signal.SIGINT)
        stand.guard.kill()
        time.sleep(0.1)
        program.kill()
        errors = program.stderr.read()
        assert errors.count('raise ValueError("again")') == 1, errors


def test_a_single_exception_stops_and_the_robot_can_be_armed_again(stand):
    with robot(stand, "raise_once") as program:
        stand.vehicle.drive(1.0)
        since = wrong_since(program)
        stand.vehicle.wait(lambda status: status.mode in (MANOEUVRE, HELD))
        times = stand.actuator.safe_since(since)
        assert times and times[0] - since <= LATE
        stand.vehicle.drive(0.5)


@pytest.mark.parametrize("how", ["stop_itself", "crash"])
def test_a_program_that_stops_or_dies(stand, how):
    with robot(stand, how) as program:
        stand.vehicle.drive(1.0)
        assert_safe(stand, wrong_since(program), 0)


def test_a_killed_program(stand):
    with robot(stand, "drive_on") as program:
        stand.vehicle.drive(1.0)
        wrong_since(program)
        since = time.monotonic()
        os.kill(program.pid, signal.SIGKILL)
        times = assert_safe(stand, since, 0)
        time.sleep(1.2)
        assert stand.actuator.safe_since(since)[-1] - times[0] < 1.2, "for a second"
