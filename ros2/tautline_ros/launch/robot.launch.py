"""Launches the nodes of a robot, and with `sim:=true` (the default) the simulated one."""

from launch.actions import DeclareLaunchArgument, ExecuteProcess
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution, PythonExpression
from launch_ros.actions import LifecycleNode, Node
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

PACKAGE = "tautline_ros"


def generate_launch_description():
    """Returns the processes."""
    config = PathJoinSubstitution([FindPackageShare(PACKAGE), "config"])
    arguments = {
        "sim": ("true", "start the simulated robot"),
        "robot": (PathJoinSubstitution([config, "robot.yaml"]), "file that describes the robot"),
        "parameters": (
            PathJoinSubstitution([config, "parameters.yaml"]),
            "parameters of the nodes",
        ),
        "folder": ("/run/tautline", "folder of the sockets of guard, camera and topics"),
        "image": ("camera/image_raw", "topic of the camera"),
        "settings": ("", "folder with settings that `tautline up` runs; empty: none"),
        "namespace": ("", "namespace of the nodes"),
    }
    declared = [
        DeclareLaunchArgument(name, default_value=value, description=text)
        for name, (value, text) in arguments.items()
    ]
    of = {name: LaunchConfiguration(name) for name in arguments}
    common = {"package": PACKAGE, "namespace": of["namespace"], "output": "screen"}

    def node(name, kind=Node, more=(), **options):
        parameters = [of["parameters"], *more]
        executable = f"tautline_{name}"
        return kind(
            executable=executable, name=executable, parameters=parameters, **common, **options
        )

    robot = {"robot": of["robot"]}
    guard = {"guard": PathJoinSubstitution([of["folder"], "machine.sock"])}
    camera = {"camera": PathJoinSubstitution([of["folder"], "camera.sock"])}
    image = [("image", of["image"])]
    has_settings = IfCondition(PythonExpression(["'", of["settings"], "' != ''"]))
    return LaunchDescription(
        [
            *declared,
            node("sim_robot", condition=IfCondition(of["sim"])),
            # It respawns: without it nothing stops the robot if the machine's node hangs.
            node("stop", respawn=True, respawn_delay=0.1),
            node("machine", LifecycleNode, [robot, guard], respawn=True, respawn_delay=1.0),
            node("camera", more=[camera], remappings=image, respawn=True, respawn_delay=1.0),
            node("topics", more=[robot, {"folder": of["folder"]}], respawn=True, respawn_delay=1.0),
            ExecuteProcess(
                cmd=["tautline", "up", of["settings"]], output="screen", condition=has_settings
            ),
        ]
    )
