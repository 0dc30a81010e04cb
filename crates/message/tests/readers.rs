//! Generated code in Python and in C++ reads messages that this crate writes.
//!
//! The tests generate it with the system's flatc, which `./setup flatbuffers` installs. Its version
//! differs from that of the committed Rust; the encoding is the same. The console's own tests read
//! the same messages in TypeScript.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::Path;
use std::process::Command as Process;

use tautline_guard::{Gear, Twist};
use tautline_message::point_cloud::Point;
use tautline_message::snapshot::{End, ProcessStats, Value};
use tautline_message::{Command, PointCloud, Snapshot, Telemetry, schema};
use tautline_units::Instant;

#[test]
#[ignore = "needs ./setup flatbuffers; make unit runs it"]
fn python_reads_what_is_written() {
    let folder = messages();
    generate(&["--python"], folder.path());
    // Debian's Python, for which `./setup flatbuffers` installs the module.
    let mut python = Process::new("/usr/bin/python3");
    python.env("PYTHONPATH", folder.path()).arg("-B");
    python.arg(root().join("readers/read.py")).arg(folder.path());
    assert_eq!(output(python), EXPECTED);
}

#[test]
#[ignore = "needs ./setup flatbuffers; make unit runs it"]
fn cpp_reads_what_is_written() {
    let folder = messages();
    generate(&["--cpp", "--scoped-enums"], folder.path());
    let program = folder.path().join("read");
    let mut compiler = Process::new("g++");
    compiler.args(["-std=c++17", "-O0", "-I"]).arg(folder.path());
    compiler.arg(root().join("readers/read.cpp")).arg("-o").arg(&program);
    assert_eq!(output(compiler), "");
    let mut reader = Process::new(program);
    reader.arg(folder.path());
    assert_eq!(output(reader), EXPECTED);
}

#[test]
fn every_schema_in_binary_says_that_it_is_one() {
    for schema in schema::ALL {
        assert_eq!(schema.bytes.get(4..8), Some(&b"BFBS"[..]), "{}", schema.name);
        let name = schema.name.as_bytes();
        assert!(schema.bytes.windows(name.len()).any(|part| part == name), "{}", schema.name);
    }
}

/// Returns a folder with a command, telemetry and a cloud.
fn messages() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let command = Command {
        sequence: 77,
        sent_at: Instant::from_millis(5),
        steering: -0.5,
        throttle: 0.0,
        brake: 1.0,
        gear: Gear::Drive,
        emergency_stop: true,
        twist: Twist { forward: 0.5, sideways: -0.25, yaw_rate: 1.0 },
        ..Command::default()
    };
    let telemetry = Telemetry::decode(include_bytes!("evolution/telemetry.bin")).unwrap();
    let points: Vec<Point> =
        (0..100u8).map(|at| Point { x: at.into(), y: 0.5, z: -1.0, intensity: 2.0 }).collect();
    let mut cloud = PointCloud::new(Instant::from_millis(1), "lidar");
    cloud.set_points(&points);
    let write = |name: &str, bytes: Vec<u8>| fs::write(folder.path().join(name), bytes).unwrap();
    write("command.bin", command.encode());
    write("telemetry.bin", telemetry.encode());
    let values = vec![Value::of("battery", 48.5, "V")];
    let process = Some(ProcessStats { values, drops: Vec::new() });
    write("snapshot.bin", Snapshot { process, ..Snapshot::empty(End::Vehicle) }.encode());
    write("cloud.bin", cloud.encode());
    folder
}

/// Writes flatc's code for every schema to `folder`.
fn generate(options: &[&str], folder: &Path) {
    for schema in fs::read_dir(root().join("schemas")).unwrap() {
        let mut flatc = Process::new("flatc");
        flatc.args(options).arg("-o").arg(folder).arg(schema.unwrap().path());
        assert_eq!(output(flatc), "");
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn output(mut process: Process) -> String {
    let output = process.output();
    let output = output.unwrap_or_else(|error| panic!("{process:?}: {error}: ./setup flatbuffers"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{process:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

const EXPECTED: &str = "command 77 -0.5 1\n\
    twist 0.5 -0.25 1\n\
    telemetry 9 399 commands are fresh\n\
    value battery 48.5 V\n\
    cloud 100 5100\n";
