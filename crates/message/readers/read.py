"""Reads Tautline messages in Python: `read.py FOLDER` prints the contents of its files.

Needs the module flatbuffers and generated code, from the repository's root:
  for schema in crates/message/schemas/*.fbs; do flatc --python -o generated $schema; done
  PYTHONPATH=generated python3 crates/message/readers/read.py FOLDER
The module has no verifier, and reads beyond a message's end raise an exception: a reader of untrusted
bytes must catch it, and decode them with the Rust crate first.
"""

import pathlib
import struct
import sys

from foxglove.PointCloud import PointCloud
from tautline.Command import Command
from tautline.Snapshot import Snapshot
from tautline.Telemetry import Telemetry


def main(folder):
    bytes_of = lambda name: (folder / name).read_bytes()

    command = Command.GetRootAs(bytes_of("command.bin"))
    controls, twist = command.Controls(), command.Twist()
    print("command", controls.Sequence(), controls.Steering(), int(controls.EmergencyStop()))
    print("twist %.9g %.9g %.9g" % (twist.ForwardMps(), twist.SidewaysMps(), twist.YawRate()))

    telemetry = Telemetry.GetRootAs(bytes_of("telemetry.bin"))
    print("telemetry", telemetry.Sequence(), telemetry.StatusLength(), telemetry.ModeReason().decode())

    process = Snapshot.GetRootAs(bytes_of("snapshot.bin")).Process()
    for value in map(process.Values, range(process.ValuesLength())):
        print("value", value.Name().decode(), "%.9g" % value.Number(), value.Unit().decode())

    # Length times stride is checked before a point is read.
    cloud = PointCloud.GetRootAs(bytes_of("cloud.bin"))
    data, stride = bytes(map(cloud.Data, range(cloud.DataLength()))), cloud.PointStride()
    assert stride >= 16 and len(data) % stride == 0
    total = sum(sum(struct.unpack_from("<4f", data, at)) for at in range(0, len(data), stride))
    print("cloud", len(data) // stride, "%.9g" % total)


main(pathlib.Path(sys.argv[1]))
