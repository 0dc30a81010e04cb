use tautline_units::{Bitrate, Duration, Instant};

use super::protect;
use crate::config::Config;
use crate::wire::{Prefix, SYMBOL_AROUND_BYTES};

/// Works out what the application may send, and when that is news.
#[derive(Debug)]
pub(super) struct Budget {
    told: Option<Bitrate>,
    /// Between two media units, smoothed, in seconds.
    unit_interval: Option<f64>,
    unit_at: Option<Instant>,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { told: None, unit_interval: None, unit_at: None }
    }

    /// Whether the application was last told more than zero.
    pub(super) fn is_told(&self) -> bool {
        self.told.is_some_and(|told| told > Bitrate::ZERO)
    }

    /// Notes a media unit: our share of each costs the same, however small it is.
    pub(super) fn on_unit(&mut self, now: Instant) {
        if let Some(at) = self.unit_at {
            let sample = now.since(at).min(PAUSE).as_secs_f64();
            self.unit_interval = Some(match self.unit_interval {
                Some(old) => old + (sample - old) / INTERVAL_SHARE,
                None => sample,
            });
        }
        self.unit_at = Some(now);
    }

    /// Between two media units; a slice's time before it is known.
    pub(super) fn unit_interval(&self) -> Duration {
        let seconds = self.unit_interval.unwrap_or(UNIT_INTERVAL_GUESS);
        Duration::from_secs_f64(seconds).clamp(UNIT_INTERVAL_LEAST, PAUSE)
    }

    /// The budget, when it is news: it began, ended, or moved by a fiftieth.
    pub(super) fn update(&mut self, media: Bitrate) -> Option<Bitrate> {
        let news = match self.told {
            None => media != Bitrate::ZERO,
            Some(told) => {
                let (low, high) = (told.scale(1.0 - NEWS), told.scale(1.0 + NEWS));
                (media == Bitrate::ZERO) != (told == Bitrate::ZERO) || media < low || media > high
            }
        };
        if news {
            self.told = Some(media);
        }
        news.then_some(media)
    }

    /// Source bits per second of a fixed code rate: its part of what is granted, less our own
    /// bytes around at least k source packets for every unit.
    pub(super) fn fixed(
        &self,
        granted: Bitrate,
        config: &Config,
        datagram_bytes: usize,
    ) -> Bitrate {
        let source = granted.as_f64() * config.budget_share * config.protect.code_rate;
        let share = source * SYMBOL_AROUND_BYTES as f64 / datagram_bytes as f64;
        let interval = self.unit_interval.filter(|interval| *interval > 0.0);
        let least = interval.map_or(0.0, |interval| around(source, interval, &config.protect));
        let around = share.max(least).min(source * 0.9);
        Bitrate::from_bps((source - around) as u64)
    }
}

/// Bits per second of ours if `source` bits per second are shared by units at this interval: the
/// fewer bits, the fewer source packets a unit has.
fn around(source: f64, interval: f64, protect: &protect::Config) -> f64 {
    let counts = (1..=protect.source_count_min).rev();
    let mut bits = counts.map(|count| {
        let bits = (SYMBOL_AROUND_BYTES * count + Prefix::BYTES) as f64 * 8.0 / interval;
        let unit_bytes = ((source - bits) * interval / 8.0) as usize;
        (bits, protect.source_count_for(unit_bytes) >= count)
    });
    bits.find_map(|(bits, fits)| fits.then_some(bits)).unwrap_or(0.0)
}

const INTERVAL_SHARE: f64 = 64.0;
/// An encoder that paused says nothing about its rhythm.
const PAUSE: Duration = Duration::from_millis(200);
/// 360 slices a second.
const UNIT_INTERVAL_GUESS: f64 = 1.0 / 360.0;
const UNIT_INTERVAL_LEAST: Duration = Duration::from_micros(500);
/// Below a fiftieth an encoder's own swings are larger.
const NEWS: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_told_once_and_when_it_moves() {
        let config = Config::default();
        let mut budget = Budget::new();
        assert_eq!(budget.update(Bitrate::ZERO), None);
        let media = |granted| budget.fixed(Bitrate::from_kbps(granted), &config, 1_200);
        let [full, more, less] = [media(32_000), media(32_100), media(31_000)];
        assert_eq!(full.bps(), 14_028_000);
        assert_eq!(budget.update(full), Some(full));
        assert_eq!(budget.update(more), None);
        assert!(budget.update(less).is_some());
        assert_eq!(budget.update(Bitrate::ZERO), Some(Bitrate::ZERO));
        assert_eq!(budget.update(Bitrate::ZERO), None);
    }

    #[test]
    fn many_small_units_leave_less_for_their_content() {
        let config = Config::default();
        let mut budget = Budget::new();
        for unit in 0..3_600 {
            budget.on_unit(Instant::from_micros(unit * 2_778));
        }
        let told = budget.fixed(Bitrate::from_mbps(4), &config, 1_200);
        // 1.8 Mbit/s of source, 132 bytes around each of 360 units a second.
        assert!(told.bps().abs_diff(1_800_000 - 380_160) < 2_000, "{told}");
        // 0.36 Mbit/s of source: two source packets a unit, 70 bytes around them.
        let told = budget.fixed(Bitrate::from_kbps(800), &config, 1_200);
        assert!(told.bps().abs_diff(360_000 - 201_600) < 2_000, "{told}");
    }
}
