"""Tests of adapter.py in virtual time: `python3 -m unittest test_adapter` in this folder."""
import unittest
from math import isnan
from types import SimpleNamespace
import adapter

class Ends(Exception):
    pass

class Drive:
    """A guard that sends a control every 10 ms with a delay of 1 ms, and an adapter that pauses at one point of one turn."""
    def __init__(self, place, stall, turns=3000):
        self.now, self.turn, self.place, self.stall, self.turns = 1.0, 0, place, stall, turns
        self.sent, self.waiting, self.followed, self.silent = 0, [], 0, 0
        self.guard = adapter.Guard.__new__(adapter.Guard)
        self.guard.source, self.guard.came, self.guard.least, self.guard.early = 0.0, -adapter.inf, 0.0, (0.0, -adapter.inf, 0)
        self.guard.receive, self.guard.send = self.receive, self.send
        self.controls, self.speed = (0, 0.0, 0.0, 1.0, 0, 1, 0.0, 0.0, 0.0, *adapter.NO_AXES, 0, 0, 0), 5.0

    def pass_time(self, seconds):
        self.now += seconds
        while 1.0 + self.sent * 0.010 + 0.001 <= self.now:  # controls that have arrived by now
            self.waiting.append(9000.0 + self.sent * 0.010)
            self.sent += 1

    def stand(self, place):
        if self.turn == 200 and place == self.place:
            self.pass_time(self.stall)

    def receive(self):
        self.stand("before receiving")
        newest = ((2, 0.0, 0.6, 0.0, 0, 0, 0.0, 0.0, 0.0, *adapter.NO_AXES, 0, 0, 0), self.waiting[-1]) if self.waiting else None
        self.waiting.clear()
        self.stand("after receiving")
        return newest

    def monotonic(self):
        read = self.now
        self.stand("after a look at the clock")
        return read

    def apply(self, controls):
        self.stand("in the machine")
        self.followed += self.turn > 215 and controls[2] > 0
        self.silent += 215 < self.turn < self.turns and controls[2] == 0

    def state(self, seconds, notices):
        return ()

    def send(self, layout, kind, *fields):
        self.stand("in sending")

    def sleep(self, seconds):
        self.pass_time(max(seconds, 0.010))
        self.turn += 1
        if self.turn == self.turns:
            raise Ends

    def run(self):
        before, adapter.time = adapter.time, SimpleNamespace(monotonic=self.monotonic, sleep=self.sleep)
        raise_thread, adapter.raise_thread = adapter.raise_thread, lambda: None
        try:
            adapter.follow(self.guard, self)
        except Ends:
            pass
        finally:
            adapter.time, adapter.raise_thread = before, raise_thread
        return self.silent

class Stalls(unittest.TestCase):
    def test_a_turn_that_stands_at_any_place_leaves_no_later_control_late(self):
        places = "before receiving", "after receiving", "after a look at the clock", "in the machine", "in sending"
        for place in places:
            for stall in 0.0, 0.020, 0.075, 0.106, 0.4:
                drive = Drive(place, stall)
                self.assertEqual(drive.run(), 0, (place, stall))
                self.assertGreater(drive.followed, 2700, (place, stall))

    def test_a_queue_that_stands_is_late_however_long(self):
        guard = Drive("", 0.0).guard
        late = [guard.late(9000 + turn / 100, 1 + turn / 100 + (0.1 if turn > 50 else 0)) for turn in range(3000)]
        self.assertTrue(all(0.093 <= it <= 0.1001 for it in late[51:]))

    def test_one_early_frame_makes_none_late(self):
        guard = Drive("", 0.0).guard
        late = [guard.late(9000 + turn / 100, 1 + turn / 100 - (0.1 if turn == 50 else 0)) for turn in range(3000)]
        self.assertLess(max(late), 1e-6)

class Alone(unittest.TestCase):
    def test_a_machine_alone_slows_on_its_arc_and_a_turn_on_the_spot_is_motion(self):
        machine = SimpleNamespace(speed=1.0, yaw_rate=0.5)
        controls = 2, 0.0, 0.0, 0.0, 0, 0, 1.0, 0.0, 0.5, *[0.25] * 16, 1, 7, 3
        for turn in range(1, 99):
            controls = adapter.alone(controls, machine, 0.5, 0.010)
            self.assertAlmostEqual(controls[6], 1.0 - 0.010 * turn, 6)
            self.assertAlmostEqual(controls[8], 0.5 * controls[6], 6)
            self.assertEqual(controls[5], 0)
        machine.speed = 0.0
        self.assertFalse(adapter.stands(machine))
        machine.yaw_rate = 0.0
        held = adapter.alone(controls, machine, 0.5, 0.010)
        self.assertEqual((held[5:9], held[25:]), ((1, 0.0, 0.0, 0.0), (33, 0, 0)))
        self.assertTrue(all(isnan(axis) for axis in held[9:25]))

if __name__ == "__main__":
    unittest.main()
