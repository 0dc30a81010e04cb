//! Simulations that compare the theory with this crate's own encoder and decoder.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::Stream;
use crate::stream::{Config, Decoder, Encoder};

/// Number of renewal periods in each simulation.
const PERIODS: usize = 200_000;

/// Seed of the erasures in all simulations.
const SEED: u64 = 4;

/// Maximum deviation of a simulated mean from the theory, in standard errors: one test in 16 000
/// fails by chance, and none with this seed.
const ERRORS_MAX: f64 = 4.0;

/// Bound on the effect of the field: repair packets over GF(256) are not always innovative, which
/// increases delays by at most one percent at these rates. The theory neglects it.
const FIELD: f64 = 0.01;

#[test]
fn encoder_and_decoder_do_what_the_theory_says() {
    for (interval, erasure_rate) in [(2, 0.1), (4, 0.05), (4, 0.2), (5, 0.1), (8, 0.05), (10, 0.05)]
    {
        let stream = Stream::new(interval, erasure_rate).unwrap();
        let periods = simulate(&stream);
        let (busy, delay) = (stream.busy_time(), stream.delay());
        let one = |_: &Period| 1.0;
        let busy_time = |period: &Period| period.busy as f64;
        let packets = |period: &Period| period.packets as f64;
        for (what, expected, numerator, denominator) in [
            ("E[S]", busy.mean(), &busy_time as Value<'_>, &one as Value<'_>),
            ("E[S^2]", busy.second_moment(), &|period| busy_time(period).powi(2), &one),
            ("P(S = 0)", busy.pmf(0), &|period| f64::from(period.busy == 0), &one),
            ("P(S > 3)", busy.survival(3), &|period| f64::from(period.busy > 3), &one),
            ("E[S+]", busy.period_mean(), &|period| busy_time(period).max(1.0), &one),
            ("E[D]", delay.mean(), &|period| period.delay as f64, &packets),
            ("P(D = 0)", delay.zero_probability(), &|period| period.undelayed as f64, &packets),
            ("P(D > 2 l)", delay.tail(2 * u64::from(interval)), &|p| p.long as f64, &packets),
        ] {
            let (mean, error) = ratio(&periods, numerator, denominator);
            let allowed = ERRORS_MAX * error + FIELD * expected;
            assert!(
                (mean - expected).abs() <= allowed,
                "{what} of {stream:?}: {mean} for {expected}, standard error {error}; \
                 {PERIODS} periods, seed {SEED}"
            );
        }
    }
}

type Value<'a> = &'a dyn Fn(&Period) -> f64;

/// Counts from one simulated renewal period.
#[derive(Clone, Copy, Default)]
struct Period {
    /// Busy time S, in intervals.
    busy: u64,
    /// Number of source packets sent in the period.
    packets: u64,
    /// Sum of the delays of the period's source packets, in slots.
    delay: u64,
    /// Number of source packets with delay zero.
    undelayed: u64,
    /// Number of source packets that waited more than two intervals.
    long: u64,
}

/// Runs intervals over a link with erasures, with an encoder and a decoder at the ends, and returns
/// the first [`PERIODS`] renewal periods.
fn simulate(stream: &Stream) -> Vec<Period> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut erased = || rng.random_bool(stream.erasure_rate());
    let config = Config { repairs_max: 4_096, ..Config::new(8, 4_096) };
    let mut encoder = Encoder::new(config).unwrap();
    let mut decoder = Decoder::new(config).unwrap();
    let (mut periods, mut period) = (Vec::with_capacity(PERIODS), Period::default());
    let (mut slot, mut intervals, mut lossy) = (0_u64, 0, false);
    let mut waiting = std::collections::VecDeque::new();
    while periods.len() < PERIODS {
        for within in 1..=stream.interval() {
            slot += 1;
            let lost = erased();
            if within < stream.interval() {
                let symbol = slot.to_le_bytes();
                let id = encoder.push(&symbol).unwrap();
                waiting.push_back(slot);
                lossy |= lost;
                if !lost {
                    decoder.handle_source(id, &symbol).unwrap();
                }
            } else if !encoder.window().is_empty() {
                let mut payload = [0; 8];
                let repair = encoder.repair(slot as u16, &mut payload).unwrap();
                if !lost {
                    let _ = decoder.handle_repair(&repair, &payload);
                }
            }
            while let Some((_, symbol)) = decoder.poll_in_order() {
                let sent: u64 = waiting.pop_front().unwrap();
                assert_eq!(symbol, sent.to_le_bytes());
                period.packets += 1;
                period.delay += slot - sent;
                period.undelayed += u64::from(slot == sent);
                period.long += u64::from(slot - sent > 2 * u64::from(stream.interval()));
            }
        }
        intervals += 1;
        encoder.acknowledge(decoder.report().edge).unwrap();
        if waiting.is_empty() {
            period.busy = if lossy { intervals } else { 0 };
            periods.push(std::mem::take(&mut period));
            (intervals, lossy) = (0, false);
        }
    }
    periods
}

/// Returns the ratio of two means over independent periods, and its standard error.
fn ratio(periods: &[Period], numerator: Value<'_>, denominator: Value<'_>) -> (f64, f64) {
    let count = periods.len() as f64;
    let mean = |value: &dyn Fn(&Period) -> f64| periods.iter().map(value).sum::<f64>() / count;
    let below = mean(denominator);
    let ratio = mean(numerator) / below;
    let square = mean(&|period| (numerator(period) - ratio * denominator(period)).powi(2));
    (ratio, (square / count).sqrt() / below)
}
