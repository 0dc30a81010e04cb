//! The additive FFT of a systematic Reed-Solomon code, one vector width of all packets at a time.
//!
//! The [crate's page](crate) states the code. With V_k = {0, .. 2^k - 1}, W_k(x) the product of
//! `x - v` over V_k and w_k(x) = W_k(x) / W_k(2^k), a polynomial of degree < m = 2^g is written as
//! sum of `c_i` times the product of w_k over the bits k set in i. On a coset `b + V_g` its values
//! then come from the `c_i` by g layers of butterflies: in layer k, elements `2^k` apart become
//! `x += w_k(b') y, y += x`, where `b'` is the place of the pair's block; backwards it is
//! `y += x, x += w_k(b') y`. Source: [LCH] section III; the choice of the basis is the natural one.
//!
//! Each chunk of m sources yields m coefficients. These are added up, and the values of the sum on
//! V_g are the repair packets. Two passes of at most 16 x 16 elements keep the work in registers.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use super::SOLVED_MAX;
use super::vector::{Span, Vector};
use crate::subspace::{POINTS, SKEWS};

/// Implements [`Kernel::transform`](super::Kernel::transform).
///
/// # Safety
/// All outputs and all non-empty sources are `length` bytes long; `layers` is at most 7; every
/// index in `wanted` is less than `2^layers`; `wanted` and `outputs` have the same length; the CPU
/// has the features that `V` needs.
#[inline(always)]
pub(super) unsafe fn transform<V: Vector>(
    layers: usize,
    sources: &[&[u8]],
    wanted: &[u8],
    outputs: &mut [&mut [u8]],
    length: usize,
) {
    let table = Table::new(layers, sources, wanted, outputs);
    // SAFETY: the caller's promise.
    unsafe {
        match layers {
            0 => spans::<V, 1, 4>(&table, length),
            1 => spans::<V, 2, 4>(&table, length),
            2 => spans::<V, 4, 2>(&table, length),
            3 => spans::<V, 8, 2>(&table, length),
            4 if V::MANY => spans::<V, 16, 1>(&table, length),
            4 => spans_in_two_passes::<V, 4, 4>(&table, length),
            5 => spans_in_two_passes::<V, 8, 4>(&table, length),
            6 => spans_in_two_passes::<V, 8, 8>(&table, length),
            _ => spans_in_two_passes::<V, 16, 8>(&table, length),
        }
    }
}

/// Addresses of the source and output packets, by index.
struct Table {
    /// Address of each source packet, or null if it counts as zeros.
    sources: [*const u8; POINTS],
    /// Number of chunks of `2^layers` sources.
    chunk_count: usize,
    /// For each chunk: true if it has all `2^layers` sources and none of them is null.
    whole: [bool; POINTS],
    /// Output packet for the value at each index, or null.
    targets: [*mut u8; SOLVED_MAX],
    /// One more than the greatest wanted index.
    target_count: usize,
}

impl Table {
    #[inline(always)]
    fn new(layers: usize, sources: &[&[u8]], wanted: &[u8], outputs: &mut [&mut [u8]]) -> Table {
        let mut table = Table {
            sources: [core::ptr::null(); POINTS],
            chunk_count: sources.len().div_ceil(1 << layers),
            whole: [false; POINTS],
            targets: [core::ptr::null_mut(); SOLVED_MAX],
            target_count: 0,
        };
        for (chunk, sources) in sources.chunks(1 << layers).enumerate() {
            table.whole[chunk] =
                sources.len() == 1 << layers && sources.iter().all(|source| !source.is_empty());
        }
        for (pointer, source) in table.sources.iter_mut().zip(sources) {
            if !source.is_empty() {
                *pointer = source.as_ptr();
            }
        }
        for (&index, output) in wanted.iter().zip(outputs) {
            table.targets[usize::from(index)] = output.as_mut_ptr();
            table.target_count = table.target_count.max(usize::from(index) + 1);
        }
        table
    }

    /// Loads `N` sources of chunk `chunk`, from source number `first` of the block on.
    ///
    /// # Safety
    /// The span lies within every source that is not null; the CPU has the features that `V` needs.
    #[inline(always)]
    unsafe fn load<V: Vector, const N: usize, const VECTORS: usize, const FIRST: bool>(
        &self,
        chunk: usize,
        first: usize,
        span: Span,
    ) -> [[V; VECTORS]; N] {
        let sources: &[*const u8; N] =
            self.sources[first..].first_chunk().expect("chunks end at 256");
        // SAFETY: the caller's promise.
        unsafe {
            let mut elements = [[V::zero(); VECTORS]; N];
            if self.whole[chunk] {
                for (element, &source) in elements.iter_mut().zip(sources) {
                    *element = span.load_all::<V, VECTORS, FIRST>(source);
                }
            } else {
                for (element, &source) in elements.iter_mut().zip(sources) {
                    if !source.is_null() {
                        *element = span.load_all::<V, VECTORS, FIRST>(source);
                    }
                }
            }
            elements
        }
    }

    /// Stores those of the `N` values from index `first` on that an output packet wants.
    ///
    /// # Safety
    /// The span lies within every target; the CPU has the features that `V` needs.
    #[inline(always)]
    unsafe fn store<V: Vector, const N: usize, const VECTORS: usize, const FIRST: bool>(
        &self,
        elements: &[[V; VECTORS]; N],
        first: usize,
        span: Span,
    ) {
        for (element, &target) in elements.iter().zip(&self.targets[first..first + N]) {
            if !target.is_null() {
                // SAFETY: the caller's promise.
                unsafe { span.store_all::<V, VECTORS, FIRST>(element, target) };
            }
        }
    }
}

/// Transforms complete packets, `M` sources per chunk, `VECTORS` consecutive vectors at a time.
///
/// # Safety
/// As for [`transform`].
#[inline(always)]
unsafe fn spans<V: Vector, const M: usize, const VECTORS: usize>(table: &Table, length: usize) {
    // SAFETY: every span lies within `length`.
    unsafe {
        if length < V::BYTES {
            let span = Span { at: 0, count: length };
            return in_registers::<V, M, 1, true>(table, span);
        }
        let mut at = 0;
        while at + VECTORS * V::BYTES <= length {
            let span = Span { at, count: V::BYTES };
            in_registers::<V, M, VECTORS, false>(table, span);
            at += VECTORS * V::BYTES;
        }
        while at < length {
            let span = Span { at: at.min(length - V::BYTES), count: V::BYTES };
            in_registers::<V, M, 1, false>(table, span);
            at += V::BYTES;
        }
    }
}

/// Transforms complete packets, `LOW * HIGH` sources per chunk.
///
/// # Safety
/// As for [`transform`].
#[inline(always)]
unsafe fn spans_in_two_passes<V: Vector, const LOW: usize, const HIGH: usize>(
    table: &Table,
    length: usize,
) {
    // SAFETY: every span lies within `length`.
    unsafe {
        if length < V::BYTES {
            let span = Span { at: 0, count: length };
            return in_two_passes::<V, LOW, HIGH, true>(table, span);
        }
        let mut at = 0;
        while at < length {
            let span = Span { at: at.min(length - V::BYTES), count: V::BYTES };
            in_two_passes::<V, LOW, HIGH, false>(table, span);
            at += V::BYTES;
        }
    }
}

/// Transforms one span of all packets; a chunk fits into the registers.
///
/// # Safety
/// The span and the `VECTORS` vectors that start there lie within all packets.
#[inline(always)]
unsafe fn in_registers<V: Vector, const M: usize, const VECTORS: usize, const FIRST: bool>(
    table: &Table,
    span: Span,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[V::zero(); VECTORS]; M];
        for chunk in 0..table.chunk_count {
            let mut elements = table.load::<V, M, VECTORS, FIRST>(chunk, chunk * M, span);
            backwards(&mut elements, 0, M + chunk * M);
            for (total, &element) in sums.iter_mut().zip(&elements) {
                *total = sum(*total, element);
            }
        }
        forwards(&mut sums, 0, 0);
        table.store::<V, M, VECTORS, FIRST>(&sums, 0, span);
    }
}

/// Transforms one span of all packets through memory: first the low layers, then the high ones.
///
/// # Safety
/// The span lies within all packets.
#[inline(always)]
unsafe fn in_two_passes<V: Vector, const LOW: usize, const HIGH: usize, const FIRST: bool>(
    table: &Table,
    span: Span,
) {
    let low_layers = LOW.trailing_zeros() as usize;
    let mut memory = MaybeUninit::<[[V; SOLVED_MAX]; 2]>::uninit();
    let elements = memory.as_mut_ptr().cast::<[V; 1]>();
    // SAFETY: LOW * HIGH <= SOLVED_MAX elements fit, and each is written before it is read; the
    // rest is the caller's promise.
    unsafe {
        let sums = elements.add(SOLVED_MAX);
        for chunk in 0..table.chunk_count {
            let base = LOW * HIGH * (1 + chunk);
            for first in (0..LOW * HIGH).step_by(LOW) {
                let source = LOW * HIGH * chunk + first;
                let mut low = table.load::<V, LOW, 1, FIRST>(chunk, source, span);
                backwards(&mut low, 0, base + first);
                elements.add(first).cast::<[[V; 1]; LOW]>().write(low);
            }
            for place in 0..LOW {
                let mut high = [[V::zero(); 1]; HIGH];
                for (index, element) in high.iter_mut().enumerate() {
                    *element = elements.add(place + index * LOW).read();
                }
                backwards(&mut high, low_layers, base);
                for (index, element) in high.iter_mut().enumerate() {
                    if chunk > 0 {
                        *element = sum(*element, sums.add(place + index * LOW).read());
                    }
                }
                if chunk + 1 == table.chunk_count {
                    forwards(&mut high, low_layers, 0);
                }
                for (index, element) in high.into_iter().enumerate() {
                    sums.add(place + index * LOW).write(element);
                }
            }
        }
        for first in (0..table.target_count).step_by(LOW) {
            let mut low = sums.add(first).cast::<[[V; 1]; LOW]>().read();
            forwards(&mut low, 0, first);
            table.store::<V, LOW, 1, FIRST>(&low, first, span);
        }
    }
}

/// Converts values on a coset at `base` into coefficients: layers from `layer` on, small steps
/// first.
///
/// # Safety
/// The CPU has the features that `V` needs.
#[inline(always)]
unsafe fn backwards<V: Vector, const N: usize, const VECTORS: usize>(
    elements: &mut [[V; VECTORS]; N],
    layer: usize,
    base: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if N >= 2 {
            backwards_layer::<V, N, VECTORS, 1>(elements, layer, base);
        }
        if N >= 4 {
            backwards_layer::<V, N, VECTORS, 2>(elements, layer + 1, base);
        }
        if N >= 8 {
            backwards_layer::<V, N, VECTORS, 4>(elements, layer + 2, base);
        }
        if N >= 16 {
            backwards_layer::<V, N, VECTORS, 8>(elements, layer + 3, base);
        }
    }
}

/// Converts coefficients into values on a coset at `base`: the layers from `layer` on, large steps
/// first.
///
/// # Safety
/// The CPU has the features that `V` needs.
#[inline(always)]
unsafe fn forwards<V: Vector, const N: usize, const VECTORS: usize>(
    elements: &mut [[V; VECTORS]; N],
    layer: usize,
    base: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if N >= 16 {
            forwards_layer::<V, N, VECTORS, 8>(elements, layer + 3, base);
        }
        if N >= 8 {
            forwards_layer::<V, N, VECTORS, 4>(elements, layer + 2, base);
        }
        if N >= 4 {
            forwards_layer::<V, N, VECTORS, 2>(elements, layer + 1, base);
        }
        if N >= 2 {
            forwards_layer::<V, N, VECTORS, 1>(elements, layer, base);
        }
    }
}

#[inline(always)]
unsafe fn backwards_layer<V: Vector, const N: usize, const VECTORS: usize, const STEP: usize>(
    elements: &mut [[V; VECTORS]; N],
    layer: usize,
    base: usize,
) {
    let skews = &SKEWS[layer][base >> (layer + 1)..];
    for (block, &skew) in skews[..N / (2 * STEP)].iter().enumerate() {
        for x in 2 * STEP * block..2 * STEP * block + STEP {
            let y = x + STEP;
            // SAFETY: the CPU has what `V` needs.
            unsafe {
                elements[y] = sum(elements[y], elements[x]);
                if skew != 0 {
                    elements[x] = add_product(elements[x], elements[y], skew);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn forwards_layer<V: Vector, const N: usize, const VECTORS: usize, const STEP: usize>(
    elements: &mut [[V; VECTORS]; N],
    layer: usize,
    base: usize,
) {
    let skews = &SKEWS[layer][base >> (layer + 1)..];
    for (block, &skew) in skews[..N / (2 * STEP)].iter().enumerate() {
        for x in 2 * STEP * block..2 * STEP * block + STEP {
            let y = x + STEP;
            // SAFETY: the CPU has what `V` needs.
            unsafe {
                if skew != 0 {
                    elements[x] = add_product(elements[x], elements[y], skew);
                }
                elements[y] = sum(elements[y], elements[x]);
            }
        }
    }
}

/// Returns the sum of two lists of vectors, element by element.
///
/// # Safety
/// The CPU has the features that `V` needs.
#[inline(always)]
unsafe fn sum<V: Vector, const VECTORS: usize>(
    mut vectors: [V; VECTORS],
    others: [V; VECTORS],
) -> [V; VECTORS] {
    for (vector, &other) in vectors.iter_mut().zip(&others) {
        // SAFETY: the caller's promise.
        *vector = unsafe { vector.xor(other) };
    }
    vectors
}

/// Returns `vectors` plus `coefficient` times `others`, element by element.
///
/// # Safety
/// The CPU has the features that `V` needs.
#[inline(always)]
unsafe fn add_product<V: Vector, const VECTORS: usize>(
    mut vectors: [V; VECTORS],
    others: [V; VECTORS],
    coefficient: u8,
) -> [V; VECTORS] {
    for (vector, &other) in vectors.iter_mut().zip(&others) {
        // SAFETY: the caller's promise.
        *vector = unsafe { vector.xor(V::product(other.split(), coefficient)) };
    }
    vectors
}
