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
use tautline_message::snapshot::{End, ProcessStats, Value};
use tautline_message::{
    Command, Fault, Gear, LinkState, Mode, OperatorStatus, Position, SessionState, Snapshot,
    Telemetry,
};
use tautline_units::Instant;

#[test]
fn a_new_reader_reads_telemetry_of_an_old_writer() {
    let told = Telemetry::decode(TELEMETRY).unwrap();
    assert_eq!((told.sequence, told.sent_at), (9, Instant::from_nanos(123)));
    assert_eq!((told.speed, told.steering_angle), (1.5, -0.25));
    assert_eq!(told.position, Some(Position { x: 10.0, y: -20.0, heading: 3.0 }));
    assert_eq!((told.mode, told.mode_reason.as_str()), (Mode::Driving, "commands are fresh"));
    assert_eq!((told.faults, told.gear), (vec![], Gear::Reverse));
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
    telemetry.faults = vec![Fault::Steering];
    let old = as_old("telemetry", &telemetry.encode());
    assert_eq!((&old["sequence"], &old["sent_at_ns"]), (&json!(9), &json!(123)));
    assert_eq!((&old["mode"], &old["motion"]["speed"]), (&json!("Driving"), &json!(1.5)));
    assert_eq!(old["mode_reason"], "commands are fresh");
    assert_eq!(old["faults"], json!(["Steering"]));
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
    let old = as_old("command", &Command::decode(COMMAND).unwrap().encode());
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
