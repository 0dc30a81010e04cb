use std::time::Duration;

use proptest::prelude::*;
use tautline_guard::{Actions, Axes, Notice, Twist};

use super::*;
use crate::frame::Kind;
use crate::{Database, Mapping, Message};

const DBC: &str = include_str!("../../../../adapters/can/car.dbc");
const MAP: &str = include_str!("../../../../adapters/can/car.toml");

/// The example's adapter, and a car that answers it.
struct Rig {
    database: Database,
    adapter: Adapter,
    counter: u64,
    now: Instant,
}

impl Rig {
    fn of(map: &str) -> Self {
        let database = Database::parse(DBC).unwrap();
        let adapter = Mapping::parse(map).resolve(Ok(&database)).unwrap();
        Self { database, adapter, counter: 0, now: Instant::ZERO }
    }

    fn new() -> Self {
        Self::of(MAP)
    }

    /// Creates a rig whose car has reported itself at a standstill.
    fn sound() -> Self {
        let mut rig = Self::new();
        rig.hear_motion(0.0);
        rig.hear("VEHICLE_STATUS", &[("GEAR", 3)]);
        rig
    }

    fn message(&self, name: &str) -> &Message {
        self.database.message(name).unwrap()
    }

    /// Lets the adapter hear a message with these bits.
    fn hear(&mut self, name: &str, raws: &[(&str, u64)]) {
        let message = self.message(name);
        let frame = Frame::new(message.id(), Kind::Classic, &message.encode(raws)).unwrap();
        self.adapter.handle_frame(&frame, self.now);
    }

    /// Returns the car's frame of motion with its next counter.
    fn motion(&mut self, speed_km_per_h: f64) -> Vec<u8> {
        let message = self.message("VEHICLE_MOTION");
        let speed = (speed_km_per_h * 100.0) as u64;
        let mut data = message.encode(&[("SPEED", speed), ("COUNTER", self.counter)]);
        let sum = data[..7].iter().fold(0xB4 + 8, |sum: u8, byte| sum.wrapping_add(*byte));
        data[7] = sum;
        self.counter = (self.counter + 1) % 16;
        data
    }

    fn hear_motion(&mut self, speed_km_per_h: f64) {
        let data = self.motion(speed_km_per_h);
        self.hear_data(&data);
    }

    fn hear_data(&mut self, data: &[u8]) {
        let id = self.message("VEHICLE_MOTION").id();
        self.adapter.handle_frame(&Frame::new(id, Kind::Classic, data).unwrap(), self.now);
    }

    fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn control(&mut self, controls: &Controls) -> Vec<Frame> {
        self.adapter.handle_controls(controls, false, self.now);
        self.sent()
    }

    fn sent(&mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.adapter.poll_transmit(self.now)).collect()
    }

    /// Returns the number of the action with this name.
    fn action(&self, name: &str) -> u8 {
        let at = self.adapter.description().iter().position(|item| item.name().as_str() == name);
        at.unwrap() as u8
    }

    fn state(&self) -> MachineState {
        self.adapter.state(self.now)
    }

    /// Returns a signal of the message that a frame carries.
    fn value(&self, frame: &Frame, name: &str) -> f64 {
        let of = |message: &&Message| message.id() == frame.id();
        let message = self.database.messages().iter().find(of).unwrap();
        let found = message.decode(frame.data()).find(|(signal, _)| signal.name() == name);
        let (signal, raw) = found.unwrap_or_else(|| panic!("{name}"));
        signal.physical(raw)
    }
}

fn driving() -> Controls {
    Controls { throttle: 0.5, steering: 1.0, ..Controls::default() }
}

#[test]
fn controls_become_signals_in_their_units() {
    let mut rig = Rig::sound();
    let controls = Controls {
        brake: 0.25,
        gear: Gear::Reverse,
        parking_brake: true,
        actions: [rig.action("hazard"), rig.action("horn")].into_iter().collect(),
        ..driving()
    };
    let frames = rig.control(&controls);
    let of = |frame: usize, name: &str| rig.value(&frames[frame], name);
    assert_eq!(frames.len(), 2);
    assert_eq!(of(0, "ANGLE"), 5.0, "no faster than 500 degrees a second");
    assert_eq!((of(0, "TORQUE_MAX"), of(0, "REQUEST")), (8.0, 1.0));
    assert_eq!(of(1, "ACCELERATION"), 0.1, "4.2 x 0.5 - 8 x 0.25");
    assert_eq!((of(1, "GEAR"), of(1, "PARKING_BRAKE")), (1.0, 1.0));
    assert_eq!((of(1, "INDICATORS"), of(1, "HORN"), of(1, "LIGHTS")), (3.0, 1.0, 0.0));
}

#[test]
fn each_message_has_its_period_counter_and_checksum() {
    let mut rig = Rig::sound();
    let mut counts = [Vec::new(), Vec::new()];
    for _ in 0..40 {
        rig.hear_motion(0.0);
        for frame in rig.control(&driving()) {
            let is_steering = frame.id() == Id::Standard(740);
            let count = rig.value(&frame, "COUNTER");
            counts[usize::from(!is_steering)].push(count);
            let data = frame.data();
            if is_steering {
                let sum = data[..7].iter().fold(0xE4 + 2 + 8, |sum: u8, it| sum.wrapping_add(*it));
                assert_eq!(data[7], sum);
            }
        }
        rig.pass(10);
    }
    assert_eq!(counts[0], (0..40).map(|it| f64::from(it % 16)).collect::<Vec<_>>());
    assert_eq!(counts[1], (0..20).map(|it| f64::from(it % 15)).collect::<Vec<_>>(), "profile 1");
}

#[test]
fn a_pause_is_followed_by_one_frame_and_no_leap() {
    let mut rig = Rig::sound();
    rig.control(&driving());
    rig.pass(1_000);
    let frames = rig.control(&driving());
    assert_eq!(frames.len(), 2);
    assert_eq!(rig.value(&frames[0], "ANGLE"), 15.0, "5, and two periods more");
    assert!(rig.sent().is_empty());
    rig.pass(8);
    let frames = rig.control(&driving());
    assert_eq!(frames.len(), 1, "a turn that comes 2 ms early");
    assert_eq!(rig.value(&frames[0], "COUNTER"), 2.0);
    rig.pass(11);
    assert_eq!(rig.control(&driving()).len(), 2, "on the grid again");
}

#[test]
fn the_machine_is_known_by_what_it_says() {
    let mut rig = Rig::sound();
    rig.hear_motion(36.0);
    let status = [
        ("GEAR", 1),
        ("PARKING_BRAKE", 1),
        ("STOP_BUTTON", 1),
        ("DRIVER_TORQUE", 256 - 31),
        ("CHARGE", 150),
    ];
    rig.hear("VEHICLE_STATUS", &status);
    let state = rig.state();
    assert!((state.speed - 10.0).abs() < 1e-4, "{}", state.speed);
    assert_eq!(state.gear, Gear::Reverse);
    let notices = [Notice::ParkingBrake, Notice::LocalStop, Notice::LocalControl];
    assert_eq!(state.notices, notices.into_iter().collect());
    assert_eq!(state.told.charge, Some(75.0));
    assert_eq!(state.faults, Faults::NONE);
}

#[test]
fn neutral_reports_the_commanded_gear_and_unknown_a_fault() {
    let map = MAP.replace("neither = [\"P\", \"N\"]", "neither = [\"P\"]");
    let mut rig = Rig::of(&map);
    rig.hear_motion(0.0);
    rig.hear("VEHICLE_STATUS", &[("GEAR", 0)]);
    rig.control(&Controls { gear: Gear::Reverse, ..Controls::default() });
    assert_eq!((rig.state().gear, rig.state().faults), (Gear::Reverse, Faults::NONE));
    rig.hear("VEHICLE_STATUS", &[("GEAR", 2)]);
    assert_eq!(rig.state().faults, Faults::of(Fault::Gear));
}

#[test]
fn what_does_not_come_in_time_is_unknown_and_a_fault() {
    let rig = Rig::new();
    let state = rig.state();
    assert!(state.speed.is_nan() && state.steering_angle.is_nan());
    assert_eq!(state.faults, [Fault::Speed, Fault::Unreachable].into_iter().collect());
    let mut rig = Rig::sound();
    rig.pass(50);
    assert_eq!(rig.state().faults, Faults::NONE);
    rig.pass(1);
    assert!(rig.state().speed.is_nan());
    assert_eq!(rig.state().faults, Faults::of(Fault::Speed));
    rig.hear_motion(0.0);
    assert_eq!((rig.state().speed, rig.state().faults), (0.0, Faults::NONE));
}

#[test]
fn a_missing_page_is_a_fault_though_its_message_comes() {
    let mut rig = Rig::sound();
    for _ in 0..30 {
        rig.pass(10);
        rig.hear_motion(0.0);
        rig.hear("VEHICLE_STATUS", &[("GEAR", 3), ("PAGE", 1)]);
    }
    assert_eq!(rig.state().faults, Faults::of(Fault::Unreachable));
}

#[test]
fn five_frames_with_a_wrong_checksum_are_a_fault() {
    let mut rig = Rig::sound();
    rig.hear_motion(18.0);
    for wrong in 1..=5 {
        assert_eq!(rig.state().faults, Faults::NONE, "{wrong}");
        let mut data = rig.motion(36.0);
        data[7] ^= 1;
        rig.hear_data(&data);
        let speed = rig.state().speed;
        assert!(wrong == 5 || (speed - 5.0).abs() < 1e-4, "{speed}");
    }
    assert_eq!(rig.state().faults, Faults::of(Fault::Speed));
    assert!(rig.state().speed.is_nan());
    assert_eq!(rig.adapter.counts().wrong_checksum, 5);
    rig.hear_motion(18.0);
    rig.hear_motion(18.0);
    assert_eq!(rig.state().faults, Faults::NONE, "each frame without makes one good");
}

#[test]
fn a_frame_that_repeats_is_left_out_and_a_gap_is_counted() {
    let mut rig = Rig::sound();
    let data = rig.motion(18.0);
    rig.hear_data(&data);
    for _ in 0..4 {
        rig.hear_data(&data);
    }
    assert_eq!((rig.adapter.counts().repeated, rig.state().faults), (4, Faults::NONE));
    rig.hear_data(&data);
    assert_eq!(rig.state().faults, Faults::of(Fault::Speed), "a sender that hangs");
    let mut rig = Rig::sound();
    rig.counter += 3;
    rig.hear_motion(18.0);
    assert_eq!(rig.adapter.counts().skipped, 1);
    assert!((rig.state().speed - 5.0).abs() < 1e-4);
}

#[test]
fn a_stop_replaces_constants_and_sends_what_is_for_it_alone() {
    let entry = "[[send]]\nmessage = \"VEHICLE_STATUS\"\nduring = \"stop\"\nperiod_ms = 30\n\
                 [send.signals]\nSTOP_BUTTON = 1\n[[receive]]";
    let mut rig = Rig::of(&MAP.replacen("[[receive]]", entry, 1));
    rig.hear_motion(0.0);
    rig.hear("VEHICLE_STATUS", &[("GEAR", 3)]);
    let actions = Actions::NONE.with_if(rig.action("horn"), true);
    let horn = Controls { actions, ..Controls::default() };
    let frames = rig.control(&horn);
    assert_eq!(rig.value(&frames[1], "HORN"), 1.0);
    assert!(frames.iter().all(|frame| frame.id() != Id::Extended(0x18FF_50E5)));
    rig.pass(20);
    rig.hear_motion(0.0);
    rig.adapter.handle_controls(&horn, true, rig.now);
    let frames = rig.sent();
    assert_eq!(rig.value(&frames[1], "HORN"), 0.0, "the guard is silent");
    assert_eq!(frames[2].id(), Id::Extended(0x18FF_50E5));
    rig.pass(20);
    rig.hear_motion(0.0);
    let frames = rig.control(&horn);
    assert_eq!((frames.len(), rig.value(&frames[1], "HORN")), (2, 1.0), "it goes on");
    rig.pass(60);
    let frames = rig.control(&horn);
    assert_eq!((frames.len(), rig.value(&frames[1], "HORN")), (3, 0.0), "the speed is lost");
}

#[test]
fn nothing_is_sent_before_the_guard_is_heard() {
    let mut rig = Rig::sound();
    assert_eq!(rig.adapter.period(), Some(Duration::from_millis(10)));
    rig.adapter.handle_controls(&driving(), true, rig.now);
    assert!(rig.sent().is_empty());
    rig.adapter.handle_end();
    assert!(rig.sent().is_empty(), "neither at the end");
}

#[test]
fn frames_begin_with_controls_and_end_with_the_last_ones() {
    let mut rig = Rig::sound();
    assert!(rig.sent().is_empty());
    rig.control(&driving());
    rig.adapter.handle_end();
    let frames = rig.sent();
    assert_eq!(frames.len(), 1);
    assert_eq!((rig.value(&frames[0], "REQUEST"), rig.value(&frames[0], "COUNTER")), (0.0, 1.0));
    rig.pass(100);
    assert!(rig.sent().is_empty());
}

#[test]
fn a_torque_keeps_the_limits_that_panda_allows_a_toyota() {
    let database = Database::parse(include_str!("../../../../adapters/can/torque.dbc")).unwrap();
    let map = Mapping::parse(include_str!("../../../../adapters/can/torque.toml"));
    let mut adapter = map.resolve(Ok(&database)).unwrap();
    let mut now = Instant::ZERO;
    let mut turn = |steering: f32, is_sound: bool| {
        now += Duration::from_millis(10);
        if is_sound {
            for (id, data) in [(180, [0; 8]), (608, [0; 8])] {
                let sum = (id >> 8) as u8 + (id & 0xFF) as u8 + 8;
                let data = [&data[..7], &[sum]].concat();
                let frame = Frame::new(Id::Standard(id), Kind::Classic, &data).unwrap();
                adapter.handle_frame(&frame, now);
            }
        }
        let controls = Controls { steering, ..Controls::default() };
        adapter.handle_controls(&controls, false, now);
        let frames: Vec<_> = std::iter::from_fn(|| adapter.poll_transmit(now)).collect();
        let frame = frames.iter().find(|frame| frame.id() == Id::Standard(740)).unwrap();
        let data = frame.data();
        (data[0] & 1, i16::from_be_bytes([data[1], data[2]]))
    };
    let up: Vec<i16> = (0..102).map(|_| turn(1.0, true).1).collect();
    assert_eq!(up[..3], [15, 30, 45]);
    assert_eq!(up[99..], [1_500; 3], "no more than the most");
    let over: Vec<i16> = (0..63).map(|_| turn(-1.0, true).1).collect();
    assert_eq!(over[..2], [1_475, 1_450]);
    assert_eq!(over[59..], [0, -15, -30, -45], "through zero at the lower rate");
    // The speed does not come for 100 ms.
    let stopped = (0..11).map(|_| turn(-1.0, false)).last();
    assert_eq!(stopped, Some((0, 0)), "no request");
}

#[test]
fn short_and_unknown_frames_are_counted() {
    let mut rig = Rig::sound();
    rig.hear_data(&[1, 2, 3]);
    let other = Frame::new(Id::Standard(1), Kind::Classic, &[]).unwrap();
    rig.adapter.handle_frame(&other, rig.now);
    let padded = Frame::new(Id::Standard(180), Kind::Fd { bit_rate_switch: false }, &[0; 12]);
    rig.adapter.handle_frame(&padded.unwrap(), rig.now);
    let counts = rig.adapter.counts();
    assert_eq!((counts.short, counts.other, counts.wrong_checksum), (1, 1, 1));
}

/// The rover's adapter, and a rover that answers it.
struct Rover {
    database: Database,
    adapter: Adapter,
    counter: u64,
    now: Instant,
}

impl Rover {
    fn new() -> Self {
        let database = Database::parse(ROVER_DBC).unwrap();
        let adapter = Mapping::parse(ROVER_MAP).resolve(Ok(&database)).unwrap();
        Self { database, adapter, counter: 0, now: Instant::ZERO }
    }

    /// Lets 10 ms pass in which the rover reports its motion, and returns the signals that are sent
    /// under these controls.
    fn turn(&mut self, controls: &Controls) -> BTreeMap<String, f64> {
        self.now += Duration::from_millis(10);
        let message = self.database.message("TRACK_STATUS").unwrap();
        let mut data = message.encode(&[("SPEED", 500), ("TURN", 250), ("COUNTER", self.counter)]);
        data[7] = data[..7].iter().fold(0, |sum, byte| sum ^ byte);
        self.counter = (self.counter + 1) % 16;
        let frame = Frame::new(message.id(), Kind::Classic, &data).unwrap();
        self.adapter.handle_frame(&frame, self.now);
        self.adapter.handle_controls(controls, false, self.now);
        let mut sent = BTreeMap::new();
        while let Some(frame) = self.adapter.poll_transmit(self.now) {
            let of = |message: &&Message| message.id() == frame.id();
            let message = self.database.messages().iter().find(of).unwrap();
            for (signal, raw) in message.decode(frame.data()) {
                let name = format!("{}.{}", message.name(), signal.name());
                sent.insert(name, signal.physical(raw));
            }
        }
        sent
    }

    fn report(&mut self, raws: &[(&str, u64)]) {
        self.now += Duration::from_millis(1);
        let message = self.database.message("ROVER_STATUS").unwrap();
        let frame = Frame::new(message.id(), Kind::Classic, &message.encode(raws)).unwrap();
        self.adapter.handle_frame(&frame, self.now);
    }
}

const ROVER_DBC: &str = include_str!("../../../../adapters/can/rover.dbc");
const ROVER_MAP: &str = include_str!("../../../../adapters/can/rover.toml");

#[test]
fn a_twist_becomes_the_speeds_of_two_tracks_and_back() {
    let mut rover = Rover::new();
    let state = rover.adapter.state(rover.now);
    assert!(state.speed.is_nan() && state.yaw_rate.is_nan() && state.sideways_speed.is_nan());
    rover.report(&[]);
    let twist = Twist { forward: 1.0, sideways: 0.0, yaw_rate: 0.5 };
    let sent = rover.turn(&Controls { twist, ..Controls::default() });
    assert_eq!((sent["TRACK_COMMAND.LEFT"], sent["TRACK_COMMAND.RIGHT"]), (0.8, 1.2));
    let spot = Twist { forward: 0.0, yaw_rate: -1.0, ..twist };
    let sent = rover.turn(&Controls { twist: spot, ..Controls::default() });
    assert_eq!((sent["TRACK_COMMAND.LEFT"], sent["TRACK_COMMAND.RIGHT"]), (0.4, -0.4));
    let state = rover.adapter.state(rover.now);
    assert_eq!((state.speed, state.yaw_rate, state.faults), (0.5, 0.25, Faults::NONE));
}

#[test]
fn an_axis_is_sent_while_it_has_a_set_point_and_reported() {
    let mut rover = Rover::new();
    rover.report(&[("BOOM", 5730), ("LIGHTS", 1)]);
    let sent = rover.turn(&Controls::default());
    assert_eq!((sent["BOOM_COMMAND.ANGLE"], sent["BOOM_COMMAND.ENABLE"]), (0.0, 0.0));
    let mut axes = Axes::NONE;
    axes.0[0] = 0.5;
    rover.turn(&Controls::default());
    let sent = rover.turn(&Controls { axes, ..Controls::default() });
    assert!((sent["BOOM_COMMAND.ANGLE"] - 28.65).abs() < 1e-9, "{sent:?}");
    assert_eq!(sent["BOOM_COMMAND.ENABLE"], 1.0);
    rover.turn(&Controls::default());
    let sent = rover.turn(&Controls::default());
    assert_eq!((sent["BOOM_COMMAND.ANGLE"], sent["BOOM_COMMAND.ENABLE"]), (0.0, 0.0), "released");
    let state = rover.adapter.state(rover.now);
    assert!((state.axes.0[0] - 1.0).abs() < 1e-3 && state.axes.0[1].is_nan(), "{state:?}");
    assert_eq!(state.actions.iter().collect::<Vec<_>>(), [0]);
}

#[test]
fn a_request_is_on_until_it_is_answered() {
    let mut rover = Rover::new();
    let dock = |rover: &mut Rover| {
        let answer = rover.adapter.request(1, rover.now);
        (answer, rover.turn(&Controls::default())["TRACK_COMMAND.DOCK"])
    };
    // The answer to an earlier request still shows.
    rover.report(&[("DOCKING", 2)]);
    assert_eq!(dock(&mut rover), (None, 0.0));
    rover.report(&[("DOCKING", 0)]);
    assert_eq!(dock(&mut rover), (None, 1.0));
    assert_eq!(dock(&mut rover), (None, 1.0));
    rover.report(&[("DOCKING", 1)]);
    assert_eq!(dock(&mut rover), (Some(true), 0.0));
    rover.report(&[("DOCKING", 0)]);
    assert_eq!(dock(&mut rover), (None, 1.0));
    rover.report(&[("DOCKING", 2)]);
    assert_eq!(dock(&mut rover), (Some(false), 0.0));
    // A request that is no longer repeated is not sent either.
    rover.report(&[("DOCKING", 0)]);
    assert_eq!(dock(&mut rover), (None, 1.0));
    assert_eq!(rover.turn(&Controls::default())["TRACK_COMMAND.DOCK"], 0.0);
}

#[test]
fn a_request_without_an_answer_is_accepted_once_sent() {
    let map: Vec<&str> = ROVER_MAP.lines().filter(|line| !line.starts_with("DOCKING")).collect();
    let mut rover = Rover::new();
    let map = Mapping::parse(&map.join("\n"));
    rover.adapter = map.resolve(Ok(&rover.database)).unwrap();
    assert_eq!(rover.adapter.request(1, rover.now), None);
    assert_eq!(rover.turn(&Controls::default())["TRACK_COMMAND.DOCK"], 1.0);
    assert_eq!(rover.adapter.request(1, rover.now), Some(true));
    assert_eq!(rover.turn(&Controls::default())["TRACK_COMMAND.DOCK"], 0.0);
}

#[test]
fn values_are_reported_ten_times_a_second() {
    let mut rover = Rover::new();
    let readings = |rover: &mut Rover| -> Vec<(u8, Reading)> {
        let now = rover.now;
        std::iter::from_fn(|| rover.adapter.reading(now)).collect()
    };
    let unknown = readings(&mut rover);
    assert!(matches!(unknown[0], (0, Reading::Number(volts)) if volts.is_nan()), "{unknown:?}");
    assert_eq!(unknown[1], (1, Reading::Text(Text::new("").unwrap())));
    rover.report(&[("VOLTAGE", 4820), ("STATE", 2)]);
    assert_eq!(readings(&mut rover), []);
    rover.now += Duration::from_millis(99);
    let charging = Reading::Text(Text::new("charging").unwrap());
    assert_eq!(readings(&mut rover), [(0, Reading::Number(48.2)), (1, charging)]);
    rover.now += Duration::from_millis(300);
    let lost = readings(&mut rover);
    assert!(matches!(lost[0], (0, Reading::Number(volts)) if volts.is_nan()), "{lost:?}");
}

proptest! {
    #[test]
    fn any_frames_and_controls_leave_a_state_that_a_guard_reads(
        frames in proptest::collection::vec(
            (0_usize..4, proptest::collection::vec(any::<u8>(), 0..12), 0_u64..60),
            0..40,
        ),
        steering: f32,
        brake: f32,
        is_alone: bool,
    ) {
        let mut rig = Rig::new();
        for (index, data, millis) in frames {
            let id = rig.database.messages()[index].id();
            if let Some(frame) = Frame::new(id, Kind::Fd { bit_rate_switch: true }, &data) {
                rig.adapter.handle_frame(&frame, rig.now);
            }
            let controls = Controls { steering, brake, ..driving() };
            rig.adapter.handle_controls(&controls, is_alone, rig.now);
            prop_assert!(rig.sent().len() <= 2);
            let angle = rig.adapter.outgoing()[0].bound[0].last;
            prop_assert!(angle.abs() <= 450.0);
            let state = rig.state();
            prop_assert!(state.speed.is_nan() || state.speed.abs() < 100.0);
            rig.pass(millis);
        }
    }
}
