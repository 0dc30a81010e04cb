use tautline_units::{Bounded, ByteCount, Duration};

/// A reason why a session cannot begin.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field of the configuration has an invalid value.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The initiator got no route, or more than sixteen.
    #[error("a session needs 1 to 16 routes, got {found}")]
    Routes {
        /// Number of routes given.
        found: usize,
    },
}

/// An invalid value of a configuration field.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A field is out of its bounds.
    #[error("transport.{0}")]
    OutOfBounds(#[from] Bounded),
    /// Two fields contradict each other.
    #[error("transport.{field}: {wrong}")]
    Contradiction {
        /// Name of the field in TOML.
        field: &'static str,
        /// Description of the fault and of valid values.
        wrong: String,
    },
}

/// A reason why a unit was refused. A refused unit gets no number, and no part of it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The handshake is not complete.
    #[error("the session is not established")]
    NotEstablished,
    /// For media: no link may carry it at present. On any other channel: no link is up or has ever
    /// been up in this session.
    #[error("no link is up")]
    NoLink,
    /// The channel was not opened.
    #[error("{channel:?} is not open")]
    NotOpened {
        /// Number of the channel that was not opened.
        channel: crate::ChannelNumber,
    },
    /// The unit is longer than its channel can carry.
    #[error("the unit has {found}, its channel carries at most {most}")]
    TooLarge {
        /// Length of the unit.
        found: ByteCount,
        /// Length of the longest unit at the present datagram size.
        most: ByteCount,
    },
    /// The channel's cap alone, with nothing queued, delays the end of the unit beyond its
    /// deadline.
    #[error("the unit has {found}, its channel's cap carries at most {most} before the deadline")]
    OverCap {
        /// Length of the unit as the cap counts it.
        found: ByteCount,
        /// Length of the longest unit that the cap allows before the deadline.
        most: ByteCount,
    },
    /// The deadline is not within 1 ms to 30 s, the range of the wire format.
    #[error("the deadline of {found:?} is not within 1 ms to 30 s")]
    Deadline {
        /// Deadline given, as a time from the hand-over.
        found: Duration,
    },
    /// The queues are full, or hold more than the links or the channel's cap can send before the
    /// unit's deadline.
    #[error("the links' queues hold more than they can send before the deadline")]
    Congested,
}
