use std::ops::Range;

use crate::Error;

/// The side of a macroblock in luma pixels.
pub(crate) const MACROBLOCK: usize = 16;

/// How a picture is cut into strips: whole macroblock rows, as equal as possible.
///
/// Strip `i` of `n` macroblock rows begins at row `i * n / 6`, rounded down: 7, 8, 7, 8, 7, 8 for
/// the 45 of a 1280x720 picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    width: usize,
    height: usize,
}

impl Layout {
    /// The number of strips in every picture: reading one takes a sixth of a picture's time, as in
    /// the first paper, section IV.
    pub const STRIP_COUNT: usize = 6;

    /// The layout of pictures of `width` by `height` pixels.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both are multiples of 16 from 16 to 8192;
    /// [`Error::TooFewRows`] with fewer than six macroblock rows.
    pub fn of(width: usize, height: usize) -> Result<Self, Error> {
        let valid = |side: usize| side.is_multiple_of(MACROBLOCK) && (16..=8192).contains(&side);
        if !valid(width) || !valid(height) {
            return Err(Error::Dimensions { width, height });
        }
        if height < Self::STRIP_COUNT * MACROBLOCK {
            return Err(Error::TooFewRows { height });
        }
        Ok(Self { width, height })
    }

    /// Pixels in a row of the picture and of every strip.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows of the picture.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The pixel rows of strip `strip`, counted from the top of the picture.
    ///
    /// # Panics
    /// If `strip` is not below [`STRIP_COUNT`](Self::STRIP_COUNT).
    pub fn strip_rows(&self, strip: usize) -> Range<usize> {
        assert!(strip < Self::STRIP_COUNT, "strip {strip} of {}", Self::STRIP_COUNT);
        let rows = self.height / MACROBLOCK;
        let boundary = |index: usize| index * rows / Self::STRIP_COUNT * MACROBLOCK;
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
            let layout = Layout::of(64, height).unwrap();
            let mut next = 0;
            for strip in 0..Layout::STRIP_COUNT {
                let rows = layout.strip_rows(strip);
                assert_eq!(rows.start, next);
                assert!(rows.len() >= 16 && rows.len().is_multiple_of(16));
                next = rows.end;
            }
            assert_eq!(next, height);
        }
    }

    #[test]
    fn odd_sizes_are_refused() {
        assert!(matches!(Layout::of(1280, 722), Err(Error::Dimensions { .. })));
        assert!(matches!(Layout::of(1280, 80), Err(Error::TooFewRows { height: 80 })));
    }
}
