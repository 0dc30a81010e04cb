use tautline_units::{Bitrate, ByteCount, Duration};

/// Parameters of a simulated wireless network of an access point and a station.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Airtime of a frame beyond its bytes: gaps, backoff, preamble, and the radio's
    /// acknowledgement.
    pub overhead: Duration,
    /// Bitrates of the radio; one of them is drawn every [`coherence`](Self::coherence).
    pub bitrates: Vec<Bitrate>,
    /// Duration for which a drawn bitrate holds.
    pub coherence: Duration,
    /// Probability that two frames collide when both sides have one, so that they are sent again.
    pub collisions: f64,
    /// Probability that a packet is lost in spite of the radio's retransmissions.
    pub loss: f64,
    /// Probability that a packet which arrives has one flipped bit.
    pub damage: f64,
    /// Maximum packets in a side's queue; a further one is dropped.
    pub queue_packets: usize,
    /// Constant-rate cross traffic through the access point, if any.
    pub disturbance: Option<Disturbance>,
}

/// A flow that competes for the access point's queue and for airtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// Size of each packet of the flow, headers included.
    pub bytes: ByteCount,
    /// Time between two packets of the flow.
    pub interval: Duration,
}

impl Disturbance {
    /// Returns the highest rate of [CAR] Table 2: 2000 kB/s in UDP packets of 1328 bytes. The paper
    /// does not state the rate of its own disturbing flow.
    pub const fn of_table_2() -> Self {
        // A payload of 1328 bytes plus UDP and IP headers, every 664 us.
        Self { bytes: ByteCount::new(1328 + 28), interval: Duration::from_micros(664) }
    }
}
