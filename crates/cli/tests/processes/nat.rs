//! Both ends behind NATs of every behaviour, in network namespaces. Ends that can meet without a
//! relay drive within two seconds of the introduction; others report the reason.
//!
//! Requires root, and `nft` for the kernel's own NATs. `cargo test` counts these tests as ignored;
//! `make nat` runs them, or reports that it cannot.
#![allow(clippy::unwrap_used, reason = "a network that cannot be set up has failed")]

mod kills;
mod links;
mod network;
mod rig;
mod tls;
mod translator;

use std::time::Duration;

use self::network::{Kind, Network, SERVERS, inside};
use self::rig::{Rig, Setup};

const PARTS: [&str; 3] = ["nothing", "address", "port"];

#[test]
#[ignore = "runs inside a namespace, for the others"]
fn inside_translator() {
    translator::translate();
}

#[test]
#[ignore = "needs root; make nat runs it"]
fn every_box_is_proven_to_be_what_it_is_called() {
    let named = |part: &str| match part {
        "nothing" => "endpoint-independent",
        "address" => "address-dependent",
        _ => "address-and-port-dependent",
    };
    for mapping in PARTS {
        for filtering in PARTS {
            let found = behaviour(&[Kind::Ours(mapping, filtering, None)]);
            let expected = (named(mapping).to_owned(), named(filtering).to_owned());
            println!("{mapping:8}{filtering:8} mapping {}, filtering {}", found.0, found.1);
            assert_eq!(found, expected);
        }
    }
}

#[test]
#[ignore = "needs root and nft; make nat runs it"]
fn the_kernels_boxes_are_proven_too() {
    let strict = "address-and-port-dependent".to_owned();
    let found = behaviour(&[Kind::Masquerade]);
    assert_eq!(found, ("endpoint-independent".to_owned(), strict.clone()));
    assert_eq!(behaviour(&[Kind::Random]), (strict.clone(), strict.clone()));
    // A carrier's NAT before a home's.
    let found = behaviour(&[Kind::Masquerade, Kind::Ours("nothing", "nothing", None)]);
    assert_eq!(found, ("endpoint-independent".to_owned(), strict));
}

#[test]
#[ignore = "needs root; make nat runs it"]
fn all_pairs_that_can_meet_drive_within_two_seconds() {
    let only: Option<usize> = std::env::var("NAT_PAIR").ok().and_then(|n| n.parse().ok());
    let every: usize = std::env::var("NAT_EVERY").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let boxes: Vec<(&str, &str)> =
        PARTS.iter().flat_map(|mapping| PARTS.map(|filtering| (*mapping, filtering))).collect();
    let (mut count, mut slowest) = ([0; 2], Duration::ZERO);
    let pairs =
        boxes.iter().flat_map(|vehicle| boxes.iter().map(move |operator| (*vehicle, *operator)));
    for (index, (vehicle, operator)) in pairs.enumerate() {
        if only.is_some_and(|only| only != index) || index % every != 0 {
            continue;
        }
        let kinds =
            [vehicle, operator].map(|(mapping, filtering)| [Kind::Ours(mapping, filtering, None)]);
        let met = meet(Network::new([&kinds[0], &kinds[1]]), SERVERS[0]);
        let told = format!("{index}: {vehicle:?} and {operator:?}: {met:?}");
        println!("{told}");
        assert_eq!(met.is_some(), can_meet(vehicle, operator), "{told}");
        slowest = slowest.max(met.unwrap_or_default());
        count[usize::from(met.is_some())] += 1;
    }
    println!("{} pairs met, the slowest after {slowest:?}; {} need a relay", count[1], count[0]);
    assert!(slowest < DRIVES_WITHIN, "{slowest:?}");
}

#[test]
#[ignore = "needs root and nft; make nat runs it"]
fn a_home_line_and_a_carriers_network_meet() {
    let carrier = Kind::Ours("nothing", "port", None);
    let layers = [Kind::Masquerade, carrier];
    for (vehicle, operator) in [
        (&layers[..], &[Kind::Masquerade][..]),
        (&layers, &layers),
        (&[Kind::Masquerade], &[Kind::Masquerade]),
        (&[Kind::Random], &[Kind::Ours("nothing", "address", None)]),
        (&[], &[Kind::Random]),
        (&layers, &[]),
    ] {
        let met = meet(Network::new([vehicle, operator]), SERVERS[0]);
        println!("{vehicle:?} and {operator:?}: {met:?}");
        assert!(met.is_some_and(|met| met < DRIVES_WITHIN), "{vehicle:?} {operator:?}: {met:?}");
    }
}

#[test]
#[ignore = "needs root and nft; make nat runs it"]
fn two_ends_without_ipv4_meet_through_their_firewalls() {
    let met = meet(Network::of_ipv6(), "[2001:db8::1]");
    println!("IPv6 alone: {met:?}");
    assert!(met.is_some_and(|met| met < DRIVES_WITHIN), "{met:?}");
}

#[test]
#[ignore = "needs root; make nat runs it"]
fn a_nat_rebinding_freezes_pictures_for_at_most_100_ms() {
    let relay = Setup { relays: 1, ..Setup::default() };
    let link = Setup { has_second_link: true, ..Setup::default() };
    for (what, side, setup) in [
        ("a warm relay, the vehicle's moves", 0, relay),
        ("a warm relay, the operator's moves", 1, relay),
        ("another link, the vehicle's moves", 0, link),
        // Its two round trips are negligible here.
        ("neither, the vehicle's moves", 0, Setup::default()),
        ("neither, the operator's moves", 1, Setup::default()),
    ] {
        let kind = |moves| [Kind::Ours("nothing", "port", moves)];
        let sides =
            if side == 0 { [kind(Some(30)), kind(None)] } else { [kind(None), kind(Some(30))] };
        let mut network = Network::new([&sides[0], &sides[1]]);
        network.ready();
        let mut rig = Rig::start_with(network, SERVERS[0], &setup);
        assert!(rig.meets_within(DRIVES_WITHIN * 2).is_some(), "{}", rig.words());
        // The transients of the start are over.
        std::thread::sleep(Duration::from_secs(3));
        // Two moves, and the time between them.
        let longest = rig.longest_gap(Duration::from_secs(62));
        println!("{what}: longest without a picture {longest:?}");
        assert!(longest < FROZEN_MAX, "{what}: {longest:?}: {}", rig.words());
    }
}

/// Returns the detected mapping and filtering of the NATs before a machine.
fn behaviour(kinds: &[Kind]) -> (String, String) {
    let mut network = Network::new([kinds, &[]]);
    network.ready();
    let switchboard = rig::switchboard_alone(&network);
    let mut command = inside(&network.namespace("m0"));
    command.arg(env!("CARGO_BIN_EXE_tautline")).args(["reach", "192.0.2.1:7443"]);
    let output = command.output().unwrap();
    drop(switchboard);
    let text = String::from_utf8_lossy(&output.stdout);
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {output:?}")).trim().to_owned()
    };
    (field("mapping"), field("filtering"))
}

/// Returns the time from the introduction until pictures arrive in one direction and feedback in
/// the other; `None` if that exceeds [`DRIVES_WITHIN`].
fn meet(mut network: Network, server: &str) -> Option<Duration> {
    network.ready();
    Rig::start(network, server).meets_within(DRIVES_WITHIN)
}

/// Returns whether two ends behind NATs with this mapping and filtering can meet without a relay,
/// according to [RFC4787].
fn can_meet(a: (&str, &str), b: (&str, &str)) -> bool {
    match (a.0 == "nothing", b.0 == "nothing") {
        (true, true) => true,
        (true, false) => a.1 != "port",
        (false, true) => b.1 != "port",
        (false, false) => {
            let lets =
                |one: (&str, &str), other: (&str, &str)| one.1 == "nothing" && other.1 != "port";
            lets(a, b) || lets(b, a)
        }
    }
}

const DRIVES_WITHIN: Duration = Duration::from_secs(2);
/// Greatest gap between slices that is allowed: two round trips, which are negligible here, and 0.1
/// s.
const FROZEN_MAX: Duration = Duration::from_millis(100);
