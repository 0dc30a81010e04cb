//! A block code: `k` source packets, `n - k` repair packets, any `k` of the `n` suffice.
//!
//! The [crate's page](crate) states the matrix. A decoder does not compute syndromes and invert:
//! it takes each lost packet's combination of the received ones from a closed form (see
//! `interpolation.rs`) and multiplies once, which costs as much as encoding that many packets.

mod interpolation;

use crate::Error;
use crate::gf256::INVERSE;
use crate::kernel::{Kernel, ROWS_MAX};
use interpolation::Interpolation;

/// Is the most packets in a block: the indices are elements of GF(2^8).
pub const PACKETS_MAX: usize = 256;

/// Is a systematic Cauchy Reed-Solomon code of one shape.
///
/// Small and `Copy`: it holds no tables. Nothing here allocates; encoding needs about 4 KiB of
/// stack, recovery 12 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    source_count: u16,
    packet_count: u16,
    kernel: Kernel,
}

impl Code {
    /// Returns the code of `source_count` (k) source packets among `packet_count` (n) packets, on
    /// the fastest kernel of this CPU.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `1 <= k <= n <= 256`.
    pub fn new(source_count: usize, packet_count: usize) -> Result<Code, Error> {
        Code::with_kernel(source_count, packet_count, Kernel::best())
    }

    /// Returns the same code on a given kernel; all give the same bytes.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `1 <= k <= n <= 256`.
    pub fn with_kernel(
        source_count: usize,
        packet_count: usize,
        kernel: Kernel,
    ) -> Result<Code, Error> {
        if source_count == 0 || source_count > packet_count || packet_count > PACKETS_MAX {
            return Err(Error::Shape { source_count, packet_count });
        }
        Ok(Code { source_count: source_count as u16, packet_count: packet_count as u16, kernel })
    }

    /// Returns the number of source packets in a block: k.
    pub fn source_count(&self) -> usize {
        usize::from(self.source_count)
    }

    /// Returns the number of packets in a block: n.
    pub fn packet_count(&self) -> usize {
        usize::from(self.packet_count)
    }

    /// Returns the number of repair packets in a block: n - k.
    pub fn repair_count(&self) -> usize {
        self.packet_count() - self.source_count()
    }

    /// Returns the kernel that does the arithmetic.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Writes repair packets: `repairs[r]` becomes packet `k + r` of the block.
    ///
    /// `sources` are the block's k source packets in order. Fewer than `n - k` outputs may be
    /// given. All packets have one length, any alignment; what the outputs held does not matter.
    /// O(k x outputs x length).
    ///
    /// # Errors
    /// [`Error::SourceCount`], [`Error::RepairCount`] or [`Error::Length`]; nothing is written.
    pub fn encode(&self, sources: &[&[u8]], repairs: &mut [&mut [u8]]) -> Result<(), Error> {
        self.check_encode(sources, repairs)?;
        let mut columns = [[0; ROWS_MAX]; PACKETS_MAX];
        let columns = &mut columns[..sources.len()];
        let rows = rows_per_tile(repairs.len());
        for (tile, repairs) in repairs.chunks_mut(rows).enumerate() {
            let first = self.source_count() + tile * rows;
            for (source, column) in columns.iter_mut().enumerate() {
                fill_cauchy(&mut column[..repairs.len()], first, source);
            }
            self.kernel.multiply(columns, sources, repairs);
        }
        Ok(())
    }

    /// Writes lost source packets: for each `(index, output)` in `missing`, source packet `index`.
    ///
    /// `received` holds at least k packets of the block, in any order, each with its index: 0..k
    /// are source packets, `k..n` repair packets. Repair packets beyond the number of lost sources
    /// are not read. Of the lost sources only those named in `missing` are computed; if it is
    /// empty, nothing at all is done. All packets have one length, any alignment; what the outputs
    /// held does not matter. O(k x outputs x length).
    ///
    /// # Errors
    /// [`Error::PacketIndex`], [`Error::Duplicate`], [`Error::Length`], [`Error::NotASource`],
    /// [`Error::NotMissing`], or [`Error::TooFew`]; nothing is written.
    pub fn recover(
        &self,
        received: &[(usize, &[u8])],
        missing: &mut [(usize, &mut [u8])],
    ) -> Result<(), Error> {
        if missing.is_empty() {
            return Ok(());
        }
        self.check_recover(received, missing)?;

        let mut inputs: [&[u8]; PACKETS_MAX] = [&[]; PACKETS_MAX];
        let inputs = &mut inputs[..self.source_count()];
        let interpolation = self.select(received, inputs);

        let mut columns = [[0; ROWS_MAX]; PACKETS_MAX];
        let columns = &mut columns[..inputs.len()];
        for missing in missing.chunks_mut(rows_per_tile(missing.len())) {
            let mut outputs: [&mut [u8]; ROWS_MAX] = Default::default();
            let outputs = &mut outputs[..missing.len()];
            for (row, ((index, packet), output)) in
                missing.iter_mut().zip(&mut *outputs).enumerate()
            {
                interpolation.fill_row(columns, row, *index as u8);
                *output = packet;
            }
            self.kernel.multiply(columns, inputs, outputs);
        }
        Ok(())
    }

    fn check_encode(&self, sources: &[&[u8]], repairs: &[&mut [u8]]) -> Result<(), Error> {
        if sources.len() != self.source_count() {
            return Err(Error::SourceCount { expected: self.source_count(), given: sources.len() });
        }
        if repairs.len() > self.repair_count() {
            return Err(Error::RepairCount {
                available: self.repair_count(),
                asked: repairs.len(),
            });
        }
        let expected = sources[0].len();
        let sources = sources.iter().map(|source| source.len());
        let lengths = sources.chain(repairs.iter().map(|repair| repair.len()));
        check_lengths(expected, lengths.enumerate())
    }

    fn check_recover(
        &self,
        received: &[(usize, &[u8])],
        missing: &[(usize, &mut [u8])],
    ) -> Result<(), Error> {
        let (source_count, packet_count) = (self.source_count(), self.packet_count());
        let mut given = [false; PACKETS_MAX];
        for &(index, _) in received {
            if index >= packet_count {
                return Err(Error::PacketIndex { index, packet_count });
            }
            if core::mem::replace(&mut given[index], true) {
                return Err(Error::Duplicate { index });
            }
        }
        if received.len() < source_count {
            return Err(Error::TooFew { needed: source_count, received: received.len() });
        }
        for (position, &(index, _)) in missing.iter().enumerate() {
            if index >= source_count {
                return Err(Error::NotASource { index, source_count });
            }
            if core::mem::replace(&mut given[index], true) {
                let twice = missing[..position].iter().any(|&(earlier, _)| earlier == index);
                return Err(if twice {
                    Error::Duplicate { index }
                } else {
                    Error::NotMissing { index }
                });
            }
        }
        let received = received.iter().map(|&(index, packet)| (index, packet.len()));
        let missing = missing.iter().map(|(index, packet)| (*index, packet.len()));
        let mut lengths = received.chain(missing);
        let (_, expected) = lengths.next().expect("k >= 1 packets were received");
        check_lengths(expected, lengths)
    }

    /// Chooses k of the received packets, all sources among them, and puts them into `inputs`.
    fn select<'a>(&self, received: &[(usize, &'a [u8])], inputs: &mut [&'a [u8]]) -> Interpolation {
        let source_count = self.source_count();
        let (sources, repairs) = (
            received.iter().filter(|&&(index, _)| index < source_count),
            received.iter().filter(|&&(index, _)| index >= source_count),
        );
        let mut known = [0; PACKETS_MAX];
        let mut received_sources = [false; PACKETS_MAX];
        for (position, (&(index, packet), input)) in sources.chain(repairs).zip(inputs).enumerate()
        {
            *input = packet;
            known[position] = index as u8;
            received_sources[index] = true;
        }
        let mut lost = [0; PACKETS_MAX];
        let mut lost_count = 0;
        for index in (0..source_count).filter(|&index| !received_sources[index]) {
            lost[lost_count] = index as u8;
            lost_count += 1;
        }
        // The chosen repair packets stand last, as many as sources are lost.
        let repairs = &known[source_count - lost_count..source_count];
        Interpolation::new(&known[..source_count], &lost[..lost_count], repairs)
    }
}

/// Returns how many rows to compute at once so that all turns are about equally large.
fn rows_per_tile(row_count: usize) -> usize {
    row_count.div_ceil(row_count.div_ceil(ROWS_MAX).max(1)).max(1)
}

/// Sets `column[r]` to the code's coefficient of packet `source` in repair packet `first + r`.
fn fill_cauchy(column: &mut [u8], first: usize, source: usize) {
    for (row, coefficient) in column.iter_mut().enumerate() {
        *coefficient = INVERSE[((first + row) ^ source) & 255];
    }
}

fn check_lengths(
    expected: usize,
    mut lengths: impl Iterator<Item = (usize, usize)>,
) -> Result<(), Error> {
    match lengths.find(|&(_, given)| given != expected) {
        Some((index, given)) => Err(Error::Length { index, expected, given }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
