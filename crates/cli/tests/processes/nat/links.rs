//! The control connection over two links of the vehicle, each dead or blocked at the start, at a
//! restart and in a drive.
//!
//! Requires root and `nft`; `make nat` runs these tests.

use std::time::Duration;

use crate::nat::network::{Network, SERVERS};
use crate::nat::rig::{Rig, Setup};

/// Fault of a link.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Packets are dropped silently.
    Blocked,
    /// The interface is down.
    Dead,
}

const FAULTS: [Fault; 2] = [Fault::Blocked, Fault::Dead];
const LINKS: [&str; 2] = ["out", "out2"];

impl Fault {
    fn set(self, network: &Network, link: &str, is_there: bool) {
        match self {
            Self::Blocked => network.block_link("m0", link, is_there),
            Self::Dead => network.down("m0", link, is_there),
        }
    }
}

#[test]
#[ignore = "needs root and nft; make nat runs it"]
fn registration_goes_by_whichever_link_leads_to_the_switchboard() {
    let setup = Setup { has_second_link: true, ..Setup::default() };
    let mut rig = Rig::start_with(Network::new([&[], &[]]), SERVERS[0], &setup);
    assert!(rig.meets_within(Duration::from_secs(5)).is_some(), "{}", rig.words());
    for fault in FAULTS {
        for (link, other) in [(LINKS[0], LINKS[1]), (LINKS[1], LINKS[0])] {
            // In a drive: if the link of the control connection fails, the connection moves to the
            // other one.
            let by_other = format!("by=\"interface {other}\"");
            let before = rig.count("vehicle", &by_other);
            let was_by = rig.last_link("vehicle");
            fault.set(rig.network(), link, true);
            if was_by == link {
                let took = rig.await_count("vehicle", &by_other, before + 1);
                println!("{fault:?} {link} in a drive: registered by {other} after {took:?}");
                assert!(took < LOST_MAX, "{took:?}: {}", rig.words());
            }
            // At a restart of the vehicle, and then of the switchboard.
            let before = rig.count("vehicle", &by_other);
            rig.kill("vehicle");
            rig.restart("m0", "vehicle");
            let took = rig.await_count("vehicle", &by_other, before + 1);
            println!("{fault:?} {link} at the start: registered by {other} after {took:?}");
            assert!(took < START_MAX, "{took:?}: {}", rig.words());
            let before = rig.count("vehicle", "registered");
            rig.kill("switchboard");
            rig.restart("w", "switchboard");
            let took = rig.await_count("vehicle", "registered", before + 1);
            println!("{fault:?} {link}, the switchboard restarts: registered after {took:?}");
            assert!(took < START_MAX, "{took:?}: {}", rig.words());
            fault.set(rig.network(), link, false);
        }
    }
}

/// Time within which a lost control connection is restored: three seconds of silence, a pause, and
/// an attempt over each link, with a margin for a busy machine.
const LOST_MAX: Duration = Duration::from_secs(8);
/// Time within which a started process registers: its start and an attempt over each link, with the
/// same margin.
const START_MAX: Duration = Duration::from_secs(5);
