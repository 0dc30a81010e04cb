//! Prediction from another picture (8.4.2).

use super::kernel::Kernel;
use super::plane::{Block, Halves, Plane, Reconstruction};
use super::vector::Vector;

/// The picture used for prediction.
#[derive(Clone, Copy)]
pub(super) struct Reference<'a> {
    reconstruction: &'a Reconstruction,
    /// Luma planes, all of the same size: full samples G, then half samples b, h and j, named as in
    /// table 8-12 and figure 8-4.
    planes: [&'a Plane; 4],
}

/// A position and size in luma samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Area {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Location of samples relative to a full-sample position: an index into [`Reference::planes`], and
/// 1 for the next column or row.
#[derive(Clone, Copy)]
struct Place {
    plane: usize,
    column: usize,
    row: usize,
}

/// The one or two samples whose mean is a quarter position (8.4.2.2.1), by `yFrac` and then
/// `xFrac`.
static QUARTERS: [[(Place, Option<Place>); 4]; 4] = {
    const fn at(plane: usize, column: usize, row: usize) -> Place {
        Place { plane, column, row }
    }
    const G: Place = at(0, 0, 0);
    const B: Place = at(1, 0, 0);
    const H: Place = at(2, 0, 0);
    const J: Place = at(3, 0, 0);
    const RIGHT: Place = at(2, 1, 0);
    const BELOW: Place = at(1, 0, 1);
    [
        [(G, None), (G, Some(B)), (B, None), (B, Some(at(0, 1, 0)))],
        [(G, Some(H)), (B, Some(H)), (B, Some(J)), (B, Some(RIGHT))],
        [(H, None), (H, Some(J)), (J, None), (J, Some(RIGHT))],
        [(H, Some(at(0, 0, 1))), (H, Some(BELOW)), (J, Some(BELOW)), (RIGHT, Some(BELOW))],
    ]
};

impl<'a> Reference<'a> {
    pub(super) fn new(reconstruction: &'a Reconstruction, halves: &'a Halves) -> Self {
        Self { reconstruction, planes: [&reconstruction.luma, &halves.b, &halves.h, &halves.j] }
    }

    /// Returns the one or two blocks of luma samples whose mean is the block at `x`, `y` moved by
    /// `vector`.
    #[inline(always)]
    fn quarter(&self, x: i32, y: i32, vector: Vector) -> (Block<'a>, Option<Block<'a>>) {
        let (x, y) = (x + i32::from(vector.x >> 2), y + i32::from(vector.y >> 2));
        let start = self.planes[0].at(x, y);
        let (first, second) =
            QUARTERS[usize::from(vector.y as u16 & 3)][usize::from(vector.x as u16 & 3)];
        (self.block(start, first), second.map(|second| self.block(start, second)))
    }

    #[inline(always)]
    fn block(&self, start: usize, place: Place) -> Block<'a> {
        let plane = self.planes[place.plane];
        let stride = plane.stride();
        Block { samples: &plane.samples()[start + place.row * stride + place.column..], stride }
    }

    /// Returns the sum of absolute differences of a macroblock from the reference moved by the full
    /// samples of `vector`.
    pub(super) fn sad_whole(
        &self,
        kernel: impl Kernel,
        source: Block<'_>,
        [x, y]: [i32; 2],
        vector: Vector,
    ) -> u32 {
        let (x, y) = (x + i32::from(vector.x >> 2), y + i32::from(vector.y >> 2));
        kernel.sad(16, 16, source, self.planes[0].from(x, y))
    }

    /// Returns the sum of absolute differences of `source` from the reference moved by `vector`.
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

    /// Returns [`sad`](Self::sad) for four vectors.
    #[inline]
    pub(super) fn sad_four(
        &self,
        kernel: impl Kernel,
        source: Block<'_>,
        area: Area,
        vectors: [Vector; 4],
    ) -> [u32; 4] {
        let size = [area.width, area.height];
        let fractions = vectors.iter().fold(0, |bits, vector| bits | vector.x | vector.y) & 3;
        if fractions == 0 {
            let mut places = [source; 4];
            for (place, vector) in places.iter_mut().zip(&vectors) {
                let (x, y) = (i32::from(vector.x >> 2), i32::from(vector.y >> 2));
                *place = self.planes[0].from(area.x + x, area.y + y);
            }
            return kernel.sad_four(size, source, places);
        }
        let (mut firsts, mut seconds) = ([source; 4], [source; 4]);
        let mut any_mean = false;
        for (index, &vector) in vectors.iter().enumerate() {
            let (first, second) = self.quarter(area.x, area.y, vector);
            firsts[index] = first;
            // The mean of a sample and itself is that sample.
            seconds[index] = second.unwrap_or(first);
            any_mean |= second.is_some();
        }
        if any_mean {
            kernel.sad_mean_four(size, source, firsts, seconds)
        } else {
            kernel.sad_four(size, source, firsts)
        }
    }

    /// Writes the luma prediction of an area moved by `vector`, in rows of 16.
    pub(super) fn predict_luma(
        &self,
        kernel: impl Kernel,
        area: Area,
        vector: Vector,
        out: &mut [u8],
    ) {
        let (first, second) = self.quarter(area.x, area.y, vector);
        // The mean of a sample and itself is that sample.
        kernel.average(area.width, area.height, first, second.unwrap_or(first), out);
    }

    /// Writes the prediction of both chroma planes for a luma area moved by `vector`, in rows of
    /// 16: 8 samples of Cb, then 8 of Cr.
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
        kernel.chroma(size, self.reconstruction.cb.from(x, y), eighths, out);
        kernel.chroma(size, self.reconstruction.cr.from(x, y), eighths, &mut out[8..]);
    }
}
