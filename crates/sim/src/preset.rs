//! Named links, every number with its reason.
//!
//! Sources: "model" is reference/multilink-and-rate.md, Link model; "pam25" the drive-test pings
//! and "cicv5g" the vehicle-to-cloud echoes of data/delay; "traces" the LTE recordings of
//! data/links. Where a number is a choice and no measurement, it says so.

use std::fmt;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::link::{Config, Handover, Jitter, Outage, Pair, Retransmission, Swing};

/// A kind of link by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// [`lan`].
    Lan,
    /// [`lte`].
    Lte,
    /// [`lte_driving`].
    LteDriving,
}

/// One of two mobile carriers with networks of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// The preset's own numbers.
    #[default]
    A,
    /// Less rate and more delay: 0.85 of the rate and 3 ms more each way, about what lies between
    /// the medians of neighbouring carriers in pam25 (51, 55 and 59 ms).
    B,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 3] = [Self::Lan, Self::Lte, Self::LteDriving];

    /// The name in configuration and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lan => "lan",
            Self::Lte => "lte",
            Self::LteDriving => "lte-driving",
        }
    }

    /// The preset of this name.
    ///
    /// # Errors
    /// [`Error::UnknownPreset`], which lists the names.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|preset| preset.name() == name);
        found.ok_or_else(|| Error::UnknownPreset { name: name.to_owned() })
    }

    /// Both directions with the preset's own numbers.
    pub fn pair(self) -> Pair {
        match self {
            Self::Lan => lan(),
            Self::Lte => lte(),
            Self::LteDriving => lte_driving(),
        }
    }

    /// Both directions as one of a carrier's modems has them.
    ///
    /// No two modems are alike: the seed moves the rates by up to a tenth and the delays by up
    /// to 2 ms, both ways alike. A `lan` is what it is.
    pub fn pair_of(self, carrier: Carrier, seed: u64) -> Pair {
        let pair = self.pair();
        match self {
            Self::Lan => pair,
            Self::Lte | Self::LteDriving => {
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

impl FromStr for Preset {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::parse(name)
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A wired network in one building: nothing in the way.
///
/// - rate 1000 Mbit/s: Gigabit Ethernet;
/// - delay 0.1 ms one way: two switches and their cables, an order of magnitude (a choice);
/// - queue 1 MB, 8 ms at that rate: a small switch's buffer (a choice).
pub fn lan() -> Pair {
    let config = Config { rate_mbps: Some(1000.0), queue_bytes: 1_000_000, ..quiet() };
    Pair::symmetric(Config { delay_ms: 0.1, ..config })
}

/// A parked car's LTE modem with good signal.
///
/// - rate up 8, down 15 Mbit/s: between the traces' uplink of 6 Mbit/s (2016) and today's; the
///   downlink is the mean of the 15 Mbit/s trace;
/// - swings sigma 0.25, time constant 80 ms: model;
/// - queue 300 ms at the mean rate: modems hold a few hundred milliseconds (a choice within);
/// - delay up 20, down 15 ms: the model's 15 ms one way, and 5 ms more for the uplink, which must
///   ask for its grants; with jitter and retransmissions a round trip is about 40 ms, pam25's
///   5th percentiles being 29 to 39 ms;
/// - jitter |AR(1)| of sigma 2 ms and 1 s; HARQ + 8 ms with probability 0.1: model;
/// - loss 0.0005 independent: the order of what is left after the radio's own repeats (a choice,
///   below what pam25 can tell from its outages).
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

/// A moving car's LTE modem. As [`lte`], save for:
///
/// - swings sigma 0.5, time constant 1.5 s: in the traces of 6 and 5 Mbit/s the logarithm of the
///   rate over 100 ms lies 0.54 to 0.59 above its median at the 84th percentile, and correlates
///   by 0.48 to 0.72 over 1 s;
/// - delay up 25, down 20 ms: round trips of about 51 ms, pam25's medians while driving being 51,
///   55 and 59 ms;
/// - handovers of 300 ms every 10 to 30 s, both directions at once: data/README.md (steps of 250
///   to 350 ms every 10 to 30 s; cicv5g shows their peaks at 255 to 350 ms);
/// - outages that hold, 60 ms every 20 s in the mean: model;
/// - outages that lose, 200 ms every 60 s in the mean, both directions at once: pam25 loses runs
///   of pings every 45 to 65 s, three quarters of them a single ping at 5 Hz. Its rare outages of
///   many seconds are left out: a button cuts a link.
///
/// Idle pings at 5 Hz over 40 minutes of it: round trip p5/p50/p95/p99 46/49/61/180 ms, 0.4 %
/// lost; pam25 has 29 to 39, 51 to 59, 100 to 146, 231 to 736 ms and 0.6 to 1.9 %: the real tails
/// are fatter. The uplink's capacity over 1 s: p5/p50/p95 3.3/6.8/14.2 Mbit/s, mean 7.5.
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

/// A stream of the seed that no part of a link uses.
const MODEM_STREAM: u64 = 1 << 32;

fn quiet() -> Config {
    Config::of_rate(tautline_units::Bitrate::from_mbps(1))
}

/// To a thousandth: what a person would write.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use tautline_units::{ByteCount, Instant};

    use super::*;

    #[test]
    fn presets_are_found_by_name_and_sound() {
        for preset in Preset::ALL {
            assert_eq!(Preset::parse(preset.name()).expect("known"), preset);
            for (carrier, seed) in [(Carrier::A, 0), (Carrier::A, 1), (Carrier::B, 2)] {
                let pair = preset.pair_of(carrier, seed);
                pair.links::<()>(seed).expect("sound");
                assert_eq!(pair, preset.pair_of(carrier, seed));
            }
        }
        let error = Preset::parse("5g").expect_err("unknown");
        assert_eq!(error.to_string(), "unknown preset \"5g\": choose one of lan, lte, lte-driving");
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

    /// Pings of an idle link at 5 Hz for two minutes.
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
