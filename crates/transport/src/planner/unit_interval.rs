use tautline_units::{Duration, Instant};

/// The unit_interval of the application's media units: their interval and lifetime.
#[derive(Debug, Clone)]
pub(super) struct UnitInterval {
    /// Smoothed interval between units, in seconds.
    interval: Option<f64>,
    unit_at: Option<Instant>,
    span: Duration,
}

impl UnitInterval {
    /// Creates an unknown unit_interval; `span` is the assumed lifetime before the first unit.
    pub(super) fn new(span: Duration) -> Self {
        Self { interval: None, unit_at: None, span }
    }

    /// Records a unit. Our overhead per unit is constant, however small the unit is.
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

    /// Returns the time between two units; a slice interval while it is unknown.
    pub(super) fn interval(&self) -> Duration {
        let seconds = self.interval.unwrap_or(INTERVAL_GUESS);
        Duration::from_secs_f64(seconds).clamp(INTERVAL_LEAST, PAUSE)
    }

    /// Returns the lifetime of the last unit.
    pub(super) fn span(&self) -> Duration {
        self.span
    }
}

const INTERVAL_SHARE: f64 = 64.0;
/// Longest interval used as a sample: a paused encoder shows nothing about its unit_interval.
const PAUSE: Duration = Duration::from_millis(200);
/// 360 slices a second.
const INTERVAL_GUESS: f64 = 1.0 / 360.0;
const INTERVAL_LEAST: Duration = Duration::from_micros(500);
