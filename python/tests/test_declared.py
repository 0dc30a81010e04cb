"""Axes, actions, requests and values of a machine in Python, through the real guard."""

import threading
import time

import pytest
from stand import DESCRIPTION, HELD, Stand

import tautline


class Arm(tautline.Machine):
    """A robot with a boom, lights and a dock, whose boom follows at once."""

    def __init__(self):
        self.control, self.boom, self.asked = None, 0.2, []

    def describe(self):
        return tautline.Description(
            "differential",
            axes=[
                tautline.Axis("boom", unit="rad", low=0.0, high=1.0, rate=2.0, on_stop="value", stop=0.1),
                tautline.Axis("gripper", "speed", low=-1.0, high=1.0, rate=5.0, on_stop="zero"),
            ],
            actions=[
                tautline.Action("lights", "switch", on_stop="keep", allowed_while_held=True),
                tautline.Action("dock", "request", allowed_while_held=True),
                tautline.Action("dance", "request", allowed_while_held=True),
                tautline.Action("break", "request", allowed_while_held=True),
            ],
            values=[
                tautline.Value("battery", unit="V", low=20.0, high=30.0, warn_low=22.0),
                tautline.Value("state", "text"),
            ],
        )

    def request(self, action):
        self.asked.append(action)
        if action == "break":
            raise RuntimeError("no")
        return action == "dock"

    def apply(self, control):
        self.control = control
        self.boom = control.axes.get("boom", self.boom)

    def state(self):
        return tautline.State(
            speed=0.0,
            yaw_rate=0.0,
            axes={"boom": self.boom},
            actions=self.control.actions,
            values={"battery": 24.5, "state": "at the dock"},
        )


@pytest.fixture
def served(tmp_path):
    machine, stop = Arm(), tautline.Stop()
    with Stand(tmp_path) as stand:
        serving = threading.Thread(
            target=tautline.serve, args=(machine, stand.address), kwargs={"stop": stop}
        )
        serving.start()
        yield machine, stand.vehicle
        stop.set()
        serving.join(10)
        assert not serving.is_alive()


def is_ready(status):
    return status.mode == HELD and not status.faults and not status.blockers & DESCRIPTION


def test_axes_and_actions_follow_the_person(served):
    machine, vehicle = served
    vehicle.arm()
    vehicle.axes, vehicle.actions = [0.7, -0.5], 1
    vehicle.wait(lambda status: status.fields["machine.axes"][0] == pytest.approx(0.7))
    vehicle.wait(lambda status: status.fields["machine.actions"] == 1)
    assert machine.control.axes == pytest.approx({"boom": 0.7, "gripper": -0.5})
    assert machine.control.actions == {"lights"}


def test_requests_are_answered(served):
    machine, vehicle = served
    vehicle.wait(is_ready)
    assert vehicle.request(1) == 1
    assert vehicle.request(2) > 1, "the machine refuses"
    assert vehicle.request(3) > 1, "it raises"
    assert vehicle.request(1) == 1
    assert machine.asked == ["dock", "dance", "break", "dock"]


def test_an_undeclared_name_is_a_failure(served, caplog):
    machine, vehicle = served
    vehicle.wait(is_ready)
    machine.state = lambda: tautline.State(speed=0.0, yaw_rate=0.0, values={"mood": 1.0})
    vehicle.wait(lambda status: status.faults)
    time.sleep(0.1)
    del machine.state
    assert "no value 'mood' is declared" in caplog.text or 'no value "mood" is declared' in caplog.text
