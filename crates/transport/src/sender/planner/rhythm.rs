use tautline_units::{Duration, Instant};

/// The rhythm of the application's media units: how far apart they come, and for how long each is
/// worth something.
#[derive(Debug, Clone)]
pub(super) struct Rhythm {
    /// Between two units, smoothed, in seconds.
    interval: Option<f64>,
    unit_at: Option<Instant>,
    span: Duration,
}

impl Rhythm {
    /// Makes a rhythm that is not known; `span`: what a unit is taken to be worth before one came.
    pub(super) fn new(span: Duration) -> Self {
        Self { interval: None, unit_at: None, span }
    }

    /// Takes note of a unit: our share of each costs the same, however small it is.
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

    /// Returns the seconds between two units, if that is known and not zero.
    pub(super) fn seconds(&self) -> Option<f64> {
        self.interval.filter(|interval| *interval > 0.0)
    }

    /// Returns the time between two units; a slice's time before it is known.
    pub(super) fn interval(&self) -> Duration {
        let seconds = self.interval.unwrap_or(INTERVAL_GUESS);
        Duration::from_secs_f64(seconds).clamp(INTERVAL_LEAST, PAUSE)
    }

    /// Returns for how long the last unit is worth something.
    pub(super) fn span(&self) -> Duration {
        self.span
    }
}

const INTERVAL_SHARE: f64 = 64.0;
/// An encoder that paused says nothing about its rhythm.
const PAUSE: Duration = Duration::from_millis(200);
/// 360 slices a second.
const INTERVAL_GUESS: f64 = 1.0 / 360.0;
const INTERVAL_LEAST: Duration = Duration::from_micros(500);
