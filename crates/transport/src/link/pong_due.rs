use tautline_units::Instant;

use super::route::Route;
use crate::wire::Pong;

/// A pong to be sent to the route of its ping.
#[derive(Debug, Clone, Copy)]
pub(super) struct PongDue {
    pub(super) route: Route,
    pub(super) id: u32,
    pub(super) received_at: Instant,
}

impl PongDue {
    /// Returns the pong as sent at `now`.
    pub(super) fn pong(&self, now: Instant) -> Pong {
        Pong { id: self.id, received_at: self.received_at, sent_at: now }
    }
}
