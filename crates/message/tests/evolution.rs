//! Old readers read messages of new writers, and the reverse.
//!
//! The folder `evolution` has the schemas of the first version, and a message of each that its
//! writer wrote. The old reader is flatc: it prints a message as JSON by an old schema. `./setup
//! flatbuffers` installs it. `generate/` also makes flatc check that the present schemas are later
//! versions of those.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::Path;
use std::process::Command as Process;

use serde_json::json;
use tautline_guard::frame::Status;
use tautline_guard::{Gear, Twist, frame};
use tautline_message::snapshot::{End, ProcessStats, Value};
use tautline_message::{
    Command, LinkState, OperatorStatus, SessionState, Sight, Snapshot, StatusFrame, Telemetry,
};
use tautline_units::Instant;

#[test]
fn a_new_reader_reads_telemetry_of_an_old_writer() {
    let told = Telemetry::decode(TELEMETRY).unwrap();
    assert_eq!((told.sequence, told.sent_at), (9, Instant::from_nanos(123)));
    let status = told.status().unwrap();
    let machine = status.fresh_machine().unwrap();
    assert_eq!((machine.speed, machine.steering_angle, machine.gear), (1.5, -0.25, Gear::Reverse));
    assert_eq!(status.tick.get(), 70);
    assert_eq!(told.mode_reason.as_deref(), Some("commands are fresh"));
    assert_eq!(told.source_trouble, None);
    assert!(told.sight.contains(Sight::Unchecked));
}

/// Values that a later guard appends to its status reach a later reader through this build.
#[test]
fn a_status_goes_through_with_what_this_build_does_not_know() {
    let telemetry = Telemetry::decode(TELEMETRY).unwrap();
    let mut bytes = telemetry.status.as_ref().unwrap().bytes().to_vec();
    bytes.extend(2.5_f32.to_be_bytes());
    let length = (bytes.len() as u16).to_be_bytes();
    bytes[..2].copy_from_slice(&length);
    assert!(StatusFrame::read(&bytes).is_err(), "the CRC is of the shorter one");
    reseal(&mut bytes);
    let status = Some(StatusFrame::read(&bytes).unwrap());
    let read = Telemetry::decode(&Telemetry { status, ..telemetry }.encode()).unwrap();
    assert_eq!(read.status.unwrap().bytes(), bytes);
}

#[test]
fn a_new_reader_reads_a_snapshot_of_an_old_writer() {
    let read = Snapshot::decode(SNAPSHOT).unwrap();
    assert_eq!((read.end, read.taken_at), (End::Vehicle, Instant::from_nanos(7)));
    let [link] = read.links() else { panic!("one link was written") };
    assert_eq!((link.name.as_str(), link.state, link.rtt_ms), ("modem", LinkState::Up, Some(48.0)));
    assert_eq!((link.packets.sent, link.packets.lost, link.loss_out), (1000, 10, None));
    assert_eq!(read.drops().collect::<Vec<_>>(), [("late", 7)]);
}

#[test]
fn a_new_reader_reads_a_command_of_an_old_writer() {
    let read = Command::decode(COMMAND).unwrap();
    assert_eq!((read.sequence, read.steering, read.gear), (5, -0.5, Gear::Reverse));
    assert!(read.emergency_stop);
    assert_eq!(read.twist, Twist::ZERO);
}

#[test]
fn a_new_reader_reads_operator_status_of_an_old_writer() {
    let read = OperatorStatus::decode(OPERATOR_STATUS).unwrap();
    assert_eq!((read.session_state, read.unix_ns), (SessionState::Established, 40));
}

#[test]
#[ignore = "needs ./setup flatbuffers; make unit runs it"]
fn an_old_reader_reads_telemetry_of_a_new_writer() {
    let mut telemetry = Telemetry::decode(TELEMETRY).unwrap();
    let status = Status { speed_bound: 7.5, ..*telemetry.status().unwrap() };
    telemetry.status = Some(StatusFrame::of(&status));
    let old = as_old("telemetry", &telemetry.encode());
    assert_eq!((&old["sequence"], &old["sent_at_ns"]), (&json!(9), &json!(123)));
    assert_eq!((&old["mode_reason"], &old["sight"]), (&json!("commands are fresh"), &json!(64)));
    let bytes: Vec<u8> = serde_json::from_value(old["status"].clone()).unwrap();
    let (read, _) = frame::decode::<Status>(&bytes).unwrap();
    assert_eq!((read.speed_bound, read.tick), (7.5, status.tick));
}

#[test]
#[ignore = "needs ./setup flatbuffers; make unit runs it"]
fn an_old_reader_reads_a_snapshot_of_a_new_writer() {
    let values = vec![Value::of("battery", 48.5, "V")];
    let process = Some(ProcessStats { values, drops: Vec::new() });
    let snapshot = Snapshot { process, ..Snapshot::decode(SNAPSHOT).unwrap() };
    let old = as_old("snapshot", &snapshot.encode());
    let link = &old["session"]["links"][0];
    assert_eq!((&link["name"], &link["rtt_ms"]), (&json!("modem"), &json!(48.0)));
    assert_eq!(link["packets_lost"], 10);
    let value = json!({ "name": "battery", "number": 48.5, "unit": "V", "total": false });
    assert_eq!(old["process"]["values"], json!([value]));
}

#[test]
#[ignore = "needs ./setup flatbuffers; make unit runs it"]
fn an_old_reader_reads_a_command_of_a_new_writer() {
    let twist = Twist { forward: 0.5, ..Twist::ZERO };
    let command = Command { twist, ..Command::decode(COMMAND).unwrap() };
    let old = as_old("command", &command.encode());
    let controls = &old["controls"];
    assert_eq!((&controls["sequence"], &controls["steering"]), (&json!(5), &json!(-0.5)));
    assert_eq!(controls["emergency_stop"], true);
}

#[test]
#[ignore = "needs ./setup flatbuffers; make unit runs it"]
fn an_old_reader_reads_operator_status_of_a_new_writer() {
    let status = OperatorStatus::decode(OPERATOR_STATUS).unwrap();
    let old = as_old("operator_status", &status.encode());
    assert_eq!((&old["vehicle_name"], &old["unix_ns"]), (&json!("rover"), &json!(40)));
    assert_eq!(old["session_state"], "Established");
    assert_eq!(old["session_reason"], "both ends answer");
}

/// Sets the CRC of a frame that was changed: CRC-32/P4 over all other bytes.
fn reseal(bytes: &mut [u8]) {
    let rest = bytes[..8].iter().chain(&bytes[12..]);
    let crc = !rest.fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xC8DF_352F * (crc & 1)))
    });
    bytes[8..12].copy_from_slice(&crc.to_be_bytes());
}

/// Returns what flatc reads from a message by the first version's schema.
fn as_old(schema: &str, message: &[u8]) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("message.bin");
    fs::write(&written, message).unwrap();
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/evolution/schemas");
    let mut flatc = Process::new("flatc");
    flatc.args(["--json", "--strict-json", "--defaults-json", "-o"]).arg(folder.path());
    flatc.arg(schemas.join(schema).with_extension("fbs")).arg("--").arg(&written);
    let output = flatc.output().expect("./setup flatbuffers");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let read = fs::read(folder.path().join("message.json")).unwrap();
    serde_json::from_slice(&read).unwrap()
}

/// The benchmark of small messages reads this file too, so that later schemas do not change it.
const TELEMETRY: &[u8] = include_bytes!("evolution/telemetry.bin");
const SNAPSHOT: &[u8] = include_bytes!("evolution/snapshot.bin");
const COMMAND: &[u8] = include_bytes!("evolution/command.bin");
const OPERATOR_STATUS: &[u8] = include_bytes!("evolution/operator_status.bin");
