use std::time::Duration;

use tautline_units::Instant;

/// A rate limit for log lines of one kind, so that no peer can fill a disk.
///
/// A lasting symptom is logged once with its cause and then counted. [`take_of`](Self::take_of)
/// repeats the same cause at growing intervals, and a new cause as soon as any line is allowed.
///
/// ```
/// use tautline_net::LogLimit;
/// use tautline_units::Instant;
///
/// let mut limit = LogLimit::default();
/// assert_eq!(limit.take_of("no route", Instant::from_millis(0)), Some(0));
/// assert_eq!(limit.take_of("no route", Instant::from_millis(9_999)), None);
/// assert_eq!(limit.take_of("no route", Instant::from_millis(10_000)), Some(1));
/// assert_eq!(limit.take_of("no route", Instant::from_millis(60_000)), None);
/// assert_eq!(limit.take_of("not permitted", Instant::from_millis(60_001)), Some(1));
/// ```
#[derive(Clone, Debug, Default)]
pub struct LogLimit {
    logged: Option<Logged>,
    left_out: u64,
}

/// Time, cause and next interval of the last logged line.
#[derive(Clone, Debug)]
struct Logged {
    at: Instant,
    cause: String,
    /// Interval until the same cause is logged again.
    pause: Duration,
}

impl LogLimit {
    /// Returns the number of lines suppressed since the last one, if a line may be logged at `now`;
    /// otherwise counts it as suppressed. One line in ten seconds is allowed.
    pub fn take(&mut self, now: Instant) -> Option<u64> {
        self.logged.iter_mut().for_each(|logged| logged.pause = INTERVAL);
        self.take_of("", now)
    }

    /// Returns the number of lines suppressed since the last one, if one with this cause may be
    /// logged at `now`; otherwise counts it as suppressed.
    ///
    /// Lines with the same cause may follow after 10 s, then after a minute, six minutes and so on
    /// up to an hour. A line with another cause may follow 10 s after the last one.
    pub fn take_of(&mut self, cause: &str, now: Instant) -> Option<u64> {
        let pause = match &self.logged {
            None => INTERVAL,
            Some(Logged { at, cause: last, pause }) => {
                let is_same = last == cause;
                let least = if is_same { *pause } else { INTERVAL };
                if now.since(*at) < least {
                    self.left_out += 1;
                    return None;
                }
                if is_same { pause.saturating_mul(6).min(INTERVAL_MAX) } else { INTERVAL }
            }
        };
        self.logged = Some(Logged { at: now, cause: cause.to_owned(), pause });
        Some(std::mem::take(&mut self.left_out))
    }

    /// Ends the symptom; returns the number of suppressed lines, or `None` if no line was logged
    /// since the last end.
    pub fn end(&mut self) -> Option<u64> {
        self.logged.take().map(|_| std::mem::take(&mut self.left_out))
    }
}

const INTERVAL: Duration = Duration::from_secs(10);
/// Maximum interval between two equal lines of an ongoing symptom, so that each day of a log shows
/// it.
const INTERVAL_MAX: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symptom_of_a_day_is_a_few_lines_that_count_the_rest() {
        let mut limit = LogLimit::default();
        let lines = (0..86_400).filter_map(|second| {
            limit
                .take_of("not permitted", Instant::from_millis(second * 1_000))
                .map(|left| (second, left))
        });
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines[..4], [(0, 0), (10, 9), (70, 59), (430, 359)]);
        assert!(lines.len() < 32, "{} lines", lines.len());
        assert_eq!(
            lines.len() as u64 + lines.iter().map(|line| line.1).sum::<u64>() + limit.left_out,
            86_400
        );
        assert!(limit.end().is_some_and(|left_out| left_out > 1_000));
        assert_eq!(limit.end(), None);
        assert_eq!(limit.take_of("not permitted", Instant::from_millis(86_400_000)), Some(0));
    }

    #[test]
    fn causes_that_change_all_the_time_fill_no_disk_either() {
        let mut limit = LogLimit::default();
        let lines = (0..1_000_u64).filter(|second| {
            limit.take_of(&second.to_string(), Instant::from_millis(second * 1_000)).is_some()
        });
        assert_eq!(lines.count(), 100);
    }

    #[test]
    fn without_a_cause_one_line_in_ten_seconds_is_logged() {
        let mut limit = LogLimit::default();
        let lines = (0..1_000_u64)
            .filter(|second| limit.take(Instant::from_millis(second * 1_000)).is_some());
        assert_eq!(lines.count(), 100);
    }
}
