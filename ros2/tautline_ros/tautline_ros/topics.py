"""Node `tautline_topics`: carries ROS topics between vehicle and operator as serialized messages.

At the end that a topic comes from, each message becomes a datagram to the socket of that end's
`[[topics]]`; at the other end, each datagram of `[deliver]` is published again as the same topic.
"""

import json
import os
import socket
import time

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from tautline_ros import description, messages, parameters, running
from tautline_ros.commands import topic_name

# Seconds between two looks at the sockets, and datagrams taken each time.
TURN, MOST = 0.005, 16
# Longest unit that the vehicle takes, bytes; and seconds between two logs of refused units.
UNIT_MAX, LOG_INTERVAL = 256 * 1024, 10.0


def socket_of(folder, topic):
    """Returns the path of a topic's socket."""
    return os.path.join(folder, f"{topic_name(topic.name.strip('/'))}.sock")


def quality(topic):
    """Returns the quality of service of a carried topic, at both ends."""
    return QoSProfile(depth=10) if topic.reliable else messages.newest()


class Log:
    """Faults of a topic, logged at most every 10 s."""

    def __init__(self, node, topic):
        self.logger, self.name, self.said = node.get_logger(), topic.name, -LOG_INTERVAL

    def say(self, text):
        """Logs a fault."""
        now = time.monotonic()
        if now - self.said >= LOG_INTERVAL:
            self.said = now
            self.logger.warning(f"{self.name}: {text}")


class Sender:
    """Passes the messages of a topic on, serialized as they are."""

    def __init__(self, node, topic, folder):
        self.path = socket_of(folder, topic)
        self.log = Log(node, topic)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # It needs a name to receive answers.
        self.socket.bind("")
        self.socket.setblocking(False)
        kind = messages.message_class(topic.type)
        node.create_subscription(kind, topic.name, self.send, quality(topic), raw=True)

    def send(self, serialized):
        """Sends a message; one that finds no room, or no receiver, is lost."""
        try:
            self.socket.sendto(serialized, self.path)
        except OSError as error:
            self.log.say(f"not sent: {error}")

    def turn(self):
        """Logs why units were refused."""
        for answer in received(self.socket):
            try:
                refusal = json.loads(answer)
            except ValueError:
                continue
            self.log.say(f"{refusal.get('bytes')} bytes refused: {refusal.get('refused')}")


class Receiver:
    """Publishes the units of a topic as they come."""

    def __init__(self, node, topic, folder, prefix):
        path = socket_of(folder, topic)
        # An earlier process may have left it.
        if os.path.exists(path):
            os.unlink(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.setblocking(False)
        self.kind, self.log = messages.message_class(topic.type), Log(node, topic)
        self.publisher = node.create_publisher(self.kind, f"{prefix}{topic.name}", quality(topic))

    def turn(self):
        """Publishes what has come, except units that are no message of the topic's type."""
        for unit in received(self.socket):
            # The kind of error depends on the middleware.
            try:
                deserialize_message(unit, self.kind)
            except Exception as error:
                self.log.say(f"a unit of {len(unit)} bytes is no message: {error}")
            else:
                self.publisher.publish(unit)


def received(taken_from):
    """Yields the datagrams that are queued, some at most."""
    for _ in range(MOST):
        try:
            yield taken_from.recv(UNIT_MAX)
        except OSError:
            return


class TopicsNode(Node):
    """The node of one end."""

    def __init__(self):
        super().__init__("tautline_topics")
        read = parameters.declare(self, parameters.TOPICS)
        topics = description.read(read["robot"]).topics
        folder, prefix = read["folder"], read["prefix"]
        # A topic's `to` names the end at which it is published.
        self.ends = [
            Receiver(self, it, folder, prefix)
            if it.to == read["side"]
            else Sender(self, it, folder)
            for it in topics
        ]
        self.create_timer(TURN, self.turn)

    def turn(self):
        """Takes what has come to the sockets."""
        for it in self.ends:
            it.turn()


def main():
    """Runs the node until it is asked to end."""
    running.run(TopicsNode)
