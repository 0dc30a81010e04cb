//! One block of packets, really coded, and the time of its completion.

use anyhow::{Result, ensure};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tautline_fec::Error;
use tautline_fec::block::Code;

/// The source and repair packets of one block, and its decoder; every trial sends the same packets.
pub(super) struct Block {
    code: Code,
    packets: Vec<Vec<u8>>,
    recovered: Vec<Vec<u8>>,
}

impl Block {
    /// Creates a block of `packet_count` packets: `source_count` random source packets, and repair
    /// packets as the rest.
    pub(super) fn new(
        source_count: usize,
        packet_count: usize,
        packet_bytes: usize,
        random: &mut ChaCha8Rng,
    ) -> Result<Self> {
        let code = Code::new(source_count, packet_count)?;
        let mut packets = vec![vec![0; packet_bytes]; packet_count];
        let (sources, repairs) = packets.split_at_mut(source_count);
        for source in &mut *sources {
            random.fill_bytes(source);
        }
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut repairs: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode(&sources, &mut repairs)?;
        Ok(Self { code, packets, recovered: vec![vec![0; packet_bytes]; source_count] })
    }

    /// Passes the packets to the decoder in the order of their delays, and returns the delay of the
    /// one that completes the block, in the unit of `delays`, or `None` if the block stays
    /// incomplete. A packet with an infinite delay is lost.
    pub(super) fn complete_after(&mut self, delays: &[f64]) -> Result<Option<f64>> {
        let mut order: Vec<usize> =
            (0..delays.len()).filter(|index| delays[*index].is_finite()).collect();
        order.sort_by(|&a, &b| delays[a].total_cmp(&delays[b]));
        for count in 1..=order.len() {
            if self.is_complete_with(&order[..count])? {
                return Ok(Some(delays[order[count - 1]]));
            }
        }
        Ok(None)
    }

    fn is_complete_with(&mut self, arrived: &[usize]) -> Result<bool> {
        let received: Vec<(usize, &[u8])> =
            arrived.iter().map(|&index| (index, self.packets[index].as_slice())).collect();
        let mut missing: Vec<(usize, &mut [u8])> = self
            .recovered
            .iter_mut()
            .enumerate()
            .filter(|(index, _)| !arrived.contains(index))
            .map(|(index, packet)| (index, packet.as_mut_slice()))
            .collect();
        match self.code.recover(&received, &mut missing) {
            Ok(()) => {}
            Err(Error::TooFew { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let right = missing.iter().all(|(index, packet)| *packet == self.packets[*index]);
        ensure!(right, "wrong packets recovered from {arrived:?}");
        Ok(true)
    }
}
