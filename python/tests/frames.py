"""The guard's frames as crates/guard/frames.toml describes them, read independently of the guard."""

from __future__ import annotations

import math
import struct
import time
import tomllib
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "crates/guard/frames.toml"
CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f32": "f", "f64": "d"}


def _entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ 0xC8DF352F * (byte & 1)
    return byte


_TABLE = [_entry(byte) for byte in range(256)]


def crc(data: bytes) -> int:
    """Returns the CRC-32/P4."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def _described() -> dict[str, tuple[int, list[dict]]]:
    source = tomllib.loads(SOURCE.read_text())
    blocks = {block["name"]: block["fields"] for block in source["block"]}
    frames = {}
    for frame in source["frame"]:
        fields = []
        for field in frame["fields"]:
            if field["type"] in blocks:
                prefix = field["name"]
                fields += [{**inner, "name": f"{prefix}.{inner['name']}"} for inner in blocks[field["type"]]]
            else:
                fields.append(field)
        frames[frame["name"]] = int.from_bytes(frame["data_id"].encode(), "big"), fields
    return frames


FRAMES = _described()
HEADER = struct.Struct(">HHIIQ")


def _code(kind: str) -> tuple[str, int]:
    base, _, count = kind.partition(" x ")
    if base.endswith(" bytes"):
        return f"{base.removesuffix(' bytes')}s", 1
    return CODES[base], int(count or 1)


def pack(name: str, counter: int, fields: dict[str, object]) -> bytes:
    """Returns a frame; a field that is not given is 0, NaN or empty."""
    data_id, described = FRAMES[name]
    body = b""
    for field in described:
        code, count = _code(field["type"])
        default = math.nan if code in "fd" else b"" if code.endswith("s") else 0
        value = fields.get(field["name"], default)
        values = value if isinstance(value, list) else [value] * count
        body += struct.pack(f">{len(values)}{code}" if code in "BHIQfd" else f">{code}", *values)
    assert set(fields) <= {field["name"] for field in described}, fields
    head = HEADER.pack(HEADER.size + len(body), counter & 0xFFFF, data_id, 0, time.monotonic_ns())
    return head[:8] + struct.pack(">I", crc(head[:8] + head[12:] + body)) + head[12:] + body


def unpack(name: str, frame: bytes) -> dict[str, object] | None:
    """Returns the fields of a frame of this name; None for another frame."""
    data_id, described = FRAMES[name]
    length, _, kind, sealed, _ = HEADER.unpack_from(frame)
    if kind != data_id or length != len(frame) or crc(frame[:8] + frame[12:]) != sealed:
        return None
    at, found = HEADER.size, {}
    for field in described:
        code, count = _code(field["type"])
        layout = struct.Struct(f">{count}{code}" if code in "BHIQfd" else f">{code}")
        if at + layout.size > len(frame):
            break
        values = layout.unpack_from(frame, at)
        found[field["name"]] = values[0] if len(values) == 1 else list(values)
        at += layout.size
    return found
