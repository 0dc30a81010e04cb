use std::net::SocketAddr;

use tautline_units::Instant;

/// A duplicate registration that was refused because the first machine answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Duplicate {
    pub(super) remote: SocketAddr,
    pub(super) at: Instant,
}
