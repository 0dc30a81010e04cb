"""The black box and a recording of a drive, read back in Python: whole, cut, and damaged."""

import shutil
import subprocess
import time
import warnings
from pathlib import Path

import pandas
import pytest
from demo import Demo, armed, drive_until, moves, stands
from stand import TAUTLINE

import tautline

FIRST_FORMAT = Path(__file__).parents[2] / "crates/blackbox/src/recording/files/first-format.mcap"


@pytest.fixture(scope="module")
def driven(tmp_path_factory):
    """Folders of the black box and of a recording of a short drive, and its begin and end."""
    folder = tmp_path_factory.mktemp("driven")
    began = time.time_ns()
    with Demo(folder, flags=("--record", str(folder / "record"))) as demo:
        with tautline.Operator(demo.address) as operator:
            armed(operator)
            drive_until(operator, moves(0.5), forward=0.8, axes={"pan": 0.3})
            drive_until(operator, stands)
            operator.park()
    yield folder / "blackbox", folder / "record", began, time.time_ns()


def test_a_black_box_tells_the_drive(driven):
    blackbox, _, began, ended = driven
    records = tautline.read(blackbox)
    told = list(records)
    assert [end.state for end in records.ends] == ["closed"] and records.faults == []
    assert records.ends[0].records == len(told)
    assert len(records.ends[0].key) > 40
    assert all(began - 5e9 < record.time_ns < ended for record in told)
    assert {record.drive for record in told} == {1}
    assert told[0].topic == "/drive" and told[0].data["event"] == "begin"
    modes = [record.data["transition"]["to"] for record in told if record.topic == "/guard/transition"]
    assert modes[0] == "Armed" and modes[-1] == "Held" and "Driving" in modes
    # The command line tool reads the same.
    shown = subprocess.run([TAUTLINE, "blackbox", "show", "--json", str(blackbox)], capture_output=True, check=True)
    assert len(shown.stdout.splitlines()) == len(modes)
    only = list(tautline.read(blackbox / "drive-000001", topics=["/guard/transition"]))
    assert len(only) == len(modes)


def test_a_recording_tells_the_drive(driven):
    _, record, began, ended = driven
    records = tautline.read(record)
    told = list(records)
    assert [(end.state, end.words) for end in records.ends] == [("closed", "")]
    topics = {record.topic for record in told}
    assert {"/vehicle/telemetry", "/vehicle/guard", "/vehicle/snapshot", "/vehicle/machine/values"} <= topics
    statuses = [it.data for it in told if it.topic == "/vehicle/telemetry" and it.data is not None]
    assert max(status.state.speed for status in statuses) > 0.5
    assert max(status.state.axes.get("pan", 0.0) for status in statuses) == pytest.approx(0.3, abs=0.05)
    assert {"held", "armed", "driving"} <= {status.mode for status in statuses}
    values = [it.data for it in told if it.topic == "/vehicle/machine/values"]
    assert all(20 < value["battery"] < 26 for value in values if "battery" in value) and values[-1]
    # One message has the statistics of the session, another those of the process.
    snapshots = [it.data for it in told if it.topic == "/vehicle/snapshot"]
    assert any(it["values"] for it in snapshots) and {it["end"] for it in snapshots} == {"vehicle"}
    assert all(0 <= it.time_ns - it.sent_ns < 5e9 for it in told if it.topic == "/vehicle/telemetry")


def test_tables_have_times_and_numbers(driven):
    blackbox, record, began, ended = driven
    steps = tautline.frame(blackbox, "/guard/step")
    assert str(steps.index.tz) == "UTC" and steps.index.name == "time"
    first = steps.index.as_unit("ns").asi8[0]
    assert began - 5e9 < first < ended and first == steps["sent_ns"].iloc[0]
    assert steps["speed"].max() > 0.5
    assert pandas.api.types.is_float_dtype(steps["machine.position.x"])
    telemetry = tautline.frame(record, "/vehicle/telemetry")
    assert telemetry["state.speed"].max() > 0.5 and set(telemetry["motion"].dropna()) == {"differential"}
    assert telemetry.attrs["faults"] == []
    with pytest.raises(KeyError, match="/guard/step"):
        tautline.frame(blackbox, "/guard/steps")


def test_what_was_cut_off_is_told_and_the_rest_read(driven, tmp_path):
    blackbox, record, _, _ = driven
    whole = list(tautline.read(record / "channels.mcap"))
    content = (record / "channels.mcap").read_bytes()
    cut = tmp_path / "cut.mcap"
    for share in (0.2, 0.5, 0.999):
        cut.write_bytes(content[: int(len(content) * share)])
        records = tautline.read(cut)
        told = list(records)
        assert 0 < len(told) < len(whole) or share == 0.999
        assert [(it.topic, it.time_ns) for it in told] == [(it.topic, it.time_ns) for it in whole[: len(told)]]
        (end,) = records.faults
        assert end.state == "open" and end.records == len(told)
        assert "incomplete record" in end.words and "not closed" in end.words

    (part,) = (blackbox / "drive-000001").iterdir()
    content = part.read_bytes()
    cut.write_bytes(content[: len(content) // 2])
    records = tautline.read(cut)
    assert 0 < len(list(records)) < len(list(tautline.read(part)))
    assert records.faults[0].state == "open"


def test_a_damaged_file_is_read_up_to_the_damage(driven, tmp_path):
    blackbox, record, _, _ = driven
    shutil.copytree(blackbox, tmp_path / "blackbox")
    (part,) = (tmp_path / "blackbox/drive-000001").iterdir()
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    records = tautline.read(tmp_path / "blackbox")
    assert 0 < len(list(records)) < len(list(tautline.read(blackbox)))
    (end,) = records.faults
    assert end.state == "broken" and "record" in end.words and "byte" in str(end)
    with pytest.warns(UserWarning, match="broken"):
        table = tautline.frame(tmp_path / "blackbox", "/drive")
    assert table.attrs["faults"] == [str(end)]

    log = tmp_path / "log.mcap"
    content = bytearray((record / "channels.mcap").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = bytes(4096)
    log.write_bytes(content)
    records = tautline.read(log)
    told = list(records)
    (end,) = records.faults
    assert end.state == "broken" and "bytes from there on are not read" in end.words and len(told) > 10


def test_the_first_format_is_read():
    records = tautline.read(FIRST_FORMAT)
    told = list(records)
    assert told[0].topic == "/drive" and {"/guard/sample", "/seal"} <= {it.topic for it in told}
    assert records.ends[0].records == len(told)


@pytest.mark.parametrize("content", [b"", b"\x89MCAP0\r\n", b"nothing", bytes(1000)])
def test_what_is_no_record_gives_none(tmp_path, content):
    file = tmp_path / "file.mcap"
    file.write_bytes(content)
    records = tautline.read(file)
    assert list(records) == [] and records.faults[0].state in ("open", "broken")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(KeyError, match="there are none"):
            tautline.frame(file, "/drive")
    with pytest.raises(FileNotFoundError):
        tautline.read(tmp_path / "none")
    with pytest.raises(ValueError, match="neither"):
        tautline.read(tmp_path)
