"""What `serve` refuses, and how it ends without a guard."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tautline
from tautline import _machine, _tautline

EXAMPLES = Path(__file__).parents[1] / "examples"


class Slowing(tautline.Machine):
    """A machine that keeps its controls, and stops a second after the first call."""

    def __init__(self):
        self.controls, self.began = [], time.monotonic()

    def describe(self):
        return tautline.Description(motion="omni")

    def apply(self, control):
        self.controls.append(control)

    def state(self):
        moves = time.monotonic() - self.began < 0.5
        return tautline.State(speed=0.3 if moves else 0.0, yaw_rate=0.0, sideways=0.0)


def test_a_stop_from_another_thread_waits_for_standstill(tmp_path):
    machine, stop = Slowing(), tautline.Stop()
    serving = threading.Thread(
        target=tautline.serve, args=(machine, tmp_path / "guard.sock"), kwargs={"stop": stop}
    )
    serving.start()
    stop.set()
    serving.join(10)
    assert not serving.is_alive() and stop.is_set()
    assert time.monotonic() - machine.began >= 0.5
    assert {control.mode for control in machine.controls} == {"alone"}
    assert machine.controls[-1].brake == 1.0 and machine.controls[-1].forward == 0.0
    assert len(machine.controls) > 30, "called every 10 ms"


def test_it_serves_again_in_the_same_process(tmp_path):
    for _ in range(3):
        machine, stop = Slowing(), tautline.Stop()
        machine.began -= 1.0
        stop.set()
        tautline.serve(machine, tmp_path / "guard.sock", stop=stop)
        assert machine.controls


def test_wrong_arguments_are_refused(tmp_path):
    safe = tautline.Safe.udp("127.0.0.1:9", b"x")
    with pytest.raises(ValueError, match="motion"):
        tautline.Description(motion="hover")
    with pytest.raises(ValueError, match="control_timeout"):
        tautline.serve(Slowing(), control_timeout=5)
    with pytest.raises(OSError, match="Safe.serial"):
        tautline.serve(Slowing(), safe=[safe, tautline.Safe.serial(tmp_path / "none", b"x")])
    with pytest.raises(OSError, match="1 to 4096"):
        tautline.serve(Slowing(), safe=tautline.Safe.udp("127.0.0.1:9", b""))
    with pytest.raises(ValueError, match="29 bits"):
        tautline.Safe.can("can0", 1 << 29, b"x")
    with pytest.raises(OSError):
        tautline.Safe.fd(987654, b"x")
    boom = tautline.Axis("boom", low=0.0, high=1.0, rate=0.0)
    for wrong, match in ((boom, "boom: its rate"), (tautline.Action("x" * 25), "at most 24 bytes")):
        lists = {"axes": [boom]} if wrong is boom else {"actions": [wrong]}
        machine = Slowing()
        machine.describe = lambda lists=lists: tautline.Description("omni", **lists)
        with pytest.raises(ValueError, match=match):
            tautline.serve(machine)
    with pytest.raises(TypeError, match="Description"):
        machine = Slowing()
        machine.describe = lambda: None
        tautline.serve(machine)


def test_a_name_that_does_not_exist_is_a_failure_and_named(tmp_path, caplog):
    class Wrong(Slowing):
        def state(self):
            return tautline.State(speed=0.0, yaw_rate=0.0, sideways=0.0, faults=("flat tyre",))

    stop = tautline.Stop()
    threading.Timer(0.3, stop.set).start()
    machine = Wrong()
    threading.Timer(0.6, lambda: setattr(machine, "state", Slowing.state.__get__(machine))).start()
    tautline.serve(machine, tmp_path / "guard.sock", stop=stop)
    assert "flat tyre" in caplog.text


def test_names_are_those_of_the_guard():
    from typing import get_args

    assert [*get_args(_machine.Fault), "description"] == _tautline.FAULTS
    assert [*get_args(_machine.Notice), "guard silent"] == _tautline.NOTICES


@pytest.mark.parametrize("example", ["robot.py", "cart.py"])
def test_examples_run_until_they_are_asked_to_end(tmp_path, example):
    program = subprocess.Popen(
        [sys.executable, EXAMPLES / example, tmp_path / "guard.sock"], stderr=subprocess.PIPE, text=True
    )
    time.sleep(0.7)
    program.terminate()
    _, errors = program.communicate(timeout=10)
    assert program.returncode == 0, errors
    assert "no safe bytes" in errors and "Traceback" not in errors
