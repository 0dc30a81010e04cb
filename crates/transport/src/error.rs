use tautline_units::{ByteCount, Duration};

/// A reason why a session cannot begin.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The initiator got no route, or more than sixteen.
    #[error("a session needs 1 to 16 routes, got {found}")]
    Routes {
        /// Routes given.
        found: usize,
    },
}

/// A configuration field with an invalid value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("transport.{field}: {wrong}")]
pub struct ConfigError {
    /// Name of the field in TOML.
    pub field: &'static str,
    /// Description of the fault and of valid values.
    pub wrong: String,
}

/// A reason why a unit was refused; it has no number and no part of it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The handshake is not complete.
    #[error("the session is not established")]
    NotEstablished,
    /// No link is up: media pauses, and a command cannot be sent.
    #[error("no link is up")]
    NoLink,
    /// The channel was not opened.
    #[error("{channel:?} is not open")]
    NotOpened {
        /// The channel given.
        channel: crate::ChannelNumber,
    },
    /// The unit is longer than its channel can carry.
    #[error("the unit has {found}, its channel carries at most {most}")]
    TooLarge {
        /// The unit's length.
        found: ByteCount,
        /// The longest unit at the present packet size and code rate.
        most: ByteCount,
    },
    /// The unit takes longer than its deadline at the channel's cap.
    #[error("the unit has {found}, its channel's cap carries at most {most} before the deadline")]
    OverCap {
        /// The unit's length.
        found: ByteCount,
        /// The longest unit that the cap allows before the deadline.
        most: ByteCount,
    },
    /// The deadline is zero or beyond the range of the wire format.
    #[error("the deadline of {found:?} is not within 1 ms to 30 s")]
    Deadline {
        /// The deadline given.
        found: Duration,
    },
    /// No link can deliver any of it in time at the granted rates: the queues are full.
    #[error("the links' queues hold more than they can send before the deadline")]
    Congested,
}
