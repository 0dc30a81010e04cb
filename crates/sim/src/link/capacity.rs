use std::collections::VecDeque;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use tautline_units::Bitrate;

use super::common::Dips;
use super::config::{Config, Swing};
use super::interval::Gates;
use super::wander::Wander;
use crate::Error;
use crate::trace::{OPPORTUNITY_BYTES, Trace};

/// Varying capacity of a link, which computes when a packet departs.
#[derive(Debug)]
pub(super) struct Capacity {
    source: Source,
    dips: Dips,
}

#[derive(Debug)]
enum Source {
    Constant(Bitrate),
    /// Each rate with its end time, in order; the last one has no end.
    Stepped(VecDeque<(u64, Bitrate)>),
    Swinging {
        mean: Bitrate,
        sigma: f64,
        wander: Box<Wander>,
    },
    Recorded(Cursor),
}

impl Capacity {
    pub(super) fn new(config: &Config, rng: ChaCha8Rng, common: u64) -> Result<Self, Error> {
        let source = Source::new(config, rng)?;
        Ok(Self { source, dips: Dips::new(&config.common, common) })
    }

    /// Returns the departure time in ns of the last of `bytes` bytes if the first may leave from
    /// `start` on. While one of `gates` closes the link, nothing leaves.
    ///
    /// Saturates at the end of the clock's range.
    pub(super) fn finish(&mut self, start: u64, bytes: u64, gates: &mut Gates) -> u64 {
        if let Source::Recorded(cursor) = &mut self.source {
            return cursor.finish(start, bytes, gates, &mut self.dips);
        }
        let mut left = u128::from(bytes) * BIT_NANOS_PER_BYTE;
        let mut at = start;
        loop {
            let (open, closes) = gates.open_from(at);
            let (rate, rate_until) = self.source.rate_at(open);
            let (share, share_until) = self.dips.at(open);
            let end = rate_until.min(share_until).min(closes);
            let rate = if share < 1.0 { rate.scale(share) } else { rate };
            let rate = rate.bps().max(1);
            let can = u128::from(rate) * u128::from(end.saturating_sub(open));
            if can >= left || end == u64::MAX {
                return open.saturating_add(nanos_for(left, rate));
            }
            left -= can;
            at = end;
        }
    }

    /// Discards all scheduled work: the next packet may start immediately.
    pub(super) fn restart(&mut self) {
        match &mut self.source {
            Source::Recorded(cursor) => cursor.position = None,
            Source::Constant(_) | Source::Stepped(_) | Source::Swinging { .. } => {}
        }
    }

    /// Discards rates, random values and dips from before `now` (ns); no later query is earlier.
    pub(super) fn forget_before(&mut self, now: u64) {
        self.dips.forget_before(now);
        match &mut self.source {
            Source::Swinging { wander, .. } => wander.forget_before(now),
            Source::Stepped(steps) => {
                while steps.front().is_some_and(|(until, _)| *until <= now) {
                    steps.pop_front();
                }
            }
            Source::Constant(_) | Source::Recorded(_) => {}
        }
    }
}

impl Source {
    fn new(config: &Config, rng: ChaCha8Rng) -> Result<Self, Error> {
        if let Some(rate) = &config.trace {
            let Some(trace) = &rate.trace else {
                return Err(Error::TraceNotLoaded { path: rate.file.clone() });
            };
            let bytes = (OPPORTUNITY_BYTES.get() as f64 * rate.rate_factor).round() as u64;
            let start = (rate.start_s * 1e9) as u64;
            return Ok(Self::Recorded(Cursor::new(Arc::clone(trace), bytes.max(1), start)));
        }
        let mean = config.bitrate_mean().unwrap_or_default();
        if !config.steps.is_empty() {
            let begins = config.steps.iter().map(|step| (step.at_s * 1e9) as u64);
            let rates = config.steps.iter().map(|step| (step.rate_mbps * 1e6).round() as u64);
            let rates = std::iter::once(mean).chain(rates.map(Bitrate::from_bps));
            return Ok(Self::Stepped(begins.chain([u64::MAX]).zip(rates).collect()));
        }
        Ok(match config.swing {
            Some(Swing { sigma, tau_ms }) if sigma > 0.0 => {
                let tau = tau_ms * 1e6;
                // An eighth of the time constant: a finer grid costs more without changing any
                // result.
                let step = (tau / 8.0).clamp(1e6, 50e6) as u64;
                let wander = Box::new(Wander::new(tau as u64, step, rng));
                Self::Swinging { mean, sigma, wander }
            }
            _ => Self::Constant(mean),
        })
    }

    /// Returns the rate at `at`, and the instant until which it holds; for a trace, its mean.
    fn rate_at(&mut self, at: u64) -> (Bitrate, u64) {
        match self {
            Self::Constant(rate) => (*rate, u64::MAX),
            Self::Stepped(steps) => {
                let step = steps.iter().find(|(until, _)| at < *until);
                step.map_or((Bitrate::ZERO, u64::MAX), |(until, rate)| (*rate, *until))
            }
            Self::Swinging { mean, sigma, wander } => {
                let (value, until) = wander.at(at);
                // Half the variance is subtracted, so that the mean is preserved.
                let factor = (*sigma * value - *sigma * *sigma / 2.0).exp();
                (mean.scale(factor.max(RATE_FACTOR_MIN)), until)
            }
            Self::Recorded(cursor) => (cursor.trace.bitrate_mean(), u64::MAX),
        }
    }
}

/// Returns the time to send `left` (in bits times nanoseconds per second) at `rate`, rounded up.
///
/// Both nearly always fit into 64 bits, whose division is several times faster.
fn nanos_for(left: u128, rate: u64) -> u64 {
    match u64::try_from(left) {
        Ok(left) => left.div_ceil(rate),
        Err(_) => u64::try_from(left.div_ceil(u128::from(rate))).unwrap_or(u64::MAX),
    }
}

/// One byte, in bits times the nanoseconds of a second.
const BIT_NANOS_PER_BYTE: u128 = 8 * 1_000_000_000;

/// Lower bound of a varying capacity, a thousandth of its mean: outages are modelled separately.
const RATE_FACTOR_MIN: f64 = 1e-3;

/// The use of a looped trace: its opportunities up to the current position are used up.
#[derive(Debug)]
pub(super) struct Cursor {
    trace: Arc<Trace>,
    opportunity_bytes: u64,
    offset: u64,
    position: Option<Position>,
}

#[derive(Clone, Copy, Debug)]
struct Position {
    place: Place,
    bytes_left: u64,
}

/// A delivery opportunity of a looped trace: number of the loop, and index in the trace.
#[derive(Clone, Copy, Debug)]
struct Place {
    cycle: u64,
    index: usize,
}

impl Cursor {
    fn new(trace: Arc<Trace>, opportunity_bytes: u64, start_nanos: u64) -> Self {
        Self { trace, opportunity_bytes, offset: start_nanos, position: None }
    }

    /// Returns the departure time in ns of the last of `bytes` bytes, which use up the delivery
    /// opportunities from `start` on. Bytes of an opportunity that passes unused are lost, as in
    /// Mahimahi.
    fn finish(&mut self, start: u64, bytes: u64, gates: &mut Gates, dips: &mut Dips) -> u64 {
        let mut position = match self.position {
            Some(position) if self.instant(position.place) >= start => position,
            _ => self.at(self.seek(start), dips),
        };
        let mut left = bytes;
        loop {
            let instant = self.instant(position.place);
            if instant == u64::MAX {
                self.position = Some(position);
                return instant;
            }
            let (open, _) = gates.open_from(instant);
            if open > instant {
                position = self.at(self.seek(open), dips);
                continue;
            }
            let taken = left.min(position.bytes_left);
            left -= taken;
            position.bytes_left -= taken;
            if left == 0 {
                self.position = Some(position);
                return instant;
            }
            position = self.at(self.after(position.place), dips);
        }
    }

    fn instant(&self, place: Place) -> u64 {
        let nanos = self.trace.nanos_at(place.cycle, place.index);
        if nanos == u64::MAX { nanos } else { nanos.saturating_sub(self.offset) }
    }

    fn seek(&self, at: u64) -> Place {
        let (cycle, index) = self.trace.first_from(at.saturating_add(self.offset));
        Place { cycle, index }
    }

    fn after(&self, place: Place) -> Place {
        let last = place.index + 1 == self.trace.times_ms().len();
        if last {
            Place { cycle: place.cycle + 1, index: 0 }
        } else {
            Place { cycle: place.cycle, index: place.index + 1 }
        }
    }

    /// Returns the opportunity at `place`, unused, with its bytes reduced by any dip, to 1 at
    /// least.
    fn at(&self, place: Place, dips: &mut Dips) -> Position {
        let (share, _) = dips.at(self.instant(place));
        let bytes_left = (self.opportunity_bytes as f64 * share).round() as u64;
        Position { place, bytes_left: bytes_left.max(1) }
    }
}
