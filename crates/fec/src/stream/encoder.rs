//! The sender's side: the coding window and the combinations of what is in it.

use core::ops::Range;

use super::packets::Packets;
use super::sum::Sum;
use super::{Config, Repair, coefficient};
use crate::Error;
use crate::kernel::Kernel;

/// Makes repair packets from the source packets of a sliding coding window.
///
/// Holds `window_max` packets, rounded up to a power of two, allocated at construction and never
/// again. Whoever owns it decides when a repair packet is made, and tells the seeds.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: Config,
    kernel: Kernel,
    /// By id, modulo a power of two.
    packets: Packets,
    slot_mask: u64,
    scratch: Packets,
    first: u64,
    next: u64,
    overrun: u64,
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
        let slots = config.window_max.next_power_of_two();
        Ok(Encoder {
            config,
            kernel,
            packets: Packets::new(slots, config.symbol_bytes),
            slot_mask: slots as u64 - 1,
            scratch: Packets::new(1, config.symbol_bytes),
            first: 0,
            next: 0,
            overrun: 0,
        })
    }

    /// Puts the next source packet into the coding window and returns its number.
    ///
    /// If the window is full, the oldest packet leaves it, unacknowledged, and is counted as
    /// [`Encoder::overrun`]. O(symbol_bytes).
    ///
    /// # Errors
    /// [`Error::Symbol`]; the packet is not taken.
    pub fn push(&mut self, symbol: &[u8]) -> Result<u64, Error> {
        self.check_length(symbol.len())?;
        if self.window().count() == self.config.window_max {
            self.first += 1;
            self.overrun += 1;
        }
        let id = self.next;
        self.packets.get_mut((id & self.slot_mask) as usize).copy_from_slice(symbol);
        self.next += 1;
        Ok(id)
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
        self.first = self.first.max(edge);
        Ok(())
    }

    /// Takes all packets below `id` out of the coding window, whether known to the receiver or not:
    /// those that are worthless by now. O(1).
    pub fn forget_before(&mut self, id: u64) {
        self.first = self.first.max(id.min(self.next));
    }

    /// Returns the numbers of the source packets in the coding window.
    pub fn window(&self) -> Range<u64> {
        self.first..self.next
    }

    /// Returns how many packets had to leave the full window unacknowledged, so far.
    pub fn overrun(&self) -> u64 {
        self.overrun
    }

    /// Writes a repair packet over the present coding window and returns its header.
    ///
    /// Each must get another seed than those made from some of the same packets: a counter will
    /// do. What `output` held does not matter. O(window x symbol_bytes).
    ///
    /// # Errors
    /// [`Error::EmptyWindow`] or [`Error::Symbol`]; nothing is written.
    pub fn repair(&mut self, seed: u16, output: &mut [u8]) -> Result<Repair, Error> {
        self.check_length(output.len())?;
        let window = self.window();
        if window.is_empty() {
            return Err(Error::EmptyWindow);
        }
        let mut sum = Sum::new(self.kernel);
        let outputs = &mut [output];
        let mut coefficients = [0; COEFFICIENTS];
        for first in window.clone().step_by(COEFFICIENTS) {
            let end = window.end.min(first + COEFFICIENTS as u64);
            coefficient::fill(seed, first, &mut coefficients[..(end - first) as usize]);
            for (id, &coefficient) in (first..end).zip(&coefficients) {
                let packet = self.packets.get((id & self.slot_mask) as usize);
                sum.add(packet, outputs, &mut self.scratch)[0] = coefficient;
            }
        }
        sum.finish(outputs, &mut self.scratch);
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

/// Is how many coefficients are computed ahead of their use.
const COEFFICIENTS: usize = 128;
