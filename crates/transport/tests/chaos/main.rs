//! Chaos tests: short runs of two sessions in virtual time, with all parameters drawn from a seed.
//!
//! A run has one to four links of any quality, policed or marked, with competing traffic in their
//! queues, and with slow or long return directions. Datagrams are lost, reordered, duplicated,
//! damaged and sent from other addresses. Links are cut, restored and rebound, packet sizes changed
//! and clocks set, and an operator restarts. Then the faults end, and the sessions must recover.
//!
//! Invariants of every run:
//! - models: pushed = delivered + dropped by name + in flight. The datagrams sent by the sessions
//!   are those pushed plus those without a route; the datagrams received are those delivered plus
//!   duplicates;
//! - a datagram passed in is authentic, is discarded under one name, or is an init;
//! - per link: reported + lost <= sent; reported <= received by the peer <= sent; a link that is
//!   not up sends no more than a ping's worth;
//! - per link: media packets given = waiting + dropped + withdrawn + sent; sent = open + in time +
//!   late + lost; packets given again are those that the session moved plus requested repair
//!   packets;
//! - per channel: offered = accepted + refused by reason; the peer reports at most that number, and
//!   at most its own count; heard = open + delivered + lost by reason + superseded;
//! - units: accepted = delivered + lost by reason + skipped, each number once. Refused units are
//!   counted, and commands arrive in order. Nothing is delivered after its deadline, within the
//!   stated clock error. That error holds unless a clock was set;
//! - the same seed yields the same run, byte for byte.
//!
//! `make chaos` runs ten thousand seeds. `CHAOS=500` runs seeds 0 to 499. `SIM_SEED=17`, as printed
//! by a failing run, runs that one.
#![allow(clippy::unwrap_used, reason = "a run that cannot be set up has failed")]

mod auditor;
mod case;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use case::Case;

/// Number of runs in the test suite: they take about ten seconds.
const RUNS: u64 = 300;

#[test]
fn under_any_faults_no_unit_is_stale_and_every_counter_adds_up() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("SIM_SEED") {
        return check(seed);
    }
    let count = number("CHAOS").unwrap_or(RUNS);
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        break;
                    }
                    let outcome = std::panic::catch_unwind(|| check(seed));
                    if let Err(why) = outcome {
                        stop.store(true, Ordering::Relaxed);
                        std::panic::resume_unwind(why);
                    }
                }
            });
        }
    });
}

#[test]
fn the_run_of_one_seed_is_the_same_run_again() {
    for seed in [3, 1_000, 10_000] {
        let digest = |seed| Case::of(seed).run().run.world.log().digest();
        assert_eq!(digest(seed), digest(seed), "SIM_SEED={seed}");
    }
}

fn check(seed: u64) {
    let ended = Case::of(seed).run();
    ended.check_links();
    ended.check_units();
    ended.check_recovered();
}
