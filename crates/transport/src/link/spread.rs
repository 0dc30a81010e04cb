use tautline_units::{Duration, Instant};

/// Distribution of the one-way delays of the last ten seconds: one logarithmic histogram per
/// second.
///
/// Fixed size: about 6 kB, allocated once. O(1) per sample. The resolution is 1/32 of the delay,
/// finer than the clock estimate on any link in use.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    slots: Box<[Slot; SECONDS]>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    second: u64,
    counts: [u16; BINS],
}

/// Percentiles of the one-way delays of the last ten seconds in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentiles {
    /// Median of the delays.
    pub p50: Duration,
    /// Delay that 95 % of the samples do not exceed.
    pub p95: Duration,
    /// Delay that 99 % of the samples do not exceed.
    pub p99: Duration,
}

impl Spread {
    pub(crate) fn new() -> Self {
        Self { slots: Box::new([Slot { second: 0, counts: [0; BINS] }; SECONDS]) }
    }

    /// Records a delay of `nanos` nanoseconds; a negative one, which only an error of the clock
    /// estimate produces, counts as zero.
    pub(crate) fn observe(&mut self, nanos: i64, now: Instant) {
        let second = second(now);
        let slot = &mut self.slots[(second % SECONDS as u64) as usize];
        if slot.second != second {
            *slot = Slot { second, counts: [0; BINS] };
        }
        let count = &mut slot.counts[bin(nanos.max(0) as u64)];
        *count = count.saturating_add(1);
    }

    /// Returns the percentiles; `None` if there was no sample in the last ten seconds.
    pub(crate) fn percentiles(&self, now: Instant) -> Option<Percentiles> {
        let oldest = second(now).saturating_sub(SECONDS as u64 - 1);
        let fresh = || self.slots.iter().filter(|slot| slot.second >= oldest);
        let count = |bin: usize| fresh().map(|slot| u64::from(slot.counts[bin])).sum::<u64>();
        let all: u64 = (0..BINS).map(count).sum();
        if all == 0 {
            return None;
        }
        let mut ranks = [50, 95, 99].map(|percent| (all * percent).div_ceil(100)).into_iter();
        let mut found = [Duration::ZERO; 3];
        let (mut at, mut below) = (0, 0);
        let mut rank = ranks.next();
        for bin in 0..BINS {
            below += count(bin);
            while rank.is_some_and(|rank| rank <= below) {
                found[at] = middle(bin);
                at += 1;
                rank = ranks.next();
            }
        }
        let [p50, p95, p99] = found;
        Some(Percentiles { p50, p95, p99 })
    }
}

fn second(now: Instant) -> u64 {
    now.as_millis() / 1_000
}

/// Returns the bin of a delay: 16 bins for the first 65 microseconds, then 16 for each doubling.
fn bin(nanos: u64) -> usize {
    let value = nanos >> GRAIN_BITS;
    let octave = (value.max(1).ilog2() as usize).saturating_sub(STEP_BITS);
    let step = (value >> octave) as usize;
    (octave * STEPS + step).min(BINS - 1)
}

/// Returns the delay in the middle of a bin.
fn middle(bin: usize) -> Duration {
    let octave = (bin / STEPS).saturating_sub(1);
    let step = (bin - octave * STEPS) as u64;
    let grain = 1_u64 << (GRAIN_BITS + octave);
    Duration::from_nanos(step * grain + grain / 2)
}

const SECONDS: usize = 10;
/// Base-2 logarithm of the width of the finest bins in nanoseconds: four microseconds; no clock
/// estimate is as accurate.
const GRAIN_BITS: usize = 12;
const STEP_BITS: usize = 4;
const STEPS: usize = 1 << STEP_BITS;
/// Number of bins: up to 8.6 seconds; longer delays count in the last bin.
const BINS: usize = 18 * STEPS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delay_is_known_to_a_32nd_part() {
        let mut nanos = 1_u64;
        while nanos < 8_000_000_000 {
            let found = middle(bin(nanos)).as_nanos() as u64;
            let most = (nanos / 32).max(1 << (GRAIN_BITS - 1));
            assert!(found.abs_diff(nanos) <= most, "{nanos}: {found}");
            nanos += nanos / 7 + 1;
        }
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_last_ten_seconds() {
        let mut spread = Spread::new();
        assert_eq!(spread.percentiles(Instant::ZERO), None);
        for at in 0..20_000_u64 {
            // First a slow link, then 10 to 30 ms.
            let millis = if at < 5_000 { 500 } else { 10 + (at * 7_919) % 21 };
            spread.observe(millis as i64 * 1_000_000, Instant::from_millis(at));
        }
        let now = Instant::from_millis(19_999);
        let found = spread.percentiles(now).unwrap();
        for (found, wanted) in [(found.p50, 20.0), (found.p95, 29.0), (found.p99, 30.0)] {
            let share = found.as_secs_f64() * 1e3 / wanted;
            assert!((0.96..1.04).contains(&share), "{found:?}, not {wanted} ms");
        }
        assert!(spread.percentiles(now + Duration::from_secs(9)).is_some());
        assert_eq!(spread.percentiles(now + Duration::from_secs(10)), None);
    }

    #[test]
    fn strange_delays_and_times_do_no_harm() {
        let mut spread = Spread::new();
        for nanos in [i64::MIN, -1, 0, i64::MAX] {
            for at in [0, u64::MAX] {
                spread.observe(nanos, Instant::from_nanos(at));
            }
        }
        assert!(spread.percentiles(Instant::from_nanos(u64::MAX)).is_some());
    }
}
