"""Drive a machine from anywhere: a robot in three methods.

    class Robot(tautline.Machine):
        def describe(self): return tautline.Description(motion="differential")
        def apply(self, control): ...   # set the actuators
        def state(self): return tautline.State(speed=..., yaw_rate=...)

    tautline.serve(Robot(), guard="guard.sock", safe=tautline.Safe.udp("192.168.0.7:9000", b"stop"))
"""

from tautline._camera import Camera
from tautline._machine import Action, Axis, Control, Description, Machine, State, Value
from tautline._operator import Operator, Picture, Refused, Status, Vehicle
from tautline._records import FileEnd, Record, Records, frame, read
from tautline._serve import serve
from tautline._tautline import VERSION as __version__
from tautline._tautline import Safe, Stop
from tautline._topics import RefusedUnit, Topics, Unit

__all__ = [
    "Action",
    "Axis",
    "Camera",
    "Control",
    "Description",
    "FileEnd",
    "Machine",
    "Operator",
    "Picture",
    "Record",
    "Records",
    "Refused",
    "RefusedUnit",
    "Safe",
    "State",
    "Status",
    "Stop",
    "Topics",
    "Unit",
    "Value",
    "Vehicle",
    "__version__",
    "frame",
    "read",
    "serve",
]
