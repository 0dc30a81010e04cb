//! The wireless network of a car ([CAR] 3.1): an access point and a station that share one channel.
//!
//! ```text
//! push(AccessPoint) -> [ 120 packets, drop tail ] --\
//! cross traffic ------>                              > one frame in the air at a time -> loss, bit error -> pop
//! push(Station) -----> [ 120 packets, drop tail ] --/
//! ```
//!
//! Unlike in a [`crate::link`], each side's frames use airtime of the other. That is why TCP, whose
//! acknowledgements are frames too, is slower than UDP. The model has no clock of its own: `push`,
//! [`Medium::next_event`] and `pop` serve virtual time and a forwarder of real packets alike.

mod config;
mod power;

use std::collections::VecDeque;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strum::VariantArray;
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

pub use config::{Config, Disturbance};
pub use power::Power;

/// One of the two stations that share the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Side {
    /// The access point, which forwards packets from the wire.
    AccessPoint,
    /// The station, which receives the video.
    Station,
}

/// A packet delivered to the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<P> {
    /// Time at which the packet arrived at the other side.
    pub at: Instant,
    /// Side that sent the packet.
    pub from: Side,
    /// Payload of the packet as pushed; a flipped bit is only reported.
    pub payload: P,
    /// Index of the bit of the packet that was flipped on the way; `None` if none was.
    pub damaged_bit: Option<u64>,
}

/// Packet counters of one side, without cross traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that the side was given to send.
    pub pushed: u64,
    /// Packets dropped because the side's queue was full.
    pub dropped_queue: u64,
    /// Packets of the side that were lost in the air.
    pub lost: u64,
    /// Packets of the side that arrived with a bit error.
    pub damaged: u64,
    /// Packets of the side that arrived, including damaged ones.
    pub arrived: u64,
}

/// Both directions of a wireless network, carrying payloads of type `P`.
#[derive(Debug)]
pub struct Medium<P> {
    config: Config,
    rng: ChaCha8Rng,
    queues: [VecDeque<Frame<P>>; Side::VARIANTS.len()],
    in_air: Option<InAir>,
    arrivals: VecDeque<Arrival<P>>,
    bitrate: Bitrate,
    bitrate_until: u64,
    disturbed_at: Option<u64>,
    now: u64,
    counters: [Counters; Side::VARIANTS.len()],
}

/// A queued packet; cross traffic has no payload.
#[derive(Debug)]
struct Frame<P> {
    bytes: u64,
    payload: Option<P>,
}

/// The transmission that occupies the channel until `end`.
#[derive(Clone, Copy, Debug)]
struct InAir {
    end: u64,
    /// The side whose first frame is sent; `None` for a collision.
    from: Option<Side>,
}

impl<P> Medium<P> {
    /// Creates an idle network; cross traffic, if any, starts at time zero.
    pub fn new(config: Config, seed: u64) -> Self {
        let bitrate = config.bitrates.first().copied().unwrap_or(Bitrate::ZERO);
        let disturbed_at = config.disturbance.map(|_| 0);
        Self {
            config,
            rng: ChaCha8Rng::seed_from_u64(seed),
            queues: [VecDeque::new(), VecDeque::new()],
            in_air: None,
            arrivals: VecDeque::new(),
            bitrate,
            bitrate_until: 0,
            disturbed_at,
            now: 0,
            counters: [Counters::default(); Side::VARIANTS.len()],
        }
    }

    /// Enqueues a packet of `bytes` bytes, IP header included. Returns false, and counts a drop, if
    /// the queue is full.
    pub fn push(&mut self, from: Side, bytes: ByteCount, payload: P, now: Instant) -> bool {
        self.advance(now);
        self.counters[from as usize].pushed += 1;
        let room = self.enqueue(from, bytes.get(), Some(payload));
        if !room {
            self.counters[from as usize].dropped_queue += 1;
        }
        self.begin(self.now);
        room
    }

    /// Returns the time of the next event, at which [`pop`](Self::pop) must be called; `None` if
    /// nothing is left to happen.
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.arrivals.front().map(|arrival| arrival.at);
        arrival.or(self.next_nanos().map(Instant::from_nanos))
    }

    /// Returns the next packet that has arrived by `now`; `None` if there is none.
    pub fn pop(&mut self, now: Instant) -> Option<Arrival<P>> {
        self.advance(now);
        self.arrivals.pop_front()
    }

    /// Returns the counters of a side.
    pub fn counters(&self, side: Side) -> Counters {
        self.counters[side as usize]
    }

    /// Returns the bytes queued at a side, cross traffic included.
    pub fn queued(&self, side: Side) -> ByteCount {
        ByteCount::new(self.queues[side as usize].iter().map(|frame| frame.bytes).sum())
    }

    fn enqueue(&mut self, from: Side, bytes: u64, payload: Option<P>) -> bool {
        let queue = &mut self.queues[from as usize];
        let room = queue.len() < self.config.queue_packets;
        if room {
            queue.push_back(Frame { bytes, payload });
        }
        room
    }

    fn next_nanos(&self) -> Option<u64> {
        [self.in_air.map(|it| it.end), self.disturbed_at].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Instant) {
        let now = now.as_nanos().max(self.now);
        while let Some(at) = self.next_nanos().filter(|at| *at <= now) {
            self.now = at;
            if let Some(in_air) = self.in_air.filter(|it| it.end == at) {
                self.in_air = None;
                self.finish(in_air);
            }
            self.disturb(at);
            self.begin(at);
        }
        self.now = now;
    }

    fn disturb(&mut self, at: u64) {
        if self.disturbed_at != Some(at) {
            return;
        }
        if let Some(Disturbance { bytes, interval }) = self.config.disturbance {
            // A full queue drops the packet of that flow.
            self.enqueue(Side::AccessPoint, bytes.get(), None);
            self.disturbed_at = Some(at + nanos(interval).max(1));
        }
    }

    /// Starts the next transmission if the channel is free and a side has a frame. If both have
    /// one, chance decides which is sent, or that they collide: both then stay queued.
    fn begin(&mut self, at: u64) {
        if self.in_air.is_some() {
            return;
        }
        let first = |side: Side| self.queues[side as usize].front().map(|frame| frame.bytes);
        let (from, bytes) = match (first(Side::AccessPoint), first(Side::Station)) {
            (None, None) => return,
            (Some(bytes), None) => (Some(Side::AccessPoint), bytes),
            (None, Some(bytes)) => (Some(Side::Station), bytes),
            (Some(one), Some(other)) => {
                if self.rng.random_bool(self.config.collisions) {
                    (None, one.max(other))
                } else if self.rng.random_bool(0.5) {
                    (Some(Side::AccessPoint), one)
                } else {
                    (Some(Side::Station), other)
                }
            }
        };
        self.draw_bitrate(at);
        let time = self.config.overhead + self.bitrate.time_for(ByteCount::new(bytes));
        self.in_air = Some(InAir { end: at + nanos(time), from });
    }

    fn draw_bitrate(&mut self, at: u64) {
        if at < self.bitrate_until || self.config.bitrates.is_empty() {
            return;
        }
        let index = self.rng.random_range(0..self.config.bitrates.len());
        self.bitrate = self.config.bitrates[index];
        self.bitrate_until = at + nanos(self.config.coherence).max(1);
    }

    fn finish(&mut self, in_air: InAir) {
        let Some(from) = in_air.from else { return };
        let Some(frame) = self.queues[from as usize].pop_front() else { return };
        let Some(payload) = frame.payload else { return };
        let counters = &mut self.counters[from as usize];
        if self.rng.random_bool(self.config.loss) {
            counters.lost += 1;
            return;
        }
        counters.arrived += 1;
        let damaged = self.rng.random_bool(self.config.damage);
        counters.damaged += u64::from(damaged);
        let damaged_bit = damaged.then(|| self.rng.random_range(0..frame.bytes.max(1) * 8));
        let at = Instant::from_nanos(in_air.end);
        self.arrivals.push_back(Arrival { at, from, payload, damaged_bit });
    }
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
