//! The sender's side: the coding window and the combinations of what is in it.

use core::iter;
use core::ops::Range;

use super::ahead::{Ahead, ROWS};
use super::coefficient::{OCTET, octet, transpose};
use super::packets::Packets;
use super::sum::{Scratch, Sum};
use super::{Config, Repair};
use crate::Error;
use crate::kernel::{Column, Kernel, ROWS_MAX};

/// A maker of repair packets from the source packets of a sliding coding window.
///
/// Its `window_max` packets, rounded up to a power of two, are allocated at construction and never
/// again. Whoever owns it decides when a repair packet is made, and tells the seeds.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: Config,
    kernel: Kernel,
    /// By id, modulo a power of two.
    packets: Packets,
    slot_mask: u64,
    ahead: Ahead,
    scratch: Scratch,
    first: u64,
    next: u64,
    overrun: u64,
    feedback: Feedback,
}

/// What the receiver's word tells of how late it comes, and of how long it has not been whole.
#[derive(Clone, Debug, Default)]
struct Feedback {
    /// The newest edge told; `None` before any was.
    edge: Option<u64>,
    /// Where the coding window stood when it was last acknowledged or begun anew.
    begun: u64,
    /// Whether news came since of packets that had left the window: feedback is later than it is long.
    late: bool,
    /// Since when packets have left the window otherwise.
    slide: Option<Slide>,
}

/// A time in which packets leave the coding window that the receiver may lack.
#[derive(Clone, Copy, Debug)]
struct Slide {
    /// The end of the coding window when the first of them left.
    since: u64,
    /// And when the last one did: where all before is known, nothing of them is left behind.
    last: u64,
}

impl Encoder {
    /// Returns an encoder whose first source packet will be number 0, on the fastest kernel.
    ///
    /// # Errors
    /// [`Error::Window`] or [`Error::Repairs`].
    pub fn new(config: Config) -> Result<Encoder, Error> {
        Encoder::with_kernel(config, Kernel::best())
    }

    /// Returns the same encoder on a given kernel; all give the same bytes.
    ///
    /// # Errors
    /// [`Error::Window`] or [`Error::Repairs`].
    pub fn with_kernel(config: Config, kernel: Kernel) -> Result<Encoder, Error> {
        config.check()?;
        // At least eight, so that those whose coefficients come together lie together.
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

    /// Puts the next source packet into the coding window and returns its number.
    ///
    /// If the window is full, it makes room: [`Encoder::make_room`]. O(symbol_bytes).
    ///
    /// # Errors
    /// [`Error::Symbol`]; the packet is not taken.
    pub fn push(&mut self, symbol: &[u8]) -> Result<u64, Error> {
        self.check_length(symbol.len())?;
        self.make_room(1);
        let id = self.next;
        self.packets.get_mut((id & self.slot_mask) as usize).copy_from_slice(symbol);
        self.next += 1;
        Ok(id)
    }

    /// Makes room in the coding window for `count` packets, where it has none, by giving up others.
    ///
    /// A window that is full of what the receiver should have acknowledged begins anew: all packets
    /// leave it. Equations about a busy time that is longer than the window are never solved, and
    /// while some of its packets stayed, every repair packet would be one of them. Where the
    /// receiver's word comes later than a window, or never, a full window says nothing: then the
    /// oldest packets leave it as others join, and it begins anew once in [`SLIDES_MAX`] windows.
    ///
    /// The next repair packet's [`Repair::first`] tells the receiver. What leaves is counted as
    /// [`Encoder::overrun`]. O(1).
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

    /// Takes the receiver's word that it needs no packet below `edge`: [`Report::edge`].
    ///
    /// An older edge than one already taken changes nothing. O(1).
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
            // What was on its way when the window began anew comes soon after, if feedback is quick.
            let since = self.next - self.feedback.begun;
            self.feedback.late |= since >= self.config.window_max.div_ceil(2) as u64;
        }
        self.feedback.edge = self.feedback.edge.max(Some(edge));
        Ok(())
    }

    /// Takes all packets below `id` out of the coding window, whether known to the receiver or not:
    /// those that are worthless by now.
    ///
    /// If the receiver lacks some of them, equations about them keep it from knowing others. While
    /// packets leave and its word never tells that all before the last of them is known, the window
    /// begins anew once in [`SLIDES_MAX`] times `window_max` packets, as in [`Encoder::make_room`].
    /// O(1).
    pub fn forget_before(&mut self, id: u64) {
        self.slide(id, SLIDES_MAX);
    }

    /// Takes all packets below `id` out of the coding window, some of which the receiver is known to
    /// lack: as [`Encoder::forget_before`], but the window begins anew after `window_max` packets
    /// already. O(1).
    pub fn give_up_before(&mut self, id: u64) {
        self.slide(id, 1);
    }

    /// Lets packets leave the coding window; all, if some have for so many windows.
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

    /// Returns how many packets had to leave the window unacknowledged because it was full or began
    /// anew, so far: [`Encoder::make_room`], [`Encoder::give_up_before`].
    pub fn overrun(&self) -> u64 {
        self.overrun
    }

    /// Writes a repair packet over the present coding window and returns its header.
    ///
    /// Each must get another seed than those made from some of the same packets. A counter is best:
    /// if seeds follow each other, several repair packets are begun in one pass over the window,
    /// which is read less often. What `output` held does not matter. O(window x symbol_bytes).
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

    /// Writes a repair packet over the source packets of the coding window below `end` only.
    ///
    /// For packets known to be lost: what newer ones are lost does not matter to it. Nothing of it is
    /// begun in advance. Else as [`Encoder::repair`], the seeds too.
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
    /// Notes that the coding window begins at `at`, with all before known or none of it covered.
    fn begin(&mut self, at: u64) {
        (self.begun, self.late) = (at, false);
        self.slide = self.slide.filter(|slide| at < slide.last);
    }
}

/// After so many times `window_max` packets while others left one by one, a coding window begins anew.
///
/// Seldom enough that what is missing just then, a packet or two, does not count; and a stream whose
/// receiver is never heard still comes back from whatever happened.
pub const SLIDES_MAX: u64 = 8;

/// The source packets that an encoder remembers.
struct Sources<'a> {
    packets: &'a Packets,
    slot_mask: u64,
}

impl<'a> Sources<'a> {
    /// Adds source packets with the coefficients of `seed` in the first sum, those of the next
    /// seed in the second, and so on, for as many seeds as told.
    fn add(&self, seed: u16, seed_count: usize, ids: Range<u64>, sum: &mut Sum<'a, '_>) {
        let mut id = ids.start;
        while id < ids.end {
            // What lies in one octet lies together in memory.
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

/// Returns the coefficients of the eight source packets around `id` for consecutive seeds, a seed
/// a byte.
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

/// Returns a column of coefficients, those of the first sums from a word.
#[inline]
fn column(word: u64) -> Column {
    let mut column = [0; ROWS_MAX];
    column[..ROWS].copy_from_slice(&word.to_le_bytes());
    column
}
