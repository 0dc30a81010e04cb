//! Named links, each number with its source.
//!
//! Sources: "model" is reference/multilink-and-rate.md, Link model. "pam25" is the drive-test
//! pings, "vnperf" two carriers in one car, second by second, and "cicv5g" the vehicle-to-cloud
//! echoes, all in data/delay. "traces" is the LTE recordings of data/links. A number that is a
//! choice, not a measurement, is marked as one.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use tautline_units::Bitrate;

use crate::Error;
use crate::link::{Common, Config, Handover, Jitter, Outage, Pair, Retransmission, Swing};

/// Names of the link presets. The error for an unknown name lists them.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", parse_err_fn = unknown, parse_err_ty = Error)]
pub enum Preset {
    /// A wired network in one building: [`lan`].
    Lan,
    /// The LTE modem of a parked car with good signal: [`lte`].
    Lte,
    /// The LTE modem of a moving car: [`lte_driving`].
    LteDriving,
    /// The LTE modem of a moving car in town: [`lte_town`].
    LteTown,
    /// The LTE modem of a moving car in the countryside: [`lte_countryside`].
    LteCountryside,
    /// The link model of the papers' figures for a load of 5.4 Mbit/s: [`model`]. Its mean capacity
    /// is 8 Mbit/s.
    Model,
}

/// One of two mobile carriers with separate networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// The carrier with the preset's own numbers.
    #[default]
    A,
    /// A carrier with 0.85 of the preset's rate and 3 ms more delay each way. This is about the
    /// difference between the medians of neighbouring carriers in pam25 (51, 55 and 59 ms).
    B,
}

impl Carrier {
    /// Returns the name of the [`Common`] entries of this carrier's modems.
    pub const fn common_name(self) -> &'static str {
        match self {
            Self::A => "carrier a",
            Self::B => "carrier b",
        }
    }
}

impl Preset {
    /// Returns both directions with the preset's own numbers, those of carrier A.
    pub fn pair(self) -> Pair {
        self.pair_at(Carrier::A)
    }

    fn pair_at(self, carrier: Carrier) -> Pair {
        match self {
            Self::Lan => lan(),
            Self::Lte => lte(),
            Self::LteDriving => lte_driving(),
            Self::LteTown => lte_town(carrier),
            Self::LteCountryside => lte_countryside(carrier),
            Self::Model => model(Bitrate::from_kbps(5_400)),
        }
    }

    /// Returns both directions for one modem of a carrier.
    ///
    /// Modems differ: the seed varies the rates by up to 10 % and the delays by up to 2 ms, equally
    /// in both directions. A `lan` and the `model` depend neither on the seed nor on the carrier.
    pub fn pair_of(self, carrier: Carrier, seed: u64) -> Pair {
        let pair = self.pair_at(carrier);
        match self {
            Self::Lan | Self::Model => pair,
            Self::Lte | Self::LteDriving | Self::LteTown | Self::LteCountryside => {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                rng.set_stream(MODEM_STREAM);
                let (rate_factor, delay_more_ms) = match carrier {
                    Carrier::A => (1.0, 0.0),
                    Carrier::B => (0.85, 3.0),
                };
                let rate_factor = rate_factor * rng.random_range(0.9..=1.1);
                let delay_more_ms = delay_more_ms + rng.random_range(-2.0..=2.0);
                let vary = |config: Config| Config {
                    rate_mbps: config.rate_mbps.map(|rate| rounded(rate * rate_factor)),
                    delay_ms: rounded(config.delay_ms + delay_more_ms),
                    ..config
                };
                Pair { up: vary(pair.up), down: vary(pair.down) }
            }
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::UnknownPreset {
        name: name.to_owned(),
        known: <Preset as strum::VariantNames>::VARIANTS.join(", "),
    }
}

/// Returns a wired network in one building, without impairments.
///
/// - rate 1000 Mbit/s: Gigabit Ethernet;
/// - delay 0.1 ms one way: two switches and their cables, an order of magnitude (a choice);
/// - queue 1 MB, 8 ms at that rate: a small switch's buffer (a choice).
pub fn lan() -> Pair {
    let config = Config { rate_mbps: Some(1000.0), queue_bytes: 1_000_000, ..quiet() };
    Pair::symmetric(Config { delay_ms: 0.1, ..config })
}

/// Returns the LTE modem of a parked car with good signal.
///
/// - rate up 8, down 15 Mbit/s: between the traces' uplink of 6 Mbit/s (2016) and today's; the
///   downlink is the mean of the 15 Mbit/s trace;
/// - capacity variation of sigma 0.25, time constant 80 ms: model;
/// - queue 300 ms at the mean rate: modems buffer a few hundred milliseconds (a choice in that
///   range);
/// - delay up 20, down 15 ms: the model's 15 ms one way, and 5 ms more for the uplink, which must
///   request grants; with jitter and retransmissions a round trip is about 40 ms, pam25's 5th
///   percentiles being 29 to 39 ms;
/// - jitter |AR(1)| of sigma 2 ms and 1 s; HARQ + 8 ms with probability 0.1: model;
/// - independent loss of 0.0005: the order of the residual loss after HARQ (a choice, below what
///   pam25 can distinguish from its outages).
pub fn lte() -> Pair {
    let modem = Config {
        swing: Some(Swing { sigma: 0.25, tau_ms: 80.0 }),
        jitter: Some(Jitter { sigma_ms: 2.0, tau_ms: 1000.0 }),
        retransmission: Some(Retransmission { probability: 0.1, delay_ms: 8.0 }),
        loss: 0.0005,
        ..quiet()
    };
    Pair {
        up: Config { rate_mbps: Some(8.0), queue_bytes: 300_000, delay_ms: 20.0, ..modem.clone() },
        down: Config { rate_mbps: Some(15.0), queue_bytes: 560_000, delay_ms: 15.0, ..modem },
    }
}

/// Returns the LTE modem of a moving car. It differs from [`lte`] in:
///
/// - capacity variation of sigma 0.5, time constant 1.5 s: in the traces of 6 and 5 Mbit/s the
///   logarithm of the rate over 100 ms lies 0.54 to 0.59 above its median at the 84th percentile,
///   and correlates by 0.48 to 0.72 over 1 s;
/// - delay up 25, down 20 ms: round trips of about 51 ms, pam25's medians while driving being 51,
///   55 and 59 ms;
/// - handovers of 300 ms every 10 to 30 s, both directions at once: data/README.md (steps of 250 to
///   350 ms every 10 to 30 s; cicv5g shows their peaks at 255 to 350 ms);
/// - holding outages, a mean of 60 ms every 20 s: model;
/// - losing outages, a mean of 200 ms every 60 s, both directions at once: pam25 loses runs of
///   pings every 45 to 65 s, three quarters of them a single ping at 5 Hz. Its rare outages of many
///   seconds are left out; a link can be cut by hand instead.
///
/// Idle pings at 5 Hz over 40 minutes of this link have a round trip of p5/p50/p95/p99 46/49/61/180
/// ms, and 0.4 % loss; pam25 has 29 to 39, 51 to 59, 100 to 146, 231 to 736 ms and 0.6 to 1.9 %:
/// the real tails are heavier. The uplink's capacity over 1 s: p5/p50/p95 3.3/6.8/14.2 Mbit/s, mean
/// 7.5.
pub fn lte_driving() -> Pair {
    let moving = |config: Config| Config {
        swing: Some(Swing { sigma: 0.5, tau_ms: 1500.0 }),
        delay_ms: config.delay_ms + 5.0,
        handover: Some(Handover { step_ms: 300.0, every_s: [10.0, 30.0] }),
        outage_holding: Some(Outage { every_s: 20.0, mean_ms: 60.0 }),
        outage_losing: Some(Outage { every_s: 60.0, mean_ms: 200.0 }),
        ..config
    };
    let Pair { up, down } = lte();
    Pair { up: moving(up), down: moving(down) }
}

/// Returns the LTE modem of a moving car in town, where carriers fail independently of each other,
/// and all modems of one carrier fail together. In addition to [`lte_driving`], all modems of a
/// carrier share:
///
/// - losing outages, a mean of 2.9 s every 390 s: pam25 loses three pings or more at 5 Hz 42 times
///   in its 16,400 s, 123 s together (two thirds of them in the two longest, of 29 s; the rest have
///   a mean of 1.6 s);
/// - holding outages, a mean of 0.4 s every 470 s: round trips over 250 ms of both carriers in
///   vnperf downtown and suburban, 13 in 2 x 3067 s.
///
/// Carriers share nothing: no second of those 3067 is bad for both, nor of the motorway's 1589. It
/// is an assumption that a carrier's modems share its outages: no recording has two modems of one
/// carrier. A carrier is out for 0.8 % of the time, both of two 0.007 %.
pub fn lte_town(carrier: Carrier) -> Pair {
    let cells = Common {
        name: carrier.common_name().to_owned(),
        outage_losing: Some(Outage { every_s: 390.0, mean_ms: 2900.0 }),
        outage_holding: Some(Outage { every_s: 470.0, mean_ms: 400.0 }),
        dip: None,
    };
    with_common(lte_driving(), &[cells])
}

/// Returns the LTE modem of a moving car in the countryside, where carriers fail together. In
/// addition to [`lte_driving`], all modems of a carrier share:
///
/// - holding outages, a mean of 3.4 s every 80 s;
///
/// and all modems of all carriers share:
///
/// - holding outages, a mean of 2 s every 265 s.
///
/// A carrier is then out for 4.8 % of the time, and two of them for 0.91 %, four times the product
/// of 4.8 % and 4.8 %. Sources: vnperf rural, round trips over 500 ms counted from send to reply:
/// 24 outages of 2.7 s and 19 of 4.2 s in 1529 s, 4.3 and 5.3 % of the time; those common to both
/// have a mean of 1.7 s. Both are out in .63 % of the time there, 2.8 times the product (2.0 to 3.3
/// with other bounds than 500 ms), in six outages. These are too few to reject the factor of four
/// in data/README.md, which is harsher and used here.
pub fn lte_countryside(carrier: Carrier) -> Pair {
    let holding = |name: &str, every_s, mean_ms| Common {
        name: name.to_owned(),
        outage_losing: None,
        outage_holding: Some(Outage { every_s, mean_ms }),
        dip: None,
    };
    let cells = holding(carrier.common_name(), 80.0, 3400.0);
    with_common(lte_driving(), &[cells, holding("countryside", 265.0, 2000.0)])
}

/// Returns the link model of the papers' figures, at a utilisation of .675 by `load`.
///
/// - capacity log-Ornstein-Uhlenbeck, sigma .25, time constant 80 ms, mean `load`/.675;
/// - outages at rate zero, .05/s, mean 60 ms; packets wait;
/// - base delay 15 ms + |AR(1)| of sigma 2 ms and 1 s; HARQ + 8 ms with probability .1, geometric;
/// - first in, first out. The queue holds two seconds at the mean rate; the model itself has no
///   bound, but never fills such a queue at this load. Packets have no headers, so the load is
///   exact.
///
/// Both directions are alike. Source: reference/multilink-and-rate.md, Link model.
pub fn model(load: Bitrate) -> Pair {
    let mean = load.as_f64() / 0.675;
    Pair::symmetric(Config {
        rate_mbps: Some(rounded(mean / 1e6)),
        swing: Some(Swing { sigma: 0.25, tau_ms: 80.0 }),
        queue_bytes: (mean / 8.0 * 2.0).round() as u64,
        delay_ms: 15.0,
        jitter: Some(Jitter { sigma_ms: 2.0, tau_ms: 1000.0 }),
        retransmission: Some(Retransmission { probability: 0.1, delay_ms: 8.0 }),
        outage_holding: Some(Outage { every_s: 20.0, mean_ms: 60.0 }),
        overhead_bytes: 0,
        ..quiet()
    })
}

fn with_common(pair: Pair, common: &[Common]) -> Pair {
    let with = |config: Config| Config { common: common.to_vec(), ..config };
    Pair { up: with(pair.up), down: with(pair.down) }
}

/// Stream of the seed from which the properties of a modem are drawn; no part of a link uses it.
const MODEM_STREAM: u64 = 1 << 32;

fn quiet() -> Config {
    Config::of_rate(Bitrate::from_mbps(1))
}

/// Rounds to three decimals, as a person would write the value.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use strum::VariantNames;
    use tautline_units::{ByteCount, Instant};

    use super::*;
    use crate::link::{Link, Seeds};

    #[test]
    fn presets_are_found_by_name_and_sound() {
        for name in Preset::VARIANTS {
            let preset: Preset = name.parse().expect("known");
            assert_eq!(preset.to_string(), *name);
            for (carrier, seed) in [(Carrier::A, 0), (Carrier::A, 1), (Carrier::B, 2)] {
                let pair = preset.pair_of(carrier, seed);
                pair.links::<()>(seed).expect("sound");
                assert_eq!(pair, preset.pair_of(carrier, seed));
            }
        }
        let error = "5g".parse::<Preset>().expect_err("unknown");
        let names = "lan, lte, lte-driving, lte-town, lte-countryside, model";
        assert_eq!(error.to_string(), format!("unknown preset \"5g\": choose one of {names}"));
    }

    /// Returns, for each second of `hours`, which modems are interrupted by the processes they
    /// share.
    fn interrupted<const N: usize>(pairs: [Pair; N], hours: u64) -> Vec<[bool; N]> {
        let mut own = 0;
        let mut links = pairs.map(|pair| {
            own += 1;
            let config = Config { common: pair.up.common, ..quiet() };
            let seeds = Seeds { common: 3, ..Seeds::of(own) };
            Link::<()>::with_seeds(&config, seeds).expect("sound")
        });
        let steps = (0..hours * 3_600).map(|second| {
            let now = Instant::from_millis(1_000 * second);
            let soon = now + std::time::Duration::from_millis(20);
            links.each_mut().map(|link| {
                while link.pop(now).is_some() {}
                let lost = link.push(now, ByteCount::new(1), ()).is_err();
                lost || link.next_departure().is_some_and(|at| at > soon)
            })
        });
        steps.collect()
    }

    fn share<const N: usize>(steps: &[[bool; N]], which: impl Fn(&[bool; N]) -> bool) -> f64 {
        steps.iter().filter(|out| which(out)).count() as f64 / steps.len() as f64
    }

    #[test]
    fn countryside_carriers_fail_together_at_the_stated_rate() {
        let modem = |carrier, seed| Preset::LteCountryside.pair_of(carrier, seed);
        let modems = [modem(Carrier::A, 1), modem(Carrier::A, 2), modem(Carrier::B, 3)];
        let steps = interrupted(modems, 500);
        assert!(steps.iter().all(|out| out[0] == out[1]), "one carrier's modems");
        let (a, b) = (share(&steps, |out| out[0]), share(&steps, |out| out[2]));
        assert!((0.045..0.051).contains(&a) && (0.045..0.051).contains(&b), "{a}, {b}");
        let both = share(&steps, |out| out[0] && out[2]);
        assert!((0.0082..0.0100).contains(&both), "{both}");
        let ratio = both / (a * b);
        assert!((3.6..4.4).contains(&ratio), "{ratio}");
    }

    #[test]
    fn carriers_fail_alone_in_town_as_often_as_it_says() {
        let modem = |carrier, seed| Preset::LteTown.pair_of(carrier, seed);
        let modems = [modem(Carrier::A, 1), modem(Carrier::A, 2), modem(Carrier::B, 3)];
        let steps = interrupted(modems, 600);
        assert!(steps.iter().all(|out| out[0] == out[1]), "one carrier's modems");
        let (a, b) = (share(&steps, |out| out[0]), share(&steps, |out| out[2]));
        assert!((0.0076..0.0089).contains(&a) && (0.0076..0.0089).contains(&b), "{a}, {b}");
        let ratio = share(&steps, |out| out[0] && out[2]) / (a * b);
        assert!((0.6..1.5).contains(&ratio), "{ratio}");
    }

    #[test]
    fn the_model_is_the_reference_pages() {
        let pair = model(Bitrate::from_kbps(5_400));
        assert_eq!(pair.up, pair.down);
        let text = r#"
            rate_mbps = 8.0
            swing = { sigma = 0.25, tau_ms = 80.0 }
            queue_bytes = 2000000
            delay_ms = 15.0
            jitter = { sigma_ms = 2.0, tau_ms = 1000.0 }
            retransmission = { probability = 0.1, delay_ms = 8.0 }
            outage_holding = { every_s = 20.0, mean_ms = 60.0 }
            overhead_bytes = 0
        "#;
        assert_eq!(pair.up, toml::from_str(text).expect("well formed"));
        // The delay on an idle link has the moments of its parts: 15 ms, |N(0, 2 ms)|, a geometric
        // number of 8 ms rounds, and the wait in an outage, 60 ms at a thousandth's chance each.
        let mut link = Link::<Instant>::new(&pair.up, 1).expect("sound");
        let mut delays = Vec::new();
        for step in 0..400_000_u64 {
            let now = Instant::from_millis(37 * step);
            while let Some((at, sent)) = link.pop(now) {
                delays.push(at.since(sent).as_secs_f64() * 1e3);
            }
            link.push(now, ByteCount::new(1), now).expect("goes");
        }
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        let outages = (0.06 / 20.06) * 60.0;
        let expected = 15.0 + 2.0 * (2.0 / std::f64::consts::PI).sqrt() + 8.0 / 9.0 + outages;
        assert!((mean - expected).abs() < 0.05, "{mean}, {expected}");
        let late = delays.iter().filter(|delay| **delay > 40.0).count() as f64;
        // More than three rounds, or an outage that lasts 23 ms longer.
        let expected = 0.1_f64.powi(3) + 0.06 / 20.06 * (-23.5_f64 / 60.0).exp();
        let measured = late / delays.len() as f64;
        assert!((measured / expected - 1.0).abs() < 0.15, "{measured}, {expected}");
    }

    #[test]
    fn driving_has_the_round_trip_and_the_rate_of_its_sources() {
        let mut rtts: Vec<f64> = (0..8).flat_map(round_trips_ms).collect();
        rtts.sort_by(f64::total_cmp);
        let quantile = |q: f64| rtts[(q * (rtts.len() - 1) as f64) as usize];
        let (p5, p50, p99) = (quantile(0.05), quantile(0.5), quantile(0.99));
        assert!((45.0..52.0).contains(&p5), "p5 {p5} ms");
        assert!((47.0..56.0).contains(&p50), "p50 {p50} ms");
        assert!((100.0..360.0).contains(&p99), "p99 {p99} ms");
        let rate = (0..8).map(full_rate_mbps).sum::<f64>() / 8.0;
        assert!((6.8..8.8).contains(&rate), "mean rate {rate} Mbit/s");
    }

    /// Returns the round trips, in ms, of pings over an idle link at 5 Hz for two minutes; lost
    /// ones are left out.
    fn round_trips_ms(seed: u64) -> Vec<f64> {
        let (mut up, mut down) = lte_driving().links::<Instant>(seed).expect("sound");
        let mut rtts = Vec::new();
        for millis in 0..120_000 {
            let now = Instant::from_millis(millis);
            if millis % 200 == 0 {
                let _ = up.push(now, ByteCount::new(64), now);
            }
            while let Some((_, sent)) = up.pop(now) {
                let _ = down.push(now, ByteCount::new(64), sent);
            }
            while let Some((at, sent)) = down.pop(now) {
                rtts.push(at.since(sent).as_secs_f64() * 1e3);
            }
        }
        rtts
    }

    fn full_rate_mbps(seed: u64) -> f64 {
        let (mut up, _) = lte_driving().links::<()>(seed).expect("sound");
        for millis in 0..120_000 {
            let now = Instant::from_millis(millis);
            while up.push(now, ByteCount::new(1172), ()).is_ok() {}
            while up.pop(now).is_some() {}
        }
        up.counters().delivered as f64 * 1200.0 * 8.0 / 120.0 / 1e6
    }
}
