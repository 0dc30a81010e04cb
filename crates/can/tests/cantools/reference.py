"""Packs and unpacks signals with cantools: one line of JSON a frame.

    reference.py random DBC               random values of every message
    reference.py recording DBC LOG.gz     every frame of a candump recording
"""

import gzip
import json
import random
import struct
import sys

import cantools

FRAMES = 50


def bits(signal, number):
    """The signal's bits as an unsigned integer."""
    if signal.is_float:
        return int.from_bytes(struct.pack({16: ">e", 32: ">f", 64: ">d"}[signal.length], number), "big")
    return number & (1 << signal.length) - 1


def line(message, data):
    raw = message.decode(data, decode_choices=False, scaling=False)
    scaled = message.decode(data, decode_choices=False)
    signals = []
    for name, number in raw.items():
        physical = scaled[name]
        # JSON has no infinity.
        known = physical == physical and abs(physical) != float("inf")
        signals.append([name, bits(message.get_signal_by_name(name), number), float(physical) if known else None])
    return {"data": data.hex(), "signals": signals}


def number(signal, rng):
    if signal.is_float:
        return struct.unpack(">f", struct.pack(">f", rng.uniform(-1e6, 1e6)))[0]
    least = -(1 << signal.length - 1) if signal.is_signed else 0
    return rng.randint(least, least + (1 << signal.length) - 1)


def used(tree, values, rng):
    """Names of the signals that a message has; draws its switches."""
    names = []
    for node in tree:
        if isinstance(node, str):
            names.append(node)
            continue
        for switch, branches in node.items():
            value = rng.choice(list(branches))
            values[switch] = value
            names += [switch] + used(branches[value], values, rng)
    return names


def overlaps(message):
    """True if signals of the message share bits: cantools cannot pack those."""
    try:
        message.refresh(strict=True)
    except cantools.database.errors.Error:
        return True
    return False


def encode_random(path):
    rng = random.Random(1)
    database = cantools.database.load_file(path, strict=False)
    for message in database.messages:
        if overlaps(message):
            print(json.dumps({"overlaps": message.name}))
            continue
        for index in range(FRAMES):
            values = {}
            for name in used(message.signal_tree, values, rng):
                if name not in values:
                    values[name] = number(message.get_signal_by_name(name), rng)
            data = message.encode(values, scaling=False, strict=False)
            print(json.dumps(line(message, data) | {"message": message.name, "first": index == 0}))


def decode_recording(path, recording):
    database = cantools.database.load_file(path, strict=False)
    by_id = {message.frame_id: message for message in database.messages if not message.is_extended_frame}
    with gzip.open(recording, "rt") as lines:
        for text in lines:
            _, bus, frame = text.split()
            number, data = frame.split("#")
            message = by_id.get(int(number, 16))
            data = bytes.fromhex(data)
            if bus == "can0" and message and len(data) >= message.length:
                print(json.dumps(line(message, data[: message.length]) | {"id": message.frame_id}))


if sys.argv[1] == "random":
    encode_random(sys.argv[2])
else:
    decode_recording(sys.argv[2], sys.argv[3])
