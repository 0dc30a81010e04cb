//! Packing and unpacking agree with cantools, on DBC files and a recording of others.
//!
//! `make can` runs this.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tautline_can::{Database, Id, Message};

/// A signal of a message as cantools has it: its bits, and its value.
struct Expected {
    name: String,
    raw: u64,
    physical: f64,
}

#[test]
#[ignore = "needs cantools, and the files in ../shared/data"]
fn random_values_of_every_message_have_the_bytes_of_cantools() {
    for dbc in dbcs() {
        let database = database(&dbc);
        let (mut messages, mut frames, mut overlapping) = (0, 0, Vec::new());
        for line in ask(&["random", dbc.to_str().unwrap()]) {
            if let Some(name) = line["overlaps"].as_str() {
                overlapping.push(name.to_owned());
                continue;
            }
            let message = of_name(&database, line["message"].as_str().unwrap());
            let bytes = bytes(&line["data"]);
            let expected = signals(&line);
            let raws: Vec<(&str, u64)> = expected.iter().map(|it| (&*it.name, it.raw)).collect();
            assert_eq!(message.encode(&raws), bytes, "{}: {raws:?}", message.name());
            for it in &expected {
                let signal = message.signals().iter().find(|its| its.name() == it.name).unwrap();
                let is_exact = signal.is_float() || signal.length() <= 32;
                assert!(!is_exact || signal.raw(it.physical) == it.raw, "{}", it.name);
            }
            assert_decoded(message, &bytes, &expected);
            messages += usize::from(line["first"] == true);
            frames += 1;
        }
        assert_eq!(messages + overlapping.len(), database.messages().len());
        assert!(overlapping.len() <= 1, "signals share bits in {overlapping:?}");
        let dbc = dbc.display();
        println!("{dbc}: {messages} messages, {frames} frames equal; not {overlapping:?}");
    }
}

#[test]
#[ignore = "needs cantools, and the files in ../shared/data"]
fn a_recording_of_a_car_decodes_as_by_cantools() {
    let dbc = data().join("dbc/_toyota_2017.dbc");
    let recording = data().join("comma2k19_rav4.candump.log.gz");
    let database = database(&dbc);
    let by_id: HashMap<Id, &Message> = database.messages().iter().map(|it| (it.id(), it)).collect();
    let asked = ask(&["recording", dbc.to_str().unwrap(), recording.to_str().unwrap()]);
    for line in &asked {
        let id = Id::Standard(line["id"].as_u64().unwrap() as u16);
        assert_decoded(by_id[&id], &bytes(&line["data"]), &signals(line));
    }
    assert!(asked.len() > 10_000, "{}", asked.len());
    println!("{} frames decode as by cantools", asked.len());
}

fn assert_decoded(message: &Message, data: &[u8], expected: &[Expected]) {
    let decoded: HashMap<&str, (u64, f64)> = message
        .decode(data)
        .map(|(signal, raw)| (signal.name(), (raw, signal.physical(raw))))
        .collect();
    assert_eq!(decoded.len(), expected.len(), "{}", message.name());
    for Expected { name, raw, physical } in expected {
        let (its_raw, its_physical) = decoded[&**name];
        assert_eq!(its_raw, *raw, "{} {name}", message.name());
        let tolerance = physical.abs() * 1e-12 + 1e-12;
        let is_near = (its_physical - physical).abs() <= tolerance || physical.is_nan();
        assert!(is_near, "{} {name}: {its_physical}, not {physical}", message.name());
    }
}

/// Runs the script and returns its lines.
fn ask(arguments: &[&str]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cantools/reference.py");
    let python = std::env::var("CANTOOLS_PYTHON").unwrap_or_else(|_| "python3".into());
    let asked = Command::new(python).arg("-B").arg(script).args(arguments).output().unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let lines = String::from_utf8(asked.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn signals(line: &Value) -> Vec<Expected> {
    let signals = line["signals"].as_array().unwrap().iter();
    let signals = signals.map(|it| Expected {
        name: it[0].as_str().unwrap().to_owned(),
        raw: it[1].as_u64().unwrap(),
        physical: it[2].as_f64().unwrap_or(f64::NAN),
    });
    signals.collect()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..][..2], 16).unwrap()).collect()
}

fn of_name<'a>(database: &'a Database, name: &str) -> &'a Message {
    database.messages().iter().find(|message| message.name() == name).unwrap()
}

fn database(dbc: &Path) -> Database {
    Database::read(&std::fs::read(dbc).unwrap()).unwrap()
}

/// Returns the recorded DBC files, and those of this repository.
fn dbcs() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ours = ["car", "rover", "torque"].map(|it| format!("../../adapters/can/{it}.dbc"));
    let mut dbcs = vec![own.join("tests/cantools/formats.dbc")];
    dbcs.extend(ours.map(|dbc| own.join(dbc)));
    let others = std::fs::read_dir(data().join("dbc")).unwrap();
    dbcs.extend(others.map(|entry| entry.unwrap().path()));
    dbcs.sort();
    dbcs
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/can")
}
