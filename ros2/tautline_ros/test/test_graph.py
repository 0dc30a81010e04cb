"""What the robot reports and is commanded, over real DDS between two nodes."""

import math
import time
from types import SimpleNamespace

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from sensor_msgs.msg import BatteryState, JointState, Joy, NavSatFix, NavSatStatus
from stand import PACKAGE
from std_msgs.msg import Bool

from tautline_ros import description, messages, parameters
from tautline_ros.commands import Commands
from tautline_ros.reports import Reports


class Graph:
    """The machine's side and the robot's, each with a node, in one process."""

    def __init__(self, context, domain):
        rclpy.init(context=context, domain_id=domain)
        self.executor = SingleThreadedExecutor(context=context)
        self.machine, self.robot = (
            rclpy.create_node(name, context=context) for name in ("machine", "robot")
        )
        for node in (self.machine, self.robot):
            self.executor.add_node(node)
        settings = {it.name: it.default for it in parameters.MACHINE}
        described = description.read(PACKAGE / "config" / "rover.yaml")
        arguments = self.machine, described, settings, time.monotonic
        self.reports, self.commands = Reports(*arguments), Commands(*arguments)
        self.publishers, self.received = {}, {}

    def publish(self, topic, message):
        """Publishes as the robot."""
        if topic not in self.publishers:
            self.publishers[topic] = self.robot.create_publisher(
                type(message), topic, QoSProfile(depth=1)
            )
        if hasattr(message, "header"):
            message.header.stamp = self.robot.get_clock().now().to_msg()
        self.publishers[topic].publish(message)

    def subscribe(self, kind, topic, quality=None):
        """Collects the messages of a topic."""
        self.received[topic] = received = []
        self.robot.create_subscription(
            kind, topic, received.append, quality or QoSProfile(depth=10)
        )
        return received

    def until(self, holds, act=lambda: None):
        """Repeats an act until the condition holds; fails after 10 s."""
        end = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < end, (self.reports.report(), self.received)
            act()
            self.executor.spin_once(timeout_sec=0.02)


@pytest.fixture
def graph(request):
    """A graph that ends with the test."""
    context = rclpy.Context()
    made = Graph(context, 100 + hash(request.node.name) % 100)
    yield made
    rclpy.shutdown(context=context)


def odometry(speed):
    """Returns odometry at this speed."""
    message = Odometry()
    message.header.frame_id = "odom"
    message.twist.twist.linear.x, message.twist.twist.angular.z = speed, 0.25
    message.pose.pose.position.x, message.pose.pose.orientation.w = 3.0, 1.0
    return message


def test_odometry_is_reported_until_it_is_old(graph):
    first = graph.reports.report()
    assert math.isnan(first.speed) and "unreachable" in first.faults and first.position is None
    graph.until(
        lambda: graph.reports.report().speed == 0.5, lambda: graph.publish("odom", odometry(0.5))
    )
    known = graph.reports.report()
    assert (known.yaw_rate, known.position, known.faults) == (0.25, (3.0, 0.0, 0.0), frozenset())
    time.sleep(0.11)
    old = graph.reports.report()
    assert math.isnan(old.speed) and math.isnan(old.yaw_rate) and "unreachable" in old.faults


def test_values_faults_axes_and_place_are_reported(graph):
    joints = JointState(name=["boom", "brush"], position=[0.5, 9.0], velocity=[9.0, 2.0])
    fix = NavSatFix(latitude=52.5, longitude=13.4, altitude=40.0)
    fix.status.status = NavSatStatus.STATUS_FIX
    hot = DiagnosticStatus(
        level=DiagnosticStatus.OK,
        name="motors: left",
        values=[KeyValue(key="temperature", value="41.5")],
    )

    def act():
        graph.publish("battery_state", BatteryState(percentage=0.75))
        graph.publish("joint_states", joints)
        graph.publish("fix", fix)
        graph.publish("/diagnostics", DiagnosticArray(status=[hot]))

    def holds():
        it = graph.reports.report()
        return len(it.values) == 2 and len(it.axes) == 2 and it.place

    graph.until(holds, act)
    report = graph.reports.report()
    assert report.values == {"battery": 75.0, "left motor": 41.5}
    assert report.axes == {"boom": 0.5, "brush": 2.0}
    assert report.place == (52.5, 13.4, 40.0) and "drive" not in report.faults
    hot.level = DiagnosticStatus.ERROR
    graph.until(lambda: "drive" in graph.reports.report().faults, act)
    hot.level = DiagnosticStatus.OK
    graph.until(lambda: "drive" not in graph.reports.report().faults, act)


def test_a_position_is_corrected_by_its_transform_and_unknown_without(graph):
    # The wheels lack tf2_msgs, whose only message is a list of these.
    graph.reports.position_frame = "map"
    graph.until(
        lambda: graph.reports.report().speed == 0.5, lambda: graph.publish("odom", odometry(0.5))
    )
    assert graph.reports.report().position is None
    moved = TransformStamped(child_frame_id="odom")
    moved.header.frame_id = "map"
    moved.transform.translation.y = 2.0
    moved.transform.rotation.z = moved.transform.rotation.w = math.sqrt(0.5)
    other = TransformStamped(child_frame_id="laser")
    graph.reports.take_transforms(SimpleNamespace(transforms=[other, moved]))
    graph.until(
        lambda: graph.reports.report().position, lambda: graph.publish("odom", odometry(0.5))
    )
    assert graph.reports.report().position == pytest.approx((0.0, 5.0, math.pi / 2))


def test_a_person_at_the_robot_is_reported(graph):
    graph.until(
        lambda: graph.reports.report().local_stop,
        lambda: graph.publish("local_stop", Bool(data=True)),
    )
    assert not graph.reports.report().local_control
    graph.until(
        lambda: not graph.reports.report().local_stop,
        lambda: graph.publish("local_stop", Bool(data=False)),
    )


def control(**changes):
    """Returns a control of a robot that stands."""
    at_rest = {"forward": 0.0, "sideways": 0.0, "yaw_rate": 0.0, "axes": {}, "actions": set()}
    return SimpleNamespace(**{**at_rest, **changes})


def test_set_points_of_axes_are_published_by_name(graph):
    received = graph.subscribe(JointState, "joint_command")
    graph.until(lambda: received, lambda: graph.commands.follow(control()))
    assert list(received[-1].name) == []
    axes = {"boom": 0.25, "brush": math.nan}
    graph.until(lambda: received[-1].name, lambda: graph.commands.follow(control(axes=axes)))
    assert list(received[-1].name) == ["boom"] and list(received[-1].position) == [0.25]
    axes = {"boom": 0.25, "brush": 3.0}
    graph.until(
        lambda: len(received[-1].name) == 2, lambda: graph.commands.follow(control(axes=axes))
    )
    assert received[-1].position[0] == 0.25 and math.isnan(received[-1].position[1])
    assert math.isnan(received[-1].velocity[0]) and received[-1].velocity[1] == 3.0


def test_axes_and_actions_are_published_as_a_gamepad(graph):
    received = graph.subscribe(Joy, "joy")
    # boom: a position from -0.2 to 1.2; brush: a speed from -6 to 6.
    axes = {"boom": 0.85, "brush": -3.0}
    held = control(axes=axes, actions={"horn"})
    graph.until(lambda: received, lambda: graph.commands.follow(held))
    assert [round(it, 6) for it in received[-1].axes] == [0.5, -0.5]
    assert list(received[-1].buttons) == [0, 1, 0] and received[-1].header.stamp.sec > 0
    # Nothing is let through.
    graph.until(
        lambda: list(received[-1].buttons) == [0, 0, 0], lambda: graph.commands.follow(control())
    )
    assert math.isnan(received[-1].axes[0]) and received[-1].axes[1] == 0.0
    # A request is pressed in one message.
    graph.commands.request("dock")
    graph.commands.follow(control())
    graph.until(lambda: list(received[-1].buttons) == [0, 0, 1])
    graph.commands.follow(control())
    graph.until(lambda: list(received[-1].buttons) == [0, 0, 0])


def test_an_action_is_published_on_change_and_kept_for_later(graph):
    graph.commands.follow(control(actions={"lights", "hazard"}))
    lights = graph.subscribe(Bool, "action/lights", messages.kept())
    graph.until(lambda: lights)
    for _ in range(5):
        graph.commands.follow(control(actions={"lights"}))
        graph.executor.spin_once(timeout_sec=0.02)
    assert [it.data for it in lights] == [True]
    graph.commands.follow(control())
    graph.until(lambda: len(lights) == 2)
    assert lights[-1].data is False


def test_a_request_is_refused_while_nobody_listens(graph):
    assert not graph.commands.request("dock")
    docks = graph.subscribe(Bool, "action/dock")
    graph.until(lambda: docks, lambda: graph.commands.request("dock"))
    assert docks[0].data and graph.commands.request("dock")
