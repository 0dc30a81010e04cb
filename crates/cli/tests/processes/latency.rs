//! Files of latency: a drive writes one for each leg, and `tautline latency` summarizes them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tautline_net::clock::Clock;
use tautline_net::free_port;
use tautline_net::latency::{Leg, files_in, read};

use crate::setup::{Running, init, tautline};
use crate::tries::tried;

#[test]
fn every_leg_of_a_drive_is_written_and_read() {
    tried(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut running = drive(folder.path());
        await_legs(folder.path());
        // The last lines of a recording are written on an orderly end.
        for child in running.0.iter_mut().rev() {
            let asked = Command::new("kill").arg(child.id().to_string()).status();
            assert!(asked.expect("kill").success() && child.wait().expect("it ends").success());
        }
        let told = latency(folder.path(), &FOLDERS);
        assert!(told.status.success(), "{told:?}");
        let table = String::from_utf8_lossy(&told.stdout).into_owned();
        println!("{table}");
        for (leg, who) in [
            ("switchboard-vehicle", "car-1"),
            ("switchboard-operator", "operator-1"),
            ("operator-vehicle", "car-1"),
        ] {
            assert!(table.contains(&format!("\n{leg} {who}")), "{leg}: {table}");
        }
        check_lines(folder.path());
    });
}

/// Checks that every line is plausible: no loss, no negative delay, and a round trip below one
/// second with an error of the one-way delays of at most half of it. Also checks that every leg has
/// lines, the newest of the last minute.
fn check_lines(folder: &Path) {
    let mut counts: BTreeMap<Leg, u64> = BTreeMap::new();
    for file in FOLDERS.iter().flat_map(|of| files_in(&folder.join(of)).expect("a folder")) {
        let mut newest = Duration::ZERO;
        let opened = File::open(&file.1).expect("a file");
        let whole = read(BufReader::new(opened), |number, line| {
            let line = line.unwrap_or_else(|wrong| panic!("{:?}:{number}: {wrong}", file.1));
            let sample = line.sample;
            let round_trip = sample.round_trip();
            assert!(round_trip < Duration::from_secs(1), "{sample:?}");
            assert!(sample.seen_at.is_some() && sample.sent_at <= sample.back_at, "{sample:?}");
            let one_way = sample.one_way.expect("clocks that are compared");
            assert!(one_way.out_nanos >= 0 && one_way.in_nanos >= 0, "{sample:?}");
            // Half of the minimum round trip, five seconds of drift, and rounding.
            assert!(one_way.error <= round_trip / 2 + Duration::from_micros(1_010), "{sample:?}");
            assert_eq!(line.lost, 0, "{sample:?}");
            newest = newest.max(sample.back_at);
            *counts.entry(sample.leg).or_default() += 1;
        });
        whole.expect("a file that can be read");
        let now = Duration::from_nanos(Clock::start().unix_nanos(Clock::start().now()));
        assert!(now.abs_diff(newest) < Duration::from_secs(60), "{newest:?} is no time of today");
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), Leg::ALL, "{counts:?}");
}

#[test]
fn a_malformed_line_is_reported_by_its_number_and_skipped() {
    let folder = tempfile::tempdir().expect("a folder");
    let right = "relay-vehicle,ab,0,100,5,140,0,40,30,10,20,0\n";
    let text = format!("{}\n{right}relay-vehicle,ab,0\n{right}", tautline_net::latency::HEAD);
    fs::write(folder.path().join("latency-000001.csv"), text).expect("room");
    let told = latency(folder.path(), &["--json", "."]);
    assert_eq!(told.status.code(), Some(1));
    let words = String::from_utf8_lossy(&told.stderr).into_owned();
    let expected = "tautline: malformed lines left out: 1; the first is ./latency-000001.csv:3: it has 3 fields, not 12\n";
    assert_eq!(words, expected);
    assert_eq!(rows(&told).iter().map(|row| row["count"].clone()).collect::<Vec<_>>(), [2, 2, 2]);
    let none = latency(folder.path(), &["nowhere.csv"]);
    let words = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(words.starts_with("tautline: cannot read nowhere.csv: "), "{words}");
}

/// Starts switchboard, relay, vehicle and operator; those that measure latency write it into
/// folders below `folder`.
fn drive(folder: &Path) -> Running {
    let [board, relays @ ..] =
        [(); 3].map(|()| free_port(Ipv4Addr::LOCALHOST.into()).expect("a port"));
    let arguments = ["mine", "--switchboard", &board.to_string(), "--relay", "127.0.0.1"];
    assert!(init(folder, &arguments).status.success());
    let settings = folder.join("mine/switchboard/switchboard.toml");
    let text = fs::read_to_string(&settings).expect("settings");
    let usual = [7444, 7445].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let other = usual
        .iter()
        .zip(&relays)
        .fold(text, |text, (usual, other)| text.replace(&usual.to_string(), &other.to_string()));
    fs::write(&settings, other).expect("room");
    let mut running = Running(Vec::new());
    let mut start = |role: &str, more: &[&str]| {
        let mut command = tautline(folder);
        command.args([role, "--config", &format!("mine/{role}/{role}.toml")]).args(more);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        running.0.push(command.spawn().expect("our own binary"));
    };
    start("switchboard", &["--latency", "switchboard"]);
    let [one, other] = relays.map(|address| address.to_string());
    start("relay", &["--listen", &one, "--listen", &other, "--latency", "relay"]);
    start("vehicle", &["--link", "127.0.0.1:0"]);
    start(
        "operator",
        &["--record", "operator", "--console", "127.0.0.1:0", "--link", "127.0.0.1:0"],
    );
    running
}

/// Waits until the files of each leg have some samples.
fn await_legs(folder: &Path) {
    let clock = Clock::start();
    let begun = clock.now();
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let mut words = vec!["--json"];
        words.extend(FOLDERS.iter().filter(|of| folder.join(of).is_dir()));
        let told = latency(folder, &words);
        let rows = rows(&told);
        let is_there = |leg: &Leg| {
            let of = |row: &serde_json::Value| {
                row["leg"] == leg.name() && row["count"].as_u64() >= Some(5)
            };
            rows.iter().any(of)
        };
        if Leg::ALL.iter().all(is_there) {
            return;
        }
        assert!(clock.now().since(begun) < Duration::from_secs(40), "not every leg: {told:?}");
    }
}

fn latency(folder: &Path, words: &[&str]) -> Output {
    tautline(folder).arg("latency").args(words).output().expect("our own binary")
}

fn rows(told: &Output) -> Vec<serde_json::Value> {
    let lines = String::from_utf8_lossy(&told.stdout).into_owned();
    lines.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

const FOLDERS: [&str; 3] = ["switchboard", "relay", "operator"];
