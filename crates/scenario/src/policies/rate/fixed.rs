use tautline_transport::rate::{Cause, Config, Controller, Evidence, Factory, Grant};
use tautline_units::{Bitrate, Instant};

/// A controller that grants the configured rate, regardless of reports.
#[derive(Debug, Clone)]
pub struct Fixed {
    rate: Bitrate,
}

/// The factory of [`Fixed`], which grants the initial rate.
#[derive(Debug, Clone, Copy)]
pub struct FixedFactory;

impl Factory for FixedFactory {
    fn controller(&self, config: &Config) -> Box<dyn Controller> {
        Box::new(Fixed::new(config.initial))
    }
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
    use tautline_units::ByteCount;

    use super::*;

    #[test]
    fn nothing_moves_a_fixed_rate() {
        let rate = Bitrate::from_mbps(3);
        let mut fixed = Fixed::new(rate);
        let evidence =
            Evidence { lost: ByteCount::new(30_000), ..Evidence::nothing(Instant::ZERO) };
        assert_eq!(fixed.on_report(&evidence).rate, rate);
        assert_eq!(fixed.on_silent(Instant::ZERO).sustained, rate);
    }
}
