//! The current session and its successor: the peers' own traffic decides when the successor takes
//! over.

use std::fmt;
use std::time::Duration;

use tautline_transport::reach::CandidatePair;
use tautline_transport::{Channel, Event, PublicKey, Route, Session};
use tautline_units::{Bitrate, ByteCount, Ecn, Instant};

/// A live session, and at most one successor that was begun since and waits.
///
/// A session *lives* while authentic datagrams of its peer arrive. Only this end itself can end a
/// live session, by [`Handle::end_sessions`]. Restarts, repeated failures and wrong messages of the
/// control plane therefore cannot: sessions that it starts run as successors. A successor replaces
/// a session
/// - with the same peer, when the old one has fallen silent and a link of the new one is up: the
///   peer has restarted;
/// - with another peer, when a link of the new one is up, and either its own condition holds (see
///   [`Handle::introduce`]) or nothing has arrived from the old peer for ten seconds.
///
/// A successor with the same peer is discarded if the old session lives for ten more seconds: both
/// ends still receive each other, so neither has restarted.
///
/// [`Handle::introduce`]: crate::driver::Handle::introduce
/// [`Handle::end_sessions`]: crate::driver::Handle::end_sessions
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    present: Option<Session>,
    /// `true` from [`release`](Self::release) until another session becomes the current one. The
    /// current one then ends after ten seconds without datagrams, unless a successor waits.
    is_released: bool,
    /// Condition under which the current session ends as requested; `None` without a request. A
    /// session introduced later then replaces it.
    ending: Option<Condition>,
    successor: Option<Successor>,
    /// Events of the current session from its time as successor, newest first.
    told: Vec<Event>,
    /// Number of units received in successor sessions.
    units_of_successor: u64,
}

/// Condition, evaluated repeatedly, under which a session may end, or be replaced by one with
/// another peer.
pub(crate) struct Condition(Box<dyn Fn() -> bool + Send>);

#[derive(Debug)]
struct Successor {
    session: Session,
    condition: Condition,
    since: Instant,
    /// Announcements received so far, at most 64, which stay valid after the takeover.
    announced: Vec<Event>,
    is_established: bool,
    /// Last budget that the session has reported: its part for media, and what its links have
    /// demonstrated; zeros before the first.
    budget: (Bitrate, Bitrate),
}

impl Sessions {
    /// Adds a session: as the current one if there is none or it was never established, else as
    /// successor, in place of an earlier successor.
    pub(crate) fn introduce(&mut self, session: Session, condition: Condition, now: Instant) {
        if self.present.as_ref().is_none_or(|present| !present.is_established()) {
            (self.present, self.successor, self.is_released) = (Some(session), None, false);
            self.ending = None;
            self.told.clear();
        } else {
            self.successor = Some(Successor::new(session, condition, now));
        }
    }

    /// Marks the current session's peer as possibly gone: the session ends after ten seconds
    /// without datagrams.
    pub(crate) fn release(&mut self) {
        self.is_released = self.present.is_some();
    }

    /// Ends the existing sessions: the current one once it `may_end`, the successor at once.
    pub(crate) fn end(&mut self, may_end: Condition) {
        self.successor = None;
        self.ending = self.present.is_some().then_some(may_end);
    }

    /// Ends every session.
    pub(crate) fn stop(&mut self) {
        *self = Self { units_of_successor: self.units_of_successor, ..Self::default() };
    }

    /// Returns the current session; `None` without one.
    pub(crate) fn present(&self) -> Option<&Session> {
        self.present.as_ref()
    }

    /// Returns the current session; `None` without one.
    pub(crate) fn present_mut(&mut self) -> Option<&mut Session> {
        self.present.as_mut()
    }

    /// Returns the successor session, if one of its links is up and it has another peer than the
    /// current one.
    pub(crate) fn waiting_mut(&mut self) -> Option<&mut Session> {
        let present = self.present.as_ref()?.peer();
        let successor = &mut self.successor.as_mut()?.session;
        (successor.is_up() && successor.peer() != present).then_some(successor)
    }

    /// Returns the number of units received in successor sessions, which are dropped.
    pub(crate) fn units_of_successor(&self) -> u64 {
        self.units_of_successor
    }

    /// Opens a channel in every session.
    pub(crate) fn open(&mut self, channel: &Channel) {
        for session in self.all_mut() {
            open(session, channel);
        }
    }

    /// Passes a datagram to the session that it is addressed to, by default the current one;
    /// returns `false` if there is no session at all.
    pub(crate) fn handle_datagram(
        &mut self,
        route: Route,
        datagram: &[u8],
        ecn: Ecn,
        now: Instant,
    ) -> bool {
        let Some(present) = &mut self.present else { return false };
        let successor = self.successor.as_mut().map(|successor| &mut successor.session);
        match successor.filter(|successor| successor.is_addressed_by(datagram)) {
            None => present.handle_marked(route, datagram, ecn, now),
            Some(successor) => {
                // Each end draws its ids independently. If both sessions have the id, both try the
                // datagram.
                if present.is_addressed_by(datagram) {
                    present.handle_marked(route, datagram, ecn, now);
                }
                successor.handle_marked(route, datagram, ecn, now);
            }
        }
        true
    }

    /// Returns whether the datagram handled at `now` is an authentic one of a peer that initiated
    /// the session.
    pub(crate) fn is_called(&self, now: Instant) -> bool {
        self.all().any(|session| session.heard_at() == Some(now) && session.is_begun_by_peer())
    }

    /// Updates the candidate pairs of the session under this lease.
    pub(crate) fn offer(&mut self, lease: &[u8; 16], pairs: &[CandidatePair], now: Instant) {
        for session in self.all_mut().filter(|session| session.lease() == lease) {
            session.offer(pairs, now);
        }
    }

    /// Updates the hole-punching targets of the session under this lease.
    pub(crate) fn punch(&mut self, lease: &[u8; 16], routes: &[Route], now: Instant) {
        for session in self.all_mut().filter(|session| session.lease() == lease) {
            session.punch(routes, now);
        }
    }

    /// Passes a change of a socket's address to every session; relays that know the new one are at
    /// `relayed`.
    pub(crate) fn handle_moved(&mut self, socket: u8, relayed: &[Route], now: Instant) {
        for session in self.all_mut() {
            session.handle_moved(socket, relayed, now);
        }
    }

    /// Makes pings due on the standby links of every session, because the peer has been silent for
    /// a while.
    pub(crate) fn hurry(&mut self, now: Instant) {
        for session in self.all_mut() {
            session.hurry(now);
        }
    }

    /// Passes the kernel's report that a datagram of `length` exceeds the MTU towards `route` to
    /// every session.
    pub(crate) fn handle_too_large(&mut self, route: Route, length: ByteCount, now: Instant) {
        for session in self.all_mut() {
            session.handle_too_large(route, length, now);
        }
    }

    /// Passes the report that the stream of `route` is blocked, or writable again, to every
    /// session.
    pub(crate) fn handle_blocked(&mut self, route: Route, is_blocked: bool, now: Instant) {
        for session in self.all_mut() {
            session.handle_blocked(route, is_blocked, now);
        }
    }

    /// Returns whether a session's link has `route`.
    pub(crate) fn has_route(&self, route: Route) -> bool {
        self.all().any(|session| session.has_route(route))
    }

    /// Returns the peers of all sessions, established or not.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PublicKey> {
        self.all().map(|session| *session.peer())
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout); `None` without a session.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let successor = self.successor.iter().map(|successor| &successor.session);
        let timeouts = self.present.iter().chain(successor).filter_map(Session::poll_timeout);
        timeouts.map(|(at, _)| at).min()
    }

    /// Runs the timers of every session that are due at `now`. Then ends the current session,
    /// replaces it by the successor, or discards the successor, if the condition for that holds.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for session in self.all_mut() {
            if session.poll_timeout().is_some_and(|(at, _)| at <= now) {
                session.handle_timeout(now);
            }
        }
        self.settle(now);
    }

    /// Writes the next datagram of any session into `buffer`; returns its route and codepoint, or
    /// `None` if none is due.
    pub(crate) fn poll_transmit(
        &mut self,
        buffer: &mut Vec<u8>,
        now: Instant,
    ) -> Option<(Route, Ecn)> {
        self.all_mut().find_map(|session| {
            let route = session.poll_transmit(buffer, now)?;
            Some((route, session.ecn()))
        })
    }

    /// Returns the next event of the current session, the oldest first; `None` if all were
    /// returned.
    pub(crate) fn poll_event(&mut self) -> Option<(Event, &Session)> {
        let present = self.present.as_mut()?;
        let event = self.told.pop().or_else(|| present.poll_event())?;
        Some((event, present))
    }

    fn all(&self) -> impl Iterator<Item = &Session> {
        self.present.iter().chain(self.successor.iter().map(|successor| &successor.session))
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        let successor = self.successor.iter_mut().map(|successor| &mut successor.session);
        self.present.iter_mut().chain(successor)
    }

    fn settle(&mut self, now: Instant) {
        if self.ending.as_ref().is_some_and(|may_end| (may_end.0)()) {
            tracing::info!("the session was ended");
            match self.successor {
                Some(_) => self.take_over(),
                None => self.stop(),
            }
            return;
        }
        let Some(present) = &self.present else { return };
        let silent = present.heard_at().map(|heard_at| now.since(heard_at));
        let is_silent = |least| silent.is_some_and(|silent| silent >= least);
        let Some(successor) = &mut self.successor else {
            if self.is_released && is_silent(GONE) {
                tracing::info!("the session ends: its peer is gone");
                self.stop();
            }
            return;
        };
        self.units_of_successor += successor.take_events();
        let is_same = successor.session.peer() == present.peer();
        let may_take_over = match is_same {
            true => is_silent(SILENT),
            false => is_silent(GONE) || (successor.condition.0)(),
        };
        if may_take_over && successor.session.is_up() {
            self.take_over();
        } else if is_same && !is_silent(SILENT) && now.since(successor.since) >= SUCCESSOR_MAX {
            tracing::info!("the session is alive: the successor is discarded");
            self.successor = None;
        }
    }

    fn take_over(&mut self) {
        let Some(successor) = self.successor.take() else { return };
        tracing::info!("the successor session takes over");
        self.told.clear();
        self.told.push(Event::Budget { media: successor.budget.0, shown: successor.budget.1 });
        self.told.extend(successor.announced.into_iter().rev());
        if successor.is_established {
            self.told.push(Event::Established);
        }
        (self.present, self.is_released, self.ending) = (Some(successor.session), false, None);
    }
}

impl Successor {
    fn new(session: Session, condition: Condition, now: Instant) -> Self {
        Self {
            session,
            condition,
            since: now,
            announced: Vec::new(),
            is_established: false,
            budget: (Bitrate::ZERO, Bitrate::ZERO),
        }
    }

    /// Keeps those events of the session that stay valid after a takeover; returns the number of
    /// dropped units.
    fn take_events(&mut self) -> u64 {
        let mut units = 0;
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Established => {
                    self.is_established = true;
                    self.announced.clear();
                }
                Event::Announced { .. } => self.announced.push(event),
                Event::Budget { media, shown } => self.budget = (media, shown),
                Event::Unit { .. } => units += 1,
                Event::Refused { mismatch } => {
                    tracing::warn!("no session: {}", mismatch.told("the peer"));
                }
                Event::UnitLost { .. } | Event::Link { .. } => {}
            }
        }
        units
    }
}

impl Condition {
    pub(crate) fn new(condition: impl Fn() -> bool + Send + 'static) -> Self {
        Self(Box::new(condition))
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}

/// Opens a channel; if a session has no room for it, that is logged and the channel's units are
/// refused.
pub(crate) fn open(session: &mut Session, channel: &Channel) {
    if let Err(error) = session.open(channel.clone()) {
        tracing::warn!(%error, "cannot open a channel");
    }
}

/// Silence of the present session after which a successor with the same peer replaces it: twice a
/// link's maximum time without a pong. A process that has ended does not return sooner.
const SILENT: Duration = Duration::from_millis(500);
/// Silence after which the peer counts as gone: the machine has been braking for nearly as long,
/// and a new operator is better than none. Mobile links are rarely interrupted for longer ([UGV]:
/// 5.7 s).
const GONE: Duration = Duration::from_secs(10);
/// Time after which a successor with the same peer is discarded if the present session is alive: a
/// restarted peer falls silent in its old session sooner.
const SUCCESSOR_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
