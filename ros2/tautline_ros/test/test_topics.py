"""A topic's messages arrive as the same topic with the same bytes, over real DDS."""

import socket
import subprocess
import sys
import time

import rclpy
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import BatteryState
from stand import PACKAGE, waited


def test_a_topic_is_published_again_at_the_other_end(stand, monkeypatch):
    # Both ends in one folder, without the links between them: what vehicle and operator carry is
    # the datagram.
    folder = stand.folder
    parameters = {"robot": PACKAGE / "config" / "robot.yaml", "folder": folder}
    stand.node("topics", {**parameters, "side": "operator", "prefix": "operator/"}, name="operator")
    assert waited((folder / "battery_state.sock").exists, 10), stand.told()
    stand.node("topics", parameters, name="vehicle")
    monkeypatch.setenv("ROS_DOMAIN_ID", stand.environment["ROS_DOMAIN_ID"])
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("test", context=context)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(node)
    received = []
    node.create_subscription(
        BatteryState, "operator/battery_state", received.append, QoSProfile(depth=10)
    )
    publisher = node.create_publisher(BatteryState, "battery_state", QoSProfile(depth=10))
    sent = BatteryState(percentage=0.5, cell_voltage=[3.5, 3.25], serial_number="a b")
    until = time.monotonic() + 30
    while not received and time.monotonic() < until:
        publisher.publish(sent)
        executor.spin_once(timeout_sec=0.1)
    assert received, stand.told()
    assert serialize_message(received[0]) == serialize_message(sent)
    count = len(received)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        for wrong in (b"", b"x", serialize_message(sent)[:-9], bytes(range(64))):
            other.sendto(wrong, str(folder / "battery_state.sock"))
    until = time.monotonic() + 1
    while time.monotonic() < until:
        executor.spin_once(timeout_sec=0.1)
    assert all(it == sent for it in received[count:]), received[count:]
    publisher.publish(sent)
    count = len(received)
    while len(received) == count and time.monotonic() < until + 5:
        executor.spin_once(timeout_sec=0.1)
    assert len(received) > count, stand.told()
    node.destroy_node()
    rclpy.shutdown(context=context)


def test_settings_of_both_ends_are_printed_and_have_schemas(tmp_path):
    ends = {}
    for end in ("vehicle", "operator"):
        code = "from tautline_ros.topic_settings import main; main()"
        robot = PACKAGE / "config" / "robot.yaml"
        command = [sys.executable, "-c", code, end, robot, tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PACKAGE)
        ends[end] = done.stdout
    assert 'schema_name = "sensor_msgs/msg/BatteryState"' in ends["vehicle"]
    assert "[deliver]" in ends["operator"] and "[[topics]]" not in ends["operator"]
    text = (tmp_path / "sensor_msgs.msg.BatteryState").read_text()
    assert "MSG: std_msgs/Header" in text and "MSG: builtin_interfaces/Time" in text
