"""Pictures of a program in Python, in the real vehicle."""

import math
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from array import array
from contextlib import suppress

import numpy
import pytest
from stand import TAUTLINE

import tautline
from tautline import _camera

KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
# A picture that says nothing: the vehicle needs no content here.
HEIGHT, WIDTH = 120, 336


class Vehicle:
    """A vehicle's process without a switchboard, which shows its source's state in its metrics."""

    def __init__(self, folder):
        with socket.socket() as it:
            it.bind(("127.0.0.1", 0))
            self.metrics = "127.0.0.1:%d" % it.getsockname()[1]
        self.path, self.log = folder / "camera.sock", folder / "vehicle.log"
        subprocess.run([TAUTLINE, "keys", "new", folder / "vehicle.key"], check=True, capture_output=True)
        settings = folder / "vehicle.toml"
        settings.write_text(
            f'switchboard = "127.0.0.1:9"\nswitchboard_key = "{KEY}"\noperators = ["{KEY}"]\n'
            f'links = ["127.0.0.1:0"]\nguard = "./guard.sock"\nmetrics = "{self.metrics}"\n'
            # Relative to the settings' folder.
            'camera = "unix:./camera.sock"\n'
        )
        with open(self.log, "w") as log:
            command = [TAUTLINE, "vehicle", "--config", str(settings)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def page(self):
        with suppress(OSError):
            with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=5) as answer:
                return answer.read().decode()
        return ""

    def trouble(self):
        """Returns the fault of its source in words; empty if there is none, `None` before it answers."""
        page = self.page()
        found = re.search(r'source_trouble\{words="(.*?)"\} 1', page)
        return found[1] if found else "" if page else None

    def sees(self):
        """Returns whether it has pictures."""
        return re.search(r'waiting_for\{what="pictures"\} 0', self.page()) and self.trouble() == ""


@pytest.fixture
def vehicle(tmp_path):
    made = Vehicle(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()


def send_until(condition, send, seconds=20):
    """Sends 25 pictures a second until the condition holds."""
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        send()
        time.sleep(0.04)
        number += 1
        if number % 5 == 0 and condition():
            return
    raise AssertionError("the condition does not hold")


def test_every_format_and_size_is_taken(vehicle):
    grey = numpy.zeros((HEIGHT, WIDTH), numpy.uint8)
    colours = numpy.zeros((HEIGHT + 1, WIDTH + 1, 3), numpy.uint8)
    planes = numpy.zeros((HEIGHT * 3 // 2, WIDTH), numpy.uint8)
    pictures = [
        (grey, {}),
        (colours, {}),
        (colours[:HEIGHT, :WIDTH], {"format": "bgr"}),
        (numpy.zeros((HEIGHT, WIDTH, 4), numpy.uint8), {}),
        (numpy.zeros((HEIGHT, WIDTH, 4), numpy.uint8), {"format": "bgra"}),
        (numpy.zeros((HEIGHT, WIDTH, 2), numpy.uint8), {"format": "yuyv"}),
        (numpy.zeros((HEIGHT, WIDTH, 2), numpy.uint8), {"format": "uyvy"}),
        (planes, {"format": "nv12"}),
        (planes, {"format": "i420"}),
        (bytes(400 * HEIGHT), {"format": "grey", "size": (WIDTH, HEIGHT), "stride": 400}),
        (array("B", bytes(3 * WIDTH * HEIGHT)), {"format": "rgb", "size": (WIDTH, HEIGHT)}),
        (Dlpack(colours), {}),
    ]
    with tautline.Camera(vehicle.path, rate=25) as camera:
        send_until(vehicle.sees, lambda: camera.send(grey, time.monotonic()))
        for number, (picture, options) in enumerate(pictures):
            for _ in range(5):
                if number % 2:
                    taken = camera.send(picture, time.time() - 0.02, clock="realtime", **options)
                else:
                    taken = camera.send(picture, **options)
                assert taken, f"{number}: {vehicle.log.read_text()}"
                time.sleep(0.04)
            assert vehicle.sees(), f"{number}: {vehicle.trouble()}"
        # Another size: the source is opened again.
        send_until(lambda: "480x270" in (vehicle.trouble() or ""), lambda: camera.send(bytes(480 * 270), format="grey", size=(480, 270)))
        send_until(vehicle.sees, lambda: camera.send(bytes(480 * 270), format="grey", size=(480, 270)))


class Dlpack:
    """An array of another library: without a buffer."""

    def __init__(self, content):
        self.content = content

    def __dlpack__(self, **options):
        return self.content.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.content.__dlpack_device__()


PROGRAM = """
import sys, time
import tautline
camera = tautline.Camera("unix:" + sys.argv[1], rate=25)
while True:
    camera.send(bytes(336 * 120), time.monotonic(), format="grey", size=(336, 120))
    time.sleep(0.04)
"""


def test_a_program_that_ends_stalls_or_starts_again_is_followed(vehicle):
    def started():
        return subprocess.Popen([sys.executable, "-c", PROGRAM, vehicle.path])

    program = started()
    try:
        send_until(vehicle.sees, lambda: None)
        program.send_signal(signal.SIGSTOP)
        send_until(lambda: "delivers no picture" in (vehicle.trouble() or ""), lambda: None)
        program.send_signal(signal.SIGCONT)
        send_until(vehicle.sees, lambda: None)
        program.kill()
        send_until(lambda: "no program delivers" in (vehicle.trouble() or ""), lambda: None)
        program.wait()
        program = started()
        send_until(vehicle.sees, lambda: None)
    finally:
        program.kill()
        program.wait()


def test_garbage_and_wrong_times_are_told_and_end_nothing(vehicle):
    grey = bytes(WIDTH * HEIGHT)
    told = {"format": "grey", "size": (WIDTH, HEIGHT)}
    with tautline.Camera(vehicle.path, rate=25) as camera:
        send_until(vehicle.sees, lambda: camera.send(grey, **told))
        old = lambda: camera.send(grey, time.monotonic() - 5, **told)  # noqa: E731
        send_until(lambda: "in the past" in (vehicle.trouble() or ""), old)
        ahead = lambda: camera.send(grey, time.monotonic() + 5, **told)  # noqa: E731
        send_until(lambda: "in the future" in (vehicle.trouble() or ""), ahead)
        send_until(vehicle.sees, lambda: camera.send(grey, **told))

    def babble():
        with socket.socket(socket.AF_UNIX) as it, suppress(OSError):
            it.connect(str(vehicle.path))
            it.sendall(b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n" * 4)
            time.sleep(0.1)

    send_until(lambda: "no picture begins here" in (vehicle.trouble() or ""), babble)
    with tautline.Camera(vehicle.path, rate=25) as camera:
        send_until(vehicle.sees, lambda: camera.send(grey, **told))
    assert vehicle.process.poll() is None


def test_what_is_no_picture_is_refused(tmp_path):
    camera = tautline.Camera(tmp_path / "none.sock")
    grey = numpy.zeros((HEIGHT, WIDTH), numpy.uint8)
    assert not camera.send(grey), "nobody listens"
    wrong = [
        (grey.astype(numpy.uint16), {}, "8 bits"),
        (b"", {}, "empty"),
        (bytes(10), {}, "format is missing"),
        (bytes(10), {"format": "grey"}, "give size"),
        (grey, {"format": "rgb"}, "give size"),
        (grey, {"format": "yuv9"}, "none of"),
        (grey, {"format": "nv12", "size": (WIDTH, HEIGHT)}, "fewer than"),
        (grey, {"format": "nv12", "size": (335, 60)}, "even"),
        (grey, {"format": "grey", "size": (WIDTH, HEIGHT), "stride": 100}, "shorter than a row"),
        (grey, {"format": "grey", "size": (1, 1)}, "from 2 to 8192"),
        (b"\x89PNG" + bytes(20), {"format": "jpeg"}, "not a JPEG"),
        (grey, {"captured": -1.0}, "before"),
        (grey, {"captured": math.nan}, "NaN"),
    ]
    for picture, options, reason in wrong:
        with pytest.raises(ValueError, match=reason):
            camera.send(picture, **options)
    with pytest.raises(TypeError):
        camera.send(7)
    with pytest.raises(ValueError, match="rate"):
        tautline.Camera("x", rate=1000)


def test_the_size_of_a_jpeg_is_in_its_frame():
    head = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xdb\x00\x03x"
    frame = b"\xff\xc0\x00\x11\x08\x01\x0e\x01\xe0\x03"
    assert _camera._jpeg_size(memoryview(head + frame)) == (480, 270)
    for wrong in (b"", b"\x89PNG", head, head + frame[:8], b"\xff\xd8" + bytes(20)):
        with pytest.raises(ValueError):
            _camera._jpeg_size(memoryview(wrong))


def test_a_picture_is_on_the_wire_as_the_vehicle_s_header_says(tmp_path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / "camera.sock"))
    listener.listen()
    camera = tautline.Camera(f"unix:{tmp_path}/camera.sock", rate=30, full_range=True)
    pixels = numpy.arange(5 * 7 * 3, dtype=numpy.uint8).reshape(5, 7, 3)
    assert camera.send(pixels, 2.5) and camera.send(pixels[:, :6])
    connection, _ = listener.accept()
    camera.close()
    stream = connection.makefile("rb").read()
    header = _camera._HEADER.unpack_from(stream)
    assert header[:9] == (b"TPIC", 1, 1, b"RGB3", 6, 4, 21, 84, 1)
    assert header[9:] == (2_500_000_000, 30.0, 1)
    assert stream[64:148] == pixels.tobytes()[:84]
    header = _camera._HEADER.unpack_from(stream, 148)
    assert header[:9] == (b"TPIC", 1, 3, b"RGB3", 6, 4, 18, 72, 2)
    assert 0 <= time.monotonic_ns() - header[9] < 10**9
    assert stream[212:] == pixels[:4, :6].tobytes()
