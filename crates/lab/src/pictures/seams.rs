//! Visibility of the edges between strips, across which no loop filter works.

use anyhow::{Result, ensure};
use tautline_video::{Layout, Picture};

/// Steps in the coding error from one row of luma to the next, summed over pictures.
#[derive(Clone, Default, Debug)]
pub(crate) struct Seams {
    /// Steps at the edges between strips: their sum and the number of samples.
    between: (u64, u64),
    /// Steps between macroblock rows within strips: their sum and the number of samples.
    within: (u64, u64),
}

impl Seams {
    /// Adds a picture with the strips of `layout`.
    ///
    /// # Errors
    /// If the two pictures do not have the layout's size.
    pub(crate) fn add(&mut self, layout: &Layout, shown: &Picture, source: &Picture) -> Result<()> {
        let width = layout.width();
        let size = [width, layout.height()];
        ensure!(
            [shown, source].iter().all(|picture| [picture.width(), picture.height()] == size),
            "pictures of another size than their strips"
        );
        for strip in 0..layout.strip_count() {
            let rows = layout.strip_rows(strip);
            for row in rows.clone().step_by(MACROBLOCK).filter(|row| *row > 0) {
                let (above, below) = ((row - 1) * width, row * width);
                let error = |at: usize| i64::from(shown.luma()[at]) - i64::from(source.luma()[at]);
                let step = |x: usize| (error(below + x) - error(above + x)).unsigned_abs();
                let sum: u64 = (0..width).map(step).sum();
                let steps = if row == rows.start { &mut self.between } else { &mut self.within };
                *steps = (steps.0 + sum, steps.1 + width as u64);
            }
        }
        Ok(())
    }

    /// Returns by how much the mean step between strips exceeds that within them, as a share. It is
    /// 0 if there is no visible seam, and NaN if coding changed nothing.
    pub(crate) fn excess(&self) -> f64 {
        let mean = |(sum, count): (u64, u64)| sum as f64 / count as f64;
        mean(self.between) / mean(self.within) - 1.0
    }
}

const MACROBLOCK: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the seams of a grey picture in which each strip, and each macroblock row, is
    /// brighter by the given steps.
    fn seams(strip_step: u8, row_step: u8) -> Seams {
        let layout = Layout::of(64, 192).unwrap();
        let source = Picture::new(64, 192).unwrap();
        let mut shown = source.clone();
        for strip in 0..layout.strip_count() {
            for (index, row) in layout.strip_rows(strip).enumerate() {
                let value = strip as u8 * strip_step + (index / MACROBLOCK) as u8 % 2 * row_step;
                shown.planes_mut().0[row * 64..][..64].fill(value);
            }
        }
        let mut seams = Seams::default();
        seams.add(&layout, &shown, &source).unwrap();
        seams
    }

    #[test]
    fn a_seam_is_a_step_that_others_have_not() {
        // Strips of two macroblock rows: the step from the second of one to the first of the next
        // is strip minus row step.
        assert_eq!(seams(8, 4).excess(), 0.0);
        assert_eq!(seams(10, 4).excess(), 0.5);
        assert!(seams(0, 0).excess().is_nan());
    }

    #[test]
    fn pictures_of_another_size_are_refused() {
        let layout = Layout::of(64, 192).unwrap();
        let [fits, other] = [192, 96].map(|height| Picture::new(64, height).unwrap());
        assert!(Seams::default().add(&layout, &fits, &other).is_err());
    }
}
