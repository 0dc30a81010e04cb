use tautline_sim::world;
use tautline_units::Instant;

/// A node's clock, which somebody may set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    node: world::Clock,
    /// By so much it was set ahead since the world's start.
    ahead_nanos: i64,
}

impl From<world::Clock> for Clock {
    fn from(node: world::Clock) -> Self {
        Self { node, ahead_nanos: 0 }
    }
}

impl Clock {
    /// Returns what this clock shows at the world's instant `world`.
    pub fn local(&self, world: Instant) -> Instant {
        self.node.local(world).offset_by_nanos(self.ahead_nanos)
    }

    /// Returns the first instant of the world at which this clock shows `local` or more.
    pub fn world(&self, local: Instant) -> Instant {
        self.node.world(self.node(local))
    }

    /// Returns the time of the world's clock for this node when this one shows `local`.
    pub(super) fn node(&self, local: Instant) -> Instant {
        local.offset_by_nanos(-self.ahead_nanos)
    }

    pub(super) fn set(&mut self, nanos: i64) {
        self.ahead_nanos += nanos;
    }
}

/// An instant as an endpoint sees it.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    clock: Clock,
    node: Instant,
}

impl Moment {
    pub(super) fn new(clock: Clock, node: Instant) -> Self {
        Self { clock, node }
    }

    /// Returns the endpoint's own time.
    pub fn local(&self) -> Instant {
        self.node.offset_by_nanos(self.clock.ahead_nanos)
    }

    /// Returns the world's time.
    pub fn world(&self) -> Instant {
        self.clock.node.world(self.node)
    }
}
