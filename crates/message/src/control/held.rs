/// Maximum step of an epoch beyond the newest known one: one lease per minute for two years.
///
/// An epoch never decreases, so one far ahead would leave no room for later ones: it is refused and
/// not stored. Exhausting all epochs in steps of this size takes 2^44 leases.
pub const EPOCH_STEP_MAX: u64 = 1 << 20;

/// The newest lease under which an end was introduced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// Identifier of the lease, while the introduced process runs and has not received the end of
    /// the lease; else `None`.
    pub lease: Option<[u8; 16]>,
    /// Epoch of that lease, which only grows from one lease of a vehicle to the next.
    pub epoch: u64,
    /// Static public key of the peer under that lease.
    pub peer_key: [u8; 32],
}
