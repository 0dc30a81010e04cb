//! Old readers read messages of new writers, and the reverse.
//!
//! This folder holds the schemas of the first version and flatc's output for them: the old side.
//! `generate/` also makes flatc check that the present schemas are later versions of those.

use flatbuffers::FlatBufferBuilder;
use tautline_message::snapshot::{End, ProcessStats, Value};
use tautline_message::{
    Command, Fault, Gear, LinkState, Mode, OperatorStatus, Position, SessionState, Snapshot,
    Telemetry,
};
use tautline_units::Instant;

/// The old side, at the module path that its own code expects.
#[rustfmt::skip]
#[allow(clippy::all, dead_code, deprecated, mismatched_lifetime_syntaxes, missing_docs, non_camel_case_types,
    unreachable_pub, unsafe_code, unused_imports, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod generated {
    pub(crate) mod command_generated;
    pub(crate) mod drop_count_generated;
    pub(crate) mod operator_status_generated;
    pub(crate) mod snapshot_generated;
    pub(crate) mod telemetry_generated;
}

use generated::command_generated::tautline as old_command;
use generated::drop_count_generated::tautline as old_drop;
use generated::operator_status_generated::tautline as old_status;
use generated::snapshot_generated::tautline as old_snapshot;
use generated::telemetry_generated::tautline as old_telemetry;

#[test]
fn a_new_reader_reads_telemetry_of_an_old_writer() {
    let told = Telemetry::decode(&old_telemetry()).unwrap();
    assert_eq!((told.sequence, told.sent_at), (9, Instant::from_nanos(123)));
    assert_eq!((told.speed, told.steering_angle), (1.5, -0.25));
    assert_eq!(told.position, Some(Position { x: 10.0, y: -20.0, heading: 3.0 }));
    assert_eq!((told.mode, told.mode_reason.as_str()), (Mode::Driving, "commands are fresh"));
    assert_eq!((told.faults, told.gear), (vec![], Gear::Reverse));
}

#[test]
fn an_old_reader_reads_telemetry_of_a_new_writer() {
    let mut told = Telemetry::decode(&old_telemetry()).unwrap();
    told.faults = vec![Fault::Steering];
    let bytes = told.encode();
    let old = old_telemetry::root_as_telemetry(&bytes).unwrap();
    assert_eq!((old.sequence(), old.sent_at_ns(), old.motion().speed()), (9, 123, 1.5));
    assert_eq!(
        (old.mode(), old.mode_reason()),
        (old_telemetry::Mode::Driving, "commands are fresh")
    );
    assert_eq!(old.faults().unwrap().get(0), old_telemetry::Fault::Steering);
}

/// The other bench of small messages reads this file, independent of later schemas.
#[test]
fn the_telemetry_that_was_kept_is_what_the_old_writer_writes() {
    assert_eq!(include_bytes!("telemetry.bin")[..], old_telemetry());
}

#[test]
fn snapshots_are_read_both_ways() {
    let read = Snapshot::decode(&old_snapshot()).unwrap();
    assert_eq!((read.end, read.taken_at), (End::Vehicle, Instant::from_nanos(7)));
    let [link] = read.links() else { panic!("one link was written") };
    assert_eq!((link.name.as_str(), link.state, link.rtt_ms), ("modem", LinkState::Up, Some(48.0)));
    assert_eq!((link.packets.sent, link.packets.lost, link.loss_out), (1000, 10, None));
    assert_eq!(read.drops().collect::<Vec<_>>(), [("late", 7)]);
    let values = vec![Value::of("battery", 48.5, "V")];
    let process = Some(ProcessStats { values, drops: Vec::new() });
    let bytes = Snapshot { process, ..read }.encode();
    let old = old_snapshot::root_as_snapshot(&bytes).unwrap();
    let link = old.session().unwrap().links().get(0);
    assert_eq!((link.name(), link.rtt_ms(), link.packets_lost()), ("modem", 48.0, 10));
    let value = old.process().unwrap().values().get(0);
    assert_eq!((value.name(), value.number(), value.unit()), ("battery", 48.5, Some("V")));
}

#[test]
fn commands_are_read_both_ways() {
    let bytes = old_command();
    let read = Command::decode(&bytes).unwrap();
    assert_eq!((read.sequence, read.steering, read.gear), (5, -0.5, Gear::Reverse));
    assert!(read.emergency_stop);
    let again = read.encode();
    let old = old_command::root_as_command(&again).unwrap();
    let controls = old.controls();
    assert_eq!((controls.sequence(), controls.steering()), (5, -0.5));
    assert!(controls.emergency_stop());
}

#[test]
fn operator_status_is_read_both_ways() {
    let bytes = old_status();
    let read = OperatorStatus::decode(&bytes).unwrap();
    assert_eq!((read.session_state, read.unix_ns), (SessionState::Established, 40));
    let again = read.encode();
    let old = old_status::root_as_operator_status(&again).unwrap();
    assert_eq!((old.vehicle_name(), old.session_reason()), ("rover", "both ends answer"));
    assert_eq!((old.session_state(), old.unix_ns()), (old_status::SessionState::Established, 40));
}

/// An old reader skips fields that a later version appends; a new reader fills in missing ones.
#[test]
fn a_field_that_is_not_known_is_skipped() {
    let mut builder = FlatBufferBuilder::new();
    let motion = old_telemetry::Motion::default();
    let reason = builder.create_string("");
    let table = builder.start_table();
    builder.push_slot_always(old_telemetry::Telemetry::VT_MOTION, motion);
    builder.push_slot_always(old_telemetry::Telemetry::VT_MODE_REASON, reason);
    builder.push_slot_always(4 + 2 * 100, 77_u64);
    let root = builder.end_table(table);
    builder.finish(root, Some(old_telemetry::TELEMETRY_IDENTIFIER));
    let read = Telemetry::decode(builder.finished_data()).unwrap();
    assert_eq!((read.sequence, read.gear), (0, Gear::Drive));
}

fn old_telemetry() -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let reason = builder.create_string("commands are fresh");
    let motion = old_telemetry::Motion::new(1.5, -0.25, 0.5, 0.0, 10.0, -20.0, 3.0);
    let arguments = old_telemetry::TelemetryArgs {
        sequence: 9,
        sent_at_ns: 123,
        motion: Some(&motion),
        mode: old_telemetry::Mode::Driving,
        mode_reason: Some(reason),
        gear: old_command::Gear::Reverse,
        ..Default::default()
    };
    let root = old_telemetry::Telemetry::create(&mut builder, &arguments);
    old_telemetry::finish_telemetry_buffer(&mut builder, root);
    builder.finished_data().to_vec()
}

fn old_snapshot() -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let name = Some(builder.create_string("modem"));
    let link = old_snapshot::LinkStatsArgs {
        name,
        state: old_snapshot::LinkState::Up,
        rtt_ms: 48.0,
        packets_sent: 1000,
        packets_lost: 10,
        ..Default::default()
    };
    let link = old_snapshot::LinkStats::create(&mut builder, &link);
    let links = Some(builder.create_vector(&[link]));
    let channels: [flatbuffers::WIPOffset<old_snapshot::ChannelStats<'_>>; 0] = [];
    let channels = Some(builder.create_vector(&channels));
    let name = Some(builder.create_string("late"));
    let drop =
        old_drop::DropCount::create(&mut builder, &old_drop::DropCountArgs { name, count: 7 });
    let drops = Some(builder.create_vector(&[drop]));
    let session = old_snapshot::SessionStatsArgs { links, channels, drops };
    let session = Some(old_snapshot::SessionStats::create(&mut builder, &session));
    let end = old_snapshot::End::Vehicle;
    let arguments = old_snapshot::SnapshotArgs { end, taken_at_ns: 7, session, process: None };
    let root = old_snapshot::Snapshot::create(&mut builder, &arguments);
    old_snapshot::finish_snapshot_buffer(&mut builder, root);
    builder.finished_data().to_vec()
}

fn old_command() -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let gear = old_command::Gear::Reverse;
    let controls = old_command::Controls::new(5, 6, -0.5, 0.25, 0.0, gear, true);
    let arguments = old_command::CommandArgs { controls: Some(&controls) };
    let root = old_command::Command::create(&mut builder, &arguments);
    old_command::finish_command_buffer(&mut builder, root);
    builder.finished_data().to_vec()
}

fn old_status() -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let vehicle_name = Some(builder.create_string("rover"));
    let session_reason = Some(builder.create_string("both ends answer"));
    let emulated: [flatbuffers::WIPOffset<old_status::EmulatedLink<'_>>; 0] = [];
    let emulated_links = Some(builder.create_vector(&emulated));
    let arguments = old_status::OperatorStatusArgs {
        unix_ns: 40,
        vehicle_name,
        session_state: old_status::SessionState::Established,
        session_reason,
        emulated_links,
        ..Default::default()
    };
    let root = old_status::OperatorStatus::create(&mut builder, &arguments);
    old_status::finish_operator_status_buffer(&mut builder, root);
    builder.finished_data().to_vec()
}
