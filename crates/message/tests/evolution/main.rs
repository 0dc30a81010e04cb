//! Old readers read what new writers write, and the reverse.
//!
//! This folder holds the schemas of the first version, and what flatc made of them: the old side.
//! `generate/` asks flatc as well whether today's schemas are later versions of those.

use flatbuffers::FlatBufferBuilder;
use tautline_message::{
    Command, Extra, Fault, Gear, LinkState, LinkStatus, Mode, OperatorStatus, Position,
    SessionState, Telemetry,
};
use tautline_units::{Bitrate, Instant};

/// The old side, where its own code looks for itself.
#[rustfmt::skip]
#[allow(clippy::all, dead_code, deprecated, mismatched_lifetime_syntaxes, missing_docs, non_camel_case_types,
    unreachable_pub, unsafe_code, unused_imports, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod generated {
    pub(crate) mod command_generated;
    pub(crate) mod drop_count_generated;
    pub(crate) mod link_status_generated;
    pub(crate) mod operator_status_generated;
    pub(crate) mod telemetry_generated;
}

use generated::command_generated::tautline as old_command;
use generated::drop_count_generated::tautline as old_drop;
use generated::link_status_generated::tautline as old_link;
use generated::operator_status_generated::tautline as old_status;
use generated::telemetry_generated::tautline as old_telemetry;

#[test]
fn a_new_reader_reads_telemetry_of_an_old_writer() {
    let told = Telemetry::decode(&old_telemetry()).unwrap();
    assert_eq!((told.sequence, told.sent_at), (9, Instant::from_nanos(123)));
    assert_eq!((told.speed, told.steering_angle), (1.5, -0.25));
    assert_eq!(told.position, Some(Position { x: 10.0, y: -20.0, heading: 3.0 }));
    assert_eq!((told.mode, told.mode_reason.as_str()), (Mode::Driving, "commands are fresh"));
    assert_eq!(told.command_age_ms, Some(12.0));
    // What an old writer knows of cones is told by name since.
    assert_eq!((told.extras, told.faults, told.gear), (vec![], vec![], Gear::Drive));
    assert_eq!(told.video_budget, Bitrate::from_bps(3_000_000));
    assert_eq!(told.drops, [("late".to_owned(), 7)]);
    let [link] = &told.links[..] else { panic!("one link was written") };
    assert_eq!((link.name.as_str(), link.state, link.rtt_ms), ("modem", LinkState::Up, Some(48.0)));
    assert_eq!((link.packets_sent, link.packets_lost), (1000, 10));
}

#[test]
fn an_old_reader_reads_telemetry_of_a_new_writer() {
    let mut told = Telemetry::decode(&old_telemetry()).unwrap();
    told.extras = vec![Extra { name: "cones hit".into(), value: 4.0, unit: String::new() }];
    told.faults = vec![Fault::Steering];
    let bytes = told.encode();
    let old = old_telemetry::root_as_telemetry(&bytes).unwrap();
    assert_eq!((old.sequence(), old.sent_at_ns(), old.motion().speed()), (9, 123, 1.5));
    assert_eq!(
        (old.mode(), old.mode_reason()),
        (old_telemetry::Mode::Driving, "commands are fresh")
    );
    assert_eq!((old.command_age_ms(), old.cones_hit()), (12.0, 0));
    let link = old.links().get(0);
    assert_eq!((link.name(), link.rtt_ms(), link.packets_lost()), ("modem", 48.0, 10));
    assert_eq!(old.drops().unwrap().get(0).count(), 7);
}

/// The other bench of small messages reads this file, whatever the schema has become.
#[test]
fn the_telemetry_that_was_kept_is_what_the_old_writer_writes() {
    assert_eq!(include_bytes!("telemetry.bin")[..], old_telemetry());
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
    assert_eq!(read.session_state, SessionState::Established);
    assert_eq!((read.units_received, read.slices_shown), (40, 38));
    let again = read.encode();
    let old = old_status::root_as_operator_status(&again).unwrap();
    assert_eq!((old.vehicle_name(), old.session_reason()), ("rover", "both ends answer"));
    assert_eq!((old.units_received(), old.slices_shown()), (40, 38));
}

/// What a later version appends, an old reader skips; what it lacks, a new one fills in.
#[test]
fn a_field_that_is_not_known_is_skipped() {
    let mut builder = FlatBufferBuilder::new();
    let name = builder.create_string("modem");
    let table = builder.start_table();
    builder.push_slot_always(old_link::LinkStatus::VT_NAME, name);
    builder.push_slot_always(4 + 2 * 60, 0xABCD_u32);
    let link = builder.end_table(table);
    builder.required(link, old_link::LinkStatus::VT_NAME, "name");
    let link = flatbuffers::WIPOffset::<old_link::LinkStatus<'_>>::new(link.value());
    let motion = old_telemetry::Motion::default();
    let links = builder.create_vector(&[link]);
    let reason = builder.create_string("");
    let table = builder.start_table();
    builder.push_slot_always(old_telemetry::Telemetry::VT_MOTION, motion);
    builder.push_slot_always(old_telemetry::Telemetry::VT_MODE_REASON, reason);
    builder.push_slot_always(old_telemetry::Telemetry::VT_LINKS, links);
    builder.push_slot_always(4 + 2 * 100, 77_u64);
    let root = builder.end_table(table);
    builder.finish(root, Some(old_telemetry::TELEMETRY_IDENTIFIER));
    let read = Telemetry::decode(builder.finished_data()).unwrap();
    assert_eq!((read.links.as_slice(), read.sequence), (&[unknown_link()][..], 0));
    assert_eq!(read.command_age_ms, None);
}

fn unknown_link() -> LinkStatus {
    // As an old writer that knows only the name writes it.
    let mut builder = FlatBufferBuilder::new();
    let name = builder.create_string("modem");
    let arguments = old_link::LinkStatusArgs { name: Some(name), ..Default::default() };
    let link = old_link::LinkStatus::create(&mut builder, &arguments);
    telemetry_with(&mut builder, link).links.remove(0)
}

fn telemetry_with<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    link: flatbuffers::WIPOffset<old_link::LinkStatus<'a>>,
) -> Telemetry {
    let motion = old_telemetry::Motion::default();
    let links = builder.create_vector(&[link]);
    let reason = builder.create_string("");
    let arguments = old_telemetry::TelemetryArgs {
        motion: Some(&motion),
        mode_reason: Some(reason),
        links: Some(links),
        ..Default::default()
    };
    let root = old_telemetry::Telemetry::create(builder, &arguments);
    old_telemetry::finish_telemetry_buffer(builder, root);
    Telemetry::decode(builder.finished_data()).expect("what was written is read")
}

fn old_telemetry() -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let name = Some(builder.create_string("modem"));
    let link = old_link::LinkStatusArgs {
        name,
        state: old_link::LinkState::Up,
        send_rate_bps: 3_000_000,
        received_rate_bps: 90_000,
        rtt_ms: 48.0,
        owd_ms: 27.0,
        loss: 0.01,
        packets_sent: 1000,
        packets_received: 200,
        packets_lost: 10,
        ..Default::default()
    };
    let link = old_link::LinkStatus::create(&mut builder, &link);
    let links = builder.create_vector(&[link]);
    let name = Some(builder.create_string("late"));
    let drop = old_drop::DropCountArgs { name, count: 7 };
    let drop = old_drop::DropCount::create(&mut builder, &drop);
    let drops = builder.create_vector(&[drop]);
    let reason = builder.create_string("commands are fresh");
    let motion = old_telemetry::Motion::new(1.5, -0.25, 0.5, 0.0, 10.0, -20.0, 3.0);
    let arguments = old_telemetry::TelemetryArgs {
        sequence: 9,
        sent_at_ns: 123,
        motion: Some(&motion),
        mode: old_telemetry::Mode::Driving,
        mode_reason: Some(reason),
        command_age_ms: 12.0,
        picture_rate: 60.0,
        video_budget_bps: 3_000_000,
        pictures_captured: 600,
        slices_sent: 3600,
        encode_ms_p50: 1.0,
        encode_ms_p99: 2.0,
        links: Some(links),
        cones_hit: 4,
        drops: Some(drops),
        ..Default::default()
    };
    let root = old_telemetry::Telemetry::create(&mut builder, &arguments);
    old_telemetry::finish_telemetry_buffer(&mut builder, root);
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
    let links: [flatbuffers::WIPOffset<old_link::LinkStatus<'_>>; 0] = [];
    let links = Some(builder.create_vector(&links));
    let drops: [flatbuffers::WIPOffset<old_drop::DropCount<'_>>; 0] = [];
    let drops = Some(builder.create_vector(&drops));
    let emulated: [flatbuffers::WIPOffset<old_status::EmulatedLink<'_>>; 0] = [];
    let emulated_links = Some(builder.create_vector(&emulated));
    let arguments = old_status::OperatorStatusArgs {
        vehicle_name,
        session_state: old_status::SessionState::Established,
        session_reason,
        links,
        units_received: 40,
        slices_shown: 38,
        drops,
        emulated_links,
        ..Default::default()
    };
    let root = old_status::OperatorStatus::create(&mut builder, &arguments);
    old_status::finish_operator_status_buffer(&mut builder, root);
    builder.finished_data().to_vec()
}
