/// Counts of the datagrams and units that the event loop itself has dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Datagrams that arrived while there was no session, and were not a relay's.
    pub no_session: u64,
    /// Datagrams for which the send buffer of a socket or connection was full.
    pub send_full: u64,
    /// Datagrams that could not be sent: no socket, no route, interface down.
    pub send_refused: u64,
    /// Datagrams that exceeded the MTU of the interface.
    pub send_too_large: u64,
    /// Units that the transport refused: no session, no link, too large, queue full.
    pub unit_refused: u64,
    /// Units that arrived in a successor session, which is not delivered before it takes over.
    pub unit_of_successor: u64,
    /// Datagrams for a link over TLS without a connection.
    pub stream_absent: u64,
    /// Refused connections over TLS, in either direction: an unknown key, a failed handshake, too
    /// many at once.
    pub stream_refused: u64,
    /// Connections over TLS that the kernel could not accept, for instance without a free file.
    pub stream_not_accepted: u64,
    /// Connections over TLS with malformed framing of datagrams.
    pub stream_malformed: u64,
}

impl Drops {
    /// Returns every counter with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("loop: no session", self.no_session),
            ("loop: send buffer full", self.send_full),
            ("loop: send refused", self.send_refused),
            ("loop: send too large", self.send_too_large),
            ("loop: unit refused", self.unit_refused),
            ("loop: unit of a session that waits", self.unit_of_successor),
            ("loop: no connection for a link over TLS", self.stream_absent),
            ("loop: connection over TLS refused", self.stream_refused),
            ("loop: connection over TLS not accepted", self.stream_not_accepted),
            ("loop: connection over TLS malformed", self.stream_malformed),
        ]
        .into_iter()
    }
}
