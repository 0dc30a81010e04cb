/// Positive fraction of two whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fraction([u32; 2]);

impl Fraction {
    /// Returns `over / under`; `None` if either is zero.
    pub fn new(over: u32, under: u32) -> Option<Self> {
        (over > 0 && under > 0).then_some(Self([over, under]))
    }

    /// Returns the numerator.
    pub fn over(self) -> u32 {
        self.0[0]
    }

    /// Returns the denominator.
    pub fn under(self) -> u32 {
        self.0[1]
    }
}
