"""Program `tautline_topic_settings`: the settings of the carried topics, for vehicle and operator.

It writes into FOLDER the schemas of the messages, and prints what vehicle.toml and operator.toml
need for the list `topics` of the robot's file.
"""

import argparse
import json
import os
import re
import sys

from tautline_ros import description
from tautline_ros.parameters import Mistakes
from tautline_ros.topics import socket_of

# A field's type in a .msg file, without array and bound.
FIELD = re.compile(r"^\s*([A-Za-z][\w/]*)")
PRIMITIVES = {"bool", "byte", "char", "float32", "float64", "string", "wstring"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def share_of(package):
    """Returns the folder with a package's message definitions."""
    try:
        from ament_index_python import get_package_share_directory

        return get_package_share_directory(package)
    except (ImportError, LookupError, OSError):
        # Wheels install below the prefix without an index.
        return os.path.join(sys.prefix, "share", package)


def definition(package, name):
    """Returns the text of a message's definition."""
    path = os.path.join(share_of(package), "msg", f"{name}.msg")
    with open(path, encoding="utf-8") as file:
        return file.read()


def schema(kind):
    """Returns the schema "ros2msg" of a type: its definition and those of all that it contains."""
    package, _, name = kind.split("/")
    texts, waiting, known = [], [(package, name)], {(package, name)}
    while waiting:
        package, name = waiting.pop(0)
        text = definition(package, name)
        head = f"{'=' * 80}\nMSG: {package}/{name}\n" if texts else ""
        texts.append(head + text)
        for line in text.splitlines():
            found = FIELD.match(line.split("#")[0])
            if not found or found[1] in PRIMITIVES:
                continue
            inner = tuple(found[1].split("/")) if "/" in found[1] else (package, found[1])
            if inner not in known:
                known.add(inner)
                waiting.append(inner)
    return "\n".join(texts)


def sending(topic, folder, schemas):
    """Returns the table of a topic at the end that it comes from."""
    lines = [
        "[[topics]]",
        f"topic = {json.dumps(topic.name)}",
        f"listen = {json.dumps(socket_of(folder, topic))}",
        f"rate_cap_kbps = {topic.rate_cap_kbps}",
        f'order = "{topic.order}"',
        f'priority = "{topic.priority}"',
        f"deadline_ms = {topic.deadline_ms}",
        'message_encoding = "cdr"',
        f"schema_name = {json.dumps(topic.type)}",
        'schema_encoding = "ros2msg"',
    ]
    path = os.path.join(schemas, f"{topic.type.replace('/', '.')}")
    try:
        text = schema(topic.type)
    except OSError as error:
        print(f"{topic.name}: no schema: {error}", file=sys.stderr)
        return lines
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return [*lines, f"schema = {json.dumps(path)}"]


def settings(topics, end, folder, schemas):
    """Returns the lines that the settings of an end need: `vehicle` or `operator`."""
    lines = []
    for it in topics:
        if it.to != end:
            lines += [*sending(it, folder, schemas), ""]
    delivered = [it for it in topics if it.to == end]
    if delivered:
        # A table of its own, after all others.
        lines.append("[deliver]")
    lines += [f"{json.dumps(it.name)} = {json.dumps(socket_of(folder, it))}" for it in delivered]
    return lines


def main():
    """Prints the settings of one end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("end", choices=("vehicle", "operator"), help="whose settings are printed")
    parser.add_argument("robot", help="file that describes the robot")
    parser.add_argument("folder", help="folder of the sockets, and for the schemas")
    arguments = parser.parse_args()
    try:
        topics = description.read(arguments.robot).topics
    except Mistakes as error:
        sys.exit("\n".join(error.mistakes))
    folder = os.path.abspath(arguments.folder)
    print("\n".join(settings(topics, arguments.end, folder, folder)))
