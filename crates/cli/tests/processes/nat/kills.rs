//! Relays and the switchboard killed, suspended and cut off while pictures arrive: a second relay
//! takes over within a second, and session and lease stay the same.
//!
//! Requires root and `nft`; `make kills` runs these tests, each fault 20 times, or `KILLS` times.

use std::time::Duration;

use crate::nat::network::{Kind, Network, SERVERS};
use crate::nat::rig::{Rig, Setup};

/// Fault of a relay or the switchboard: killed, suspended, or cut off from the network.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Killed,
    Stopped,
    CutOff,
}

const FAULTS: [Fault; 3] = [Fault::Killed, Fault::Stopped, Fault::CutOff];

impl Fault {
    fn begin(self, rig: &mut Rig, place: &str, name: &str) {
        match self {
            Self::Killed => rig.kill(name),
            Self::Stopped => rig.signal(name, "STOP"),
            Self::CutOff => rig.network().cut(place, true),
        }
    }

    fn end(self, rig: &mut Rig, place: &str, name: &str) {
        match self {
            Self::Killed => rig.restart(place, name),
            Self::Stopped => rig.signal(name, "CONT"),
            Self::CutOff => rig.network().cut(place, false),
        }
    }
}

#[test]
#[ignore = "needs root and nft; make kills runs it"]
fn a_second_relay_takes_over_within_a_second() {
    let mut rig = start();
    for fault in FAULTS {
        let mut gaps = Vec::new();
        for round in 0..rounds() {
            both_are_warm(&rig);
            let carrier = carrier(&rig);
            let gap = rig.longest_gap_while(Duration::from_millis(2_500), |rig| {
                fault.begin(rig, carrier, carrier);
            });
            println!("{fault:?} {round}: {carrier} carried, {gap:?} without a picture");
            fault.end(&mut rig, carrier, carrier);
            gaps.push(gap);
        }
        gaps.sort_unstable();
        let [middle, longest] = [gaps[gaps.len() / 2], gaps[gaps.len() - 1]];
        println!("a relay {fault:?}, {} times: median {middle:?}, longest {longest:?}", gaps.len());
        assert!(longest < TAKEOVER_MAX, "{fault:?}: {longest:?}: {}", rig.words());
    }
    is_one_session(&rig);
}

#[test]
#[ignore = "needs root and nft; make kills runs it"]
fn a_failing_switchboard_ends_no_session_and_keeps_the_lease() {
    let mut rig = start();
    rig.start_other();
    let before = lease(&rig);
    for fault in FAULTS {
        let mut longest = Duration::ZERO;
        for round in 0..rounds() {
            // Longer than both ends and the switchboard wait for each other's messages.
            let gap = rig.longest_gap_while(Duration::from_millis(3_600), |rig| {
                fault.begin(rig, "w", "switchboard");
            });
            fault.end(&mut rig, "w", "switchboard");
            let after = lease(&rig);
            println!("{fault:?} {round}: {gap:?} without a picture; {after}");
            assert_eq!(after, before, "{fault:?} {round}: {}", rig.words());
            longest = longest.max(gap);
        }
        println!(
            "the switchboard {fault:?}, {} times: longest without a picture {longest:?}",
            rounds()
        );
        // The switchboard has no part in the traffic; the test machine has two processors.
        assert!(longest < UNDISTURBED_MAX, "{fault:?}: {longest:?}: {}", rig.words());
    }
    is_one_session(&rig);
}

/// Starts a rig whose ends have no direct path.
fn start() -> Rig {
    let boxes = [Kind::Ours("port", "port", None)];
    let mut network = Network::new([&boxes, &boxes]);
    network.ready();
    let rig = Rig::start_with(network, SERVERS[0], &Setup { relays: 2, ..Setup::default() });
    assert!(rig.meets_within(Duration::from_secs(4)).is_some(), "{}", rig.words());
    rig
}

/// Waits until both relays forward datagrams, of which those of a standby link are keep-alives.
fn both_are_warm(rig: &Rig) {
    for _ in 0..100 {
        if forwarded(rig).iter().all(|datagrams| *datagrams > 2.0) {
            return;
        }
    }
    panic!("a relay does not forward: {}", rig.words());
}

/// Returns the place of the relay that carries the pictures: the one that forwards more.
fn carrier(rig: &Rig) -> &'static str {
    let [first, second] = forwarded(rig);
    if first > second { "relay0" } else { "relay1" }
}

/// Returns how many datagrams each relay forwards within 0.4 s.
fn forwarded(rig: &Rig) -> [f64; 2] {
    let count =
        || ["relay0", "relay1"].map(|place| rig.figure(place, 9103, "relay_forwarded_total "));
    let before = count();
    std::thread::sleep(Duration::from_millis(400));
    let after = count();
    [after[0] - before[0], after[1] - before[1]]
}

/// Waits until all are connected to the switchboard, and returns who drives there under which
/// epoch.
fn lease(rig: &Rig) -> String {
    let mut who = String::new();
    for _ in 0..200 {
        who = rig.who();
        let there = who.lines().filter(|line| line.contains("connected from")).count();
        if there == 3 && who.contains("driven by") {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let line = who.lines().find(|line| line.starts_with("vehicle")).unwrap_or_default();
    let word = |after: &str| {
        let rest = line.split_once(after).map_or("nobody", |(_, rest)| rest);
        rest.split_whitespace().next().unwrap_or_default().to_owned()
    };
    format!("driven by {}, epoch {}", word("driven by "), word("epoch "))
}

/// Asserts that there has been a single session and a single introduction, of the first operator
/// only.
fn is_one_session(rig: &Rig) {
    for (name, words, times) in [
        ("vehicle", "session established", 1),
        ("operator", "session established", 1),
        ("vehicle", "introduced", 1),
        ("other", "introduced", 0),
    ] {
        assert_eq!(rig.count(name, words), times, "{name}: {words}: {}", rig.words());
    }
}

fn rounds() -> usize {
    std::env::var("KILLS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20)
}

const TAKEOVER_MAX: Duration = Duration::from_secs(1);
const UNDISTURBED_MAX: Duration = Duration::from_millis(500);
