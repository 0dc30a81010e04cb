use tautline_units::Instant;

use super::claim::Claim;
use super::connection_id::ConnectionId;

/// A duplicate registration, which waits until the connection that is registered under the same key
/// answers a ping or ends.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) id: ConnectionId,
    pub(super) claim: Claim,
    pub(super) since: Instant,
}
