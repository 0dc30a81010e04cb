use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::period::PERIOD;

/// The part of a peer's silence that the listener's own pauses caused.
///
/// A paused computer, such as a virtual machine whose host is busy, stops all its processes at
/// once. The process that resumes first has received nothing for that time, without any fault of
/// its peers. Each of the listener's own turns therefore counts as at most [`PERIOD`] of silence.
/// The time left out since the last frame is at most 80 ms.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Pauses {
    /// Time left out since the last frame was sent.
    left_out: Duration,
    /// Part of the time left out that belongs to the newest turn.
    newest: Duration,
}

impl Pauses {
    /// Records a turn of the listener, `gap` after the previous one: the time beyond [`PERIOD`] is
    /// left out.
    pub fn turn(&mut self, gap: Duration) {
        self.newest = gap.saturating_sub(PERIOD).min(LEFT_OUT_MAX);
        self.left_out = (self.left_out + self.newest).min(LEFT_OUT_MAX);
    }

    /// Records that a frame arrived in this turn: of the times left out until now, only this
    /// turn's stays.
    pub fn hear(&mut self) {
        self.left_out = self.newest;
    }

    /// Returns the part of `silence`, the time since a frame was sent, that counts.
    pub fn count(&self, silence: Duration) -> Duration {
        silence.saturating_sub(self.left_out)
    }
}

/// Maximum time that is left out of a peer's silence: a guard that pauses for longer stops the
/// machine for that reason.
const LEFT_OUT_MAX: Duration = Duration::from_millis(80);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn of_a_turn_that_stood_one_period_counts() {
        let mut pauses = Pauses::default();
        pauses.turn(ms(10));
        assert_eq!(pauses.count(ms(25)), ms(25));
        pauses.turn(ms(42));
        assert_eq!(pauses.count(ms(42)), ms(10));
        pauses.hear();
        assert_eq!(pauses.count(ms(42)), ms(10), "sent before the pause");
        pauses.turn(ms(10));
        pauses.hear();
        assert_eq!(pauses.count(ms(42)), ms(42));
    }

    proptest! {
        #[test]
        fn never_more_than_the_bound_is_left_out(
            gaps in proptest::collection::vec((0u64..200, any::<bool>()), 1..50),
            silence in 0u64..500,
        ) {
            let mut pauses = Pauses::default();
            for (gap, is_heard) in gaps {
                pauses.turn(ms(gap));
                if is_heard {
                    pauses.hear();
                }
                prop_assert!(pauses.count(ms(silence)) + LEFT_OUT_MAX >= ms(silence));
                prop_assert!(pauses.count(ms(silence)) <= ms(silence));
            }
        }
    }
}
