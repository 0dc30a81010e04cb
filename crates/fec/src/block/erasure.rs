//! Which packets of a block are there, and which of them are used.

use super::interpolation::Interpolation;
use super::{Code, PACKETS_MAX};

/// Is a block with losses, at most `LOST` of at most `SOURCES` sources: its received sources and
/// as many repair packets as sources are lost.
pub(super) struct Erasure<'a, const SOURCES: usize, const LOST: usize> {
    /// Is each source packet, empty if it is lost.
    sources: [&'a [u8]; SOURCES],
    received: [bool; PACKETS_MAX],
    source_count: usize,
    repair_indices: [u8; LOST],
    repairs: [&'a [u8]; LOST],
    lost_count: usize,
}

impl<'a, const SOURCES: usize, const LOST: usize> Erasure<'a, SOURCES, LOST> {
    /// Returns a block of which nothing has been received.
    pub(super) fn empty(code: &Code) -> Self {
        Erasure {
            sources: [&[]; SOURCES],
            received: [false; PACKETS_MAX],
            source_count: code.source_count(),
            repair_indices: [0; LOST],
            repairs: [&[]; LOST],
            lost_count: code.source_count(),
        }
    }

    /// Sorts at least k received packets of different indices below n.
    pub(super) fn fill(&mut self, received: &[(usize, &'a [u8])]) {
        let mut repair_count = 0;
        for &(index, packet) in received {
            if index < self.source_count {
                self.sources[index] = packet;
                self.received[index] = true;
                self.lost_count -= 1;
            } else if repair_count < LOST {
                self.repair_indices[repair_count] = (index - self.source_count) as u8;
                self.repairs[repair_count] = packet;
                repair_count += 1;
            }
        }
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

    /// Returns the repair packets to be used, as many as sources are lost.
    pub(super) fn repairs(&self) -> &[&'a [u8]] {
        &self.repairs[..self.lost_count]
    }

    /// Returns their numbers, 0 for packet k.
    pub(super) fn repair_indices(&self) -> &[u8] {
        &self.repair_indices[..self.lost_count]
    }

    /// Prepares the coefficients of the received packets in the lost sources.
    pub(super) fn interpolation(&self, code: &Code) -> Interpolation {
        let lost = (0..self.source_count).filter(|&index| !self.received[index]);
        Interpolation::new(
            lost.map(|index| code.point(index)),
            self.repair_indices().iter().map(|&repair| code.repair_point(repair)),
            code.point_end(),
        )
    }
}
