use tautline_units::Instant;

use super::route::Route;
use crate::wire::Pong;

/// A pong to be sent to the route that its ping came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct PongDue {
    pub(super) route: Route,
    pub(super) id: u32,
    pub(super) received_at: Instant,
}

impl PongDue {
    /// Returns the packet of the pong, with `now` as its send time.
    pub(super) fn pong(&self, now: Instant) -> Pong {
        Pong { id: self.id, received_at: self.received_at, sent_at: now }
    }
}
