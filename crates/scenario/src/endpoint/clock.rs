use tautline_sim::world;
use tautline_units::Instant;

/// A node's clock that can be set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    node: world::Clock,
    /// Sum of all settings since the world's start in ns: positive if the clock was set ahead.
    ahead_nanos: i64,
}

impl From<world::Clock> for Clock {
    fn from(node: world::Clock) -> Self {
        Self { node, ahead_nanos: 0 }
    }
}

impl Clock {
    /// Returns the time on this clock at the world's instant `world`.
    pub fn local(&self, world: Instant) -> Instant {
        self.node.local(world).offset_by_nanos(self.ahead_nanos)
    }

    /// Returns the first instant of the world at which this clock shows at least `local`.
    pub fn world(&self, local: Instant) -> Instant {
        self.node.world(self.node(local))
    }

    /// Converts this clock's `local` to the time of the node's clock in the world.
    pub(super) fn node(&self, local: Instant) -> Instant {
        local.offset_by_nanos(-self.ahead_nanos)
    }

    pub(super) fn set(&mut self, nanos: i64) {
        self.ahead_nanos += nanos;
    }
}

/// An instant at an endpoint, convertible to local and world time.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    clock: Clock,
    node: Instant,
}

impl Moment {
    pub(super) fn new(clock: Clock, node: Instant) -> Self {
        Self { clock, node }
    }

    /// Returns the endpoint's local time.
    pub fn local(&self) -> Instant {
        self.node.offset_by_nanos(self.clock.ahead_nanos)
    }

    /// Returns the world's time.
    pub fn world(&self) -> Instant {
        self.clock.node.world(self.node)
    }
}
