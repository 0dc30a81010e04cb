"""Parts of the nodes, in virtual time."""

import array
import math
import re
import socket

import pytest
import tautline
from builtin_interfaces.msg import Time
from sensor_msgs.msg import BatteryState, CompressedImage, Image
from stand import PACKAGE

from tautline_ros import description, messages, parameters, pictures
from tautline_ros.ackermann import Limits, Pedals
from tautline_ros.commands import share, topic_name
from tautline_ros.freshness import Freshness
from tautline_ros.heartbeat import Condition, Twist, decode, encode, udp_address
from tautline_ros.parameters import Mistakes
from tautline_ros.reports import composed, shortened
from tautline_ros.sim_robot import Camera, Drive
from tautline_ros.stop import Watch


class TestHeartbeat:
    def test_a_datagram_has_what_was_sent(self):
        twist = Twist(0.5, -0.25, 1.0)
        assert decode(encode(Condition.WELL, twist)) == (Condition.WELL, twist)
        condition, unknown = decode(encode(Condition.UNSAFE))
        assert condition == Condition.UNSAFE and not unknown.is_known()

    def test_other_datagrams_are_none(self):
        sound = encode(Condition.WELL, Twist())
        for wrong in (
            b"",
            b"stop",
            sound[:-1],
            sound + b"\0",
            b"XLHB" + sound[4:],
            sound[:4] + b"\7" + sound[5:],
        ):
            assert decode(wrong) is None

    def test_a_twist_slows_on_its_arc(self):
        twist = Twist(1.0, 0.0, 0.5)
        for turn in range(1, 100):
            left = twist.slowed(1.0, 2.0, 0.01 * turn)
            assert left.forward == pytest.approx(1.0 - 0.01 * turn)
            assert left.yaw_rate == pytest.approx(0.5 * left.forward)
        assert twist.slowed(1.0, 2.0, 1.0) == Twist()

    def test_an_address_has_a_host_and_a_port(self):
        assert udp_address(":7461") == ("127.0.0.1", 7461)
        assert udp_address("robot:1") == ("robot", 1)
        for wrong in ("", "7461", "a:", "a:b", "a:0", "a:65536"):
            with pytest.raises(ValueError):
                udp_address(wrong)


class TestWatch:
    def watch(self):
        return Watch(0.060, 1.0, 2.0, now=0.0)

    def test_it_stops_before_the_first_heartbeat_and_follows_none_after_it(self):
        watch = self.watch()
        assert watch.turn([], 0.01) == Twist()
        assert watch.turn([(Condition.WELL, Twist(1.0))], 0.02) is None

    def test_silence_slows_from_the_last_twist(self):
        watch = self.watch()
        watch.turn([(Condition.WELL, Twist(1.0))], 0.01)
        turns = [watch.turn([], 0.01 * turn) for turn in range(2, 120)]
        assert turns[:6] == [None] * 6
        assert turns[6].forward == pytest.approx(0.99)
        assert turns[-1] == Twist()

    def test_its_own_pause_is_no_silence(self):
        watch = self.watch()
        watch.turn([(Condition.WELL, Twist(1.0))], 0.01)
        assert watch.turn([], 1.0) is None

    def test_an_unsafe_machine_is_stopped_at_once_and_not_accelerated(self):
        watch = self.watch()
        watch.turn([(Condition.WELL, Twist(1.0))], 0.01)
        first = watch.turn([(Condition.UNSAFE, Twist(math.nan))], 0.02)
        assert first.forward == pytest.approx(0.99)
        assert watch.turn([(Condition.UNSAFE, Twist(5.0))], 0.03).forward < first.forward

    def test_a_machine_that_has_ended_leaves_the_robot_to_others(self):
        watch = self.watch()
        watch.turn([(Condition.WELL, Twist())], 0.01)
        watch.turn([(Condition.ENDED, Twist(math.nan))], 0.02)
        assert all(watch.turn([], 0.1 * turn) is None for turn in range(1, 100))


class TestFreshness:
    def test_silence_and_repeated_stamps_age(self):
        fresh = Freshness()
        assert fresh.age(0.0) == math.inf
        for turn in range(100):
            assert fresh.take(50.0 + turn / 100, turn / 100)
            assert fresh.age(turn / 100) < 1e-6
        for turn in range(100, 400):
            assert not fresh.take(50.99, turn / 100)
        assert fresh.age(4.0) == pytest.approx(3.01)

    def test_a_queue_that_grows_is_late(self):
        fresh = Freshness()
        for turn in range(300):
            late = 0.150 if turn > 100 else 0.0
            fresh.take(turn / 100, turn / 100 + late)
            assert fresh.age(turn / 100 + late) == pytest.approx(late, abs=0.002)

    def test_one_wrong_stamp_makes_no_later_one_late(self):
        fresh = Freshness()
        for turn in range(300):
            fresh.take(turn / 100 + (0.005 if turn == 100 else 0.0), turn / 100)
            assert fresh.age(turn / 100) < 0.001

    def test_a_clock_that_was_set_back_counts_again_after_a_second(self):
        fresh = Freshness()
        assert fresh.take(50.0, 0.0)
        assert not fresh.take(20.0, 0.5)
        assert fresh.take(20.6, 1.1) and fresh.age(1.1) == 0.0

    def test_without_stamps_arrival_counts(self):
        fresh = Freshness(by_stamps=False)
        assert fresh.take(1.0, 0.0) and fresh.take(1.0, 5.0)
        assert fresh.age(5.05) == pytest.approx(0.05)


class TestDescription:
    def test_the_files_of_the_package_are_sound(self):
        for path in (PACKAGE / "config").glob("ro*.yaml"):
            assert description.read(path).motion == "differential"

    def test_all_mistakes_are_told_at_once(self):
        tree = {
            "motion": "flying",
            "speed": 3,
            "axes": [
                {
                    "name": "boom",
                    "form": "speed",
                    "low": 1,
                    "high": 0,
                    "rate": 0,
                    "on_stop": "hold",
                },
                {"form": "position", "low": 0.0, "high": 1.0, "rate": 1.0, "colour": "red"},
            ],
            "actions": [{"name": "horn", "form": "loud"}, "dock"],
            "values": [{"name": "battery", "topic": "battery_state"}],
            "topics": [
                {"name": "scan", "type": "sensor_msgs/msg/LaserScan", "rate_cap_kbps": True}
            ],
        }
        with pytest.raises(Mistakes) as told:
            description.parse(tree)
        for words in (
            "speed: there is no such setting",
            "motion is 'flying'",
            "axes[0]: the range from 1.0 to 0.0 is empty",
            "axes[0]: rate is 0.0",
            "axes[0]: a speed cannot be held",
            "axes[1].colour",
            "axes[1].name is missing",
            "actions[0].form is 'loud': momentary, switch, request are possible",
            "actions[1] is no table",
            "values[0]: topic needs type and field",
            "topics[0].rate_cap_kbps is True: a whole number is needed",
        ):
            assert words in str(told.value)

    def test_names_are_unique_and_lists_bounded(self):
        action = {"name": "horn", "form": "momentary"}
        with pytest.raises(Mistakes, match="horn is there twice"):
            description.parse({"motion": "omni", "actions": [action, action]})
        many = [{"name": f"a{n}", "form": "momentary"} for n in range(33)]
        with pytest.raises(Mistakes, match="32 are possible"):
            description.parse({"motion": "omni", "actions": many})


class TestPedals:
    def pedals(self):
        return Pedals(Limits(0.5, 2.0, 1.0, 4.0))

    def test_throttle_accelerates_up_to_the_maximum_and_the_brake_stops(self):
        pedals = self.pedals()
        for _ in range(100):
            pedals.follow(0.5, 1.0, 0.0, False, 0.01)
        assert pedals.set_point.speed == pytest.approx(1.0)
        assert pedals.set_point.steering_angle == 0.25
        for _ in range(300):
            pedals.follow(0.0, 1.0, 0.0, False, 0.01)
        assert pedals.set_point.speed == 2.0
        for _ in range(51):
            pedals.follow(0.0, 0.0, 1.0, False, 0.01)
        assert pedals.set_point.speed == 0.0

    def test_reverse_is_backwards_and_a_released_pedal_keeps_the_speed(self):
        pedals = self.pedals()
        for _ in range(50):
            pedals.follow(0.0, 1.0, 0.0, True, 0.01)
        assert pedals.follow(0.0, 0.0, 0.0, True, 0.01).speed == pytest.approx(-0.5)

    def test_a_full_brake_wins_over_throttle(self):
        assert self.pedals().follow(0.0, 1.0, 1.0, False, 0.01).speed == 0.0


class TestSimRobot:
    def test_it_follows_set_points_by_its_limits(self):
        drive = Drive(2.0, 4.0, 0.0)
        drive.set_points = 1.0, 0.0
        for _ in range(50):
            drive.step(0.01)
        assert drive.motion[0] == pytest.approx(1.0)
        # Half a second of 2 m/s² from standstill; the steps are of 10 ms.
        assert drive.x == pytest.approx(0.25, abs=0.01)

    def test_a_turn_on_the_spot_moves_it_nowhere(self):
        drive = Drive(2.0, 4.0, 0.05)
        drive.set_points = 0.0, 1.0
        for _ in range(200):
            drive.step(0.01)
        assert drive.x == drive.y == 0.0 and 1.5 < drive.heading < 2.0

    def test_its_picture_moves_with_it(self):
        camera = Camera(160, 96, seed=1)
        here = camera.draw(0.0, 0.0, 0.0)
        assert here.shape == (96, 160, 3) and (camera.draw(0.0, 0.0, 0.0) == here).all()
        assert (camera.draw(0.1, 0.0, 0.0) != here).any()
        assert (camera.draw(0.0, 0.0, 0.1) != here).any()


class TestMessages:
    def test_types_and_fields_are_found_by_name(self):
        assert messages.message_class("sensor_msgs/msg/BatteryState") is BatteryState
        for wrong in (
            "BatteryState",
            "sensor_msgs/srv/X",
            "no_such/msg/X",
            "sensor_msgs/msg/NoSuch",
        ):
            with pytest.raises(Mistakes):
                messages.message_class(wrong)
        message = BatteryState(percentage=0.5, cell_voltage=[3.0, 4.0])
        message.header.stamp = Time(sec=2, nanosec=500_000_000)
        assert messages.field_at(message, "cell_voltage.1") == 4.0
        assert messages.field_at(message, "cell_voltage.7") is None
        assert messages.field_at(message, "no.such") is None
        assert messages.seconds_of(message.header.stamp) == 2.5

    def test_an_action_is_a_part_of_a_topic(self):
        assert topic_name("High beam 2") == "high_beam_2" and topic_name("2 up") == "_2_up"

    def test_a_text_is_cut_between_characters(self):
        assert shortened("ä" * 40) == "ä" * 32 and shortened("x" + "ä" * 40) == "x" + "ä" * 31

    def test_a_pose_moves_into_the_outer_frame(self):
        x, y, heading = composed((1.0, 2.0, math.pi / 2), (3.0, 0.0, math.pi))
        assert (x, y) == pytest.approx((1.0, 5.0)) and heading == pytest.approx(-math.pi / 2)


def test_the_readme_lists_each_parameter_as_the_node_has_it():
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    for node in ("MACHINE", "STOP", "CAMERA", "TOPICS", "SIM_ROBOT"):
        part = text.split(f"### tautline_{node.lower()}\n")[1].split("\n#")[0]
        rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", part, re.MULTILINE)
        known = [(it.name, shown(it.default), it.text) for it in getattr(parameters, node)]
        assert rows == known, node


def shown(default):
    """Returns a default as the README has it."""
    if default == "":
        return "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


class TestJoy:
    def test_a_set_point_is_a_share_of_its_axis(self):
        boom = description.Axis("boom", "position", low=-0.5, high=1.5, rate=1.0)
        assert [share(boom, it) for it in (-0.5, 0.5, 1.5)] == [-1.0, 0.0, 1.0]
        assert math.isnan(share(boom, math.nan))
        brush = description.Axis("brush", "speed", low=-2.0, high=4.0, rate=1.0)
        assert [share(brush, it) for it in (-2.0, 0.0, 4.0, math.nan)] == [-0.5, 0.0, 1.0, 0.0]


class TestPictures:
    def test_an_image_has_its_format_size_and_padding(self):
        for encoding, form in (("bgra8", "bgra"), ("mono8", "grey"), ("yuv422", "uyvy")):
            message = Image(width=7, height=5, step=40, encoding=encoding)
            expected = {"format": form, "size": (7, 5), "stride": 40}
            assert pictures.options(message) == expected
        assert pictures.options(CompressedImage(format="jpeg")) == {"format": "jpeg"}

    def test_an_encoding_that_is_not_taken_is_refused(self):
        with pytest.raises(ValueError, match="bayer_rggb8"):
            pictures.options(Image(width=2, height=2, step=2, encoding="bayer_rggb8"))

    def test_the_data_of_a_message_are_sent_as_they_are(self, tmp_path):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(tmp_path / "camera.sock"))
        listener.listen()
        message = Image(width=3, height=3, step=10, encoding="rgb8")
        message.data = array.array("B", range(30))
        with tautline.Camera(tmp_path / "camera.sock") as camera:
            assert camera.send(message.data, **pictures.options(message))
            with pytest.raises(ValueError, match="fewer"):
                camera.send(message.data[:10], **pictures.options(message))
        connection, _ = listener.accept()
        assert connection.makefile("rb").read()[64:] == bytes(range(20))
