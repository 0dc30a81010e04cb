//! Steering check: turns the wheels of an armed machine while a person watches.

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

    /// Returns the share of steering at `now`, left positive; `None` after the check, when the
    /// person steers again.
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

/// Share of the steering range to which the wheels turn: visible from a distance, and possible for
/// tyres at standstill.
const SHARE: f32 = 0.3;
/// Time for each of left, right and middle: from one side to the other, the default steering rate
/// needs 0.7 s.
const SIDE: Duration = Duration::from_millis(1_200);
