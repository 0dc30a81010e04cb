//! Syntax of a macroblock's mode (7.3.5, 7.4.5).

use super::bits::BitWriter;
use super::cavlc::{Part as Coded, write_block};
use super::intra::{MEAN4, Whole};
use super::macroblock::{BLOCKS, Kind, Macroblock};
use super::residual::{Residual, Samples};
use super::vector::{Part, Vector};

/// Partition of a macroblock for motion (table 7-13).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    Whole,
    /// Upper and lower half.
    Rows,
    /// Left and right half.
    Columns,
    Quarters,
}

impl Shape {
    /// Returns the parts of the macroblock in coding order.
    pub(super) fn parts(self) -> &'static [Part] {
        const fn parts<const COUNT: usize>(places: [[usize; 4]; COUNT]) -> [Part; COUNT] {
            let mut parts = [Part::WHOLE; COUNT];
            let mut index = 0;
            while index < COUNT {
                let [x, y, width, height] = places[index];
                parts[index] = Part { x, y, width, height };
                index += 1;
            }
            parts
        }
        match self {
            Self::Whole => const { &parts([[0, 0, 2, 2]]) },
            Self::Rows => const { &parts([[0, 0, 2, 1], [0, 1, 2, 1]]) },
            Self::Columns => const { &parts([[0, 0, 1, 2], [1, 0, 1, 2]]) },
            Self::Quarters => {
                const { &parts([[0, 0, 1, 1], [1, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]]) }
            }
        }
    }

    /// Returns the shape's number as `mb_type` of a P slice.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Whole => 0,
            Self::Rows => 1,
            Self::Columns => 2,
            Self::Quarters => 3,
        }
    }
}

/// Mode of a macroblock, without its residual.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    /// I_NxN: each block's mode, and its predicted mode.
    Blocks { modes: [u8; 16], predicted: [u8; 16], chroma: Whole },
    /// I_16x16: the modes of luma and chroma.
    Whole { luma: Whole, chroma: Whole },
    /// P: differences of the parts' vectors from their predictions.
    Moved { shape: Shape, differences: [Vector; 4] },
}

/// Neighbouring macroblocks of the slice, if there are any, for the contexts of CAVLC.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    pub(super) left: Option<&'a Macroblock>,
    pub(super) above: Option<&'a Macroblock>,
}

/// Writes a macroblock and stores its numbers of coefficients in `own`; writes `qp_delta` only
/// where the syntax has it, which is with a residual or in Intra_16x16.
pub(super) fn write_macroblock(
    writer: &mut BitWriter,
    choice: &Choice,
    residual: &Residual,
    own: &mut Macroblock,
    beside: Beside<'_>,
    (predicted_slice, qp_delta): (bool, i32),
) {
    let intra_offset = if predicted_slice { 5 } else { 0 };
    let pattern = residual.pattern();
    match choice {
        Choice::Blocks { modes, predicted, chroma } => {
            writer.unsigned(intra_offset);
            for block in BLOCKS {
                write_mode(writer, modes[block], predicted[block]);
            }
            writer.unsigned(chroma.chroma_number());
            writer.unsigned(PATTERN_CODES[usize::from(pattern)][0].into());
        }
        Choice::Whole { luma, chroma } => {
            let luma_coded = u32::from(residual.luma_pattern != 0);
            let chroma_pattern = u32::from(residual.chroma_pattern);
            writer.unsigned(intra_offset + 1 + *luma as u32 + 4 * chroma_pattern + 12 * luma_coded);
            writer.unsigned(chroma.chroma_number());
            writer.signed(qp_delta);
            write_block(writer, &residual.means, Coded::Whole(context_luma(own, beside, 0)));
        }
        Choice::Moved { shape, differences } => {
            writer.unsigned(shape.number());
            if *shape == Shape::Quarters {
                // sub_mb_type of all four: P_L0_8x8
                writer.put(0b1111, 4);
            }
            for difference in &differences[..shape.parts().len()] {
                writer.signed(difference.x.into());
                writer.signed(difference.y.into());
            }
            writer.unsigned(PATTERN_CODES[usize::from(pattern)][1].into());
        }
    }
    let whole = matches!(choice, Choice::Whole { .. });
    if pattern != 0 && !whole {
        writer.signed(qp_delta);
    }
    if pattern != 0 {
        write_residual(writer, residual, own, beside, whole);
    }
}

/// Writes an I_PCM macroblock with its samples (7.3.5).
pub(super) fn write_samples(writer: &mut BitWriter, samples: &Samples, predicted_slice: bool) {
    writer.unsigned(25 + if predicted_slice { 5 } else { 0 });
    writer.align();
    let planes =
        [0, 8].map(|start| samples.chroma.chunks_exact(16).map(move |row| &row[start..][..8]));
    for &sample in samples.luma.iter().chain(planes.into_iter().flatten().flatten()) {
        writer.put(sample.into(), 8);
    }
}

fn write_mode(writer: &mut BitWriter, mode: u8, predicted: u8) {
    match mode {
        mode if mode == predicted => writer.put(1, 1),
        mode => writer.put(u32::from(mode - u8::from(mode > predicted)), 4),
    }
}

fn write_residual(
    writer: &mut BitWriter,
    residual: &Residual,
    own: &mut Macroblock,
    beside: Beside<'_>,
    whole: bool,
) {
    for (index, block) in BLOCKS.into_iter().enumerate() {
        if residual.luma_pattern >> (index / 4) & 1 == 0 {
            continue;
        }
        let levels = &residual.luma[block];
        let context = context_luma(own, beside, block);
        let part = if whole { Coded::Alternating(context) } else { Coded::Whole(context) };
        own.counts[block] = write_block(writer, levels, part);
        own.coded |= u16::from(levels.mask != 0) << block;
    }
    if residual.chroma_pattern != 0 {
        for means in &residual.chroma_means {
            write_block(writer, means, Coded::ChromaMeans);
        }
    }
    if residual.chroma_pattern == 2 {
        for (plane, blocks) in residual.chroma.iter().enumerate() {
            for (block, levels) in blocks.iter().enumerate() {
                let context = context_chroma(own, beside, 16 + plane * 4, block);
                own.counts[16 + plane * 4 + block] =
                    write_block(writer, levels, Coded::Alternating(context));
            }
        }
    }
}

/// Returns nC of a luma block (9.2.1).
fn context_luma(own: &Macroblock, beside: Beside<'_>, block: usize) -> u8 {
    let left = match block % 4 {
        0 => beside.left.map(|left| left.counts[block + 3]),
        _ => Some(own.counts[block - 1]),
    };
    let above = match block / 4 {
        0 => beside.above.map(|above| above.counts[block + 12]),
        _ => Some(own.counts[block - 4]),
    };
    context(left, above)
}

fn context_chroma(own: &Macroblock, beside: Beside<'_>, first: usize, block: usize) -> u8 {
    let left = match block % 2 {
        0 => beside.left.map(|left| left.counts[first + block + 1]),
        _ => Some(own.counts[first + block - 1]),
    };
    let above = match block / 2 {
        0 => beside.above.map(|above| above.counts[first + block + 2]),
        _ => Some(own.counts[first + block - 2]),
    };
    context(left, above)
}

fn context(left: Option<u8>, above: Option<u8>) -> u8 {
    match (left, above) {
        (Some(left), Some(above)) => (left + above).div_ceil(2),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => 0,
    }
}

/// Returns the Intra4x4PredMode predicted from a block's neighbours (8.3.1.1); [`MEAN4`] if one is
/// missing. With `constrained`, inter coded ones count as missing.
pub(super) fn predicted_mode(
    modes: &[u8; 16],
    beside: Beside<'_>,
    block: usize,
    constrained: bool,
) -> u8 {
    let usable = |macroblock: &&Macroblock| !constrained || macroblock.kind == Kind::Intra;
    let left = match block % 4 {
        0 => beside.left.filter(usable).map(|left| left.modes[block + 3]),
        _ => Some(modes[block - 1]),
    };
    let above = match block / 4 {
        0 => beside.above.filter(usable).map(|above| above.modes[block + 12]),
        _ => Some(modes[block - 4]),
    };
    match (left, above) {
        (Some(left), Some(above)) => left.min(above),
        _ => MEAN4,
    }
}

/// codeNum of each `coded_block_pattern`: for Intra_4x4, then for inter (table 9-4).
static PATTERN_CODES: [[u8; 2]; 48] = pattern_codes();

const fn pattern_codes() -> [[u8; 2]; 48] {
    const PATTERNS: [[u8; 48]; 2] = [
        [
            47, 31, 15, 0, 23, 27, 29, 30, 7, 11, 13, 14, 39, 43, 45, 46, 16, 3, 5, 10, 12, 19, 21,
            26, 28, 35, 37, 42, 44, 1, 2, 4, 8, 17, 18, 20, 24, 6, 9, 22, 25, 32, 33, 34, 36, 40,
            38, 41,
        ],
        [
            0, 16, 1, 2, 4, 8, 32, 3, 5, 10, 12, 15, 47, 7, 11, 13, 14, 6, 9, 31, 35, 37, 42, 44,
            33, 34, 36, 40, 39, 43, 45, 46, 17, 18, 20, 24, 19, 21, 26, 28, 23, 27, 29, 30, 22, 25,
            38, 41,
        ],
    ];
    let mut codes = [[0; 2]; 48];
    let mut kind = 0;
    while kind < 2 {
        let mut code = 0;
        while code < 48 {
            codes[PATTERNS[kind][code] as usize][kind] = code as u8;
            code += 1;
        }
        kind += 1;
    }
    codes
}
