//! Directory of registrations and leases: a state machine without sockets or clocks.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use tautline_message::{self as message, Candidate, Control, ProtocolVersions, Refusal};
use tautline_net::{Destination, LogLimit};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use crate::Config;
use crate::relays::Issuer;
use crate::store::Change;

mod addresses;
mod admission;
mod awaiting;
mod claim;
mod connection;
mod connection_id;
mod contender;
mod duplicate;
mod duplicates;
mod enrolment;
mod introductions;
mod leases;
mod listing;
mod orders;
mod registration;
mod roster;
mod told;

pub use connection::RoundTrip;
pub use connection_id::ConnectionId;

use awaiting::Awaiting;
use claim::Claim;
use connection::{Connection, Role};
use contender::Contender;
use duplicate::Duplicate;
use enrolment::Enrolment;
use told::Told;

/// State machine of the switchboard.
///
/// Input enters through `handle_*`. Afterwards the caller drains the outputs with
/// [`poll_output`](Self::poll_output) and re-arms the timer by
/// [`poll_timeout`](Self::poll_timeout).
///
/// Invariants:
/// - A key has at most one registered connection, the first for as long as it answers pings.
/// - A vehicle has at most one lease, an operator at most one vehicle.
/// - A lease ends by [`Control::Release`], when its operator takes another vehicle, or when its
///   operator has had no connection for the grace time. It also ends by a supervisor's order, by a
///   changed list, or by a vehicle's report of a later lease.
/// - A lease outlives the vehicle's absence, and may begin in it: then the operator receives
///   [`Refusal::VehicleAway`], and is introduced when the vehicle registers.
/// - Whenever both ends of a lease are registered and one registration is new, both are introduced
///   under a new lease name. If one end reports other candidates, the other is introduced again
///   under the same name, provided that it reports candidates too. The same happens when both
///   return and still hold that name.
/// - After a restart, a process that shows the stored name of its lease takes its place from any
///   other with its key. If one end shows it, the other is waited for before it is introduced anew.
/// - [`Output::Keep`] must be on disk before later outputs are carried out. Then all invariants
///   hold across restarts too, and no epoch of a vehicle's leases decreases.
#[derive(Debug)]
pub struct Directory {
    lease_grace: Duration,
    ping_interval: Duration,
    connection_timeout: Duration,
    rng: ChaCha20Rng,
    connections: BTreeMap<ConnectionId, Connection>,
    vehicles: BTreeMap<String, Vehicle>,
    operators: BTreeMap<String, Operator>,
    outputs: VecDeque<Output>,
    /// Rate limit for logs of connections with unlisted keys.
    unknown: LogLimit,
    /// Signer of tokens for relays; `None` before [`name_relays`](Self::name_relays).
    issuer: Option<Issuer>,
    /// Epochs of vehicles that are not listed at present.
    unlisted: BTreeMap<PublicKey, u64>,
    enrolment: Enrolment,
    /// Key of the administrator, whose orders of every kind are carried out; none before
    /// [`obey`](Self::obey).
    administrator: Option<PublicKey>,
    /// Supervisors, who may end drives, by name.
    supervisors: BTreeMap<String, PublicKey>,
    /// Unix time at [`Instant::ZERO`], by the current setting of the machine's clock.
    unix_start: Duration,
    /// Number of answers of vehicles for which no supervisor waited.
    unclaimed: u64,
    /// Round trip of the newest pong; `None` once [`poll_round_trip`](Self::poll_round_trip) has
    /// returned it, or if that pong matched no ping or came from neither a vehicle nor an operator.
    round_trip: Option<RoundTrip>,
    /// Duplicate registrations by key, which wait until the connection registered under that key
    /// answers a ping or ends.
    contenders: BTreeMap<PublicKey, Contender>,
    /// Rate limit for logs of duplicate registrations.
    duplicates: LogLimit,
    /// Time until which an introduction waits for the end of a restored lease that has not shown
    /// its name; [`Instant::ZERO`] before [`restore`](Self::restore).
    return_until: Instant,
}

/// An action that the directory requests; to be carried out in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Store this change before any later output is carried out.
    Keep(Change),
    /// Answer an administrator on this connection.
    Answer {
        /// Connection of the administrator.
        to: ConnectionId,
        /// Content of the answer to the administrator.
        answer: Answer,
    },
    /// Reserve places for connections with the keys that are [known](Directory::known) now.
    Relist,
    /// Send `message` on this connection.
    Send {
        /// Connection to send on.
        to: ConnectionId,
        /// Message to send.
        message: Control,
    },
    /// Close this connection after sending what is queued; its further input is ignored.
    Close {
        /// Connection to close.
        to: ConnectionId,
    },
}

/// An answer to an administrator.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A copy of the store.
    Copy,
    /// Answer in words, for the administrator to read.
    Text(String),
    /// Code of an invitation, from its number and secret.
    Code(u16, [u8; 4]),
}

/// Reason of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A ping is due.
    Ping,
    /// A connection has sent no message, or has not registered, for too long.
    ConnectionTimeout,
    /// The grace time of a lease whose operator has no connection ends.
    LeaseGrace,
    /// The relay tokens of a lease must be renewed.
    RelayTokens,
    /// An introduction has waited long enough for the process of a restored lease.
    Introduction,
}

/// State of a listed vehicle.
#[derive(Debug)]
struct Vehicle {
    key: PublicKey,
    presence: Option<Presence>,
    /// Unix time of the vehicle's last disconnection; `None` before the first since the
    /// switchboard's start.
    away_since: Option<Duration>,
    /// Highest epoch of all leases of the vehicle; 0 before the first.
    epoch: u64,
    lease: Option<Lease>,
    /// End of a lease that an absent vehicle has not received yet; `None` if there is none.
    pending_release: Option<Control>,
    /// Operator whose drive a supervisor has ended, and expiry of the order: that operator gets no
    /// lease of this vehicle until then. `None` before the first such order.
    ended: Option<(String, Instant)>,
    /// Supervisors that wait for the vehicle's answers to an order.
    awaiting: Vec<Awaiting>,
    /// Newest duplicate registration that was refused for this vehicle's key; `None` before the
    /// first.
    duplicate: Option<Duplicate>,
}

/// State of a listed operator.
#[derive(Debug)]
struct Operator {
    key: PublicKey,
    presence: Option<Presence>,
    /// Newest duplicate registration that was refused for this operator's key; `None` before the
    /// first.
    duplicate: Option<Duplicate>,
}

/// Registration data of a connected vehicle or operator.
#[derive(Debug)]
struct Presence {
    id: ConnectionId,
    addresses: Vec<Destination>,
    /// Protocol versions that the end supports in a session with its peer.
    versions: ProtocolVersions,
    /// `true` if the end supports relays.
    relays: bool,
    /// Candidates that the end reported in addition to `addresses`; none from an older build.
    candidates: Vec<Candidate>,
    /// Name of the lease that the end holds: reported by the end, or given with its introduction;
    /// `None` without a lease.
    held: Option<[u8; 16]>,
    /// Location of the end, in its owner's words; `None` if it reported none.
    place: Option<String>,
    /// Number of addresses in the end's registration, one for each of its links; at most 255.
    link_count: u8,
}

/// Lease of a vehicle by an operator; the epoch is stored with the vehicle.
#[derive(Debug)]
struct Lease {
    operator: String,
    /// Name under which the two were introduced; `None` before the first introduction.
    name: Option<[u8; 16]>,
    /// Same as `name`, if an earlier run of the switchboard gave it and not both ends have shown it
    /// yet; else `None`.
    restored: Option<[u8; 16]>,
    /// Begin of the lease in Unix time.
    since: Duration,
    /// Time at which the lease ends unless its operator connects; `None` while the operator is
    /// connected.
    ends_at: Option<Instant>,
    /// Time at which both ends receive new tokens for their relays; `None` if none is due.
    renew_at: Option<Instant>,
    /// Time of an introduction that waits for the process of the restored lease; `None` if none
    /// waits.
    introduce_at: Option<Instant>,
}

impl Directory {
    /// Creates a directory of the entries in `config`, without connections.
    ///
    /// `seed`: seed for lease names.
    pub fn new(config: &Config, seed: [u8; 32]) -> Self {
        Self {
            lease_grace: config.lease_grace(),
            ping_interval: config.ping_interval(),
            connection_timeout: config.connection_timeout(),
            rng: ChaCha20Rng::from_seed(seed),
            connections: BTreeMap::new(),
            vehicles: config.vehicles.iter().map(|(n, k)| (n.clone(), Vehicle::new(*k))).collect(),
            operators: config
                .operators
                .iter()
                .map(|(n, k)| (n.clone(), Operator::new(*k)))
                .collect(),
            outputs: VecDeque::new(),
            unknown: LogLimit::default(),
            issuer: None,
            unlisted: BTreeMap::new(),
            enrolment: Enrolment::beside(&config.vehicles, &config.operators),
            administrator: None,
            supervisors: config.supervisors.clone(),
            unix_start: Duration::ZERO,
            unclaimed: 0,
            round_trip: None,
            contenders: BTreeMap::new(),
            duplicates: LogLimit::default(),
            return_until: Instant::ZERO,
        }
    }

    /// Enables relays: both ends of each lease receive tokens of this issuer.
    pub(crate) fn name_relays(&mut self, issuer: Issuer) {
        self.issuer = Some(issuer);
    }

    /// Updates the Unix time at [`Instant::ZERO`], which changes when the machine's clock is set.
    pub fn handle_unix_start(&mut self, unix_start: Duration) {
        self.unix_start = unix_start;
    }

    /// Handles a new connection from `remote`, which has proven to hold `key`. A key that is
    /// neither listed nor a supervisor's or the administrator's is refused, unless an invitation is
    /// open.
    pub fn handle_connected(
        &mut self,
        id: ConnectionId,
        key: PublicKey,
        remote: SocketAddr,
        now: Instant,
    ) {
        let mut connection = Connection::new(key, remote, now);
        if self.administrator == Some(key) {
            connection.role = Role::Administrator;
            self.connections.insert(id, connection);
            return;
        }
        if self.supervisors.values().any(|supervisor| *supervisor == key) {
            connection.role = Role::Supervisor;
            self.connections.insert(id, connection);
            return;
        }
        self.connections.insert(id, connection);
        let is_listed = self.listed().any(|listed| listed == key);
        // A machine with an invitation presents its code first.
        if !is_listed && !self.enrolment.is_awaited(now) {
            self.refuse_unknown(id, key, remote, now);
        }
    }

    fn refuse_unknown(
        &mut self,
        id: ConnectionId,
        key: PublicKey,
        remote: SocketAddr,
        now: Instant,
    ) {
        if let Some(left_out) = self.unknown.take(now) {
            tracing::warn!(%key, %remote, left_out, "refused an unknown key");
        }
        let text = format!(
            "this key is unknown here: to admit it, add NAME = \"{key}\" to [vehicles] or \
             [operators] in the switchboard's settings and send it SIGHUP"
        );
        self.turn_away(id, Refusal::NotAllowed, text, now);
    }

    /// Carries out a message of the other end of connection `id`, which thereby counts as alive;
    /// refuses one that the role of that end does not permit.
    pub fn handle_message(&mut self, id: ConnectionId, message: Control, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.heard_at = now;
        match message {
            Control::RegisterVehicle {
                name,
                addresses,
                versions,
                relays,
                candidates,
                held,
                place,
            } => {
                let told = Told { addresses, versions, relays, candidates, held, place };
                self.register(id, Claim::Vehicle(name, told), now);
            }
            Control::RegisterOperator { name, addresses, versions, relays, candidates, held } => {
                let place = None;
                let told = Told { addresses, versions, relays, candidates, held, place };
                self.register(id, Claim::Operator(name, told), now);
            }
            Control::ListVehicles => {
                if self.operator_of(id).is_some() {
                    self.list(id);
                }
            }
            Control::Take { vehicle_name } => {
                if let Some(operator) = self.operator_of(id) {
                    self.take(id, &operator, &vehicle_name, now);
                }
            }
            Control::Release => {
                if let Some(operator) = self.operator_of(id) {
                    self.release(&operator, &format!("operator {operator} has released it"));
                }
            }
            Control::Ping { t } => self.send(id, Control::Pong { t, seen_at: Some(now) }),
            Control::Pong { t, seen_at } => {
                self.round_trip = connection.pong(t, seen_at, now);
                self.handle_alive(id, t, now);
            }
            Control::Enroll { number, secret } => self.enroll(id, number, secret, now),
            Control::Order(order) => match (&connection.role, &order) {
                (Role::Administrator, _)
                | (Role::Supervisor, message::Order::End { .. } | message::Order::Who) => {
                    self.obey_order(id, order, now);
                }
                (
                    Role::Unregistered | Role::Vehicle(_) | Role::Operator(_) | Role::Supervisor,
                    _,
                ) => {
                    let text =
                        "only the holder of the switchboard's own key may give orders".to_owned();
                    self.turn_away(id, Refusal::NotAllowed, text, now);
                }
            },
            Control::Answered { signed } => match &connection.role {
                Role::Vehicle(name) => {
                    let name = name.clone();
                    self.carry_answer(&name, &signed);
                }
                Role::Unregistered | Role::Operator(_) | Role::Administrator | Role::Supervisor => {
                    let text = "only a vehicle answers orders".to_owned();
                    self.turn_away(id, Refusal::NotAllowed, text, now);
                }
            },
            Control::VehicleList { .. }
            | Control::OrderPart { .. }
            | Control::Enrolled { .. }
            | Control::Ordered { .. }
            | Control::Introduce { .. }
            | Control::Released { .. }
            | Control::Relays { .. }
            | Control::Refused { .. } => {
                let text = "only a switchboard sends this message".to_owned();
                self.turn_away(id, Refusal::BadRequest, text, now);
            }
        }
    }

    /// Refuses and closes a connection, because its bytes are no message, for `reason`.
    pub fn handle_malformed(&mut self, id: ConnectionId, reason: &str, now: Instant) {
        if self.connections.contains_key(&id) {
            let text = format!("this is not a message of the control plane: {reason}");
            self.turn_away(id, Refusal::BadRequest, text, now);
        }
    }

    /// Handles the end of a connection: its end counts as away, and the grace time of an operator's
    /// lease begins. A duplicate registration that waited for this is admitted; if the end was a
    /// supervisor, vehicles' answers are no longer forwarded to it.
    pub fn handle_closed(&mut self, id: ConnectionId, now: Instant) {
        let Some(connection) = self.connections.remove(&id) else { return };
        connection.log_latency();
        let key = connection.key;
        match connection.role {
            Role::Supervisor => self.await_no_more(id),
            Role::Unregistered | Role::Administrator => {}
            Role::Vehicle(name) => {
                if let Some(vehicle) = self.vehicles.get_mut(&name)
                    && vehicle.presence.as_ref().is_some_and(|p| p.id == id)
                {
                    vehicle.presence = None;
                    vehicle.away_since = Some(self.unix_start + now.since(Instant::ZERO));
                    tracing::info!(vehicle = name, "vehicle away");
                }
            }
            Role::Operator(name) => {
                if let Some(operator) = self.operators.get_mut(&name)
                    && operator.presence.as_ref().is_some_and(|p| p.id == id)
                {
                    operator.presence = None;
                    tracing::info!(operator = name, "operator away");
                    let ends_at = now + self.lease_grace;
                    if let Some(lease) = self.lease_of(&name) {
                        lease.ends_at = Some(ends_at);
                    }
                }
            }
        }
        self.settle_rivals(id, key, now);
    }

    /// Returns the next action to carry out; `None` if all were returned.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the round trip of the newest pong; `None` if the last call returned it, if the pong
    /// matched no ping, or if it came from neither a vehicle nor an operator.
    pub fn poll_round_trip(&mut self) -> Option<RoundTrip> {
        self.round_trip.take()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout), and the reason; `None` if
    /// nothing is to be awaited.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        let connections = self.connections.values().flat_map(|connection| {
            [
                (connection.ping_at, Timer::Ping),
                (connection.times_out_at(self.connection_timeout), Timer::ConnectionTimeout),
            ]
        });
        let leases = self.vehicles.values().filter_map(|vehicle| vehicle.lease.as_ref());
        let graces = leases.filter_map(|lease| Some((lease.ends_at?, Timer::LeaseGrace)));
        let leases = self.vehicles.values().filter_map(|vehicle| vehicle.lease.as_ref());
        let renewals = leases.filter_map(|lease| Some((lease.renew_at?, Timer::RelayTokens)));
        let leases = self.vehicles.values().filter_map(|vehicle| vehicle.lease.as_ref());
        let waiting = leases.filter_map(|lease| Some((lease.introduce_at?, Timer::Introduction)));
        connections.chain(graces).chain(renewals).chain(waiting).min()
    }

    /// Closes silent connections, pings the others, ends leases whose grace time is over, sends new
    /// relay tokens and makes postponed introductions, each if due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in ids {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            if connection.times_out_at(self.connection_timeout) <= now {
                tracing::info!(remote = %connection.remote, "closed a silent connection");
                self.close(id, now);
            } else if connection.ping_at <= now {
                connection.ping(self.ping_interval, now);
                self.send(id, Control::Ping { t: now });
            }
        }
        let over: Vec<String> = self
            .vehicles
            .values()
            .filter_map(|vehicle| vehicle.lease.as_ref())
            .filter(|lease| lease.ends_at.is_some_and(|at| at <= now))
            .map(|lease| lease.operator.clone())
            .collect();
        for operator in over {
            let away = self.lease_grace.as_secs_f64();
            self.release(&operator, &format!("operator {operator} has been away for {away} s"));
        }
        for name in self.leases_due(|lease| lease.renew_at, now) {
            self.tell_relays(&name, now);
        }
        for name in self.leases_due(|lease| lease.introduce_at, now) {
            self.introduce(&name, now);
        }
    }

    /// Returns the names of the vehicles whose lease has reached the time that `at` returns of it.
    fn leases_due(&self, at: impl Fn(&Lease) -> Option<Instant>, now: Instant) -> Vec<String> {
        let is_due = |vehicle: &Vehicle| {
            vehicle.lease.as_ref().and_then(&at).is_some_and(|due_at| due_at <= now)
        };
        let due = self.vehicles.iter().filter(|(_, vehicle)| is_due(vehicle));
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the name of the operator registered on this connection; otherwise sends a refusal
    /// and returns `None`.
    fn operator_of(&mut self, id: ConnectionId) -> Option<String> {
        if let Role::Operator(name) = &self.connections.get(&id)?.role {
            return Some(name.clone());
        }
        let text = "register as an operator first".to_owned();
        self.refuse(id, Refusal::NotRegistered, text);
        None
    }

    fn set_role(&mut self, id: ConnectionId, role: Role) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.role = role;
        }
    }

    fn refuse(&mut self, id: ConnectionId, reason_code: Refusal, mut text: String) {
        while text.len() > TEXT_BYTES_MAX {
            text.pop();
        }
        self.send(id, Control::Refused { reason_code, text });
    }

    fn turn_away(&mut self, id: ConnectionId, reason_code: Refusal, text: String, now: Instant) {
        self.refuse(id, reason_code, text);
        self.close(id, now);
    }

    fn close(&mut self, id: ConnectionId, now: Instant) {
        self.outputs.push_back(Output::Close { to: id });
        self.handle_closed(id, now);
    }

    fn send(&mut self, to: ConnectionId, message: Control) {
        self.outputs.push_back(Output::Send { to, message });
    }
}

impl Vehicle {
    fn new(key: PublicKey) -> Self {
        Self {
            key,
            presence: None,
            away_since: None,
            epoch: 0,
            lease: None,
            pending_release: None,
            ended: None,
            awaiting: Vec::new(),
            duplicate: None,
        }
    }
}

impl Operator {
    fn new(key: PublicKey) -> Self {
        Self { key, presence: None, duplicate: None }
    }
}

/// Maximum length of a refusal's text in bytes; the rest is cut off.
const TEXT_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests;
