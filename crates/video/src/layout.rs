use std::ops::Range;

use crate::Error;

/// Side of a macroblock in luma pixels.
pub(crate) const MACROBLOCK: usize = 16;

/// Partition of a picture into strips of complete macroblock rows, as equal as possible.
///
/// Strip `i` of `k`, of `n` macroblock rows, begins at row `i * n / k`, rounded down: 7, 8, 7, 8,
/// 7, 8 for the six strips of the 45 macroblock rows of a 1280x720 picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    width: usize,
    height: usize,
    strips: usize,
    /// Columns at the right and rows at the bottom that are coded but not shown.
    cropped: [usize; 2],
}

impl Layout {
    /// Number of strips of every picture on the wire: reading one strip from the sensor takes a
    /// sixth of a picture's time, as in [LTE], section IV.
    pub const STRIP_COUNT: usize = 6;

    /// Returns the layout of pictures of `width` by `height` pixels in
    /// [`STRIP_COUNT`](Self::STRIP_COUNT) strips.
    ///
    /// # Errors
    /// As [`with_strips`](Self::with_strips).
    pub fn of(width: usize, height: usize) -> Result<Self, Error> {
        Self::with_strips(width, height, Self::STRIP_COUNT)
    }

    /// Returns the layout of a source's pictures of `width` by `height` pixels, for any size. The
    /// coded picture consists of the complete macroblocks around them, with up to 14 columns and
    /// rows more than shown at the right and bottom. An odd side loses its last column or row,
    /// because chroma has half the resolution.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn around(width: usize, height: usize) -> Result<Self, Error> {
        if width > SIDE_MAX || height > SIDE_MAX {
            return Err(Error::Dimensions { width, height });
        }
        let shown = [width, height].map(|side| side - side % 2);
        let [width, height] = shown.map(|side| side.next_multiple_of(MACROBLOCK));
        Self::of(width, height)?.with_cropped([width - shown[0], height - shown[1]])
    }

    /// Returns the layout of a sensor's pictures, as [`around`](Self::around) does, with fewer
    /// strips if it has fewer than six macroblock rows: such pictures are
    /// [enlarged](crate::Enlargement) before they are coded.
    ///
    /// # Errors
    /// [`Error::Dimensions`] for a side below 2 or above 8192.
    pub fn of_sensor(width: usize, height: usize) -> Result<Self, Error> {
        if width > SIDE_MAX || height > SIDE_MAX {
            return Err(Error::Dimensions { width, height });
        }
        let shown = [width, height].map(|side| side - side % 2);
        let coded = shown.map(|side| side.next_multiple_of(MACROBLOCK));
        let strips = Self::STRIP_COUNT.min(coded[1] / MACROBLOCK).max(1);
        let layout = Self::with_strips(coded[0], coded[1], strips)?;
        layout.with_cropped([coded[0] - shown[0], coded[1] - shown[1]])
    }

    /// Returns this layout with the given numbers of columns at the right and rows at the bottom
    /// coded but not shown.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless both are even and less than a macroblock's side.
    pub fn with_cropped(self, cropped: [usize; 2]) -> Result<Self, Error> {
        match cropped.iter().find(|side| **side % 2 != 0 || **side >= MACROBLOCK) {
            Some(&side) => Err(Error::Invalid { what: "cropping", value: side as u64 }),
            None => Ok(Self { cropped, ..self }),
        }
    }

    /// Returns the layout of pictures of `width` by `height` pixels in `strips` strips.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both sides are multiples of 16 from 16 to 8192;
    /// [`Error::TooFewRows`] with fewer macroblock rows than strips; [`Error::Invalid`] for zero
    /// strips.
    pub fn with_strips(width: usize, height: usize, strips: usize) -> Result<Self, Error> {
        let valid =
            |side: usize| side.is_multiple_of(MACROBLOCK) && (16..=SIDE_MAX).contains(&side);
        if !valid(width) || !valid(height) {
            return Err(Error::Dimensions { width, height });
        }
        if strips == 0 {
            return Err(Error::Invalid { what: "number of strips", value: 0 });
        }
        if height / MACROBLOCK < strips {
            return Err(Error::TooFewRows { height });
        }
        Ok(Self { width, height, strips, cropped: [0; 2] })
    }

    /// Returns the coded width of the picture and of every strip in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the coded height of the picture in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the number of strips of the picture.
    pub fn strip_count(&self) -> usize {
        self.strips
    }

    /// Returns the shown width and height of the picture in pixels.
    pub fn shown(&self) -> (usize, usize) {
        (self.width - self.cropped[0], self.height - self.cropped[1])
    }

    /// Returns the numbers of columns at the right and rows at the bottom of strip `strip` that are
    /// coded but not shown; only the last strip has such rows.
    pub fn cropped(&self, strip: usize) -> [usize; 2] {
        let [right, below] = self.cropped;
        [right, if strip + 1 == self.strips { below } else { 0 }]
    }

    /// Returns the shown pixel rows of strip `strip`.
    ///
    /// # Panics
    /// As [`strip_rows`](Self::strip_rows).
    pub fn shown_rows(&self, strip: usize) -> Range<usize> {
        let rows = self.strip_rows(strip);
        rows.start..rows.end - self.cropped(strip)[1]
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

/// Maximum side of a coded picture in pixels; a picture with a longer one is refused.
const SIDE_MAX: usize = 8192;

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
    fn complete_macroblocks_are_coded_and_the_source_size_is_shown() {
        let layout = Layout::around(1920, 1080).unwrap();
        assert_eq!((layout.width(), layout.height(), layout.shown()), (1920, 1088, (1920, 1080)));
        assert_eq!((layout.cropped(4), layout.cropped(5)), ([0, 0], [0, 8]));
        assert_eq!((layout.strip_rows(5), layout.shown_rows(5)), (896..1088, 896..1080));
        assert_eq!(Layout::around(640, 480).unwrap(), Layout::of(640, 480).unwrap());
        let odd = Layout::around(641, 83).unwrap();
        assert_eq!((odd.width(), odd.height(), odd.shown()), (640, 96, (640, 82)));
        assert!(Layout::around(640, 80).is_err() && Layout::around(0, 480).is_err());
        assert!(odd.with_cropped([0, 16]).is_err() && odd.with_cropped([1, 0]).is_err());
    }

    #[test]
    fn a_sensor_of_few_rows_has_fewer_strips() {
        for (height, strips) in [(8, 1), (60, 4), (80, 5), (82, 6), (480, 6)] {
            assert_eq!(Layout::of_sensor(80, height).unwrap().strip_count(), strips, "{height}");
        }
        assert_eq!(Layout::of_sensor(641, 83).unwrap(), Layout::around(641, 83).unwrap());
        for (width, height) in [(0, 96), (96, 1), (8193, 96), (usize::MAX, 96)] {
            assert!(Layout::of_sensor(width, height).is_err());
        }
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
