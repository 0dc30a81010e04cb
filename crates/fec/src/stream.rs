//! A streaming code: repair packets over a sliding window, each useful at once.
//!
//! Source packets are numbered from 0 and sent as they are. Whenever the sender likes, after every
//! few of them, it has a [repair packet](Encoder::repair) made: a random linear combination over
//! GF(2^8) of all source packets in its coding window, that is of those not yet acknowledged. It
//! waits for no block to fill, and how many source packets stand between two repair packets may
//! change at any packet. After \[STREAM\], III; which coefficients, says docs/protocol.md, section 6,
//! and why, docs/decisions/0007-streaming-coefficients.md.
//!
//! # When a packet is known
//! A source packet that arrives is known at once. Lost ones are known as soon as the equations
//! determine them: in general when as many repair packets have arrived since as packets that they
//! cover are missing. One more is needed in about one of 255 cases. Then the [`Decoder`] gives all
//! of them, through [`Decoder::poll`] as they become known and through [`Decoder::poll_in_order`]
//! by number. [`theory`](crate::theory) tells how long that takes.
//!
//! # How the ends use it
//! - The sender [pushes](Encoder::push) each source packet, and asks for a repair packet after every
//!   `l - 1` of them, with a seed that it counts up. It sends [`Repair`] with the payload.
//! - The receiver hands over whatever arrives, in any order, and sends back [`Report::edge`], which
//!   the sender hands to [`Encoder::acknowledge`]: all below is known, and the coding window begins
//!   there. Lost feedback costs time, never correctness. `missing - rank` tells how many more repair
//!   packets would end the waiting.
//! - A sender that knows what is lost may have a repair packet [made](Encoder::repair_before) over
//!   that alone: it does not wait for what is lost of newer packets.
//! - The code knows no time. Who does calls `forget_before` on each end when packets expire: on the
//!   sender's they leave the coding window, on the receiver's they are no longer waited for. If
//!   nobody does, the window's bound does: [`Encoder::overrun`] and [`Report::lost`] count. Who knows
//!   that some of what expires is lost says so: [`Encoder::give_up_before`].
//! - After an outage, or a busy time that outgrows it, the window is full and
//!   [begins anew](Encoder::make_room): what is missing then is given up, and the next repair packet
//!   says so. From there on the stream is as one that begins, no later than `window_max` source
//!   packets after the outage, and the receiver follows with the first repair packet that it gets.
//!   Where packets expire before the window is full it is as many packets, once they are known to be
//!   lost. Where nobody knows, since feedback is later than a window or there is none, it takes
//!   [`SLIDES_MAX`] times as many.
//! - Everything that is dropped is counted: [`Discards`].
//!
//! # What it costs
//! A source packet costs a copy at either end. A repair packet costs the sender its coding window's
//! packets multiplied and added, and less reading if seeds are counted up. The receiver eliminates
//! coefficients as they arrive, a few bytes for each missing packet, and touches payloads only when
//! packets can be computed, then all at once: each as much as a repair packet. A repair packet over
//! nothing missing costs next to nothing. All memory is allocated at construction, and whatever
//! arrives, it does not grow.
//!
//! Neither does the work of a call. With r = `repairs_max`, w = `window_max` and
//! b = [`COMPUTED_MAX`] a decoder's takes at most (2p + 6) r (r + w) + 2b r (r + w + 64)
//! multiplications of coefficients, or as much other work on them, where p = 2^22 / (r (r + w)), at
//! least 2 and at most 16; and b (r + w) multiplications of each byte of a symbol. Tests count them.
//! Few calls come near: those that solve for many packets, or forget many, in a full decoder. Of
//! 1024 packets of 1200 bytes and 256 repair packets one such call took 0.6 ms, measured with GFNI;
//! of 16384 and 512, 15 ms. One that solves for a few packets takes microseconds. What is determined
//! beyond b packets, the calls that follow compute, each poll as many again. A repair packet costs
//! the encoder at most eight sums of its window, a push or an acknowledgement next to nothing.
//!
//! # Example
//! ```
//! use tautline_fec::stream::{Config, Decoder, Encoder};
//!
//! let config = Config::new(5, 64);
//! let mut encoder = Encoder::new(config)?;
//! let mut decoder = Decoder::new(Config { window_max: 128, ..config })?;
//! for (id, symbol) in (0..).zip([b"never", b"waits", b"for a", b"block"]) {
//!     assert_eq!(encoder.push(symbol)?, id);
//!     // The second one is lost.
//!     if id != 1 {
//!         decoder.handle_source(id, symbol)?;
//!     }
//! }
//! assert_eq!(decoder.poll_in_order(), Some((0, &b"never"[..])));
//! assert_eq!(decoder.poll_in_order(), None);
//!
//! let mut payload = [0; 5];
//! let repair = encoder.repair(0, &mut payload)?;
//! decoder.handle_repair(&repair, &payload)?;
//! assert_eq!(decoder.poll_in_order(), Some((1, &b"waits"[..])));
//! assert_eq!(decoder.poll_in_order(), Some((2, &b"for a"[..])));
//!
//! encoder.acknowledge(decoder.report().edge)?;
//! assert!(encoder.window().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A block code
//! With a coding window that is a block this is the systematic random linear block code that
//! \[STREAM\], V.C compares with: push the k source packets of a block, make its n - k repair
//! packets, [forget](Encoder::forget_before) the block, begin the next.

mod ahead;
mod coefficient;
mod decoder;
mod elimination;
mod encoder;
mod known;
mod operations;
mod packets;
mod rank;
mod row;
mod solve;
mod sum;

use core::ops::Range;

use crate::Error;

pub use coefficient::coefficient;
pub use decoder::{COMPUTED_MAX, Decoder, Discard, Discards};
pub use encoder::{Encoder, SLIDES_MAX};
pub use rank::{RANK_MAX, rank};

/// The most source packets that a coding window, or a decoder's memory, can hold.
///
/// The count of packets in a repair packet's header has 16 bits.
pub const WINDOW_MAX: usize = u16::MAX as usize;

/// The farthest that a header may lie ahead of all packets seen: 2^20 packets.
///
/// Farther ahead than any outage that a stream survives; a packet that claims more is refused, so
/// that it does not make a decoder forget all it holds. [`Decoder::forget_before`] goes farther.
pub const AHEAD_MAX: u64 = 1 << 20;

/// The shape of an encoder or a decoder; all its memory follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of every source packet and of every repair packet's payload; may be 0.
    pub symbol_bytes: usize,
    /// An encoder's largest coding window; how many packets, known or not, up to the newest, a
    /// decoder remembers. 1..=[`WINDOW_MAX`].
    ///
    /// An encoder's should hold what is sent while feedback is under way and in the longest busy
    /// time that must be survived: a lost packet that leaves the window unrecovered makes an
    /// equation about others useless, so that those before the end of a longer busy time are lost
    /// as well. A decoder needs the packets that repair packets on their way cover, hence as many
    /// as the encoder's window and what may overtake them: twice the encoder's is ample.
    pub window_max: usize,
    /// The most repair packets that a decoder holds for want of others: 1..=`window_max`. An
    /// encoder holds none and does not look at it. A decoder's coefficients take
    /// `repairs_max * (repairs_max + window_max)` bytes.
    pub repairs_max: usize,
}

impl Config {
    /// Returns a shape in which a decoder holds up to 256 repair packets.
    ///
    /// As many as are missing at once are needed; at 256 a packet's elimination goes twice over up to
    /// 330 kB where as much is missing, over some hundred bytes as a rule.
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

/// What a repair packet must carry beside its payload: what it is a combination of.
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

/// The state of a decoder.
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
