//! Generated code in Python and in C++ reads messages that this crate writes.
//!
//! `./setup flatbuffers` installs its dependencies next to the build, in the version that generated
//! the code; `make unit` does so and runs these tests. The console's own tests read the same
//! messages in TypeScript.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use tautline_message::point_cloud::Point;
use tautline_message::snapshot::{End, ProcessStats, Value};
use tautline_message::{Command, Gear, PointCloud, Snapshot, Telemetry, schema};
use tautline_units::Instant;

#[test]
#[ignore = "needs ./setup flatbuffers; make unit runs it"]
fn python_reads_what_is_written() {
    let folder = messages();
    let mut python = Process::new(python());
    python.arg("-B").arg(readers().join("python/read.py")).arg(folder.path());
    assert_eq!(output(python), EXPECTED);
}

#[test]
#[ignore = "needs ./setup flatbuffers; make unit runs it"]
fn cpp_reads_what_is_written() {
    let folder = messages();
    let program = folder.path().join("read");
    let mut compiler = Process::new("g++");
    compiler.args(["-std=c++17", "-O0", "-I"]).arg(headers()).arg("-I").arg(readers().join("cpp"));
    compiler.arg(readers().join("cpp/read.cpp")).arg("-o").arg(&program);
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

/// Returns the Python for which `./setup flatbuffers` installs the module.
fn python() -> PathBuf {
    let build = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    build.join("python/bin/python3")
}

/// Returns the headers from the crate that contains flatc, or the system's.
fn headers() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home =
        home.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo"));
    let folders = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    // The build metadata follows the version: flatc-fork-0.6.0+25.12.19-..
    let flatcs = folders(home.join("registry/src"))
        .flat_map(|registry| folders(registry.path()))
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(FLATC))
        .map(|entry| entry.path().join("flatbuffers/include"));
    let mut places = flatcs.chain(["/usr/include".into(), "/usr/local/include".into()]);
    let place = places.find(|place| {
        fs::read_to_string(place.join("flatbuffers/base.h"))
            .is_ok_and(|text| VERSION.iter().all(|line| text.contains(line)))
    });
    place.expect("no headers of FlatBuffers 25.12.19: ./setup flatbuffers")
}

fn readers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("readers")
}

fn output(mut process: Process) -> String {
    let output = process.output();
    let output = output.unwrap_or_else(|error| panic!("{process:?}: {error}: ./setup flatbuffers"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{process:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

const EXPECTED: &str = "command 77 -0.5 1\n\
    telemetry 9 1.5 commands are fresh\n\
    value battery 48.5 V\n\
    cloud 100 5100\n";
const FLATC: &str = "flatc-fork-0.6.0";
const VERSION: [&str; 3] = [
    "#define FLATBUFFERS_VERSION_MAJOR 25",
    "#define FLATBUFFERS_VERSION_MINOR 12",
    "#define FLATBUFFERS_VERSION_REVISION 19",
];
