//! The reference kernel: all others compute the same bytes.

use super::{Column, ROWS_MAX, checked};
use crate::gf256::{INVERSE, NIBBLES, multiply};
use crate::subspace::WEIGHTS;

/// A multiplier of one byte at a time, for every CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar;

impl Scalar {
    /// Implements [`Kernel::multiply`](super::Kernel::multiply).
    ///
    /// # Panics
    /// As there.
    pub fn multiply(self, columns: &[Column], inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        checked::multiply(columns, inputs, outputs);
        for (row, output) in outputs.iter_mut().enumerate() {
            output.fill(0);
            for (column, input) in columns.iter().zip(inputs) {
                add_product(output, column[row], input);
            }
        }
    }

    /// Implements `Kernel::solve`, one byte of all packets at a time.
    pub(crate) fn solve(self, columns: &[Column], addends: &[&[u8]], packets: &mut [&mut [u8]]) {
        let length = checked::solve(columns, addends, packets);
        let count = packets.len();
        let mut sums = [0; super::SOLVED_MAX];
        for at in 0..length {
            for ((sum, addend), packet) in sums.iter_mut().zip(addends).zip(&*packets) {
                *sum = addend[at] ^ packet[at];
            }
            for (row, packet) in packets.iter_mut().enumerate() {
                let tile = &columns[row / ROWS_MAX * count..][..count];
                let products =
                    tile.iter().zip(sums).map(|(c, sum)| multiply(c[row % ROWS_MAX], sum));
                packet[at] = products.fold(0, |sum, product| sum ^ product);
            }
        }
    }

    /// Implements `Kernel::transform` by the matrix that equals the transform.
    pub(crate) fn transform(
        self,
        layers: usize,
        sources: &[&[u8]],
        wanted: &[u8],
        outputs: &mut [&mut [u8]],
    ) {
        checked::transform(layers, sources, wanted, outputs);
        for (&index, output) in wanted.iter().zip(outputs) {
            output.fill(0);
            for (source, point) in sources.iter().zip(1_usize << layers..) {
                let inverse = INVERSE[point ^ usize::from(index)];
                let coefficient = multiply(WEIGHTS[layers][point >> layers], inverse);
                add_product(output, coefficient, source);
            }
        }
    }
}

/// Adds `coefficient * source` to `target`, byte by byte. Both slices: one length, any alignment;
/// an empty source adds nothing.
fn add_product(target: &mut [u8], coefficient: u8, source: &[u8]) {
    let table = &NIBBLES[usize::from(coefficient)].0;
    for (target, &source) in target.iter_mut().zip(source) {
        *target ^= table[usize::from(source & 15)] ^ table[usize::from(16 + (source >> 4))];
    }
}
