//! A streaming code: repair packets over a sliding window, each useful as soon as it arrives.
//!
//! Source packets are numbered from 0 and sent unchanged. At any time, usually after every few
//! source packets, the sender makes a [repair packet](Encoder::repair): a random linear combination
//! over GF(2^8) of all source packets in its coding window, that is, of those not yet acknowledged.
//! No block has to fill first, and the number of source packets between two repair packets may
//! change at any packet. The code follows \[STREAM\], III; docs/protocol.md, section 6, specifies
//! the coefficients, and docs/decisions/0007-streaming-coefficients.md explains their choice.
//!
//! # When a packet is known
//! A source packet that arrives is known immediately. Lost packets are known as soon as the
//! equations determine them: in general when the number of repair packets received since equals the
//! number of missing packets that they cover. In about one of 255 cases one more is needed. The
//! [`Decoder`] then returns all of them: [`Decoder::poll`] in the order in which they become known,
//! [`Decoder::poll_in_order`] by number. [`theory`](crate::theory) computes the delay.
//!
//! # How the ends use it
//! - The sender [pushes](Encoder::push) each source packet and makes a repair packet after every
//!   `l - 1` of them, one in each interval of l packets, with a seed that counts up. It sends
//!   [`Repair`] with the payload.
//! - The receiver passes in every packet that arrives, in any order, and reports [`Report::edge`]
//!   to the sender, which passes it to [`Encoder::acknowledge`]. All packets below the edge are
//!   known, and the coding window begins there. Lost feedback costs time, never correctness.
//!   `missing - rank` is the number of further repair packets that would recover everything
//!   missing.
//! - A sender that knows which packets are lost may make a repair packet [over those
//!   alone](Encoder::repair_before): it does not depend on losses among newer packets.
//! - The code has no notion of time. The caller calls `forget_before` on both ends when packets
//!   expire: on the sender they leave the coding window, on the receiver they are no longer
//!   awaited. Otherwise the window's bound applies, and [`Encoder::overrun`] and [`Report::lost`]
//!   count the packets dropped. A caller that knows that some of the expired packets are lost calls
//!   [`Encoder::give_up_before`] instead.
//! - After an outage, or a busy time longer than the window, the window is full and
//!   [restarts](Encoder::make_room): the packets then missing are given up, and the next repair
//!   packet signals this. From there the stream behaves like a new one, at most `window_max` source
//!   packets after the outage, and the receiver follows with the first repair packet that it
//!   receives. If packets expire before the window is full, the restart takes the same number of
//!   packets, once they are known to be lost. Without feedback, or with feedback later than a
//!   window, it takes [`SLIDES_MAX`] times that number.
//! - Every dropped packet is counted: [`Discards`].
//!
//! # What it costs
//! A source packet costs one copy at either end. A repair packet costs the sender one multiply-add
//! per packet of its coding window, with fewer reads if seeds count up. The receiver eliminates
//! coefficients as they arrive, a few bytes for each missing packet. It touches payloads only when
//! packets can be computed, then all at once; each costs as much as a repair packet. A repair
//! packet that covers nothing missing costs almost nothing. All memory is allocated at construction
//! and never grows.
//!
//! The work of a call is bounded too. With r = `repairs_max`, w = `window_max` and b =
//! [`COMPUTED_MAX`], a decoder's call takes at most (2p + 6) r (r + w) + 2b r (r + w + 64)
//! multiplications of coefficients, or equivalent work on them, where p = 2^22 / (r (r + w)), at
//! least 2 and at most 16; and b (r + w) multiplications of each byte of a symbol. Tests count
//! them. Few calls come near the bound: those that solve for many packets, or forget many, in a
//! full decoder. With 1024 packets of 1200 bytes and 256 repair packets, one such call took 0.6 ms,
//! measured with GFNI; with 16384 and 512, 15 ms. A call that solves for a few packets takes
//! microseconds. Determined packets beyond the first b are computed by the following calls, up to b
//! in each poll. A repair packet costs the encoder at most eight sums of its window; a push or an
//! acknowledgement costs almost nothing.
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
//! If the coding window is one block, this is the systematic random linear block code that
//! \[STREAM\], V.C compares with: push the k source packets of a block, make its n - k repair
//! packets, [forget](Encoder::forget_before) the block, begin the next.

mod ahead;
mod coefficient;
mod config;
mod decoder;
mod elimination;
mod encoder;
mod known;
mod operations;
mod packets;
mod rank;
mod repair;
mod row;
mod solve;
mod sum;

pub use coefficient::coefficient;
pub use config::{Config, WINDOW_MAX};
pub use decoder::{AHEAD_MAX, Report};
pub use decoder::{COMPUTED_MAX, Decoder, Discard, Discards};
pub use encoder::{Encoder, SLIDES_MAX};
pub use rank::{RANK_MAX, rank};
pub use repair::Repair;

#[cfg(test)]
mod tests;
