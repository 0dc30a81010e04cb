"""An operator in Python drives a whole system: arms, drives, looks away, hangs, is killed, hands over."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest
from demo import Demo, armed, drive_until, moves, stands

import tautline


@pytest.fixture
def demo(tmp_path):
    with Demo(tmp_path) as demo:
        yield demo


@pytest.fixture
def operator(demo):
    with tautline.Operator(demo.address) as operator:
        yield operator


def driven(start, status) -> float:
    (x, y, _), (to_x, to_y, _) = start.state.position, status.state.position
    return math.hypot(to_x - x, to_y - y)


def test_a_robot_is_driven_two_metres_and_stopped(operator):
    assert (operator.role, operator.vehicle) == ("drives", "car-1")
    start = operator.wait(lambda status: status.state is not None)
    armed(operator)
    drive_until(operator, lambda status: driven(start, status) >= 2.0, forward=0.8)
    end = drive_until(operator, stands)
    # The envelope's deceleration from 0.8 m/s, and the way until the command is there.
    assert 2.0 <= driven(start, end) < 3.5
    operator.park()
    assert operator.wait(lambda status: status.mode == "held").cause == "parked"


def test_a_turn_on_the_spot_turns_as_asked(operator):
    armed(operator)
    turned = drive_until(operator, lambda status: abs(status.state.yaw_rate) > 0.3, yaw_rate=0.5)
    assert turned.state.yaw_rate > 0.3 and abs(turned.state.speed) < 0.1
    assert turned.motion == "differential"
    drive_until(operator, stands)


def test_a_program_that_does_not_look_is_stopped(operator):
    armed(operator)
    drive_until(operator, moves(0.5), forward=0.8)
    old = operator.picture()
    began = time.monotonic()
    while operator.status.mode not in ("manoeuvre", "held"):
        operator.drive(old, forward=0.8)
        assert time.monotonic() < began + 5.0
        time.sleep(0.02)
    assert operator.status.cause == "picture age"
    # It goes on asking, which changes nothing.
    for _ in range(100):
        operator.drive(old, forward=0.8)
        time.sleep(0.02)
    assert stands(operator.status) and operator.status.mode == "held"


def test_a_program_that_hangs_is_stopped(operator):
    armed(operator)
    drive_until(operator, moves(0.5), forward=0.8)
    stopped = operator.wait(lambda status: status.mode == "manoeuvre", timeout=3.0)
    assert stopped.cause in ("command timeout", "picture age")
    operator.wait(stands)
    assert operator.counts["picture superseded"] > 0, "pictures that nobody takes do not queue"
    assert operator.picture().age < 1.0


DRIVES_ON = """
import sys, tautline
sys.path.insert(0, sys.argv[2])
from demo import armed, drive_until, moves
operator = tautline.Operator(sys.argv[1])
print("joined", flush=True)
armed(operator)
drive_until(operator, moves(0.5), forward=0.8)
print("drives", flush=True)
drive_until(operator, lambda status: False, forward=0.8)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_program_that_is_killed_or_stopped_is_stopped(demo, how):
    here = os.path.dirname(__file__)
    words = [sys.executable, "-c", DRIVES_ON, demo.address, here]
    program = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        # The first one to be connected drives.
        assert program.stdout.readline() == "joined\n"
        with tautline.Operator(demo.next_address()) as other:
            assert program.stdout.readline() == "drives\n"
            program.send_signal(how)
            stopped = other.wait(lambda status: status.mode == "manoeuvre", timeout=3.0)
            causes = {signal.SIGKILL: ("console gone",), signal.SIGSTOP: ("command timeout", "picture age")}
            assert stopped.cause in causes[how]
            other.wait(stands)
    finally:
        program.kill()
        program.wait()


def drive_on(operator, over):
    """Drives by each picture until `over`, or until another console drives."""
    with contextlib.suppress(TimeoutError, PermissionError):
        while not over.is_set():
            operator.drive(operator.picture(), forward=0.5)


def answer(operator, agrees):
    """Answers the next console that asks to drive."""

    def listen():
        operator.wait(lambda _: operator.request_from)
        operator.answer(agrees)

    answering = threading.Thread(target=listen)
    answering.start()
    return answering


def test_a_second_operator_waits_asks_and_takes_over(demo, operator):
    with tautline.Operator(demo.next_address()) as second:
        assert second.role == "waits"
        armed(operator)
        drive_until(operator, moves(0.3), forward=0.5)
        looking = threading.Event()
        driving = threading.Thread(target=drive_on, args=(operator, looking))
        driving.start()
        try:
            with pytest.raises(TimeoutError):
                second.picture(timeout=0.3)
            asked = answer(operator, False)
            with pytest.raises(tautline.Refused, match="refuses"):
                second.ask()
            asked.join()
            assert second.role == "refused" and operator.status.drives

            agreed = answer(operator, True)
            second.ask()
            agreed.join()
            assert second.role == "succeeds"
            second.take_over(second.picture(timeout=5.0))
        finally:
            looking.set()
        drive_until(second, stands)
        driving.join(5)
        assert (second.role, operator.role) == ("drives", "waits")
        assert second.status.drives and not operator.status.drives


def test_one_that_waits_may_only_stop_the_machine(demo, operator):
    with tautline.Operator(demo.next_address()) as second:
        armed(operator)
        drive_until(operator, moves(0.5), forward=0.8)
        picture = operator.picture()
        with pytest.raises(PermissionError):
            second.drive(picture, forward=0.8)
        with pytest.raises(PermissionError):
            second.arm(picture, timeout=0.2)
        looking = threading.Event()
        driving = threading.Thread(target=drive_on, args=(operator, looking))
        driving.start()
        try:
            second.emergency_stop()
            stopped = operator.wait(lambda status: status.mode in ("manoeuvre", "held"))
            assert (stopped.cause, stopped.latched) == ("emergency stop", True)
            operator.wait(lambda status: stands(status) and status.mode == "held")
        finally:
            looking.set()
            driving.join()
        with pytest.raises(tautline.Refused) as refused:
            operator.arm(operator.picture())
        assert refused.value.reason == "latched"
        operator.reset()
        assert not operator.wait(lambda status: not status.latched).latched


def test_an_address_admits_one_console(demo, operator):
    with pytest.raises(PermissionError, match="works once"):
        tautline.Operator(demo.address)
    for wrong in ("", "127.0.0.1:8080", "https://127.0.0.1:8080/#0", "http://127.0.0.1:8080/"):
        with pytest.raises(ValueError):
            tautline.Operator(wrong)
    with pytest.raises(ConnectionError):
        tautline.Operator("http://127.0.0.1:1/#00")


def test_axes_actions_and_requests_go_by_their_names(operator):
    armed(operator)
    described = operator.description
    assert [axis.name for axis in described.axes] == ["pan", "tilt"]
    assert described.axes[0].unit == "rad"
    armed_at = drive_until(
        operator, lambda status: status.state.axes.get("pan", 0.0) > 0.45, axes={"pan": 0.5}, actions=["lights"]
    )
    assert "lights" in armed_at.applied.actions and "lights" in armed_at.state.actions
    assert 20.0 < armed_at.state.values["battery"] < 26.0
    with pytest.raises(ValueError, match="no axis"):
        operator.drive(operator.picture(), axes={"boom": 0.1})
    with pytest.raises(ValueError, match="declared"):
        operator.request("fly")
    with pytest.raises(ValueError, match="twist"):
        operator.drive(operator.picture(), forward=1e9)
    with pytest.raises(ValueError):
        operator.drive(operator.picture(), forward=math.nan)


def stamp_of(array) -> int:
    """Reads the time in the picture's first rows (docs/camera.md): 32 cells after a white and a black one."""
    cells = [int(array[2:6, 8 * cell + 2 : 8 * cell + 6, 1].mean() >= 128) for cell in range(34)]
    assert cells[:2] == [1, 0], cells
    return int("".join(map(str, cells[2:])), 2)


def test_pictures_are_pixels_with_times(operator):
    numbers = []
    for picture in operator.pictures(timeout=10.0):
        numbers.append(picture.number)
        if len(numbers) == 10:
            break
    assert numbers == sorted(set(numbers))
    assert picture.pixels.shape == (picture.height, picture.width, 3) == (720, 1280, 3)
    array = picture.array
    assert array.shape == (720, 1280, 3) and array.dtype == numpy.uint8
    assert picture.pixels[100, 100, 2] == array[100, 100, 2]
    # The sky is blue, the road grey.
    sky, road = array[60:120].mean(axis=(0, 1)), array[600:700, 500:780].mean(axis=(0, 1))
    assert sky[2] > sky[0] + 10 and numpy.ptp(road) < 25
    # All processes of the test have the same clock.
    late = (picture.captured_ns // 1_000_000 - stamp_of(array)) % 2**32
    assert min(late, 2**32 - late) < 100
    assert 0.0 < picture.age < 2.0 and abs(time.time_ns() - picture.captured_ns) < 1e9
    assert picture.is_clean and picture.tick > 0


def test_waits_end_when_the_operators_process_is_silent_or_gone(demo, operator):
    operator.picture(timeout=10.0)
    process = demo.id_of("operator")
    os.kill(process, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            while True:
                operator.picture(timeout=0.5)
        assert time.monotonic() - began < 1.5
        with pytest.raises(ConnectionError, match="silent"):
            operator.wait(lambda _: False, timeout=10.0)
        assert time.monotonic() - began < 6.0
        with pytest.raises(ConnectionError):
            operator.emergency_stop()
    finally:
        os.kill(process, signal.SIGCONT)
