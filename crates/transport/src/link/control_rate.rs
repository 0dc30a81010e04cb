use tautline_units::{Bitrate, Duration, Instant};

/// Rate of the traffic on a link that is neither media nor data within the headroom: pings, pongs,
/// reports, commands, telemetry, and data while it is limited to its share of media's rate.
///
/// On a low-rate uplink it is a large share, which the application's budget must exclude.
#[derive(Debug)]
pub(crate) struct ControlRate {
    /// Smoothed rate of what the link sends without media and data, bit/s.
    rate: f64,
    /// Bytes sent in the present measurement interval, without media and data.
    bytes: u64,
    /// Start of the present measurement interval.
    since: Instant,
}

impl ControlRate {
    pub(crate) fn new(now: Instant) -> Self {
        Self { rate: 0.0, bytes: 0, since: now }
    }

    /// Returns the rate of what the link sends without media and data, smoothed over about half a
    /// second.
    pub(crate) fn rate(&self) -> Bitrate {
        Bitrate::from_bps(self.rate as u64)
    }

    /// Records a datagram of `bytes` bytes, of any kind. If the present measurement interval has
    /// lasted [`SPAN`], its rate is first averaged in and a new interval begins.
    pub(crate) fn on_sent(&mut self, bytes: usize, now: Instant) {
        let elapsed = now.since(self.since);
        if elapsed >= SPAN {
            let rate = self.bytes as f64 * 8.0 / elapsed.as_secs_f64();
            self.rate += (rate - self.rate) * SHARE;
            (self.bytes, self.since) = (0, now);
        }
        self.bytes += bytes as u64;
    }

    /// Takes back the last recorded datagram, of `bytes` bytes, because it is media, or data within
    /// the headroom.
    pub(crate) fn unsend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }
}

/// Interval over which each sample of the rate is measured: five pings.
const SPAN: Duration = Duration::from_millis(100);
const SHARE: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_taken_back_counts() {
        let mut beside = ControlRate::new(Instant::ZERO);
        for tick in 0..1_000 {
            let now = Instant::from_millis(tick * 10);
            beside.on_sent(1_000, now);
            beside.unsend(1_000);
            beside.on_sent(50, now);
        }
        let rate = beside.rate().bps();
        assert!(rate.abs_diff(40_000) < 1_000, "{rate}");
    }
}
