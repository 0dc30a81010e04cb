use crate::point_cloud::{Field, Number, Point, View};
use crate::snapshot::{
    ChannelStats, Delays, End, LinkStats, PacketCounts, ProcessStats, RateControl, SessionStats,
    TrafficCounts, UnitCounts, Value,
};
use crate::{
    Candidate, CandidateKind, ClockOffset, Command, Control, Description, EmulatedLink, Error,
    Known, LinkAction, LinkState, OperatorStatus, Order, PointCloud, ProbeAnswer, ProbeQuestion,
    ProtocolVersions, Refusal, RelayTicket, Role, SessionState, Snapshot, StatusFrame, Telemetry,
    Values, VehicleEntry, VehicleState, VideoFeedback,
};
use tautline_guard::config::Config;
use tautline_guard::description::{
    Axis, AxisForm, AxisRule, AxisStop, Flaw, Name, Reading, Revision, Text, Unit,
};
use tautline_guard::identity::Tick;
use tautline_guard::{Axes, Gear, Guard, Input, Twist};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// Returns an ordinary message for modification.
pub(crate) fn telemetry() -> Telemetry {
    let mut guard = Guard::new(Config::car(), Tick::new(7).expect("not 0"));
    let status = guard.step(&Input::default(), Instant::ZERO).status;
    Telemetry {
        sequence: 7,
        sent_at: Instant::from_millis(1500),
        status: Some(StatusFrame::of(&status)),
        mode_reason: Some("the vehicle drives under another operator".to_owned()),
        ..Telemetry::default()
    }
}

/// Returns an ordinary message, for tests to modify.
pub(crate) fn operator_status() -> OperatorStatus {
    OperatorStatus {
        unix_ns: 1_800_000_000_000_000_000,
        vehicle_name: "car".to_owned(),
        session_state: SessionState::Established,
        session_reason: String::new(),
        clock: Some(ClockOffset { offset_ns: -17, error_ns: 20_000 }),
        emulated_links: vec![EmulatedLink { name: "north 1".to_owned(), cut: false }],
    }
}

fn command() -> Command {
    Command {
        sequence: 1,
        sent_at: Instant::from_millis(5),
        steering: 0.0,
        throttle: 0.0,
        brake: 0.0,
        gear: Gear::Drive,
        emergency_stop: false,
        ..Command::default()
    }
}

/// Returns the field that an error names.
fn field(error: Error) -> &'static str {
    match error {
        Error::OutOfRange { field, .. }
        | Error::TooLong { field, .. }
        | Error::Unknown { field, .. }
        | Error::Missing { field } => field,
        other => panic!("{other} names no field"),
    }
}

#[test]
fn a_command_outside_its_range_is_refused_by_name() {
    let refused = |command: Command| field(Command::decode(&command.encode()).unwrap_err());
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.000_001, -1.5] {
        assert_eq!(refused(Command { steering: bad, ..command() }), "steering");
        assert_eq!(refused(Command { throttle: bad, ..command() }), "throttle");
        assert_eq!(refused(Command { brake: bad, ..command() }), "brake");
    }
    assert_eq!(refused(Command { brake: -0.1, ..command() }), "brake");
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 150.1, -150.1] {
        let twisted = |twist| refused(Command { twist, ..command() });
        assert_eq!(twisted(Twist { forward: bad, ..Twist::ZERO }), "twist.forward_mps");
        assert_eq!(twisted(Twist { sideways: bad, ..Twist::ZERO }), "twist.sideways_mps");
        assert_eq!(twisted(Twist { yaw_rate: bad, ..Twist::ZERO }), "twist.yaw_rate");
    }
    for bad in [f32::INFINITY, f32::NEG_INFINITY] {
        let mut axes = Axes::NONE;
        axes.0[3] = bad;
        assert_eq!(refused(Command { axes, ..command() }), "axes");
    }
    let spinning = Twist { yaw_rate: 100.1, ..Twist::ZERO };
    assert_eq!(refused(Command { twist: spinning, ..command() }), "twist.yaw_rate");
}

#[test]
fn a_description_that_no_machine_can_have_is_refused() {
    let revision = Revision::new(7).unwrap();
    let name = Name::new("boom").unwrap();
    let rule = AxisRule {
        form: AxisForm::Speed,
        low: -1.0,
        high: 1.0,
        rate: 2.0,
        on_stop: AxisStop::Zero,
    };
    let of = |axes: &[Axis]| {
        let (actions, values) = (Vec::new(), Vec::new());
        let description = Description { revision, axes: axes.to_vec(), actions, values };
        Description::decode(&description.encode())
    };
    let boom = Axis { name, unit: Unit::default(), rule };
    assert!(of(&[boom; 16]).is_ok());
    assert_eq!(of(&[boom; 17]).map_err(field), Err("axes"));
    let nameless = Axis { name: Name::default(), ..boom };
    assert_eq!(of(&[nameless]), Err(Error::Missing { field: "axes.name" }));
    let held = Axis { rule: AxisRule { on_stop: AxisStop::Hold, ..rule }, ..boom };
    assert_eq!(of(&[held]), Err(Error::Flawed { field: "axes", flaw: Flaw::HeldSpeed }));
}

#[test]
fn values_out_of_order_or_unknown_are_refused() {
    let of = |readings: &[(u8, Reading)]| {
        let (revision, taken_at) = (Revision::new(7).unwrap(), Instant::ZERO);
        let values = Values { revision, taken_at, readings: readings.to_vec() };
        Values::decode(&values.encode()).map(drop)
    };
    let (number, text) = (Reading::Number(1.5), Reading::Text(Text::new("idle").unwrap()));
    assert_eq!(of(&[(0, number), (63, text)]), Ok(()));
    assert_eq!(of(&[(64, number)]).map_err(field), Err("readings.index"));
    assert_eq!(of(&[(0, Reading::Number(f32::NAN))]).map_err(field), Err("readings.number"));
    for twice in [[(1, number), (1, text)], [(2, number), (1, text)]] {
        assert_eq!(of(&twice), Err(Error::Disordered { field: "readings.index" }));
    }
}

#[test]
fn feedback_outside_its_range_is_refused_by_name() {
    let refused = |picture_interval| {
        let feedback = VideoFeedback { picture_interval, ..VideoFeedback::default() };
        field(VideoFeedback::decode(&feedback.encode()).unwrap_err())
    };
    assert_eq!((refused(0), refused(9)), ("picture_interval", "picture_interval"));
}

/// The code in console/src/message built these bytes.
#[test]
fn messages_written_by_typescript_are_read() {
    let command = b"\x14\0\0\0TLC2\0\0\0\0\0\0\x06\0\x24\0\x04\0\x06\0\0\0\x4d\0\0\0\0\0\0\0\
        \x15\xcd\x5b\x07\0\0\0\0\0\0\0\x3f\0\0\x80\x3e\0\0\0\x3e\x01\x01\0\0";
    let expected = Command {
        sequence: 77,
        sent_at: Instant::from_nanos(123_456_789),
        steering: 0.5,
        throttle: 0.25,
        brake: 0.125,
        gear: Gear::Reverse,
        emergency_stop: true,
        ..Command::default()
    };
    assert_eq!(Command::decode(command), Ok(expected));
    let action = b"\x10\0\0\0TLA1\x08\0\x08\0\x07\0\x06\0\x08\0\0\0\0\0\x01\x03";
    assert_eq!(LinkAction::decode(action), Ok(LinkAction { link: 3, cut: true }));
}

#[test]
fn a_gear_that_stands_for_nothing_is_refused_by_name() {
    let mut bytes = command().encode();
    let reverse = Command { gear: Gear::Reverse, ..command() }.encode();
    let differing: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i] != reverse[i]).collect();
    assert_eq!(differing.len(), 1);
    bytes[differing[0]] = 9;
    assert_eq!(Command::decode(&bytes), Err(Error::Unknown { field: "gear", value: 9 }));
}

#[test]
fn telemetry_outside_its_range_is_refused_by_name() {
    let refused = Telemetry::refused_listed(&telemetry());
    assert_eq!(refused.len(), 2, "both texts");
    for (name, message) in refused {
        assert_eq!(field(Telemetry::decode(&message.encode()).unwrap_err()), name);
    }
}

#[test]
fn a_status_that_is_none_makes_telemetry_none() {
    let good = telemetry().encode();
    let frame = telemetry().status.expect("it has one");
    let at = good.windows(frame.bytes().len()).position(|part| part == frame.bytes());
    let at = at.expect("byte for byte as the guard sent it");
    for byte in 0..frame.bytes().len() {
        let mut bytes = good.clone();
        bytes[at + byte] ^= 1;
        let refused = Telemetry::decode(&bytes);
        // The counter and the source time are under the CRC too.
        assert!(matches!(refused, Err(Error::Frame { field: "status", .. })), "byte {byte}");
    }
}

#[test]
fn operator_status_over_its_lengths_is_refused_by_name() {
    let spoil = |change: fn(&mut OperatorStatus)| {
        let mut message = operator_status();
        change(&mut message);
        field(OperatorStatus::decode(&message.encode()).unwrap_err())
    };
    assert_eq!(spoil(|s| s.vehicle_name = "x".repeat(65)), "vehicle_name");
    assert_eq!(spoil(|s| s.session_reason = "x".repeat(257)), "session_reason");
    assert_eq!(spoil(|s| s.emulated_links[0].name = "x".repeat(65)), "emulated_links.name");
    assert_eq!(
        spoil(|s| s.emulated_links = vec![s.emulated_links[0].clone(); 65]),
        "emulated_links"
    );
}

#[test]
fn a_probe_asks_for_no_size_but_150_to_1500_bytes() {
    let question = |bytes, hold| {
        let datagram_bytes = Some(ByteCount::new(bytes));
        let hold = Duration::from_millis(hold);
        ProbeQuestion::decode(&ProbeQuestion { sequence: 1, datagram_bytes, hold }.encode())
    };
    assert!(question(150, 100).is_ok() && question(1_500, 5_000).is_ok());
    for bytes in [1, 149, 1_501, 70_000] {
        assert_eq!(field(question(bytes, 1_000).unwrap_err()), "datagram_bytes");
    }
    for hold in [0, 99, 5_001] {
        assert_eq!(field(question(400, hold).unwrap_err()), "hold_ms");
    }
    let answer = ProbeAnswer { arrivals: vec![(1, Instant::ZERO); 65], refusal: None };
    assert_eq!(field(ProbeAnswer::decode(&answer.encode()).unwrap_err()), "arrivals");
}

#[test]
fn a_snapshot_outside_its_ranges_is_refused_by_name() {
    let spoil = |change: fn(&mut SessionStats, &mut ProcessStats)| {
        let mut message = snapshot(1);
        let Snapshot { session: Some(session), process: Some(process), .. } = &mut message else {
            panic!("both parts are there")
        };
        change(session, process);
        field(Snapshot::decode(&message.encode()).unwrap_err())
    };
    assert_eq!(spoil(|s, _| s.links = vec![s.links[0].clone(); 17]), "links");
    let delays = |s: &mut SessionStats, p99| {
        s.links[0].owd_in = Some(Delays { p50: 0.0, p95: 0.0, p99 });
    };
    let mut message = snapshot(1);
    delays(message.session.as_mut().unwrap(), -1.0);
    assert_eq!(field(Snapshot::decode(&message.encode()).unwrap_err()), "links.owd");
    assert_eq!(spoil(|s, _| s.channels = vec![s.channels[0].clone(); 33]), "channels");
    assert_eq!(spoil(|s, _| s.drops = vec![("a".into(), 1); 129]), "drops");
    assert_eq!(spoil(|s, _| s.drops[0].0 = "x".repeat(65)), "drops.name");
    assert_eq!(spoil(|_, p| p.values = vec![p.values[0].clone(); 65]), "values");
    assert_eq!(spoil(|_, p| p.values[0].name = "x".repeat(65)), "values.name");
    assert_eq!(spoil(|_, p| p.values[0].number = f64::NAN), "values.number");
    assert_eq!(spoil(|_, p| p.values[0].unit = "x".repeat(17)), "values.unit");
}

#[test]
fn links_and_channels_outside_their_ranges_are_refused_by_name() {
    let ordinary = snapshot(1);
    let link = LinkStats::refused_listed(&ordinary.links()[0]).into_iter();
    let links = link.map(|(name, link)| (name, vec![link], ordinary.channels().to_vec()));
    let channel = ChannelStats::refused_listed(&ordinary.channels()[0]).into_iter();
    let channels = channel.map(|(name, channel)| (name, ordinary.links().to_vec(), vec![channel]));
    for (name, links, channels) in links.chain(channels) {
        let session = Some(SessionStats { links, channels, drops: Vec::new() });
        let message = Snapshot { session, ..ordinary.clone() };
        assert_eq!(field(Snapshot::decode(&message.encode()).unwrap_err()), name);
    }
}

#[test]
fn a_negative_number_means_unknown() {
    let mut message = snapshot(1);
    let link = &mut message.session.as_mut().unwrap().links[0];
    (link.rtt_ms, link.loss_out) = (Some(-3.0), Some(-0.5));
    let read = Snapshot::decode(&message.encode()).unwrap();
    assert_eq!((read.links()[0].rtt_ms, read.links()[0].loss_out), (None, None));
}

#[test]
fn drops_with_a_count_of_zero_are_omitted() {
    let mut message = snapshot(1);
    message.process.as_mut().unwrap().drops = vec![("never".into(), 0), ("once".into(), 1)];
    let read = Snapshot::decode(&message.encode()).unwrap();
    assert_eq!(read.drops().collect::<Vec<_>>()[0], ("once", 1));
}

#[test]
fn parts_come_together_again_in_any_order() {
    let whole = snapshot(2);
    let parts: Vec<_> = whole.parts().collect();
    assert_eq!(parts.len(), 2);
    for order in [[0, 1], [1, 0]] {
        let mut read = Snapshot::empty(whole.end);
        for index in order {
            read.update(Snapshot::decode(&parts[index].encode()).unwrap());
        }
        assert_eq!(read, whole);
    }
    assert_eq!(Snapshot::empty(End::Vehicle).parts().count(), 0);
}

/// With datagrams of 150 bytes, a control unit has room for 1896 bytes.
#[test]
fn each_part_of_a_busy_snapshot_goes_in_the_smallest_packets() {
    for part in snapshot(4).parts() {
        assert!(part.encode().len() <= 1_896, "{}", part.encode().len());
    }
}

/// Returns a snapshot of a long session over `link_count` links, with all counters in use.
fn snapshot(link_count: u8) -> Snapshot {
    let delays = Some(Delays { p50: 24.0, p95: 61.5, p99: 104.25 });
    let link = |link| LinkStats {
        link,
        name: "192.168.100.12:51234".into(),
        state: LinkState::Up,
        datagram_bytes: ByteCount::new(1_452),
        budget: Bitrate::from_mbps(3),
        granted: Bitrate::from_mbps(4),
        sent: Bitrate::from_mbps(2),
        received: Bitrate::from_kbps(90),
        rtt_ms: Some(48.0),
        owd_ms: Some(24.5),
        jitter_ms: Some(1.5),
        loss_out: Some(0.01),
        loss_in: Some(0.02),
        owd_out: delays,
        owd_in: delays,
        queued: ByteCount::new(1_500),
        in_flight: ByteCount::new(23_400),
        relayed: false,
        detour_ms: None,
        rate_control: Some(RateControl {
            delivered: Bitrate::from_mbps(2),
            queueing_ms: 3.5,
            cause: 3,
        }),
        traffic: TrafficCounts::by_name(|_| 71_000),
        packets: PacketCounts::by_name(|_| 60_012),
    };
    let channel = |channel, name: &str, units| ChannelStats {
        channel,
        name: name.to_owned(),
        late_or_lost: Some(0.01),
        units,
    };
    let some = ["offered", "accepted", "heard", "delivered", "late"];
    let few = UnitCounts::by_name(|name| u64::from(some.contains(&name)) * 500);
    let value = |index: u32| Value {
        name: format!("a value of sorts {index}"),
        number: 5_400.5,
        unit: "bit/s".into(),
        total: false,
    };
    let drop = |index: u32| (format!("some_packet_late_{index}"), 9);
    Snapshot {
        end: End::Vehicle,
        taken_at: Instant::from_millis(5),
        session: Some(SessionStats {
            links: (0..link_count).map(link).collect(),
            channels: vec![
                channel(0, "control", few),
                channel(1, "media", UnitCounts::by_name(|_| 9_000)),
            ],
            drops: (0..8).map(drop).collect(),
        }),
        process: Some(ProcessStats {
            values: (0..16).map(value).collect(),
            drops: (10..14).map(drop).collect(),
        }),
    }
}

#[test]
fn control_over_its_lengths_is_refused_by_name() {
    let refused = |control: Control| field(Control::decode(&control.encode()).unwrap_err());
    let name = "x".repeat(65);
    assert_eq!(refused(Control::Take { vehicle_name: name.clone() }), "vehicle_name");
    let addresses = vec![String::new(); 33];
    assert_eq!(
        refused(Control::RegisterVehicle {
            name,
            addresses: vec![],
            versions: None,
            relays: false,
            candidates: vec![],
            held: None,
            place: None
        }),
        "name"
    );
    assert_eq!(
        refused(Control::RegisterOperator {
            name: "a".into(),
            addresses,
            versions: None,
            relays: false,
            candidates: vec![],
            held: None
        }),
        "addresses"
    );
    let text = "x".repeat(257);
    let versions = Some(ProtocolVersions { lowest: 3, highest: 2 });
    let (name, addresses, relays, candidates) = ("a".into(), vec![], false, vec![]);
    let (held, place) = (None, None);
    let register =
        Control::RegisterVehicle { name, addresses, versions, relays, candidates, held, place };
    assert_eq!(refused(register), "versions.lowest");
    let ticket = |length| RelayTicket { addresses: vec![], key: [1; 32], token: vec![7; length] };
    let relays = |relays| refused(Control::Relays { peer_key: [2; 32], relays });
    assert_eq!(relays(vec![ticket(0)]), "relays.token");
    assert_eq!(relays(vec![ticket(257)]), "relays.token");
    assert_eq!(relays(vec![ticket(9); 5]), "relays");
    let candidate =
        |end| Candidate { kind: CandidateKind::Host, end, address: "192.0.2.1:7".into() };
    for (candidates, named) in
        [(vec![candidate(16)], "candidates.end"), (vec![candidate(0); 33], "candidates")]
    {
        let (name, addresses, versions, relays) = ("a".to_owned(), vec![], None, false);
        let (held, place) = (None, None);
        let register =
            Control::RegisterVehicle { name, addresses, versions, relays, candidates, held, place };
        assert_eq!(refused(register), named);
    }
    let (name, addresses, versions, relays) = ("a".to_owned(), vec![], None, false);
    let (candidates, held, place) = (vec![], None, Some("x".repeat(33)));
    let register =
        Control::RegisterVehicle { name, addresses, versions, relays, candidates, held, place };
    assert_eq!(refused(register), "place");
    let part = |length| Control::OrderPart { bytes: vec![7; length], is_last: true };
    assert_eq!(refused(part(32 * 1024 + 1)), "bytes");
    assert_eq!(Control::decode(&part(32 * 1024).encode()), Ok(part(32 * 1024)));
    let role = Role::Operator;
    let enrolled = |name: &str, peer: &str, count| {
        let peers = vec![Known { name: peer.to_owned(), key: [1; 32] }; count];
        Control::Enrolled { role, name: name.to_owned(), peers }
    };
    let (most, more) = ("x".repeat(64), "x".repeat(65));
    assert_eq!(refused(enrolled(&more, "a", 1)), "name");
    assert_eq!(refused(enrolled("a", &more, 1)), "peers.name");
    assert!(Control::decode(&enrolled("a", "a", 257).encode()).is_err());
    let longest = enrolled(&most, &most, 256);
    assert_eq!(Control::decode(&longest.encode()), Ok(longest));
    for order in [
        Order::Invite { role, name: more.clone() },
        Order::Revoke { role, name: more.clone() },
        Order::End { name: more, signed: vec![] },
    ] {
        assert_eq!(refused(Control::Order(order)), "name");
    }
    let end = Order::End { name: "car".to_owned(), signed: vec![7; 257] };
    assert_eq!(refused(Control::Order(end)), "signed");
    let ordered = Control::Ordered { signed: vec![7; 257], is_answered: true };
    assert_eq!(refused(ordered), "signed");
    assert_eq!(refused(Control::Answered { signed: vec![7; 257] }), "signed");
    assert_eq!(refused(Control::Released { lease: [1; 16], reason: text.clone() }), "reason");
    assert_eq!(refused(Control::Refused { reason_code: Refusal::Full, text }), "text");
}

#[test]
fn one_kind_of_message_is_never_read_as_another() {
    let bytes = command().encode();
    assert_eq!(Telemetry::decode(&bytes), Err(Error::WrongKind { kind: "telemetry" }));
    assert_eq!(Control::decode(&bytes), Err(Error::WrongKind { kind: "control message" }));
    assert_eq!(Command::decode(&[]), Err(Error::WrongKind { kind: "command" }));
}

#[test]
fn a_message_longer_than_its_kind_allows_is_refused_unread() {
    let mut bytes = command().encode();
    bytes.resize(257, 0);
    let (length, max) = (ByteCount::new(257), ByteCount::new(256));
    assert_eq!(Command::decode(&bytes), Err(Error::Oversized { kind: "command", length, max }));
}

#[test]
fn a_cloud_of_broken_records_is_refused() {
    let mut cloud = PointCloud::new(Instant::ZERO, "lidar");
    cloud.set_points(&[Point::default(); 2]);
    let refused = |cloud: &PointCloud| View::of(&cloud.encode()).unwrap_err();

    let mut ragged = cloud.clone();
    ragged.data.pop();
    let (length, stride) = (ByteCount::new(31), ByteCount::new(16));
    assert_eq!(refused(&ragged), Error::Ragged { length, stride });

    let mut outside = cloud.clone();
    let offset = ByteCount::new(13);
    outside.fields.push(Field { name: "w".into(), offset, number: Number::F32 });
    let length = ByteCount::new(4);
    assert_eq!(refused(&outside), Error::OutsideRecord { offset, length, stride });

    let still = PointCloud { stride: ByteCount::ZERO, ..cloud.clone() };
    assert_eq!(field(refused(&still)), "point_stride");
    let mut turned = cloud.clone();
    turned.pose.orientation[0] = f64::NAN;
    assert_eq!(field(refused(&turned)), "pose.orientation");
    let mut away = cloud.clone();
    away.pose.position[2] = f64::INFINITY;
    assert_eq!(field(refused(&away)), "pose.position");
    let many = PointCloud { fields: vec![cloud.fields[0].clone(); 33], ..cloud };
    assert_eq!(field(refused(&many)), "fields");
}

/// It must fit in a frame of the control plane, whose maximum equals that of a message.
#[test]
fn the_longest_vehicle_list_fits_in_a_message() {
    let vehicle = |place: &str, driver: &str| VehicleEntry {
        name: "n".repeat(64),
        key: [7; 32],
        state: VehicleState::Taken,
        round_trip_ms: Some(7.0),
        driver: Some(driver.to_owned()),
        since: Some(Duration::from_secs(u32::MAX.into())),
        place: Some(place.to_owned()),
        link_count: 16,
        links: 16,
    };
    let (place, driver) = ("p".repeat(32), "d".repeat(64));
    let list = |vehicle| Control::VehicleList { vehicles: vec![vehicle; 256] };
    let longest = list(vehicle(&place, &driver));
    assert_eq!(Control::decode(&longest.encode()), Ok(longest));
    let refused = |control: Control| field(Control::decode(&control.encode()).unwrap_err());
    let list = |vehicle| Control::VehicleList { vehicles: vec![vehicle] };
    assert_eq!(refused(list(vehicle("p".repeat(33).as_str(), &driver))), "vehicles.place");
    assert_eq!(refused(list(vehicle(&place, "d".repeat(65).as_str()))), "vehicles.driver");
}
