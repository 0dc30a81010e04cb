"""The robot stands within a bound, by its own true motion, whatever fails before it."""

import signal
import time

import pytest
from stand import waited

# m/s at which it is driven.
SPEED = 0.8
# Metres and seconds of a stop from there: the guard's manoeuvre, or `tautline_stop` at 1 m/s², the
# robot's own lag of 50 ms, and this long until the fault is known.
RAMP_METRES, RAMP_SECONDS = SPEED**2 / 2 / 1.0 + SPEED * 0.05, SPEED / 1.0 + 0.25


def bounds(detected):
    """Returns the bound in metres and seconds with a fault that is detected so late, in seconds."""
    # A busy computer adds up to 0.1 s.
    late = detected + 0.1
    return RAMP_METRES + SPEED * late, RAMP_SECONDS + late


@pytest.fixture
def driven(stand):
    """A robot that is driven forward."""
    stand.guard()
    stand.robot()
    stand.machine()
    stand.drive(SPEED)
    return stand


def stands_within(driven, at, detected):
    """Waits until the stop must be over, and judges it."""
    metres_max, seconds_max = bounds(detected)
    time.sleep(seconds_max + 1.0)
    metres, seconds = driven.truth.way(at)
    print(f"{metres:.2f} m, {seconds:.2f} s; at most {metres_max:.2f} m, {seconds_max:.2f} s")
    assert metres <= metres_max and seconds <= seconds_max, driven.told()


def test_a_machine_node_that_is_killed_stops_the_robot(driven):
    at = driven.signal("machine", signal.SIGKILL)
    stands_within(driven, at, 0.05)


def test_a_machine_node_that_hangs_stops_the_robot(driven):
    at = driven.signal("machine", signal.SIGSTOP)
    stands_within(driven, at, 0.06)
    driven.signal("machine", signal.SIGCONT)
    driven.vehicle.twist = (0.0, 0.0, 0.0)
    assert waited(lambda: driven.vehicle.mode() == "held", 5), driven.told()
    # A control that was about to be published when the process was stopped is published once.
    fastest = max(abs(it["speed"]) for it in driven.truth.steps if it["at"] > at + bounds(0.06)[1])
    print(f"{fastest:.3f} m/s after it went on")
    assert fastest < 0.05, "old commands moved it"


def test_a_guard_that_is_killed_stops_the_robot(driven):
    at = driven.signal("guard", signal.SIGKILL)
    stands_within(driven, at, 0.1)


@pytest.mark.parametrize("fault, detected", [("silent", 0.1), ("repeated", 0.1), ("reversed", 0.1)])
def test_odometry_that_fails_stops_the_robot(driven, fault, detected):
    # On a busy computer the guard may stop the robot before.
    for _ in range(3):
        at = driven.set_odometry(fault)
        if driven.truth.moved(at):
            break
        driven.set_odometry("sound")
        driven.drive(SPEED)
    stands_within(driven, at, detected)


def test_odometry_whose_values_are_frozen_stops_the_robot(driven):
    # While it drives at its set point the report is plausible: the guard notices when the set point
    # changes.
    driven.set_odometry("frozen")
    assert driven.vehicle.mode() == "driving", driven.told()
    at = time.monotonic()
    driven.vehicle.twist = (0.0, 0.0, 0.0)
    stands_within(driven, at, 0.5)
    assert driven.vehicle.mode() != "driving", driven.told()


def test_an_executor_that_hangs_stops_the_robot(driven):
    at = driven.signal("machine", signal.SIGUSR1)
    stands_within(driven, at, 0.1)
    assert driven.vehicle.mode() in ("manoeuvre", "held"), driven.told()


def test_python_that_hangs_stops_the_robot(driven):
    at = driven.signal("machine", signal.SIGUSR2)
    stands_within(driven, at, 0.05)


def test_a_machine_node_that_is_asked_to_end_stops_the_robot_first(driven):
    at = driven.signal("machine", signal.SIGTERM)
    stands_within(driven, at, 0.05)
    assert driven.processes["machine"].wait(5) == 0, driven.told()


def test_a_turn_on_the_spot_ends_too(stand):
    stand.guard()
    stand.robot()
    stand.machine()
    stand.drive(0.0, 0.9)
    at = stand.signal("machine", signal.SIGKILL)
    time.sleep(2)
    _, seconds = stand.truth.way(at)
    # 0.9 rad/s at 2 rad/s², the drive's lag, detection and a busy computer.
    assert seconds <= 0.9 / 2 + 0.25 + 0.15, stand.told()


def test_a_stop_node_that_begins_anew_lets_the_robot_drive_on(driven):
    driven.signal("stop", signal.SIGKILL)
    driven.node("stop", {"heartbeat": driven.heartbeat}, name="stop again")
    time.sleep(3)
    assert driven.vehicle.mode() == "driving", driven.told()
    assert driven.truth.now()["speed"] > 0.7, driven.told()
    at = driven.signal("machine", signal.SIGKILL)
    stands_within(driven, at, 0.05)


def test_a_machine_node_is_deactivated_only_at_standstill(driven):
    assert not driven.transition("deactivate")
    assert driven.vehicle.mode() == "driving", driven.told()
    driven.vehicle.twist = (0.0, 0.0, 0.0)
    assert waited(lambda: abs(driven.truth.now()["speed"]) < 0.01, 5), driven.told()
    assert driven.transition("deactivate"), driven.told()
    # Without a machine the guard does not know that it stands.
    assert waited(lambda: driven.vehicle.mode() == "manoeuvre", 3), driven.told()
    assert driven.transition("activate"), driven.told()
    driven.drive(SPEED)


def test_a_machine_node_without_odometry_ends_all_the_same(driven):
    driven.signal("sim_robot", signal.SIGKILL)
    driven.signal("machine", signal.SIGTERM)
    assert driven.processes["machine"].wait(6) == 1, driven.told()
