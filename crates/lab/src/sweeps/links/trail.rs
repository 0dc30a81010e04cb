//! Observations of a run.

use std::collections::{BTreeMap, HashMap};

use tautline_scenario::measure::Unit;
use tautline_transport::rate::Cause;
use tautline_units::{ByteCount, Duration, Instant};

use super::departure::{Departure, Sealed};

/// A link cut from one instant to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Index of the link in [`Drive::links`](super::drive::Drive::links).
    pub link: usize,
    /// Start of the cut.
    pub from: Instant,
    /// End of the cut.
    pub to: Instant,
}

/// One datagram from vehicle to operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Departure, in world time.
    pub at: Instant,
    /// Index of the link in the run.
    pub link: u8,
    /// UDP payload size.
    pub bytes: ByteCount,
    /// True if the datagram contained a media packet.
    pub media: bool,
    /// Arrival of the datagram, in world time; `None` if it was lost.
    pub arrived: Option<Instant>,
}

/// Observations of a run.
#[derive(Debug)]
pub(super) struct Trail {
    /// Duration from the world's start, warm-up included.
    pub(super) length: Duration,
    /// Maximum time from a unit's sending to its delivery, one way, for it to be on time.
    pub(super) deadline: Duration,
    /// Media units per second.
    pub(super) units_per_second: u64,
    /// The first cut of a link, if any.
    pub(super) cut: Option<Cut>,
    /// All media units that the vehicle offered.
    pub(super) units: Vec<Unit>,
    /// Instants at which a unit was due and the budget was zero.
    pub(super) pauses: Vec<Instant>,
    pub(super) departures: Vec<Departure>,
    pub(super) arrivals: Vec<(Sealed, Instant)>,
    /// All commands that the operator offered.
    pub(super) commands: Vec<Unit>,
    /// Load of each link in the media's direction, after the warm-up.
    pub(super) carried: Vec<Carried>,
    /// Number of samples after the warm-up in which each cause limited the first link's rate.
    pub(super) causes: BTreeMap<Cause, u64>,
    /// Digest of all events.
    pub(super) digest: u64,
}

/// Load of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) datagrams: u64,
    /// Sum of the UDP payload sizes of the datagrams given to the link.
    pub(super) bytes: ByteCount,
    /// Datagrams dropped for any reason.
    pub(super) dropped: u64,
    /// Datagrams marked.
    pub(super) marked: u64,
}

impl Trail {
    /// Returns all datagrams of the session that were sent after the warm-up.
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

/// Time from the start of a run that is excluded from the measurement: the first handshake and
/// pings, and the startup of the rate control.
pub const WARM_UP: Duration = Duration::from_secs(2);
