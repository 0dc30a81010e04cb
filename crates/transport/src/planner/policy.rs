use std::fmt::Debug;

use tautline_units::{Bitrate, ByteCount, Instant};

use super::config::Config;
use super::link::Link;
use crate::error::SendError;
use crate::protect::Plan;

/// A source of planners, one for each session.
pub trait Factory: Debug + Send + Sync {
    /// Creates the planner of one session.
    fn planner(&self, config: &Config) -> Box<dyn Planner>;
}

/// A policy that decides into which packets a media unit is cut and which link sends each.
pub trait Planner: Debug + Send {
    /// Plans a unit for `links`: those that may carry media, in order of link numbers.
    ///
    /// # Errors
    /// [`SendError::NoLink`], [`SendError::TooLarge`] or [`SendError::Congested`].
    fn plan(
        &mut self,
        unit: &Unit,
        links: &[Link],
        now: Instant,
    ) -> Result<UnitPlan<'_>, SendError>;

    /// Returns the rate of all media units together, without repair packets and headers, that the
    /// application may send over `links`; zero asks for a pause.
    fn budget(&self, links: &[Link], now: Instant) -> Bitrate;

    /// Returns the bytes by which media in flight may exceed each link's window, as of the last
    /// unit. By default, zero.
    fn reserve(&self) -> ByteCount {
        ByteCount::ZERO
    }

    /// Handles the totals of media units delivered and lost since the session began, from a
    /// delivery report. Totals older than the last ones must be ignored. By default, does nothing.
    fn on_delivery_report(&mut self, _delivered: u64, _lost: u64) {}

    /// Records a media packet that did not arrive in time: by chance, if the argument is true, or
    /// by a failure of its link. By default, does nothing.
    fn on_missed(&mut self, _by_chance: bool) {}

    /// Returns whether every packet assigned to a link is also sent over all others that may carry
    /// media. By default, false.
    fn copies(&self) -> bool {
        false
    }
}

/// The length and the deadline of a media unit, from which a planner decides how it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Length of the unit.
    pub bytes: ByteCount,
    /// Latest useful arrival time, on our clock.
    pub deadline: Instant,
}

/// A decision about how a unit is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitPlan<'a> {
    /// Number of source and repair packets, and the length of each.
    pub packets: Plan,
    /// For each packet, the index of its link among those passed to [`Planner::plan`]; `None` for a
    /// packet that is not sent.
    pub assignment: &'a [Option<usize>],
}
