"""Connects a machine to Tautline's guard: applies its controls, reports the machine's state, brakes while it is silent.

Call `follow(Guard(address), machine)`; machine.py is an example of a machine. docs/guard.md documents the frames."""
import os, signal, socket, struct, sys, time
from contextlib import suppress
from math import hypot, inf, nan

SILENCE = float(os.environ.get("MACHINE_SILENCE", 0.030))  # s without a control until the machine brakes
PERIOD, PAUSE_MAX, END_MAX = 0.010, 0.080, 30.0  # s: between states; of own pauses left out of silence; until it ends while moving
ANEW, DRIFT = 1.0, 0.0002  # s of silence after which the guard may be another process; drift of clocks
AGREE, EARLY_SPAN, EARLY_COUNT = 0.001, 2.0, 3  # three early frames that agree to 1 ms within 2 s set a new minimum delay
STANDING, GUARD_SILENT, HAZARD = 0.05, 8, 32  # m/s and rad/s; bit in the notices; bit in the actions
NO_AXES = (nan,) * 16  # no set point for any axis
SLOWS, YAW_SLOWS = 1.0, 2.0  # m/s² and rad/s² at which a differential or omni machine stops by itself
# The frames; written by `cargo xtask frames`.
CONTROL, CONTROL_ID = struct.Struct(">HHIIQ BfffBBfff16fIIB"), 0x54474333
MACHINE, MACHINE_ID = struct.Struct(">HHIIQ ffffBIIfffddf16fIIBIfff"), 0x54474D33
DESCRIPTION, DESCRIPTION_ID = struct.Struct(">HHIIQ IBBBBBBBB24s12sffffffff"), 0x54474431
VALUE, VALUE_ID = struct.Struct(">HHIIQ IBBfB64s"), 0x54475631
FACT, FACT_ID = struct.Struct(">HHIIQ BH1000s"), 0x54474631
# End of the frames.

def sealed(frame):  # returns the frame with its CRC-32/P4 filled in
    value = 0xFFFFFFFF
    for byte in frame[:8] + frame[12:]:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0xC8DF352F * (value & 1)
    return frame[:8] + struct.pack(">I", value ^ 0xFFFFFFFF) + frame[12:]

class Guard:  # connection to the guard; address: a path, or host:port for UDP
    def __init__(self, address):
        is_path, (host, _, port) = "/" in address, address.rpartition(":")
        self.address = address if is_path else (host, int(port))
        self.sock = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setblocking(False)
        self.sock.bind("" if is_path else ("", 0))  # a Unix socket needs a name to receive answers
        self.counters, self.last = {}, 0
        self.source, self.came, self.least, self.early = 0.0, -inf, 0.0, (0.0, -inf, 0)

    def send(self, layout, kind, *fields):
        self.counters[kind] = counter = self.counters.get(kind, 0) + 1 & 0xFFFF
        frame = layout.pack(layout.size, counter, kind, 0, time.monotonic_ns(), *fields)
        with suppress(OSError):  # the guard is absent, or its queue is full: the next frame tries again
            self.sock.connect(self.address)  # a restarted guard has a new socket
            self.sock.send(sealed(frame))

    def receive(self):  # returns the newest valid control since the last call, and its time of sending by the guard's clock
        newest = None
        with suppress(OSError):  # no more frames are queued
            for _ in range(32):
                frame = self.sock.recv(256)
                if len(frame) == CONTROL.size and frame == sealed(frame):
                    length, counter, kind, _, source, *controls = CONTROL.unpack(frame)
                    ahead, self.last = counter - self.last & 0xFFFF, counter
                    if (length, kind) == (CONTROL.size, CONTROL_ID) and 1 <= ahead <= 10:
                        newest = controls, source / 1e9
        return newest

    def late(self, source, now):  # returns a frame's delay in seconds beyond the fastest frame's; needs no common clock
        apart, unheard = now - source, now - self.came  # `now` is read after the frame was received
        if source < self.source or unheard >= ANEW:
            self.least, self.early = apart, (0.0, -inf, 0)
        self.least += min(unheard, ANEW) * DRIFT
        early, since, count = self.early
        if apart >= self.least - AGREE:
            self.least = min(self.least, apart)
        elif abs(apart - early) > AGREE or now - since >= EARLY_SPAN:
            self.early = apart, now, 1  # a single early frame does not make later ones count as late
        elif count + 1 < EARLY_COUNT:
            self.early = max(early, apart), since, count + 1
        else:
            self.least, self.early = max(early, apart), (0.0, -inf, 0)
        self.source, self.came = source, now
        return max(0.0, apart - self.least)

def stands(machine):  # a turn on the spot is motion too
    return max(abs(machine.speed), abs(getattr(machine, "sideways", 0.0)), abs(getattr(machine, "yaw_rate", 0.0))) < STANDING

def slowed(twist, seconds):  # on its arc: the part that needs more time sets the pace
    forward, sideways, yaw_rate = twist
    left = lambda value, rate: max(0.0, 1.0 - rate * seconds / value) if value else 0.0
    share = max(left(hypot(forward, sideways), SLOWS), left(abs(yaw_rate), YAW_SLOWS))
    return forward * share, sideways * share, yaw_rate * share

def alone(controls, machine, brake, seconds):  # brakes by at least `brake`, keeps the arc, holds at standstill
    mode, steering, _, before, gear, parking = controls[:6]
    stood, twist, actions = stands(machine), controls[6:9], controls[25]
    twist = (0.0, 0.0, 0.0) if stood or seconds is None else slowed(twist, seconds)
    pedals = 0.0, 1.0 if stood else max(before, brake), gear, int(stood or parking)
    return mode, steering, *pedals, *twist, *NO_AXES, actions | HAZARD, 0, 0

def raise_thread():  # gives this thread real-time priority, as the guard's
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    except (AttributeError, OSError) as error:
        print(f"no SCHED_FIFO: a busy computer may cause stops ({error})", file=sys.stderr, flush=True)

def follow(guard, machine):
    raise_thread()
    asked = []  # time of SIGTERM: from then on the guard is ignored, and the process ends at standstill
    signal.signal(signal.SIGTERM, lambda *_: asked.append(time.monotonic()))
    controls, heard, silent, paused, turned = machine.controls, -inf, -inf, 0.0, time.monotonic()
    try:
        while not asked or not stands(machine) and turned - asked[0] < END_MAX:
            newest = guard.receive()
            now = time.monotonic()  # read after receiving, so that no frame seems to be from the future
            stood, turned = now - turned, now
            pause = min(max(0.0, stood - PERIOD), PAUSE_MAX)  # own pause, which does not count as the guard's silence
            paused = min(paused + pause, PAUSE_MAX)
            if newest and stood < SILENCE:  # after a pause of this process, queued controls are stale
                controls, heard, paused = newest[0], now - guard.late(newest[1], now), pause
            if asked or now - heard - paused > SILENCE:
                controls, silent = alone(controls, machine, 0.5, stood), now
            machine.apply(controls)
            notices = GUARD_SILENT if now - silent < 0.1 else 0
            guard.send(MACHINE, MACHINE_ID, *machine.state(min(stood, 1.0), notices))
            time.sleep(max(0.0, PERIOD - (time.monotonic() - now)))
    finally:  # also after an exception in your code: full brake
        machine.apply(alone(controls, machine, 1.0, None))
