//! What is observed of a run.

use std::collections::{BTreeMap, HashMap};

use tautline_scenario::measure::Unit;
use tautline_transport::rate::Cause;
use tautline_units::{ByteCount, Duration, Instant};

use super::departure::{Departure, Sealed};

/// A link cut from one instant to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The link, by its place in [`Drive::links`](super::drive::Drive::links).
    pub link: usize,
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
}

/// One datagram on its way from vehicle to operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it left, in the world's time.
    pub at: Instant,
    /// The link's place among those of the run.
    pub link: u8,
    /// UDP payload.
    pub bytes: ByteCount,
    /// Whether it held a media packet.
    pub media: bool,
    /// When it arrived, if it did.
    pub arrived: Option<Instant>,
}

/// What was observed of a run.
#[derive(Debug)]
pub(super) struct Trail {
    /// From the world's beginning, the warm-up included.
    pub(super) length: Duration,
    /// From a unit's hand-over to its delivery, one way.
    pub(super) deadline: Duration,
    /// Media units a second.
    pub(super) units_per_second: u64,
    /// The first cut of a link, if there was one.
    pub(super) cut: Option<Cut>,
    /// Every media unit that the vehicle handed over.
    pub(super) units: Vec<Unit>,
    /// Every instant at which a unit was due and the budget zero.
    pub(super) pauses: Vec<Instant>,
    pub(super) departures: Vec<Departure>,
    pub(super) arrivals: Vec<(Sealed, Instant)>,
    /// Every command that the operator handed over.
    pub(super) commands: Vec<Unit>,
    /// Per link, what it took in the media's direction from the warm-up's end on.
    pub(super) carried: Vec<Carried>,
    /// How often each was why the first link's rate was what it was, after the warm-up.
    pub(super) causes: BTreeMap<Cause, u64>,
    /// A digest of everything that happened.
    pub(super) digest: u64,
}

/// What a link took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) datagrams: u64,
    /// UDP payload.
    pub(super) bytes: ByteCount,
    /// Datagrams that it dropped, for whatever reason.
    pub(super) dropped: u64,
    /// Datagrams that it marked.
    pub(super) marked: u64,
}

impl Trail {
    /// Returns every datagram of the session that left after the warm-up.
    pub(super) fn passages(&self) -> Vec<Passage> {
        let arrived: HashMap<Sealed, Instant> = self.arrivals.iter().copied().collect();
        let measured = Instant::ZERO + WARM_UP..Instant::ZERO + self.length;
        let departures = self.departures.iter().filter(|d| measured.contains(&d.at));
        let passages = departures.map(|departure| Passage {
            at: departure.at,
            link: departure.link,
            bytes: departure.bytes,
            media: departure.media,
            arrived: arrived.get(&departure.sealed).copied(),
        });
        passages.collect()
    }
}

/// Not measured: the first handshake, pings and steps of the rate control.
pub const WARM_UP: Duration = Duration::from_secs(2);
