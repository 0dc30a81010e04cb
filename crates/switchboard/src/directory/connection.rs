use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tautline_net::latency::{Comparer, Leg, OneWay};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use crate::latency::{Record, SAMPLES_MAX};

/// State of a connection in the directory.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) key: PublicKey,
    pub(super) remote: SocketAddr,
    pub(super) role: Role,
    pub(super) latency: Record,
    /// Due time of the next ping.
    pub(super) ping_at: Instant,
    /// Arrival time of the last message on the connection.
    pub(super) heard_at: Instant,
    connected_at: Instant,
    /// Send times of unanswered pings, the oldest first.
    pings: VecDeque<Instant>,
    samples_logged: usize,
    /// Comparison of the end's clock with the switchboard's.
    comparer: Comparer,
}

/// An answered ping of the switchboard.
#[derive(Clone, PartialEq, Debug)]
pub struct RoundTrip {
    /// Leg that the ping measured: to a vehicle or to an operator.
    pub leg: Leg,
    /// Name under which the end has registered.
    pub name: String,
    /// Time at which the ping was sent.
    pub sent_at: Instant,
    /// Time at which the ping arrived, by the end's clock; `None` from an older build.
    pub seen_at: Option<Instant>,
    /// Time at which the pong arrived.
    pub back_at: Instant,
    /// Estimated one-way delays of ping and pong; `None` if the end does not report the arrival
    /// time, and before the clocks were compared.
    pub one_way: Option<OneWay>,
}

/// Role of the other end of a connection: unregistered, or under which name it has registered.
#[derive(Debug)]
pub(super) enum Role {
    Unregistered,
    Vehicle(String),
    Operator(String),
    /// Connection with the switchboard's own key; it does not register.
    Administrator,
    /// Connection of a supervisor, who may end drives; it does not register.
    Supervisor,
}

impl Connection {
    /// Creates the state of a new connection.
    pub(super) fn new(key: PublicKey, remote: SocketAddr, now: Instant) -> Self {
        Self {
            key,
            remote,
            role: Role::Unregistered,
            latency: Record::default(),
            ping_at: now,
            heard_at: now,
            connected_at: now,
            pings: VecDeque::new(),
            samples_logged: 0,
            comparer: Comparer::default(),
        }
    }

    /// Returns when this connection times out if no message arrives before.
    ///
    /// A connection that does not register also times out, whatever else it sends.
    pub(super) fn times_out_at(&self, timeout: Duration) -> Instant {
        match self.role {
            Role::Unregistered => self.connected_at + timeout,
            Role::Vehicle(_) | Role::Operator(_) | Role::Administrator | Role::Supervisor => {
                self.heard_at + timeout
            }
        }
    }

    /// Restarts the time limit for its registration, which waits for another connection's answer.
    pub(super) fn begin_anew(&mut self, now: Instant) {
        self.connected_at = now;
    }

    /// Records that a ping is sent now, and makes the next one due after `interval`. Beyond
    /// [`PINGS_MAX`] the oldest unanswered ping is forgotten.
    pub(super) fn ping(&mut self, interval: Duration, now: Instant) {
        if self.pings.len() == PINGS_MAX {
            self.pings.pop_front();
        }
        self.pings.push_back(now);
        self.ping_at = now + interval;
    }

    /// Handles a pong; one without a matching ping is ignored. Returns its round trip, if the end
    /// has registered.
    pub(super) fn pong(
        &mut self,
        sent_at: Instant,
        seen_at: Option<Instant>,
        now: Instant,
    ) -> Option<RoundTrip> {
        let place = self.pings.iter().position(|ping| *ping == sent_at)?;
        // The connection preserves order: older pings will not be answered any more.
        self.pings.drain(..=place);
        let round_trip = now.since(sent_at);
        self.latency.add(round_trip);
        tracing::debug!(
            remote = %self.remote,
            round_trip_ms = round_trip.as_secs_f64() * 1e3,
            "pong"
        );
        self.samples_logged += 1;
        if self.samples_logged == SAMPLES_MAX {
            self.log_latency();
            self.samples_logged = 0;
        }
        let one_way = seen_at.and_then(|seen_at| self.comparer.compare(sent_at, seen_at, now));
        let (leg, name) = match &self.role {
            Role::Vehicle(name) => (Leg::SwitchboardVehicle, name.clone()),
            Role::Operator(name) => (Leg::SwitchboardOperator, name.clone()),
            Role::Unregistered | Role::Administrator | Role::Supervisor => return None,
        };
        Some(RoundTrip { leg, name, sent_at, seen_at, back_at: now, one_way })
    }

    /// Logs a summary of the latency record, if the end has registered and answered a ping.
    pub(super) fn log_latency(&self) {
        let (role, name) = match &self.role {
            Role::Unregistered | Role::Administrator | Role::Supervisor => return,
            Role::Vehicle(name) => ("vehicle", name),
            Role::Operator(name) => ("operator", name),
        };
        if let Some(summary) = self.latency.summary() {
            tracing::info!(role, name, "{summary}");
        }
    }
}

/// Maximum unanswered pings that are remembered: those of a mobile link's worst delay, 5.7 s
/// ([UGV]), at one ping a second, with a margin; beyond it the oldest is forgotten.
const PINGS_MAX: usize = 16;
