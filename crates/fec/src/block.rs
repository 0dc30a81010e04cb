//! Block codes: `k` source packets and `n - k` repair packets, of which any `k` suffice.
//!
//! There are two [`Scheme`]s; the [crate's page](crate) states their matrices. Recovery takes the
//! faster of two ways. Either each lost source is one linear combination of k received packets,
//! with coefficients in closed form. Or, in an FFT code, the FFT first computes the repair packets
//! as if the lost sources were zero; the closed-form inverse of a Cauchy matrix then turns the
//! differences to the received repair packets, one per lost source, into the lost sources.

mod interpolation;

use crate::Error;
use crate::gf256::{EXP, LOG, LOG_OF_INVERSE};
use crate::kernel::{Column, Kernel, ROWS_MAX, SOLVED_MAX};
use crate::subspace::WEIGHTS;
pub use interpolation::PACKETS_MAX;
use interpolation::{Factor, Interpolation};

/// Maximum number of source packets in a small block, whose arrays on the stack are smaller.
const SMALL_MAX: usize = 48;

/// One of the two block codes; both are MDS and differ in the bytes of the repair packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// The Cauchy code: repair packet `i` does not depend on `n`, so more can be made for a block
    /// at any time.
    Cauchy,
    /// The code computed by an additive FFT, for an `n - k` fixed in advance.
    Fft,
}

impl Scheme {
    /// Returns the faster scheme for a block whose `n` is known when it is encoded.
    ///
    /// That is [`Fft`](Scheme::Fft) if it exists, `k + m <= 256` with m the smallest power of two
    /// not below `n - k`, and otherwise [`Cauchy`](Scheme::Cauchy).
    pub fn fastest(source_count: usize, packet_count: usize) -> Scheme {
        match Code::with_scheme(Scheme::Fft, source_count, packet_count) {
            Ok(_) => Scheme::Fft,
            Err(_) => Scheme::Cauchy,
        }
    }

    /// Returns the scheme's identifier on the wire.
    pub fn identifier(self) -> u8 {
        match self {
            Scheme::Cauchy => 0,
            Scheme::Fft => 1,
        }
    }
}

/// A systematic Reed-Solomon code of one scheme and shape.
///
/// Small and `Copy`: it holds no tables. No function allocates; encoding needs about 8 KiB of
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

    /// Returns a code of the given scheme, on the fastest kernel of this CPU.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `1 <= k <= n <= 256`; [`Error::FftShape`] if an FFT code does not
    /// have `k + m <= 256`, with m the smallest power of two not below `n - k`.
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

    /// Returns the same code on the given kernel; all kernels compute the same bytes.
    pub fn on(self, kernel: Kernel) -> Code {
        Code { kernel, ..self }
    }

    /// Returns the code's scheme.
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

    /// Returns the kernel used for the arithmetic.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Writes repair packets: `repairs[r]` becomes packet `k + r` of the block.
    ///
    /// `sources` are the block's k source packets in order. The caller may pass fewer than `n - k`
    /// outputs. All packets have one length and any alignment; previous contents of the outputs are
    /// ignored. O(k x outputs x length), or with an FFT at most O((k + m) x log m x length).
    ///
    /// # Errors
    /// [`Error::SourceCount`], [`Error::RepairCount`] or [`Error::Length`]; nothing is written.
    pub fn encode(&self, sources: &[&[u8]], repairs: &mut [&mut [u8]]) -> Result<(), Error> {
        self.check_encode(sources, repairs)?;
        if repairs.is_empty() {
            return Ok(());
        }
        if self.transform_pays(repairs.len(), 0) {
            let wanted: [u8; SOLVED_MAX] = core::array::from_fn(|repair| repair as u8);
            self.kernel.transform(self.layers(), sources, &wanted[..repairs.len()], repairs);
        } else if self.source_count() <= SMALL_MAX {
            self.multiply::<SMALL_MAX>(sources, repairs);
        } else {
            self.multiply::<PACKETS_MAX>(sources, repairs);
        }
        Ok(())
    }

    /// Writes lost source packets: for each `(index, output)` in `missing`, source packet `index`.
    ///
    /// `received` holds at least k packets of the block in any order, each with its index: `0..k`
    /// are source packets, `k..n` repair packets. Repair packets beyond the number of lost sources
    /// are not read. Only the lost sources in `missing` are computed; if it is empty, the call does
    /// nothing. All packets have one length and any alignment; previous contents of the outputs are
    /// ignored. The cost is that of encoding `missing` repair packets, plus O(missing^2 x length).
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
        let known_count =
            received.iter().filter(|&&(index, _)| index < self.source_count()).count();
        let lost_count = self.source_count() - known_count;
        let small = self.source_count() <= SMALL_MAX;
        // Small blocks use small arrays: initializing the large ones would cost more.
        let all_asked = missing.len() == lost_count;
        let more = lost_count * (lost_count + 4);
        match all_asked && self.transform_pays(lost_count, more) {
            false if small => self.interpolate::<SMALL_MAX>(received, missing),
            false => self.interpolate::<PACKETS_MAX>(received, missing),
            true if small && lost_count <= ROWS_MAX => {
                self.solve::<SMALL_MAX, ROWS_MAX, 1>(received, missing);
            }
            true if lost_count <= ROWS_MAX => {
                self.solve::<PACKETS_MAX, ROWS_MAX, 1>(received, missing);
            }
            true => self.solve::<PACKETS_MAX, SOLVED_MAX, { SOLVED_MAX.div_ceil(ROWS_MAX) }>(
                received, missing,
            ),
        }
        Ok(())
    }

    /// Writes the first `repairs.len()` repair packets by matrix multiplication.
    fn multiply<const SOURCES: usize>(&self, sources: &[&[u8]], repairs: &mut [&mut [u8]]) {
        let mut columns = [[0; ROWS_MAX]; SOURCES];
        let columns = &mut columns[..sources.len()];
        let rows = rows_per_tile(repairs.len());
        for (tile, repairs) in repairs.chunks_mut(rows).enumerate() {
            let mut points = [0; ROWS_MAX];
            let points = &mut points[..repairs.len()];
            for (point, repair) in points.iter_mut().zip(tile * rows..) {
                *point = self.repair_point(repair as u8);
            }
            for (source, column) in columns.iter_mut().enumerate() {
                let (point, weight) = (self.point(source), self.weight(source));
                let log = usize::from(LOG[usize::from(weight)]);
                for (coefficient, &repair) in column.iter_mut().zip(&*points) {
                    let distance = LOG_OF_INVERSE[usize::from(point ^ repair)];
                    *coefficient = EXP[log + usize::from(distance)];
                }
            }
            self.kernel.multiply(columns, sources, repairs);
        }
    }

    /// Recovers the sources in `missing`, which must be all lost ones, by solving a linear system
    /// in the lost sources alone. The right-hand side of each equation is the sum of a received
    /// repair packet and the same repair packet computed with zeros for the lost sources.
    fn solve<const SOURCES: usize, const LOST: usize, const TILES: usize>(
        &self,
        received: &[(usize, &[u8])],
        missing: &mut [(usize, &mut [u8])],
    ) {
        let count = missing.len();
        let mut sources: [&[u8]; SOURCES] = [&[]; SOURCES];
        let mut is_known = [false; PACKETS_MAX];
        for &(index, packet) in self.sources_of(received) {
            sources[index] = packet;
            is_known[index] = true;
        }
        let mut wanted = [0; LOST];
        let mut repairs: [&[u8]; LOST] = [&[]; LOST];
        for (position, &(index, packet)) in self.repairs_of(received).take(count).enumerate() {
            wanted[position] = (index - self.source_count()) as u8;
            repairs[position] = packet;
        }
        let wanted = &wanted[..count];
        let interpolation = self.interpolation(&is_known, wanted);
        let mut known = [Factor::default(); LOST];
        for (factor, &repair) in known.iter_mut().zip(wanted) {
            *factor = interpolation.of_known(self.repair_point(repair), 1);
        }
        let mut columns = [[[0; ROWS_MAX]; LOST]; TILES];
        let columns = &mut columns.as_flattened_mut()[..count * count.div_ceil(ROWS_MAX)];
        for (missing, columns) in missing.chunks(ROWS_MAX).zip(columns.chunks_exact_mut(count)) {
            self.fill_inverse(&interpolation, &known, missing, columns);
        }
        let mut outputs: [&mut [u8]; LOST] = core::array::from_fn(|_| Default::default());
        for (output, (_, packet)) in outputs.iter_mut().zip(missing) {
            *output = packet;
        }
        let outputs = &mut outputs[..count];
        let sources = &sources[..self.source_count()];
        self.kernel.transform(self.layers(), sources, wanted, outputs);
        self.kernel.solve(columns, &repairs[..count], outputs);
    }

    /// Recovers the sources in `missing`, all lost ones or only some, each as one linear
    /// combination of k received packets.
    fn interpolate<const SOURCES: usize>(
        &self,
        received: &[(usize, &[u8])],
        missing: &mut [(usize, &mut [u8])],
    ) {
        let mut inputs: [&[u8]; SOURCES] = [&[]; SOURCES];
        let mut is_known = [false; PACKETS_MAX];
        let mut known_count = 0;
        for &(index, packet) in self.sources_of(received) {
            inputs[known_count] = packet;
            is_known[index] = true;
            known_count += 1;
        }
        let inputs = &mut inputs[..self.source_count()];
        let mut repairs = [0; SOURCES];
        let chosen = self.repairs_of(received).zip(&mut inputs[known_count..]);
        for ((&(index, packet), input), repair) in chosen.zip(&mut repairs) {
            *repair = (index - self.source_count()) as u8;
            *input = packet;
        }
        let repairs = &repairs[..inputs.len() - known_count];
        let interpolation = self.interpolation(&is_known, repairs);
        let mut known = [Factor::default(); SOURCES];
        let sources = self
            .sources_of(received)
            .map(|&(index, _)| interpolation.of_known(self.point(index), self.weight(index)));
        let repairs =
            repairs.iter().map(|&repair| interpolation.of_known(self.repair_point(repair), 1));
        for (factor, known) in known.iter_mut().zip(sources.chain(repairs)) {
            *factor = known;
        }

        let mut columns = [[0; ROWS_MAX]; SOURCES];
        let columns = &mut columns[..inputs.len()];
        for missing in missing.chunks_mut(rows_per_tile(missing.len())) {
            self.fill_inverse(&interpolation, &known, missing, columns);
            let mut outputs: [&mut [u8]; ROWS_MAX] = Default::default();
            let outputs = &mut outputs[..missing.len()];
            for (output, (_, packet)) in outputs.iter_mut().zip(missing) {
                *output = packet;
            }
            self.kernel.multiply(columns, inputs, outputs);
        }
    }

    /// Sets `columns[p][row]` to the coefficient of known packet p in `missing[row]`.
    fn fill_inverse(
        &self,
        interpolation: &Interpolation,
        known: &[Factor],
        missing: &[(usize, &mut [u8])],
        columns: &mut [Column],
    ) {
        let mut lost = [Factor::default(); ROWS_MAX];
        let lost = &mut lost[..missing.len()];
        for (factor, &(index, _)) in lost.iter_mut().zip(missing) {
            *factor = interpolation.of_lost(self.point(index), self.weight(index));
        }
        for (column, known) in columns.iter_mut().zip(known) {
            for (coefficient, &lost) in column.iter_mut().zip(&*lost) {
                *coefficient = known.coefficient(lost);
            }
        }
    }

    /// Returns the coefficients for the sources not set in `is_known` and for `repairs`, the repair
    /// packets used in their place, counted from packet k.
    fn interpolation(&self, is_known: &[bool; PACKETS_MAX], repairs: &[u8]) -> Interpolation {
        let lost = (0..self.source_count()).filter(|&index| !is_known[index]);
        Interpolation::new(
            lost.map(|index| self.point(index)),
            repairs.iter().map(|&repair| self.repair_point(repair)),
            self.point_end(),
        )
    }

    /// Returns the source packets among those received.
    fn sources_of<'a, 'b>(
        &self,
        received: &'a [(usize, &'b [u8])],
    ) -> impl Iterator<Item = &'a (usize, &'b [u8])> {
        let source_count = self.source_count();
        received.iter().filter(move |&&(index, _)| index < source_count)
    }

    /// Returns the repair packets among those received.
    fn repairs_of<'a, 'b>(
        &self,
        received: &'a [(usize, &'b [u8])],
    ) -> impl Iterator<Item = &'a (usize, &'b [u8])> {
        let source_count = self.source_count();
        received.iter().filter(move |&&(index, _)| index >= source_count)
    }

    /// Returns the field element assigned to a source packet.
    fn point(&self, source: usize) -> u8 {
        match self.scheme {
            Scheme::Cauchy => source as u8,
            Scheme::Fft => ((1 << self.layers()) + source) as u8,
        }
    }

    /// Returns the field element assigned to a repair packet; repair 0 is packet k.
    fn repair_point(&self, repair: u8) -> u8 {
        match self.scheme {
            Scheme::Cauchy => self.source_count as u8 + repair,
            Scheme::Fft => repair,
        }
    }

    /// Returns one more than the greatest point of any packet of the block.
    fn point_end(&self) -> usize {
        match self.scheme {
            Scheme::Cauchy => self.packet_count(),
            Scheme::Fft => (1 << self.layers()) + self.source_count(),
        }
    }

    /// Returns the factor common to all coefficients of a source packet; 1 in the Cauchy code.
    fn weight(&self, source: usize) -> u8 {
        match self.scheme {
            Scheme::Cauchy => 1,
            Scheme::Fft => WEIGHTS[self.layers()][usize::from(self.point(source)) >> self.layers()],
        }
    }

    /// Returns the number of FFT layers: the base-2 logarithm of m, the smallest power of two not
    /// below `n - k`.
    fn layers(&self) -> usize {
        self.repair_count().next_power_of_two().trailing_zeros() as usize
    }

    /// Returns whether one FFT and `more` multiplications of a packet by a coefficient are faster
    /// than a multiplication by `row_count` rows of the matrix; always false for the Cauchy code.
    /// Each butterfly costs one multiplication and two additions.
    fn transform_pays(&self, row_count: usize, more: usize) -> bool {
        let m = 1 << self.layers();
        let chunk_count = self.source_count().div_ceil(m);
        let butterflies = (chunk_count + 1) * m / 2 * self.layers();
        let cost = (3 * butterflies + chunk_count * m) / 2 + more;
        self.scheme == Scheme::Fft && cost <= self.source_count() * row_count
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

/// Returns the number of rows to compute at once, from 1 to [`ROWS_MAX`], so that the fewest tiles
/// of about equal size cover `row_count` rows.
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
