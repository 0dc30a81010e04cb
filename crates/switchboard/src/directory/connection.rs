use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tautline_net::latency::{Comparer, Leg, OneWay};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use crate::latency::{Record, SAMPLES_MAX};

/// A connection as the directory knows it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) key: PublicKey,
    pub(super) remote: SocketAddr,
    pub(super) role: Role,
    pub(super) latency: Record,
    /// When the next ping is due.
    pub(super) ping_at: Instant,
    /// When something was last heard.
    pub(super) heard_at: Instant,
    connected_at: Instant,
    /// The pings that have no pong yet, by their time of sending; oldest first.
    pings: VecDeque<Instant>,
    samples_logged: usize,
    /// Its end's clock beside ours.
    comparer: Comparer,
}

/// A ping of ours that was answered.
#[derive(Clone, PartialEq, Debug)]
pub struct RoundTrip {
    /// Which leg it tells of.
    pub leg: Leg,
    /// The end's name.
    pub name: String,
    /// When the ping left.
    pub sent_at: Instant,
    /// When it came, by the end's clock; `None` from an older build.
    pub seen_at: Option<Instant>,
    /// When the pong came.
    pub back_at: Instant,
    /// What of it was which way, if the end says when it came.
    pub one_way: Option<OneWay>,
}

/// What a connection has registered as.
#[derive(Debug)]
pub(super) enum Role {
    Unregistered,
    Vehicle(String),
    Operator(String),
    /// The switchboard's own key: nothing to register.
    Administrator,
    /// One who may end drives: nothing to register either.
    Supervisor,
}

impl Connection {
    /// Returns a connection that has just begun.
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

    /// Returns when this connection is to be given up, if nothing is heard until then.
    ///
    /// Who does not register is given up as well, whatever else it says.
    pub(super) fn times_out_at(&self, timeout: Duration) -> Instant {
        match self.role {
            Role::Unregistered => self.connected_at + timeout,
            Role::Vehicle(_) | Role::Operator(_) | Role::Administrator | Role::Supervisor => {
                self.heard_at + timeout
            }
        }
    }

    /// Gives it as long to register as one that begins now: its registration waits for a word of another end.
    pub(super) fn begin_anew(&mut self, now: Instant) {
        self.connected_at = now;
    }

    /// Notes that a ping is sent now.
    pub(super) fn ping(&mut self, interval: Duration, now: Instant) {
        if self.pings.len() == PINGS_MAX {
            self.pings.pop_front();
        }
        self.pings.push_back(now);
        self.ping_at = now + interval;
    }

    /// Takes the pong for a ping of ours; any other is ignored. Returns what it tells, if the end has registered.
    pub(super) fn pong(
        &mut self,
        sent_at: Instant,
        seen_at: Option<Instant>,
        now: Instant,
    ) -> Option<RoundTrip> {
        let place = self.pings.iter().position(|ping| *ping == sent_at)?;
        // The connection keeps the order: what is older will not come any more.
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

    /// Logs what the latency record comes to.
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

/// A mobile link's worst delays, 5.7 s ([UGV]), at one ping a second, and some more.
const PINGS_MAX: usize = 16;
