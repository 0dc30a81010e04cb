"""Topics in Python at both ends of a session."""

import contextlib
import os
import socket
import time

import pytest
from demo import Demo, restart

import tautline


def settings(folder, published: str, delivered: str) -> str:
    return f"""
[deliver]
"{delivered}" = "{folder}{delivered}.sock"
[[topics]]
topic = "{published}"
listen = "{folder}{published}.sock"
rate_cap_kbps = 200
order = "by-deadline"
"""


def arrives(sender, topic, receiver, data: bytes) -> tautline.Unit:
    """Publishes until the other end has it."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        sender.publish(topic, data)
        with contextlib.suppress(TimeoutError):
            return receiver.receive(timeout=0.2)
    raise AssertionError(f"no unit arrives: {sender.refused()}, {sender.counts}")


def test_units_go_both_ways_and_refusals_are_told(tmp_path):
    ends = {"vehicle": ("/scan", "/goal"), "operator": ("/goal", "/scan")}
    with contextlib.ExitStack() as stack:
        demo = stack.enter_context(Demo(tmp_path))
        topics = {}
        for end, (published, delivered) in ends.items():
            folder = tmp_path / end
            folder.mkdir()
            process = restart(demo, end, settings(folder, published, delivered))
            stack.callback(process.kill)
            topics[end] = stack.enter_context(
                tautline.Topics(
                    publish={published: folder / f"{published[1:]}.sock"},
                    deliver={delivered: folder / f"{delivered[1:]}.sock"},
                )
            )
        vehicle, operator = topics["vehicle"], topics["operator"]
        scan = arrives(vehicle, "/scan", operator, b"\x00ranges\xff")
        assert (scan.topic, scan.data) == ("/scan", b"\x00ranges\xff")
        assert abs(time.time_ns() - scan.received_ns) < 5e9
        goal = arrives(operator, "/goal", vehicle, b"there")
        assert (goal.topic, goal.data) == ("/goal", b"there")

        list(operator.received(timeout=0.5))
        for number in range(10):
            assert vehicle.publish("/scan", b"%d" % number)
            time.sleep(0.02)
        assert [unit.data for unit in operator.received(timeout=0.5)] == [b"%d" % it for it in range(10)]

        assert vehicle.publish("/scan", bytes(100_000))
        until = time.monotonic() + 5
        while not (refused := vehicle.refused()) and time.monotonic() < until:
            time.sleep(0.01)
        (refusal,) = refused
        assert (refusal.topic, refusal.size) == ("/scan", 100_000)
        assert refusal.reason in ("over the topic's cap", "too large for the links")
        assert refusal.size_max < 100_000
        with pytest.raises(KeyError):
            vehicle.publish("/goal", b"")


def test_nobody_there_is_counted_and_no_wait_is_endless(tmp_path):
    with tautline.Topics(publish={"/a": tmp_path / "a.sock"}, deliver={"/b": tmp_path / "b.sock"}) as topics:
        assert not topics.publish("/a", b"lost")
        assert topics.counts["not taken"] == 1
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            topics.receive(timeout=0.2)
        assert 0.15 < time.monotonic() - began < 1.0
        assert list(topics.received(timeout=0.0)) == []
        with pytest.raises(OSError, match="another program listens there"):
            tautline.Topics(deliver={"/b": tmp_path / "b.sock"})
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(str(tmp_path / "b.sock"))
            sender.send(b"")
            assert topics.receive().data == b""
    assert not os.path.exists(tmp_path / "b.sock")


def test_a_socket_that_an_earlier_program_left_is_used_again(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as left:
        left.bind(str(tmp_path / "b.sock"))
    with tautline.Topics(deliver={"/b": tmp_path / "b.sock", "/u": "127.0.0.1:0"}) as topics:
        with tautline.Topics(publish={"/b": tmp_path / "b.sock"}) as other:
            assert other.publish("/b", b"1")
        assert topics.receive().data == b"1"
    (tmp_path / "file").write_text("kept")
    with pytest.raises(OSError, match="file"):
        tautline.Topics(deliver={"/b": tmp_path / "file"})
    assert (tmp_path / "file").read_text() == "kept"
