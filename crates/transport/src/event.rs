use std::fmt;

use tautline_units::{Bitrate, Instant};

use crate::channel::{ChannelNumber, Descriptor};
use crate::life::State;
use crate::wire::{LinkNumber, VersionMismatch};

/// A unit's number within its channel and session: 0, 1, 2 .. in order of hand-over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitNumber(u64);

impl UnitNumber {
    /// Makes the number `number`, as a session or a stand-in for one gives it.
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

/// What the session tells its application.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The peer has proved its key; units can be sent as soon as a link is up.
    ///
    /// Comes again if the peer began anew: unit numbers start at zero in both directions.
    Established,
    /// The peer and this end speak no version in common: there will be no session before one of
    /// them is updated. A present session goes on. Told once, and again if the peer has changed.
    Refused {
        /// Who speaks what, and which end to update.
        mismatch: VersionMismatch,
    },
    /// The peer announced one of its channels. Told once in a session.
    Announced {
        /// The channel.
        channel: ChannelNumber,
        /// What it carries.
        descriptor: Descriptor,
    },
    /// A unit arrived in time.
    Unit {
        /// Its channel.
        channel: ChannelNumber,
        /// Its number; those of a channel that counts every unit may come out of order.
        number: UnitNumber,
        /// Its content.
        bytes: Vec<u8>,
        /// When the peer handed it over, on our clock; `None` before the clocks are compared.
        sent_at: Option<Instant>,
        /// Whether repair packets stood in for missing source packets.
        repaired: bool,
    },
    /// A unit that the peer sent will never be delivered.
    ///
    /// The units of a channel that counts every one all end in exactly one `Unit` or `UnitLost`,
    /// unless the peer skips more numbers than the receiver follows. Where the newest wins, a unit
    /// that a newer one overtook is only counted.
    UnitLost {
        /// Its channel.
        channel: ChannelNumber,
        /// Its number.
        number: UnitNumber,
        /// Why.
        reason: LossReason,
    },
    /// The application may send this much.
    Budget {
        /// Source bits per second of all media units together; zero asks for a pause.
        media: Bitrate,
        /// What probes have shown that the links carry at least, bit/s; zero while nothing is known. In a session's
        /// first moments `media` is a guess, and this what is known.
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
    /// No packet of it came before the deadline.
    Missing,
    /// Too few packets came before the deadline.
    Incomplete,
    /// Its first packet came after the deadline.
    Late,
    /// The receiver's memory was needed for newer units, or a new session has begun.
    Evicted,
    /// Its packets contradict each other or its block cannot be parsed.
    Malformed,
}

/// A reason why the session wants to be called.
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
