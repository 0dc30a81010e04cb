//! The deblocking filter (8.7) over a complete slice.

use super::kernel::{Edge, Kernel};
use super::macroblock::{Kind, Macroblock};
use super::plane::Reconstruction;
use super::quantize::chroma_qp;

/// Filters all edges within the slice, macroblock by macroblock.
pub(super) fn deblock(
    kernel: impl Kernel,
    reconstruction: &mut Reconstruction,
    macroblocks: &[Macroblock],
    columns: usize,
) {
    for (index, own) in macroblocks.iter().enumerate() {
        let (column, row) = (index % columns, index / columns);
        let left = (column > 0).then(|| &macroblocks[index - 1]);
        let above = index.checked_sub(columns).map(|above| &macroblocks[above]);
        let inner =
            if own.kind == Kind::Inter && own.coded == 0 && own.moves_as_one() { 1 } else { 4 };
        for (other, direction) in [(left, Direction::Vertical), (above, Direction::Horizontal)] {
            for number in 0..inner {
                let other = if number == 0 { other } else { Some(own) };
                let Some(other) = other else { continue };
                let strengths = strengths(own, other, number, direction);
                if strengths != [0; 4] {
                    let at = [column as i32 * 16, row as i32 * 16];
                    filter(
                        kernel,
                        reconstruction,
                        at,
                        (own, other),
                        (number, direction),
                        strengths,
                    );
                }
            }
        }
    }
}

/// Orientation of an edge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Vertical,
    Horizontal,
}

/// Returns bS (8.7.2.1) of the four parts of edge `number` of macroblock `own`; edge 0 is that to
/// the macroblock `other`.
#[inline]
fn strengths(own: &Macroblock, other: &Macroblock, number: usize, direction: Direction) -> [u8; 4] {
    let across = number == 0;
    if own.kind == Kind::Intra || other.kind == Kind::Intra {
        return [if across { 4 } else { 3 }; 4];
    }
    // One bit for each part: whether a block on either side has coefficients.
    let (step, first, before) = match direction {
        Direction::Vertical => (4, number, (number + 3) % 4),
        Direction::Horizontal => (1, 4 * number, (number + 3) % 4 * 4),
    };
    let coded = own.coded >> first | other.coded >> before;
    // Vectors are constant within a quarter.
    let quarters = match (number, direction) {
        (0, Direction::Vertical) => [(0, 1), (2, 3)],
        (0, Direction::Horizontal) => [(0, 2), (1, 3)],
        (2, Direction::Vertical) => [(1, 0), (3, 2)],
        (2, Direction::Horizontal) => [(2, 0), (3, 1)],
        _ => [(0, 0); 2],
    };
    let apart = if across || number == 2 {
        quarters.map(|(q, p)| own.vectors[q].is_apart(other.vectors[p]))
    } else {
        [false; 2]
    };
    let strength = |part: usize| match coded >> (part * step) & 1 {
        1 => 2,
        _ => u8::from(apart[part / 2]),
    };
    [strength(0), strength(1), strength(2), strength(3)]
}

fn filter(
    kernel: impl Kernel,
    reconstruction: &mut Reconstruction,
    [x, y]: [i32; 2],
    (own, other): (&Macroblock, &Macroblock),
    (number, direction): (usize, Direction),
    strengths: [u8; 4],
) {
    let offset = |step: i32| match direction {
        Direction::Vertical => (step, 0),
        Direction::Horizontal => (0, step),
    };
    let steps = |stride: usize| match direction {
        Direction::Vertical => (1, stride),
        Direction::Horizontal => (stride, 1),
    };
    if let Some(edge) = edge([own.qp, other.qp], strengths) {
        let plane = &mut reconstruction.luma;
        let (dx, dy) = offset(4 * number as i32);
        let (at, (across, along)) = (plane.at(x + dx, y + dy), steps(plane.stride()));
        kernel.deblock_luma(plane.samples_mut(), at, across, along, &edge);
    }
    if number % 2 == 1 {
        return;
    }
    if let Some(edge) = edge([own.qp, other.qp].map(chroma_qp), strengths) {
        for plane in [&mut reconstruction.cb, &mut reconstruction.cr] {
            let (dx, dy) = offset(2 * number as i32);
            let (at, (across, along)) = (plane.at(x / 2 + dx, y / 2 + dy), steps(plane.stride()));
            kernel.deblock_chroma(plane.samples_mut(), at, across, along, &edge);
        }
    }
}

/// Returns the filter's thresholds and limits at an edge, from the quantizers on both sides and the
/// bS of its four parts (8.7.2.2); `None` if the quantizers are so fine that no sample is filtered.
#[inline]
fn edge(qps: [u8; 2], strengths: [u8; 4]) -> Option<Edge> {
    let index = usize::from((qps[0] + qps[1]).div_ceil(2));
    let (alpha, beta) = (ALPHA[index], BETA[index]);
    if alpha == 0 {
        return None;
    }
    let limits = (strengths[0] < 4).then(|| {
        strengths.map(|strength| match strength {
            0 => -1,
            strength => LIMITS[index][usize::from(strength) - 1],
        })
    });
    Some(Edge { alpha, beta, limits })
}

/// Thresholds alpha of table 8-16, by the mean quantizer; [`BETA`] are those of beta.
static ALPHA: [u8; 52] = [
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 17, 20,
    22, 25, 28, 32, 36, 40, 45, 50, 56, 63, 71, 80, 90, 101, 113, 127, 144, 162, 182, 203, 226,
    255, 255,
];
static BETA: [u8; 52] = [
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 6, 6, 7, 7, 8, 8,
    9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 16, 16, 17, 17, 18, 18,
];
/// Limits t_C0 of table 8-17, by the mean quantizer, for bS 1 to 3.
static LIMITS: [[i8; 3]; 52] = {
    const ABOVE: [[i8; 3]; 35] = [
        [0, 0, 1],
        [0, 0, 1],
        [0, 0, 1],
        [0, 0, 1],
        [0, 1, 1],
        [0, 1, 1],
        [1, 1, 1],
        [1, 1, 1],
        [1, 1, 1],
        [1, 1, 1],
        [1, 1, 2],
        [1, 1, 2],
        [1, 1, 2],
        [1, 1, 2],
        [1, 2, 3],
        [1, 2, 3],
        [2, 2, 3],
        [2, 2, 4],
        [2, 3, 4],
        [2, 3, 4],
        [3, 3, 5],
        [3, 4, 6],
        [3, 4, 6],
        [4, 5, 7],
        [4, 5, 8],
        [4, 6, 9],
        [5, 7, 10],
        [6, 8, 11],
        [6, 8, 13],
        [7, 10, 14],
        [8, 11, 16],
        [9, 12, 18],
        [10, 13, 20],
        [11, 15, 23],
        [13, 17, 25],
    ];
    let mut all = [[0; 3]; 52];
    let mut index = 17;
    while index < 52 {
        all[index] = ABOVE[index - 17];
        index += 1;
    }
    all
};
