use std::collections::VecDeque;

use tautline_units::Duration;

/// How much later than the report interval the peer reports, because its way back carries no more.
///
/// The least lateness of the last reports counts: what made only some of them late, a stall or a lost
/// one, is not their cadence.
#[derive(Debug, Clone, Default)]
pub(super) struct Cadence {
    latenesses: VecDeque<Duration>,
    late: Duration,
}

impl Cadence {
    /// Notes how long before a report, beyond the interval, the first media packet arrived that it is the
    /// first to tell of.
    pub(super) fn observe(&mut self, lateness: Duration) {
        if self.latenesses.len() == REPORTS {
            self.latenesses.pop_front();
        }
        self.latenesses.push_back(lateness.min(LATE_MOST));
        let known = self.latenesses.len() == REPORTS;
        let least = self.latenesses.iter().min().copied();
        self.late = least.filter(|_| known).unwrap_or_default();
    }

    /// Returns the lateness that any report has.
    pub(super) fn late(&self) -> Duration {
        self.late
    }
}

const REPORTS: usize = 6;
const LATE_MOST: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_every_report_late_counts() {
        let mut cadence = Cadence::default();
        let millis = Duration::from_millis;
        for _ in 0..4 {
            [30, 90].into_iter().for_each(|late| cadence.observe(millis(late)));
        }
        assert_eq!(cadence.late(), millis(30));
        cadence.observe(millis(2));
        assert_eq!(cadence.late(), millis(2));
        (0..REPORTS).for_each(|_| cadence.observe(millis(700)));
        assert_eq!(cadence.late(), LATE_MOST);
    }
}
