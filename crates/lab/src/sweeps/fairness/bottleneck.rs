//! The shared links.

use tautline_sim::link::{Config, Pair};
use tautline_units::{Bitrate, ByteCount, Duration};

/// A link that two flows share, with equal directions except for the queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    /// Rate, and drain time of a full queue: `10mbps-15ms`.
    pub name: String,
    /// Capacity of each direction, IP and UDP headers included.
    pub rate: Bitrate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Size of the drop-tail queue.
    pub queue: ByteCount,
    /// Queue size in bandwidth-delay products.
    pub queue_bdp: f64,
}

impl Bottleneck {
    /// Returns all links to test: 10 Mbit/s and 15 ms each way, and 3 Mbit/s and 30 ms, each with
    /// four queues.
    pub fn all() -> Vec<Self> {
        let links = [(10, Duration::from_millis(15)), (3, Duration::from_millis(30))];
        let of = |(mbps, delay): (u64, Duration)| {
            QUEUES_BDP.map(move |bdp| Self::new(Bitrate::from_mbps(mbps), delay, bdp))
        };
        links.into_iter().flat_map(of).collect()
    }

    fn new(rate: Bitrate, delay: Duration, queue_bdp: f64) -> Self {
        let drains = (delay * 2).mul_f64(queue_bdp);
        let name = format!("{}mbps-{}ms", rate.bps() / 1_000_000, drains.as_millis());
        Self { name, rate, delay, queue: rate * drains, queue_bdp }
    }

    /// Returns the round-trip time without queueing.
    pub fn round_trip(&self) -> Duration {
        self.delay * 2
    }

    /// Returns the transmission time of a datagram of `bytes` bytes, headers included.
    pub fn time_of(&self, bytes: ByteCount) -> Duration {
        Duration::from_secs_f64(bytes.get() as f64 * 8.0 / self.rate.as_f64())
    }

    /// Returns the configuration of both directions of the link: only the upward one, which carries
    /// the media, has the limited queue.
    pub(super) fn pair(&self) -> Pair {
        let down = Config::of_rate(self.rate).with_delay(self.delay);
        Pair { up: Config { queue_bytes: self.queue.get(), ..down.clone() }, down }
    }
}

const QUEUES_BDP: [f64; 4] = [0.5, 1.0, 4.0, 16.0];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_named_by_the_time_in_which_it_drains() {
        let all = Bottleneck::all();
        let names: Vec<&str> = all.iter().map(|bottleneck| bottleneck.name.as_str()).collect();
        let ten = ["10mbps-15ms", "10mbps-30ms", "10mbps-120ms", "10mbps-480ms"];
        let three = ["3mbps-30ms", "3mbps-60ms", "3mbps-240ms", "3mbps-960ms"];
        assert_eq!(names, [ten, three].concat());
        assert_eq!(all[1].queue, ByteCount::new(37_500));
        assert_eq!(all[0].time_of(ByteCount::new(1_250)), Duration::from_millis(1));
    }
}
