use tautline_transport::relay::wire::LegId;
use tautline_transport::relay::{SEATS_OF_STREAMS_FROM, Side};
use tautline_transport::{LinkNumber, PublicKey, Route};
use tautline_units::{ByteCount, Duration, Instant};

use crate::config::Limits;
use crate::counters::Dropped;

/// A lease in a relay: two ends, and the addresses of their sockets.
#[derive(Debug)]
pub(super) struct Lease {
    /// Keys of initiator and responder.
    pub(super) keys: [PublicKey; 2],
    ends: [End; 2],
    /// Bytes that may still pass under the rate limit, as of `allowed_at`.
    allowance: ByteCount,
    allowed_at: Instant,
    /// Latest expiry of the tokens in accepted calls and proofs.
    pub(super) ends_at: Instant,
}

#[derive(Debug, Default)]
struct End {
    sockets: [Socket; LinkNumber::COUNT],
    /// Number of the socket from which the last datagram of each link came; `None` before the
    /// first.
    by_link: [Option<u8>; LinkNumber::COUNT],
}

/// One socket of an end: the unit of a carrier's bill, if it is a modem's.
#[derive(Debug, Default)]
struct Socket {
    bound: Option<Bound>,
    /// Bytes of the sessions' datagrams forwarded from or to the socket since the lease began;
    /// messages to and from the relay itself do not count.
    metered: ByteCount,
}

/// Binding of an end's socket to the route at which it has proven its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) leg: LegId,
    pub(super) route: Route,
    /// Latest expiry of the tokens that the leg has presented.
    pub(super) ends_at: Instant,
}

/// One socket of one end of a lease: the side, and the number of the socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seat {
    pub(super) side: Side,
    pub(super) socket: u8,
}

impl Lease {
    pub(super) fn new(keys: [PublicKey; 2], limits: &Limits, now: Instant) -> Self {
        let ends = [End::default(), End::default()];
        Self { keys, ends, allowance: burst(limits), allowed_at: now, ends_at: now }
    }

    /// Returns the route for a session's datagram of `link` from the socket at `seat`, notes that
    /// socket as the link's, and counts the forwarded bytes for both sockets. The route leads to
    /// the socket from which the other end last sent on that link, or else to a present one, of the
    /// same kind if possible.
    ///
    /// # Errors
    /// The reason why the datagram must be dropped.
    pub(super) fn forward(
        &mut self,
        seat: Seat,
        link: LinkNumber,
        bytes: ByteCount,
        limits: &Limits,
        now: Instant,
    ) -> Result<Route, Dropped> {
        let link = usize::from(link.get());
        if self.socket(seat).bound.is_none_or(|bound| bound.ends_at <= now) {
            return Err(Dropped::Expired);
        }
        let other = self.end(seat.side.other());
        let to = other.by_link[link].filter(|socket| other.is_there(*socket, now));
        let to = to.or_else(|| other.first_beside(seat.socket, now)).ok_or(Dropped::NoPeer)?;
        let to = Seat { side: seat.side.other(), socket: to };
        self.end_mut(seat.side).by_link[link] = Some(seat.socket);
        let fits = |socket: &Socket| socket.metered + bytes <= limits.link_bytes_max;
        if !fits(self.socket(seat)) || !fits(self.socket(to)) {
            return Err(Dropped::OverBytes);
        }
        if !self.take(bytes, limits, now) {
            return Err(Dropped::OverRate);
        }
        for seat in [seat, to] {
            self.socket_mut(seat).metered += bytes;
        }
        let bound = self.socket(to).bound.ok_or(Dropped::NoPeer)?;
        Ok(bound.route)
    }

    /// Returns the key of the end on `side`.
    pub(super) fn key(&self, side: Side) -> PublicKey {
        self.keys[index(side)]
    }

    /// Returns the bytes that the socket at `seat` has sent and received together since the lease
    /// began.
    pub(super) fn metered(&self, seat: Seat) -> ByteCount {
        self.socket(seat).metered
    }

    /// Returns whether the end on `side` has a bound socket whose token is valid.
    pub(super) fn is_there(&self, side: Side, now: Instant) -> bool {
        self.end(side).first(now).is_some()
    }

    /// Returns the binding of the socket at `seat`; `None` if it has proven no address.
    pub(super) fn bound(&self, seat: Seat) -> Option<Bound> {
        self.socket(seat).bound
    }

    /// Binds the socket at `seat`, or unbinds it for `None`; returns the previous binding.
    pub(super) fn bind(&mut self, seat: Seat, bound: Option<Bound>) -> Option<Bound> {
        std::mem::replace(&mut self.socket_mut(seat).bound, bound)
    }

    /// Returns whether no socket is bound and every token presented has expired.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let sockets = self.ends.iter().flat_map(|end| &end.sockets);
        self.ends_at <= now && sockets.into_iter().all(|socket| socket.bound.is_none())
    }

    fn take(&mut self, bytes: ByteCount, limits: &Limits, now: Instant) -> bool {
        let since = now.since(self.allowed_at).min(BURST);
        let granted = limits.lease_rate * since;
        // An amount that rounds to zero accumulates until the next call.
        if granted > ByteCount::ZERO {
            self.allowance = (self.allowance + granted).min(burst(limits));
            self.allowed_at = now;
        }
        let is_allowed = bytes <= self.allowance;
        if is_allowed {
            self.allowance = self.allowance - bytes;
        }
        is_allowed
    }

    fn end(&self, side: Side) -> &End {
        &self.ends[index(side)]
    }

    fn end_mut(&mut self, side: Side) -> &mut End {
        &mut self.ends[index(side)]
    }

    fn socket(&self, seat: Seat) -> &Socket {
        &self.end(seat.side).sockets[usize::from(seat.socket)]
    }

    fn socket_mut(&mut self, seat: Seat) -> &mut Socket {
        &mut self.end_mut(seat.side).sockets[usize::from(seat.socket)]
    }
}

impl End {
    fn is_there(&self, socket: u8, now: Instant) -> bool {
        self.sockets[usize::from(socket)].bound.is_some_and(|bound| now < bound.ends_at)
    }

    /// Returns this end's first present socket (bound, with a valid token) of the same kind,
    /// datagrams or streams, as the peer's `socket`; else the first of the other kind, or `None`.
    /// Traffic over a stream thus continues over a stream, and depends on no UDP at all.
    fn first_beside(&self, socket: u8, now: Instant) -> Option<u8> {
        let is_stream = |socket: u8| socket >= SEATS_OF_STREAMS_FROM;
        let mut there = (0..LinkNumber::COUNT as u8).filter(|socket| self.is_there(*socket, now));
        there.find(|other| is_stream(*other) == is_stream(socket)).or_else(|| self.first(now))
    }

    /// Returns the first present socket; `None` if none is present.
    fn first(&self, now: Instant) -> Option<u8> {
        (0..LinkNumber::COUNT as u8).find(|socket| self.is_there(*socket, now))
    }
}

fn index(side: Side) -> usize {
    match side {
        Side::Initiator => 0,
        Side::Responder => 1,
    }
}

fn burst(limits: &Limits) -> ByteCount {
    limits.lease_rate * BURST
}

/// Time whose bytes at the lease's rate may pass at once: the slices of a picture, or a train of
/// datagrams, arrive together.
const BURST: Duration = Duration::from_millis(100);
