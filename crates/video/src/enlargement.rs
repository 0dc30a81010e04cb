use std::ops::Range;

use crate::layout::MACROBLOCK;
use crate::{Error, Layout, Picture, stamp};

/// Enlargement of a source's pictures by an integer factor, strip by strip: each pixel is
/// interpolated from the four nearest source pixels.
///
/// The stamp takes [`stamp::WIDTH`] pixels of a row, and six strips take 96 rows. Smaller pictures,
/// such as those of a thermal camera, are enlarged until both fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enlargement {
    source: Layout,
    layout: Layout,
    factor: usize,
}

type Plane = fn(&Picture) -> &[u8];

impl Enlargement {
    /// Returns the enlargement of `source` by the smallest factor at which the stamp and all strips
    /// fit; `None` if they already fit.
    ///
    /// # Errors
    /// As [`Layout::around`] for the larger size; [`Error::Invalid`] for a factor above 42: nobody
    /// can drive by a picture with a side of less than eight pixels.
    pub fn of(source: &Layout) -> Result<Option<Self>, Error> {
        let (width, height) = source.shown();
        // The last strip's macroblocks may extend beyond the shown rows.
        let rows = (Layout::STRIP_COUNT - 1) * MACROBLOCK + 1;
        let factor = stamp::WIDTH.div_ceil(width).max(rows.div_ceil(height));
        if factor == 1 {
            return Ok(None);
        }
        if factor > FACTOR_MAX {
            return Err(Error::Invalid { what: "enlargement", value: factor as u64 });
        }
        let layout = Layout::around(width * factor, height * factor)?;
        Ok(Some(Self { source: *source, layout, factor }))
    }

    /// Returns the enlargement factor of width and height.
    pub fn factor(&self) -> usize {
        self.factor
    }

    /// Returns the layout of the larger pictures.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the source strips from which strip `strip` of the larger picture is computed.
    ///
    /// # Panics
    /// If the larger picture has no such strip.
    pub fn strips(&self, strip: usize) -> Range<usize> {
        let rows = self.layout.strip_rows(strip);
        let last = self.source.shown().1 - 1;
        // Chroma has half the rows, and each needs the row before or after it.
        let first = (rows.start / self.factor).saturating_sub(MARGIN).min(last);
        let end = (rows.end / self.factor + MARGIN).min(last);
        self.strip_of(first)..self.strip_of(end) + 1
    }

    /// Draws strip `strip` of the larger picture into `rows`, from all the source's strips; only
    /// [those it is computed from](Self::strips) are read.
    ///
    /// # Panics
    /// If the sizes of `strips` or `rows` do not match the two layouts.
    pub fn draw(&self, strips: &[Picture], strip: usize, rows: &mut Picture) {
        let first_row = self.layout.strip_rows(strip).start;
        let (width, (shown_width, shown_height)) = (rows.width(), self.source.shown());
        let (luma, cb, cr) = rows.planes_mut();
        let planes: [(_, Plane, _); 3] =
            [(luma, Picture::luma, 1), (cb, Picture::cb, 2), (cr, Picture::cr, 2)];
        for (target, plane, part) in planes {
            let source_row = |row: usize| {
                let strip = self.strip_of(row * part);
                let width = strips[strip].width() / part;
                let row = row - self.source.strip_rows(strip).start / part;
                &plane(&strips[strip])[row * width..][..shown_width / part]
            };
            let width = width / part;
            let columns: Vec<Between> =
                (0..width).map(|at| self.between(at, shown_width / part)).collect();
            for (row, target) in target.chunks_exact_mut(width).enumerate() {
                let between = self.between(first_row / part + row, shown_height / part);
                let (upper, lower) = (source_row(between.first), source_row(between.second));
                self.draw_row(&columns, between.share, [upper, lower], target);
            }
        }
    }

    /// Draws a row of a plane that lies between two source rows, `share` from the first.
    fn draw_row(&self, columns: &[Between], share: u32, rows: [&[u8]; 2], target: &mut [u8]) {
        let whole = 2 * self.factor as u32;
        for (target, column) in target.iter_mut().zip(columns) {
            let along = |row: &[u8]| {
                let [first, second] = [column.first, column.second].map(|at| u32::from(row[at]));
                first * (whole - column.share) + second * column.share
            };
            let sum = along(rows[0]) * (whole - share) + along(rows[1]) * share;
            *target = ((sum + whole * whole / 2) / (whole * whole)) as u8;
        }
    }

    /// Returns the two source samples, of `count`, between which sample `at` of the larger picture
    /// lies.
    fn between(&self, at: usize, count: usize) -> Between {
        let whole = 2 * self.factor;
        // Positions are those of sample centres: the first sample of a larger picture lies before
        // the source's first.
        let place = (2 * at + 1).saturating_sub(self.factor);
        let [first, second] = [place / whole, place / whole + 1].map(|it| it.min(count - 1));
        Between { first, second, share: (place % whole) as u32 }
    }

    /// Returns the index of the source strip that contains row `row` of the source picture; 0 if no
    /// strip does.
    fn strip_of(&self, row: usize) -> usize {
        let has = |strip: &usize| self.source.strip_rows(*strip).end > row;
        (0..self.source.strip_count()).find(has).unwrap_or_default()
    }
}

/// A position between two samples; `share` is its distance from the first, in units of 1 / (2 *
/// factor).
#[derive(Clone, Copy, Debug)]
struct Between {
    first: usize,
    second: usize,
    share: u32,
}

/// Maximum factor: the stamp's width divided by eight pixels.
const FACTOR_MAX: usize = 42;
/// Number of source rows needed before and after those that a strip covers.
const MARGIN: usize = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strips(layout: &Layout, pixel: impl Fn(usize, usize) -> u8) -> Vec<Picture> {
        let strip = |strip: usize| {
            let rows = layout.strip_rows(strip);
            let mut picture = Picture::new(layout.width(), rows.len()).unwrap();
            let width = layout.width();
            let (luma, cb, cr) = picture.planes_mut();
            for (at, value) in luma.iter_mut().enumerate() {
                *value = pixel(at % width, rows.start + at / width);
            }
            for plane in [cb, cr] {
                for (at, value) in plane.iter_mut().enumerate() {
                    *value = pixel(at % (width / 2), rows.start / 2 + at / (width / 2));
                }
            }
            picture
        };
        (0..layout.strip_count()).map(strip).collect()
    }

    #[test]
    fn small_pictures_are_enlarged_to_fit_stamp_and_strips() {
        let factor = |width, height| {
            let source = Layout::of_sensor(width, height).unwrap();
            let enlarged = Enlargement::of(&source).unwrap();
            enlarged.map(|it| (it.factor(), it.layout().shown()))
        };
        assert_eq!(factor(160, 120), Some((3, (480, 360))));
        assert_eq!(factor(320, 240), Some((2, (640, 480))));
        assert_eq!(factor(80, 60), Some((5, (400, 300))));
        assert_eq!(factor(32, 24), Some((11, (352, 264))));
        assert_eq!(factor(8, 8), Some((42, (336, 336))));
        assert_eq!(factor(640, 64), Some((2, (1280, 128))));
        assert_eq!(factor(56, 8), Some((11, (616, 88))));
        for (width, height) in [(336, 96), (336, 82), (640, 480), (1920, 1080)] {
            assert_eq!(factor(width, height), None, "{width}x{height}");
        }
        let narrow = Layout::of_sensor(6, 480).unwrap();
        assert!(Enlargement::of(&narrow).is_err());
        let flat = Layout::of_sensor(4096, 16).unwrap();
        assert!(Enlargement::of(&flat).is_err(), "24576 columns");
    }

    #[test]
    fn a_slope_stays_a_slope() {
        let source = Layout::of_sensor(160, 120).unwrap();
        let enlargement = Enlargement::of(&source).unwrap().unwrap();
        let all = strips(&source, |x, y| (x + y / 2) as u8);
        for strip in 0..6 {
            let range = enlargement.layout().strip_rows(strip);
            let mut rows = Picture::new(480, range.len()).unwrap();
            enlargement.draw(&all, strip, &mut rows);
            for (at, value) in rows.luma().iter().enumerate() {
                let [x, y] = [at % 480, range.start + at / 480].map(|it| (it as f64 - 1.0) / 3.0);
                let expected = x.clamp(0.0, 159.0) + y.clamp(0.0, 119.0) / 2.0;
                assert!((f64::from(*value) - expected).abs() <= 1.0, "{x} {y}: {value}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_grey_picture_stays_grey_and_only_needed_strips_are_read(
            width in 8_usize..400, height in 8_usize..200, grey in 0_u8..=255,
        ) {
            let source = Layout::of_sensor(width, height).unwrap();
            let enlargement = match Enlargement::of(&source) {
                Ok(Some(enlargement)) => enlargement,
                Ok(None) => {
                    prop_assert!(width >= 336 && height >= 82);
                    return Ok(());
                }
                // More than 8192 rows.
                Err(_) => {
                    prop_assert!(width < 10 && height > 190);
                    return Ok(());
                }
            };
            prop_assert!(enlargement.layout().shown().0 >= stamp::WIDTH);
            for strip in 0..6 {
                let needed = enlargement.strips(strip);
                let mut all = strips(&source, |_, _| grey);
                for (index, other) in all.iter_mut().enumerate() {
                    if !needed.contains(&index) {
                        let (luma, cb, cr) = other.planes_mut();
                        [luma, cb, cr].into_iter().for_each(|it| it.fill(grey.wrapping_add(100)));
                    }
                }
                let range = enlargement.layout().strip_rows(strip);
                let mut rows = Picture::new(enlargement.layout().width(), range.len()).unwrap();
                enlargement.draw(&all, strip, &mut rows);
                let planes = [rows.luma(), rows.cb(), rows.cr()];
                prop_assert!(planes.iter().all(|plane| plane.iter().all(|it| *it == grey)));
            }
        }
    }
}
