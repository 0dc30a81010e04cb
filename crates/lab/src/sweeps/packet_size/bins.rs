use tautline_units::Duration;

/// Counts of messages by delay, for the paper's limits.
///
/// A message may be within several limits, and a lost one is within none. The shares refer to all
/// messages sent. (The paper's refer to the messages received.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bins {
    within: [u64; LIMITS.len()],
    arrived: u64,
    lost: u64,
    /// Sum of the delays of the messages that arrived.
    sum: Duration,
}

impl Bins {
    /// Counts a message that arrived after `delay`.
    pub fn arrive(&mut self, delay: Duration) {
        self.arrived += 1;
        self.sum += delay;
        for (within, limit) in self.within.iter_mut().zip(LIMITS) {
            *within += u64::from(delay < limit);
        }
    }

    /// Counts messages that were lost, or too late to be useful.
    pub fn lose(&mut self, count: u64) {
        self.lost += count;
    }

    /// Adds the counts of another `Bins`.
    pub fn append(&mut self, other: &Bins) {
        for (within, others) in self.within.iter_mut().zip(other.within) {
            *within += others;
        }
        self.arrived += other.arrived;
        self.lost += other.lost;
        self.sum += other.sum;
    }

    /// Returns the mean delay of the messages that arrived, in ms; NaN if there are none.
    pub fn mean_ms(&self) -> f64 {
        self.sum.as_secs_f64() * 1e3 / self.arrived as f64
    }

    /// Returns the number of messages sent.
    pub fn sent(&self) -> u64 {
        self.arrived + self.lost
    }

    /// Returns the share of the messages lost; `None` without messages.
    pub fn lost_share(&self) -> Option<f64> {
        (self.sent() > 0).then(|| self.lost as f64 / self.sent() as f64)
    }

    /// Returns the share of the sent messages that arrived in less than each of [`LIMITS`]; `None`
    /// without messages.
    pub fn shares(&self) -> Option<[f64; LIMITS.len()]> {
        (self.sent() > 0).then(|| self.within.map(|within| within as f64 / self.sent() as f64))
    }
}

/// Delay limits by which messages are counted; [`EFFECTS`] describes their effect on control, as in
/// [UGV].
pub const LIMITS: [Duration; 4] = [
    Duration::from_millis(125),
    Duration::from_millis(250),
    Duration::from_millis(375),
    Duration::from_millis(500),
];

/// Effect on the operator's control of a delay below each limit, and above the one before it.
pub const EFFECTS: [&str; LIMITS.len()] =
    ["not noticed", "noticed, no effect on control", "control is challenging", "control is hard"];

/// Index in [`LIMITS`] of the delay by which a size is chosen: 250 ms, the longest without effect
/// on control.
pub const CHOSEN_BY: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_within_every_limit_above_its_delay() {
        let mut bins = Bins::default();
        assert_eq!((bins.shares(), bins.lost_share()), (None, None));
        for millis in [100, 125, 450, 500] {
            bins.arrive(Duration::from_millis(millis));
        }
        bins.lose(4);
        assert_eq!(bins.shares(), Some([0.125, 0.25, 0.25, 0.375]));
        assert_eq!((bins.sent(), bins.lost_share()), (8, Some(0.5)));
        assert_eq!(bins.mean_ms(), 293.75);
        let mut twice = bins;
        twice.append(&bins);
        assert_eq!((twice.sent(), twice.shares()), (16, bins.shares()));
    }
}
