use core::ops::Range;

/// Header of a repair packet: the source packets that it combines.
///
/// The seed determines the coefficients: [`coefficient`](super::coefficient()).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Repair {
    /// Number of the first source packet combined, the start of the sender's coding window.
    pub first: u64,
    /// Number of consecutive source packets combined, from `first` on.
    pub count: u16,
    /// Seed of the coefficient generator.
    pub seed: u16,
}

impl Repair {
    /// Returns the ids of the source packets that the repair packet combines.
    ///
    /// The end saturates at `u64::MAX`; no repair packet of an [`Encoder`](super::Encoder) comes
    /// near it.
    pub fn covers(&self) -> Range<u64> {
        self.first..self.first.saturating_add(u64::from(self.count))
    }
}
