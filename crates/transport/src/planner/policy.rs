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

/// A policy that plans media units.
pub trait Planner: Debug + Send {
    /// Plans a unit for `links`, those that may carry media, in order of link numbers.
    ///
    /// # Errors
    /// [`SendError::NoLink`], [`SendError::TooLarge`] or [`SendError::Congested`].
    fn plan(
        &mut self,
        unit: &Unit,
        links: &[Link],
        now: Instant,
    ) -> Result<UnitPlan<'_>, SendError>;

    /// Returns the source bits per second that the application may send over `links`.
    fn budget(&self, links: &[Link], now: Instant) -> Bitrate;

    /// Returns the bytes that may be in flight beyond each link's window, as of the last unit.
    fn reserve(&self) -> ByteCount {
        ByteCount::ZERO
    }

    /// Handles the totals of a delivery report: units delivered and lost. Totals older than the
    /// last ones are ignored.
    fn on_delivery_report(&mut self, _delivered: u64, _lost: u64) {}

    /// Records a packet that did not arrive in time, by random loss or by a failure of its link.
    fn on_missed(&mut self, _by_chance: bool) {}

    /// Returns whether every packet assigned to a link is also sent over all others.
    fn copies(&self) -> bool {
        false
    }
}

/// A media unit as a planner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Its length.
    pub bytes: ByteCount,
    /// Latest arrival time, on our clock.
    pub deadline: Instant,
}

/// A decision about how a unit is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitPlan<'a> {
    /// Cut and protection.
    pub packets: Plan,
    /// Index of the link for each packet, or `None` for a packet that is not sent.
    pub assignment: &'a [Option<usize>],
}
