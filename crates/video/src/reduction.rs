use std::ops::Range;

use crate::{Error, Layout, Picture};

/// Reduction of a source's pictures by an integer factor, strip by strip: each pixel is the mean of
/// factor x factor source pixels.
///
/// Strips of the smaller picture consist of complete macroblocks of their own, so one may need two
/// source strips.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reduction {
    source: Layout,
    layout: Layout,
    factor: usize,
}

type Plane = fn(&Picture) -> &[u8];

impl Reduction {
    /// Returns the reduction of pictures of `source` by `factor` in width and height.
    ///
    /// # Errors
    /// As [`Layout::around`] for the smaller size; [`Error::Invalid`] for a factor of 0 or above
    /// 16.
    pub fn new(source: &Layout, factor: usize) -> Result<Self, Error> {
        if !(1..=FACTOR_MAX).contains(&factor) {
            return Err(Error::Invalid { what: "reduction", value: factor as u64 });
        }
        let (width, height) = source.shown();
        let layout = Layout::around(width / factor, height / factor)?;
        Ok(Self { source: *source, layout, factor })
    }

    /// Returns the reduction factor of width and height.
    pub fn factor(&self) -> usize {
        self.factor
    }

    /// Returns the layout of the smaller pictures.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the source strips from which strip `strip` of the smaller picture is computed.
    ///
    /// # Panics
    /// If the smaller picture has no such strip.
    pub fn strips(&self, strip: usize) -> Range<usize> {
        let rows = self.layout.strip_rows(strip);
        let shown = self.source.shown().1;
        let source = |row: usize| self.strip_of((row * self.factor).min(shown - 1));
        let last = rows.end * self.factor - 1;
        source(rows.start)..self.strip_of(last.min(shown - 1)) + 1
    }

    /// Draws strip `strip` of the smaller picture into `rows`, from all the source's strips; only
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
                let row = row.min(shown_height / part - 1);
                let strip = self.strip_of(row * part);
                let width = strips[strip].width() / part;
                let row = row - self.source.strip_rows(strip).start / part;
                &plane(&strips[strip])[row * width..][..shown_width / part]
            };
            let mut sums = vec![0_u32; width / part];
            for (row, target) in target.chunks_exact_mut(width / part).enumerate() {
                let first = (first_row / part + row) * self.factor;
                sums.fill(0);
                for row in first..first + self.factor {
                    let pixels = source_row(row).chunks_exact(self.factor);
                    let each = sums.iter_mut().zip(pixels);
                    each.for_each(|(sum, pixels)| {
                        *sum += pixels.iter().map(|it| u32::from(*it)).sum::<u32>()
                    });
                }
                // Columns that are coded but not shown repeat the last shown one.
                let count = shown_width / part / self.factor;
                let last = sums[count.min(sums.len()) - 1];
                sums[count.min(width / part)..].fill(last);
                let pixels = (self.factor * self.factor) as u32;
                for (target, sum) in target.iter_mut().zip(&sums) {
                    *target = ((sum + pixels / 2) / pixels) as u8;
                }
            }
        }
    }

    /// Returns the index of the source strip that contains row `row` of the source picture; 0 if no
    /// strip does.
    fn strip_of(&self, row: usize) -> usize {
        let strips = 0..self.source.strip_count();
        strips
            .into_iter()
            .find(|strip| self.source.strip_rows(*strip).end > row)
            .unwrap_or_default()
    }
}

/// Maximum factor of a reduction: a side of 8192 pixels, the longest, still keeps 512.
const FACTOR_MAX: usize = 16;

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
    fn halves_of_720_rows_are_made_of_one_or_two_strips_each() {
        let reduction = Reduction::new(&Layout::of(1280, 720).unwrap(), 2).unwrap();
        assert_eq!((reduction.layout().width(), reduction.layout().shown()), (640, (640, 360)));
        let needed: Vec<_> = (0..6).map(|strip| reduction.strips(strip)).collect();
        assert_eq!(needed, [0..1, 0..2, 1..3, 3..4, 4..6, 5..6]);
    }

    #[test]
    fn each_pixel_is_the_mean_of_those_that_it_stands_for() {
        let source = Layout::of(64, 192).unwrap();
        let reduction = Reduction::new(&source, 2).unwrap();
        // Columns 0, 4, 8 .. and rows 1, 3 ..: the means are integers.
        let all = strips(&source, |x, y| (x * 2 + y % 40) as u8);
        for strip in 0..6 {
            let range = reduction.layout().strip_rows(strip);
            let mut rows = Picture::new(32, range.len()).unwrap();
            reduction.draw(&all, strip, &mut rows);
            for (at, value) in rows.luma().iter().enumerate() {
                let (x, y) = (at % 32, range.start + at / 32);
                let mean = (4 * x + 1) as f64 + (y * 2 % 40) as f64 + 0.5;
                assert!((f64::from(*value) - mean).abs() <= 0.5, "{x} {y}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_grey_picture_stays_grey_and_only_needed_strips_are_read(
            width in 48_usize..400, height in 192_usize..500, factor in 1_usize..4, grey in 0_u8..=255,
        ) {
            let source = Layout::around(width, height).unwrap();
            let Ok(reduction) = Reduction::new(&source, factor) else {
                prop_assert!(height / factor < 96 || width / factor < 16);
                return Ok(());
            };
            for strip in 0..6 {
                let needed = reduction.strips(strip);
                let mut all = strips(&source, |_, _| grey);
                for (index, other) in all.iter_mut().enumerate() {
                    if !needed.contains(&index) {
                        other.planes_mut().0.fill(grey.wrapping_add(100));
                    }
                }
                let range = reduction.layout().strip_rows(strip);
                let mut rows = Picture::new(reduction.layout().width(), range.len()).unwrap();
                reduction.draw(&all, strip, &mut rows);
                prop_assert!([rows.luma(), rows.cb(), rows.cr()].iter().all(|plane| plane.iter().all(|it| *it == grey)));
            }
        }
    }
}
