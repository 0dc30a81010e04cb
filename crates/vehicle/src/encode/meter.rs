use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::ego_motion::EgoMotion;

/// Encoding times since they were last taken, and counters of the encoders' output.
#[derive(Debug, Default)]
pub struct Meter {
    recent: Mutex<Vec<Duration>>,
    /// Slices handed to the transport.
    pub slices_sent: AtomicU64,
    /// Slices not sent, because the queue of the event loop was full.
    pub slices_refused: AtomicU64,
    /// Strips that were not encoded because they would have been late, or because nothing may be
    /// sent.
    pub strips_held: AtomicU64,
    /// Slices that could not be encoded.
    pub slices_failed: AtomicU64,
    /// Ego-motion estimate from the slices' motion vectors.
    pub sight: EgoMotion,
    /// Strips that each encoder has finished, with any outcome.
    pub strips_done: [AtomicU64; ENCODER_COUNT],
}

/// Number of encoders that take strips in turn ([LTE] IV.C).
pub const ENCODER_COUNT: usize = 2;

impl Meter {
    pub(super) fn record(&self, duration: Duration) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() < RECENT_MAX {
            recent.push(duration);
        }
    }

    /// Returns the median and 99th percentile of the encoding times since the last call, and resets
    /// them; zero if there were none.
    pub fn take_percentiles(&self) -> (Duration, Duration) {
        let mut recent = {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *recent)
        };
        recent.sort_unstable();
        let at =
            |share: usize| recent.get((recent.len() * share / 100).min(recent.len().max(1) - 1));
        let or_zero = |duration: Option<&Duration>| duration.copied().unwrap_or_default();
        (or_zero(at(50)), or_zero(at(99)))
    }
}

/// Maximum of encoding times kept, one second of 60 pictures of six strips; further ones are not
/// recorded.
const RECENT_MAX: usize = 360;
