//! A session and its application as one node of a world.

mod clock;
mod stalls;
mod transport;

use std::collections::VecDeque;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use tautline_sim::world::{self, Node};
use tautline_transport::{Event, Route, Session};
use tautline_units::{Ecn, Instant};

pub use clock::{Clock, Moment};
pub use stalls::Stalls;
pub use transport::Transport;

use crate::faults::Faults;

/// One end of a run: a session `T`, the application `A` above it, a clock, and the faults between
/// the network and the session.
///
/// Every datagram passes through the faults to the session. Every event of the session goes to the
/// application at once. All random numbers of an endpoint come from one generator, in the order of
/// its draws.
#[derive(Debug)]
pub struct Endpoint<A, T = Session> {
    /// The session of the endpoint.
    pub session: T,
    /// The application that uses the session.
    pub application: A,
    /// Faults injected into incoming datagrams.
    pub faults: Faults,
    stalls: Option<Stalls>,
    /// End of the current stall; `None` while the process runs.
    stalled: Option<Instant>,
    /// Datagrams that arrived during the current stall.
    waiting: Vec<(world::Route, Vec<u8>, Ecn)>,
    clock: Clock,
    rng: ChaCha20Rng,
    /// Latest time passed to the session, whose time never goes back.
    latest: Instant,
    /// Lines for the world's log, if events are logged.
    lines: Option<VecDeque<String>>,
}

/// An application on top of a session `T`, with hooks for tests and measurements.
///
/// Only the first three methods are required; `watch_*` observe and do not affect the run.
pub trait Application<T = Session> {
    /// Returns the next time at which [`Application::produce`] is due, on the endpoint's clock;
    /// `None` if nothing more is produced.
    fn next_at(&self) -> Option<Instant>;

    /// Sends the units that are due at `at` by the session.
    fn produce(&mut self, session: &mut T, rng: &mut ChaCha20Rng, at: Moment);

    /// Handles an event of the session.
    fn handle_event(&mut self, session: &T, event: Event, at: Moment);

    /// Starts the application at the world's start, which the endpoint's clock shows as `start`.
    fn begin(&mut self, _start: Instant) {}

    /// Observes a datagram as the network delivered it, before the faults.
    fn watch_arrival(&mut self, _route: Route, _datagram: &[u8], _at: Moment) {}

    /// Observes a datagram just before the session handles it.
    fn watch_intake(&mut self, _session: &T, _datagram: &[u8], _at: Moment) {}

    /// Observes the session right after it has handled `datagram`, before its events.
    fn watch_taken(&mut self, _session: &T, _datagram: &[u8], _at: Moment) {}

    /// Observes a datagram that the session sends.
    fn watch_departure(&mut self, _session: &T, _route: Route, _datagram: &[u8], _at: Moment) {}

    /// Observes the session after any possible change, before its events.
    fn watch_session(&mut self, _session: &T, _at: Moment) {}

    /// Observes the endpoint's clock after it was set by `nanos` nanoseconds.
    fn watch_clock(&mut self, _clock: Clock, _nanos: i64, _at: Moment) {}

    /// Observes the session that is about to be replaced by a new one.
    fn watch_restart(&mut self, _session: &T) {}
}

impl<A: Application<T>, T: Transport> Endpoint<A, T> {
    /// Creates an endpoint with clock `clock` and random numbers from `seed`.
    pub fn new(session: T, mut application: A, clock: world::Clock, seed: u64) -> Self {
        let clock = Clock::from(clock);
        let start = clock.local(Instant::ZERO);
        application.begin(start);
        Self {
            session,
            application,
            faults: Faults::None,
            stalls: None,
            stalled: None,
            waiting: Vec::new(),
            clock,
            rng: ChaCha20Rng::seed_from_u64(seed),
            latest: start,
            lines: None,
        }
    }

    /// Applies `faults` to every incoming datagram.
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Adds stalls, in which the endpoint's process does not run.
    pub fn with_stalls(self, stalls: Stalls) -> Self {
        Self { stalls: Some(stalls), ..self }
    }

    /// Logs every event in the world's log.
    pub fn with_log(self) -> Self {
        Self { lines: Some(VecDeque::new()), ..self }
    }

    /// Returns the clock with its current setting.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Sets the clock ahead by `nanos`, or back if negative; `now` is the node's own time.
    ///
    /// A session's time never goes back: after a step back it pauses until the clock has caught up.
    pub fn set_clock(&mut self, nanos: i64, now: Instant) {
        self.clock.set(nanos);
        let at = self.moment(now);
        self.application.watch_clock(self.clock, nanos, at);
        self.handle_timeout(now);
    }

    /// Replaces the session, as a restart of the machine does; the application continues.
    pub fn restart(&mut self, session: T) {
        self.application.watch_restart(&self.session);
        self.session = session;
    }

    fn moment(&self, now: Instant) -> Moment {
        Moment::new(self.clock, now)
    }

    /// Returns the current moment, and advances the session's time to it.
    fn advance(&mut self, now: Instant) -> Moment {
        let at = self.moment(now);
        self.latest = self.latest.max(at.local());
        at
    }

    /// Returns whether the process is stalled at `now`, and updates the end of the current stall.
    fn is_stalled(&mut self, now: Instant) -> bool {
        self.stalled = self.stalls.as_mut().and_then(|stalls| stalls.end_at(now));
        self.stalled.is_some()
    }

    fn take(&mut self, route: Route, datagram: &[u8], ecn: Ecn, now: Instant) {
        let at = self.advance(now);
        self.application.watch_intake(&self.session, datagram, at);
        self.session.handle_marked(route, datagram, ecn, at.local());
        self.application.watch_taken(&self.session, datagram, at);
        self.observe(at);
    }

    fn observe(&mut self, at: Moment) {
        self.application.watch_session(&self.session, at);
        while let Some(event) = self.session.poll_event() {
            if let Some(lines) = &mut self.lines {
                lines.push_back(line_of(&event));
            }
            self.application.handle_event(&self.session, event, at);
        }
    }
}

impl<A: Application<T>, T: Transport> Node for Endpoint<A, T> {
    fn handle_datagram(&mut self, route: world::Route, datagram: &[u8], now: Instant) {
        self.handle_marked(route, datagram, Ecn::NotEct, now);
    }

    /// Handles a datagram, or keeps it until the end of a stall. Datagrams that the faults add or
    /// substitute take on its codepoint.
    fn handle_marked(&mut self, route: world::Route, datagram: &[u8], ecn: Ecn, now: Instant) {
        if self.is_stalled(now) {
            return self.waiting.push((route, datagram.to_vec(), ecn));
        }
        let route = Route { socket: route.socket, remote: route.remote };
        let at = self.moment(now);
        self.application.watch_arrival(route, datagram, at);
        if let Faults::None = self.faults {
            return self.take(route, datagram, ecn, now);
        }
        for (route, datagram) in self.faults.befall(route, datagram, &mut self.rng) {
            self.take(route, &datagram, ecn, now);
        }
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<world::Route> {
        if self.stalled.is_some() {
            return None;
        }
        let at = self.advance(now);
        let route = self.session.poll_transmit(buffer, at.local())?;
        self.application.watch_departure(&self.session, route, buffer, at);
        Some(world::Route { socket: route.socket, remote: route.remote })
    }

    fn ecn(&self) -> Ecn {
        self.session.ecn()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.stalled.is_some() {
            return self.stalled;
        }
        let due = [self.session.poll_timeout(), self.application.next_at()];
        // After a step back of the clock, no new timer becomes due until it has caught up.
        due.into_iter().flatten().min().map(|at| self.clock.node(at.max(self.latest)))
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.is_stalled(now) {
            return;
        }
        for (route, datagram, ecn) in std::mem::take(&mut self.waiting) {
            self.handle_marked(route, &datagram, ecn, now);
        }
        let at = self.advance(now);
        self.session.handle_timeout(at.local());
        self.observe(at);
        self.application.produce(&mut self.session, &mut self.rng, at);
        self.observe(at);
    }

    fn poll_log(&mut self, _now: Instant) -> Option<String> {
        self.lines.as_mut()?.pop_front()
    }
}

/// Formats an event without the content of a unit.
fn line_of(event: &Event) -> String {
    match event {
        Event::Unit { channel, number, bytes, sent_at, repaired } => {
            format!("{channel:?} {number:?} {} B {sent_at:?} {repaired}", bytes.len())
        }
        other => format!("{other:?}"),
    }
}
