//! Which packets of a block are there, and which of them are used.

use super::interpolation::{Interpolation, Points};
use super::{Code, PACKETS_MAX};
use crate::kernel::SOLVED_MAX;

/// Is a block with losses: its received sources and as many repair packets as sources are lost.
pub(super) struct Erasure<'a> {
    /// Is each source packet, empty if it is lost.
    sources: [&'a [u8]; PACKETS_MAX],
    received: [bool; PACKETS_MAX],
    source_count: usize,
    repairs: [(usize, &'a [u8]); SOLVED_MAX],
    lost_count: usize,
}

impl<'a> Erasure<'a> {
    /// Sorts at least k received packets of different indices below n.
    pub(super) fn new(code: &Code, received: &[(usize, &'a [u8])]) -> Erasure<'a> {
        let mut erasure = Erasure {
            sources: [&[]; PACKETS_MAX],
            received: [false; PACKETS_MAX],
            source_count: code.source_count(),
            repairs: [(0, &[]); SOLVED_MAX],
            lost_count: code.source_count(),
        };
        for &(index, packet) in received.iter().filter(|&&(index, _)| index < code.source_count()) {
            erasure.sources[index] = packet;
            erasure.received[index] = true;
            erasure.lost_count -= 1;
        }
        let repairs = received.iter().filter(|&&(index, _)| index >= code.source_count());
        for (chosen, &repair) in erasure.repairs[..erasure.lost_count].iter_mut().zip(repairs) {
            *chosen = repair;
        }
        erasure
    }

    /// Returns the source packets in order, the lost ones empty.
    pub(super) fn sources(&self) -> &[&'a [u8]] {
        &self.sources[..self.source_count]
    }

    /// Gives the received source packets with their indices.
    pub(super) fn known(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        let sources = self.sources().iter().copied().enumerate();
        sources.filter(|&(index, _)| self.received[index])
    }

    /// Returns the repair packets to be used with their indices, as many as sources are lost.
    pub(super) fn repairs(&self) -> &[(usize, &'a [u8])] {
        &self.repairs[..self.lost_count]
    }

    /// Prepares the coefficients of the repair packets in the lost sources.
    pub(super) fn interpolation(&self, code: &Code) -> Interpolation {
        let lost = (0..self.source_count).filter(|&index| !self.received[index]);
        let repairs = self.repairs().iter().map(|&(index, _)| code.point(index));
        Interpolation::new(
            Points::collect(lost.map(|index| code.point(index))),
            Points::collect(repairs),
        )
    }
}
