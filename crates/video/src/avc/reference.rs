//! Prediction from another picture (8.4.2).

use super::kernel::Kernel;
use super::plane::{Block, Frame, Halves, Plane};
use super::vector::Vector;

/// The picture that is predicted from.
#[derive(Clone, Copy)]
pub(super) struct Reference<'a> {
    pub(super) frame: &'a Frame,
    pub(super) halves: &'a Halves,
}

/// A place and size in luma samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Area {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The planes that table 8-12 makes of: whole samples, and b, h, j of figure 8-4.
#[derive(Clone, Copy)]
enum Of {
    G,
    B,
    H,
    J,
}

/// The one or two samples that a quarter position is the mean of (8.4.2.2.1): the plane, and the
/// step to the next column or row. By rows of `yFrac`.
type Means = (Of, i32, i32, Option<(Of, i32, i32)>);
const QUARTERS: [[Means; 4]; 4] = {
    use Of::{B, G, H, J};
    [
        [(G, 0, 0, None), (G, 0, 0, Some((B, 0, 0))), (B, 0, 0, None), (B, 0, 0, Some((G, 1, 0)))],
        [
            (G, 0, 0, Some((H, 0, 0))),
            (B, 0, 0, Some((H, 0, 0))),
            (B, 0, 0, Some((J, 0, 0))),
            (B, 0, 0, Some((H, 1, 0))),
        ],
        [(H, 0, 0, None), (H, 0, 0, Some((J, 0, 0))), (J, 0, 0, None), (J, 0, 0, Some((H, 1, 0)))],
        [
            (H, 0, 0, Some((G, 0, 1))),
            (H, 0, 0, Some((B, 0, 1))),
            (J, 0, 0, Some((B, 0, 1))),
            (H, 1, 0, Some((B, 0, 1))),
        ],
    ]
};

impl<'a> Reference<'a> {
    /// The luma samples that a block moved by `vector` is the mean of.
    #[inline(always)]
    fn quarter(&self, x: i32, y: i32, vector: Vector) -> (Block<'a>, Option<Block<'a>>) {
        let (x, y) = (x + i32::from(vector.x >> 2), y + i32::from(vector.y >> 2));
        let (first, column, row, second) =
            QUARTERS[usize::from(vector.y as u16 & 3)][usize::from(vector.x as u16 & 3)];
        (
            self.plane(first).from(x + column, y + row),
            second.map(|(second, column, row)| self.plane(second).from(x + column, y + row)),
        )
    }

    #[inline]
    fn plane(&self, of: Of) -> &'a Plane {
        match of {
            Of::G => &self.frame.luma,
            Of::B => &self.halves.b,
            Of::H => &self.halves.h,
            Of::J => &self.halves.j,
        }
    }

    /// The sum of absolute differences of `source` from the reference moved by `vector`.
    #[inline]
    pub(super) fn sad(
        &self,
        kernel: impl Kernel,
        source: Block<'_>,
        area: Area,
        vector: Vector,
    ) -> u32 {
        let (first, second) = self.quarter(area.x, area.y, vector);
        let Some(second) = second else {
            return kernel.sad(area.width, area.height, source, first);
        };
        kernel.sad_mean([area.width, area.height], source, [first, second])
    }

    /// Predicts luma into rows of 16.
    pub(super) fn predict_luma(
        &self,
        kernel: impl Kernel,
        area: Area,
        vector: Vector,
        out: &mut [u8],
    ) {
        let (first, second) = self.quarter(area.x, area.y, vector);
        if let Some(second) = second {
            kernel.average(area.width, area.height, first, second, out);
            return;
        }
        for (row, out) in out.chunks_mut(16).take(area.height).enumerate() {
            out[..area.width].copy_from_slice(&first.samples[row * first.stride..][..area.width]);
        }
    }

    /// Predicts both chroma planes of a luma area into rows of 16, Cb's 8 and then Cr's.
    pub(super) fn predict_chroma(
        &self,
        kernel: impl Kernel,
        area: Area,
        vector: Vector,
        out: &mut [u8],
    ) {
        let x = area.x / 2 + i32::from(vector.x >> 3);
        let y = area.y / 2 + i32::from(vector.y >> 3);
        let eighths = [vector.x as u16 & 7, vector.y as u16 & 7];
        let size = [area.width / 2, area.height / 2];
        kernel.chroma(size, self.frame.cb.from(x, y), eighths, out);
        kernel.chroma(size, self.frame.cr.from(x, y), eighths, &mut out[8..]);
    }
}
