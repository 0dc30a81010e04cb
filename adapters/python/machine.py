#!/usr/bin/env python3
"""A machine behind Tautline's guard, to begin from: put your actuators into `apply`, your sensors into `state`.

usage: machine.py ADDRESS    where `tautline guard --machine ADDRESS` listens: a path, or host:port for UDP
The frames, byte by byte: docs/guard.md."""
import json, os, signal, socket, struct, sys, time

SILENCE = float(os.environ.get("MACHINE_SILENCE", 0.030))  # s without a control until it brakes by itself
PERIOD, PAUSE_MAX, END_MAX = 0.010, 0.080, 30.0  # s between states; of silence left out; until an end at speed
HEADER, CONTROL, STATE = struct.Struct(">HHIIQ"), struct.Struct(">BfffBBI"), struct.Struct(">ffBIIIfffddfB")
PARKING_BRAKE, GUARD_SILENT, HAZARD, NAN = 1, 8, 32, float("nan")

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0xC8DF352F if byte & 1 else 0)
    TABLE.append(byte)

def crc(frame):  # CRC-32/P4 over all but itself
    value = 0xFFFFFFFF
    for byte in frame[:8] + frame[12:]:
        value = value >> 8 ^ TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF

class Guard:
    """The way to the guard: sends states, and gives the newest sound control since the last time."""
    def __init__(self, address):
        self.address, self.sock, self.counters, self.last = address, None, {}, None
    def connect(self):
        udp = "/" not in self.address
        self.sock = socket.socket(socket.AF_INET if udp else socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.sock.bind(("", 0) if udp else "")  # a path's client gets a name, to be answered at
        host, _, port = self.address.rpartition(":")
        self.sock.connect((host, int(port)) if udp else self.address)
    def send(self, *state):
        self.send_frame(0x54474D31, STATE.pack(*state))
    def tell(self, about):  # for the black box alone: a dict of what your machine knows, at most 1000 bytes
        text = json.dumps(about).encode()
        self.send_frame(0x54474631, struct.pack(">BH1000s", 3, len(text), text))
    def send_frame(self, kind, payload):
        counter = self.counters.get(kind, 0)
        self.counters[kind] = counter + 1 & 0xFFFF
        head = (HEADER.size + len(payload), counter, kind)
        frame = HEADER.pack(*head, 0, time.monotonic_ns()) + payload
        frame = HEADER.pack(*head, crc(frame), *HEADER.unpack(frame[:20])[4:]) + frame[20:]
        try:
            self.sock or self.connect()
            self.sock.send(frame)
        except BlockingIOError:
            pass
        except OSError:  # the guard is not there, or another one: tried again with the next state
            self.sock = None
    def receive(self):
        newest = None
        for _ in range(32):
            try:
                frame = self.sock.recv(256)
            except (OSError, AttributeError):
                break
            if len(frame) != HEADER.size + CONTROL.size:
                continue
            length, counter, kind, check, _ = HEADER.unpack(frame[:20])
            if (length, kind, check) != (len(frame), 0x54474331, crc(frame)):
                continue
            ahead, self.last = (counter - self.last) & 0xFFFF if self.last is not None else 1, counter
            if 1 <= ahead <= 10:
                newest = CONTROL.unpack(frame[20:])
        return newest

class Machine:  # yours goes here: this one drives straight on
    speed = x = 0.0
    controls = (0, 0.0, 0.0, 1.0, 0, 1, 0)  # mode, steering, throttle, brake, gear, parking brake, signals
    def apply(self, controls):
        self.controls = controls
    def facts(self):  # what the black box is to keep of it: power supply, fault memory, software
        return {"software": "machine.py", "supply": {"volts": 48.5}, "fault_memory": []}
    def state(self, seconds, notices):
        _, steering, throttle, brake, gear, parking, signals = self.controls
        pull = 4.2 * throttle * (-1 if gear else 1) * seconds
        held = (8 * brake + 3 * parking + 0.2) * seconds
        self.speed = (self.speed + pull) if abs(self.speed + pull) > held else 0.0
        self.speed -= held if self.speed > 0 else -held if self.speed < 0 else 0
        self.x += self.speed * seconds
        notices |= PARKING_BRAKE * parking
        return self.speed, 0.52 * steering, gear, notices, 0, signals, self.x, 0.0, 0.0, NAN, NAN, NAN, 0

def brake_alone(machine, brake):  # at least so much; gives whether it stands
    mode, steering, _, before, gear, parking, signals = machine.controls
    stands = abs(machine.speed) < 0.05
    brake = 1.0 if stands else max(before, brake)
    machine.apply((mode, steering, 0.0, brake, gear, int(stands or parking), signals | HAZARD))
    return stands

def main(address):
    machine, asked = Machine(), []  # when to end: it hears the guard no more, and stands first
    signal.signal(signal.SIGTERM, lambda *_: asked.append(time.monotonic()))
    try:
        drive(Guard(address), machine, asked)
    finally:  # a bug in your code too: these controls hold from now on
        brake_alone(machine, 1.0)

def drive(guard, machine, asked):
    heard, silent, turned, paused, stands = None, -1.0, time.monotonic(), 0.0, False
    told = turned
    while not asked or not stands and turned - asked[0] < END_MAX:
        now = time.monotonic()
        control, stood, turned = guard.receive(), now - turned, now
        paused = min(paused + max(0.0, stood - PERIOD), PAUSE_MAX)  # that the guard was not heard then is no silence
        if control and stood < SILENCE and not asked:  # what waited while this process stood still is old
            machine.apply(control)
            heard, paused, stands = now, 0.0, False
        elif asked or heard is None or now - heard - paused > SILENCE:
            stands = brake_alone(machine, 0.5)
            silent = now if heard is not None else silent
        guard.send(*machine.state(min(stood, 1.0), GUARD_SILENT if silent >= 0 and now - silent < 0.1 else 0))
        if now - told > 1.0:
            told = now
            guard.tell(machine.facts())
        if os.environ.get("MACHINE_PRINTS"):
            print(f"{machine.speed:.3f} {machine.x:.3f}", flush=True)
        time.sleep(max(0.0, PERIOD - (time.monotonic() - now)))

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
