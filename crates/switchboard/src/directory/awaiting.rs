use super::connection_id::ConnectionId;

/// A supervisor's connection that waits for a vehicle's answers to an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaiting {
    pub(super) to: ConnectionId,
    /// Number of answers that are still forwarded to this supervisor.
    pub(super) left: u32,
}
