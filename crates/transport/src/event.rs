use std::fmt;

use tautline_units::{Bitrate, Instant};

use crate::channel::{ChannelNumber, Descriptor};
use crate::life::State;
use crate::wire::{LinkNumber, VersionMismatch};

/// A unit's number within its channel and session: 0, 1, 2 .. in the order in which the sending
/// application handed the units over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitNumber(u64);

impl UnitNumber {
    /// Creates the unit number `number`; an application gets unit numbers from its session.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the unit number as an integer.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for UnitNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// An event that the session reports to its application.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The peer has proved its key; units can be sent as soon as a link is up.
    ///
    /// Repeats if the peer restarts: unit numbers then start at zero in both directions.
    Established,
    /// The two ends share no version, so no session is possible until one of them is updated. A
    /// present session continues. Reported once, and again if the peer's versions change.
    Refused {
        /// Versions that the two ends support, and which end to update.
        mismatch: VersionMismatch,
    },
    /// The peer announced one of its channels. Reported once per session.
    Announced {
        /// Number of the announced channel.
        channel: ChannelNumber,
        /// Descriptor of the announced channel.
        descriptor: Descriptor,
    },
    /// A unit arrived in time.
    Unit {
        /// Channel of the unit.
        channel: ChannelNumber,
        /// Number of the unit. A channel that keeps every unit may deliver them out of order.
        number: UnitNumber,
        /// Content of the unit.
        bytes: Vec<u8>,
        /// Time at which the peer's application handed the unit over, on our clock. `None` before
        /// the clocks are compared, and if that time lies ahead of now by more than the clock
        /// error.
        sent_at: Option<Instant>,
        /// True if repair packets replaced missing source packets.
        repaired: bool,
    },
    /// A unit that the peer sent will never be delivered.
    ///
    /// On a channel that keeps every unit, each unit ends in exactly one `Unit` or `UnitLost`. The
    /// exception is a peer that skips more numbers than the receiver tracks. On a newest-wins
    /// channel, a unit overtaken by a newer one is only counted.
    UnitLost {
        /// Channel of the unit.
        channel: ChannelNumber,
        /// Number of the unit.
        number: UnitNumber,
        /// Reason why the unit is lost.
        reason: LossReason,
    },
    /// The media budget changed.
    Budget {
        /// Rate of all media units together, without repair packets and headers, that the links can
        /// deliver in time; zero asks for a pause.
        media: Bitrate,
        /// Lower bound of the capacity of the links that may carry media together, as measured by
        /// probes; zero before the first result. At the start of a session `media` is a guess, and
        /// `shown` is measured.
        shown: Bitrate,
    },
    /// A link changed its state.
    Link {
        /// Number of the link.
        link: LinkNumber,
        /// New state of the link.
        state: State,
    },
}

/// A reason why a unit of the peer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LossReason {
    /// No packet of the unit arrived before the deadline.
    Missing,
    /// Some packets of the unit arrived before the deadline, but too few.
    Incomplete,
    /// The first packet of the unit arrived after the deadline.
    Late,
    /// The receiver's memory was needed for newer units, or a new session began.
    Evicted,
    /// The content of the unit cannot be recovered or parsed from its packets.
    Malformed,
}

/// The purpose of the next timeout of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A handshake message or hole punch is due, or a half-open handshake expires.
    Handshake,
    /// A ping, pong or report is due.
    Probe,
    /// A part of a channel's announcement is due.
    Announce,
    /// Pacing or a rate limit allows the next packet.
    Pacing,
    /// A received unit's deadline passes, or a sent unit must be checked for missing packets.
    Deadline,
    /// A link may become suspect or silent.
    Liveness,
}
