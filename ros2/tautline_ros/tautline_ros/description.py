"""File that describes the robot: its motion, axes, actions, values, faults and topics."""

import math
from dataclasses import MISSING, dataclass

import yaml

from tautline_ros.parameters import Mistakes

MOTIONS = "ackermann", "differential", "omni"
FAULTS = (
    "unreachable",
    "refused",
    "emergency button",
    "steering",
    "drive",
    "brake",
    "gear",
    "speed",
    "other",
)


@dataclass(frozen=True)
class Axis:
    """An axis, whose set point is published in `joint_command` under its name."""

    name: str
    form: str
    low: float
    high: float
    rate: float
    unit: str = ""
    on_stop: str = "hold"
    stop: float = 0.0


@dataclass(frozen=True)
class Action:
    """An action, whose state is published as Bool in `action/NAME`."""

    name: str
    form: str
    on_stop: str = "off"
    allowed_while_held: bool = False


@dataclass(frozen=True)
class Value:
    """A value, read from a field of a topic, or from a key of a diagnostic status."""

    name: str
    unit: str = ""
    form: str = "number"
    topic: str = ""
    type: str = ""
    field: str = ""
    scale: float = 1.0
    diagnostics: str = ""
    key: str = ""
    low: float = math.nan
    high: float = math.nan
    warn_low: float = math.nan
    warn_high: float = math.nan
    alarm_low: float = math.nan
    alarm_high: float = math.nan
    # Seconds after which the value is not known.
    max_age: float = 5.0


@dataclass(frozen=True)
class Fault:
    """A diagnostic status whose level ERROR or STALE is a fault of the machine."""

    diagnostics: str
    fault: str


@dataclass(frozen=True)
class Topic:
    """A topic that is carried to the operator, or with `to = vehicle` from there."""

    name: str
    type: str
    rate_cap_kbps: int
    to: str = "operator"
    priority: str = "data"
    order: str = "newest-wins"
    deadline_ms: int = 500
    reliable: bool = False


@dataclass(frozen=True)
class Description:
    """A robot."""

    motion: str
    axes: tuple = ()
    actions: tuple = ()
    values: tuple = ()
    faults: tuple = ()
    topics: tuple = ()


KINDS = {"axes": Axis, "actions": Action, "values": Value, "faults": Fault, "topics": Topic}
MOST = {"axes": 16, "actions": 32, "values": 64, "faults": 64, "topics": 8}
CHOICES = {
    (Axis, "form"): ("position", "speed"),
    (Axis, "on_stop"): ("hold", "zero", "value", "release"),
    (Action, "form"): ("momentary", "switch", "request"),
    (Action, "on_stop"): ("off", "keep", "on"),
    (Value, "form"): ("number", "text"),
    (Fault, "fault"): FAULTS,
    (Topic, "to"): ("operator", "vehicle"),
    (Topic, "priority"): ("data", "telemetry"),
    (Topic, "order"): ("newest-wins", "by-deadline"),
}


def read(path):
    """Reads the file. Raises [`Mistakes`], all at once, and OSError."""
    with open(path, encoding="utf-8") as file:
        try:
            return parse(yaml.safe_load(file))
        except yaml.YAMLError as error:
            raise Mistakes([f"{path}: {error}"]) from error


def parse(tree):
    """Returns the description in a tree of dictionaries and lists."""
    if not isinstance(tree, dict):
        raise Mistakes(["the file has no settings"])
    mistakes = [f"{key}: there is no such setting" for key in tree if key not in ("motion", *KINDS)]
    if tree.get("motion") not in MOTIONS:
        mistakes.append(f"motion is {tree.get('motion')!r}: {', '.join(MOTIONS)} are possible")
    lists = {}
    for name, kind in KINDS.items():
        entries = tree.get(name) or []
        if not isinstance(entries, list):
            mistakes.append(f"{name} is no list")
            continue
        if len(entries) > MOST[name]:
            mistakes.append(f"{name} has {len(entries)} entries: {MOST[name]} are possible")
        found = [entry(kind, f"{name}[{n}]", it, mistakes) for n, it in enumerate(entries)]
        lists[name] = tuple(it for it in found if it is not None)
        names = [it.name for it in lists[name] if hasattr(it, "name")]
        mistakes += [
            f"{name}: {it} is there twice" for it in sorted(set(names)) if names.count(it) > 1
        ]
    if mistakes:
        raise Mistakes(mistakes)
    return Description(motion=tree["motion"], **lists)


def entry(kind, where, tree, mistakes):
    """Returns an entry of a list, or `None` after adding its mistakes."""
    if not isinstance(tree, dict):
        mistakes.append(f"{where} is no table")
        return None
    fields = kind.__dataclass_fields__
    before = len(mistakes)
    for key in tree:
        if key not in fields:
            mistakes.append(f"{where}.{key}: there is no such setting")
    values = {}
    for name, it in fields.items():
        if name not in tree:
            if it.default is MISSING:
                mistakes.append(f"{where}.{name} is missing")
            continue
        value = tree[name]
        if it.type is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, it.type) or isinstance(value, bool) != (it.type is bool):
            mistakes.append(f"{where}.{name} is {value!r}: a {WORDS[it.type]} is needed")
        elif value not in CHOICES.get((kind, name), (value,)):
            known = ", ".join(CHOICES[kind, name])
            mistakes.append(f"{where}.{name} is {value!r}: {known} are possible")
        values[name] = value
    if len(mistakes) == before:
        made = kind(**values)
        mistakes += [f"{where}: {it}" for it in contradictions(made)]
        return made
    return None


def contradictions(it):
    """Yields what does not fit together in an entry."""
    if hasattr(it, "name") and not 1 <= len(it.name.encode()) <= (
        255 if isinstance(it, Topic) else 24
    ):
        yield f"the name {it.name!r} is too long, or empty"
    if hasattr(it, "unit") and len(it.unit.encode()) > 12:
        yield f"the unit {it.unit!r} is longer than 12 bytes"
    if isinstance(it, Axis):
        if not (math.isfinite(it.low) and math.isfinite(it.high) and it.low < it.high):
            yield f"the range from {it.low} to {it.high} is empty"
        if not (math.isfinite(it.rate) and it.rate > 0.0):
            yield f"rate is {it.rate}: more than 0 is needed"
        if it.form == "speed" and it.on_stop == "hold":
            yield "a speed cannot be held on a stop: zero, value or release"
        if it.on_stop == "value" and not it.low <= it.stop <= it.high:
            yield f"stop is {it.stop}: outside of the range"
    if isinstance(it, Value):
        if bool(it.topic) == bool(it.diagnostics):
            yield "either topic or diagnostics is needed"
        if it.topic and not (it.type and it.field):
            yield "topic needs type and field"
        if it.diagnostics and not it.key:
            yield "diagnostics needs key"
    if isinstance(it, Topic) and not (
        1 <= it.rate_cap_kbps <= 20000 and 1 <= it.deadline_ms <= 30000
    ):
        yield "rate_cap_kbps is 1 to 20000, deadline_ms 1 to 30000"


WORDS = {str: "text", float: "number", int: "whole number", bool: "true or false"}
