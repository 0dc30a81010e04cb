"""Topics of other programs, at the vehicle's or the operator's end: docs/camera.md."""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import stat
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of the other end."""

    topic: str
    """Name of its topic."""
    data: bytes
    """Content."""
    received_ns: int
    """Unix time in ns at which it was taken."""


@dataclass(frozen=True, slots=True)
class RefusedUnit:
    """A published unit that was not carried; of several in a row the newest is reported."""

    topic: str
    """Name of its topic."""
    reason: str
    """"too large for the links", "over the topic's cap", "links busy" or "no link"."""
    size: int
    """Its length in bytes."""
    size_max: int | None
    """Longest unit that is accepted at present; None if that is not why."""


class Topics:
    """Topics at one end, vehicle or operator; the other end has the same with the roles exchanged.

    `publish` has the `listen` addresses of this end's `[[topics]]` by name, `deliver` the addresses
    of its `[deliver]`: paths of sockets, or "host:port" for UDP. Nothing waits, except for units and
    within a timeout. What finds no room, or nobody, is dropped and counted."""

    def __init__(
        self,
        *,
        publish: Mapping[str, str | os.PathLike[str]] | None = None,
        deliver: Mapping[str, str | os.PathLike[str]] | None = None,
    ) -> None:
        self._outlets: dict[str, _Outlet] = {}
        self._inlets: dict[str, _Inlet] = {}
        self._ready = select.poll()
        self._refused: deque[RefusedUnit] = deque(maxlen=_REFUSED_MAX)
        self._waiting: deque[Unit] = deque()
        self._counts = {"not taken": 0, "refused": 0, "refusal superseded": 0}
        try:
            for name, address in (publish or {}).items():
                self._outlets[name] = _Outlet(address)
            for name, address in (deliver or {}).items():
                inlet = self._inlets[name] = _Inlet(address)
                self._ready.register(inlet.socket, select.POLLIN)
        except BaseException:
            self.close()
            raise

    def publish(self, topic: str, data: bytes) -> bool:
        """Sends a unit to the other end; returns whether this end's process took it. It may still be
        refused: see `refused`."""
        is_taken = self._outlets[topic].send(data)
        self._counts["not taken"] += not is_taken
        self._read_refusals()
        return is_taken

    def receive(self, timeout: float = 1.0) -> Unit:
        """Returns the next unit of the topics in `deliver`; raises TimeoutError after `timeout`
        seconds."""
        until = time.monotonic() + timeout
        while not self._waiting:
            left = max(0.0, until - time.monotonic())
            self._ready.poll(left * 1e3)
            for topic, inlet in self._inlets.items():
                if (data := inlet.receive()) is not None:
                    # One of each at most, so that no topic waits behind another's.
                    self._waiting.append(Unit(topic, data, time.time_ns()))
            if not self._waiting and time.monotonic() >= until:
                raise TimeoutError(f"no unit for {timeout} s")
        return self._waiting.popleft()

    def received(self, timeout: float = 1.0) -> Iterator[Unit]:
        """Yields units as they come, until none comes for `timeout` seconds."""
        while True:
            try:
                unit = self.receive(timeout)
            except TimeoutError:
                return
            yield unit

    def refused(self) -> list[RefusedUnit]:
        """Returns what was refused since the last call, the newest 64."""
        self._read_refusals()
        told = list(self._refused)
        self._refused.clear()
        return told

    @property
    def counts(self) -> dict[str, int]:
        """Counts of units that this end's process did not take, and of refusals told."""
        return dict(self._counts)

    def close(self) -> None:
        """Closes the sockets."""
        for outlet in self._outlets.values():
            outlet.socket.close()
        for inlet in self._inlets.values():
            inlet.close()

    def __enter__(self) -> Topics:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_refusals(self) -> None:
        for topic, outlet in self._outlets.items():
            for told in outlet.answers():
                reason, size = str(told.get("refused", "")), int(told.get("bytes") or 0)
                self._counts["refused"] += 1
                self._counts["refusal superseded"] += len(self._refused) == _REFUSED_MAX
                size_max = told.get("most_bytes")
                size_max = None if size_max is None else int(size_max)
                self._refused.append(RefusedUnit(topic, reason, size, size_max))


class _Outlet:
    """Socket to this end's process."""

    def __init__(self, address: str | os.PathLike[str]) -> None:
        self.family, self.address = _address(address)
        self.socket = socket.socket(self.family, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        if self.family == socket.AF_UNIX:
            # It needs a name to receive answers.
            self.socket.bind("")

    def send(self, data: bytes) -> bool:
        with suppress(OSError):
            # A restarted process at a path is a new socket, so this one is not connected.
            return self.socket.sendto(data, self.address) == len(data)
        return False

    def answers(self) -> Iterator[dict[str, int | str | None]]:
        for _ in range(_ANSWERS_MAX):
            try:
                told = json.loads(self.socket.recv(_UNIT_BYTES_MAX))
            except ValueError:
                continue
            except OSError:
                return
            if isinstance(told, dict):
                yield told


class _Inlet:
    """Socket at which this end's process delivers."""

    def __init__(self, address: str | os.PathLike[str]) -> None:
        self.family, self.address = _address(address)
        self.path = self.address if isinstance(self.address, str) else None
        self.socket = socket.socket(self.family, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        try:
            if self.path is not None:
                _free(self.path)
            self.socket.bind(self.address)
        except OSError as error:
            self.socket.close()
            raise OSError(error.errno, error.strerror, str(address)) from error

    def receive(self) -> bytes | None:
        with suppress(BlockingIOError):
            return self.socket.recv(_UNIT_BYTES_MAX)
        return None

    def close(self) -> None:
        self.socket.close()
        if self.path is not None:
            with suppress(OSError):
                os.unlink(self.path)


def _free(path: str) -> None:
    """Removes a socket that an earlier program has left at a path."""
    if not os.path.exists(path) or not stat.S_ISSOCK(os.stat(path).st_mode):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise OSError(errno.EADDRINUSE, "another program listens there")


def _address(address: str | os.PathLike[str]) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    """Returns family and address: a path, or "host:port"."""
    text = os.fspath(address)
    host, _, port = text.rpartition(":")
    if "/" in text or not host or not port.isdecimal():
        return socket.AF_UNIX, text
    host = host.strip("[]")
    return (socket.AF_INET6 if ":" in host else socket.AF_INET), (host, int(port))


# Longest unit that is carried.
_UNIT_BYTES_MAX = 256 * 1024
_REFUSED_MAX = 64
# The process answers at most ten times a second.
_ANSWERS_MAX = 64
