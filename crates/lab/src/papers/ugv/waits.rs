//! Time that processes waited for a processor, from the kernel's statistics: shows whether a
//! machine was too busy.

use std::path::Path;
use std::time::Duration;

/// Time of threads on a processor, and in its run queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waits {
    ran: Duration,
    waited: Duration,
    /// Number of times that one of the threads was scheduled.
    times: u64,
}

impl Waits {
    /// Returns the current totals over all threads of a process; zero for an ended one, or without
    /// kernel statistics.
    pub(super) fn of_process(id: u32) -> Self {
        let threads = std::fs::read_dir(Path::new("/proc").join(id.to_string()).join("task"));
        let threads = threads.into_iter().flatten().flatten();
        let lines =
            threads.filter_map(|it| std::fs::read_to_string(it.path().join("schedstat")).ok());
        lines.filter_map(|line| Self::parse(&line)).fold(Self::default(), Self::and)
    }

    /// Parses a line of the kernel's `schedstat`: nanoseconds on a processor, nanoseconds waited
    /// for one, and number of times scheduled. `None` if it is malformed.
    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse::<u64>().ok());
        let (ran, waited) = (numbers.next()??, numbers.next()??);
        let [ran, waited] = [ran, waited].map(Duration::from_nanos);
        Some(Self { ran, waited, times: numbers.next()?? })
    }

    /// Returns the sums of these totals and `other`'s.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            ran: self.ran.saturating_add(other.ran),
            waited: self.waited.saturating_add(other.waited),
            times: self.times.saturating_add(other.times),
        }
    }

    /// Returns the difference since `before`; a thread that ended in between counts as idle.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            ran: self.ran.saturating_sub(before.ran),
            waited: self.waited.saturating_sub(before.waited),
            times: self.times.saturating_sub(before.times),
        }
    }

    /// Returns the time on a processor.
    pub(super) fn ran(&self) -> Duration {
        self.ran
    }

    /// Returns the mean wait for a processor each time that a thread was scheduled; zero if none
    /// was.
    pub(super) fn mean(&self) -> Duration {
        Duration::from_nanos(self.waited.as_nanos() as u64 / self.times.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_accumulates_time_and_a_gone_one_none() {
        assert_eq!(Waits::of_process(u32::MAX), Waits::default());
        if !Path::new("/proc/self/schedstat").exists() {
            return;
        }
        let before = Waits::of_process(std::process::id());
        let mut sum = 0_u64;
        while Waits::of_process(std::process::id()).since(before).ran < Duration::from_millis(2) {
            sum = (0..100_000).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
        }
    }

    #[test]
    fn the_mean_is_of_all_times_since() {
        let [before, after] =
            ["100 2000000 3", "700 12000000 8\n"].map(|line| Waits::parse(line).unwrap());
        let since = after.since(before);
        assert_eq!(
            (since.ran(), since.mean()),
            (Duration::from_nanos(600), Duration::from_millis(2))
        );
        assert_eq!(Waits::default().mean(), Duration::ZERO);
        for line in ["", "100 2000000", "100 -2 3", "a b c", "99999999999999999999 1 1"] {
            assert_eq!(Waits::parse(line), None, "{line}");
        }
    }
}
