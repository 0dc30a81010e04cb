//! The link of the paper's experiments, slot by slot, and the result of a scheme on it.
//!
//! A slot is the time of one packet. A packet sent in a slot is erased or arrives; the receiver
//! learns it in the same slot, the sender one round trip later. All delays exclude the link's own
//! delay: a source packet's delay is the number of slots from its first transmission to the slot
//! after which it and all earlier ones are known.

use std::collections::VecDeque;

use anyhow::Result;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::delays::Delays;

/// Slot duration in ms on the paper's link: 25 Mbit/s, packets of 1500 bytes.
pub(super) const SLOT_MS: f64 = 0.48;

/// Round trip of the paper in slots: 60 ms.
pub(super) const RTT_SLOTS: u64 = 125;

/// Size of the paper's file in packets: 25 MB.
pub(super) const FILE_PACKETS: u64 = 16_667;

/// A scheme to deliver source packets over a link, with sender and receiver in one.
///
/// The sender's choices depend only on packets received at least a round trip ago.
pub(super) trait Scheme {
    /// Sends the packet due in slot `now`, which is `erased` or arrives, and records it in `log`.
    ///
    /// An `Err` ends the transfer: it has left the bounds of the simulation.
    fn slot(&mut self, now: u64, erased: bool, log: &mut Log) -> Result<()>;
}

/// Length of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Length {
    /// A number of source packets, until all of them are delivered.
    Packets(u64),
    /// A number of slots; packets not delivered by then are not counted.
    Slots(u64),
}

/// Runs `scheme` over a link with these erasures, slot by slot; after the end of `erasures`,
/// nothing is erased.
pub(super) fn transfer(
    scheme: &mut dyn Scheme,
    length: Length,
    mut erasures: impl Iterator<Item = bool>,
) -> Result<Transfer> {
    let (source_count, slots) = match length {
        Length::Packets(count) => (count, u64::MAX),
        Length::Slots(count) => (u64::MAX, count),
    };
    let mut log = Log { source_count, ..Log::default() };
    for now in 0..slots {
        if log.edge == source_count {
            break;
        }
        scheme.slot(now, erasures.next().unwrap_or(false), &mut log)?;
    }
    Ok(log.transfer)
}

/// Result of a transfer.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfer {
    /// Delays of the delivered source packets.
    pub(super) delays: Delays,
    /// Number of source packets abandoned.
    pub(super) lost: u64,
    /// Number of slots that carried a packet.
    pub(super) sent: u64,
}

impl Transfer {
    /// Returns source packets, delivered or abandoned, per packet sent, which the paper calls the
    /// effective code rate.
    pub(super) fn effective_rate(&self) -> f64 {
        (self.delays.count() + self.lost) as f64 / self.sent as f64
    }

    /// Returns the mean delay in milliseconds.
    pub(super) fn mean_ms(&self) -> f64 {
        self.delays.mean() * SLOT_MS
    }

    /// Returns the `share` quantile of the delay, in milliseconds.
    pub(super) fn percentile_ms(&self, share: f64) -> f64 {
        self.delays.percentile(share) * SLOT_MS
    }

    /// Adds the delays and counts of another transfer of the same kind.
    pub(super) fn append(&mut self, other: &Transfer) {
        self.delays.append(&other.delays);
        self.lost += other.lost;
        self.sent += other.sent;
    }
}

/// A record of the source packets of one transfer.
#[derive(Debug, Default)]
pub(super) struct Log {
    source_count: u64,
    /// Number of source packets delivered in order, or abandoned.
    edge: u64,
    /// Slot of each source packet's first transmission, from `edge` on.
    first_sent: VecDeque<u64>,
    transfer: Transfer,
}

impl Log {
    /// Returns the number of source packets to deliver.
    pub(super) fn source_count(&self) -> u64 {
        self.source_count
    }

    /// Returns the number of source packets delivered in order, or abandoned.
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// Records that slot `now` carries the next source packet for the first time.
    pub(super) fn sent_first(&mut self, now: u64) {
        self.first_sent.push_back(now);
        self.transfer.sent += 1;
    }

    /// Records that a slot carries a repair packet or a retransmission.
    pub(super) fn sent_more(&mut self) {
        self.transfer.sent += 1;
    }

    /// Records that all source packets below `edge` are delivered after slot `now`.
    pub(super) fn deliver_below(&mut self, edge: u64, now: u64) {
        while self.edge < edge {
            let sent = self.next_sent();
            self.transfer.delays.add(now - sent);
        }
    }

    /// Records that the next source packet is abandoned.
    pub(super) fn give_up_next(&mut self) {
        self.next_sent();
        self.transfer.lost += 1;
    }

    fn next_sent(&mut self) -> u64 {
        self.edge += 1;
        self.first_sent.pop_front().expect("only what was sent is delivered or given up")
    }
}

/// A Markov chain that determines the erased slots.
#[derive(Clone, Debug)]
pub(super) struct Erasures {
    /// Probability of an erasure after a received packet, and after an erased one.
    after: [f64; 2],
    /// True if the last slot was erased.
    erased: bool,
    rng: ChaCha8Rng,
}

impl Erasures {
    /// Creates erasures with rate `rate` and mean burst length `burst`: see [`chain`].
    pub(super) fn new(rate: f64, burst: f64, seed: u64) -> Erasures {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let erased = rng.random_bool(rate);
        Erasures { after: chain(rate, burst), erased, rng }
    }

    /// Returns whether the next slot's packet is erased.
    pub(super) fn draw(&mut self) -> bool {
        self.erased = self.rng.random_bool(self.after[usize::from(self.erased)]);
        self.erased
    }
}

/// Yields for every slot whether it is erased, without end.
impl Iterator for Erasures {
    type Item = bool;

    fn next(&mut self) -> Option<bool> {
        Some(self.draw())
    }
}

/// Returns the probabilities of an erasure after a received packet, and after an erased one.
///
/// This is the paper's two-state chain, eq. (9). The bad state has a share `rate` of the slots and
/// lasts `burst` slots on average; everything is erased in it, and nothing in the good state. As in
/// the paper, `burst` 1 means independent erasures, whose bursts are slightly longer than one.
pub(super) fn chain(rate: f64, burst: f64) -> [f64; 2] {
    if burst <= 1.0 {
        return [rate; 2];
    }
    [rate / (burst * (1.0 - rate)), 1.0 - 1.0 / burst]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erasures_have_their_rate_and_bursts_their_length() {
        for (rate, burst) in [(0.1, 1.0), (0.1, 2.0), (0.05, 4.0)] {
            let slots: Vec<bool> = Erasures::new(rate, burst, 5).take(1_000_000).collect();
            let erased = slots.iter().filter(|erased| **erased).count() as f64;
            let begun = slots.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
            assert!((erased / 1e6 / rate - 1.0).abs() < 0.02, "{rate} {burst}: {erased}");
            let expected = if burst == 1.0 { 1.0 / (1.0 - rate) } else { burst };
            assert!((erased / begun / expected - 1.0).abs() < 0.02, "{rate} {burst}: {begun}");
        }
    }
}
