use std::net::SocketAddr;

use tautline_units::Instant;

/// Source and time of a duplicate registration that was refused because the machine registered
/// first under the same key answered a ping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Duplicate {
    pub(super) remote: SocketAddr,
    pub(super) at: Instant,
}
