//! Slices, coded and sent over several links that are modelled.

use anyhow::{Context, Result, ensure};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tautline_sim::link::{Config, Jitter, Link, Outage, Retransmission, Swing};
use tautline_transport::sender::planner::{self, Schedule};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::block::Block;

/// A stream of equal slices, each coded as a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slices {
    /// K.
    pub(super) source_count: usize,
    /// N.
    pub(super) packet_count: usize,
    /// Slices a second.
    pub(super) per_second: f64,
    /// Bytes of each packet.
    pub(super) packet_bytes: usize,
    pub(super) seconds: f64,
}

/// One modem as the sender sees it, and as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modem {
    /// The mean of what it can carry.
    pub(super) capacity: Bitrate,
    /// What the scheduler takes for its rate.
    pub(super) granted: Bitrate,
    /// Whether it has outages.
    pub(super) outages: bool,
}

/// Bytes a second of the application in all of the paper's experiments.
pub(super) const APPLICATION: f64 = 1e6;
/// Slices a second: six of 60 pictures.
pub(super) const PER_SECOND: f64 = 360.0;
/// K, which [LTE] Fig. 8 names and its Fig. 15 is taken to share.
pub(super) const SOURCES: usize = 4;

impl Slices {
    /// Returns the paper's stream: 1 MB/s before coding, in slices of K = 4 packets.
    pub(super) fn of_paper(packet_count: usize, seconds: f64) -> Self {
        let packet_bytes = (APPLICATION / PER_SECOND / SOURCES as f64).round() as usize;
        Self { source_count: SOURCES, packet_count, per_second: PER_SECOND, packet_bytes, seconds }
    }

    /// Sends the stream over `modems`, each packet where the anticipated transmission end is the
    /// earliest, and returns every slice's latency in ms: from hand-over to the packet with which
    /// the decoder has it.
    ///
    /// # Errors
    /// When a link loses a packet or the decoder gives wrong bytes: neither may happen.
    pub(super) fn latencies(&self, modems: &[Modem], seed: u64) -> Result<Vec<f64>> {
        let delays = self.packet_delays(modems, seed)?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut block =
            Block::new(self.source_count, self.packet_count, self.packet_bytes, &mut random)?;
        let complete = |delays: &[f64]| block.complete_after(delays)?.context("a slice was lost");
        delays.chunks_exact(self.packet_count).map(complete).collect()
    }

    /// Returns every packet's latency in ms, in the order of sending.
    pub(super) fn packet_delays(&self, modems: &[Modem], seed: u64) -> Result<Vec<f64>> {
        let assigned = self.assign(modems);
        let mut delays = vec![f64::INFINITY; assigned.len()];
        for (number, modem) in modems.iter().enumerate() {
            let on_this = assigned.iter().enumerate().filter(|(_, link)| **link == number);
            let packets: Vec<usize> = on_this.map(|(packet, _)| packet).collect();
            self.carry(modem, link_seed(seed, number), &packets, &mut delays)?;
        }
        ensure!(delays.iter().all(|delay| delay.is_finite()), "a link lost a packet");
        Ok(delays)
    }

    /// Returns the link of every packet.
    pub(super) fn assign(&self, modems: &[Modem]) -> Vec<usize> {
        let datagram_bytes = ByteCount::new(self.packet_bytes as u64);
        let mut links: Vec<planner::Link> =
            modems.iter().map(|modem| planner::Link::new(modem.granted, Duration::ZERO)).collect();
        let mut assigned = Vec::new();
        let mut assignment = Vec::new();
        for number in 0..self.count() {
            let block = planner::Block {
                source_count: self.source_count,
                packet_count: self.packet_count,
                datagram_bytes,
                deadline: self.sent_at(number) + NO_DEADLINE,
                spread: false,
                now: self.sent_at(number),
            };
            Schedule::TransmissionEnd.assign(&block, &links, &mut assignment);
            for link in assignment.iter().map(|link| link.expect("no deadline is near")) {
                let start = links[link].free_at.max(block.now);
                links[link].free_at = start + links[link].rate.time_for(datagram_bytes);
                assigned.push(link);
            }
        }
        assigned
    }

    /// Sends `packets` over one link and writes down their delays.
    fn carry(&self, modem: &Modem, seed: u64, packets: &[usize], delays: &mut [f64]) -> Result<()> {
        let mut link: Link<usize> = Link::new(&modem.model(), seed)?;
        let sent_at = |packet: usize| self.sent_at(packet / self.packet_count);
        let mut note = |link: &mut Link<usize>, now: Instant| {
            while let Some((at, packet)) = link.pop(now) {
                delays[packet] = at.since(sent_at(packet)).as_secs_f64() * 1e3;
            }
        };
        for &packet in packets {
            let now = sent_at(packet);
            note(&mut link, now);
            let taken = link.push(now, ByteCount::new(self.packet_bytes as u64), packet);
            taken.map_err(|why| anyhow::anyhow!("a link dropped a packet: {why}"))?;
        }
        while let Some(at) = link.next_departure() {
            note(&mut link, at);
        }
        Ok(())
    }

    fn count(&self) -> usize {
        (self.seconds * self.per_second) as usize
    }

    fn sent_at(&self, slice: usize) -> Instant {
        Instant::from_nanos((slice as f64 * 1e9 / self.per_second) as u64)
    }
}

impl Modem {
    /// Returns a modem whose mean capacity the scheduler knows.
    pub(super) fn known(capacity: Bitrate) -> Self {
        Self { capacity, granted: capacity, outages: true }
    }

    /// Returns a modem that is granted what it has to carry, `load` bytes a second, which is a share
    /// `utilisation` of what it can.
    pub(super) fn loaded(load: f64, utilisation: f64) -> Self {
        let capacity = bytes_a_second(load / utilisation);
        Self { capacity, granted: bytes_a_second(load), outages: true }
    }

    /// Returns the link model of the paper's reproduction, from the reference page: the logarithm of the
    /// capacity is an Ornstein-Uhlenbeck process round its mean, outages hold packets, delays
    /// wander, the radio repeats itself, and packets stay in order.
    fn model(&self) -> Config {
        Config {
            swing: Some(Swing { sigma: 0.25, tau_ms: 80.0 }),
            queue_bytes: 8_000_000,
            delay_ms: 15.0,
            jitter: Some(Jitter { sigma_ms: 2.0, tau_ms: 1000.0 }),
            retransmission: Some(Retransmission { probability: 0.1, delay_ms: 8.0 }),
            outage_holding: self.outages.then_some(Outage { every_s: 20.0, mean_ms: 60.0 }),
            overhead_bytes: 0,
            ..Config::of_rate(self.capacity)
        }
    }
}

/// Returns what a reader must know of the links in every experiment that uses them.
pub(super) fn model_note() -> String {
    "Links: logarithm of the capacity Ornstein-Uhlenbeck, sigma .25, time constant 80 ms; outages \
     that hold, one in 20 s, 60 ms in the mean; delay 15 ms + |AR(1), sigma 2 ms, 1 s|; HARQ + 8 \
     ms with probability .1, again and again; in order. The paper measured real modems; this \
     model's numbers are the reference's, which meets the paper's own with it."
        .to_owned()
}

pub(super) fn bytes_a_second(bytes: f64) -> Bitrate {
    Bitrate::from_bps((bytes * 8.0).round() as u64)
}

/// Returns the seed of one link: the golden ratio's bits take neighbouring numbers far apart.
fn link_seed(seed: u64, link: usize) -> u64 {
    seed ^ (link as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The paper's slices have no deadline: they wait for as long as it takes.
const NO_DEADLINE: Duration = Duration::from_secs(1_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_of_a_slow_enough_stream_has_the_bare_delay_at_least() {
        let modem = Modem::loaded(APPLICATION, 0.5);
        let slices = Slices::of_paper(4, 2.0);
        let delays = slices.packet_delays(&[modem], 1).unwrap();
        assert_eq!(delays.len(), 4 * 720);
        let first = delays.chunks_exact(4).map(|slice| slice[0]).fold(f64::MAX, f64::min);
        assert!((15.0..16.0).contains(&first), "{first}");
    }

    #[test]
    fn granted_rates_share_the_packets() {
        let modems = [Modem::loaded(1.0e6, 0.7), Modem::loaded(0.75e6, 0.7)];
        let assigned = Slices::of_paper(7, 10.0).assign(&modems);
        let first = assigned.iter().filter(|link| **link == 0).count() as f64;
        assert!((first / assigned.len() as f64 - 4.0 / 7.0).abs() < 0.01);
    }
}
