//! Matrix times packets: some output rows stay in registers while all inputs stream by.
//!
//! A last vector that overlaps the one before it covers the end. Bytes written twice get the same
//! value twice. No length costs more than the next whole number of vectors.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use super::vector::{Span, Vector};
use super::{Column, ROWS_MAX, SOLVED_MAX};

/// Implements [`Kernel::multiply`](super::Kernel::multiply).
///
/// # Safety
/// All inputs and outputs are `length` bytes long; there are at most [`ROWS_MAX`] outputs and as
/// many columns as inputs; the CPU has the features that `V` needs.
#[inline(always)]
pub(super) unsafe fn multiply<V: Vector>(
    columns: &[Column],
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    length: usize,
) {
    let count = rows_at_once::<V>(outputs.len());
    for (tile, outputs) in outputs.chunks_mut(count).enumerate() {
        let row = tile * count;
        // SAFETY: the caller's promise.
        unsafe {
            match outputs.len() {
                1 => multiply_rows::<V, 1, 4>(columns, row, inputs, outputs, length),
                2 => multiply_rows::<V, 2, 4>(columns, row, inputs, outputs, length),
                3 => multiply_rows::<V, 3, 2>(columns, row, inputs, outputs, length),
                4 => multiply_rows::<V, 4, 2>(columns, row, inputs, outputs, length),
                5 => multiply_rows::<V, 5, 2>(columns, row, inputs, outputs, length),
                6 => multiply_rows::<V, 6, 2>(columns, row, inputs, outputs, length),
                7 => multiply_rows::<V, 7, 2>(columns, row, inputs, outputs, length),
                8 => multiply_rows::<V, 8, 2>(columns, row, inputs, outputs, length),
                9 => multiply_rows::<V, 9, 2>(columns, row, inputs, outputs, length),
                10 => multiply_rows::<V, 10, 2>(columns, row, inputs, outputs, length),
                11 => multiply_rows::<V, 11, 2>(columns, row, inputs, outputs, length),
                _ => multiply_rows::<V, ROWS_MAX, 2>(columns, row, inputs, outputs, length),
            }
        }
    }
}

/// Returns the number of rows to compute at once, from 1 to the vector's `TILE_ROWS`, so that the
/// fewest tiles of about equal size cover `row_count` rows.
fn rows_at_once<V: Vector>(row_count: usize) -> usize {
    row_count.div_ceil(row_count.div_ceil(V::TILE_ROWS).max(1)).max(1)
}

/// Computes `ROWS` complete outputs with rows `row..row + ROWS` of the matrix, `VECTORS` vectors at
/// a time.
///
/// # Safety
/// As for [`multiply`]; there are `ROWS` outputs.
#[inline(always)]
unsafe fn multiply_rows<V: Vector, const ROWS: usize, const VECTORS: usize>(
    columns: &[Column],
    row: usize,
    packets: &[&[u8]],
    outputs: &mut [&mut [u8]],
    length: usize,
) {
    // SAFETY: every span lies within `length`; the rest is the caller's promise.
    unsafe {
        if length < V::BYTES {
            let span = Span { at: 0, count: length };
            let inputs = Packets::<true> { packets, span };
            return tile::<V, _, ROWS, 1, true>(columns, row, inputs, outputs, span);
        }
        let mut at = 0;
        while at + VECTORS * V::BYTES <= length {
            let span = Span { at, count: V::BYTES };
            let inputs = Packets::<false> { packets, span };
            tile::<V, _, ROWS, VECTORS, false>(columns, row, inputs, outputs, span);
            at += VECTORS * V::BYTES;
        }
        while at < length {
            let span = Span { at: at.min(length - V::BYTES), count: V::BYTES };
            let inputs = Packets::<false> { packets, span };
            tile::<V, _, ROWS, 1, false>(columns, row, inputs, outputs, span);
            at += V::BYTES;
        }
    }
}

/// Implements [`Kernel::solve`](super::Kernel::solve).
///
/// # Safety
/// All packets are `length` bytes long, at most [`SOLVED_MAX`] in each list; both lists have the
/// same length; `columns` holds that number of columns for each tile of [`ROWS_MAX`] outputs; the
/// CPU has the features that `V` needs.
#[inline(always)]
pub(super) unsafe fn solve<V: Vector>(
    columns: &[Column],
    addends: &[&[u8]],
    packets: &mut [&mut [u8]],
    length: usize,
) {
    let mut sums = MaybeUninit::<[[V; 2]; SOLVED_MAX]>::uninit();
    let mut last = MaybeUninit::<[[V; 1]; SOLVED_MAX]>::uninit();
    let sums = Sums(sums.as_mut_ptr().cast::<[V; 2]>());
    let last = Sums(last.as_mut_ptr().cast::<[V; 1]>());
    // SAFETY: every span lies within `length`; there is room for every packet's sum, and each is
    // written before it is read.
    unsafe {
        if length < V::BYTES {
            let span = Span { at: 0, count: length };
            last.fill::<true>(addends, packets, span);
            return tiles::<V, _, 1, true>(columns, last, packets, span);
        }
        // The last vector overlaps bytes that are already replaced by then.
        let end = Span { at: length - V::BYTES, count: V::BYTES };
        last.fill::<false>(addends, packets, end);
        let mut at = 0;
        while at + 2 * V::BYTES <= length {
            let span = Span { at, count: V::BYTES };
            sums.fill::<false>(addends, packets, span);
            tiles::<V, _, 2, false>(columns, sums, packets, span);
            at += 2 * V::BYTES;
        }
        if at + V::BYTES < length {
            let span = Span { at, count: V::BYTES };
            let single = Sums(sums.0.cast::<[V; 1]>());
            single.fill::<false>(addends, packets, span);
            tiles::<V, _, 1, false>(columns, single, packets, span);
            at += V::BYTES;
        }
        if at < length {
            tiles::<V, _, 1, false>(columns, last, packets, end);
        }
    }
}

/// Input of a multiplication: `VECTORS` consecutive vectors of each packet.
trait Inputs<V: Vector, const VECTORS: usize>: Copy {
    /// Returns the vectors of the input at `index`.
    ///
    /// # Safety
    /// `index` is less than the number of inputs.
    unsafe fn load(self, index: usize) -> [V; VECTORS];
}

/// Packets to be read at one span; with `FIRST`, the span is shorter than a vector.
#[derive(Clone, Copy)]
struct Packets<'a, const FIRST: bool> {
    packets: &'a [&'a [u8]],
    span: Span,
}

impl<V: Vector, const VECTORS: usize, const FIRST: bool> Inputs<V, VECTORS> for Packets<'_, FIRST> {
    #[inline(always)]
    unsafe fn load(self, index: usize) -> [V; VECTORS] {
        // SAFETY: the caller's promise on `index`; all of `VECTORS` lie within the packets.
        unsafe {
            self.span.load_all::<V, VECTORS, FIRST>(self.packets.get_unchecked(index).as_ptr())
        }
    }
}

/// Pointer to the sums that [`Sums::fill`] writes, `VECTORS` vectors for each packet.
#[derive(Clone, Copy)]
struct Sums<V, const VECTORS: usize>(*mut [V; VECTORS]);

impl<V: Vector, const VECTORS: usize> Sums<V, VECTORS> {
    /// Writes the sum of each packet and its addend at one span.
    ///
    /// # Safety
    /// There is room for one sum per packet; the span lies within all packets.
    #[inline(always)]
    unsafe fn fill<const FIRST: bool>(self, addends: &[&[u8]], packets: &[&mut [u8]], span: Span) {
        for (index, (addend, packet)) in addends.iter().zip(packets).enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                let mut sum = span.load_all::<V, VECTORS, FIRST>(packet.as_ptr());
                let addend = span.load_all::<V, VECTORS, FIRST>(addend.as_ptr());
                for vector in 0..VECTORS {
                    sum[vector] = sum[vector].xor(addend[vector]);
                }
                self.0.add(index).write(sum);
            }
        }
    }
}

impl<V: Vector, const VECTORS: usize> Inputs<V, VECTORS> for Sums<V, VECTORS> {
    #[inline(always)]
    unsafe fn load(self, index: usize) -> [V; VECTORS] {
        // SAFETY: `fill` has written it, by the caller's promise on `index`.
        unsafe { self.0.add(index).read() }
    }
}

/// Computes `VECTORS` vectors, the first at `span`, of any number of outputs, at each step as many
/// as the registers hold.
///
/// # Safety
/// As for [`solve`], with the span and the vectors that follow it within the outputs.
#[inline(always)]
unsafe fn tiles<V: Vector, I: Inputs<V, VECTORS>, const VECTORS: usize, const FIRST: bool>(
    columns: &[Column],
    inputs: I,
    outputs: &mut [&mut [u8]],
    span: Span,
) {
    let columns = columns.chunks_exact(outputs.len().max(1));
    for (columns, outputs) in columns.zip(outputs.chunks_mut(ROWS_MAX)) {
        let mut row = 0;
        while row < outputs.len() {
            let count = (outputs.len() - row).min(V::TILE_ROWS);
            let some = &mut outputs[row..row + count];
            // SAFETY: the caller's promise.
            unsafe {
                match count {
                    1 => tile::<V, I, 1, VECTORS, FIRST>(columns, row, inputs, some, span),
                    2 => tile::<V, I, 2, VECTORS, FIRST>(columns, row, inputs, some, span),
                    3 => tile::<V, I, 3, VECTORS, FIRST>(columns, row, inputs, some, span),
                    4 => tile::<V, I, 4, VECTORS, FIRST>(columns, row, inputs, some, span),
                    5 => tile::<V, I, 5, VECTORS, FIRST>(columns, row, inputs, some, span),
                    6 => tile::<V, I, 6, VECTORS, FIRST>(columns, row, inputs, some, span),
                    7 => tile::<V, I, 7, VECTORS, FIRST>(columns, row, inputs, some, span),
                    8 => tile::<V, I, 8, VECTORS, FIRST>(columns, row, inputs, some, span),
                    9 => tile::<V, I, 9, VECTORS, FIRST>(columns, row, inputs, some, span),
                    10 => tile::<V, I, 10, VECTORS, FIRST>(columns, row, inputs, some, span),
                    11 => tile::<V, I, 11, VECTORS, FIRST>(columns, row, inputs, some, span),
                    _ => tile::<V, I, ROWS_MAX, VECTORS, FIRST>(columns, row, inputs, some, span),
                }
            }
            row += count;
        }
    }
}

/// Computes `VECTORS` vectors, the first at `span`, of `ROWS` outputs with rows
/// `first_row..first_row + ROWS` of the matrix.
///
/// # Safety
/// There are as many inputs as columns, `ROWS` outputs, and `first_row + ROWS <= ROWS_MAX`; the
/// span and the vectors that follow it lie within the outputs.
#[inline(always)]
unsafe fn tile<
    V: Vector,
    I: Inputs<V, VECTORS>,
    const ROWS: usize,
    const VECTORS: usize,
    const FIRST: bool,
>(
    columns: &[Column],
    first_row: usize,
    inputs: I,
    outputs: &mut [&mut [u8]],
    span: Span,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[V::zero(); VECTORS]; ROWS];
        let mut index = 0;
        while V::PAIRS && index + 1 < columns.len() {
            let coefficients: [&[u8; ROWS]; 2] = [
                &*columns.get_unchecked(index).as_ptr().add(first_row).cast(),
                &*columns.get_unchecked(index + 1).as_ptr().add(first_row).cast(),
            ];
            let (one, two) = (inputs.load(index), inputs.load(index + 1));
            for row in 0..ROWS {
                for vector in 0..VECTORS {
                    let one = V::product(one[vector].split(), coefficients[0][row]);
                    let two = V::product(two[vector].split(), coefficients[1][row]);
                    sums[row][vector] = sums[row][vector].xor(one).xor(two);
                }
            }
            index += 2;
        }
        while index < columns.len() {
            let coefficients: &[u8; ROWS] =
                &*columns.get_unchecked(index).as_ptr().add(first_row).cast();
            let input = inputs.load(index);
            let mut split = [input[0].split(); VECTORS];
            for vector in 1..VECTORS {
                split[vector] = input[vector].split();
            }
            for row in 0..ROWS {
                for vector in 0..VECTORS {
                    let product = V::product(split[vector], coefficients[row]);
                    sums[row][vector] = sums[row][vector].xor(product);
                }
            }
            index += 1;
        }
        for (sums, output) in sums.iter().zip(outputs) {
            span.store_all::<V, VECTORS, FIRST>(sums, output.as_mut_ptr());
        }
    }
}
