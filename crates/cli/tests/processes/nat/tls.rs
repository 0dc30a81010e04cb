//! Drives in networks that block UDP, on either side or both: through a relay over TLS, at the
//! relay's own port or at the switchboard's.

use std::time::Duration;

use crate::nat::network::{Network, SERVERS};
use crate::nat::rig::{Rig, Setup, Tls};

#[test]
#[ignore = "needs root and nft; make nat runs it"]
fn without_udp_a_drive_over_tls_begins_within_three_seconds() {
    for tls in [Tls::OwnPort, Tls::SharedPort] {
        for blocked in [&["m0"][..], &["m1"], &["m0", "m1"]] {
            let network = Network::new([&[], &[]]);
            blocked.iter().for_each(|place| network.block_udp(place));
            let mut rig =
                Rig::start_with(network, SERVERS[0], &Setup { relays: 1, tls, ..Setup::default() });
            let met = rig.meets_within(DRIVES_WITHIN);
            let gap = rig.longest_gap(Duration::from_secs(5));
            println!("{tls:?}, no UDP at {blocked:?}: {met:?}, then {gap:?} without a picture");
            assert!(met.is_some_and(|met| met < DRIVES_WITHIN), "{met:?}: {}", rig.words());
            assert!(gap < Duration::from_secs(1), "{gap:?}: {}", rig.words());
        }
    }
}

#[test]
#[ignore = "needs root and nft; make nat runs it"]
fn without_udp_and_without_tls_to_a_relay_they_do_not_meet() {
    let network = Network::new([&[], &[]]);
    network.block_udp("m1");
    let rig = Rig::start_with(network, SERVERS[0], &Setup { relays: 1, ..Setup::default() });
    assert_eq!(rig.meets_within(DRIVES_WITHIN), None);
}

#[test]
#[ignore = "needs root and nft; make nat runs it"]
fn udp_blocked_while_driving_is_replaced_by_tls() {
    for blocked in [&["m0"][..], &["m1"], &["m0", "m1"]] {
        let network = Network::new([&[], &[]]);
        let relays = Setup { relays: 1, tls: Tls::OwnPort, ..Setup::default() };
        let mut rig = Rig::start_with(network, SERVERS[0], &relays);
        assert!(rig.meets_within(DRIVES_WITHIN).is_some(), "{}", rig.words());
        // Until the connections are established and the standby links are warm.
        std::thread::sleep(Duration::from_secs(2));
        let gap = rig.longest_gap_while(Duration::from_secs(4), |rig| {
            blocked.iter().for_each(|place| rig.network().block_udp(place));
        });
        println!("UDP blocked at {blocked:?} while driving: {gap:?} without a picture");
        assert!(gap < Duration::from_secs(1), "{gap:?}: {}", rig.words());
    }
}

const DRIVES_WITHIN: Duration = Duration::from_secs(3);
