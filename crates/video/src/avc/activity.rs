//! Estimate of a macroblock's coding cost before it is coded.

use super::kernel::Kernel;
use super::plane::Block;
use super::slice::Slice;
use super::vector::Vector;

impl<K: Kernel> Slice<'_, K> {
    /// Measures the activity of a row of macroblocks, from the mean difference per sample: of each
    /// macroblock from its reference picture, at the same place or moved by its last vector,
    /// whichever is less; in an I slice, from itself one row of samples above. The rate control
    /// gets the results.
    pub(super) fn look(&mut self, row: usize) {
        let (columns, y) = (self.columns, row * 16);
        let rows = self.rows.read(y + 16);
        let activity = &mut self.activity[row * columns..][..columns];
        for (column, activity) in activity.iter_mut().enumerate() {
            let x = column * 16;
            let at = |line: usize| Block {
                samples: &rows.luma()[line * rows.width() + x..],
                stride: rows.width(),
            };
            let Some(reference) = self.reference else {
                *activity = f64::from(self.kernel.sad(16, 14, at(y), at(y + 1))) / 256.0 + NOISE;
                continue;
            };
            let place = [x as i32, y as i32];
            let sad = |vector: Vector| reference.sad_whole(self.kernel, at(y), place, vector);
            let co_located = self.co_located[row * columns + column].rounded();
            let mut least = sad(Vector::default());
            if co_located != Vector::default()
                && self.reach.window(column).permits(place, [16, 16], co_located)
            {
                least = least.min(sad(co_located));
            }
            *activity = (f64::from(least) / 256.0 + NOISE).powf(POWER);
        }
        self.rate_control.look(row, activity);
    }
}

/// Difference per sample that is added to each measured one.
const NOISE: f64 = 0.5;
/// Exponent by which the bits of a predicted macroblock grow with its difference.
const POWER: f64 = 0.5;
