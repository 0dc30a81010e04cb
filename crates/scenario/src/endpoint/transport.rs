use tautline_transport::{ChannelNumber, Event, Route, SendError, Session, UnitNumber};
use tautline_units::{Duration, Ecn, Instant};

/// Transport of an application's units: a session, or a stand-in for one.
///
/// The methods are those of [`Session`].
pub trait Transport {
    /// Accepts a unit for sending to the peer, and returns its number.
    ///
    /// # Errors
    /// The reason for refusing the unit.
    fn send(
        &mut self,
        channel: ChannelNumber,
        unit: &[u8],
        deadline: Duration,
        now: Instant,
    ) -> Result<UnitNumber, SendError>;
    /// Handles an incoming datagram.
    fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant);
    /// Handles an incoming datagram with codepoint `ecn`, which a stand-in ignores.
    fn handle_marked(&mut self, route: Route, datagram: &[u8], _ecn: Ecn, now: Instant) {
        self.handle_datagram(route, datagram, now);
    }
    /// Writes the next datagram into `buffer` and returns its route; `None` if there is none now.
    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route>;
    /// Returns the codepoint of the datagram written last.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    /// Returns the next event; `None` if all were returned.
    fn poll_event(&mut self) -> Option<Event>;
    /// Returns the next time at which [`Transport::handle_timeout`] is due; `None` if nothing is
    /// due.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Handles all expired timers.
    fn handle_timeout(&mut self, now: Instant);
}

impl Transport for Session {
    fn send(
        &mut self,
        channel: ChannelNumber,
        unit: &[u8],
        deadline: Duration,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        Session::send(self, channel, unit, deadline, now)
    }
    fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) {
        Session::handle_datagram(self, route, datagram, now);
    }
    fn handle_marked(&mut self, route: Route, datagram: &[u8], ecn: Ecn, now: Instant) {
        Session::handle_marked(self, route, datagram, ecn, now);
    }
    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route> {
        Session::poll_transmit(self, buffer, now)
    }
    fn ecn(&self) -> Ecn {
        Session::ecn(self)
    }
    fn poll_event(&mut self) -> Option<Event> {
        Session::poll_event(self)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        Session::poll_timeout(self).map(|(at, _)| at)
    }
    fn handle_timeout(&mut self, now: Instant) {
        Session::handle_timeout(self, now);
    }
}
