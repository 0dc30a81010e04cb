use tautline_units::{Duration, Probability};

/// On-time probability of a packet queued now, by its headroom before the deadline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OnTimeCurve {
    by_headroom: [Probability; Self::STEPS],
}

impl OnTimeCurve {
    /// Curve of a link on which every packet arrives in time.
    pub const SURE: Self = Self { by_headroom: [Probability::ONE; Self::STEPS] };
    /// Number of classes of headroom, each with its own probability.
    pub(crate) const STEPS: usize = HEADROOM.len() + 1;

    /// Creates the curve from one probability for each class of headroom, the smallest first.
    pub(crate) fn new(by_headroom: [Probability; Self::STEPS]) -> Self {
        Self { by_headroom }
    }

    /// Returns the probability for a packet that would arrive `headroom` before its deadline.
    pub fn at(&self, headroom: Duration) -> Probability {
        self.by_headroom[Self::step(headroom)]
    }

    /// Returns the index of the class that `headroom` belongs to, 0 for the smallest.
    pub(crate) fn step(headroom: Duration) -> usize {
        HEADROOM.iter().take_while(|bound| headroom >= **bound).count()
    }
}

const HEADROOM: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(8),
    Duration::from_millis(18),
    Duration::from_millis(30),
];
