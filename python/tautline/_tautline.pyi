"""The native part; the package's other modules alone call it, except `Safe` and `Stop`."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Protocol, final

from tautline._machine import Description
from tautline._operator import Role, _Wanted
from tautline._records import FileState

class _File(Protocol):
    def fileno(self) -> int: ...

@final
class Safe:
    """Bytes that stop the machine without its program, and where they go.

    They are sent every 10 ms while the program does not answer, and for a second after it was killed."""

    @staticmethod
    def fd(file: int | _File, data: bytes) -> Safe:
        """Sends the bytes to an open file, socket, pipe or device: an object with `fileno()`, or the
        number. Sending never waits, unless a device allows only one opening."""

    @staticmethod
    def udp(address: str, data: bytes) -> Safe:
        """Sends the bytes as a datagram to a UDP address such as "192.168.0.7:9000"."""

    @staticmethod
    def serial(path: str | PathLike[str], data: bytes, baud: int | None = None) -> Safe:
        """Sends the bytes over the serial line at `path`. Without `baud` the line's settings stay."""

    @staticmethod
    def can(bus: str, id: int, data: bytes, extended: bool = False) -> Safe:
        """Sends a frame with this identifier on a CAN bus: an interface such as "can0", or
        "udp:ADDRESS:PORT" of a simulator. An identifier above 0x7ff is an extended one; more than 8
        bytes make a frame of CAN FD."""

@final
class Stop:
    """Request to end `serve`, from any thread."""

    def __init__(self) -> None: ...
    def set(self) -> None:
        """Requests the end: the machine is brought to a standstill, then `serve` returns."""

    def is_set(self) -> bool:
        """Returns whether the end was requested."""

@final
class Console:
    @staticmethod
    def open(address: str, picture_interval: int, timeout: float) -> Console: ...
    def close(self) -> None: ...
    def ended(self) -> str | None: ...
    def picture(self, wait: float) -> Shown | None: ...
    def changed(self, version: int, wait: float) -> int: ...
    def drive(self, picture: Shown, wanted: _Wanted) -> None: ...
    def act(
        self, deed: str, argument: int, picture: Shown | None, dead_man: bool | None, wait: float
    ) -> str | None: ...
    def emergency_stop(self, wait: float) -> bool: ...
    def ask(self, asks: bool) -> None: ...
    def answer(self, request: int, agrees: bool) -> None: ...
    def pick(self, vehicle: str) -> None: ...
    def leave(self) -> None: ...
    def refusals(self) -> int: ...
    def standing(self) -> tuple[Role, str, str, str]: ...
    def status(self) -> dict[str, Any] | None: ...
    def description(self) -> dict[str, Any] | None: ...
    def counts(self) -> list[tuple[str, int]]: ...
    def now(self) -> int: ...

@final
class Shown:
    size: tuple[int, int]
    number: int
    tick: int
    is_clean: bool
    captured_ns: int | None
    age: float | None
    def rgb(self) -> bytearray: ...

@final
class RecordFile:
    @staticmethod
    def open(path: str | PathLike[str], topics: list[str] | None) -> RecordFile: ...
    def take(self, count: int) -> list[tuple[str, int, int, str, bytes | dict[str, Any] | None]]: ...
    def end(self) -> tuple[FileState, str, int, str | None]: ...

def record_files(path: str | PathLike[str]) -> list[tuple[PathLike[str], int | None]]: ...

FAULTS: list[str]
NOTICES: list[str]
VERSION: str

def serve(
    description: Description,
    request: Callable[[str], bool],
    turn: Callable[..., Any],
    failed: Callable[[BaseException], None],
    log: Callable[[int, str], None],
    guard: str,
    safe: list[Safe],
    watchdog: list[str] | None,
    settings: tuple[float, float, float, float],
    stop: Stop,
    signals: Callable[[int], int] | None,
) -> None: ...
def keep_watch() -> None: ...
