//! One direction of one link: what happens to a packet between two sockets.
//!
//! ```text
//! push -> policer -> [ queue: bytes, drop tail ] -> capacity -> loss, outages -> delay, jitter -> pop
//!                    | another's flow, marks        | stopped by handovers and outages that hold
//! ```
//!
//! The model has no clock of its own: `push`, [`Link::next_departure`] and `pop` serve virtual
//! time and a real-time relay alike, with one timer per link. Capacity, outages, handovers and
//! jitter depend on the seed and the time alone, never on the traffic: two senders with one seed
//! meet the same link, unless others' flows ([`Cubic`], [`Bbr`]), which make way as they do, share its queue. That is also how links come to fail together: what they have in common
//! ([`Common`]) begins at a seed of its own.

mod bbr;
mod capacity;
mod common;
mod config;
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
    /// From vehicle to operator.
    pub up: Config,
    /// From operator to vehicle.
    pub down: Config,
}

impl Pair {
    /// Returns the same in both directions.
    pub fn symmetric(config: Config) -> Self {
        Self { up: config.clone(), down: config }
    }

    /// Makes both directions of one link: up, then down.
    ///
    /// They share their interruptions (one radio: where both have the same handovers or outages,
    /// these come at the same instants) and nothing else. With other links they share what their
    /// [`Common`] says, if these are made by this function too.
    ///
    /// # Errors
    /// [`Error::Field`] for a field out of range, [`Error::TraceNotLoaded`],
    /// [`Error::RecordingNotLoaded`].
    pub fn links<P>(&self, seed: u64) -> Result<(Link<P>, Link<P>), Error> {
        self.links_of(Seeds::of(seed))
    }

    /// Builds as [`Pair::links`] does, with seeds of which some may be other links' too.
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
    /// Handovers and outages: equal for links that share a radio.
    pub radio: u64,
    /// What [`Config::common`] names: equal for all links of one world.
    pub common: u64,
    /// Everything else.
    pub own: u64,
}

impl Seeds {
    /// Returns those of a link with a radio of its own, in the world whose common seed is 0.
    pub const fn of(seed: u64) -> Self {
        Self { radio: seed, common: 0, own: seed }
    }
}

/// A reason why a packet did not get through.
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
    /// The queue was full.
    Queue,
    /// It was lost by chance, alone or in a burst.
    Loss,
    /// It was lost in an outage.
    Outage,
    /// The link was cut.
    Cut,
    /// It was larger than the link carries.
    Size,
    /// A policer had no tokens for it.
    Policer,
}

/// What a link has done so far.
///
/// At every moment `pushed` is `delivered` plus all `dropped` plus [`Link::in_flight`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came to the link.
    pub pushed: u64,
    /// Bytes that came to the link, without overhead.
    pub pushed_bytes: ByteCount,
    /// Packets that got through and were taken.
    pub delivered: u64,
    /// Bytes that got through, without overhead.
    pub delivered_bytes: ByteCount,
    /// Bytes of others' flows that came into the queue, headers included.
    pub foreign_bytes: ByteCount,
    /// Packets that were marked, if they were lost afterwards as well.
    pub marked: u64,
    dropped: [u64; Drop::VARIANTS.len()],
}

impl Counters {
    /// Returns the packets dropped for this reason.
    pub fn dropped(&self, reason: Drop) -> u64 {
        self.dropped[reason as usize]
    }

    /// Returns the packets dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Returns every reason by name, with its count.
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
    /// Recorded losses: by when a packet's turn comes, as the recorder's packets had none before
    /// them; a hold would take it past its time.
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
    /// Nanoseconds beside the configured delay.
    delay_added: u64,
    now: u64,
    busy_until: u64,
    arrival_last: u64,
    queued: u64,
    waiting: VecDeque<Waiting>,
    flight: VecDeque<Flight<P>>,
    counters: Counters,
}

/// A packet's hold on the queue until it departs, whether it is lost afterwards or not.
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

/// Packets that a link holds at most, waiting and in flight together: a bound on memory for tiny
/// packets on long links. What exceeds it is counted as [`Drop::Queue`].
pub const PACKETS_MAX: usize = 1 << 16;

impl<P> Link<P> {
    /// Returns a link of its own.
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
            flows: foreign::of(config, own(7)),
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

    /// Returns the codepoint with which a packet leaves that is pushed next, at `now`: that of an L4S queue's mark where
    /// [`Config::l4s`] has it so, else its own.
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

    /// Takes a packet of `len` bytes in.
    ///
    /// The fate of every packet is decided here, so that a log can tell it; a packet that is lost
    /// on the way still takes its place in the queue and its share of the capacity. `len` is
    /// without headers: [`Config::overhead_bytes`] is added. A `now` before the last one counts
    /// as the last one. O(1), save for capacity and outages that pass meanwhile.
    ///
    /// # Errors
    /// The reason why it will not arrive, counted.
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

    /// Returns when the next packet arrives at the far end; `None`: none is on its way.
    pub fn next_departure(&self) -> Option<Instant> {
        self.flight.front().map(|flight| Instant::from_nanos(flight.arrival))
    }

    /// Returns the next packet that has arrived by `now`, with its instant of arrival.
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
    /// A cut link loses all that it holds and all that comes. A restored one is empty.
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

    /// Delays every packet that comes from now on by so much more than the configuration says; those
    /// on their way before a shorter delay still arrive first.
    pub fn set_delay_added(&mut self, added: Duration) {
        self.delay_added = added.as_nanos().try_into().unwrap_or(u64::MAX);
    }

    /// Returns whether the link is cut.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns the packets on their way that will arrive, in the queue and behind it.
    pub fn in_flight(&self) -> u64 {
        self.flight.len() as u64
    }

    /// Returns bytes waiting in the queue at the latest `now`, headers included.
    pub fn queued(&self) -> ByteCount {
        ByteCount::new(self.queued)
    }

    /// Returns what the link has done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn launch(&mut self, arrival: u64, bytes: ByteCount, payload: P) {
        let arrival = if self.reorder { arrival } else { arrival.max(self.arrival_last) };
        self.arrival_last = arrival;
        // In order unless asked otherwise: then this is a push at the back.
        let earlier = self.flight.iter().rev().take_while(|other| other.arrival > arrival).count();
        self.flight.insert(self.flight.len() - earlier, Flight { arrival, bytes, payload });
    }

    /// Lets `bytes` bytes into the queue and returns when the last of them leaves it; `None` if it is full.
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

    /// Does what others' flows do until `now`.
    fn compete(&mut self, now: u64) {
        let mut flows = std::mem::take(&mut self.flows);
        while let Some((at, flow)) = foreign::first(&mut flows, now) {
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
