//! Two sessions over a wire without delay or loss.

use tautline_transport::{Config, Error, Event, Route, Session};
use tautline_units::Instant;

use crate::run::{LEASE, identity};
use crate::script::Side;

/// A vehicle's session and an operator's, with immediate delivery between them.
#[derive(Debug)]
pub struct Direct {
    /// The vehicle's session, which initiates.
    pub vehicle: Session,
    /// The operator's session, which responds.
    pub operator: Session,
    /// Current time of both sessions.
    pub now: Instant,
    /// Number of datagrams delivered in both directions since the start.
    pub datagrams: u64,
    buffer: Vec<u8>,
}

impl Direct {
    /// Creates two sessions that know each other and have exchanged nothing yet. The vehicle's
    /// configuration comes first.
    ///
    /// # Errors
    /// For invalid routes or an invalid configuration.
    pub fn new(routes: &[Route], vehicle: Config, operator: Config) -> Result<Self, Error> {
        let (a, b) = (identity(Side::Vehicle), identity(Side::Operator));
        let now = Instant::from_millis(1);
        Ok(Self {
            vehicle: Session::initiate(vehicle, &a, b.public(), LEASE, routes, 1, now)?,
            operator: Session::respond(operator, &b, a.public(), LEASE, 2, now)?,
            now,
            datagrams: 0,
            buffer: Vec::new(),
        })
    }

    /// Delivers all pending datagrams, and those that they cause, until none is pending; no time
    /// passes.
    pub fn exchange(&mut self) {
        let Self { vehicle, operator, now, datagrams, buffer } = self;
        let mut moved = true;
        while moved {
            moved = false;
            while let Some(route) = vehicle.poll_transmit(buffer, *now) {
                operator.handle_datagram(route, buffer, *now);
                (*datagrams, moved) = (*datagrams + 1, true);
            }
            while let Some(route) = operator.poll_transmit(buffer, *now) {
                vehicle.handle_datagram(route, buffer, *now);
                (*datagrams, moved) = (*datagrams + 1, true);
            }
        }
    }

    /// Advances the time to the next timer of either session and handles what is due, without
    /// delivering datagrams. Returns false, and changes nothing, if that is after `end` or there is
    /// no timer.
    pub fn step(&mut self, end: Instant) -> bool {
        let due = |session: &Session| session.poll_timeout().map(|(at, _)| at);
        let timers = [due(&self.vehicle), due(&self.operator)];
        let Some(next) = timers.into_iter().flatten().min().filter(|at| *at <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        for (session, due) in [&mut self.vehicle, &mut self.operator].into_iter().zip(timers) {
            if due.is_some_and(|at| at <= self.now) {
                session.handle_timeout(self.now);
            }
        }
        true
    }

    /// Runs all timers and deliveries until `end`, which becomes the current time.
    pub fn run_until(&mut self, end: Instant) {
        self.exchange();
        while self.step(end) {
            self.exchange();
        }
        self.now = end;
    }

    /// Returns the events of the operator's session that are waiting, and removes them.
    pub fn operator_events(&mut self) -> impl Iterator<Item = Event> {
        std::iter::from_fn(|| self.operator.poll_event())
    }
}
