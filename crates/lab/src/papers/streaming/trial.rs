//! Repeated transfers of one kind.

use anyhow::{Result, bail};

use super::arq::Arq;
use super::block::{Block, Repairs};
use super::coded::Coded;
use super::link::{Erasures, FILE_PACKETS, Length, Scheme, Transfer, transfer};
use super::sessions::Sessions;

/// Protection of source packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Protection {
    /// Retransmission alone.
    Arq,
    /// A block code with the given number of source packets.
    Block(u64, Repairs),
    /// The streaming code, with the given number of repair packets per source packet.
    Stream(f64),
}

/// One point of an experiment: a protection on an erasure link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) protection: Protection,
    pub(super) erasure_rate: f64,
    /// Mean burst length of erasures; 1 for independent ones.
    pub(super) burst: f64,
}

impl Trial {
    /// Sends the paper's file `count` times with feedback, with `count` different losses.
    ///
    /// The losses depend on the run's seed alone, so that all trials of a run have the same.
    pub(super) fn files(&self, seed: u64, count: u64) -> Result<Transfer> {
        let mut all = Transfer::default();
        for number in 0..count {
            let seed = seed_of(seed, number);
            all.append(&self.once(true, Length::Packets(FILE_PACKETS), seed)?);
        }
        Ok(all)
    }

    /// Sends for `slots` slots without feedback.
    pub(super) fn open_loop(&self, seed: u64, slots: u64) -> Result<Transfer> {
        self.once(false, Length::Slots(slots), seed_of(seed, 0))
    }

    /// Sends the paper's file `count` times by sessions of the transport, each with different
    /// losses.
    ///
    /// # Errors
    /// For any protection other than the streaming code. A session delivers complete units, not a
    /// block's packets, and tracks 512 of those in flight, fewer than retransmission alone would
    /// need.
    pub(super) fn files_by_sessions(&self, seed: u64, count: u64) -> Result<Transfer> {
        let sessions = self.sessions(true)?;
        let mut all = Transfer::default();
        for number in 0..count {
            let sent = sessions.send(Length::Packets(FILE_PACKETS), seed_of(seed, number))?;
            all.append(&sent.first(FILE_PACKETS));
        }
        Ok(all)
    }

    /// Returns two transfers of `slots` slots without feedback: first by sessions, limited to as
    /// many units as the second delivers; then slot by slot, with the losses that the sessions had.
    ///
    /// # Errors
    /// As [`Trial::files_by_sessions`].
    pub(super) fn open_loop_by_sessions(&self, seed: u64, slots: u64) -> Result<[Transfer; 2]> {
        let sent = self.sessions(false)?.send(Length::Slots(slots), seed_of(seed, 0))?;
        let slots = Length::Slots(sent.erased.len() as u64);
        let erasures = sent.erased.iter().copied();
        let again = transfer(self.scheme(false)?.as_mut(), slots, erasures)?;
        Ok([sent.first(again.delays.count()), again])
    }

    fn sessions(&self, feedback: bool) -> Result<Sessions> {
        let Trial { protection, erasure_rate, burst } = *self;
        let Protection::Stream(share) = protection else {
            bail!("sessions send under the streaming code here, not by {protection:?}")
        };
        Ok(Sessions { share, erasure_rate, burst, feedback })
    }

    fn once(&self, feedback: bool, length: Length, seed: u64) -> Result<Transfer> {
        let erasures = Erasures::new(self.erasure_rate, self.burst, seed);
        transfer(self.scheme(feedback)?.as_mut(), length, erasures)
    }

    fn scheme(&self, feedback: bool) -> Result<Box<dyn Scheme>> {
        Ok(match self.protection {
            Protection::Arq => Box::new(Arq::default()),
            Protection::Block(size, repairs) => Box::new(Block::new(size, repairs, feedback)),
            Protection::Stream(share) => {
                Box::new(Coded::new(share, feedback.then_some(self.erasure_rate))?)
            }
        })
    }
}

/// Returns the seed of one transfer of a run.
fn seed_of(seed: u64, number: u64) -> u64 {
    seed.wrapping_mul(SEED_STRIDE).wrapping_add(number)
}

/// Distance between the seeds of neighbouring runs, which keeps their repetitions apart.
const SEED_STRIDE: u64 = 1_000_003;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::streaming::residual::BlockLosses;

    const PROTECTIONS: [Protection; 5] = [
        Protection::Arq,
        Protection::Block(1, Repairs::Each(0)),
        Protection::Block(32, Repairs::Share(0.25)),
        Protection::Stream(0.25),
        Protection::Stream(0.0),
    ];

    #[test]
    fn every_packet_is_delivered_despite_losses() {
        for protection in PROTECTIONS {
            for (erasure_rate, burst) in [(0.0, 1.0), (0.1, 4.0), (0.4, 1.0)] {
                let trial = Trial { protection, erasure_rate, burst };
                let given = trial.once(true, Length::Packets(1_001), 7).unwrap();
                assert_eq!((given.delays.count(), given.lost), (1_001, 0), "{trial:?}");
                assert!(given.effective_rate() <= 1.0);
                if erasure_rate == 0.0 {
                    assert_eq!(given.delays.percentile(1.0), 0.0, "{trial:?}");
                }
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_transfer() {
        for protection in PROTECTIONS {
            let trial = Trial { protection, erasure_rate: 0.1, burst: 2.0 };
            let run = |seed| trial.once(true, Length::Packets(2_000), seed).unwrap();
            assert_eq!((run(3).delays, run(3).sent), (run(3).delays, run(3).sent));
            assert_ne!(run(3).delays, run(4).delays);
        }
    }

    #[test]
    fn without_feedback_blocks_lose_what_is_computed() {
        let (sources, repairs, erasure_rate) = (12, 3, 0.1);
        let mut losses = BlockLosses::new(erasure_rate, 1.0);
        losses.grow(sources as usize, repairs as usize);
        let expected = losses.residual();
        let protection = Protection::Block(sources, Repairs::Each(repairs));
        let trial = Trial { protection, erasure_rate, burst: 1.0 };
        let given = trial.once(false, Length::Slots(3_000_000), 1).unwrap();
        let lost = given.lost as f64 / (given.lost + given.delays.count()) as f64;
        assert!((lost / expected - 1.0).abs() < 0.05, "{lost} for {expected}");
    }

    /// With one source packet per block, a repair packet at the end of the round trip is the same
    /// packet, retransmitted.
    #[test]
    fn blocks_of_one_packet_are_retransmission() {
        let once = |protection| {
            let trial = Trial { protection, erasure_rate: 0.2, burst: 1.0 };
            trial.once(true, Length::Packets(20_000), 1).unwrap()
        };
        let arq = once(Protection::Arq);
        let block = once(Protection::Block(1, Repairs::Each(0)));
        // Except for the one repair packet in 256 that is redundant.
        assert!((block.delays.mean() / arq.delays.mean() - 1.0).abs() < 0.02);
    }
}
