use core::ops::Range;

/// Header of a repair packet: the source packets that it combines.
///
/// The seed determines the coefficients: [`coefficient`](super::coefficient()).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Repair {
    /// First source packet of the coding window.
    pub first: u64,
    /// Number of source packets in the coding window.
    pub count: u16,
    /// Seed of the coefficient generator.
    pub seed: u16,
}

impl Repair {
    /// Returns the ids of the source packets that it covers.
    ///
    /// The end saturates at `u64::MAX`; no repair packet of an [`Encoder`](super::Encoder) comes
    /// near it.
    pub fn covers(&self) -> Range<u64> {
        self.first..self.first.saturating_add(u64::from(self.count))
    }
}
