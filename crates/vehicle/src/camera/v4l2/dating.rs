//! When a device's pictures were captured: its driver's word, as far as that is possible.

use std::collections::VecDeque;
use std::time::Duration;

/// The times of capture of a device's pictures, each checked against our own clock.
///
/// A picture that is taken now came after the one before was taken, and was captured at most a pipeline's delay before
/// it came. A driver's time outside of that, and one that is no later than that of the picture before, is not possible:
/// then a picture counts as captured one picture's time before it can have come at the earliest. A time that is wrong
/// within these bounds is believed: it makes a picture younger than it is by less than its exposure and transfer.
#[derive(Debug)]
pub(super) struct Dating {
    /// From one picture to the next, as the driver tells.
    nominal: Duration,
    /// The same as the last pictures came: in the dark many cameras expose for two pictures' time.
    measured: VecDeque<Duration>,
    /// When the picture before was taken, or the device began.
    taken_at: Duration,
    /// When the driver says that the picture before was captured.
    told_before: Option<Duration>,
}

/// When and how a picture was taken from its device; times are on the machine's monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrival {
    /// When it was asked for.
    pub(super) asked_at: Duration,
    /// When it was there.
    pub(super) taken_at: Duration,
    /// How many pictures after the one before it is, 1 if none was left out or lost.
    pub(super) steps: u32,
}

/// What is known of a picture's capture; all times are on the machine's monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Capture {
    /// When it began, as far as can be known.
    pub(super) at: Duration,
    /// What is wrong with the driver's time, if that is not possible.
    pub(super) fault: Option<Fault>,
}

/// What is wrong with a driver's time of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// It lies so far in the future.
    Future(Duration),
    /// It lies so far in the past that the picture would have come before the one before it.
    Past(Duration),
    /// It is not later than that of the picture before.
    Standing,
}

impl Dating {
    /// Makes one for a device that begins at `now`, with so long from one picture to the next.
    pub(super) fn new(interval: Duration, now: Duration) -> Self {
        let measured = VecDeque::with_capacity(MEASURED);
        Self { nominal: interval, measured, taken_at: now, told_before: None }
    }

    /// Returns the time from one picture to the next: the driver's word, or the least of the last eight if that is more.
    pub(super) fn interval(&self) -> Duration {
        let least = self.measured.iter().min().filter(|_| self.measured.len() == MEASURED);
        least.map_or(self.nominal, |least| self.nominal.max((*least).min(INTERVAL_MAX)))
    }

    /// Returns when a picture was captured that arrived so, of which the driver says that its exposure began at `told`,
    /// or, unless `is_of_start`, that its last row came then.
    pub(super) fn date(
        &mut self,
        told: Option<Duration>,
        is_of_start: bool,
        arrival: Arrival,
    ) -> Capture {
        let Arrival { asked_at, taken_at: now, steps } = arrival;
        let since_before = now.saturating_sub(self.taken_at);
        self.taken_at = now;
        if self.measured.len() == MEASURED {
            self.measured.pop_front();
        }
        self.measured.push_back(since_before / steps.max(1));
        let interval = self.interval();
        // One that was waited for has just come; another may have come right after the one before it.
        let waited = now.saturating_sub(asked_at);
        let came_before = if waited >= WAITED_MIN { Duration::ZERO } else { since_before };
        let own = now.saturating_sub(came_before + interval);
        let Some(told) = told else { return Capture { at: own, fault: None } };
        let told_before = self.told_before.replace(told);
        let delay_max = DELAY_MAX.max(4 * interval);
        let age = now.saturating_sub(told);
        let fault = match told.checked_sub(now) {
            Some(ahead) if ahead > AHEAD_MAX => Some(Fault::Future(ahead)),
            _ if age > since_before + delay_max => Some(Fault::Past(age)),
            _ if told_before.is_some_and(|before| told <= before) => Some(Fault::Standing),
            _ => None,
        };
        let exposed_before = if is_of_start { Duration::ZERO } else { interval };
        let at = if fault.is_some() { own } else { told.min(now).saturating_sub(exposed_before) };
        Capture { at, fault }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Future(by) => write!(f, "{:.3} s in the future", by.as_secs_f64()),
            Self::Past(by) => write!(f, "{:.3} s in the past", by.as_secs_f64()),
            Self::Standing => f.write_str("no later than the one before"),
        }
    }
}

/// Polls return a little before the millisecond that they were given; what came so soon may have been there.
const WAITED_MIN: Duration = Duration::from_millis(1);
/// Reading the clock and handing over take some time; what is further ahead is another clock.
const AHEAD_MAX: Duration = Duration::from_millis(1);
/// From exposure to hand-over: a pipeline of an ISP holds up to four pictures, at ten a second and more.
const DELAY_MAX: Duration = Duration::from_millis(500);

/// Pictures by which the rate is measured: a hiccup or two are none.
const MEASURED: usize = 8;
/// A camera that gives fewer than one a second does not expose for longer.
const INTERVAL_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INTERVAL: Duration = Duration::from_millis(33);
    const DAY: Duration = Duration::from_secs(86_400);

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn arrival(asked_at: Duration, taken_at: Duration) -> Arrival {
        Arrival { asked_at, taken_at, steps: 1 }
    }

    /// Returns the age of each of some pictures that are waited for and that the driver dates so, and whether that is
    /// a fault.
    fn dated(tell: impl Fn(u32, Duration) -> Duration, is_of_start: bool) -> Vec<(Duration, bool)> {
        let mut dating = Dating::new(INTERVAL, DAY);
        let picture = |number: u32| {
            let now = DAY + INTERVAL * (number + 1);
            let told = tell(number, now);
            let capture = dating.date(Some(told), is_of_start, arrival(now - ms(30), now));
            (now - capture.at, capture.fault.is_some())
        };
        (0..90).map(picture).collect()
    }

    #[test]
    fn a_possible_time_is_believed() {
        let of_start = dated(|_, now| now - ms(40), true);
        assert!(of_start.iter().all(|it| *it == (ms(40), false)), "{of_start:?}");
        let of_end = dated(|_, now| now - ms(7), false);
        assert!(of_end.iter().all(|it| *it == (ms(40), false)), "{of_end:?}");
    }

    /// As drivers were seen to do: zero, long past, ahead, the time of day, in steps, and ever further ahead.
    #[test]
    fn an_impossible_time_is_replaced_by_our_own_and_reported() {
        let time_of_day = ms(1_790_000_000_000);
        let lies: [fn(u32, Duration) -> Duration; 6] = [
            |_, _| Duration::ZERO,
            |_, now| now - ms(20_000),
            |_, now| now + ms(20_000),
            |_, _| DAY + ms(5),
            |number, now| now + ms(10) * (number + 1),
            |_, now| now + ms(2),
        ];
        for (index, lie) in lies.into_iter().enumerate() {
            let dated = dated(lie, true);
            // A time that stands is possible once.
            let begin = usize::from(index == 3);
            assert!(dated[begin..].iter().all(|it| *it == (INTERVAL, true)), "{index}: {dated:?}");
        }
        let dated = dated(|_, now| now + time_of_day, true);
        assert!(dated.iter().all(|it| *it == (INTERVAL, true)));
    }

    #[test]
    fn of_times_that_jump_those_that_are_possible_are_believed() {
        let jumps = |number: u32, now: Duration| match number / 30 % 2 {
            0 => now - ms(20),
            _ => now + ms(5_000),
        };
        let faults: Vec<bool> = dated(jumps, true).iter().map(|it| it.1).collect();
        assert_eq!(faults[..30], [false; 30]);
        assert_eq!(faults[30..60], [true; 30]);
        // Back from the future a time is earlier than the one before, once.
        assert_eq!((faults[60], &faults[61..]), (true, &[false; 29][..]));
    }

    #[test]
    fn a_picture_that_was_there_before_it_was_asked_for_is_as_old_as_it_can_be() {
        let mut dating = Dating::new(INTERVAL, DAY);
        dating.date(None, true, arrival(DAY, DAY + ms(33)));
        // This process stood still for a second.
        let now = DAY + ms(1_033);
        assert_eq!(now - dating.date(None, true, arrival(now, now)).at, ms(1_033));
        let now = now + ms(900);
        let old = dating.date(Some(now - ms(880)), true, arrival(now, now));
        assert_eq!((now - old.at, old.fault), (ms(880), None));
        let now = now + ms(900);
        let impossible = dating.date(Some(now - ms(2_000)), true, arrival(now, now));
        assert_eq!(now - impossible.at, ms(933));
        assert_eq!(impossible.fault, Some(Fault::Past(ms(2_000))));
    }

    /// A camera that says 30 a second and gives 15, as many do in the dark.
    #[test]
    fn a_camera_that_slows_down_is_seen_to() {
        let mut dating = Dating::new(INTERVAL, DAY);
        let mut age = |number: u32, steps: u32| {
            let now = DAY + ms(66) * (number + 1);
            let arrival = Arrival { steps, ..arrival(now - ms(60), now) };
            (now - dating.date(Some(now - ms(5)), false, arrival).at).as_millis()
        };
        let ages: Vec<_> = (0..9).map(|number| age(number, 1)).collect();
        assert_eq!((ages[0], ages[8]), (38, 71), "{ages:?}");
        // A gap that the driver's numbers explain is none.
        assert_eq!(age(9, 2), 38);
    }

    proptest! {
        #[test]
        fn no_picture_is_younger_than_its_arrival_nor_older_than_its_bound(
            pictures in proptest::collection::vec((any::<u64>(), any::<bool>(), 0_u64..3_000, 0_u64..3_000), 1..40),
            interval in 1_u64..1_000,
        ) {
            let interval = ms(interval);
            let mut dating = Dating::new(interval, DAY);
            let mut now = DAY;
            for (told, is_of_start, before, waited) in pictures {
                let taken_before = now;
                let asked_at = now + ms(before);
                now = asked_at + ms(waited);
                let told = Duration::from_nanos(told);
                let capture = dating.date(Some(told), is_of_start, arrival(asked_at, now));
                prop_assert!(capture.at <= now);
                let exposed = interval.max(INTERVAL_MAX);
                let oldest = (now - taken_before) + DELAY_MAX.max(4 * exposed) + exposed;
                prop_assert!(now - capture.at <= oldest);
            }
        }
    }
}
