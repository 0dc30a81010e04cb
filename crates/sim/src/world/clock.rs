use std::time::Duration;

use tautline_units::Instant;

/// A node's own clock, with an offset and a constant drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    offset_nanos: u64,
    drift_ppb: i64,
}

impl Clock {
    /// Creates a clock that shows `offset` at the world's start and gains `drift_ppm` microseconds
    /// each second. Crystals drift by up to about 100 ppm; the drift is limited to half a second
    /// per second.
    pub fn new(offset: Duration, drift_ppm: f64) -> Self {
        let drift_ppb = (drift_ppm * 1e3).clamp(-5e8, 5e8).round() as i64;
        Self { offset_nanos: u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX), drift_ppb }
    }

    /// Returns the time on this clock at the world's instant `world`.
    pub fn local(&self, world: Instant) -> Instant {
        let nanos = i128::from(world.as_nanos());
        let drift = (nanos * i128::from(self.drift_ppb)).div_euclid(i128::from(BILLION));
        hold(nanos + drift + i128::from(self.offset_nanos))
    }

    /// Returns the first instant of the world at which this clock shows at least `local`; the last
    /// instant of the clock's range for the last one.
    pub fn world(&self, local: Instant) -> Instant {
        if local.as_nanos() == u64::MAX {
            return local;
        }
        let since = i128::from(local.as_nanos()) - i128::from(self.offset_nanos);
        let speed = i128::from(BILLION + self.drift_ppb);
        let scaled = since.max(0) * i128::from(BILLION);
        hold((scaled + speed - 1).div_euclid(speed))
    }
}

const BILLION: i64 = 1_000_000_000;

fn hold(nanos: i128) -> Instant {
    Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_clock_gains_its_drift() {
        let clock = Clock::new(Duration::from_secs(1), 100.0);
        assert_eq!(clock.local(Instant::from_millis(10_000)), Instant::from_millis(11_001));
        assert_eq!(clock.world(Instant::from_millis(11_001)), Instant::from_millis(10_000));
    }

    proptest! {
        #[test]
        fn a_timeout_is_due_when_the_world_reaches_it(
            offset in 0_u64..1 << 50, drift in -500.0..500.0_f64, ahead in 0_u64..1 << 50,
        ) {
            let clock = Clock::new(Duration::from_nanos(offset), drift);
            let local = Instant::from_nanos(offset + ahead);
            let world = clock.world(local);
            prop_assert!(clock.local(world) >= local);
            if world > Instant::ZERO {
                prop_assert!(clock.local(world - Duration::from_nanos(1)) < local);
            }
        }

        #[test]
        fn any_instants_are_held(offset: u64, drift: f64, at: u64) {
            let clock = Clock::new(Duration::from_nanos(offset), drift);
            clock.local(Instant::from_nanos(at));
            clock.world(Instant::from_nanos(at));
        }
    }
}
