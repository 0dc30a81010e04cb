use tautline_units::Instant;

/// Role of a link among the candidate pairs of its group; a link without a group is its own group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Choice {
    pub(super) group: Option<u16>,
    pub(super) rank: u8,
    pub(super) stands_by: bool,
    pub(super) trusted_since: Option<Instant>,
    /// Time of the last datagram received over it.
    pub(super) heard_at: Instant,
    /// Time of the last ping sent ahead of schedule.
    pub(super) hurried_at: Instant,
}
