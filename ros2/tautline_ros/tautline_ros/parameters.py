"""Parameters of the nodes: README.md has a table of each, which a test compares with these."""

from dataclasses import dataclass

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor


@dataclass(frozen=True)
class Parameter:
    """A parameter that is read once, when its node is configured."""

    name: str
    # Its type is the parameter's.
    default: object
    text: str
    # Bounds of a number; `None`: any.
    low: object = None
    high: object = None
    # Admitted texts; empty: any.
    choices: tuple = ()

    def descriptor(self):
        """Returns ROS's descriptor, whose range the system checks."""
        described = ParameterDescriptor(description=self.text)
        if self.low is not None and isinstance(self.default, float):
            span = FloatingPointRange(from_value=float(self.low), to_value=float(self.high))
            described.floating_point_range = [span]
        elif self.low is not None:
            described.integer_range = [IntegerRange(from_value=self.low, to_value=self.high)]
        return described


class Mistakes(ValueError):
    """All mistakes of a node's settings at once."""

    def __init__(self, mistakes):
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes


def declare(node, parameters):
    """Declares them; returns their values by name.

    Raises [`Mistakes`] for texts that are not admitted.
    """
    values, mistakes = {}, []
    for it in parameters:
        if not node.has_parameter(it.name):
            node.declare_parameter(it.name, it.default, it.descriptor())
        values[it.name] = value = node.get_parameter(it.name).value
        if it.choices and value not in it.choices:
            mistakes.append(f"{it.name} is {value!r}: {', '.join(it.choices)} are possible")
    if mistakes:
        raise Mistakes(mistakes)
    return values


CMD_VEL = Parameter(
    "cmd_vel_type", "TwistStamped", "message of `cmd_vel`", choices=("TwistStamped", "Twist")
)
FRAME = Parameter("frame", "base_link", "frame of the commands' header")
HEARTBEAT = Parameter(
    "heartbeat", "127.0.0.1:7461", "where `tautline_stop` listens: host:port, UDP"
)
DECELERATIONS = (
    Parameter("deceleration", 1.0, "of a stop without the guard, m/s²", 0.1, 20.0),
    Parameter("yaw_deceleration", 2.0, "of a turn in such a stop, rad/s²", 0.1, 50.0),
)

MACHINE = (
    Parameter(
        "guard",
        "/run/tautline/machine.sock",
        "where the guard listens for the machine: a path, or host:port",
    ),
    Parameter("robot", "", "file that describes the robot (YAML)"),
    CMD_VEL,
    FRAME,
    HEARTBEAT,
    Parameter("control_timeout_ms", 30, "without the guard until the robot is braked, ms", 20, 500),
    Parameter("odometry_timeout_ms", 100, "age of odometry that is a fault, ms", 20, 1000),
    Parameter(
        "odometry_stamps", True, "an odometry message counts as fresh by its stamp, not its arrival"
    ),
    Parameter(
        "position_frame",
        "",
        "frame of the position that tf corrects, such as `map`; empty: odometry's",
    ),
    *DECELERATIONS,
    Parameter("steering_angle_max", 0.5, "of a car-like robot at full lock, rad", 0.05, 1.5),
    Parameter("speed_max", 1.0, "of a car-like robot's set point, m/s", 0.1, 50.0),
    Parameter("acceleration_max", 1.0, "of a car-like robot at full throttle, m/s²", 0.1, 20.0),
    Parameter("deceleration_max", 2.0, "of a car-like robot at full brake, m/s²", 0.1, 20.0),
    Parameter("autostart", True, "the node configures and activates itself"),
)

STOP = (
    HEARTBEAT,
    CMD_VEL,
    FRAME,
    Parameter("silence_ms", 60, "without a heartbeat until the robot is stopped, ms", 20, 1000),
    *DECELERATIONS,
)

CAMERA = (
    Parameter(
        "camera", "/run/tautline/camera.sock", "path that `camera` in vehicle.toml names, unix:PATH"
    ),
    Parameter("compressed", False, "`image` is a CompressedImage (JPEG)"),
    Parameter(
        "pictures_per_second", 0.0, "of `image`; 0: the vehicle's own setting", 0.0, 240.0
    ),
    Parameter("image_stamps", True, "a picture is as old as its stamp says, not as its arrival"),
    Parameter("full_range", True, "samples of grey or YUV use 0 to 255, not 16 to 235"),
)

TOPICS = (
    Parameter("side", "vehicle", "end at which the node runs", choices=("vehicle", "operator")),
    Parameter("robot", "", "file that describes the robot (YAML), with the list `topics`"),
    Parameter("folder", "/run/tautline", "folder of the topics' sockets"),
    Parameter("prefix", "", "in front of the names of topics that the node publishes"),
)

SIM_ROBOT = (
    CMD_VEL,
    Parameter("acceleration", 2.0, "hardest change of speed, m/s²", 0.1, 20.0),
    Parameter("yaw_acceleration", 4.0, "hardest change of the yaw rate, rad/s²", 0.1, 50.0),
    Parameter("lag_s", 0.05, "time constant of the drive, s", 0.0, 1.0),
    Parameter(
        "cmd_vel_timeout_s",
        0.0,
        "without `cmd_vel` until it stops by itself, s; 0: never",
        0.0,
        60.0,
    ),
    Parameter("pictures_per_second", 30, "of the drawn camera; 0: none", 0, 60),
    Parameter("width", 352, "of the pictures, pixels", 160, 1920),
    Parameter("height", 198, "of the pictures, pixels", 96, 1080),
    Parameter("truth", "", "where each step's true motion is sent as JSON: the path of a socket"),
)
# Set while it runs, to try what a fault of the odometry does.
ODOMETRY = Parameter(
    "odometry",
    "sound",
    "fault of the odometry",
    choices=("sound", "silent", "repeated", "frozen", "reversed"),
)
