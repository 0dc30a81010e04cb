use tautline_units::{Duration, Instant};

/// Interval and lifetime of the media units that the application hands over.
#[derive(Debug, Clone)]
pub(super) struct UnitInterval {
    /// Smoothed interval between units, in seconds; `None` before the second unit.
    interval: Option<f64>,
    unit_at: Option<Instant>,
    span: Duration,
}

impl UnitInterval {
    /// Creates the state before the first unit, for which `span` is the assumed lifetime.
    pub(super) fn new(span: Duration) -> Self {
        Self { interval: None, unit_at: None, span }
    }

    /// Records a unit that is handed over now and must arrive by `deadline`.
    pub(super) fn on_unit(&mut self, deadline: Instant, now: Instant) {
        self.span = deadline.since(now);
        if let Some(at) = self.unit_at {
            let sample = now.since(at).min(PAUSE).as_secs_f64();
            self.interval = Some(match self.interval {
                Some(old) => old + (sample - old) / INTERVAL_SHARE,
                None => sample,
            });
        }
        self.unit_at = Some(now);
    }

    /// Returns the smoothed time between two units, within 0.5 to 200 ms; 2.8 ms, as between
    /// slices, before the second unit.
    pub(super) fn interval(&self) -> Duration {
        let seconds = self.interval.unwrap_or(INTERVAL_GUESS);
        Duration::from_secs_f64(seconds).clamp(INTERVAL_LEAST, PAUSE)
    }

    /// Returns the lifetime of the last unit, from hand-over to deadline; the assumed one before
    /// the first.
    pub(super) fn span(&self) -> Duration {
        self.span
    }
}

const INTERVAL_SHARE: f64 = 64.0;
/// Maximum interval that a sample counts as: a paused encoder shows nothing about its interval.
const PAUSE: Duration = Duration::from_millis(200);
/// Assumed interval before the second unit, in seconds: that of 360 slices a second.
const INTERVAL_GUESS: f64 = 1.0 / 360.0;
const INTERVAL_LEAST: Duration = Duration::from_micros(500);
