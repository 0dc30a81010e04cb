use std::time::Duration;

use tautline_message::{Act, Command};
use tautline_net::RateBound;
use tautline_units::Instant;

/// Rate limits of one console's commands. Driving commands have one limit. The first command with a
/// new act or emergency stop has another, so a flood of driving commands cannot block it.
///
/// A page repeats an act until it is answered; the repetitions count as driving commands.
#[derive(Debug)]
pub(super) struct Lane {
    driving: RateBound,
    deeds: RateBound,
    last: (Option<Act>, u32),
}

/// Outcome of a command at the rate limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// Accepted, with an act or emergency stop that the previous such command did not have.
    Deed,
    /// Accepted as a driving command.
    Driving,
    /// Refused: above the rate limit.
    Flooded,
}

impl Lane {
    pub(super) fn new() -> Self {
        let driving = RateBound::new(DRIVING_INTERVAL, DRIVING_BURST);
        let deeds = RateBound::new(DEED_INTERVAL, DEED_BURST);
        Self { driving, deeds, last: (None, 0) }
    }

    /// Counts a command that arrives at `now` against the rate limits, and returns whether it is
    /// accepted, and under which limit. A new act or stop beyond its own limit counts as a driving
    /// command.
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

/// Least mean interval of driving commands. A page sends one every 20 ms; the limit is five times
/// that rate.
const DRIVING_INTERVAL: Duration = Duration::from_millis(4);
/// Maximum of driving commands in one burst: those of two thirds of a second, after a page was
/// suspended.
const DRIVING_BURST: u32 = 32;
/// Least mean interval of new acts and emergency stops: no person acts more often on purpose.
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
    fn a_pages_own_command_rate_is_accepted() {
        let mut lane = Lane::new();
        let at = |turn: u64| Instant::from_millis(1_000 + 20 * turn);
        let taken = (0..500).filter(|turn| lane.take(&stop(1), at(*turn)) != Taken::Flooded);
        assert_eq!(taken.count(), 500);
    }
}
