//! Checks of the conditions that every kernel's memory accesses rely on. Each returns the packets'
//! common length.

use super::{Column, ROWS_MAX, SOLVED_MAX};
use crate::subspace::POINTS;

/// Checks the arguments of [`Kernel::multiply`](super::Kernel::multiply) and returns the packets'
/// length in bytes, 0 without outputs.
///
/// # Panics
/// As [`Kernel::multiply`](super::Kernel::multiply) says.
pub(super) fn multiply(columns: &[Column], inputs: &[&[u8]], outputs: &[&mut [u8]]) -> usize {
    assert!(outputs.len() <= ROWS_MAX, "{} outputs, at most {ROWS_MAX}", outputs.len());
    assert_eq!(columns.len(), inputs.len(), "as many columns as inputs");
    let length = outputs.first().map_or(0, |output| output.len());
    assert!(outputs.iter().all(|output| output.len() == length), "outputs differ in length");
    if !outputs.is_empty() {
        assert!(inputs.iter().all(|input| input.len() == length), "inputs differ in length");
    }
    length
}

/// Checks the arguments of [`Kernel::solve`](super::Kernel::solve) and returns the packets' length
/// in bytes, 0 without packets.
///
/// # Panics
/// If a list is too long or the lengths of lists or packets do not match.
pub(super) fn solve(columns: &[Column], addends: &[&[u8]], packets: &[&mut [u8]]) -> usize {
    let count = packets.len();
    assert!(count <= SOLVED_MAX, "{count} packets, at most {SOLVED_MAX}");
    assert_eq!(addends.len(), count, "as many addends as packets");
    assert_eq!(columns.len(), count * count.div_ceil(ROWS_MAX), "as many columns as needed");
    let length = packets.first().map_or(0, |packet| packet.len());
    assert!(packets.iter().all(|packet| packet.len() == length), "packets differ in length");
    assert!(addends.iter().all(|addend| addend.len() == length), "addends differ in length");
    length
}

/// Checks the arguments of [`Kernel::transform`](super::Kernel::transform) and returns the packets'
/// length in bytes, 0 without outputs.
///
/// # Panics
/// If there are too many layers or sources, if an index is too large, or if the lengths of lists or
/// packets do not match.
pub(super) fn transform(
    layers: usize,
    sources: &[&[u8]],
    wanted: &[u8],
    outputs: &[&mut [u8]],
) -> usize {
    assert!(1 << layers <= SOLVED_MAX, "{layers} layers, at most 7");
    assert!(
        sources.len().next_multiple_of(1 << layers) <= POINTS - (1 << layers),
        "too many sources"
    );
    assert_eq!(wanted.len(), outputs.len(), "as many outputs as are wanted");
    assert!(wanted.iter().all(|&index| usize::from(index) < 1 << layers), "wants too much");
    let length = outputs.first().map_or(0, |output| output.len());
    assert!(outputs.iter().all(|output| output.len() == length), "outputs differ in length");
    let mut sources = sources.iter().filter(|source| !source.is_empty());
    assert!(sources.all(|source| source.len() == length), "sources differ in length");
    length
}
