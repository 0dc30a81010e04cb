//! The streaming code interval by interval without feedback, as in Theorems 1 and 3.

use anyhow::{Result, ensure};
use tautline_fec::stream::{Config, Decoder, Encoder};
use tautline_fec::theory::Stream;

use super::coded::{SYMBOL_BYTES, symbol};
use super::link::Erasures;

/// A sender of one repair packet after every `l - 1` source packets, and its receiver.
///
/// The packets are real: the decoder's output is compared with the originals. The encoder drops
/// packets that the receiver has from its window. That keeps the window small without changing the
/// result, because the decoder would subtract those packets anyway.
pub(super) struct Intervals {
    encoder: Encoder,
    decoder: Decoder,
    erasures: Erasures,
    /// Number of source packets per interval.
    sources: u64,
    seed: u16,
    /// Number of source packets sent since the start.
    sent: u64,
    /// Number of source packets delivered in order since the start.
    delivered: u64,
}

/// Result of an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    /// True if a source packet of the interval was lost.
    pub(super) is_hit: bool,
    /// Number of source packets delivered in order since the start of the stream.
    pub(super) delivered: u64,
    /// Number of source packets sent since the start of the stream.
    pub(super) sent: u64,
}

impl Intervals {
    pub(super) fn new(stream: &Stream, seed: u64) -> Result<Self> {
        let config = Config { repairs_max: REPAIRS, ..Config::new(SYMBOL_BYTES, 2 * WINDOW) };
        Ok(Self {
            encoder: Encoder::new(Config::new(SYMBOL_BYTES, WINDOW))?,
            decoder: Decoder::new(config)?,
            erasures: Erasures::new(stream.erasure_rate(), 1.0, seed),
            sources: u64::from(stream.interval()) - 1,
            seed: 0,
            sent: 0,
            delivered: 0,
        })
    }

    /// Sends the source packets and the repair packet of the next interval, and returns the totals
    /// after it. Fails if a packet was decoded wrongly or a busy time outgrew the window.
    pub(super) fn next(&mut self) -> Result<Interval> {
        let mut is_hit = false;
        for _ in 0..self.sources {
            let symbol = symbol(self.sent);
            let id = self.encoder.push(&symbol)?;
            self.sent += 1;
            match self.erasures.draw() {
                true => is_hit = true,
                false => self.decoder.handle_source(id, &symbol)?,
            }
        }
        let mut payload = [0; SYMBOL_BYTES];
        let repair = self.encoder.repair(self.seed, &mut payload)?;
        self.seed = self.seed.wrapping_add(1);
        if !self.erasures.draw() {
            // A rejected packet is redundant.
            let _ = self.decoder.handle_repair(&repair, &payload);
        }
        while let Some((id, bytes)) = self.decoder.poll_in_order() {
            ensure!(id == self.delivered && bytes == symbol(id), "packet {id} was decoded wrongly");
            self.delivered += 1;
        }
        self.encoder.acknowledge(self.delivered)?;
        let kept = self.encoder.overrun() == 0 && self.decoder.discards().full == 0;
        ensure!(kept && self.decoder.report().lost == 0, "a busy time outgrew the window");
        Ok(Interval { is_hit, delivered: self.delivered, sent: self.sent })
    }
}

/// Length of the coding window in packets: enough for the longest busy time at loads up to .8.
const WINDOW: usize = 16_384;

/// Maximum number of equations in the decoder: enough for the longest busy time at loads up to .8.
const REPAIRS: usize = 2_048;
