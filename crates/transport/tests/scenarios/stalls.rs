use tautline_scenario::measure;
use tautline_sim::preset::{Carrier, Preset};
use tautline_units::Duration;

use crate::harness::{Scenario, ms};

/// Returns the share of missed media units over four links of a driving car. Either end pauses for
/// up to `stall` milliseconds, twice a second on average.
fn missed(seed: u64, stall: u64) -> f64 {
    let carriers = [Carrier::A, Carrier::B, Carrier::A, Carrier::B];
    let links = carriers.map(|carrier| Preset::LteDriving.pair_of(carrier, seed)).to_vec();
    let mut scenario = Scenario::new(seed, links);
    scenario.media.per_second = 180;
    scenario.length = Duration::from_secs(30);
    scenario.stalls =
        (stall > 0).then(|| (Duration::from_millis(500), Duration::from_millis(stall)));
    let run = scenario.run();
    let units = run.media();
    let units: Vec<_> = measure::within(&units, ms(3_000)..ms(29_500)).collect();
    let late = units.iter().filter(|unit| unit.on_time(scenario.media.deadline).is_none());
    late.count() as f64 / units.len() as f64
}

#[test]
fn a_stalled_end_moves_media_off_no_link() {
    let found: Vec<f64> = (51..57).map(|seed| missed(seed, 100)).collect();
    let mean = found.iter().sum::<f64>() / found.len() as f64;
    // .16 %; .43 % if every receive gap counts in full against the link.
    assert!(mean < 0.0025, "{found:?}");
}
