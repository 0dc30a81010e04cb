//! The session in place, and one beside it: who takes whose place is decided by the peers' own traffic.

use std::fmt;
use std::time::Duration;

use tautline_transport::reach::Way;
use tautline_transport::{Channel, Event, PublicKey, Route, Session};
use tautline_units::{Bitrate, ByteCount, Ecn, Instant};

/// A session that lives, and at most one that was begun since and waits beside it.
///
/// A session *lives* while authentic datagrams of its peer come. Nothing that anybody else says ends
/// one that lives, but for [`Handle::end_sessions`], which is this end's own decision; so the control plane may restart, flap or lie: what it brings about runs beside.
/// A session beside takes the place of one
/// - of the same peer, when that has fallen silent and this one is up: the peer has begun anew;
/// - of another peer, when it is up and its own condition holds: see [`Handle::introduce`]; or when
///   nothing has come of the old peer for ten seconds.
///
/// Beside one of the same peer that lives for ten seconds more, it is put away: both hear each other, so
/// neither has begun anew.
///
/// [`Handle::introduce`]: crate::driver::Handle::introduce
/// [`Handle::end_sessions`]: crate::driver::Handle::end_sessions
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    present: Option<Session>,
    /// Whether the present one ends once its peer has been silent for long.
    is_released: bool,
    /// What says whether the present one, which is to end, may; one that is introduced later takes its place then.
    ending: Option<Condition>,
    beside: Option<Beside>,
    /// What the present one told while it was beside, newest first.
    told: Vec<Event>,
    /// Units that came for a session beside.
    units_beside: u64,
}

/// What says, whenever it is asked, whether a session may take the place of another peer's.
pub(crate) struct Condition(Box<dyn Fn() -> bool + Send>);

#[derive(Debug)]
struct Beside {
    session: Session,
    condition: Condition,
    since: Instant,
    /// What it has told that counts for as long as it lasts: of announcements there are 64 at most.
    announced: Vec<Event>,
    is_established: bool,
    /// As last told: what may be sent, and what the links have shown.
    budget: (Bitrate, Bitrate),
}

impl Sessions {
    /// Takes a new session: beside the present one, or in its place if that was never established.
    pub(crate) fn introduce(&mut self, session: Session, condition: Condition, now: Instant) {
        if self.present.as_ref().is_none_or(|present| !present.is_established()) {
            (self.present, self.beside, self.is_released) = (Some(session), None, false);
            self.ending = None;
            self.told.clear();
        } else {
            self.beside = Some(Beside::new(session, condition, now));
        }
    }

    /// Takes note that the present session's peer may have left: it ends when it has been silent for
    /// long.
    pub(crate) fn release(&mut self) {
        self.is_released = self.present.is_some();
    }

    /// Ends the sessions that there are by now: the present one once it `may_end`, one beside at once.
    pub(crate) fn end(&mut self, may_end: Condition) {
        self.beside = None;
        self.ending = self.present.is_some().then_some(may_end);
    }

    /// Ends every session.
    pub(crate) fn stop(&mut self) {
        *self = Self { units_beside: self.units_beside, ..Self::default() };
    }

    /// Returns the session in place.
    pub(crate) fn present(&self) -> Option<&Session> {
        self.present.as_ref()
    }

    /// Returns the session in place.
    pub(crate) fn present_mut(&mut self) -> Option<&mut Session> {
        self.present.as_mut()
    }

    /// Returns the session beside, if it is up and another peer's than the one in place.
    pub(crate) fn waiting_mut(&mut self) -> Option<&mut Session> {
        let present = self.present.as_ref()?.peer();
        let beside = &mut self.beside.as_mut()?.session;
        (beside.is_up() && beside.peer() != present).then_some(beside)
    }

    /// Returns how many units came for a session beside: nobody is told of them.
    pub(crate) fn units_beside(&self) -> u64 {
        self.units_beside
    }

    /// Opens a channel in every session.
    pub(crate) fn open(&mut self, channel: &Channel) {
        for session in self.all_mut() {
            open(session, channel);
        }
    }

    /// Takes a datagram; false if there is no session to take it.
    pub(crate) fn handle_datagram(
        &mut self,
        route: Route,
        datagram: &[u8],
        ecn: Ecn,
        now: Instant,
    ) -> bool {
        let Some(present) = &mut self.present else { return false };
        let beside = self.beside.as_mut().map(|beside| &mut beside.session);
        match beside.filter(|beside| beside.is_addressed_by(datagram)) {
            None => present.handle_marked(route, datagram, ecn, now),
            Some(beside) => {
                // Each chooses its ids by itself. If they have one in common, both try.
                if present.is_addressed_by(datagram) {
                    present.handle_marked(route, datagram, ecn, now);
                }
                beside.handle_marked(route, datagram, ecn, now);
            }
        }
        true
    }

    /// Returns whether the datagram that was taken at `now` is an authentic one of a peer that has begun the session.
    pub(crate) fn is_called(&self, now: Instant) -> bool {
        self.all().any(|session| session.heard_at() == Some(now) && session.is_begun_by_peer())
    }

    /// Tells the session under this lease the ways that there are by now.
    pub(crate) fn offer(&mut self, lease: &[u8; 16], ways: &[Way], now: Instant) {
        for session in self.all_mut().filter(|session| session.lease() == lease) {
            session.offer(ways, now);
        }
    }

    /// Tells the session under this lease where to knock.
    pub(crate) fn knock(&mut self, lease: &[u8; 16], routes: &[Route], now: Instant) {
        for session in self.all_mut().filter(|session| session.lease() == lease) {
            session.knock(routes, now);
        }
    }

    /// Takes the word that a socket's address has changed; relays that know the new one are at `relayed`.
    pub(crate) fn handle_moved(&mut self, socket: u8, relayed: &[Route], now: Instant) {
        for session in self.all_mut() {
            session.handle_moved(socket, relayed, now);
        }
    }

    /// Looks whether the ways that stand by are there: nothing has come of the peer for a while.
    pub(crate) fn hurry(&mut self, now: Instant) {
        for session in self.all_mut() {
            session.hurry(now);
        }
    }

    /// Takes the kernel's word that a datagram is too large for the way to `route`.
    pub(crate) fn handle_too_large(&mut self, route: Route, length: ByteCount, now: Instant) {
        for session in self.all_mut() {
            session.handle_too_large(route, length, now);
        }
    }

    /// Takes the word that the stream of `route` takes no datagram at present, or takes them again.
    pub(crate) fn handle_blocked(&mut self, route: Route, is_blocked: bool, now: Instant) {
        for session in self.all_mut() {
            session.handle_blocked(route, is_blocked, now);
        }
    }

    /// Returns whether a session's link has `route`.
    pub(crate) fn has_route(&self, route: Route) -> bool {
        self.all().any(|session| session.has_route(route))
    }

    /// Returns whom there is a session with, or is to be.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PublicKey> {
        self.all().map(|session| *session.peer())
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let beside = self.beside.iter().map(|beside| &beside.session);
        let timeouts = self.present.iter().chain(beside).filter_map(Session::poll_timeout);
        timeouts.map(|(at, _)| at).min()
    }

    /// Does what is due at `now`, and lets the session beside take the place of the present one if
    /// the time for that has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for session in self.all_mut() {
            if session.poll_timeout().is_some_and(|(at, _)| at <= now) {
                session.handle_timeout(now);
            }
        }
        self.settle(now);
    }

    /// Writes the next datagram into `buffer` and says where it goes, and with which codepoint.
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

    /// Gives the next event of the session in place, oldest first.
    pub(crate) fn poll_event(&mut self) -> Option<(Event, &Session)> {
        let present = self.present.as_mut()?;
        let event = self.told.pop().or_else(|| present.poll_event())?;
        Some((event, present))
    }

    fn all(&self) -> impl Iterator<Item = &Session> {
        self.present.iter().chain(self.beside.iter().map(|beside| &beside.session))
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        let beside = self.beside.iter_mut().map(|beside| &mut beside.session);
        self.present.iter_mut().chain(beside)
    }

    fn settle(&mut self, now: Instant) {
        if self.ending.as_ref().is_some_and(|may_end| (may_end.0)()) {
            tracing::info!("the session has been ended");
            match self.beside {
                Some(_) => self.take_over(),
                None => self.stop(),
            }
            return;
        }
        let Some(present) = &self.present else { return };
        let silent = present.heard_at().map(|heard_at| now.since(heard_at));
        let is_silent = |least| silent.is_some_and(|silent| silent >= least);
        let Some(beside) = &mut self.beside else {
            if self.is_released && is_silent(GONE) {
                tracing::info!("the session ends: its peer has gone");
                self.stop();
            }
            return;
        };
        self.units_beside += beside.take_events();
        let is_same = beside.session.peer() == present.peer();
        let may_take_over = match is_same {
            true => is_silent(SILENT),
            false => is_silent(GONE) || (beside.condition.0)(),
        };
        if may_take_over && beside.session.is_up() {
            self.take_over();
        } else if is_same && !is_silent(SILENT) && now.since(beside.since) >= BESIDE_MAX {
            tracing::info!("the session lives: the one begun beside it is put away");
            self.beside = None;
        }
    }

    fn take_over(&mut self) {
        let Some(beside) = self.beside.take() else { return };
        tracing::info!("the session beside takes over");
        self.told.clear();
        self.told.push(Event::Budget { media: beside.budget.0, shown: beside.budget.1 });
        self.told.extend(beside.announced.into_iter().rev());
        if beside.is_established {
            self.told.push(Event::Established);
        }
        (self.present, self.is_released, self.ending) = (Some(beside.session), false, None);
    }
}

impl Beside {
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

    /// Keeps of what the session tells what still counts when it takes over; gives the number of units
    /// thrown away.
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

/// Opens a channel that a session may have no room for: that is logged, and its units are refused.
pub(crate) fn open(session: &mut Session, channel: &Channel) {
    if let Err(error) = session.open(channel.clone()) {
        tracing::warn!(%error, "a channel is not opened");
    }
}

/// Twice as long as a link may be without a pong. A process that has ended is not back sooner.
const SILENT: Duration = Duration::from_millis(500);
/// Whoever drove has gone: the machine has been braked for nearly as long, and a new operator is
/// better than none. Mobile links are rarely out for so long ([UGV]: 5.7 s).
const GONE: Duration = Duration::from_secs(10);
/// As long as it may take a peer that has begun anew to fall silent under its old session.
const BESIDE_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
