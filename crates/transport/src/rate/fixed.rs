use tautline_units::{Bitrate, Instant};

use super::controller::{Controller, Evidence};
use super::grant::{Cause, Grant};

/// A controller that grants the configured rate, regardless of reports.
#[derive(Debug, Clone)]
pub struct Fixed {
    rate: Bitrate,
}

impl Fixed {
    /// Creates a controller that grants `rate`.
    pub fn new(rate: Bitrate) -> Self {
        Self { rate }
    }
}

impl Controller for Fixed {
    fn initial(&self) -> Grant {
        Grant {
            rate: self.rate,
            sustained: self.rate,
            window: None,
            probing: false,
            cause: Cause::Fixed,
        }
    }

    fn on_report(&mut self, _evidence: &Evidence) -> Grant {
        self.initial()
    }

    fn on_silent(&mut self, _now: Instant) -> Grant {
        self.initial()
    }

    fn avoids_queues(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use tautline_units::Probability;

    use super::*;

    #[test]
    fn nothing_moves_a_fixed_rate() {
        let rate = Bitrate::from_mbps(3);
        let mut fixed = Fixed::new(rate);
        let evidence = Evidence { loss: Probability::ONE, ..Evidence::nothing(Instant::ZERO) };
        assert_eq!(fixed.on_report(&evidence).rate, rate);
        assert_eq!(fixed.on_silent(Instant::ZERO).sustained, rate);
    }
}
