use tautline_units::Instant;

/// State that only links over a stream have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stream {
    /// True while datagram links are alive and the stream carries only pings.
    pub(super) is_standby: bool,
    /// True while the socket accepts no data.
    pub(super) is_blocked: bool,
    /// Send time of the newest answered ping.
    pub(super) answered_at: Option<Instant>,
}
