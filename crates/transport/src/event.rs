use std::fmt;

use tautline_units::{Bitrate, Instant};

use crate::channel::{ChannelNumber, Descriptor};
use crate::life::State;
use crate::wire::{LinkNumber, VersionMismatch};

/// A unit's number within its channel and session: 0, 1, 2 .. in order of hand-over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitNumber(u64);

impl UnitNumber {
    /// Creates the number `number`, as a session or a test double does.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
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
        /// Versions of both ends, and which end to update.
        mismatch: VersionMismatch,
    },
    /// The peer announced one of its channels. Reported once per session.
    Announced {
        /// The channel.
        channel: ChannelNumber,
        /// Its descriptor.
        descriptor: Descriptor,
    },
    /// A unit arrived in time.
    Unit {
        /// Its channel.
        channel: ChannelNumber,
        /// Its number. A channel that keeps every unit may deliver them out of order.
        number: UnitNumber,
        /// Its content.
        bytes: Vec<u8>,
        /// Hand-over time at the peer, on our clock; `None` before the clocks are compared.
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
        /// Its channel.
        channel: ChannelNumber,
        /// Its number.
        number: UnitNumber,
        /// The reason.
        reason: LossReason,
    },
    /// The media budget changed.
    Budget {
        /// Source bits per second of all media units together; zero asks for a pause.
        media: Bitrate,
        /// Lower bound of the links' capacity as measured by probes, bit/s; zero before the first
        /// result. At the start of a session `media` is a guess, and this is the measured value.
        shown: Bitrate,
    },
    /// A link changed its state.
    Link {
        /// The link.
        link: LinkNumber,
        /// Its new state.
        state: State,
    },
}

/// A reason why a unit was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LossReason {
    /// No packet of it arrived before the deadline.
    Missing,
    /// Too few packets arrived before the deadline.
    Incomplete,
    /// Its first packet arrived after the deadline.
    Late,
    /// The receiver's memory was needed for newer units, or a new session began.
    Evicted,
    /// Its packets contradict each other or its block cannot be parsed.
    Malformed,
}

/// A reason for the next timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A handshake message is due again.
    Handshake,
    /// A ping, pong or report is due.
    Probe,
    /// A part of a channel's announcement is due.
    Announce,
    /// A paced packet may leave.
    Pacing,
    /// A unit's deadline passes.
    Deadline,
    /// A link may have fallen silent.
    Liveness,
}
