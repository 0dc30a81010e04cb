//! Estimate of a macroblock's coding cost before it is coded.

use super::kernel::Kernel;
use super::plane::Block;
use super::slice::Slice;
use super::vector::Vector;

impl<K: Kernel> Slice<'_, K> {
    /// Computes the activity of each macroblock of row `row`, and passes it to the rate control. In
    /// a P slice it is the square root of [`NOISE`] plus the mean absolute difference per luma
    /// sample from the reference picture, at the same place or moved by the co-located macroblock's
    /// vector, whichever is less. In an I slice it is [`NOISE`] plus the mean difference between
    /// adjacent rows.
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

/// Constant added to each measured mean difference per sample, in steps of luma.
const NOISE: f64 = 0.5;
/// Exponent of a macroblock's activity in a P slice: its bits are assumed to grow with this power
/// of its mean difference per sample.
const POWER: f64 = 0.5;
