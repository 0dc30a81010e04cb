//! The streaming code itself: this crate's encoder and decoder at the two ends of the link.

use std::collections::VecDeque;

use anyhow::{Result, ensure};
use tautline_fec::stream::{Config, Decoder, Encoder};

use super::link::{Log, RTT_SLOTS, Scheme};

/// A sender of repair packets over all unacknowledged packets at even intervals, and of additional
/// ones if the receiver's reports show that those in flight do not suffice.
///
/// The packets are real and eight bytes long; the decoder's output is compared with the originals.
/// At its end, a transfer keeps sending repair packets while something is missing.
#[derive(Debug)]
pub(super) struct Coded {
    encoder: Encoder,
    decoder: Decoder,
    /// Repair packets per source packet, at even intervals.
    share: f64,
    /// Repair packets due by `share` that were not sent yet.
    owed: f64,
    /// Erasure rate assumed by the sender; `None` for no additional repair packets.
    feedback: Option<f64>,
    next: u64,
    seed: u16,
    /// Content of the last round trip's slots, and the receiver's state after each.
    flight: VecDeque<Slot>,
    sources_in_flight: u64,
    repairs_in_flight: u64,
    /// Equations that the receiver lacked in the last report.
    deficit: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    carried: Carried,
    edge: u64,
    deficit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Nothing,
    Source,
    Repair,
}

impl Coded {
    /// Creates a sender of `share` repair packets per source packet at even intervals. With an
    /// assumed erasure rate `feedback`, it sends more according to the reports.
    ///
    /// Without it, reports only move the coding window. That keeps the window small without
    /// changing any delay, because the decoder would subtract those packets anyway.
    pub(super) fn new(share: f64, feedback: Option<f64>) -> Result<Coded> {
        let encoder = Encoder::new(Config::new(SYMBOL_BYTES, WINDOW))?;
        let config = Config { repairs_max: REPAIRS, ..Config::new(SYMBOL_BYTES, 2 * WINDOW) };
        Ok(Coded {
            encoder,
            decoder: Decoder::new(config)?,
            share,
            owed: 0.0,
            feedback,
            next: 0,
            seed: 0,
            flight: VecDeque::with_capacity(RTT_SLOTS as usize),
            sources_in_flight: 0,
            repairs_in_flight: 0,
            deficit: 0,
        })
    }

    fn hear(&mut self) {
        if (self.flight.len() as u64) < RTT_SLOTS {
            return;
        }
        let Some(slot) = self.flight.pop_front() else { return };
        self.sources_in_flight -= u64::from(slot.carried == Carried::Source);
        self.repairs_in_flight -= u64::from(slot.carried == Carried::Repair);
        self.deficit = slot.deficit;
        self.encoder.acknowledge(slot.edge).expect("the receiver knows what was sent, not more");
    }

    /// Returns what this slot is to carry: a repair packet if one is due or the reports require it
    /// and there is a packet to code, otherwise the next source packet, if there is one.
    fn choose(&self, source_count: u64) -> Carried {
        let wanted = self.owed >= 1.0 - ROUNDING || self.lacks();
        if wanted && !self.encoder.window().is_empty() {
            Carried::Repair
        } else if self.next < source_count {
            Carried::Source
        } else {
            Carried::Nothing
        }
    }

    /// Returns whether the packets in flight do not cover the deficit of a round trip ago plus the
    /// losses expected since; false without a deficit or an assumed erasure rate.
    fn lacks(&self) -> bool {
        let Some(erasure_rate) = self.feedback else { return false };
        let expected = self.deficit as f64 + erasure_rate * self.sources_in_flight as f64
            - (1.0 - erasure_rate) * self.repairs_in_flight as f64;
        self.deficit > 0 && expected >= 1.0
    }

    fn send_source(&mut self, now: u64, erased: bool, log: &mut Log) {
        let symbol = symbol(self.next);
        let id = self.encoder.push(&symbol).expect("a symbol of the stream's size");
        log.sent_first(now);
        self.next += 1;
        self.owed += self.share;
        self.sources_in_flight += 1;
        if !erased {
            self.decoder.handle_source(id, &symbol).expect("a packet that was never seen");
        }
    }

    fn send_repair(&mut self, erased: bool, log: &mut Log) {
        let mut payload = [0; SYMBOL_BYTES];
        let repair = self.encoder.repair(self.seed, &mut payload).expect("a window with packets");
        self.seed = self.seed.wrapping_add(1);
        self.owed = (self.owed - 1.0).max(0.0);
        self.repairs_in_flight += 1;
        log.sent_more();
        if !erased {
            // A rejected packet is redundant.
            let _ = self.decoder.handle_repair(&repair, &payload);
        }
    }

    fn deliver(&mut self, now: u64, log: &mut Log) {
        while let Some((id, bytes)) = self.decoder.poll_in_order() {
            assert_eq!(bytes, symbol(id), "packet {id} was decoded wrongly");
            log.deliver_below(id + 1, now);
        }
    }
}

impl Scheme for Coded {
    fn slot(&mut self, now: u64, erased: bool, log: &mut Log) -> Result<()> {
        self.hear();
        let carried = self.choose(log.source_count());
        match carried {
            Carried::Source => self.send_source(now, erased, log),
            Carried::Repair => self.send_repair(erased, log),
            Carried::Nothing => {}
        }
        self.deliver(now, log);
        let report = self.decoder.report();
        let kept = report.lost == 0 && self.encoder.overrun() == 0;
        ensure!(kept && self.decoder.discards().full == 0, "a busy time outgrew the window");
        let unheard = self.next - report.next;
        let deficit = (report.missing - report.rank) as u64 + unheard;
        self.flight.push_back(Slot { carried, edge: report.edge, deficit });
        Ok(())
    }
}

/// Returns unique bytes for each source packet.
pub(super) fn symbol(id: u64) -> [u8; SYMBOL_BYTES] {
    id.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes()
}

pub(super) const SYMBOL_BYTES: usize = 8;

/// Length of the coding window in packets: enough for the longest busy time of these experiments,
/// at loads up to .8.
const WINDOW: usize = 16_384;

/// Maximum number of equations in the decoder: enough for the longest busy time of these
/// experiments.
const REPAIRS: usize = 2_048;

/// Tolerance for sums of a share such as 1/6, which reach slightly less than one.
const ROUNDING: f64 = 1e-9;
