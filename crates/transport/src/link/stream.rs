use tautline_units::Instant;

/// The state of a link that only one over a stream can have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stream {
    /// Whether links by datagrams live, so that it carries pings and nothing else.
    pub(super) is_standby: bool,
    /// Whether the socket takes nothing at present.
    pub(super) is_blocked: bool,
    /// When the newest ping left that was answered.
    pub(super) answered_at: Option<Instant>,
}
