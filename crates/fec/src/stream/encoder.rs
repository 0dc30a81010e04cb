//! The sending side: the coding window and the combinations of its packets.

use core::iter;
use core::ops::Range;

use super::ahead::{Ahead, ROWS};
use super::coefficient::{OCTET, octet, transpose};
use super::packets::Packets;
use super::sum::{Scratch, Sum};
use super::{Config, Repair};
use crate::Error;
use crate::kernel::{Column, Kernel, ROWS_MAX};

/// An encoder of repair packets from the source packets of a sliding coding window.
///
/// Its `window_max` packets, rounded up to a power of two, are allocated at construction; nothing
/// is allocated later. The caller decides when to make a repair packet and supplies the seeds.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: Config,
    kernel: Kernel,
    /// Bytes of the last source packets; a packet's slot is the bits of its id in `slot_mask`.
    packets: Packets,
    slot_mask: u64,
    ahead: Ahead,
    scratch: Scratch,
    first: u64,
    next: u64,
    overrun: u64,
    feedback: Feedback,
}

/// Conclusions from acknowledgements: whether they come too late to move the coding window, and
/// during which range of packet numbers packets have left the window without them.
#[derive(Clone, Debug, Default)]
struct Feedback {
    /// Highest edge acknowledged so far: the receiver needs no packet below it. `None` before the
    /// first acknowledgement.
    edge: Option<u64>,
    /// First packet of the coding window after the last acknowledgement at or above its start, or
    /// after the last restart.
    begun: u64,
    /// True if, since `begun` was set, a newer acknowledgement has come that covers only packets
    /// that had already left the window, and at least half a window of packets had been sent by
    /// then: the feedback delay exceeds the window.
    late: bool,
    /// Range of packet numbers during which packets have left the window unacknowledged; `None` if
    /// none has, or if the range is over.
    slide: Option<Slide>,
}

/// A range of packet numbers, in place of times, during which packets that the receiver may lack
/// leave the coding window.
#[derive(Clone, Copy, Debug)]
struct Slide {
    /// Number of the next source packet when the first such packet left the coding window.
    since: u64,
    /// Number of the next source packet when the last such packet left the coding window. The
    /// range is over once the coding window begins there or later.
    last: u64,
}

impl Encoder {
    /// Returns an encoder whose first source packet has number 0, on the fastest kernel.
    ///
    /// # Errors
    /// [`Error::Window`] or [`Error::Repairs`].
    pub fn new(config: Config) -> Result<Encoder, Error> {
        Encoder::with_kernel(config, Kernel::best())
    }

    /// Returns an encoder as [`Encoder::new`] does, on the given kernel; all kernels compute the
    /// same bytes.
    ///
    /// # Errors
    /// [`Error::Window`] or [`Error::Repairs`].
    pub fn with_kernel(config: Config, kernel: Kernel) -> Result<Encoder, Error> {
        config.check()?;
        // At least eight, so that packets whose coefficients are computed together are contiguous.
        let slots = config.window_max.next_power_of_two().max(OCTET as usize);
        Ok(Encoder {
            config,
            kernel,
            packets: Packets::new(slots, config.symbol_bytes),
            slot_mask: slots as u64 - 1,
            ahead: Ahead::new(config.symbol_bytes),
            scratch: Scratch::new(config.window_max + 1),
            first: 0,
            next: 0,
            overrun: 0,
            feedback: Feedback::default(),
        })
    }

    /// Adds the next source packet to the coding window and returns its number.
    ///
    /// If the window is full, it makes room: [`Encoder::make_room`]. O(symbol_bytes).
    ///
    /// # Errors
    /// [`Error::Symbol`]; the packet is not added.
    pub fn push(&mut self, symbol: &[u8]) -> Result<u64, Error> {
        self.check_length(symbol.len())?;
        self.make_room(1);
        let id = self.next;
        self.packets.get_mut((id & self.slot_mask) as usize).copy_from_slice(symbol);
        self.next += 1;
        Ok(id)
    }

    /// Makes room for `count` packets in a full coding window by giving up others. Does nothing if
    /// there is room or the window is empty.
    ///
    /// A window full of packets that the receiver should have acknowledged restarts: all packets
    /// leave it. Equations about a busy time longer than the window can never be solved, and as
    /// long as some of its packets stayed, every repair packet would add another such equation. If
    /// the feedback delay exceeds a window, or there is no feedback, a full window proves nothing.
    /// The oldest packets then leave as others join, and the window restarts once in [`SLIDES_MAX`]
    /// windows.
    ///
    /// The next repair packet's [`Repair::first`] notifies the receiver. Packets that leave are
    /// counted as [`Encoder::overrun`]. O(1).
    pub fn make_room(&mut self, count: usize) {
        let window_max = self.config.window_max as u64;
        let over = (self.next - self.first + count as u64).saturating_sub(window_max);
        if over == 0 || self.first == self.next {
            return;
        }
        if self.feedback.edge.is_some() && !self.feedback.late {
            return self.begin_anew();
        }
        let left = over.min(self.next - self.first);
        self.overrun += left;
        self.slide(self.first + left, SLIDES_MAX);
    }

    /// Handles the receiver's acknowledgement that it needs no packet below `edge`:
    /// [`Report::edge`].
    ///
    /// The coding window then begins at `edge`, unless it already begins later. An edge older than
    /// the newest one changes nothing. O(1).
    ///
    /// [`Report::edge`]: super::Report::edge
    ///
    /// # Errors
    /// [`Error::Acknowledgement`] for packets that were never sent; nothing changes.
    pub fn acknowledge(&mut self, edge: u64) -> Result<(), Error> {
        if edge > self.next {
            return Err(Error::Acknowledgement { edge, next: self.next });
        }
        if edge >= self.first {
            self.first = edge;
            self.feedback.begin(edge);
        } else if self.feedback.edge.is_none_or(|known| edge > known) {
            // With short feedback delay, reports in flight at the restart arrive soon after it.
            let since = self.next - self.feedback.begun;
            self.feedback.late |= since >= self.config.window_max.div_ceil(2) as u64;
        }
        self.feedback.edge = self.feedback.edge.max(Some(edge));
        Ok(())
    }

    /// Removes all packets below `id` from the coding window, whether the receiver knows them or
    /// not, for example because they have expired.
    ///
    /// If the receiver lacks some of them, equations about them prevent it from recovering others.
    /// While packets leave and no acknowledgement covers all packets before the last of them, the
    /// window restarts once in [`SLIDES_MAX`] times `window_max` packets, as in
    /// [`Encoder::make_room`]. O(1).
    pub fn forget_before(&mut self, id: u64) {
        self.slide(id, SLIDES_MAX);
    }

    /// Removes all packets below `id` from the coding window, some of which the receiver is known
    /// to lack: as [`Encoder::forget_before`], but the window restarts after `window_max` packets.
    /// O(1).
    pub fn give_up_before(&mut self, id: u64) {
        self.slide(id, 1);
    }

    /// Removes the packets below `id` from the coding window; all packets, if unacknowledged ones
    /// have been leaving it while `windows * window_max` source packets were sent.
    fn slide(&mut self, id: u64, windows: u64) {
        let id = id.min(self.next);
        if id <= self.first {
            return;
        }
        let begun = self.feedback.slide.filter(|slide| self.first < slide.last);
        let since = begun.map_or(self.next, |slide| slide.since);
        self.feedback.slide = Some(Slide { since, last: self.next });
        self.first = id;
        if self.next - since >= windows * self.config.window_max as u64 {
            self.begin_anew();
        }
    }

    fn begin_anew(&mut self) {
        self.overrun += self.next - self.first;
        self.first = self.next;
        self.feedback.begin(self.next);
    }

    /// Returns the numbers of the source packets in the coding window.
    pub fn window(&self) -> Range<u64> {
        self.first..self.next
    }

    /// Returns the total number of packets that left the window unacknowledged because it was full
    /// or restarted: [`Encoder::make_room`], [`Encoder::forget_before`],
    /// [`Encoder::give_up_before`].
    pub fn overrun(&self) -> u64 {
        self.overrun
    }

    /// Writes a repair packet over the present coding window and returns its header.
    ///
    /// Its seed must differ from those of other repair packets over some of the same packets. Use a
    /// counter: with consecutive seeds, one pass over the window computes several repair packets in
    /// advance, so the window is read less often. Previous contents of `output` are ignored.
    /// O(window x symbol_bytes).
    ///
    /// # Errors
    /// [`Error::EmptyWindow`] or [`Error::Symbol`]; nothing is written.
    pub fn repair(&mut self, seed: u16, output: &mut [u8]) -> Result<Repair, Error> {
        self.check_length(output.len())?;
        let window = self.window();
        if window.is_empty() {
            return Err(Error::EmptyWindow);
        }
        let Encoder { kernel, packets, ahead, scratch, slot_mask, .. } = self;
        let sources = Sources { packets, slot_mask: *slot_mask };
        if let Some((begun, covers)) = ahead.take(seed, &window, *slot_mask + 1) {
            let mut sum = Sum::new(scratch);
            sum.add(begun, column(1));
            sources.add(seed, 1, covers.start..window.start, &mut sum);
            sources.add(seed, 1, covers.end..window.end, &mut sum);
            sum.finish(*kernel, &mut [output]);
        } else {
            let mut outputs: [&mut [u8]; ROWS] = Default::default();
            let mut rows = 0;
            for sum in iter::once(output).chain(ahead.begin(seed, &window)) {
                outputs[rows] = sum;
                rows += 1;
            }
            let mut sum = Sum::new(scratch);
            sources.add(seed, rows, window.clone(), &mut sum);
            sum.finish(*kernel, &mut outputs[..rows]);
        }
        let count = (window.end - window.start) as u16;
        Ok(Repair { first: window.start, count, seed })
    }

    /// Writes a repair packet over only the source packets of the coding window below `end`.
    ///
    /// Use it for packets known to be lost: losses among newer packets do not affect it. It is not
    /// computed in advance. Otherwise as [`Encoder::repair`], including the rule on seeds.
    ///
    /// # Errors
    /// [`Error::EmptyWindow`] or [`Error::Symbol`]; nothing is written.
    pub fn repair_before(
        &mut self,
        end: u64,
        seed: u16,
        output: &mut [u8],
    ) -> Result<Repair, Error> {
        self.check_length(output.len())?;
        let window = self.first..end.min(self.next);
        if window.is_empty() {
            return Err(Error::EmptyWindow);
        }
        let Encoder { kernel, packets, scratch, slot_mask, .. } = self;
        let sources = Sources { packets, slot_mask: *slot_mask };
        let mut sum = Sum::new(scratch);
        sources.add(seed, 1, window.clone(), &mut sum);
        sum.finish(*kernel, &mut [output]);
        let count = (window.end - window.start) as u16;
        Ok(Repair { first: window.start, count, seed })
    }

    fn check_length(&self, given: usize) -> Result<(), Error> {
        let expected = self.config.symbol_bytes;
        if given != expected {
            return Err(Error::Symbol { expected, given });
        }
        Ok(())
    }
}

impl Feedback {
    /// Begins again with a coding window that starts at `at`, by acknowledgement or restart: clears
    /// `late`, and ends `slide` if it is over.
    fn begin(&mut self, at: u64) {
        (self.begun, self.late) = (at, false);
        self.slide = self.slide.filter(|slide| at < slide.last);
    }
}

/// Number of windows, of `window_max` source packets each, during which packets may leave the
/// coding window unacknowledged; then it restarts.
///
/// Restarts are then so rare that the packets missing at each, one or two, do not matter. A stream
/// whose receiver sends no feedback still recovers from any outage.
pub const SLIDES_MAX: u64 = 8;

/// The source packets that an encoder remembers.
struct Sources<'a> {
    packets: &'a Packets,
    slot_mask: u64,
}

impl<'a> Sources<'a> {
    /// Adds the source packets `ids` to `seed_count` sums, at most [`ROWS`]: with the coefficients
    /// of `seed` to the first sum, with those of the next seed to the second, and so on.
    fn add(&self, seed: u16, seed_count: usize, ids: Range<u64>, sum: &mut Sum<'a, '_>) {
        let mut id = ids.start;
        while id < ids.end {
            // Packets of one octet are contiguous in memory.
            let octet_end = (id / OCTET + 1) * OCTET;
            let slot = (id & self.slot_mask) as usize;
            let count = (ids.end.min(octet_end) - id) as usize;
            let columns = columns(seed, id, seed_count);
            let columns = &columns[(id % OCTET) as usize..][..count];
            let packets = self.packets.range(slot..slot + count);
            sum.extend(packets, columns.iter().map(|&word| column(word)));
            id = octet_end;
        }
    }
}

/// Returns the coefficients of the eight source packets whose ids differ from `id` at most in the
/// low three bits: one word per packet, with one byte for each of `seed_count` consecutive seeds.
#[inline]
fn columns(seed: u16, id: u64, seed_count: usize) -> [u64; OCTET as usize] {
    if seed_count == 1 {
        return octet(seed, id).map(u64::from);
    }
    let mut rows = [0; ROWS];
    for (offset, row) in rows[..seed_count].iter_mut().enumerate() {
        *row = u64::from_le_bytes(octet(seed.wrapping_add(offset as u16), id));
    }
    transpose(rows)
}

/// Returns the column whose first eight coefficients are the bytes of `word`, lowest first; the
/// others are zero.
#[inline]
fn column(word: u64) -> Column {
    let mut column = [0; ROWS_MAX];
    column[..ROWS].copy_from_slice(&word.to_le_bytes());
    column
}
