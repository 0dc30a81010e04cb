"""Pictures of a program, sent to the vehicle."""

from __future__ import annotations

import os
import socket
import struct
import time
from types import TracebackType
from typing import Any, Literal

Format = Literal["rgb", "bgr", "rgba", "bgra", "grey", "yuyv", "uyvy", "nv12", "i420", "jpeg"]

# Code on the wire by format, and bytes of a pixel in the first plane.
_FORMATS: dict[str, tuple[bytes, int]] = {
    "rgb": (b"RGB3", 3),
    "bgr": (b"BGR3", 3),
    "rgba": (b"RGBA", 4),
    "bgra": (b"BGRA", 4),
    "grey": (b"GREY", 1),
    "yuyv": (b"YUYV", 2),
    "uyvy": (b"UYVY", 2),
    "nv12": (b"NV12", 1),
    "i420": (b"YU12", 1),
    "jpeg": (b"MJPG", 0),
}
# Default format by the bytes of a pixel.
_DEFAULTS: dict[int, Format] = {1: "grey", 3: "rgb", 4: "rgba"}
_PLANES = "nv12", "i420"
_CLOCKS = {"monotonic": 1, "realtime": 2}
_FULL_RANGE, _OF_END = 1, 2
# crates/vehicle/src/camera/socket/header.rs describes it.
_HEADER = struct.Struct(">4sHH4sIIIIIQfI16x")
_SIDE_MAX = 8192
# Seconds between two attempts to connect.
_RETRY = 0.2
# Seconds that a call may wait for the vehicle, which needs a few milliseconds.
_SEND_MAX = 0.1
# Markers of a JPEG's frame, which has the size: all SOF but DHT, JPG and DAC.
_SIZES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class Camera:
    """The camera of a vehicle whose settings name `camera = "unix:PATH"`.

    The vehicle shows the newest picture. It may start later, and again: `send` connects when it can. One thread
    at a time may use a camera."""

    def __init__(self, path: str | os.PathLike[str], *, rate: float = 0.0, full_range: bool = False) -> None:
        """Creates a camera for the vehicle that listens at `path`, which may begin with "unix:".

        `rate` is its mean rate in pictures per second, 0.5 to 240; 0: the one in the vehicle's settings.
        `full_range`: samples of YUV and grey use 0 to 255, not 16 to 235."""
        if rate and not 0.5 <= rate <= 240:
            raise ValueError(f"rate: {rate} is not within 0.5 to 240")
        self._path = os.fspath(path).removeprefix("unix:")
        self._rate, self._flags = rate, _FULL_RANGE if full_range else 0
        self._socket: socket.socket | None = None
        self._tried_at = -_RETRY
        self._number = 0

    def send(
        self,
        picture: Any,
        captured: float | None = None,
        *,
        clock: Literal["monotonic", "realtime"] = "monotonic",
        format: Format | None = None,
        size: tuple[int, int] | None = None,
        stride: int | None = None,
    ) -> bool:
        """Sends a picture; returns whether the vehicle took it. Waits for at most 0.2 s.

        `picture` is a numpy array, or anything else with a buffer or `__dlpack__` (that needs numpy) of bytes in
        the memory of the CPU. Its shape is (height, width) of grey, (height, width, bytes of a pixel) of other
        formats, (height * 3 / 2, width) of "nv12" and "i420". Bytes without a shape need `size`, (width, height),
        and `stride`, the bytes from one row to the next, if rows have padding; a JPEG needs neither. An odd last
        row or column is left out.

        `format` is by default "grey", "rgb" or "rgba", by the bytes of a pixel.

        `captured` is when the capture began, in seconds of time.monotonic(), or of time.time() with the clock
        "realtime". The vehicle refuses a picture whose time is in the future, over half a second old at its
        arrival, or not later than the one before. Without it, the capture counts as over at the call.

        Raises ValueError if the picture does not have these properties."""
        view, shape = _view(picture)
        if format is None:
            depth = 1 if len(shape) == 2 else shape[2] if len(shape) == 3 else 0
            if size is not None or depth not in _DEFAULTS:
                raise ValueError(f"format is missing, for a shape of {shape}")
            format = _DEFAULTS[depth]
        if format not in _FORMATS:
            raise ValueError(f"format: {format!r} is none of {', '.join(_FORMATS)}")
        if size is None:
            size = _jpeg_size(view) if format == "jpeg" else _size(shape, format)
        width, height, stride, count = _measures(size, stride, format)
        if format == "jpeg":
            count = view.nbytes
        elif view.nbytes < count:
            raise ValueError(f"{view.nbytes} bytes are fewer than the {count} of {format} {width}x{height}")
        is_of_end = captured is None
        nanos = time.monotonic_ns() if captured is None else int(captured * 1e9)
        number_of_clock = 1 if captured is None else _CLOCKS[clock]
        if nanos < 0:
            raise ValueError(f"captured: {captured} is before the clock's beginning")
        self._number = self._number + 1 & 0xFFFFFFFF
        header = _HEADER.pack(
            b"TPIC",
            1,
            self._flags | (_OF_END if is_of_end else 0),
            _FORMATS[format][0],
            width,
            height,
            stride,
            count,
            self._number,
            nanos,
            self._rate,
            number_of_clock,
        )
        return self._write(header, view[:count])

    def close(self) -> None:
        """Disconnects from the vehicle; the next `send` connects again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _write(self, header: bytes, view: memoryview) -> bool:
        connection = self._socket or self._connect()
        if connection is None:
            return False
        try:
            sent = connection.sendmsg([header, view])
            if sent < len(header):
                raise OSError("only a part of the header was taken")
            connection.sendall(view[sent - len(header) :])
        except OSError:
            # No other picture can follow a part of one.
            self.close()
            return False
        return True

    def _connect(self) -> socket.socket | None:
        now = time.monotonic()
        if now - self._tried_at < _RETRY:
            return None
        self._tried_at = now
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_SEND_MAX)
            connection.connect(self._path)
        except OSError:
            connection.close()
            return None
        self._socket = connection
        return connection

    def __enter__(self) -> Camera:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _view(picture: Any) -> tuple[memoryview, tuple[int, ...]]:
    """Returns the bytes of a picture, copied only if they do not follow each other, and its shape."""
    try:
        view = memoryview(picture)
    except TypeError:
        if not hasattr(picture, "__dlpack__"):
            raise
        import numpy

        picture = numpy.from_dlpack(picture)
        view = memoryview(picture)
    shape = tuple(view.shape or ())
    if view.itemsize != 1:
        raise ValueError(f"items of {view.itemsize} bytes: pictures have 8 bits a sample")
    if not view.c_contiguous:
        # The method of numpy is many times as fast as that of a memoryview.
        view = memoryview(picture.tobytes() if hasattr(picture, "tobytes") else view.tobytes())
    if view.nbytes == 0:
        raise ValueError("an empty picture")
    return view.cast("B"), shape


def _size(shape: tuple[int, ...], format: str) -> tuple[int, int]:
    """Returns width and height of a picture with this shape."""
    depth = _FORMATS[format][1]
    if format in _PLANES and len(shape) == 2 and shape[0] % 3 == 0:
        return shape[1], shape[0] * 2 // 3
    if format not in _PLANES and (len(shape) == 3 and shape[2] == depth or len(shape) == 2 and depth == 1):
        return shape[1], shape[0]
    raise ValueError(f"a shape of {shape} is not one of {format}: give size=(width, height)")


def _measures(size: tuple[int, int], stride: int | None, format: str) -> tuple[int, int, int, int]:
    """Returns width, height, stride and length of a picture, without odd rows and columns."""
    width, height = size
    depth = _FORMATS[format][1]
    row = width * depth
    stride = row if stride is None or format == "jpeg" else stride
    if format in _PLANES or format == "jpeg":
        if width % 2 or height % 2 or stride % 2:
            raise ValueError(f"{width}x{height}, stride {stride}: those of {format} are even")
    width, height = width - width % 2, height - height % 2
    if not (0 < width <= _SIDE_MAX and 0 < height <= _SIDE_MAX):
        raise ValueError(f"{size[0]}x{size[1]}: sides from 2 to {_SIDE_MAX} are possible")
    if stride < row:
        raise ValueError(f"a stride of {stride} bytes is shorter than a row of {row}")
    return width, height, stride, stride * height * 3 // 2 if format in _PLANES else stride * height


def _jpeg_size(data: memoryview) -> tuple[int, int]:
    """Returns width and height of a JPEG."""
    place = 2
    while bytes(data[:2]) == b"\xff\xd8" and place + 9 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        # Filling bytes, and markers without a length.
        if marker == 0xFF:
            place += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD7:
            place += 2
        elif marker in _SIZES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        else:
            place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    raise ValueError("not a JPEG, or one without a size")
