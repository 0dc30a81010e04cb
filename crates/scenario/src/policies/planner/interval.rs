use tautline_units::{Duration, Instant};

/// Interval between an application's units.
#[derive(Debug, Clone, Default)]
pub(super) struct Interval {
    /// Smoothed time between two units in seconds; `None` before the second unit.
    smoothed: Option<f64>,
    unit_at: Option<Instant>,
}

impl Interval {
    /// Updates the smoothed interval by a unit offered at `now`; an interval above [`PAUSE`] counts
    /// as that.
    pub(super) fn on_unit(&mut self, now: Instant) {
        if let Some(at) = self.unit_at {
            let sample = now.since(at).min(PAUSE).as_secs_f64();
            self.smoothed = Some(match self.smoothed {
                Some(old) => old + (sample - old) / SHARE,
                None => sample,
            });
        }
        self.unit_at = Some(now);
    }

    /// Returns the seconds between two units, if known and not zero.
    pub(super) fn seconds(&self) -> Option<f64> {
        self.smoothed.filter(|seconds| *seconds > 0.0)
    }
}

const SHARE: f64 = 64.0;
/// Longest interval used as a sample: a paused encoder shows nothing about its interval.
const PAUSE: Duration = Duration::from_millis(200);
