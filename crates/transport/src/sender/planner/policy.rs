use std::fmt::Debug;

use tautline_units::{Bitrate, ByteCount, Instant};

use super::link::Link;
use crate::error::SendError;
use crate::protect::Plan;

/// A policy that plans media units.
pub trait Planner: Debug + Send {
    /// Plans a unit for `links`, those that may carry media, in order of their numbers.
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

    /// Returns the bytes that may be on their way beyond each link's window, since the last unit.
    fn reserve(&self) -> ByteCount {
        ByteCount::ZERO
    }

    /// Takes the totals of a delivery report: units delivered and lost. Older ones than before say
    /// nothing.
    fn on_delivery_report(&mut self, _delivered: u64, _lost: u64) {}

    /// Takes note of a packet that did not come in time, by chance or with its link.
    fn on_missed(&mut self, _by_chance: bool) {}

    /// Returns whether every packet that is assigned a link shall go over all others too.
    fn copies(&self) -> bool {
        false
    }
}

/// A media unit as a planner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Its length.
    pub bytes: ByteCount,
    /// When it must have arrived, on our clock.
    pub deadline: Instant,
}

/// A decision how a unit is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitPlan<'a> {
    /// How it is cut and protected.
    pub packets: Plan,
    /// For each packet the link's place among those given, or `None` for one that is not sent.
    pub assignment: &'a [Option<usize>],
}
