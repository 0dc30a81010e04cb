//! Random messages of each kind, within the limits of decoding.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tautline_guard::act::{Answer, Blocker, Blockers, Outcome};
use tautline_guard::config::Config;
use tautline_guard::description::{
    Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule, AxisStop, Name, Reading,
    Revision, Text, Unit, ValueForm, ValueInfo,
};
use tautline_guard::frame::{DeadMan, Status};
use tautline_guard::identity::{ActNumber, Console, Tick};
use tautline_guard::{Actions, Axes, Cause, Gear, Guard, Input, MachineState, Mode, Twist, Why};
use tautline_units::{ByteCount, Duration, Instant};

use crate::fields::{Choice, Codec};
use crate::point_cloud::{Field, Number, Point, PointCloud, Pose};
use crate::snapshot::{
    ChannelStats, Delays, End, LinkStats, PacketCounts, ProcessStats, SessionStats, TrafficCounts,
    UnitCounts, Value,
};
use crate::{
    Act, Candidate, CandidateKind, ClockOffset, Command, Control, Deed, Description, EmulatedLink,
    Held, Known, LinkAction, OperatorStatus, Order, ProbeAnswer, ProbeQuestion, ProtocolVersions,
    QuorumStep, Refusal, RelayTicket, Role, SessionState, Snapshot, StripReport, Telemetry, Values,
    VehicleEntry, VehicleState, VideoFeedback,
};

pub(crate) fn command() -> impl Strategy<Value = Command> {
    let gear = variant::<Gear>();
    let pedals = (-1.0f32..=1.0, 0.0f32..=1.0, 0.0f32..=1.0);
    let act = (any::<u32>(), any::<u32>(), variant::<Deed>());
    let act = option::of(act.prop_map(|(number, stop, deed)| Act { number, stop, deed }));
    let person =
        (any::<[u64; 2]>(), any::<[u32; 3]>(), act, variant::<DeadMan>(), twist(), devices());
    (any::<u64>(), instant(), pedals, gear, any::<bool>(), person).prop_map(
        |(sequence, sent_at, (steering, throttle, brake), gear, emergency_stop, person)| {
            let ([console, successor], numbers, act, dead_man, twist, (axes, actions)) = person;
            let [cited, emergency_stop_number, absences] = numbers;
            Command {
                sequence,
                sent_at,
                steering,
                throttle,
                brake,
                gear,
                emergency_stop,
                console,
                cited,
                act,
                emergency_stop_number,
                dead_man,
                absences,
                successor,
                twist,
                axes,
                actions,
            }
        },
    )
}

fn twist() -> impl Strategy<Value = Twist> {
    let speed = || -Twist::SPEED_MOST..=Twist::SPEED_MOST;
    let yaw_rate = -Twist::YAW_RATE_MOST..=Twist::YAW_RATE_MOST;
    let twist = (speed(), speed(), yaw_rate);
    let twist =
        twist.prop_map(|(forward, sideways, yaw_rate)| Twist { forward, sideways, yaw_rate });
    option::of(twist).prop_map(Option::unwrap_or_default)
}

/// Returns set points of axes, some of them none, and actions.
fn devices() -> impl Strategy<Value = (Axes, Actions)> {
    let set_point = prop_oneof![Just(f32::NAN), -1e6_f32..1e6];
    let axes = proptest::array::uniform16(set_point).prop_map(Axes);
    (prop_oneof![Just(Axes::NONE), axes], any::<u32>().prop_map(Actions::from_bits))
}

pub(crate) fn description() -> impl Strategy<Value = Description> {
    let name = || "[a-z]{1,8}".prop_map(|text| Name::new(&text).expect("short"));
    let unit = || "[a-z]{0,3}".prop_map(|text| Unit::new(&text).expect("short"));
    let limits = || prop_oneof![Just([f32::NAN; 2]), Just([-1.0, f32::NAN]), Just([-1.0, 2.0])];
    let on_stop = prop_oneof![
        Just(AxisStop::Hold),
        Just(AxisStop::Zero),
        Just(AxisStop::Release),
        (-1.0_f32..1.0).prop_map(AxisStop::Value)
    ];
    let axis = (name(), unit(), any::<bool>(), 1.0_f32..9.0, on_stop);
    let axis = axis.prop_map(|(name, unit, is_speed, high, on_stop)| {
        let (form, on_stop) = match is_speed {
            true => (AxisForm::Speed, AxisStop::Zero),
            false => (AxisForm::Position, on_stop),
        };
        Axis { name, unit, rule: AxisRule { form, low: -high, high, rate: high, on_stop } }
    });
    let rule = (variant::<ActionForm>(), variant::<ActionStop>(), any::<bool>());
    let action = (name(), rule).prop_map(|(name, (form, on_stop, is_allowed_held))| Action {
        name,
        rule: ActionRule { form, on_stop, is_allowed_held },
    });
    let value = (name(), unit(), limits(), limits(), limits());
    let value = value.prop_map(|(name, unit, range, warning, alarm)| ValueInfo {
        name,
        unit,
        form: ValueForm::Number,
        range,
        warning,
        alarm,
    });
    let lists = (vec(axis, 0..=16), vec(action, 0..=32), vec(value, 0..=64));
    (revision(), lists).prop_map(|(revision, (axes, actions, values))| Description {
        revision,
        axes,
        actions,
        values,
    })
}

pub(crate) fn values() -> impl Strategy<Value = Values> {
    let text = "[a-z]{0,64}".prop_map(|text| Reading::Text(Text::new(&text).expect("short")));
    let reading = prop_oneof![(-1e6_f32..1e6).prop_map(Reading::Number), text];
    let readings = proptest::collection::btree_map(0..64_u8, reading, 0..64);
    (revision(), instant(), readings).prop_map(|(revision, taken_at, readings)| Values {
        revision,
        taken_at,
        readings: readings.into_iter().collect(),
    })
}

fn revision() -> impl Strategy<Value = Revision> {
    (1..=u32::MAX).prop_map(|number| Revision::new(number).expect("not 0"))
}

pub(crate) fn video_feedback() -> impl Strategy<Value = VideoFeedback> {
    let strips = proptest::array::uniform8(option::of(strip_report()));
    let interval = 1..=VideoFeedback::PICTURE_INTERVAL_MAX;
    let pixels = option::of(1..=u32::MAX);
    (strips, any::<u8>(), interval, pixels).prop_map(
        |(strips, keyframe_strips, picture_interval, pixels_max)| VideoFeedback {
            strips,
            keyframe_strips,
            picture_interval,
            pixels_max,
        },
    )
}

fn strip_report() -> impl Strategy<Value = StripReport> {
    let before = || option::of(0..u8::MAX);
    (any::<u32>(), before(), before()).prop_map(|(newest, clean_before, lost_before)| StripReport {
        newest,
        clean_before,
        lost_before,
    })
}

pub(crate) fn quorum_step() -> impl Strategy<Value = QuorumStep> {
    let numbers = any::<[u64; 6]>();
    let round = proptest::option::of(instant());
    (any::<[u8; 3]>(), numbers, any::<bool>(), round, vec(any::<u64>(), 0..20)).prop_map(
        |([kind, from, to], numbers, reject, round_at, entry_terms)| {
            let [term, log_term, index, commit, commit_term, reject_hint] = numbers;
            QuorumStep {
                kind,
                from,
                to,
                term,
                log_term,
                index,
                commit,
                commit_term,
                reject,
                reject_hint,
                round_at,
                entry_terms,
            }
        },
    )
}

pub(crate) fn link_action() -> impl Strategy<Value = LinkAction> {
    (any::<u8>(), any::<bool>()).prop_map(|(link, cut)| LinkAction { link, cut })
}

pub(crate) fn telemetry() -> impl Strategy<Value = Telemetry> {
    Telemetry::any_listed()
}

/// Returns statuses of a guard that differ in every kind of field.
pub(crate) fn status() -> impl Strategy<Value = Status> {
    let numbers = (any::<u32>(), any::<u64>(), -150.0_f32..=150.0, any::<[u16; 3]>());
    let kinds = (select(Mode::ALL), select(Cause::ALL), select(Blocker::ALL), any::<bool>());
    (numbers, kinds).prop_map(|((number, console, speed, [age, loop_age, left]), kinds)| {
        let (mode, cause, blocker, has_machine) = kinds;
        let millis = |millis: u16| Duration::from_millis(millis.into());
        let machine = MachineState { speed, ..MachineState::default() };
        let answer = Console::new(console).zip(ActNumber::new(number));
        let outcome = Outcome::Refused(blocker);
        let mut guard = Guard::new(Config::car(), Tick::new(number.max(1)).expect("not 0"));
        Status {
            mode,
            why: Why::new(cause, speed, f32::NAN),
            answer: answer.map(|(console, number)| Answer { console, number, outcome }),
            blockers: Blockers::of(blocker),
            holder: Console::new(console),
            loop_age: (loop_age % 2 == 0).then(|| millis(loop_age)),
            countdown: (left < u16::MAX).then(|| (cause, millis(left))),
            machine: has_machine.then(|| (machine, millis(age.min(u16::MAX - 1)))),
            ..guard.step(&Input::default(), Instant::ZERO).status
        }
    })
}

pub(crate) fn operator_status() -> impl Strategy<Value = OperatorStatus> {
    let session_state = variant::<SessionState>();
    let session = (text(64), session_state, text(256));
    let clock = option::of((any::<i64>(), any::<u64>()));
    let emulated_links = vec((text(64), any::<bool>()), 0..=64);
    (any::<u64>(), session, clock, emulated_links).prop_map(
        |(unix_ns, session, clock, emulated_links)| OperatorStatus {
            unix_ns,
            vehicle_name: session.0,
            session_state: session.1,
            session_reason: session.2,
            clock: clock.map(|(offset_ns, error_ns)| ClockOffset { offset_ns, error_ns }),
            emulated_links: emulated_links
                .into_iter()
                .map(|(name, cut)| EmulatedLink { name, cut })
                .collect(),
        },
    )
}

pub(crate) fn snapshot() -> impl Strategy<Value = Snapshot> {
    let end = variant::<End>();
    (end, instant(), option::of(session_stats()), option::of(process_stats()))
        .prop_map(|(end, taken_at, session, process)| Snapshot { end, taken_at, session, process })
}

fn session_stats() -> impl Strategy<Value = SessionStats> {
    (vec(link_stats(), 0..=16), vec(channel_stats(), 0..=32), drops())
        .prop_map(|(links, channels, drops)| SessionStats { links, channels, drops })
}

fn process_stats() -> impl Strategy<Value = ProcessStats> {
    (vec(value(), 0..=64), drops()).prop_map(|(values, drops)| ProcessStats { values, drops })
}

pub(crate) fn probe_question() -> impl Strategy<Value = ProbeQuestion> {
    let datagram_bytes = option::of((150u64..=1_500).prop_map(ByteCount::new));
    (any::<u64>(), datagram_bytes, 100u64..=5_000).prop_map(|(sequence, datagram_bytes, hold)| {
        ProbeQuestion { sequence, datagram_bytes, hold: Duration::from_millis(hold) }
    })
}

pub(crate) fn probe_answer() -> impl Strategy<Value = ProbeAnswer> {
    (vec((any::<u64>(), instant()), 0..=64), option::of(text(256)))
        .prop_map(|(arrivals, refusal)| ProbeAnswer { arrivals, refusal })
}

fn versions() -> impl Strategy<Value = ProtocolVersions> {
    (1..=u8::MAX, any::<u8>()).prop_map(|(lowest, more)| ProtocolVersions {
        lowest,
        highest: lowest.saturating_add(more),
    })
}

fn relay_ticket() -> impl Strategy<Value = RelayTicket> {
    (addresses(), any::<[u8; 32]>(), vec(any::<u8>(), 1..=256))
        .prop_map(|(addresses, key, token)| RelayTicket { addresses, key, token })
}

fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let candidate = (variant::<CandidateKind>(), 0..16_u8, text(64));
    vec(candidate.prop_map(|(kind, end, address)| Candidate { kind, end, address }), 0..=32)
}

pub(crate) fn control() -> impl Strategy<Value = Control> {
    prop_oneof![
        (
            (text(64), addresses(), option::of(versions()), any::<bool>()),
            (candidates(), held(), option::of(text(32)))
        )
            .prop_map(
                |((name, addresses, versions, relays), (candidates, held, place))| {
                    Control::RegisterVehicle {
                        name,
                        addresses,
                        versions,
                        relays,
                        candidates,
                        held,
                        place,
                    }
                }
            ),
        (text(64), addresses(), option::of(versions()), any::<bool>(), candidates(), held())
            .prop_map(|(name, addresses, versions, relays, candidates, held)| {
                Control::RegisterOperator { name, addresses, versions, relays, candidates, held }
            }),
        Just(Control::ListVehicles),
        vec(vehicle(), 0..=256).prop_map(|vehicles| Control::VehicleList { vehicles }),
        text(64).prop_map(|vehicle_name| Control::Take { vehicle_name }),
        Just(Control::Release),
        (
            (any::<[u8; 16]>(), text(64), any::<[u8; 32]>(), any::<u64>()),
            (addresses(), option::of(versions()), candidates())
        )
            .prop_map(|((lease, peer_name, peer_key, epoch), peer)| {
                let (peer_addresses, peer_versions, peer_candidates) = peer;
                Control::Introduce {
                    lease,
                    peer_name,
                    peer_key,
                    peer_addresses,
                    peer_versions,
                    peer_candidates,
                    epoch,
                }
            }),
        (any::<[u8; 16]>(), text(256))
            .prop_map(|(lease, reason)| Control::Released { lease, reason }),
        (variant::<Refusal>(), text(256))
            .prop_map(|(reason_code, text)| Control::Refused { reason_code, text }),
        instant().prop_map(|t| Control::Ping { t }),
        (instant(), option::of((1..=u64::MAX).prop_map(Instant::from_nanos)))
            .prop_map(|(t, seen_at)| Control::Pong { t, seen_at }),
        (any::<[u8; 32]>(), vec(relay_ticket(), 0..=4))
            .prop_map(|(peer_key, relays)| Control::Relays { peer_key, relays }),
        order().prop_map(Control::Order),
        (any::<u16>(), any::<[u8; 4]>())
            .prop_map(|(number, secret)| Control::Enroll { number, secret }),
        (variant::<Role>(), text(64), vec(known(), 0..=256))
            .prop_map(|(role, name, peers)| Control::Enrolled { role, name, peers }),
        (vec(any::<u8>(), 0..100), any::<bool>())
            .prop_map(|(bytes, is_last)| Control::OrderPart { bytes, is_last }),
        (vec(any::<u8>(), 0..=256), any::<bool>())
            .prop_map(|(signed, is_answered)| Control::Ordered { signed, is_answered }),
        vec(any::<u8>(), 0..=256).prop_map(|signed| Control::Answered { signed }),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    let machine = || (variant::<Role>(), text(64));
    prop_oneof![
        Just(Order::Backup),
        Just(Order::Who),
        machine().prop_map(|(role, name)| Order::Invite { role, name }),
        machine().prop_map(|(role, name)| Order::Revoke { role, name }),
        (text(64), vec(any::<u8>(), 0..=256))
            .prop_map(|(name, signed)| Order::End { name, signed }),
    ]
}

fn known() -> impl Strategy<Value = Known> {
    (text(64), any::<[u8; 32]>()).prop_map(|(name, key)| Known { name, key })
}

fn held() -> impl Strategy<Value = Option<Held>> {
    let held = (option::of(any::<[u8; 16]>()), any::<u64>(), any::<[u8; 32]>());
    option::of(held.prop_map(|(lease, epoch, peer_key)| Held { lease, epoch, peer_key }))
}

/// Returns clouds in any layout.
pub(crate) fn point_cloud() -> impl Strategy<Value = PointCloud> {
    (1u64..=64, 0usize..=40).prop_flat_map(|(stride, point_count)| {
        let numbers = select(vec![
            Number::U8,
            Number::I8,
            Number::U16,
            Number::I16,
            Number::U32,
            Number::I32,
            Number::F32,
            Number::F64,
        ]);
        let field = (text(64), 0..stride, numbers).prop_map(move |(name, offset, number)| {
            // Narrow the number if it does not fit: one byte always does.
            let fits = offset + number.width().get() <= stride;
            let number = if fits { number } else { Number::U8 };
            Field { name, offset: ByteCount::new(offset), number }
        });
        let pose = (any::<[i32; 3]>(), (-1.0f64..=1.0, -1.0f64..=1.0, -1.0f64..=1.0, -1.0..=1.0));
        let seconds = 0..=u64::from(u32::MAX);
        let header = ((seconds, 0u64..1_000_000_000), text(64), pose);
        let data = vec(any::<u8>(), stride as usize * point_count);
        (header, vec(field, 0..=32), data).prop_map(move |(header, fields, data)| {
            let ((seconds, nanos), frame_id, (position, (x, y, z, w))) = header;
            PointCloud {
                captured_at: Instant::from_nanos(seconds * 1_000_000_000 + nanos),
                frame_id,
                pose: Pose { position: position.map(f64::from), orientation: [x, y, z, w] },
                stride: ByteCount::new(stride),
                fields,
                data,
            }
        })
    })
}

pub(crate) fn points() -> impl Strategy<Value = Vec<Point>> {
    let number = -1e6f32..1e6;
    let point = (number.clone(), number.clone(), number.clone(), number)
        .prop_map(|(x, y, z, intensity)| Point { x, y, z, intensity });
    vec(point, 0..=600)
}

fn link_stats() -> impl Strategy<Value = LinkStats> {
    let delays = || {
        let delay = || 0.0f32..=1e7;
        option::of((delay(), delay(), delay()).prop_map(|(p50, p95, p99)| Delays { p50, p95, p99 }))
    };
    (LinkStats::any_listed(), delays(), delays(), counts(), counts()).prop_map(
        |(listed, owd_out, owd_in, traffic, packets)| LinkStats {
            owd_out,
            owd_in,
            traffic: TrafficCounts::by_name(of(traffic)),
            packets: PacketCounts::by_name(of(packets)),
            ..listed
        },
    )
}

fn channel_stats() -> impl Strategy<Value = ChannelStats> {
    (ChannelStats::any_listed(), counts()).prop_map(|(listed, counts)| ChannelStats {
        units: UnitCounts::by_name(of(counts)),
        ..listed
    })
}

fn value() -> impl Strategy<Value = Value> {
    let number = any::<f64>().prop_filter("finite", |number| number.is_finite());
    (text(64), number, text(16), any::<bool>()).prop_map(|(name, number, unit, total)| Value {
        name,
        number,
        unit,
        total,
    })
}

/// Returns nonzero drop counts.
fn drops() -> impl Strategy<Value = Vec<(String, u64)>> {
    vec((text(64), 1..=u64::MAX), 0..=128)
}

/// Returns enough counts for any set of counters.
fn counts() -> impl Strategy<Value = Vec<u64>> {
    vec(any::<u64>(), 32)
}

/// Returns the counts one after the other, for any name.
fn of(counts: Vec<u64>) -> impl FnMut(&'static str) -> u64 {
    let mut counts = counts.into_iter();
    move |_| counts.next().expect("enough for any set")
}

fn vehicle() -> impl Strategy<Value = VehicleEntry> {
    let known = (text(64), any::<[u8; 32]>(), variant::<VehicleState>(), millis());
    let since = option::of((1..=u32::MAX).prop_map(|since| Duration::from_secs(since.into())));
    let told = (option::of(text(64)), since, option::of(text(32)), any::<[u8; 2]>());
    (known, told).prop_map(|((name, key, state, round_trip_ms), (driver, since, place, links))| {
        let [link_count, links] = links;
        VehicleEntry { name, key, state, round_trip_ms, driver, since, place, link_count, links }
    })
}

fn addresses() -> impl Strategy<Value = Vec<String>> {
    vec(text(64), 0..=32)
}

fn variant<T>() -> BoxedStrategy<T>
where
    Choice: Codec<T>,
{
    Choice.any()
}

/// Returns texts of at most `bytes_max` bytes, of characters of one to four bytes.
pub(crate) fn text(bytes_max: usize) -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..=bytes_max).prop_map(move |characters| {
        let mut text = String::new();
        for character in characters {
            if text.len() + character.len_utf8() <= bytes_max {
                text.push(character);
            }
        }
        text
    })
}

fn millis() -> impl Strategy<Value = Option<f32>> {
    option::of(0.0f32..=1e7)
}

fn instant() -> impl Strategy<Value = Instant> {
    any::<u64>().prop_map(Instant::from_nanos)
}
