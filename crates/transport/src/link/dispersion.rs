use tautline_units::{Bitrate, Duration};

/// Lower bound of a link's capacity from packet dispersion: the bytes of a large datagram, divided
/// by the time by which its transit exceeds that of the fastest small one. The path's slowest hop
/// passed the large datagram within that time.
///
/// Jitter also delays large datagrams and makes the result lower than the capacity. A small
/// datagram that was never as fast as possible, or a policer with a full bucket, makes it higher.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Dispersion {
    /// Minimum transit of small pings in nanoseconds: the peer's clock at arrival minus ours at
    /// sending. `None` before the first.
    least: Option<i64>,
    /// Transit in nanoseconds and size in bytes of the padded ping with the highest result; `None`
    /// before the first.
    padded: Option<(i64, usize)>,
}

impl Dispersion {
    /// Records the transit of a small ping, in nanoseconds including the clock offset; the minimum
    /// is kept.
    pub(crate) fn on_small(&mut self, nanos: i64) {
        self.least = Some(self.least.map_or(nanos, |least| least.min(nanos)));
    }

    /// Records the transit of a padded ping of `bytes` bytes, in nanoseconds including the clock
    /// offset; only the one with the highest result is kept.
    pub(crate) fn on_padded(&mut self, nanos: i64, bytes: usize) {
        let new = Some((nanos, bytes));
        if self.padded.is_none() || self.rate(new) > self.rate(self.padded) {
            self.padded = new;
        }
    }

    /// Returns the lower bound of the link's capacity; zero before the first measurement.
    pub(crate) fn shown(&self) -> Bitrate {
        self.rate(self.padded)
    }

    fn rate(&self, padded: Option<(i64, usize)>) -> Bitrate {
        let Some(((nanos, bytes), least)) = padded.zip(self.least) else { return Bitrate::ZERO };
        let later = nanos.saturating_sub(least).max(LATER_LEAST.as_nanos() as i64);
        Bitrate::from_bps((bytes as f64 * 8e9 / later as f64) as u64)
    }
}

/// Minimum time assumed for sending a padded ping's bytes, whatever its transit shows: process
/// scheduling at both ends causes smaller differences.
const LATER_LEAST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispersion_bounds_capacity_from_below_at_any_clock_offset() {
        for offset in [-9_000_000_000_i64, 0, 4_000_000_000] {
            let mut dispersion = Dispersion::default();
            dispersion.on_padded(offset + 70_000_000, 1_200);
            assert_eq!(dispersion.shown(), Bitrate::ZERO, "nothing to hold it against");
            dispersion.on_small(offset + 40_000_000);
            dispersion.on_small(offset + 22_000_000);
            assert_eq!(dispersion.shown(), Bitrate::from_kbps(200), "48 ms for 9,600 bits");
            dispersion.on_padded(offset + 90_000_000, 1_200);
            assert_eq!(dispersion.shown(), Bitrate::from_kbps(200), "jitter takes nothing back");
            dispersion.on_padded(offset + 28_000_000, 1_500);
            assert_eq!(dispersion.shown(), Bitrate::from_mbps(2));
            dispersion.on_small(offset + 18_000_000);
            assert_eq!(dispersion.shown(), Bitrate::from_kbps(1_200), "a quicker one does");
        }
    }

    #[test]
    fn an_overtaking_ping_shows_at_most_the_measurable_rate() {
        let mut dispersion = Dispersion::default();
        dispersion.on_small(5_000_000);
        dispersion.on_padded(3_000_000, 1_250);
        assert_eq!(dispersion.shown(), Bitrate::from_mbps(10));
    }
}
