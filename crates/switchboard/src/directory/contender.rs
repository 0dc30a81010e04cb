use tautline_units::Instant;

use super::claim::Claim;
use super::connection_id::ConnectionId;

/// A registration that waits until the connection with its key answers or ends.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) id: ConnectionId,
    pub(super) claim: Claim,
    pub(super) since: Instant,
}
