//! Repair packets begun before they are asked for.
//!
//! Coding windows overlap: the next one is the present one without a few packets and with a few
//! more. Reading the window's packets costs more than multiplying them, so a caller that counts its
//! seeds up gets the sums for the next few of them made in the same pass. When their time comes,
//! what left the window and what joined it is added; in GF(2^8) adding again is taking out.

use core::ops::Range;

use super::packets::Packets;

/// The most repair packets that are made in one pass; their coefficients fit one word.
pub(super) const ROWS: usize = 8;

/// Sums over a coding window, for consecutive seeds.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    sums: Packets,
    /// How many of the sums are still to be used, the last ones.
    left: usize,
    /// The source packets in the sums.
    covers: Range<u64>,
    /// The seed after the last one asked for.
    seed: Option<u16>,
    /// The end of the coding window when it was.
    end: u64,
}

impl Ahead {
    pub(super) fn new(symbol_bytes: usize) -> Ahead {
        Ahead {
            sums: Packets::new(ROWS - 1, symbol_bytes),
            left: 0,
            covers: 0..0,
            seed: None,
            end: 0,
        }
    }

    /// Returns the sum begun for a seed and what it is made of, if from there it is less work.
    ///
    /// Of the source packets the last `remembered` are at hand.
    pub(super) fn take(
        &mut self,
        seed: u16,
        window: &Range<u64>,
        remembered: u64,
    ) -> Option<(&[u8], Range<u64>)> {
        let covers = self.covers.clone();
        let changes = (window.start - covers.start) + (window.end - covers.end);
        let useful = self.left > 0
            && self.seed == Some(seed)
            && window.start <= covers.end
            && changes < window.end - window.start
            && window.end - covers.start <= remembered;
        if !useful {
            self.left = 0;
            return None;
        }
        let slot = ROWS - 1 - self.left;
        self.left -= 1;
        self.asked(seed, window);
        Some((self.sums.get(slot), covers))
    }

    /// Begins the sums for the seeds after `seed`, as many as pay, and returns them to be written.
    pub(super) fn begin(
        &mut self,
        seed: u16,
        window: &Range<u64>,
    ) -> impl Iterator<Item = &mut [u8]> {
        // The later one is used, the more has changed. With one packet leaving for each that joins,
        // n sums from one pass need that pass and n * n times as many packets as join from one
        // repair packet to the next: the least for each is near the root of the ratio.
        let joined = (window.end - self.end).max(1);
        let rows = ((window.end - window.start) / joined).isqrt() as usize;
        let counted_up = self.seed == Some(seed);
        self.left = if counted_up { rows.clamp(1, ROWS) - 1 } else { 0 };
        self.covers = window.clone();
        self.asked(seed, window);
        self.sums.iter_mut().skip(ROWS - 1 - self.left)
    }

    fn asked(&mut self, seed: u16, window: &Range<u64>) {
        self.seed = Some(seed.wrapping_add(1));
        self.end = window.end;
    }
}
