use std::collections::BTreeSet;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tautline_sim::world::Clock;
use tautline_transport::{Discard, LossReason};
use tautline_units::Duration;

use crate::harness::{Run, Scenario, Step, lossy};

/// Seeds whose runs once failed join this list.
const SEEDS: [u64; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

#[test]
fn in_any_weather_no_unit_is_stale_or_ends_twice_and_the_counters_add_up() {
    // SIM_SEED=17 runs one other seed, SIM_SEEDS=1000 the seeds from 0 to 999.
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match (number("SIM_SEED"), number("SIM_SEEDS")) {
        (Some(seed), _) => vec![seed],
        (None, Some(count)) => (0..count).collect(),
        (None, None) => SEEDS.to_vec(),
    };
    for seed in seeds {
        hold_true(&weather(seed).run());
    }
}

/// One to five links of any quality, cut, restored and rebound, under attack, by skewed clocks.
fn weather(seed: u64) -> Scenario {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut below = |end: u32| rng.next_u32() % end;
    let count = 1 + below(5) as usize;
    let links = (0..count)
        .map(|_| {
            let (mbps, delay) = (0.5 + f64::from(below(100)) / 10.0, 2.0 + f64::from(below(150)));
            let mut pair = lossy(mbps, delay, f64::from(below(30)) / 100.0);
            pair.up.queue_bytes = 20_000 + u64::from(below(400_000));
            pair
        })
        .collect();
    let mut scenario = Scenario::new(seed, links);
    for clock in &mut scenario.clocks {
        let offset = Duration::from_secs(u64::from(below(100_000)));
        *clock = Clock::new(offset, f64::from(below(200)) - 100.0);
    }
    scenario.media_deadline = Duration::from_millis(50 + u64::from(below(250)));
    scenario.hostile = below(2) == 0;
    scenario.run_ms = 4_000;
    for _ in 0..below(12) {
        let (at, link) = (u64::from(below(4_000)), below(count as u32) as usize);
        let step = match below(3) {
            0 => Step::Cut(link),
            1 => Step::Restore(link),
            _ => Step::Rebind(link, 10_000 + below(50_000) as u16),
        };
        scenario.steps.push((at, step));
    }
    scenario
}

fn hold_true(run: &Run) {
    let (sender, receiver) = (run.sender(), run.receiver());
    for unit in &receiver.media {
        // Before the first pong the receiver counts from the arrival.
        if let (Some(error), Some(wrong)) = (unit.clock_error, unit.sent_at_wrong) {
            let most = receiver.media_deadline + Duration::from_millis(1) + error;
            assert!(unit.delay <= most, "{most:?} {unit:?}");
            assert!(wrong.unsigned_abs() <= error.as_nanos() as u64 + 1_000, "{unit:?}");
        }
    }
    assert!(sender.control.windows(2).all(|pair| pair[0].0 < pair[1].0) || sender.established > 1);
    let counters = receiver.session.counters();
    let lost = [
        (Discard::UnitMissing, LossReason::Missing),
        (Discard::UnitIncomplete, LossReason::Incomplete),
        (Discard::UnitLate, LossReason::Late),
        (Discard::UnitMalformed, LossReason::Malformed),
    ];
    let media_lost = receiver.lost.len() as u64;
    assert_eq!(lost.map(|(what, _)| counters.discarded(what)).iter().sum::<u64>(), media_lost);
    assert_eq!(counters.media_delivered, receiver.media.len() as u64);
    assert_eq!(counters.discarded(Discard::PacketMalformed), 0);
    assert_eq!(counters.discarded(Discard::EventOverflow), 0);
    if receiver.established == 1 {
        let ends = receiver.media.iter().map(|u| u.number);
        let ends = ends.chain(receiver.lost.iter().map(|l| l.0));
        let mut seen = BTreeSet::new();
        assert!(ends.into_iter().all(|number| seen.insert(number)), "a unit ended twice");
        let sent = sender.sent.len() as u64;
        assert!(seen.last().is_none_or(|last| *last < sent), "a unit that was never sent");
    }
}
