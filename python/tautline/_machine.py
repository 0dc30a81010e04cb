"""Types of a machine: its description, its set points, its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import nan
from typing import Literal, get_args

Motion = Literal["ackermann", "differential", "omni"]
Mode = Literal["held", "armed", "driving", "limited", "manoeuvre", "alone"]
Gear = Literal["drive", "reverse"]
Fault = Literal[
    "unreachable", "refused", "emergency button", "steering", "drive", "brake", "gear", "speed", "other"
]
Notice = Literal["parking brake", "local stop", "local control"]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis in addition to the motion: a boom, a gripper, a camera's tilt."""

    name: str
    """Name for people, at most 24 bytes."""
    form: Literal["position", "speed"] = "position"
    """Meaning of its set point."""
    _: KW_ONLY
    unit: str = ""
    """Unit of set point and limits, at most 12 bytes."""
    low: float
    """Least set point."""
    high: float
    """Greatest set point."""
    rate: float
    """Largest change of the set point, units per second."""
    on_stop: Literal["hold", "zero", "value", "release"] = "hold"
    """Set point in a stop; a speed cannot be held."""
    stop: float = 0.0
    """Set point of `on_stop="value"`."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action that a person can ask for: lights, a horn, a return to the dock."""

    name: str
    """Name for people, at most 24 bytes. "horn", "lights", "high beam", "left", "right" and "hazard" have
    keys of their own."""
    form: Literal["momentary", "switch", "request"] = "momentary"
    """On while a person holds it down, switched on and off, or asked for once (`Machine.request`)."""
    _: KW_ONLY
    on_stop: Literal["off", "keep", "on"] = "off"
    """Effect of a stop: "on" switches it on if the stop is due to a fault, as hazard lights."""
    allowed_while_held: bool = False
    """True if a person may also ask for it while the machine is held."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value for people: a temperature, a current, a text."""

    name: str
    """Name for people, at most 24 bytes."""
    form: Literal["number", "text"] = "number"
    """Kind of the value; a text has at most 64 bytes."""
    _: KW_ONLY
    unit: str = ""
    """Unit, at most 12 bytes."""
    low: float = nan
    """Least possible number."""
    high: float = nan
    """Greatest possible number."""
    warn_low: float = nan
    """Number below which a person is warned."""
    warn_high: float = nan
    """Number above which a person is warned."""
    alarm_low: float = nan
    """Number below which a person is alarmed."""
    alarm_high: float = nan
    """Number above which a person is alarmed."""


@dataclass(frozen=True, slots=True)
class Description:
    """Description of a machine."""

    motion: Motion
    """Kind of motion, as in the guard's settings."""
    axes: Sequence[Axis] = ()
    """Axes, at most 16."""
    actions: Sequence[Action] = ()
    """Actions, at most 32."""
    values: Sequence[Value] = ()
    """Values, at most 64."""

    def __post_init__(self) -> None:
        if self.motion not in get_args(Motion):
            raise ValueError(f"motion: {self.motion!r} is none of {', '.join(get_args(Motion))}")


@dataclass(frozen=True, slots=True)
class Control:
    """Set points of one turn; they have passed the guard."""

    mode: Mode
    """Mode of the guard, for display; "alone" while the machine's side brakes by itself, because the
    guard is silent or the end was requested."""
    steering: float
    """Share of the steering range of an Ackermann machine, -1 (full right) to 1 (full left)."""
    throttle: float
    """Share of full acceleration of an Ackermann machine, 0 to 1."""
    brake: float
    """Share of full braking of an Ackermann machine, 0 to 1."""
    gear: Gear
    """Direction in which throttle drives."""
    parking_brake: bool
    """True if the parking brake holds."""
    forward: float
    """Speed of a differential or omni machine in m/s, negative backwards."""
    sideways: float
    """Speed of an omni machine to the left in m/s."""
    yaw_rate: float
    """Rate of turn of a differential or omni machine in rad/s, counterclockwise positive."""
    axes: Mapping[str, float]
    """Set points of the declared axes by name; one without a set point is missing, and released."""
    actions: frozenset[str]
    """Names of the declared actions that are on."""


@dataclass(slots=True)
class State:
    """State of a machine; what stays NaN or None is not known."""

    speed: float = nan
    """Speed along the machine in m/s, negative backwards. The guard takes an unknown one for motion."""
    yaw_rate: float = nan
    """Rate of turn in rad/s, counterclockwise positive; a differential or omni machine must know it."""
    sideways: float = nan
    """Speed to the left in m/s; an omni machine must know it."""
    steering_angle: float = nan
    """Angle of the road wheels in rad, left positive."""
    gear: Gear = "drive"
    """Direction in which throttle drives."""
    position: tuple[float, float, float] | None = None
    """Metres east and north of the machine's own origin, and heading in rad."""
    place: tuple[float, float, float] | None = None
    """Latitude and longitude in degrees (WGS 84), and height in m above the ellipsoid."""
    faults: Collection[Fault] = ()
    """Faults of the machine; each stops it."""
    notices: Collection[Notice] = ()
    """Further conditions: "local stop" if a person at the machine stops it, "local control" if one
    drives it, "parking brake" if that holds."""
    axes: Mapping[str, float] = field(default_factory=dict)
    """Measured positions or speeds of the declared axes, by name."""
    actions: Collection[str] = ()
    """Names of the declared actions that are on."""
    values: Mapping[str, float | str] = field(default_factory=dict)
    """Declared values by name; reported when they change."""
    acceleration_along: float | None = None
    """Acceleration along the machine in m/s², forwards positive."""
    acceleration_across: float | None = None
    """Acceleration across the machine in m/s², to the left positive."""
    charge: float | None = None
    """Charge of the battery in %."""


class Machine(ABC):
    """A machine behind the guard; see `serve`."""

    @abstractmethod
    def describe(self) -> Description:
        """Returns the description; called once, before all else."""

    def request(self, action: str) -> bool:
        """Begins a declared action that a person asks for once; returns whether the machine does it.
        Called before `apply`; by default it refuses."""
        return False

    @abstractmethod
    def apply(self, control: Control) -> None:
        """Sets the actuators; called every 10 ms, also without changes."""

    @abstractmethod
    def state(self) -> State:
        """Returns the state; called after each `apply`."""
