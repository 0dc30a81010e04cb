"""Follows Tautline's guard with a machine, tells it the machine's state, and brakes by itself while it is silent.

`follow(Guard(address), machine)` is all there is to call; machine.py shows what a machine has to have. docs/guard.md has
the frames, byte by byte."""
import os, signal, socket, struct, sys, time
from contextlib import suppress
from math import inf

SILENCE = float(os.environ.get("MACHINE_SILENCE", 0.030))  # s without a control until it brakes by itself
PERIOD, PAUSE_MAX, END_MAX = 0.010, 0.080, 30.0  # s between states; of silence left out; until an end at speed
ANEW, DRIFT = 1.0, 0.0002  # s unheard after which it may be another guard; by what clocks run apart
AGREE, EARLY_SPAN, EARLY_COUNT = 0.001, 2.0, 3  # s that quick frames differ by; s in which that number makes a quicker way
STANDING, GUARD_SILENT, HAZARD = 0.05, 8, 32  # m/s; bits of a notice and of a signal
CONTROL, STATE = struct.Struct(">HHIIQ BfffBBI"), struct.Struct(">HHIIQ ffBIIIfffddfB fff")

def sealed(frame):  # with the CRC-32/P4 of all but itself in its place
    value = 0xFFFFFFFF
    for byte in frame[:8] + frame[12:]:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0xC8DF352F * (value & 1)
    return frame[:8] + struct.pack(">I", value ^ 0xFFFFFFFF) + frame[12:]

class Guard:  # the way to it: a path, or host:port for UDP
    def __init__(self, address):
        is_path, (host, _, port) = "/" in address, address.rpartition(":")
        self.address = address if is_path else (host, int(port))
        self.sock = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setblocking(False)
        self.sock.bind("" if is_path else ("", 0))  # a path's client gets a name, to be answered at
        self.counters, self.last = {}, 0
        self.source, self.came, self.least, self.early = 0.0, -inf, 0.0, (0.0, -inf, 0)

    def send(self, layout, kind, *fields):
        self.counters[kind] = counter = self.counters.get(kind, 0) + 1 & 0xFFFF
        frame = layout.pack(layout.size, counter, kind, 0, time.monotonic_ns(), *fields)
        with suppress(OSError):  # it is not there, or its queue is full: the next frame tries again
            self.sock.connect(self.address)  # another one may listen there by now
            self.sock.send(sealed(frame))

    def receive(self):  # the newest sound control since the last time, and when it was sent by the guard's clock
        newest = None
        with suppress(OSError):  # nothing waits any more
            for _ in range(32):
                frame = self.sock.recv(256)
                if len(frame) == CONTROL.size and frame == sealed(frame):
                    length, counter, kind, _, source, *controls = CONTROL.unpack(frame)
                    ahead, self.last = counter - self.last & 0xFFFF, counter
                    if (length, kind) == (CONTROL.size, 0x54474331) and 1 <= ahead <= 10:
                        newest = controls, source / 1e9
        return newest

    def late(self, source, now):  # s that a frame was under way beyond the quickest: the clocks are not compared
        apart, unheard = now - source, now - self.came  # now is read behind the frame: no frame is early by that
        if source < self.source or unheard >= ANEW:
            self.least, self.early = apart, (0.0, -inf, 0)
        self.least += min(unheard, ANEW) * DRIFT
        early, since, count = self.early
        if apart >= self.least - AGREE:
            self.least = min(self.least, apart)
        elif abs(apart - early) > AGREE or now - since >= EARLY_SPAN:
            self.early = apart, now, 1  # alone it makes nothing late that follows
        elif count + 1 < EARLY_COUNT:
            self.early = max(early, apart), since, count + 1
        else:
            self.least, self.early = max(early, apart), (0.0, -inf, 0)
        self.source, self.came = source, now
        return max(0.0, apart - self.least)

def alone(controls, speed, brake):  # along the arc, by so much at least, then held
    mode, steering, _, before, gear, parking, signals = controls
    stands = abs(speed) < STANDING
    return mode, steering, 0.0, 1.0 if stands else max(before, brake), gear, int(stands or parking), signals | HAZARD

def raise_thread():  # before all that share the processors, as the guard's own
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    except (AttributeError, OSError) as error:
        print(f"the machine shares the processors with all others: the system allows no SCHED_FIFO ({error})", file=sys.stderr, flush=True)

def follow(guard, machine):
    raise_thread()
    asked = []  # when to end: it hears the guard no more, and stands first
    signal.signal(signal.SIGTERM, lambda *_: asked.append(time.monotonic()))
    controls, heard, silent, paused, turned = machine.controls, -inf, -inf, 0.0, time.monotonic()
    try:
        while not asked or not abs(machine.speed) < STANDING and turned - asked[0] < END_MAX:
            newest = guard.receive()
            now = time.monotonic()  # behind what was received: nothing has come after it
            stood, turned = now - turned, now
            pause = min(max(0.0, stood - PERIOD), PAUSE_MAX)  # that the guard was not heard then is no silence
            paused = min(paused + pause, PAUSE_MAX)
            if newest and stood < SILENCE:  # what waited while this process stood still is old
                controls, heard, paused = newest[0], now - guard.late(newest[1], now), pause
            if asked or now - heard - paused > SILENCE:
                controls, silent = alone(controls, machine.speed, 0.5), now
            machine.apply(controls)
            notices = GUARD_SILENT if now - silent < 0.1 else 0
            guard.send(STATE, 0x54474D31, *machine.state(min(stood, 1.0), notices))
            time.sleep(max(0.0, PERIOD - (time.monotonic() - now)))
    finally:  # a bug in your code too: these controls hold from now on
        machine.apply(alone(controls, machine.speed, 1.0))
