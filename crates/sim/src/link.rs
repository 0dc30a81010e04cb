//! One direction of one link: the treatment of a packet between two sockets.
//!
//! ```text
//! push -> policer -> [ queue: bytes, drop tail ] -> capacity -> loss, outages -> delay, jitter -> pop
//!                    | cross traffic, marks        | stopped by handovers and holding outages
//! ```
//!
//! The model has no clock of its own: `push`, [`Link::next_departure`] and `pop` serve virtual time
//! and a real-time relay alike, with one timer per link. Capacity, outages, handovers and jitter
//! depend on the seed and the time alone, never on the traffic: two senders with one seed see the
//! same link. The exception is cross traffic ([`Cubic`], [`Bbr`]), which shares the queue and
//! reacts to them. Correlated failures use the same property: the processes that links have in
//! common ([`Common`]) have a seed of their own.

mod bbr;
mod capacity;
mod common;
mod config;
mod cross_traffic;
mod cubic;
mod delay;
mod foreign;
mod interval;
mod l4s;
mod loss;
mod policer;
mod replay;
mod wander;

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::VariantArray;
use tautline_units::{ByteCount, Ecn, Instant};

pub use common::{Common, Dip};
pub use config::{
    Bbr, BurstLoss, Config, Cubic, Jitter, L4s, Policer, Retransmission, Step, Swing, TraceRate,
};
pub use interval::{Handover, Outage};
pub use replay::Replay;

use crate::Error;
use capacity::Capacity;
use delay::Delay;
use foreign::{Foreign, PACKET_BYTES};
use interval::{Gates, Intervals, stream_of};
use l4s::Ramp;
use loss::Loss;
use policer::Bucket;

/// Both directions of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Configuration of the direction from vehicle to operator.
    pub up: Config,
    /// Configuration of the direction from operator to vehicle.
    pub down: Config,
}

impl Pair {
    /// Returns a pair with the same configuration in both directions.
    pub fn symmetric(config: Config) -> Self {
        Self { up: config.clone(), down: config }
    }

    /// Builds both directions of one link: up, then down.
    ///
    /// They share their interruptions, as one radio does: configured alike, handovers and outages
    /// happen at the same instants in both. Nothing else is shared. Links built by this function
    /// also share the processes that their [`Common`] entries name.
    ///
    /// # Errors
    /// [`Error::Field`] for a field out of range, [`Error::TraceNotLoaded`],
    /// [`Error::RecordingNotLoaded`].
    pub fn links<P>(&self, seed: u64) -> Result<(Link<P>, Link<P>), Error> {
        self.links_of(Seeds::of(seed))
    }

    /// Builds both directions as [`Pair::links`] does, with explicit seeds, some of which other
    /// links may share.
    ///
    /// # Errors
    /// As [`Pair::links`].
    pub fn links_of<P>(&self, seeds: Seeds) -> Result<(Link<P>, Link<P>), Error> {
        let up = Link::with_seeds(&self.up, seeds)?;
        let down = Link::with_seeds(&self.down, Seeds { own: !seeds.own, ..seeds })?;
        Ok((up, down))
    }
}

/// The seeds of a link's random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// Seed of handovers and outages, equal for links that share a radio.
    pub radio: u64,
    /// Seed of the processes in [`Config::common`], equal for all links of one world.
    pub common: u64,
    /// Seed of all other random numbers of the link: capacity, jitter, losses, cross traffic.
    pub own: u64,
}

impl Seeds {
    /// Returns the seeds of a link with its own radio, in the world whose common seed is 0.
    pub const fn of(seed: u64) -> Self {
        Self { radio: seed, common: 0, own: seed }
    }
}

/// A reason why a packet did not arrive.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Drop {
    /// The queue had no room for the packet.
    Queue,
    /// Random loss, independent or in a burst.
    Loss,
    /// Loss of a packet that left the queue in a losing outage, or whose turn in the queue came
    /// while the link's recording lost packets.
    Outage,
    /// The link was cut.
    Cut,
    /// The packet exceeded the link's MTU.
    Size,
    /// The policer had no tokens left.
    Policer,
}

/// Counters of one direction of a link.
///
/// At every moment `pushed` is `delivered` plus all `dropped` plus [`Link::in_flight`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets offered to the link since the start.
    pub pushed: u64,
    /// Bytes of the packets offered to the link, without overhead.
    pub pushed_bytes: ByteCount,
    /// Packets delivered and taken by `pop`.
    pub delivered: u64,
    /// Bytes of the delivered packets, without overhead.
    pub delivered_bytes: ByteCount,
    /// Bytes of cross traffic that entered the queue, headers included.
    pub foreign_bytes: ByteCount,
    /// Packets that the L4S queue marked, including those lost afterwards.
    pub marked: u64,
    dropped: [u64; Drop::VARIANTS.len()],
}

impl Counters {
    /// Returns the packets dropped for `reason`.
    pub fn dropped(&self, reason: Drop) -> u64 {
        self.dropped[reason as usize]
    }

    /// Returns the packets dropped for all reasons together.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Returns every drop reason by name, with its count.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Drop::VARIANTS.iter().map(|reason| (reason.into(), self.dropped(*reason)))
    }
}

/// One direction of one link, carrying payloads of type `P` in order.
#[derive(Debug)]
pub struct Link<P> {
    capacity: Capacity,
    gates: Gates,
    losing: Vec<Intervals>,
    /// Times in which the link's recording lost packets, `None` without a recording; evaluated when
    /// a packet's turn in the queue comes, before it is held: a hold would shift the packet past
    /// the recorded loss.
    losing_recorded: Option<Intervals>,
    loss: Loss,
    delay: Delay,
    policer: Option<Bucket>,
    flows: Vec<Box<dyn Foreign>>,
    ramp: Option<Ramp>,
    reorder: bool,
    overhead: u64,
    queue_max: u64,
    mtu: u64,
    cut: bool,
    /// Nanoseconds added to the configured delay.
    delay_added: u64,
    now: u64,
    busy_until: u64,
    arrival_last: u64,
    queued: u64,
    waiting: VecDeque<Waiting>,
    flight: VecDeque<Flight<P>>,
    counters: Counters,
}

/// Queue space taken by a packet until it departs, whether or not it is lost afterwards.
#[derive(Debug)]
struct Waiting {
    departure: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Flight<P> {
    arrival: u64,
    bytes: ByteCount,
    payload: P,
}

/// Maximum number of packets that will arrive, queued or on the way, and also of packets in the
/// queue, cross traffic and later losses included. It bounds memory for tiny packets on long links.
/// Excess packets are counted as [`Drop::Queue`].
pub const PACKETS_MAX: usize = 1 << 16;

impl<P> Link<P> {
    /// Returns an independent link.
    ///
    /// # Errors
    /// [`Error::Field`] for a field out of range, [`Error::TraceNotLoaded`],
    /// [`Error::RecordingNotLoaded`].
    pub fn new(config: &Config, seed: u64) -> Result<Self, Error> {
        Self::with_seeds(config, Seeds::of(seed))
    }

    /// Returns a link that may share its interruptions with others.
    ///
    /// # Errors
    /// As [`Link::new`].
    pub fn with_seeds(config: &Config, seeds: Seeds) -> Result<Self, Error> {
        config.validate()?;
        let radio = |stream| stream_of(seeds.radio, stream);
        let own = |stream| stream_of(seeds.own, stream);
        let (losing_recorded, holding_recorded) = match &config.recording {
            Some(replay) => {
                let (lost, held) = replay.interruptions()?;
                (Some(lost), Some(held))
            }
            None => (None, None),
        };
        let gates = [
            Intervals::handovers(config.handover.as_ref(), radio(0)),
            Intervals::outages(config.outage_holding.as_ref(), radio(1)),
        ];
        let gates_common = config.common.iter().map(|common| common.holding(seeds.common));
        let losing = Intervals::outages(config.outage_losing.as_ref(), radio(2));
        let losing_common = config.common.iter().map(|common| common.losing(seeds.common));
        Ok(Self {
            gates: Gates::new(gates.into_iter().chain(gates_common).chain(holding_recorded)),
            losing: std::iter::once(losing)
                .chain(losing_common)
                .filter(|losing| !losing.is_never())
                .collect(),
            losing_recorded,
            capacity: Capacity::new(config, own(3), seeds.common)?,
            loss: Loss::new(config, own(4)),
            delay: Delay::new(config, own(5), own(6))?,
            policer: config.policer.as_ref().map(Bucket::new),
            flows: cross_traffic::of(config, own(7)),
            ramp: config.l4s.as_ref().map(Ramp::new),
            reorder: config.reorder,
            overhead: config.overhead_bytes,
            queue_max: config.queue_bytes,
            mtu: config.mtu_bytes.unwrap_or(u64::MAX),
            cut: false,
            delay_added: 0,
            now: 0,
            busy_until: 0,
            arrival_last: 0,
            queued: 0,
            waiting: VecDeque::new(),
            flight: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// Returns the ECN codepoint of a packet that is pushed next, at `now`. An L4S queue
    /// ([`Config::l4s`]) may mark an ECT(1) packet as CE, unless the link is cut; any other
    /// codepoint is unchanged.
    pub fn mark(&mut self, now: Instant, ecn: Ecn) -> Ecn {
        if ecn != Ecn::Ect1 || self.cut || self.ramp.is_none() {
            return ecn;
        }
        self.advance(now);
        let sojourn = self.busy_until.saturating_sub(self.now);
        if !self.ramp.as_mut().is_some_and(|ramp| ramp.marks(sojourn, self.queued)) {
            return ecn;
        }
        self.counters.marked += 1;
        Ecn::Ce
    }

    /// Takes a packet of `len` bytes into the link, or drops it.
    ///
    /// The fate of every packet is decided here, so that a log can record it. A packet lost in
    /// transit still takes its queue space and its share of the capacity. `len` excludes headers:
    /// [`Config::overhead_bytes`] is added. A `now` earlier than the last one counts as the last
    /// one. O(1), except for capacity steps and outages that pass in between.
    ///
    /// # Errors
    /// The reason why the packet will not arrive; it is counted.
    pub fn push(&mut self, now: Instant, len: ByteCount, payload: P) -> Result<(), Drop> {
        self.advance(now);
        self.counters.pushed += 1;
        self.counters.pushed_bytes += len;
        if self.cut {
            return self.drop_one(Drop::Cut);
        }
        let bytes = len.get().saturating_add(self.overhead).max(1);
        if bytes > self.mtu {
            return self.drop_one(Drop::Size);
        }
        if self.policer.as_mut().is_some_and(|policer| !policer.admits(bytes, self.now)) {
            return self.drop_one(Drop::Policer);
        }
        let start = self.now.max(self.busy_until);
        let Some(departure) = self.enqueue(bytes, self.now) else {
            return self.drop_one(Drop::Queue);
        };
        let delay = self.delay.of_next(departure).saturating_add(self.delay_added);
        let lost = self.loss.takes_next();
        let lost_recorded = self.losing_recorded.as_mut().is_some_and(|l| l.contain(start));
        if lost_recorded || self.losing.iter_mut().any(|losing| losing.contain(departure)) {
            return self.drop_one(Drop::Outage);
        }
        if lost {
            return self.drop_one(Drop::Loss);
        }
        self.launch(departure.saturating_add(delay), len, payload);
        Ok(())
    }

    /// Returns the arrival time of the next packet at the far end, or `None` if none is in flight.
    pub fn next_departure(&self) -> Option<Instant> {
        self.flight.front().map(|flight| Instant::from_nanos(flight.arrival))
    }

    /// Returns the next packet that has arrived by `now`, with its instant of arrival; `None` if
    /// there is none.
    pub fn pop(&mut self, now: Instant) -> Option<(Instant, P)> {
        self.advance(now);
        let arrived = self.flight.front().is_some_and(|flight| flight.arrival <= self.now);
        if !arrived {
            return None;
        }
        let flight = self.flight.pop_front()?;
        self.counters.delivered += 1;
        self.counters.delivered_bytes += flight.bytes;
        Some((Instant::from_nanos(flight.arrival), flight.payload))
    }

    /// Cuts the link, or restores it.
    ///
    /// A cut link drops everything in it and everything pushed. A restored link is empty.
    pub fn set_cut(&mut self, cut: bool) {
        self.cut = cut;
        if cut {
            self.counters.dropped[Drop::Cut as usize] += self.flight.len() as u64;
            self.flight.clear();
            self.waiting.clear();
            self.queued = 0;
            self.busy_until = 0;
            self.arrival_last = 0;
            self.capacity.restart();
        }
    }

    /// Adds `added` to the configured delay of every packet pushed from now on, in place of an
    /// amount set before. Without [`Config::reorder`], packets sent before a decrease still arrive
    /// first.
    pub fn set_delay_added(&mut self, added: Duration) {
        self.delay_added = added.as_nanos().try_into().unwrap_or(u64::MAX);
    }

    /// Returns whether the link is cut.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns the number of packets in the queue and in flight that will arrive.
    pub fn in_flight(&self) -> u64 {
        self.flight.len() as u64
    }

    /// Returns the bytes in the queue at the latest `now`, headers included.
    pub fn queued(&self) -> ByteCount {
        ByteCount::new(self.queued)
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn launch(&mut self, arrival: u64, bytes: ByteCount, payload: P) {
        let arrival = if self.reorder { arrival } else { arrival.max(self.arrival_last) };
        self.arrival_last = arrival;
        // Without reordering this is a push at the back.
        let earlier = self.flight.iter().rev().take_while(|other| other.arrival > arrival).count();
        self.flight.insert(self.flight.len() - earlier, Flight { arrival, bytes, payload });
    }

    /// Enqueues `bytes` bytes at the time `at`, behind all that is queued, and returns the
    /// departure time of the last one in ns; `None` if the queue is full.
    fn enqueue(&mut self, bytes: u64, at: u64) -> Option<u64> {
        let full = self.queued.saturating_add(bytes) > self.queue_max
            || self.flight.len() >= PACKETS_MAX
            || self.waiting.len() >= PACKETS_MAX;
        if full {
            return None;
        }
        let departure = self.capacity.finish(at.max(self.busy_until), bytes, &mut self.gates);
        self.busy_until = departure;
        self.queued += bytes;
        self.waiting.push_back(Waiting { departure, bytes });
        Some(departure)
    }

    fn leave(&mut self, at: u64) {
        while self.waiting.front().is_some_and(|waiting| waiting.departure <= at) {
            if let Some(waiting) = self.waiting.pop_front() {
                self.queued -= waiting.bytes;
            }
        }
    }

    /// Advances the cross traffic to `now`.
    fn compete(&mut self, now: u64) {
        let mut flows = std::mem::take(&mut self.flows);
        while let Some((at, flow)) = cross_traffic::first(&mut flows, now) {
            self.leave(at);
            flow.advance(at);
            while flow.may_send(at) {
                match self.enqueue(PACKET_BYTES, at) {
                    Some(departure) => {
                        self.counters.foreign_bytes += ByteCount::new(PACKET_BYTES);
                        flow.on_sent(at, departure, true);
                    }
                    None => flow.on_sent(at, self.busy_until.max(at), false),
                }
            }
        }
        self.flows = flows;
    }

    fn advance(&mut self, now: Instant) {
        let now = self.now.max(now.as_nanos());
        self.compete(now);
        self.leave(now);
        self.now = now;
        self.capacity.forget_before(self.now);
        self.gates.forget_before(self.now);
        for losing in self.losing.iter_mut().chain(&mut self.losing_recorded) {
            losing.forget_before(self.now);
        }
        self.delay.forget_before(self.now);
    }

    fn drop_one(&mut self, reason: Drop) -> Result<(), Drop> {
        self.counters.dropped[reason as usize] += 1;
        Err(reason)
    }
}

#[cfg(test)]
mod tests;
