//! Bits of a raw byte sequence payload, most significant first.

use crate::Error;

/// Reader of bits; reading past the end is an error.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `bytes`; errors refer to them as `what`.
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, position: 0, what }
    }

    /// Returns the number of bits read so far.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Reads one bit, u(1).
    pub(crate) fn bit(&mut self) -> Result<bool, Error> {
        let byte = self.bytes.get(self.position / 8).ok_or(Error::Truncated { what: self.what })?;
        let bit = byte >> (7 - self.position % 8) & 1;
        self.position += 1;
        Ok(bit == 1)
    }

    /// Reads u(n), n up to 32.
    pub(crate) fn bits(&mut self, count: u32) -> Result<u32, Error> {
        let mut value = 0;
        for _ in 0..count {
            value = value << 1 | u32::from(self.bit()?);
        }
        Ok(value)
    }

    /// Reads ue(v), at most 2^32 - 2 (9.1).
    pub(crate) fn unsigned(&mut self) -> Result<u32, Error> {
        let mut zeros = 0;
        while !self.bit()? {
            zeros += 1;
            if zeros == 32 {
                return Err(Error::Invalid { what: self.what, value: u64::from(u32::MAX) });
            }
        }
        Ok(((1u64 << zeros) - 1) as u32 + self.bits(zeros)?)
    }

    /// Reads ue(v); returns an error if it is above `highest`.
    pub(crate) fn at_most(&mut self, highest: u32, what: &'static str) -> Result<u32, Error> {
        let value = self.unsigned()?;
        if value > highest {
            return Err(Error::Invalid { what, value: u64::from(value) });
        }
        Ok(value)
    }

    /// Reads se(v) (9.1.1).
    pub(crate) fn signed(&mut self) -> Result<i64, Error> {
        let code = i64::from(self.unsigned()?);
        Ok(if code % 2 == 0 { -(code / 2) } else { code / 2 + 1 })
    }
}

/// Writer of bits.
#[derive(Clone, Default, Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    bit_count: usize,
}

impl Writer {
    /// Writes one bit, u(1).
    pub(crate) fn bit(&mut self, bit: bool) {
        if self.bit_count.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (7 - self.bit_count % 8);
        }
        self.bit_count += 1;
    }

    /// Writes u(n), n up to 32.
    pub(crate) fn bits(&mut self, value: u32, count: u32) {
        for index in (0..count).rev() {
            self.bit(value >> index & 1 == 1);
        }
    }

    /// Writes ue(v), at most 2^32 - 2 (9.1).
    pub(crate) fn unsigned(&mut self, value: u32) {
        let code = u64::from(value) + 1;
        let length = code.ilog2();
        self.bits(0, length);
        self.bit(true);
        self.bits(code as u32, length);
    }

    /// Writes se(v) (9.1.1).
    pub(crate) fn signed(&mut self, value: i32) {
        let magnitude = value.unsigned_abs();
        self.unsigned(if value > 0 { 2 * magnitude - 1 } else { 2 * magnitude });
    }

    /// Ends the payload with `rbsp_trailing_bits` (7.3.2.11), and returns it.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bit(true);
        self.bytes
    }
}

/// Overwrites `count` bits of `bytes` from bit `position` on with `value`.
///
/// # Panics
/// If the bits lie outside `bytes`.
pub(crate) fn overwrite(bytes: &mut [u8], position: usize, count: u32, value: u32) {
    for index in 0..count {
        let at = position + index as usize;
        let mask = 1u8 << (7 - at % 8);
        if value >> (count - 1 - index) & 1 == 1 {
            bytes[at / 8] |= mask;
        } else {
            bytes[at / 8] &= !mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_are_those_of_the_standards_table_9_2() {
        let codes = [(0, "1"), (1, "010"), (2, "011"), (3, "00100"), (8, "0001001")];
        for (value, code) in codes {
            let mut writer = Writer::default();
            writer.unsigned(value);
            let text: String = (0..writer.bit_count)
                .map(|at| if writer.bytes[at / 8] >> (7 - at % 8) & 1 == 1 { '1' } else { '0' })
                .collect();
            assert_eq!(text, code);
        }
    }

    #[test]
    fn signed_codes_alternate() {
        for (value, code) in [(0, 0), (1, 1), (-1, 2), (2, 3), (-2, 4)] {
            let (mut signed, mut unsigned) = (Writer::default(), Writer::default());
            signed.signed(value);
            unsigned.unsigned(code);
            assert_eq!(signed.bytes, unsigned.bytes);
        }
    }

    proptest! {
        #[test]
        fn written_bits_are_read_back(
            values in proptest::collection::vec((0u32..u32::MAX, -1_000_000i32..1_000_000), 0..40),
        ) {
            let mut writer = Writer::default();
            for (unsigned, signed) in &values {
                writer.unsigned(*unsigned);
                writer.signed(*signed);
                writer.bits(*unsigned, 32);
            }
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes, "test");
            for (unsigned, signed) in &values {
                prop_assert_eq!(reader.unsigned().unwrap(), *unsigned);
                prop_assert_eq!(reader.signed().unwrap(), i64::from(*signed));
                prop_assert_eq!(reader.bits(32).unwrap(), *unsigned);
            }
            prop_assert!(reader.bit().unwrap());
        }

        #[test]
        fn any_bytes_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader::new(&bytes, "test");
            while reader.signed().is_ok() {}
            let mut reader = Reader::new(&bytes, "test");
            while reader.bits(7).is_ok() {}
        }

        #[test]
        fn overwriting_changes_those_bits_alone(
            mut bytes in proptest::collection::vec(any::<u8>(), 8),
            position in 0usize..40,
            count in 1u32..24,
            value: u32,
        ) {
            let before = bytes.clone();
            overwrite(&mut bytes, position, count, value);
            let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
            for at in 0..64 {
                let inside = (position..position + count as usize).contains(&at);
                if !inside {
                    prop_assert_eq!(bit(&bytes, at), bit(&before, at));
                }
            }
            let mut reader = Reader::new(&bytes, "test");
            for _ in 0..position {
                reader.bit().unwrap();
            }
            prop_assert_eq!(reader.bits(count).unwrap(), value & ((1 << count) - 1));
        }
    }
}
