//! Repair packets computed in advance.
//!
//! Consecutive coding windows overlap: the next one is the present one minus a few packets and plus
//! a few more. Reading the window's packets costs more than multiplying them. If the caller's seeds
//! count up, one pass therefore also computes the sums for the next few seeds. When such a sum is
//! used, the packets that left and joined the window are added to it; in GF(2^8), adding a packet
//! again removes it.

use core::ops::Range;

use super::packets::Packets;

/// Maximum number of sums that one pass over the window computes: the repair packet of the caller's
/// seed and those of the next seven seeds. Their coefficients of one source packet fit a 64-bit
/// word.
pub(super) const ROWS: usize = 8;

/// Sums over one coding window for consecutive seeds, each usable for one later repair packet.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    sums: Packets,
    /// Number of unused sums: the last `left` slots of `sums`, in the order of their seeds.
    left: usize,
    /// Numbers of the source packets that each sum combines: the coding window at that pass.
    covers: Range<u64>,
    /// Seed of the previous repair packet plus one, wrapping: the next seed if seeds count up.
    /// `None` before the first repair packet.
    seed: Option<u16>,
    /// End of the previous repair packet's coding window; 0 before the first repair packet.
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

    /// Returns the sum computed in advance for `seed`, and the numbers of the source packets in it,
    /// if changing it to cover `window` is less work than a new sum. The sum is then used up.
    ///
    /// Otherwise discards all sums and returns `None`: there is no sum for this seed, or the window
    /// has changed too much, or a packet to remove is no longer among the last `remembered` ones,
    /// the only ones that the caller still stores.
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

    /// Begins a pass over `window` for the repair packet of `seed`. Returns buffers for the sums of
    /// the next one to seven seeds, which the caller must compute in the same pass; none if `seed`
    /// is not the previous seed plus 1, or if more than a quarter of the window has joined it since
    /// the last repair packet.
    pub(super) fn begin(
        &mut self,
        seed: u16,
        window: &Range<u64>,
    ) -> impl Iterator<Item = &mut [u8]> {
        // The later a sum is used, the more the window has changed. If one packet leaves for each
        // that joins, n sums from one pass cost that pass and n * n times the packets that join
        // between two repair packets. The cost per sum is minimal near the square root of the
        // ratio.
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
