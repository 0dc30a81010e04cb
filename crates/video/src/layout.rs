use std::ops::Range;

use crate::Error;

/// The side of a macroblock in luma pixels.
pub(crate) const MACROBLOCK: usize = 16;

/// Partition of a picture into strips: whole macroblock rows, as equal as possible.
///
/// Strip `i` of `k`, of `n` macroblock rows, begins at row `i * n / k`, rounded down: 7, 8, 7, 8, 7, 8
/// for six of the 45 of a 1280x720 picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    width: usize,
    height: usize,
    strips: usize,
}

impl Layout {
    /// The number of strips in every picture on the wire: reading one takes a sixth of a picture's
    /// time, as in the first paper, section IV.
    pub const STRIP_COUNT: usize = 6;

    /// Returns the layout of pictures of `width` by `height` pixels in
    /// [`STRIP_COUNT`](Self::STRIP_COUNT) strips.
    ///
    /// # Errors
    /// As [`with_strips`](Self::with_strips).
    pub fn of(width: usize, height: usize) -> Result<Self, Error> {
        Self::with_strips(width, height, Self::STRIP_COUNT)
    }

    /// Returns the layout of the largest pictures that fit into `width` by `height` pixels: a source
    /// whose sides are no multiples of 16 loses its last columns and rows, 15 at the most.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn within(width: usize, height: usize) -> Result<Self, Error> {
        Self::of(width - width % MACROBLOCK, height - height % MACROBLOCK)
    }

    /// Returns the layout of pictures of `width` by `height` pixels in `strips` strips.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both sides are multiples of 16 from 16 to 8192;
    /// [`Error::TooFewRows`] with fewer macroblock rows than strips; [`Error::Invalid`] for no strip.
    pub fn with_strips(width: usize, height: usize, strips: usize) -> Result<Self, Error> {
        let valid = |side: usize| side.is_multiple_of(MACROBLOCK) && (16..=8192).contains(&side);
        if !valid(width) || !valid(height) {
            return Err(Error::Dimensions { width, height });
        }
        if strips == 0 {
            return Err(Error::Invalid { what: "number of strips", value: 0 });
        }
        if height / MACROBLOCK < strips {
            return Err(Error::TooFewRows { height });
        }
        Ok(Self { width, height, strips })
    }

    /// Returns the pixels in a row of the picture and of every strip.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns rows of the picture.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the strips of the picture.
    pub fn strip_count(&self) -> usize {
        self.strips
    }

    /// Returns the pixel rows of strip `strip`, counted from the top of the picture.
    ///
    /// # Panics
    /// If `strip` is not below [`strip_count`](Self::strip_count).
    pub fn strip_rows(&self, strip: usize) -> Range<usize> {
        assert!(strip < self.strips, "strip {strip} of {}", self.strips);
        let rows = self.height / MACROBLOCK;
        let boundary = |index: usize| index * rows / self.strips * MACROBLOCK;
        boundary(strip)..boundary(strip + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_of_720_rows_have_7_and_8_macroblock_rows() {
        let layout = Layout::of(1280, 720).unwrap();
        let rows: Vec<usize> = (0..6).map(|strip| layout.strip_rows(strip).len() / 16).collect();
        assert_eq!(rows, [7, 8, 7, 8, 7, 8]);
    }

    #[test]
    fn strips_cover_every_picture_without_gap_or_overlap() {
        for height in (96..=2160).step_by(16) {
            for strips in [1, 5, 6, 12, height / 16].into_iter().filter(|n| *n <= height / 16) {
                let layout = Layout::with_strips(64, height, strips).unwrap();
                let mut next = 0;
                for strip in 0..layout.strip_count() {
                    let rows = layout.strip_rows(strip);
                    assert_eq!(rows.start, next);
                    assert!(rows.len() >= 16 && rows.len().is_multiple_of(16));
                    next = rows.end;
                }
                assert_eq!(next, height);
            }
        }
    }

    #[test]
    fn what_is_no_whole_macroblock_is_left_out() {
        assert_eq!(Layout::within(1920, 1080).unwrap(), Layout::of(1920, 1072).unwrap());
        assert_eq!(Layout::within(640, 480).unwrap(), Layout::of(640, 480).unwrap());
        assert!(Layout::within(640, 95).is_err() && Layout::within(15, 480).is_err());
    }

    #[test]
    fn odd_sizes_are_refused() {
        assert!(matches!(Layout::of(1280, 722), Err(Error::Dimensions { .. })));
        assert!(matches!(Layout::of(1280, 80), Err(Error::TooFewRows { height: 80 })));
        assert!(Layout::with_strips(1280, 720, 45).is_ok());
        for strips in [0, 46, usize::MAX] {
            assert!(Layout::with_strips(1280, 720, strips).is_err());
        }
    }
}
