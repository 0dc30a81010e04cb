//! Seeded random numbers.

/// A small seeded generator (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns the next number, uniformly distributed over 53 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }
}
