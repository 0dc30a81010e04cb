"""Records of the black box and of the operator's recordings."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tautline._operator import status_of
from tautline._tautline import RecordFile, record_files

if TYPE_CHECKING:
    import pandas


FileState = Literal["closed", "open", "broken"]


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a black box, or a message of a recording."""

    topic: str
    """Its topic, such as "/guard/transition" or "/vehicle/telemetry"."""
    time_ns: int
    """Time of recording, ns since 1970 (UTC): of a recording the arrival at the operator."""
    sent_ns: int
    """Time of sending, ns since 1970; of a black box the same."""
    data: Any
    """Content: a `Status` of "/vehicle/telemetry" (None while the guard was silent), a dict of JSON,
    the machine's description and values by name, and snapshots; else the bytes as they were sent."""
    encoding: str
    """MCAP's name of the bytes' encoding, such as "json" or "cdr"; empty if none was declared."""
    drive: int | None
    """Number of the drive in a black box."""
    path: Path
    """File that has it."""


@dataclass(frozen=True, slots=True)
class FileEnd:
    """How a file ends that was read to its end."""

    path: Path
    state: FileState
    """"open" if it was cut or is still written; "broken" if a record is not what was written."""
    words: str
    """What is not readable, and why; empty if everything was."""
    records: int
    """Number of records that were read."""
    key: str | None
    """Public key of a black box's signatures: compare it with the machine's."""

    def __str__(self) -> str:
        return f"{self.path}: {self.state}" + (f": {self.words}" if self.words else "")


class Records:
    """Records of one or more files, the oldest file first; iterate over it as often as needed.

    `ends` then says how each file ended. What follows a damaged record in its file is left out, and of
    a black box what no signature covers: anybody could have written it."""

    def __init__(self, path: str | os.PathLike[str], topics: Iterable[str] | None = None) -> None:
        self.files = [(Path(file), drive) for file, drive in record_files(path)]
        """Files, with the numbers of their drives."""
        self._topics = None if topics is None else list(topics)
        self.ends: list[FileEnd] = []
        """End of each file that the last iteration has read to its end."""

    def __iter__(self) -> Iterator[Record]:
        self.ends = ends = []
        for path, drive in self.files:
            reader = RecordFile.open(path, self._topics)
            while told := reader.take(_TAKEN_MAX):
                for topic, at, sent, encoding, data in told:
                    yield Record(topic, at, sent, _content(topic, encoding, data), encoding, drive, path)
            state, words, records, key = reader.end()
            ends.append(FileEnd(path, state, words, records, key))

    @property
    def faults(self) -> list[FileEnd]:
        """Ends of the files that are not closed."""
        return [end for end in self.ends if end.state != "closed"]


def read(path: str | os.PathLike[str], topics: Iterable[str] | None = None) -> Records:
    """Returns the records of a black box, of one drive of it, of one of its files, or of a recording
    of the operator (its folder, or `channels.mcap`); of `topics` alone, if given."""
    return Records(path, topics)


def frame(path: str | os.PathLike[str], topic: str) -> pandas.DataFrame:
    """Returns the records of a topic as a table of pandas: a row for each, a column for each number or
    text of the content, named as in "machine.position.x", indexed by time (UTC, ns).

    `attrs["faults"]` names the files that are not closed, and what of them is not readable; damaged
    ones are also warned of. Raises KeyError if there is no record of this topic."""
    import pandas

    records = read(path)
    rows, times, sent, found = [], [], [], set()
    for record in records:
        found.add(record.topic)
        if record.topic == topic:
            rows.append(_row(record.data))
            times.append(record.time_ns)
            sent.append(record.sent_ns)
    for end in records.faults:
        if end.state == "broken":
            warnings.warn(str(end), stacklevel=2)
    if topic not in found:
        raise KeyError(f"no record of {topic!r}: there are {', '.join(sorted(found)) or 'none'}")
    index = pandas.to_datetime(pandas.Series(times, dtype="int64"), unit="ns", utc=True)
    table = pandas.DataFrame(rows, index=pandas.DatetimeIndex(index, name="time"))
    table.insert(0, "sent_ns", sent)
    table.attrs["faults"] = [str(end) for end in records.faults]
    return table


def _content(topic: str, encoding: str, data: bytes | dict[str, Any] | None) -> Any:
    if isinstance(data, dict) and topic == "/vehicle/telemetry":
        return status_of(data, time.time_ns)
    if isinstance(data, bytes) and encoding == "json":
        try:
            return json.loads(data)
        except ValueError:
            return data
    return data


def _row(data: Any) -> dict[str, Any]:
    """Returns numbers and texts by the path to them; lists and sets as they are."""
    row: dict[str, Any] = {}

    def add(name: str, value: Any) -> None:
        if is_dataclass(value) and not isinstance(value, type):
            value = {it.name: getattr(value, it.name) for it in fields(value) if it.repr}
        if isinstance(value, dict):
            for key, inner in value.items():
                add(f"{name}.{key}" if name else str(key), inner)
        else:
            row[name or "data"] = value

    add("", data)
    return row


_TAKEN_MAX = 256
