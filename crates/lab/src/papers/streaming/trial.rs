//! Transfers of one kind, repeated.

use anyhow::Result;

use super::arq::Arq;
use super::block::{Block, Repairs};
use super::coded::Coded;
use super::link::{Erasures, FILE_PACKETS, Length, Scheme, Transfer, transfer};
use crate::experiment::Run;

/// The way source packets are protected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Protection {
    /// Retransmission alone.
    Arq,
    /// A block code of so many source packets.
    Block(u64, Repairs),
    /// The streaming code, with so many repair packets per source packet.
    Stream(f64),
}

/// One point of an experiment: a protection on a link that erases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) protection: Protection,
    pub(super) erasure_rate: f64,
    /// Mean length of a burst of erasures; 1 for independent ones.
    pub(super) burst: f64,
}

impl Trial {
    /// Sends the paper's file `count` times with feedback, under `count` different losses.
    ///
    /// The losses depend on the run's seed alone, so that all trials of a run meet the same.
    pub(super) fn files(&self, run: &Run<'_>, count: u64) -> Result<Transfer> {
        let mut all = Transfer::default();
        for number in 0..count {
            let seed = run.seed.wrapping_mul(SEED_STRIDE).wrapping_add(number);
            all.append(&self.once(true, Length::Packets(FILE_PACKETS), seed)?);
        }
        Ok(all)
    }

    /// Sends for so many slots without feedback.
    pub(super) fn open_loop(&self, run: &Run<'_>, slots: u64) -> Result<Transfer> {
        self.once(false, Length::Slots(slots), run.seed.wrapping_mul(SEED_STRIDE))
    }

    fn once(&self, feedback: bool, length: Length, seed: u64) -> Result<Transfer> {
        let mut erasures = Erasures::new(self.erasure_rate, self.burst, seed);
        let mut scheme: Box<dyn Scheme> = match self.protection {
            Protection::Arq => Box::new(Arq::default()),
            Protection::Block(size, repairs) => {
                Box::new(Block::new(size, repairs, feedback, !seed))
            }
            Protection::Stream(share) => {
                Box::new(Coded::new(share, feedback.then_some(self.erasure_rate))?)
            }
        };
        transfer(scheme.as_mut(), length, &mut erasures)
    }
}

/// The distance of neighbouring runs' seeds: it keeps their repetitions apart.
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
    fn every_packet_is_delivered_whatever_is_lost() {
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

    /// With one source packet a block, a repair packet at the end of the round trip is the packet
    /// sent again.
    #[test]
    fn blocks_of_one_packet_are_retransmission() {
        let once = |protection| {
            let trial = Trial { protection, erasure_rate: 0.2, burst: 1.0 };
            trial.once(true, Length::Packets(20_000), 1).unwrap()
        };
        let arq = once(Protection::Arq);
        let block = once(Protection::Block(1, Repairs::Each(0)));
        // But for the one repair packet in 256 that says nothing new.
        assert!((block.delays.mean() / arq.delays.mean() - 1.0).abs() < 0.02);
    }
}
