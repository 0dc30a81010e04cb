//! Slices sent by complete sessions over modelled or recorded links.
//!
//! Two sessions of the transport run in virtual time, as a vehicle's and an operator's. They use
//! the paper's two-state rate control, its assignment by the anticipated transmission end, its
//! code, and pacing.

use anyhow::{Result, ensure};
use tautline_scenario::measure::{Unit, millis, within};
use tautline_scenario::policies::{planner, rate};
use tautline_scenario::run::Setup;
use tautline_scenario::traffic::{Media, Traffic};
use tautline_sim::link::{Config as Link, Jitter, Outage, Pair, Retransmission, Swing};
use tautline_transport::Config;
use tautline_transport::wire::{Prefix, SYMBOL_AROUND_BYTES};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// A stream of equal slices, each coded as a block, and its links.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// The links; the stream uses their upward direction.
    pub(super) links: Vec<Pair>,
    /// K: source packets of a slice.
    pub(super) source_count: usize,
    /// N: packets of a slice, source packets included.
    pub(super) packet_count: usize,
    /// Slices per second.
    pub(super) per_second: u64,
    /// Size of a slice; the maximum if the source follows the budget.
    pub(super) bytes: ByteCount,
    /// True if the source reduces its rate to a smaller budget, as an encoder does.
    pub(super) adapts: bool,
    /// The rate control of every link.
    pub(super) control: rate::Kind,
    /// Initial grant of a link.
    pub(super) initial: Bitrate,
    /// Measured duration in s, after [`WARM_UP`].
    pub(super) seconds: u64,
}

/// Results of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Came {
    /// Latencies of the delivered slices in ms, in sending order.
    pub(super) latencies: Vec<f64>,
    /// Slices lost: refused, dropped or lost in transit.
    pub(super) lost: usize,
    /// Rate of the delivered slices.
    pub(super) rate: Bitrate,
    /// Observations of the links, every [`LOOK`].
    pub(super) looks: Vec<Look>,
}

/// State of one link at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Time since the end of the warm-up, in s.
    pub(super) second: f64,
    /// Granted rate in Mbit/s.
    pub(super) granted: f64,
    /// Received rate in Mbit/s, from the peer's last report.
    pub(super) received: f64,
    /// Queueing delay of the link, ms.
    pub(super) queueing: f64,
}

/// Application rate in all of the paper's experiments, in bytes per second.
pub(super) const APPLICATION: f64 = 1e6;
/// Slices per second: six of 60 pictures.
pub(super) const PER_SECOND: u64 = 360;
/// K, the source packets of a slice, which [LTE] Fig. 8 states and its Fig. 15 presumably shares.
pub(super) const SOURCES: usize = 4;
/// Packet size in bytes: a slice of 1 MB/s in [`SOURCES`] packets.
pub(super) const PACKET_BYTES: u64 = 694;

impl Stream {
    /// Returns the paper's stream: 1 MB/s before coding, in slices of K = 4 packets, under the
    /// two-state control, from a source that follows the budget.
    pub(super) fn of_paper(links: Vec<Pair>, packet_count: usize, seconds: u64) -> Self {
        Self {
            links,
            source_count: SOURCES,
            packet_count,
            per_second: PER_SECOND,
            bytes: ByteCount::new(PACKET_BYTES * SOURCES as u64 - Prefix::BYTES as u64),
            adapts: true,
            control: rate::Kind::TwoState,
            initial: Bitrate::from_mbps(8),
            seconds,
        }
    }

    /// Returns single packets of the paper's size at a constant rate of `per_second`, independent
    /// of the links.
    pub(super) fn of_packets(links: Vec<Pair>, per_second: u64, seconds: u64) -> Self {
        let bytes = ByteCount::new(PACKET_BYTES - Prefix::BYTES as u64);
        Self {
            source_count: 1,
            per_second,
            bytes,
            adapts: false,
            ..Self::of_paper(links, 1, seconds)
        }
    }

    /// Sends the stream.
    ///
    /// # Errors
    /// For an invalid link or session configuration, and if nothing arrives.
    pub(super) fn send(&self, seed: u64) -> Result<Came> {
        let rate = self.bytes.get() * 8 * self.per_second;
        let media = Media {
            adapts: self.adapts,
            deadline: DEADLINE,
            ..Media::slices(self.per_second, Bitrate::from_bps(rate))
        };
        let setup = Setup::new(seed, self.links.clone()).with_config(self.config());
        let mut run = setup.start(Traffic::default().with_media(media), Traffic::default())?;
        let (from, to) = (Instant::ZERO + WARM_UP, self.end());
        let mut looks = Vec::new();
        let mut at = from;
        while at <= to {
            run.until(at);
            looks.extend(run.vehicle().session.links().map(|view| Look {
                second: at.since(from).as_secs_f64(),
                granted: view.granted.as_f64() / 1e6,
                received: view.received.as_f64() / 1e6,
                queueing: millis(view.queueing),
            }));
            at += LOOK;
        }
        run.until(to + DEADLINE);
        let media = run.media();
        let sent: Vec<&Unit> = within(&media, from..to).collect();
        let latencies: Vec<f64> = sent.iter().filter_map(|unit| unit.delay().map(millis)).collect();
        ensure!(!latencies.is_empty(), "nothing came of {} slices, seed {seed}", sent.len());
        let came = sent.iter().filter(|unit| unit.received.is_some());
        let bytes: ByteCount = came.map(|unit| unit.offered.bytes).sum();
        let rate = Bitrate::of(bytes, to.since(from));
        Ok(Came { lost: sent.len() - latencies.len(), latencies, rate, looks })
    }

    /// Returns the bytes per second on the wire, IP and UDP headers included, if all slices have
    /// their full size.
    pub(super) fn wire_bytes(&self) -> f64 {
        let symbol = (self.bytes.get() + Prefix::BYTES as u64) as f64 / self.source_count as f64;
        (symbol + (SYMBOL_AROUND_BYTES as f64 + HEADERS))
            * self.packet_count as f64
            * self.per_second as f64
    }

    fn end(&self) -> Instant {
        Instant::ZERO + WARM_UP + Duration::from_secs(self.seconds)
    }

    /// Returns the paper's configuration: it ignores a link's loss, and does not retransmit.
    fn config(&self) -> Config {
        let code = planner::Code {
            source_count_min: self.source_count,
            ..planner::Code::of_rate(self.source_count as f64 / self.packet_count as f64)
        };
        let mut config = Config {
            controllers: self.control.factory(),
            planner: planner::Kind::TransmissionEnd.factory(code),
            spread: false,
            retransmit: false,
            media_deadline: DEADLINE,
            ..Config::default()
        };
        config.rate.initial = self.initial;
        config
    }
}

impl Came {
    /// Adds the latencies and losses of another run; its rate and its observations of links are
    /// left out.
    pub(super) fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.lost += other.lost;
    }

    /// Returns the share of slices lost.
    pub(super) fn lost_share(&self) -> f64 {
        self.lost as f64 / (self.lost + self.latencies.len()) as f64
    }
}

/// Returns the link model of the reference simulation of the paper, with a mean capacity of
/// `bytes_a_second`. The logarithm of the capacity is an Ornstein-Uhlenbeck process around its
/// mean, outages hold packets, delays vary, the radio retransmits, and packets stay in order. The
/// return path has ample capacity.
pub(super) fn modem(bytes_a_second: f64, outages: bool) -> Pair {
    let capacity = Bitrate::from_bps((bytes_a_second * 8.0).round() as u64);
    let up = Link {
        swing: Some(Swing { sigma: 0.25, tau_ms: 80.0 }),
        queue_bytes: 8_000_000,
        delay_ms: 15.0,
        jitter: Some(Jitter { sigma_ms: 2.0, tau_ms: 1000.0 }),
        retransmission: Some(Retransmission { probability: 0.1, delay_ms: 8.0 }),
        outage_holding: outages.then_some(Outage { every_s: 20.0, mean_ms: 60.0 }),
        ..Link::of_rate(capacity)
    };
    let down = Link::of_rate(Bitrate::from_mbps(10)).with_delay(Duration::from_millis(15));
    Pair { up, down }
}

/// Returns the note about the links for every experiment that uses them.
pub(super) fn model_note() -> String {
    "Sent by two sessions in virtual time. Links: logarithm of the capacity Ornstein-Uhlenbeck, sigma .25, \
     time constant 80 ms; outages that hold, one in 20 s, 60 ms in the mean; delay 15 ms + |AR(1), sigma 2 ms, \
     1 s|; HARQ + 8 ms with probability .1, again and again; in order. The paper measured real modems; this \
     model's numbers are the reference's. Loads count all bytes on the wire."
        .to_owned()
}

/// Time at the start of a stream that is excluded from the measurement: the handshake, the first
/// pings, and the startup of the rate control.
pub(super) const WARM_UP: Duration = Duration::from_secs(5);
/// Deadline of a slice. The paper's have none; here slices more than a second late are dropped.
pub(super) const DEADLINE: Duration = Duration::from_secs(1);
/// Interval between two observations of the links.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// Bytes of the IPv4 (20) and UDP (8) headers that the links count with each packet.
const HEADERS: f64 = 28.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn two_modems() -> Stream {
        let load = Stream::of_paper(Vec::new(), 7, 1).wire_bytes() / 2.0;
        Stream::of_paper(vec![modem(load / 0.5, false); 2], 7, 1)
    }

    #[test]
    fn every_slice_comes_no_sooner_than_the_links_allow() {
        let came = two_modems().send(1).unwrap();
        assert_eq!((came.latencies.len(), came.lost), (360, 0));
        assert!(came.latencies.iter().all(|latency| *latency >= 15.0));
        assert_eq!(came.latencies, two_modems().send(1).unwrap().latencies);
        assert_ne!(came.latencies, two_modems().send(2).unwrap().latencies);
        let carried = came.rate.as_f64() / (8.0 * APPLICATION);
        assert!((0.95..=1.0).contains(&carried), "{carried}");
    }

    #[test]
    fn the_wire_carries_what_is_around_each_packet_too() {
        let stream = two_modems();
        let each = stream.wire_bytes() / (360.0 * 7.0);
        assert!((740.0..790.0).contains(&each), "{each}");
    }
}
