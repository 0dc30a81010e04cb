//! The check of the steering: the wheels of an armed machine are turned for a person to look at.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

/// A turn of the wheels to the left, to the right and back, at standstill.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Check {
    begun_at: Instant,
}

impl Check {
    pub(super) const fn begin(now: Instant) -> Self {
        Self { begun_at: now }
    }

    /// Returns the steering's share at `now`, left positive; `None` once the wheels are the person's again.
    pub(super) fn share(self, now: Instant) -> Option<f32> {
        let passed = now.since(self.begun_at);
        match passed.as_nanos() / SIDE.as_nanos() {
            0 => Some(SHARE),
            1 => Some(-SHARE),
            2 => Some(0.0),
            _ => None,
        }
    }
}

/// Share of the steering's reach: to be seen from a distance, and within what tyres turn at standstill.
const SHARE: f32 = 0.3;
/// Time for each side: the default rate takes 0.7 s from one to the other.
const SIDE: Duration = Duration::from_millis(1_200);
