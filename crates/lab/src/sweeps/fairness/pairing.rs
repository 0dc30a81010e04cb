//! Flows that share a link with a session.

use std::fmt;

use tautline_units::{Duration, Instant};

/// The flow that competes with a session started at time zero. Its start is exact to 99 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pairing {
    /// Another session, started at the same time.
    Together,
    /// Another session, started 10 s later.
    Later,
    /// Another session started at the same time, whose return path is longer by two round trips.
    Farther,
    /// Bulk data over TCP with CUBIC, started 1 s later.
    Cubic,
    /// Bulk data over TCP with BBRv1, started 1 s later.
    Bbr,
    /// A call with libwebrtc's congestion control, started 1 s later.
    Gcc,
}

impl Pairing {
    /// All pairings.
    pub const ALL: [Self; 6] =
        [Self::Together, Self::Later, Self::Farther, Self::Cubic, Self::Bbr, Self::Gcc];

    /// Returns the name in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Together => "tautline",
            Self::Later => "tautline-10s-later",
            Self::Farther => "tautline-farther",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Gcc => "gcc",
        }
    }

    /// Returns whether the other flow is a session as well.
    pub const fn is_session(self) -> bool {
        match self {
            Self::Together | Self::Later | Self::Farther => true,
            Self::Cubic | Self::Bbr | Self::Gcc => false,
        }
    }

    /// Returns the build instructions if this build lacks support, otherwise `None`.
    pub const fn missing(self) -> Option<&'static str> {
        match self {
            Self::Gcc if cfg!(not(feature = "gcc")) => {
                Some("not built: cargo build --release --package tautline --features gcc")
            }
            _ => None,
        }
    }

    /// Returns the start time of the other flow, shifted by up to 99 ms depending on the seed to
    /// avoid phase locking.
    pub(super) fn begins(self, seed: u64) -> Instant {
        let at = match self {
            Self::Together | Self::Farther => Duration::ZERO,
            Self::Later => Duration::from_secs(10),
            Self::Cubic | Self::Bbr | Self::Gcc => Duration::from_secs(1),
        };
        Instant::ZERO + at + Duration::from_millis(seed * 13 % 100)
    }
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
