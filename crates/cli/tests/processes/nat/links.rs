//! The control connection over two links of the vehicle, each dead or blocked at the start, at a restart and in a drive.
//!
//! Needs root and `nft`; `make nat` runs these tests.

use std::time::Duration;

use crate::nat::network::{Network, SERVERS};
use crate::nat::rig::{Rig, Setup};

/// What befalls a link.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Nothing passes, and nobody says so.
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
            // In a drive: whichever carries the control connection when the link fails, it is by the other one then.
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

/// Three seconds of silence, a pause, and an attempt by each way, with room for a busy machine.
const LOST_MAX: Duration = Duration::from_secs(8);
/// A process's start and an attempt by each way, likewise.
const START_MAX: Duration = Duration::from_secs(5);
