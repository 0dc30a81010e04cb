use std::time::Duration;

use tautline_message::{Act, Command};
use tautline_net::RateBound;
use tautline_units::Instant;

/// How often one console's commands are taken: those that say how to drive, and, on a lane of their own, the first of each
/// act and emergency stop, which no flood of the others keeps out.
///
/// What a page repeats of an act until it is answered goes with its other commands.
#[derive(Debug)]
pub(super) struct Lane {
    driving: RateBound,
    deeds: RateBound,
    last: (Option<Act>, u32),
}

/// What becomes of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// It brings an act or an emergency stop for the first time.
    Deed,
    /// It says how to drive.
    Driving,
    /// It is one too many.
    Flooded,
}

impl Lane {
    pub(super) fn new() -> Self {
        let driving = RateBound::new(DRIVING_INTERVAL, DRIVING_BURST);
        let deeds = RateBound::new(DEED_INTERVAL, DEED_BURST);
        Self { driving, deeds, last: (None, 0) }
    }

    /// Returns whether a command that comes now is taken, and on which lane.
    pub(super) fn take(&mut self, command: &Command, now: Instant) -> Taken {
        let deeds = (command.act, command.emergency_stop_number);
        let is_news = deeds != self.last && deeds != (None, 0);
        if is_news && self.deeds.take(now) {
            self.last = deeds;
            return Taken::Deed;
        }
        if self.driving.take(now) { Taken::Driving } else { Taken::Flooded }
    }
}

/// A page sends one in 20 ms: five times as many are taken.
const DRIVING_INTERVAL: Duration = Duration::from_millis(4);
/// Those of two thirds of a second at once, after a page that stood still.
const DRIVING_BURST: u32 = 32;
/// Nobody acts more often with intent.
const DEED_INTERVAL: Duration = Duration::from_millis(50);
const DEED_BURST: u32 = 8;

#[cfg(test)]
mod tests {
    use tautline_message::Deed;

    use super::*;

    fn stop(number: u32) -> Command {
        Command { emergency_stop_number: number, ..Command::default() }
    }

    #[test]
    fn a_flood_keeps_no_act_and_no_stop_out() {
        for per_second in [5_400, 50_000_u64] {
            let (mut lane, mut taken) = (Lane::new(), 0);
            let arm = Act { number: 1, stop: 0, deed: Deed::Arm };
            for step in 0..per_second {
                let now = Instant::from_nanos(1_000_000_000 + step * 1_000_000_000 / per_second);
                let command = Command { throttle: 0.5, ..Command::default() };
                taken += u64::from(lane.take(&command, now) == Taken::Driving);
                if step == per_second / 2 {
                    assert_eq!(lane.take(&stop(7), now), Taken::Deed);
                    assert_eq!(lane.take(&Command { act: Some(arm), ..stop(7) }, now), Taken::Deed);
                    assert_ne!(lane.take(&Command { act: Some(arm), ..stop(7) }, now), Taken::Deed);
                }
            }
            assert!((250..=290).contains(&taken), "{taken} of {per_second}");
        }
    }

    #[test]
    fn acts_that_come_as_a_flood_are_bounded_too() {
        let mut lane = Lane::new();
        let now = |step: u32| Instant::from_millis(1_000) + Duration::from_micros(200) * step;
        let taken = (1..=5_000).filter(|step| lane.take(&stop(*step), now(*step)) == Taken::Deed);
        assert!((20..=30).contains(&taken.count()));
    }

    #[test]
    fn what_a_page_sends_is_taken() {
        let mut lane = Lane::new();
        let at = |turn: u64| Instant::from_millis(1_000 + 20 * turn);
        let taken = (0..500).filter(|turn| lane.take(&stop(1), at(*turn)) != Taken::Flooded);
        assert_eq!(taken.count(), 500);
    }
}
