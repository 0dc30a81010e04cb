//! The fast bit writer of slice data: a 64-bit word flushed four bytes at a time.

/// Writer of bits, most significant first (7.2).
#[derive(Clone, Default, Debug)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    word: u64,
    /// Number of bits of `word` not yet in `bytes`: below 32 between calls.
    pending: u32,
}

/// A position in the stream to which the writer can rewind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    length: usize,
    word: u64,
    pending: u32,
}

impl BitWriter {
    /// Discards everything written, but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.word = 0;
        self.pending = 0;
    }

    /// Returns the number of bits written.
    pub(super) fn bit_count(&self) -> usize {
        self.bytes.len() * 8 + self.pending as usize
    }

    /// Writes u(n), n up to 32; `value` must fit in n bits.
    #[inline]
    pub(super) fn put(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 32 && u64::from(value) < 1 << count);
        self.word = self.word << count | u64::from(value);
        self.pending += count;
        if self.pending >= 32 {
            self.pending -= 32;
            let full = (self.word >> self.pending) as u32;
            self.bytes.extend_from_slice(&full.to_be_bytes());
        }
    }

    /// Writes ue(v), `value` below 2^16 - 1 (9.1).
    #[inline]
    pub(super) fn unsigned(&mut self, value: u32) {
        debug_assert!(value < 0xFFFF);
        self.put(value + 1, unsigned_length(value));
    }

    /// Writes se(v), `value` within 15 bits (9.1.1).
    #[inline]
    pub(super) fn signed(&mut self, value: i32) {
        self.unsigned(signed_code(value));
    }

    /// Returns the current position in the stream.
    pub(super) fn mark(&self) -> Mark {
        Mark { length: self.bytes.len(), word: self.word, pending: self.pending }
    }

    /// Discards everything written since `mark`.
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.bytes.truncate(mark.length);
        self.word = mark.word;
        self.pending = mark.pending;
    }

    /// Writes zero bits up to a byte boundary.
    pub(super) fn align(&mut self) {
        self.put(0, self.pending.wrapping_neg() % 8);
    }

    /// Ends the payload with `rbsp_trailing_bits` (7.3.2.11) and returns it.
    pub(super) fn finish(&mut self) -> &[u8] {
        self.put(1, 1);
        self.align();
        while self.pending > 0 {
            self.pending -= 8;
            self.bytes.push((self.word >> self.pending) as u8);
        }
        &self.bytes
    }
}

/// Returns the number of bits of ue(v).
#[inline]
pub(super) fn unsigned_length(value: u32) -> u32 {
    2 * (value + 1).ilog2() + 1
}

/// Returns the number of bits of se(v).
#[inline]
pub(super) fn signed_length(value: i32) -> u32 {
    // A positive value's code is one less than a negative one's, with the same length.
    2 * (2 * value.unsigned_abs() + 1).ilog2() + 1
}

fn signed_code(value: i32) -> u32 {
    let magnitude = value.unsigned_abs();
    if value > 0 { 2 * magnitude - 1 } else { 2 * magnitude }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::h264::bits::{Reader, Writer};

    proptest! {
        #[test]
        fn bits_are_those_of_the_plain_writer(
            values in proptest::collection::vec((0u32..65_000, -16_000i32..16_000, 0u32..=32), 0..50),
        ) {
            let (mut fast, mut plain) = (BitWriter::default(), Writer::default());
            for &(unsigned, signed, count) in &values {
                let bits = ((u64::from(unsigned) * 0x1234_5678) & ((1u64 << count) - 1)) as u32;
                let before = fast.bit_count() as u32;
                fast.unsigned(unsigned);
                fast.signed(signed);
                let length = unsigned_length(unsigned) + signed_length(signed);
                prop_assert_eq!(fast.bit_count() as u32 - before, length);
                fast.put(bits, count);
                plain.unsigned(unsigned);
                plain.signed(signed);
                plain.bits(bits, count);
            }
            prop_assert_eq!(fast.finish().to_vec(), plain.finish());
        }

        #[test]
        fn rewound_bits_are_discarded(first in 0u32..60_000, second in 0u32..60_000) {
            let mut writer = BitWriter::default();
            writer.unsigned(first);
            let mark = writer.mark();
            for _ in 0..9 {
                writer.unsigned(second);
            }
            writer.rewind(mark);
            writer.unsigned(second);
            writer.align();
            let bytes = writer.finish().to_vec();
            let mut reader = Reader::new(&bytes, "test");
            prop_assert_eq!(reader.unsigned().unwrap(), first);
            prop_assert_eq!(reader.unsigned().unwrap(), second);
        }
    }
}
