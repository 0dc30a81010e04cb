"""The network between the machine's computer and the robot's is cut: the robot stands."""

import os
import shutil
import subprocess
import time

import pytest
from stand import waited
from test_stops import SPEED, bounds

MACHINE, ROBOT = "10.231.0.1", "10.231.0.2"


def ip(*arguments):
    """Calls `ip`; returns whether it did it."""
    return subprocess.run(["ip", *arguments], check=False, capture_output=True).returncode == 0


def has_carrier(name):
    """Returns whether the link of a namespace is up."""
    show = ["ip", "-n", name, "link", "show", "end0"]
    return "state UP" in subprocess.run(show, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def spaces():
    """Two network namespaces with a link: that of the machine's node, and that of the robot."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("network namespaces need root, and `ip`")
    names = [f"tautline-{end}-{os.getpid()}" for end in ("machine", "robot")]
    try:
        for name in names:
            if not ip("netns", "add", name):
                pytest.skip("no network namespace can be made here")
        pair = "type", "veth", "peer", "name", "end0", "netns", names[1]
        if not ip("-n", names[0], "link", "add", "end0", *pair):
            pytest.skip("there is no veth")
        for name, address in zip(names, (MACHINE, ROBOT)):
            assert ip("-n", name, "addr", "add", f"{address}/24", "dev", "end0")
            assert ip("-n", name, "link", "set", "lo", "up")
            assert ip("-n", name, "link", "set", "end0", "up")
        # DDS leaves an interface out that has no carrier yet.
        assert waited(lambda: all(map(has_carrier, names)), 5)
        yield names
    finally:
        for name in names:
            ip("netns", "del", name)


def partitioned(stand, spaces):
    """Starts and drives a robot behind the link."""
    # Shared memory would cross the cut.
    stand.environment["FASTDDS_BUILTIN_TRANSPORTS"] = "UDPv4"
    stand.environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SUBNET"
    stand.heartbeat = f"{ROBOT}:7461"
    inside = [["ip", "netns", "exec", name] for name in spaces]
    stand.guard(inside[0])
    stand.robot(inside[1])
    stand.machine(inside=inside[0])
    stand.drive(SPEED)


def judge(stand, at):
    """Judges the stop, and what the guard did."""
    metres_max, seconds_max = bounds(0.1)
    time.sleep(seconds_max + 1)
    metres, seconds = stand.truth.way(at)
    print(f"{metres:.2f} m, {seconds:.2f} s; at most {metres_max:.2f} m, {seconds_max:.2f} s")
    assert metres <= metres_max and seconds <= seconds_max, stand.told()
    assert stand.vehicle.mode() in ("manoeuvre", "held"), stand.told()


def test_a_cut_between_machine_and_robot_stops_the_robot(stand, spaces):
    partitioned(stand, spaces)
    assert ip("-n", spaces[0], "link", "set", "end0", "down")
    judge(stand, time.monotonic())


def test_dds_alone_that_is_cut_stops_the_robot(stand, spaces):
    if not shutil.which("nft"):
        pytest.skip("needs nft: ./setup nftables")
    partitioned(stand, spaces)
    # The heartbeats still arrive: they tell that odometry does not.
    inside = "ip", "netns", "exec", spaces[1]
    subprocess.run([*inside, "nft", "-f", "-"], input=RULES, text=True, check=True)
    judge(stand, time.monotonic())


RULES = """
table inet cut {
    chain input {
        type filter hook input priority 0
        iifname "end0" udp dport != 7461 drop
    }
    chain output {
        type filter hook output priority 0
        oifname "end0" drop
    }
}
"""
