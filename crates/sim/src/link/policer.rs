use tautline_units::{Bitrate, Duration};

use super::config::Policer;

/// A token bucket that drops packets above its rate. It has no queue, so the delay does not reveal
/// it.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: Bitrate,
    /// Tokens in bits times nanoseconds, so that rounding loses nothing.
    tokens: u128,
    most: u128,
    filled_at: u64,
}

impl Bucket {
    /// Creates a full bucket.
    pub(super) fn new(policer: &Policer) -> Self {
        let most = u128::from(policer.burst_bytes) * BIT_NANOS_PER_BYTE;
        let rate = Bitrate::from_bps((policer.rate_mbps * 1e6).round() as u64);
        Self { rate, tokens: most, most, filled_at: 0 }
    }

    /// Returns whether a packet of `bytes` bytes passes at `now`, and takes its tokens if so.
    pub(super) fn admits(&mut self, bytes: u64, now: u64) -> bool {
        let since = now.saturating_sub(self.filled_at);
        self.filled_at = now.max(self.filled_at);
        let come = u128::from(self.rate.bps()) * u128::from(since);
        self.tokens = (self.tokens + come).min(self.most);
        let cost = u128::from(bytes) * BIT_NANOS_PER_BYTE;
        let admitted = self.tokens >= cost;
        if admitted {
            self.tokens -= cost;
        }
        admitted
    }
}

/// One byte, in bits times the nanoseconds of a second.
const BIT_NANOS_PER_BYTE: u128 = 8 * Duration::from_secs(1).as_nanos();
