use tautline_units::Instant;

/// State that only links over a stream have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stream {
    /// True while trusted datagram links carry the media and the stream carries only pings and
    /// reports.
    pub(super) is_standby: bool,
    /// True while the socket accepts no data.
    pub(super) is_blocked: bool,
    /// Send time of the newest ping on the active route that was answered; `None` before the first.
    pub(super) answered_at: Option<Instant>,
}
