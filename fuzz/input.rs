//! Conversion of a fuzzer's bytes into numbers; past the end everything is zero.

/// The remaining bytes of the fuzzer.
pub struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    /// Returns the next byte, or 0 past the end.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    /// Returns a number in `0..=most`, from as many bytes as necessary.
    pub fn up_to(&mut self, most: usize) -> usize {
        let mut number = usize::from(self.byte());
        let mut reach = 255;
        while reach < most {
            number = number << 8 | usize::from(self.byte());
            reach = reach << 8 | 255;
        }
        number % (most + 1)
    }

    /// Returns the next eight bytes as a little-endian number.
    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    /// Returns whether all of the fuzzer's bytes are consumed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a packet of exactly `length` pseudo-random bytes, whose seed is the next eight
    /// bytes. It is allocated without slack, so that the address sanitizer detects any access
    /// beyond its end.
    pub fn packet(&mut self, length: usize) -> Box<[u8]> {
        let mut state = self.word();
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..length).map(|_| next()).collect()
    }
}
