//! What this crate writes is read in Python and in C++, by generated code.
//!
//! Each is skipped, by name, where its tool or library is not installed: python3 with the module
//! flatbuffers, g++ with the headers of FlatBuffers of the version that generated the code. The
//! console's own tests read the same messages in TypeScript.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use tautline_message::point_cloud::Point;
use tautline_message::{Command, Gear, PointCloud, Telemetry, schema};
use tautline_units::Instant;

#[test]
fn python_reads_what_is_written() {
    let runs = |arguments: &[&str]| {
        let python = Process::new("python3").args(arguments).stderr(Stdio::null()).status();
        python.is_ok_and(|status| status.success())
    };
    if !runs(&["-c", "import flatbuffers"]) {
        eprintln!("skipped: python3 with the module flatbuffers is not installed");
        return;
    }
    let folder = messages();
    let mut python = Process::new("python3");
    python.arg("-B").arg(readers().join("python/read.py")).arg(folder.path());
    assert_eq!(output(python), EXPECTED);
}

#[test]
fn cpp_reads_what_is_written() {
    let Some(headers) = headers() else {
        eprintln!("skipped: g++ or the headers of FlatBuffers 25.12.19 are not installed");
        return;
    };
    let folder = messages();
    let program = folder.path().join("read");
    let mut compiler = Process::new("g++");
    compiler.args(["-std=c++17", "-O0", "-I"]).arg(headers).arg("-I").arg(readers().join("cpp"));
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

/// A folder with a command, telemetry and a cloud.
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
        refresh_strips: 0,
        strips: Default::default(),
        pass_over: 0,
    };
    let telemetry = Telemetry::decode(include_bytes!("evolution/telemetry.bin")).unwrap();
    let points: Vec<Point> =
        (0..100u8).map(|at| Point { x: at.into(), y: 0.5, z: -1.0, intensity: 2.0 }).collect();
    let mut cloud = PointCloud::new(Instant::from_millis(1), "lidar");
    cloud.set_points(&points);
    let write = |name: &str, bytes: Vec<u8>| fs::write(folder.path().join(name), bytes).unwrap();
    write("command.bin", command.encode());
    write("telemetry.bin", telemetry.encode());
    write("cloud.bin", cloud.encode());
    folder
}

/// Where the headers are: the system's, or those that come with the crate that holds flatc.
fn headers() -> Option<PathBuf> {
    Process::new("g++").arg("--version").output().ok()?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok().into_iter().flatten().flatten();
    let mut places = vec![PathBuf::from("/usr/include"), PathBuf::from("/usr/local/include")];
    places.extend(registries.map(|entry| entry.path().join(FLATC).join("flatbuffers/include")));
    places.into_iter().find(|place| {
        fs::read_to_string(place.join("flatbuffers/base.h"))
            .is_ok_and(|text| VERSION.iter().all(|line| text.contains(line)))
    })
}

fn readers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("readers")
}

fn output(mut process: Process) -> String {
    let output = process.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{process:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

const EXPECTED: &str = "command 77 -0.5 1\n\
    telemetry 9 1.5 commands are fresh\n\
    link modem 48 1000\n\
    cloud 100 5100\n";
const FLATC: &str = "flatc-fork-0.6.0";
const VERSION: [&str; 3] = [
    "#define FLATBUFFERS_VERSION_MAJOR 25",
    "#define FLATBUFFERS_VERSION_MINOR 12",
    "#define FLATBUFFERS_VERSION_REVISION 19",
];
