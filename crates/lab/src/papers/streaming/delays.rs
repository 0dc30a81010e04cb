//! Histogram of delays by slots.

/// A collection of delays in slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Delays {
    /// Number of delays by length in slots, from 0 on.
    counts: Vec<u64>,
    count: u64,
    sum: u64,
}

impl Delays {
    pub(super) fn add(&mut self, slots: u64) {
        let slots_index = slots as usize;
        if slots_index >= self.counts.len() {
            self.counts.resize(slots_index + 1, 0);
        }
        self.counts[slots_index] += 1;
        self.count += 1;
        self.sum += slots;
    }

    pub(super) fn append(&mut self, other: &Delays) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, others) in self.counts.iter_mut().zip(&other.counts) {
            *mine += others;
        }
        self.count += other.count;
        self.sum += other.sum;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean in slots; NaN if there are none.
    pub(super) fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// Returns the smallest delay in slots that at least `share` of all delays do not exceed (the
    /// nearest rank); NaN if there are none.
    pub(super) fn percentile(&self, share: f64) -> f64 {
        let needed = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut counted = 0;
        for (slots, count) in self.counts.iter().enumerate() {
            counted += count;
            if counted >= needed {
                return slots as f64;
            }
        }
        f64::NAN
    }

    /// Returns the share of delays of at most `slots`; NaN if there are none.
    pub(super) fn share_up_to(&self, slots: f64) -> f64 {
        let counted = self.counts.iter().take(slots as usize + 1).sum::<u64>();
        counted as f64 / self.count as f64
    }

    /// Returns the share of delays below `slots`; NaN if there are none.
    pub(super) fn share_below(&self, slots: f64) -> f64 {
        let counted = self.counts.iter().take(slots.ceil() as usize).sum::<u64>();
        counted as f64 / self.count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_the_list() {
        let mut delays = Delays::default();
        let mut other = Delays::default();
        for slots in [3, 0, 0, 1] {
            delays.add(slots);
        }
        other.add(6);
        delays.append(&other);
        assert_eq!((delays.count(), delays.mean()), (5, 2.0));
        let percentiles = [0.0, 0.4, 0.41, 0.6, 0.8, 0.81, 1.0].map(|p| delays.percentile(p));
        assert_eq!(percentiles, [0.0, 0.0, 1.0, 1.0, 3.0, 6.0, 6.0]);
        assert_eq!([0.0, 0.5, 3.0, 3.1].map(|s| delays.share_below(s)), [0.0, 0.4, 0.6, 0.8]);
        assert_eq!(delays.share_up_to(3.5), 0.8);
        assert!(Delays::default().percentile(0.5).is_nan());
    }
}
