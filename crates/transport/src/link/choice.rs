use tautline_units::Instant;

/// Role of a link among the candidate pairs of its group; a link without a group is its own group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Choice {
    /// Number of the link's group; `None` for a link that is not one of several candidate pairs.
    pub(super) group: Option<u16>,
    /// Rank of the link within its group; lower is preferred.
    pub(super) rank: u8,
    /// True while the link is on standby; see [`Link::stands_by`](super::Link::stands_by).
    pub(super) stands_by: bool,
    /// Time since which the link has been trusted, as of the last election; `None` if it was not.
    pub(super) trusted_since: Option<Instant>,
    /// Time of the last datagram received over the link; [`Instant::ZERO`] before the first.
    pub(super) heard_at: Instant,
    /// Time at which a ping was last made due ahead of schedule; [`Instant::ZERO`] before the
    /// first.
    pub(super) hurried_at: Instant,
}
