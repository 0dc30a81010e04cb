//! Block codes: `k` source packets, `n - k` repair packets, any `k` of the `n` suffice.
//!
//! There are two [`Scheme`]s; the [crate's page](crate) states their matrices. A decoder computes
//! what the repair packets would be if the lost sources were zero, and from the differences,
//! as many as are lost, the lost sources by the closed-form inverse of a Cauchy matrix.

mod erasure;
mod interpolation;

use crate::Error;
use crate::gf256::{EXP, LOG, LOG_OF_INVERSE};
use crate::kernel::{Column, Kernel, ROWS_MAX, SOLVED_MAX};
use crate::subspace::WEIGHTS;
use erasure::Erasure;
use interpolation::Factor;

/// Is the most packets in a block: the indices are elements of GF(2^8).
pub const PACKETS_MAX: usize = 256;

/// Is the most source packets of what counts as a small block.
const SMALL_MAX: usize = 48;

/// Names one of the two block codes; both are MDS, and they differ in the repair packets' bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Is the Cauchy code: repair packet `i` does not depend on `n`, so that more can be made for
    /// a block at any time.
    Cauchy,
    /// Is the code that an additive FFT computes: for one `n - k` known beforehand.
    Fft,
}

impl Scheme {
    /// Returns the scheme to use where `n` is known when the block is made: the faster one.
    ///
    /// That is [`Fft`](Scheme::Fft) wherever it is possible, `k + m <= 256` with m the least power
    /// of two not below `n - k`, and [`Cauchy`](Scheme::Cauchy) elsewhere.
    pub fn fastest(source_count: usize, packet_count: usize) -> Scheme {
        match Code::with_scheme(Scheme::Fft, source_count, packet_count) {
            Ok(_) => Scheme::Fft,
            Err(_) => Scheme::Cauchy,
        }
    }

    /// Returns the number that stands for the scheme on a wire.
    pub fn identifier(self) -> u8 {
        match self {
            Scheme::Cauchy => 0,
            Scheme::Fft => 1,
        }
    }
}

/// Is a systematic Reed-Solomon code of one scheme and shape.
///
/// Small and `Copy`: it holds no tables. Nothing here allocates; encoding needs about 8 KiB of
/// stack, recovery 48 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    scheme: Scheme,
    source_count: u16,
    packet_count: u16,
    kernel: Kernel,
}

impl Code {
    /// Returns the Cauchy code of `source_count` (k) source packets among `packet_count` (n)
    /// packets, on the fastest kernel of this CPU.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `1 <= k <= n <= 256`.
    pub fn new(source_count: usize, packet_count: usize) -> Result<Code, Error> {
        Code::with_scheme(Scheme::Cauchy, source_count, packet_count)
    }

    /// Returns a code of either scheme, on the fastest kernel of this CPU.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `1 <= k <= n <= 256`; [`Error::FftShape`] unless an FFT code has
    /// `k + m <= 256`, with m the least power of two not below `n - k`.
    pub fn with_scheme(
        scheme: Scheme,
        source_count: usize,
        packet_count: usize,
    ) -> Result<Code, Error> {
        if source_count == 0 || source_count > packet_count || packet_count > PACKETS_MAX {
            return Err(Error::Shape { source_count, packet_count });
        }
        let points = source_count + (packet_count - source_count).next_power_of_two();
        if scheme == Scheme::Fft && points > PACKETS_MAX {
            return Err(Error::FftShape { source_count, packet_count });
        }
        Ok(Code {
            scheme,
            source_count: source_count as u16,
            packet_count: packet_count as u16,
            kernel: Kernel::best(),
        })
    }

    /// Returns the same code on a given kernel; all give the same bytes.
    pub fn on(self, kernel: Kernel) -> Code {
        Code { kernel, ..self }
    }

    /// Returns which of the block codes it is.
    pub fn scheme(&self) -> Scheme {
        self.scheme
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
    /// O(k x outputs x length), or with an FFT at most O((k + m) x log m x length).
    ///
    /// # Errors
    /// [`Error::SourceCount`], [`Error::RepairCount`] or [`Error::Length`]; nothing is written.
    pub fn encode(&self, sources: &[&[u8]], repairs: &mut [&mut [u8]]) -> Result<(), Error> {
        self.check_encode(sources, repairs)?;
        let wanted: [u8; PACKETS_MAX] = core::array::from_fn(|repair| repair as u8);
        self.combine(sources, &wanted[..repairs.len()], repairs);
        Ok(())
    }

    /// Writes lost source packets: for each `(index, output)` in `missing`, source packet `index`.
    ///
    /// `received` holds at least k packets of the block, in any order, each with its index: 0..k
    /// are source packets, `k..n` repair packets. Repair packets beyond the number of lost sources
    /// are not read. Of the lost sources only those named in `missing` are computed; if it is
    /// empty, nothing at all is done. All packets have one length, any alignment; what the outputs
    /// held does not matter. The cost is that of encoding as many repair packets as are missing,
    /// and O(missing^2 x length).
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
        let received_sources = received.iter().filter(|&&(index, _)| index < self.source_count());
        let lost_count = self.source_count() - received_sources.count();
        // Small blocks do not pay for the arrays of large ones.
        if missing.len() < lost_count {
            self.interpolate(received, missing);
        } else if lost_count <= ROWS_MAX && self.source_count() <= SMALL_MAX {
            self.solve::<SMALL_MAX, ROWS_MAX, 1>(received, missing);
        } else if lost_count <= ROWS_MAX {
            self.solve::<PACKETS_MAX, ROWS_MAX, 1>(received, missing);
        } else {
            self.solve::<PACKETS_MAX, SOLVED_MAX, { SOLVED_MAX.div_ceil(ROWS_MAX) }>(
                received, missing,
            );
        }
        Ok(())
    }

    /// Writes the repair packets `wanted`, where empty sources count as zeros.
    fn combine(&self, sources: &[&[u8]], wanted: &[u8], repairs: &mut [&mut [u8]]) {
        let known_count = sources.iter().filter(|source| !source.is_empty()).count();
        if self.transform_pays(known_count, wanted.len()) {
            return self.kernel.transform(self.layers(), sources, wanted, repairs);
        }
        let mut inputs: [&[u8]; PACKETS_MAX] = [&[]; PACKETS_MAX];
        let mut columns = [[0; ROWS_MAX]; PACKETS_MAX];
        let rows = rows_per_tile(repairs.len());
        for (wanted, repairs) in wanted.chunks(rows).zip(repairs.chunks_mut(rows)) {
            let mut count = 0;
            for (source, packet) in sources.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
                inputs[count] = packet;
                self.fill_column(&mut columns[count], source, wanted);
                count += 1;
            }
            self.kernel.multiply(&columns[..count], &inputs[..count], repairs);
        }
    }

    /// Recovers all lost sources: what the repair packets would be if the lost sources were zero,
    /// plus what they are, is a small system in the lost sources alone.
    fn solve<const SOURCES: usize, const LOST: usize, const TILES: usize>(
        &self,
        received: &[(usize, &[u8])],
        missing: &mut [(usize, &mut [u8])],
    ) {
        let mut erasure = Erasure::<SOURCES, LOST>::empty(self);
        erasure.fill(received);
        let count = missing.len();
        let interpolation = erasure.interpolation(self);
        let mut factors = [Factor::default(); LOST];
        for (factor, &repair) in factors.iter_mut().zip(erasure.repair_indices()) {
            *factor = interpolation.of_known(self.repair_point(repair), 1);
        }
        let mut columns = [[[0; ROWS_MAX]; LOST]; TILES];
        let columns = &mut columns.as_flattened_mut()[..count * count.div_ceil(ROWS_MAX)];
        let mut outputs: [&mut [u8]; LOST] = core::array::from_fn(|_| Default::default());
        for (position, (index, output)) in missing.iter_mut().enumerate() {
            let lost = interpolation.of_lost(self.point(*index), self.weight(*index));
            let tile = &mut columns[position / ROWS_MAX * count..][..count];
            for (column, factor) in tile.iter_mut().zip(&factors) {
                column[position % ROWS_MAX] = factor.coefficient(lost);
            }
            outputs[position] = output;
        }
        let outputs = &mut outputs[..count];
        self.combine(erasure.sources(), erasure.repair_indices(), outputs);
        self.kernel.solve(columns, erasure.repairs(), outputs);
    }

    /// Recovers some of the lost sources, each as a combination of k received packets.
    fn interpolate(&self, received: &[(usize, &[u8])], missing: &mut [(usize, &mut [u8])]) {
        let mut erasure = Erasure::<PACKETS_MAX, SOLVED_MAX>::empty(self);
        erasure.fill(received);
        let interpolation = erasure.interpolation(self);
        let mut inputs: [&[u8]; PACKETS_MAX] = [&[]; PACKETS_MAX];
        let mut factors = [Factor::default(); PACKETS_MAX];
        let sources = erasure.known().map(|(index, packet)| {
            (packet, interpolation.of_known(self.point(index), self.weight(index)))
        });
        let repairs = erasure.repairs().iter().zip(erasure.repair_indices());
        let repairs = repairs.map(|(&packet, &repair)| {
            (packet, interpolation.of_known(self.repair_point(repair), 1))
        });
        let slots = inputs.iter_mut().zip(&mut factors);
        for ((input, factor), known) in slots.zip(sources.chain(repairs)) {
            (*input, *factor) = known;
        }
        let inputs = &inputs[..self.source_count()];

        let mut columns = [[0; ROWS_MAX]; PACKETS_MAX];
        let columns = &mut columns[..inputs.len()];
        for missing in missing.chunks_mut(rows_per_tile(missing.len())) {
            let mut outputs: [&mut [u8]; ROWS_MAX] = Default::default();
            let outputs = &mut outputs[..missing.len()];
            for (row, ((index, packet), output)) in
                missing.iter_mut().zip(&mut *outputs).enumerate()
            {
                let lost = interpolation.of_lost(self.point(*index), self.weight(*index));
                for (column, factor) in columns.iter_mut().zip(&factors) {
                    column[row] = factor.coefficient(lost);
                }
                *output = packet;
            }
            self.kernel.multiply(columns, inputs, outputs);
        }
    }

    /// Returns the field element that stands for a source packet.
    fn point(&self, source: usize) -> u8 {
        match self.scheme {
            Scheme::Cauchy => source as u8,
            Scheme::Fft => ((1 << self.layers()) + source) as u8,
        }
    }

    /// Returns the field element that stands for a repair packet, 0 being packet k.
    fn repair_point(&self, repair: u8) -> u8 {
        match self.scheme {
            Scheme::Cauchy => self.source_count as u8 + repair,
            Scheme::Fft => repair,
        }
    }

    /// Returns one more than the greatest point.
    fn point_end(&self) -> usize {
        match self.scheme {
            Scheme::Cauchy => self.packet_count(),
            Scheme::Fft => (1 << self.layers()) + self.source_count(),
        }
    }

    /// Returns the factor of a source packet in all its coefficients.
    fn weight(&self, source: usize) -> u8 {
        match self.scheme {
            Scheme::Cauchy => 1,
            Scheme::Fft => WEIGHTS[self.layers()][usize::from(self.point(source)) >> self.layers()],
        }
    }

    /// Returns the logarithm to base 2 of m: the FFT's layers.
    fn layers(&self) -> usize {
        self.repair_count().next_power_of_two().trailing_zeros() as usize
    }

    /// Whether an FFT is faster than `row_count` rows of the matrix, by the multiplications; each
    /// butterfly has two additions for its one.
    fn transform_pays(&self, known_count: usize, row_count: usize) -> bool {
        let m = 1 << self.layers();
        let chunk_count = self.source_count().div_ceil(m);
        let butterflies = (chunk_count + 1) * m / 2 * self.layers();
        let cost = (3 * butterflies + chunk_count * m) / 2;
        self.scheme == Scheme::Fft && cost <= known_count * row_count
    }

    /// Sets `column[r]` to the coefficient of a source packet in repair packet `repairs[r]`.
    fn fill_column(&self, column: &mut Column, source: usize, repairs: &[u8]) {
        let log = usize::from(LOG[usize::from(self.weight(source))]);
        let point = self.point(source);
        for (coefficient, &repair) in column.iter_mut().zip(repairs) {
            let distance = LOG_OF_INVERSE[usize::from(point ^ self.repair_point(repair))];
            *coefficient = EXP[log + usize::from(distance)];
        }
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
}

/// Returns how many rows to compute at once so that all turns are about equally large.
fn rows_per_tile(row_count: usize) -> usize {
    row_count.div_ceil(row_count.div_ceil(ROWS_MAX).max(1)).max(1)
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
