//! Capture times of the pictures of a device or program: its timestamps where they are plausible.

use std::collections::VecDeque;
use std::time::Duration;

/// Capture times of a device's pictures, each checked against our own clock.
///
/// A picture arrives after its predecessor was taken, and its capture lies at most a pipeline delay
/// before its arrival. A driver timestamp outside that range, or not later than the previous one,
/// is implausible. The capture time is then one picture interval before the earliest possible
/// arrival. A wrong timestamp within these bounds is believed: it makes the picture too young by
/// less than its exposure and transfer time.
#[derive(Debug)]
pub(super) struct Dating {
    /// Picture interval reported by the driver.
    nominal: Duration,
    /// Measured intervals of the last pictures: in the dark many cameras expose for two picture
    /// intervals.
    measured: VecDeque<Duration>,
    /// Time at which the previous picture was taken, or the device started.
    taken_at: Duration,
    /// Driver timestamp of the previous picture that had one; `None` before the first.
    told_before: Option<Duration>,
}

/// Arrival of a picture from its device; times are on the machine's monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrival {
    /// Time at which this process asked for the picture.
    pub(super) asked_at: Duration,
    /// Time at which the picture was available.
    pub(super) taken_at: Duration,
    /// Increment of the picture number since the previous one: 1 if none was skipped or lost.
    pub(super) steps: u32,
}

/// Capture time of a picture, on the machine's monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Capture {
    /// Best estimate of the start of exposure.
    pub(super) at: Duration,
    /// Fault of the driver's timestamp; `None` if it is plausible or missing.
    pub(super) fault: Option<Fault>,
}

/// Fault of a driver's timestamp of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// Timestamp this far in the future.
    Future(Duration),
    /// Timestamp this far in the past: the picture would have arrived before its predecessor.
    Past(Duration),
    /// Timestamp not later than the previous one.
    Standing,
}

impl Dating {
    /// Creates the state for a device that starts at `now` with this picture interval.
    pub(super) fn new(interval: Duration, now: Duration) -> Self {
        let measured = VecDeque::with_capacity(MEASURED);
        Self { nominal: interval, measured, taken_at: now, told_before: None }
    }

    /// Returns the picture interval: the greater of the driver's value and the least of the last
    /// eight measured ones. It is the driver's value until eight are measured.
    pub(super) fn interval(&self) -> Duration {
        let least = self.measured.iter().min().filter(|_| self.measured.len() == MEASURED);
        least.map_or(self.nominal, |least| self.nominal.max((*least).min(INTERVAL_MAX)))
    }

    /// Returns the capture time of a picture with this arrival. `told` is the driver's timestamp,
    /// if any: of the start of exposure, or, unless `is_of_start`, of the arrival of the last row.
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
        // A picture that was waited for has just arrived; another may have arrived right after its
        // predecessor.
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
            Self::Standing => f.write_str("not later than the previous one"),
        }
    }
}

/// Wait for a picture from which on it counts as just arrived: a poll may return slightly before
/// its timeout, and after a shorter wait the picture may have been available already.
const WAITED_MIN: Duration = Duration::from_millis(1);
/// Time by which a driver's timestamp may lie ahead of our reading of the clock, beyond which it
/// counts as one of another clock.
const AHEAD_MAX: Duration = Duration::from_millis(1);
/// Longest plausible time from exposure to hand-over, unless four picture intervals are longer: the
/// pipeline of an ISP holds up to four pictures.
const DELAY_MAX: Duration = Duration::from_millis(500);

/// Number of measured intervals of which the least is used; one or two outliers must not count.
const MEASURED: usize = 8;
/// Greatest measured interval that is used: a camera slower than one picture per second does not
/// expose for longer.
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

    /// Returns the age of each picture of a series whose timestamps are `tell`'s, and whether it is
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

    /// As seen in drivers: zero, long past, ahead, the time of day, in steps, and drifting ahead.
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
            // A constant time is plausible once.
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
        // On return from the future, one timestamp is earlier than the previous one.
        assert_eq!((faults[60], &faults[61..]), (true, &[false; 29][..]));
    }

    #[test]
    fn a_picture_queued_before_its_request_gets_its_maximum_age() {
        let mut dating = Dating::new(INTERVAL, DAY);
        dating.date(None, true, arrival(DAY, DAY + ms(33)));
        // This process was suspended for a second.
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

    /// A camera that reports 30 pictures per second and delivers 15, as many do in the dark.
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
        // A gap that the driver's numbers explain does not count.
        assert_eq!(age(9, 2), 38);
    }

    proptest! {
        #[test]
        fn capture_times_lie_between_the_bound_and_the_arrival(
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
