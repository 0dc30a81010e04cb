//! Transform coefficients in CAVLC (9.2).

mod code;
mod tables;

use super::bits::BitWriter;
use code::Code;
use tables::{COEFF_TOKEN, COEFF_TOKEN_CHROMA_DC, RUN_BEFORE, TOTAL_ZEROS, TOTAL_ZEROS_CHROMA_DC};

/// The levels of a block in scanning order, with a mask of the nonzero ones.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Levels {
    pub(super) values: [i16; 16],
    /// Mask whose bit `i` is set if `values[i]` is not zero.
    pub(super) mask: u16,
}

/// Kind of a block in a macroblock: it determines the number of coefficients and the code tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// All 16 coefficients of a block, or the 16 of `Intra16x16DCLevel`; holds nC, which selects
    /// the code table.
    Whole(u8),
    /// The 15 coefficients of a block after the first; holds nC.
    Alternating(u8),
    /// The four DC coefficients of a chroma plane: nC is -1.
    ChromaMeans,
}

/// Largest magnitude written: a larger one would need a `level_prefix` above 15, which the baseline
/// profiles do not allow (9.2.2.1).
pub(super) const LEVEL_MAX: i16 = 2063;

/// Writes a block as `residual_block_cavlc` (7.3.5.3.2) and returns its `total_coeff`.
pub(super) fn write_block(writer: &mut BitWriter, levels: &Levels, part: Part) -> u8 {
    let (first, most) = match part {
        Part::Whole(_) => (0, 16),
        Part::Alternating(_) => (1, 15),
        Part::ChromaMeans => (0, 4),
    };
    let mut mask = u32::from(levels.mask >> first);
    let total = mask.count_ones();
    let (ones, signs, others) = trailing_ones(&levels.values, first, mask);
    let at = (total * 4 + ones) as usize;
    let token = match part {
        Part::ChromaMeans => COEFF_TOKEN_CHROMA_DC[at],
        Part::Whole(context) | Part::Alternating(context) => {
            COEFF_TOKEN[TABLE_OF_CONTEXT[usize::from(context.min(8))]][at]
        }
    };
    writer.put(u32::from(token.bits) << ones | signs, u32::from(token.length) + ones);
    if total == 0 {
        return 0;
    }
    if others != 0 {
        let suffix_length = u32::from(total > 10 && ones < 3);
        write_levels(writer, &levels.values, first, others, (ones, suffix_length));
    }
    let zeros = mask.ilog2() + 1 - total;
    if total < most {
        let row = (total - 1) as usize;
        put(
            writer,
            match part {
                Part::ChromaMeans => TOTAL_ZEROS_CHROMA_DC[row][zeros as usize],
                _ => TOTAL_ZEROS[row][zeros as usize],
            },
        );
    }
    // Each run_before: the number of zeros between a level and the one before it, starting with the
    // last level.
    let mut left = zeros;
    while left > 0 && mask & (mask - 1) != 0 {
        let last = mask.ilog2();
        mask &= !(1 << last);
        let run = last - 1 - mask.ilog2();
        put(writer, RUN_BEFORE[left.min(7) as usize - 1][run as usize]);
        left -= run;
    }
    total as u8
}

/// Returns the number of trailing levels of magnitude 1, at most three; their signs, one bit each,
/// the last level's first; and the mask of the other levels.
fn trailing_ones(values: &[i16; 16], first: usize, mut mask: u32) -> (u32, u32, u32) {
    let (mut ones, mut signs) = (0, 0);
    while ones < 3 && mask != 0 {
        let last = mask.ilog2();
        let level = values[last as usize + first];
        if level.unsigned_abs() != 1 {
            break;
        }
        mask &= !(1 << last);
        ones += 1;
        signs = signs << 1 | u32::from(level < 0);
    }
    (ones, signs, mask)
}

/// Writes `level_prefix` and `level_suffix` of the levels before the trailing ones (9.2.2).
fn write_levels(
    writer: &mut BitWriter,
    values: &[i16; 16],
    first: usize,
    mut mask: u32,
    (ones, mut suffix_length): (u32, u32),
) {
    // A level after fewer than three trailing ones cannot have magnitude 1.
    let mut known = if ones < 3 { 2 } else { 0 };
    while mask != 0 {
        let last = mask.ilog2();
        mask &= !(1 << last);
        let level = i32::from(values[last as usize + first]);
        let magnitude = level.unsigned_abs();
        write_level(writer, 2 * magnitude - 2 + u32::from(level < 0) - known, suffix_length);
        known = 0;
        suffix_length = suffix_length.max(1);
        if magnitude > 3 << (suffix_length - 1) && suffix_length < 6 {
            suffix_length += 1;
        }
    }
}

fn write_level(writer: &mut BitWriter, code: u32, suffix_length: u32) {
    let escape = 15 << suffix_length;
    if suffix_length == 0 {
        match code {
            0..14 => writer.put(1, code + 1),
            14..30 => writer.put(1 << 4 | (code - 14), 19),
            _ => writer.put(1 << 12 | (code - 30).min(4095), 28),
        }
    } else if code < escape {
        let suffix = code & ((1 << suffix_length) - 1);
        writer.put(1 << suffix_length | suffix, (code >> suffix_length) + 1 + suffix_length);
    } else {
        writer.put(1 << 12 | (code - escape).min(4095), 28);
    }
}

#[inline]
fn put(writer: &mut BitWriter, code: Code) {
    writer.put(u32::from(code.bits), u32::from(code.length));
}

/// Index into [`COEFF_TOKEN`] by nC from 0 to 8; the last one is also that of every larger nC.
const TABLE_OF_CONTEXT: [usize; 9] = [0, 0, 1, 1, 2, 2, 2, 2, 3];

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that no code of a table is a prefix of another.
    fn check_prefixes(codes: &[Code]) {
        let codes: Vec<_> = codes.iter().filter(|code| code.length > 0).collect();
        for (index, a) in codes.iter().enumerate() {
            assert!(u32::from(a.bits) < 1 << a.length);
            for b in &codes[index + 1..] {
                let length = a.length.min(b.length);
                assert_ne!(a.bits >> (a.length - length), b.bits >> (b.length - length));
            }
        }
    }

    #[test]
    fn no_code_begins_another() {
        for table in &COEFF_TOKEN {
            check_prefixes(table);
            let count = table.iter().filter(|code| code.length > 0).count();
            assert_eq!(count, 62);
        }
        check_prefixes(&COEFF_TOKEN_CHROMA_DC);
        TOTAL_ZEROS.iter().for_each(|row| check_prefixes(row));
        TOTAL_ZEROS_CHROMA_DC.iter().for_each(|row| check_prefixes(row));
        RUN_BEFORE.iter().for_each(|row| check_prefixes(row));
    }

    /// A worked example from the literature: 0, 3, 0, 1, -1, -1, 0, 1, 0... with nC 0.
    #[test]
    fn a_known_block_has_its_known_bits() {
        let mut levels = Levels::default();
        for (at, value) in [(1, 3), (3, 1), (4, -1), (5, -1), (7, 1)] {
            levels.values[at] = value;
            levels.mask |= 1 << at;
        }
        let mut writer = BitWriter::default();
        write_block(&mut writer, &levels, Part::Whole(0));
        let bits = writer.bit_count();
        let bytes = writer.finish();
        let text: String = (0..bits)
            .map(|at| if bytes[at / 8] >> (7 - at % 8) & 1 == 1 { '1' } else { '0' })
            .collect();
        assert_eq!(text, "000010001110010111101101");
    }
}
