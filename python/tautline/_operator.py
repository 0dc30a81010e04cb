"""An operator in a program: pictures, status, commands."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from tautline._machine import Action, Axis, Control, Description, Gear, Motion, State, Value
from tautline._tautline import Console, Shown

if TYPE_CHECKING:
    import numpy

Role = Literal["drives", "waits", "asks", "refused", "succeeds", "watches"]


_Found = TypeVar("_Found")


class Refused(Exception):
    """The guard, the driving operator or the switchboard refuses what was asked for."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        """What prevents it, such as "picture age" or "moving"."""


class Picture:
    """A whole picture from the vehicle."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    @property
    def width(self) -> int:
        """Pixels in a row."""
        return self._shown.size[0]

    @property
    def height(self) -> int:
        """Rows."""
        return self._shown.size[1]

    @property
    def number(self) -> int:
        """Number of the picture, as counted by the vehicle's camera."""
        return self._shown.number

    @property
    def tick(self) -> int:
        """Tick of the guard in the picture, which commands cite; 0 if nothing in it can be trusted yet."""
        return self._shown.tick

    @property
    def is_clean(self) -> bool:
        """True if nothing of it was lost; lost parts show earlier content, of whose age `tick` and
        `captured_ns` are."""
        return self._shown.is_clean

    @property
    def captured_ns(self) -> int | None:
        """Unix time of the capture in ns, by this computer's clock; None if unknown."""
        return self._shown.captured_ns

    @property
    def age(self) -> float | None:
        """Seconds since the capture; None if unknown."""
        return self._shown.age

    @cached_property
    def pixels(self) -> memoryview:
        """Red, green and blue of each pixel: bytes of shape (height, width, 3)."""
        return memoryview(self._shown.rgb()).cast("B", [self.height, self.width, 3])

    @property
    def array(self) -> numpy.ndarray[Any, Any]:
        """The same as a numpy array, without a copy."""
        import numpy

        return numpy.asarray(self.pixels)

    def __repr__(self) -> str:
        return f"<Picture {self.number}, {self.width}x{self.height}, tick {self.tick}>"


@dataclass(frozen=True, slots=True)
class Status:
    """Status of the guard, and the machine's state, as they arrived here."""

    _: KW_ONLY
    received_ns: int
    """Unix time of arrival in ns, by this computer's clock."""
    mode: Literal["held", "armed", "driving", "limited", "manoeuvre"]
    """Mode of the guard."""
    cause: str
    """Cause of the mode, such as "picture age"."""
    value: float
    """Number that the cause measured."""
    limit: float
    """Limit of that number."""
    stop: int
    """Number of the newest stop."""
    latched: bool
    """True until that stop is reset by its number."""
    blockers: frozenset[str]
    """What prevents arming."""
    drives: bool
    """True if this console armed the machine, and it is not held."""
    loop_age: float | None
    """Seconds from the capture of the cited picture to the command's arrival at the guard."""
    command_age: float | None
    """Seconds since the newest fresh command was sent."""
    speed_bound: float
    """Greatest speed allowed now, m/s."""
    sideways_bound: float
    """Greatest sideways speed allowed now, m/s."""
    yaw_rate_bound: float
    """Greatest yaw rate allowed now, rad/s."""
    motion: Motion
    """Kind of motion: which set points commands have."""
    countdown: tuple[str, float] | None
    """Cause of the next stop if nothing more arrives, and the seconds until then."""
    limits: frozenset[str]
    """Limits that changed the last command."""
    applied: Control
    """Set points that the machine gets."""
    state: State | None
    """State that the machine reports; None before the first."""
    state_age: float | None
    """Seconds since the machine reported it, when the guard sent this."""
    black_box: str
    """State of the guard's recording."""
    sights: frozenset[str]
    """What a person must know of the pictures, such as "recorded"."""
    reason: str | None
    """Reason of the vehicle why nobody drives."""
    camera_trouble: str | None
    """Trouble of the vehicle's camera."""
    _now: Callable[[], int] = field(repr=False, compare=False)

    @property
    def age(self) -> float:
        """Seconds since it arrived."""
        return (self._now() - self.received_ns) / 1e9


def status_of(told: dict[str, Any], now: Callable[[], int]) -> Status:
    """Returns the status of the native part's fields."""
    for name in ("blockers", "limits", "sights"):
        told[name] = frozenset(told[name])
    applied, state = told.pop("applied"), told.pop("state")
    applied["actions"] = frozenset(applied["actions"])
    return Status(
        **told, applied=Control(**applied), state=None if state is None else State(**state), _now=now
    )


@dataclass(frozen=True, slots=True)
class Vehicle:
    """A vehicle to pick."""

    name: str
    """Name at the switchboard."""
    state: Literal["free", "own", "taken", "away"]
    """Whether it can be picked."""
    driver: str | None
    """Operator that drives it."""


class _Wanted(NamedTuple):
    """Fields of a driving command, as the native part reads them."""

    steering: float
    throttle: float
    brake: float
    is_reverse: bool
    forward: float
    sideways: float
    yaw_rate: float
    axes: list[tuple[str, float]]
    actions: list[str]
    dead_man: bool


class Operator:
    """An operator for tests and autonomy: a console of a running `tautline operator` or `tautline demo`.

    `address` is the one that it prints, `http://127.0.0.1:8080/#..`; it admits one console, once.
    The console is like any other: the first one drives, the others ask; the guard stops the machine
    when commands or pictures are late. A command cites the picture that the program acts on.

    Every wait has a timeout in seconds, after which it raises TimeoutError. When the connection has
    ended, calls raise ConnectionError. Calls may come from several threads."""

    def __init__(self, address: str, *, picture_interval: int = 1, timeout: float = 10.0) -> None:
        """Joins. Every `picture_interval`-th picture is asked for, 1 to 8."""
        if not 1 <= picture_interval <= 8:
            raise ValueError(f"picture_interval: {picture_interval} is not within 1 to 8")
        self._console = Console.open(address, picture_interval, timeout)

    def close(self) -> None:
        """Ends the connection. A machine that this console drives is stopped by its guard."""
        self._console.close()

    def __enter__(self) -> Operator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Pictures

    def picture(self, timeout: float = 1.0) -> Picture:
        """Returns the newest picture that was not returned yet, or waits for the next one. Older ones
        are left out, and counted."""
        shown = self._console.picture(timeout)
        if shown is None:
            self._raise_if_ended()
            raise TimeoutError(f"no picture for {timeout} s")
        return Picture(shown)

    def pictures(self, timeout: float = 1.0) -> Iterator[Picture]:
        """Yields the newest picture again and again, as `picture` does."""
        while True:
            yield self.picture(timeout)

    # Status

    @property
    def status(self) -> Status | None:
        """Newest status; None before the first, and while the guard is silent."""
        told = self._console.status()
        return None if told is None else status_of(told, self._console.now)

    def wait(self, until: Callable[[Status], object], timeout: float = 5.0) -> Status:
        """Waits for a status of which `until` is true, and returns it."""

        def look() -> Status | None:
            status = self.status
            return status if status is not None and until(status) else None

        return self._wait(look, timeout)

    @property
    def description(self) -> Description | None:
        """Axes, actions and values that the machine declares; None before the first status."""
        status = self.status
        if status is None:
            return None
        told = self._console.description() or {}
        return Description(
            status.motion,
            [Axis(**axis) for axis in told.get("axes", ())],
            [Action(**action) for action in told.get("actions", ())],
            [Value(**value) for value in told.get("values", ())],
        )

    @property
    def counts(self) -> dict[str, int]:
        """Counts of pictures and commands, and of what was left out, by name."""
        return dict(self._console.counts())

    # Driving

    def drive(
        self,
        picture: Picture,
        *,
        forward: float = 0.0,
        yaw_rate: float = 0.0,
        sideways: float = 0.0,
        steering: float = 0.0,
        throttle: float = 0.0,
        brake: float = 0.0,
        gear: Gear = "drive",
        axes: Mapping[str, float] | None = None,
        actions: Collection[str] = (),
        dead_man: bool = False,
    ) -> None:
        """Sends a command that cites the picture on which the program acts. It is repeated for 100 ms;
        a program that calls no more is stopped by the guard's timeout of commands, and one that
        cites no newer picture by its age.

        `forward`, `yaw_rate` (counterclockwise) and `sideways` (to the left), in m/s and rad/s, move
        a differential or omni machine; `steering`, `throttle`, `brake` and `gear` a car. Axes without
        a set point hold. `dead_man` is true if a person holds the dead-man input that the guard may
        require.

        Raises PermissionError while another console drives."""
        wanted = _Wanted(
            steering,
            throttle,
            brake,
            gear == "reverse",
            forward,
            sideways,
            yaw_rate,
            list((axes or {}).items()),
            list(actions),
            dead_man,
        )
        self._console.drive(picture._shown, wanted)

    def arm(self, picture: Picture, *, dead_man: bool = False, timeout: float = 2.0) -> None:
        """Permits driving from now on; begin to call `drive` at once. Raises Refused with what prevents
        it."""
        self._act("arm", 0, picture, dead_man, timeout)

    def reset(self, *, timeout: float = 2.0) -> None:
        """Releases the latch of the newest stop; the machine stays held."""
        status = self.status
        if status is None:
            raise Refused("vehicle silent")
        self._act("reset", status.stop, None, None, timeout)

    def park(self, *, timeout: float = 2.0) -> None:
        """Ends driving at a standstill; the machine is held."""
        self._act("park", 0, None, None, timeout)

    def request(self, action: str, *, timeout: float = 3.0) -> None:
        """Asks the machine for a declared action once. Raises Refused if it does not do it."""
        description = self.description
        names = [declared.name for declared in description.actions] if description else []
        if action not in names:
            raise ValueError(f"no action {action!r} is declared")
        self._act("request", names.index(action), None, None, timeout)

    def emergency_stop(self, *, timeout: float = 1.0) -> None:
        """Stops the machine, also when this console does not drive. It is repeated until the guard has
        acknowledged it, even after a TimeoutError."""
        if not self._console.emergency_stop(timeout):
            self._raise_if_ended()
            raise TimeoutError(f"the guard has not acknowledged it for {timeout} s")

    # Seat and vehicle

    @property
    def role(self) -> Role:
        """Role of this console: "drives"; "waits", "asks" or "refused" while another one drives;
        "succeeds" if that one has agreed; "watches" if this one may only watch."""
        return self._console.standing()[0]

    @property
    def request_from(self) -> str | None:
        """Address of the console that asks to drive in place of this one; None if none does."""
        asked = self._standing().get("request")
        return asked["address"] if asked else None

    def ask(self, timeout: float = 10.0) -> None:
        """Asks to drive: granted if none drives, at standstill, or if the driving console agrees. In
        motion the role is then "succeeds", and `take_over` follows. Raises Refused if it refuses."""
        before = self._console.refusals()
        self._console.ask(True)

        def look() -> bool | None:
            if self._console.refusals() != before:
                return False
            return True if self.role in ("drives", "succeeds") else None

        try:
            is_granted = self._wait(look, timeout)
        except TimeoutError:
            self._console.ask(False)
            raise
        if not is_granted:
            raise Refused("the driving console refuses")

    def answer(self, agrees: bool) -> None:
        """Answers the console that asks to drive."""
        standing = self._standing()
        asked = standing.get("request") or standing.get("agreed")
        if asked is None:
            raise ValueError("no console asks to drive")
        self._console.answer(asked["number"], agrees)

    def take_over(self, picture: Picture, *, dead_man: bool = False, timeout: float = 2.0) -> None:
        """Takes over from the console that has agreed, in motion."""
        self._act("take over", 0, picture, dead_man, timeout)

    @property
    def vehicle(self) -> str:
        """Name of the vehicle; empty before one is picked."""
        return self._console.standing()[1]

    @property
    def vehicles(self) -> list[Vehicle]:
        """Vehicles to pick; empty if the operator's process has one."""
        fleet = json.loads(self._console.standing()[3] or "{}")
        return [Vehicle(it["name"], it["state"], it.get("driver")) for it in fleet.get("vehicles", ())]

    def pick(self, vehicle: str, timeout: float = 10.0) -> None:
        """Picks a vehicle by its name."""
        self._console.pick(vehicle)

        def picked() -> str | None:
            if self.vehicle == vehicle:
                return ""
            refused = json.loads(self._console.standing()[3] or "{}").get("refused")
            return refused["word"] if refused and refused["vehicle"] == vehicle else None

        if word := self._wait(picked, timeout):
            raise Refused(word)

    def leave(self) -> None:
        """Releases the vehicle, which must stand."""
        self._console.leave()

    def _standing(self) -> dict[str, Any]:
        standing: dict[str, Any] = json.loads(self._console.standing()[2] or "{}")
        return standing

    def _act(
        self, deed: str, argument: int, picture: Picture | None, dead_man: bool | None, timeout: float
    ) -> None:
        shown = None if picture is None else picture._shown
        outcome = self._console.act(deed, argument, shown, dead_man, timeout)
        if outcome is None:
            self._raise_if_ended()
            if self.role not in ("drives", "succeeds"):
                raise PermissionError("this console does not drive")
            raise TimeoutError(f"the guard has not answered for {timeout} s")
        if outcome != "done":
            raise Refused(outcome)

    def _wait(self, look: Callable[[], _Found | None], timeout: float) -> _Found:
        until, version = time.monotonic() + timeout, 0
        while True:
            if (found := look()) is not None:
                return found
            self._raise_if_ended()
            if (left := until - time.monotonic()) <= 0.0:
                raise TimeoutError(f"it did not come within {timeout} s")
            version = self._console.changed(version, left)

    def _raise_if_ended(self) -> None:
        if why := self._console.ended():
            raise ConnectionError(why)
