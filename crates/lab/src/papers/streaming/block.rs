//! The paper's systematic random linear block code (its section V.C), with and without feedback.

use std::collections::VecDeque;

use anyhow::Result;
use tautline_fec::stream::{Config, Decoder, Encoder};

use super::coded::{SYMBOL_BYTES, symbol};
use super::link::{Log, RTT_SLOTS, Scheme};

/// A sender of blocks of k source packets, each followed by its repair packets.
///
/// With feedback, the missing number of repair packets follows one round trip after the end of a
/// block's round, before everything new, repeatedly. Without feedback, a block that cannot be
/// decoded at its end is abandoned.
///
/// The packets are real. Each block has an encoder and a decoder of this crate's random linear
/// code, with the block as its coding window. The decoder's output is compared with the original
/// packets.
#[derive(Debug)]
pub(super) struct Block {
    source_count: u64,
    repairs: Repairs,
    /// True if the sender learns a round trip later what a block lacks.
    feedback: bool,
    /// Number of the next source packet.
    next: u64,
    /// Blocks from the first one that is neither complete nor abandoned.
    blocks: VecDeque<State>,
    /// Number of the first block in `blocks`.
    first_block: u64,
    /// Number of the first source packet of the first block in `blocks`.
    first_source: u64,
    /// Rounds of repair packets to send before any new source packet.
    queue: VecDeque<Round>,
    /// For each round that has ended, the slot in which the sender learns the result, and the
    /// block.
    ended: VecDeque<(u64, u64)>,
    /// Seed of the next repair packet.
    seed: u16,
}

/// Number of repair packets after the source packets of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Repairs {
    /// This number of repair packets for each block.
    Each(u64),
    /// This number of repair packets per source packet; that of a block varies by one between
    /// blocks if it is not an integer.
    Share(f64),
}

/// State of a block at both ends.
#[derive(Debug)]
struct State {
    size: u64,
    encoder: Encoder,
    decoder: Decoder,
    /// Arrival flags of the source packets sent so far.
    came: Vec<bool>,
    /// Number of source packets decoded in order.
    delivered: u64,
}

/// Consecutive repair packets of one block.
#[derive(Debug)]
struct Round {
    block: u64,
    /// Number of repair packets still to send.
    left: u64,
}

impl Block {
    /// Creates a sender of blocks of `source_count` packets.
    pub(super) fn new(source_count: u64, repairs: Repairs, feedback: bool) -> Block {
        Block {
            source_count,
            repairs,
            feedback,
            next: 0,
            blocks: VecDeque::new(),
            first_block: 0,
            first_source: 0,
            queue: VecDeque::new(),
            ended: VecDeque::new(),
            seed: 0,
        }
    }

    /// Queues, for each round whose result reaches the sender by slot `now`, the number of new
    /// repair packets that the receiver needs to decode the block.
    fn hear(&mut self, now: u64) {
        while let Some(&(heard, block)) = self.ended.front()
            && heard <= now
        {
            self.ended.pop_front();
            let missing = self.state(block).map_or(0, |state| state.missing());
            if missing > 0 {
                self.queue.push_back(Round { block, left: missing });
            }
        }
    }

    fn send_source(&mut self, now: u64, erased: bool, log: &mut Log) -> Result<()> {
        if self.blocks.back().is_none_or(State::is_sent) {
            let size = self.source_count.min(log.source_count() - self.next);
            self.blocks.push_back(State::begin(size)?);
        }
        log.sent_first(now);
        let symbol = symbol(self.next);
        self.next += 1;
        let state = self.blocks.back_mut().expect("the block that was begun");
        state.send_source(&symbol, erased)?;
        if state.is_sent() {
            let block = self.first_block + self.blocks.len() as u64 - 1;
            match self.repair_count() {
                0 => self.end_round(block, now, log),
                left => self.queue.push_front(Round { block, left }),
            }
        }
        Ok(())
    }

    /// Returns the number of repair packets for the newest block, whose source packets have all
    /// been sent.
    fn repair_count(&self) -> u64 {
        match self.repairs {
            Repairs::Each(count) => count,
            Repairs::Share(share) => {
                let owed = |packets: u64| (packets as f64 * share + 1e-9).floor() as u64;
                owed(self.next) - owed(self.next - self.blocks.back().map_or(0, |s| s.size))
            }
        }
    }

    fn send_repair(&mut self, now: u64, erased: bool, log: &mut Log) -> Result<()> {
        let Some(round) = self.queue.front_mut() else { return Ok(()) };
        let block = round.block;
        round.left -= 1;
        let ends = round.left == 0;
        log.sent_more();
        let seed = self.seed;
        self.seed = seed.wrapping_add(1);
        if let Some(state) = self.state(block) {
            state.send_repair(seed, erased)?;
        }
        if ends {
            self.queue.pop_front();
            self.end_round(block, now, log);
        }
        Ok(())
    }

    fn end_round(&mut self, block: u64, now: u64, log: &mut Log) {
        if self.feedback {
            self.ended.push_back((now + RTT_SLOTS, block));
            return;
        }
        self.deliver(now, log);
        if block < self.first_block {
            return;
        }
        // Without feedback one block ends before the next begins, so this is the only one.
        let state = self.blocks.pop_front().expect("a block that is not complete");
        for &came in &state.came[state.delivered as usize..] {
            if came {
                log.deliver_below(log.edge() + 1, now);
            } else {
                log.give_up_next();
            }
        }
        self.first_block += 1;
        self.first_source += state.size;
    }

    /// Reports to `log` the packets that are now known in order as delivered, and removes the
    /// blocks that are delivered completely.
    fn deliver(&mut self, now: u64, log: &mut Log) {
        while let Some(state) = self.blocks.front_mut() {
            while let Some((id, bytes)) = state.decoder.poll_in_order() {
                let number = self.first_source + id;
                assert_eq!(bytes, symbol(number), "packet {number} was decoded wrongly");
                state.delivered = id + 1;
            }
            log.deliver_below(self.first_source + state.delivered, now);
            if state.delivered < state.size {
                return;
            }
            self.first_block += 1;
            self.first_source += state.size;
            self.blocks.pop_front();
        }
    }

    fn state(&mut self, block: u64) -> Option<&mut State> {
        self.blocks.get_mut(block.checked_sub(self.first_block)? as usize)
    }
}

impl State {
    fn begin(size: u64) -> Result<Self> {
        let config = Config::new(SYMBOL_BYTES, size as usize);
        let config = Config { repairs_max: size as usize, ..config };
        let (encoder, decoder) = (Encoder::new(config)?, Decoder::new(config)?);
        Ok(Self { size, encoder, decoder, came: Vec::new(), delivered: 0 })
    }

    /// Returns whether each source packet of the block was sent, arrived or not.
    fn is_sent(&self) -> bool {
        self.came.len() as u64 == self.size
    }

    /// Returns the number of further repair packets needed to know all source packets.
    fn missing(&self) -> u64 {
        let report = self.decoder.report();
        self.size - report.next + (report.missing - report.rank) as u64
    }

    fn send_source(&mut self, symbol: &[u8], erased: bool) -> Result<()> {
        let id = self.encoder.push(symbol)?;
        if !erased {
            self.decoder.handle_source(id, symbol)?;
        }
        self.came.push(!erased);
        Ok(())
    }

    fn send_repair(&mut self, seed: u16, erased: bool) -> Result<()> {
        let mut payload = [0; SYMBOL_BYTES];
        let repair = self.encoder.repair(seed, &mut payload)?;
        if !erased {
            // A rejected packet is redundant.
            let _ = self.decoder.handle_repair(&repair, &payload);
        }
        Ok(())
    }
}

impl Scheme for Block {
    fn slot(&mut self, now: u64, erased: bool, log: &mut Log) -> Result<()> {
        self.hear(now);
        if !self.queue.is_empty() {
            self.send_repair(now, erased, log)?;
        } else if self.next < log.source_count() {
            self.send_source(now, erased, log)?;
        }
        self.deliver(now, log);
        Ok(())
    }
}
