use std::net::SocketAddr;

use tautline_units::Instant;

/// Source and time of a duplicate registration that was refused in favour of another machine with
/// the same key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Duplicate {
    pub(super) remote: SocketAddr,
    pub(super) at: Instant,
}
