//! A streaming code: repair packets over a sliding window, each useful at once.
//!
//! Source packets are numbered from 0 and sent as they are. Whenever the sender likes, after every
//! few of them, it has a [repair packet](Encoder::repair) made: a random linear combination over
//! GF(2^8) of all source packets in its coding window, that is of those not yet acknowledged. It
//! waits for no block to fill. At the receiver a lost packet is known again as soon as as many
//! repair packets have come as packets that they cover are missing.

mod ahead;
mod coefficient;
mod decoder;
mod elimination;
mod encoder;
mod known;
mod packets;
mod row;
mod solve;
mod sum;

use core::ops::Range;

use crate::Error;

pub use coefficient::coefficient;
pub use decoder::{Decoder, Discard, Discards};
pub use encoder::Encoder;

/// Is the most source packets that a coding window, or a decoder's memory, can hold.
///
/// The count of packets in a repair packet's header has 16 bits.
pub const WINDOW_MAX: usize = u16::MAX as usize;

/// Is the farthest that a header may lie ahead of all packets seen: 2^20 packets.
///
/// Farther ahead than any outage that a stream survives; a packet that claims more is refused, so
/// that it does not make a decoder forget all it holds. [`Decoder::forget_before`] goes farther.
pub const AHEAD_MAX: u64 = 1 << 20;

/// Is the shape of an encoder or a decoder; all its memory follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of every source packet and of every repair packet's payload; may be 0.
    pub symbol_bytes: usize,
    /// An encoder's largest coding window; how many packets, known or not, up to the newest, a
    /// decoder remembers. 1..=[`WINDOW_MAX`].
    ///
    /// A decoder needs the packets that repair packets on their way cover, hence as many as the
    /// encoder's window and what may overtake them: twice the encoder's is ample.
    pub window_max: usize,
    /// The most repair packets that a decoder holds for want of others: 1..=`window_max`. An
    /// encoder holds none and does not look at it.
    pub repairs_max: usize,
}

impl Config {
    /// Returns a shape in which a decoder holds up to 256 repair packets.
    ///
    /// As many as are missing at once are needed; at 256 a packet's elimination takes no more than
    /// some microseconds.
    pub const fn new(symbol_bytes: usize, window_max: usize) -> Config {
        let repairs_max = if window_max < 256 { window_max } else { 256 };
        Config { symbol_bytes, window_max, repairs_max }
    }

    fn check(&self) -> Result<(), Error> {
        let Config { window_max, repairs_max, .. } = *self;
        if window_max == 0 || window_max > WINDOW_MAX {
            return Err(Error::Window { window_max });
        }
        if repairs_max == 0 || repairs_max > window_max {
            return Err(Error::Repairs { repairs_max, window_max });
        }
        Ok(())
    }
}

/// Is what a repair packet must carry beside its payload: what it is a combination of.
///
/// Which coefficients it has follows from the seed: [`coefficient`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Repair {
    /// The first source packet of the coding window.
    pub first: u64,
    /// How many source packets the coding window holds.
    pub count: u16,
    /// The generator's seed.
    pub seed: u16,
}

impl Repair {
    /// Returns the ids of the source packets that it covers.
    ///
    /// The end stops at `u64::MAX`; no repair packet of an [`Encoder`] comes near.
    pub fn covers(&self) -> Range<u64> {
        self.first..self.first.saturating_add(u64::from(self.count))
    }
}

/// Tells where a decoder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every source packet below it is known or [given up](Decoder::forget_before): the sender may
    /// be [told](Encoder::acknowledge).
    pub edge: u64,
    /// One more than the highest source packet heard of, from itself or from a repair packet.
    pub next: u64,
    /// Source packets from `edge` to `next` that are not known.
    pub missing: usize,
    /// Independent equations about the missing ones that are held; never more than `missing`.
    ///
    /// With `missing - rank` more repair packets over all of them, all would be known.
    pub rank: usize,
    /// Source packets that were given up before they were known, so far.
    pub lost: u64,
}

#[cfg(test)]
mod tests;
