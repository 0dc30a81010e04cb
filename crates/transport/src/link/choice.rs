use tautline_units::Instant;

/// What a link is among the ways of its group; a link without a group stands for itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Choice {
    pub(super) group: Option<u16>,
    pub(super) rank: u8,
    pub(super) stands_by: bool,
    pub(super) trusted_since: Option<Instant>,
    /// When anything last came over it.
    pub(super) heard_at: Instant,
    /// When a ping last went out of turn.
    pub(super) hurried_at: Instant,
}
