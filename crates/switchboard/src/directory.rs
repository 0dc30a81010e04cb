//! The directory: who is there and who drives what. A state machine without sockets or clocks.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use tautline_message::{
    Candidate, Control, Held, ProtocolVersions, Refusal, VehicleEntry, VehicleState,
};
use tautline_net::{Destination, LogLimit};
use tautline_transport::crypto::PublicKey;
use tautline_transport::relay::Side;
use tautline_units::Instant;

use crate::Config;
use crate::relays::Issuer;
use crate::store::Change;

mod addresses;
mod connection;
mod enrolment;
mod leases;
mod roster;

use connection::{Connection, Role};
use enrolment::Enrolment;

/// Everything the switchboard knows and decides.
///
/// Input comes through `handle_*`; afterwards the outputs are drained with
/// [`poll_output`](Self::poll_output) and the timer is set anew by
/// [`poll_timeout`](Self::poll_timeout).
///
/// What holds at all times: a key has at most one registered connection, the newest; a vehicle
/// has at most one lease, an operator at most one vehicle; a lease ends by [`Control::Release`],
/// by its operator taking another vehicle, or when its operator has had no connection for the
/// grace time, and by nothing else. It outlives the vehicle's absence, and may begin in it: then
/// the operator is told [`Refusal::VehicleAway`], and is introduced when the vehicle comes. Whenever both ends of a
/// lease are registered and one of them is so anew, both are introduced with a new lease name. When one
/// of them tells other candidates, the other is introduced again under the same name, if it tells some too;
/// likewise when they come back and both have it still. What [`Output::Keep`] says must be on disk before what
/// follows it is done: then all this holds across restarts too, and no epoch of a vehicle's leases falls.
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
    /// Keys that are not listed.
    unknown: LogLimit,
    /// What signs tokens for relays, if there are any.
    issuer: Option<Issuer>,
    /// The epochs of vehicles that are not listed at present.
    unlisted: BTreeMap<PublicKey, u64>,
    enrolment: Enrolment,
    /// Whose orders are carried out.
    administrator: Option<PublicKey>,
    /// The Unix time at [`Instant::ZERO`].
    unix_start: Duration,
}

/// The number of a connection, never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConnectionId(pub u64);

/// What the directory wants done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Keep this over a restart, before anything that follows is done.
    Keep(Change),
    /// Answer an administrator on this connection.
    Answer {
        /// The connection.
        to: ConnectionId,
        /// With what.
        answer: Answer,
    },
    /// Give those who are [listed](Directory::listed) now places of their own.
    Relist,
    /// Send `message` on this connection.
    Send {
        /// The connection.
        to: ConnectionId,
        /// The message.
        message: Control,
    },
    /// Close this connection once what was sent before is out; nothing is heard from it any more.
    Close {
        /// The connection.
        to: ConnectionId,
    },
}

/// An answer to an administrator.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A copy of what is kept.
    Copy,
    /// Text for people.
    Text(String),
    /// The code of an invitation with this number and this secret.
    Code(u16, [u8; 4]),
}

/// What the directory waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A ping is due.
    Ping,
    /// A connection has been without a word, or without a registration, for too long.
    ConnectionTimeout,
    /// A grace time ends.
    LeaseGrace,
    /// The tokens of a lease are to be given anew.
    RelayTokens,
}

/// A vehicle of the settings.
#[derive(Debug)]
struct Vehicle {
    key: PublicKey,
    presence: Option<Presence>,
    /// The highest of any lease of it.
    epoch: u64,
    lease: Option<Lease>,
    /// The end of a lease that the vehicle does not know of yet, because it was away.
    pending_release: Option<Control>,
}

/// An operator of the settings.
#[derive(Debug)]
struct Operator {
    key: PublicKey,
    presence: Option<Presence>,
}

/// The addresses at which a registered vehicle or operator can be reached.
#[derive(Debug)]
struct Presence {
    id: ConnectionId,
    addresses: Vec<Destination>,
    /// What it speaks with its peer.
    versions: ProtocolVersions,
    /// Whether it knows what a relay is.
    relays: bool,
    /// Where it may be reached beside; an older build tells none.
    candidates: Vec<Candidate>,
    /// The name of the lease that it has in hand: it has said so, or was introduced under it.
    held: Option<[u8; 16]>,
}

/// An operator's right to drive a vehicle; its epoch is the vehicle's.
#[derive(Debug)]
struct Lease {
    operator: String,
    /// The name under which the two have been introduced; none before the first time.
    name: Option<[u8; 16]>,
    /// Since when the operator has it, in Unix time.
    since: Duration,
    /// When it ends, if its operator has no connection.
    ends_at: Option<Instant>,
    /// When both ends get later tokens for their relays.
    renew_at: Option<Instant>,
}

impl Directory {
    /// Returns a directory of those whom `config` lists; nobody is there yet.
    ///
    /// `seed`: lease names grow from it.
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
            unix_start: Duration::ZERO,
        }
    }

    /// Names relays to both ends of each lease, with tokens of this issuer.
    pub(crate) fn name_relays(&mut self, issuer: Issuer) {
        self.issuer = Some(issuer);
    }

    /// Takes a new connection from `remote`, which has proven to hold `key`.
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
        self.connections.insert(id, connection);
        let is_listed = self.listed().any(|listed| listed == key);
        // Who may have been invited says so first.
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
            tracing::warn!(%key, %remote, left_out, "an unknown key was refused");
        }
        let text = format!(
            "this key is not known here: to let it in, add NAME = \"{key}\" to [vehicles] or \
             [operators] in the switchboard's settings and send it SIGHUP"
        );
        self.turn_away(id, Refusal::NotAllowed, text, now);
    }

    /// Takes a message of a connection.
    pub fn handle_message(&mut self, id: ConnectionId, message: Control, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.heard_at = now;
        match message {
            Control::RegisterVehicle { name, addresses, versions, relays, candidates, held } => {
                let told = Told { addresses, versions, relays, candidates, held };
                self.register_vehicle(id, &name, told, now);
            }
            Control::RegisterOperator { name, addresses, versions, relays, candidates, held } => {
                let told = Told { addresses, versions, relays, candidates, held };
                self.register_operator(id, &name, told, now);
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
                    self.release(&operator, &format!("operator {operator} has let go"));
                }
            }
            Control::Ping { t } => self.send(id, Control::Pong { t }),
            Control::Pong { t } => connection.pong(t, now),
            Control::Enroll { number, secret } => self.enroll(id, number, secret, now),
            Control::Order(order) => match connection.role {
                Role::Administrator => self.obey_order(id, order, now),
                Role::Unregistered | Role::Vehicle(_) | Role::Operator(_) => {
                    let text = "only the holder of the switchboard's own key orders".to_owned();
                    self.turn_away(id, Refusal::NotAllowed, text, now);
                }
            },
            Control::VehicleList { .. }
            | Control::OrderPart { .. }
            | Control::Enrolled { .. }
            | Control::Introduce { .. }
            | Control::Released { .. }
            | Control::Relays { .. }
            | Control::Refused { .. } => {
                let text = "a switchboard says this, it is never told".to_owned();
                self.turn_away(id, Refusal::BadRequest, text, now);
            }
        }
    }

    /// Takes note of bytes that are no message.
    pub fn handle_malformed(&mut self, id: ConnectionId, reason: &str, now: Instant) {
        if self.connections.contains_key(&id) {
            let text = format!("this is no message of the control plane: {reason}");
            self.turn_away(id, Refusal::BadRequest, text, now);
        }
    }

    /// Takes note that a connection has ended.
    pub fn handle_closed(&mut self, id: ConnectionId, now: Instant) {
        let Some(connection) = self.connections.remove(&id) else { return };
        connection.log_latency();
        match connection.role {
            Role::Unregistered | Role::Administrator => {}
            Role::Vehicle(name) => {
                if let Some(vehicle) = self.vehicles.get_mut(&name)
                    && vehicle.presence.as_ref().is_some_and(|p| p.id == id)
                {
                    vehicle.presence = None;
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
    }

    /// Returns the next thing to be done.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called, and what for.
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
        connections.chain(graces).chain(renewals).min()
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in ids {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            if connection.times_out_at(self.connection_timeout) <= now {
                tracing::info!(remote = %connection.remote, "a silent connection was given up");
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
        let is_due = |vehicle: &Vehicle| {
            vehicle.lease.as_ref().and_then(|lease| lease.renew_at).is_some_and(|at| at <= now)
        };
        let due = self.vehicles.iter().filter(|(_, vehicle)| is_due(vehicle));
        let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            self.tell_relays(&name, now);
        }
    }

    fn register_vehicle(&mut self, id: ConnectionId, name: &str, told: Told, now: Instant) {
        let held = told.held.clone();
        let Some((key, remote, presence)) = self.admit(id, told, now) else { return };
        let Some(own) = self.vehicles.iter().find_map(|(n, v)| (v.key == key).then(|| n.clone()))
        else {
            return self.refuse_role(id, key, "operator", "a vehicle", now);
        };
        if own != name {
            return self.refuse_name(id, "vehicle", &own, name, now);
        }
        let vehicle = self.vehicles.get_mut(&own).expect("found just now");
        if let Some(old) = vehicle.presence.as_mut().filter(|old| old.same(&presence)) {
            if std::mem::replace(&mut old.candidates, presence.candidates.clone())
                != presence.candidates
            {
                self.tell_operator(&own);
            }
            return;
        }
        let old = vehicle.presence.replace(presence);
        let pending_release = vehicle.pending_release.take();
        self.set_role(id, Role::Vehicle(own.clone()));
        tracing::info!(vehicle = own, %remote, "vehicle there");
        self.replace(old, id, &format!("vehicle {own}"), remote, now);
        if let Some(held) = &held {
            self.heed(&own, held, now);
        }
        if let Some(released) = pending_release.or_else(|| self.outlived(&own)) {
            self.send(id, released);
        }
        self.introduce(&own, now);
    }

    fn register_operator(&mut self, id: ConnectionId, name: &str, told: Told, now: Instant) {
        let Some((key, remote, presence)) = self.admit(id, told, now) else { return };
        let Some(own) = self.operators.iter().find_map(|(n, o)| (o.key == key).then(|| n.clone()))
        else {
            return self.refuse_role(id, key, "vehicle", "an operator", now);
        };
        if own != name {
            return self.refuse_name(id, "operator", &own, name, now);
        }
        if presence.addresses.is_empty() {
            let text = "an operator gives at least one address where vehicles reach it".to_owned();
            return self.turn_away(id, Refusal::BadRequest, text, now);
        }
        let operator = self.operators.get_mut(&own).expect("found just now");
        if let Some(old) = operator.presence.as_mut().filter(|old| old.same(&presence)) {
            if std::mem::replace(&mut old.candidates, presence.candidates.clone())
                != presence.candidates
                && let Some(vehicle) = self.vehicle_of(&own)
            {
                self.tell_vehicle(&vehicle);
            }
            return;
        }
        let old = operator.presence.replace(presence);
        self.set_role(id, Role::Operator(own.clone()));
        tracing::info!(operator = own, %remote, "operator there");
        self.replace(old, id, &format!("operator {own}"), remote, now);
        if let Some(lease) = self.lease_of(&own) {
            lease.ends_at = None;
        }
        if let Some(vehicle) = self.vehicle_of(&own) {
            self.introduce(&vehicle, now);
        }
    }

    fn list(&mut self, id: ConnectionId) {
        let vehicles = self.vehicles.iter().map(|(name, vehicle)| VehicleEntry {
            name: name.clone(),
            key: *vehicle.key.as_bytes(),
            state: match (&vehicle.presence, &vehicle.lease) {
                (None, _) => VehicleState::Away,
                (Some(_), Some(_)) => VehicleState::Taken,
                (Some(_), None) => VehicleState::Free,
            },
            round_trip_ms: vehicle
                .presence
                .as_ref()
                .and_then(|presence| self.connections.get(&presence.id)?.latency.newest())
                .map(|round_trip| round_trip.as_secs_f32() * 1e3),
        });
        let vehicles = vehicles.collect();
        self.send(id, Control::VehicleList { vehicles });
    }

    fn take(&mut self, id: ConnectionId, operator: &str, name: &str, now: Instant) {
        let Some(vehicle) = self.vehicles.get(name) else {
            let text = format!("there is no vehicle {name:?} here");
            return self.refuse(id, Refusal::UnknownVehicle, text);
        };
        let is_here = vehicle.presence.is_some();
        match &vehicle.lease {
            Some(lease) if lease.operator != operator => {
                let text = format!("vehicle {name} is driven by {}", lease.operator);
                tracing::info!(vehicle = name, operator, "refused: {text}");
                self.refuse(id, Refusal::VehicleTaken, text);
            }
            // Its own already: it was introduced when both ends were there.
            Some(_) if is_here => {}
            Some(_) => self.wait(id, name),
            None => {
                let Some(epoch) = vehicle.epoch.checked_add(1) else {
                    let text =
                        format!("vehicle {name} has said that it had the last of all leases");
                    return self.refuse(id, Refusal::Full, text);
                };
                let reason = format!("operator {operator} takes vehicle {name} instead");
                self.release(operator, &reason);
                self.give(name, operator, epoch, now);
                tracing::info!(vehicle = name, operator, epoch, "vehicle taken");
                if is_here {
                    self.introduce(name, now);
                } else {
                    self.wait(id, name);
                }
            }
        }
    }

    /// Says that the vehicle is the operator's, but there is nobody to be introduced to yet.
    fn wait(&mut self, id: ConnectionId, name: &str) {
        let text = format!("vehicle {name} is away: it is kept for you until it comes");
        self.refuse(id, Refusal::VehicleAway, text);
    }

    /// Ends the operator's lease, if it has one, and tells both.
    fn release(&mut self, operator: &str, reason: &str) {
        let Some(name) = self.vehicle_of(operator) else { return };
        let vehicle = self.vehicles.get_mut(&name).expect("found just now");
        let lease = vehicle.lease.take().expect("found by its lease");
        tracing::info!(vehicle = name, reason, "vehicle released");
        let released =
            Control::Released { lease: lease.name.unwrap_or_default(), reason: reason.to_owned() };
        let to_operator = self.operators.get(operator).and_then(|o| o.presence.as_ref());
        let to_operator = to_operator.map(|presence| presence.id);
        self.outputs.push_back(Output::Keep(leases::change(vehicle, &self.operators)));
        match vehicle.presence.as_ref().map(|presence| presence.id) {
            Some(to) => {
                let message = released.clone();
                self.outputs.push_back(Output::Send { to, message });
            }
            // Never introduced: nothing to be told.
            None if lease.name.is_none() => {}
            None => vehicle.pending_release = Some(released.clone()),
        }
        if let Some(to_operator) = to_operator {
            self.send(to_operator, released);
        }
    }

    /// Gives both ends of the vehicle's lease tokens for the relays, if both are there and know what these
    /// are.
    fn tell_relays(&mut self, name: &str, now: Instant) {
        let Some(issuer) = &self.issuer else { return };
        let Some(vehicle) = self.vehicles.get_mut(name) else { return };
        let (Some(at), Some(lease)) = (&vehicle.presence, &mut vehicle.lease) else { return };
        lease.renew_at = issuer.renew_at(now);
        let Some(operator) = self.operators.get(&lease.operator) else { return };
        let Some(operator_at) = &operator.presence else { return };
        if lease.renew_at.is_none() || !at.relays || !operator_at.relays {
            return;
        }
        let ends = [
            (operator_at.id, Side::Responder, operator.key, vehicle.key),
            (at.id, Side::Initiator, vehicle.key, operator.key),
        ];
        for (to, side, holder, peer) in ends {
            let relays = issuer.tickets(side, holder, peer, now);
            let message = Control::Relays { peer_key: *peer.as_bytes(), relays };
            self.outputs.push_back(Output::Send { to, message });
        }
    }

    /// Tells both ends of the vehicle's lease of each other, if both are there: under a new name, or where
    /// both have it in hand under the present one, of which nothing begins anew.
    fn introduce(&mut self, name: &str, now: Instant) {
        // Who begins a session knows by then which relays there are.
        self.tell_relays(name, now);
        let Some(vehicle) = self.vehicles.get_mut(name) else { return };
        let (Some(at), Some(lease)) = (&mut vehicle.presence, &mut vehicle.lease) else { return };
        let Some(operator) = self.operators.get_mut(&lease.operator) else { return };
        let Some(operator_at) = &mut operator.presence else { return };
        if lease.name.is_some() && at.held == lease.name && operator_at.held == lease.name {
            tracing::info!(vehicle = name, operator = lease.operator, "both are back");
            if !at.candidates.is_empty() && !operator_at.candidates.is_empty() {
                self.tell_operator(name);
                self.tell_vehicle(name);
            }
            return;
        }
        let mut lease_name = [0; 16];
        self.rng.fill_bytes(&mut lease_name);
        lease.name = Some(lease_name);
        (at.held, operator_at.held) = (lease.name, lease.name);
        vehicle.pending_release = None;
        let epoch = vehicle.epoch;
        tracing::info!(vehicle = name, operator = lease.operator, epoch, "introduced");
        // The operator first: it waits for the vehicle's first datagram.
        let to_operator = introduction(lease_name, name, vehicle.key, at, epoch);
        let to_vehicle =
            introduction(lease_name, &lease.operator, operator.key, operator_at, epoch);
        let (operator_at, vehicle_at) = (operator_at.id, at.id);
        self.keep(name);
        self.send(operator_at, to_operator);
        self.send(vehicle_at, to_vehicle);
    }

    /// Tells the operator of the vehicle's lease where the vehicle may be reached now, under the lease that
    /// both know. Who tells no candidates is of an older build, and would begin anew.
    fn tell_operator(&mut self, name: &str) {
        let Some(vehicle) = self.vehicles.get(name) else { return };
        let (Some(at), Some(lease)) = (&vehicle.presence, &vehicle.lease) else { return };
        let Some(operator) = self.operators.get(&lease.operator) else { return };
        if let (Some(lease_name), Some(to)) = (lease.name, &operator.presence)
            && !to.candidates.is_empty()
        {
            let message = introduction(lease_name, name, vehicle.key, at, vehicle.epoch);
            let to = to.id;
            self.send(to, message);
        }
    }

    /// Tells the vehicle likewise where its operator may be reached now.
    fn tell_vehicle(&mut self, name: &str) {
        let Some(vehicle) = self.vehicles.get(name) else { return };
        let (Some(to), Some(lease)) = (&vehicle.presence, &vehicle.lease) else { return };
        let Some(operator) = self.operators.get(&lease.operator) else { return };
        if let (Some(lease_name), Some(at)) = (lease.name, &operator.presence)
            && !to.candidates.is_empty()
        {
            let epoch = vehicle.epoch;
            let message = introduction(lease_name, &lease.operator, operator.key, at, epoch);
            let to = to.id;
            self.send(to, message);
        }
    }

    /// Returns who it is, where from, and what it tells if that is sound; else it is turned away.
    fn admit(
        &mut self,
        id: ConnectionId,
        told: Told,
        now: Instant,
    ) -> Option<(PublicKey, SocketAddr, Presence)> {
        let &Connection { key, remote, .. } = self.connections.get(&id)?;
        if !self.listed().any(|listed| listed == key) {
            self.refuse_unknown(id, key, remote, now);
            return None;
        }
        let Told { addresses, versions, relays, candidates, held } = told;
        // Who tells other addresses on the connection that it has wants to be introduced anew.
        let held = held.and_then(|held| held.lease).filter(|_| !self.is_registered(id));
        match addresses::reachable(&addresses, remote.ip()) {
            Ok(addresses) => {
                let versions = versions.unwrap_or(UNSAID);
                Some((key, remote, Presence { id, addresses, versions, relays, candidates, held }))
            }
            Err(text) => {
                self.turn_away(id, Refusal::BadRequest, text, now);
                None
            }
        }
    }

    /// Closes the connection that a newer one of the same key has taken the place of.
    fn replace(
        &mut self,
        old: Option<Presence>,
        id: ConnectionId,
        who: &str,
        remote: SocketAddr,
        now: Instant,
    ) {
        if let Some(old) = old
            && old.id != id
        {
            let text = format!("{who} has connected again, from {remote}: this connection ends");
            self.turn_away(old.id, Refusal::NameTaken, text, now);
        }
    }

    /// Returns the registered operator's name; others are refused.
    fn operator_of(&mut self, id: ConnectionId) -> Option<String> {
        if let Role::Operator(name) = &self.connections.get(&id)?.role {
            return Some(name.clone());
        }
        let text = "register as an operator first".to_owned();
        self.refuse(id, Refusal::NotRegistered, text);
        None
    }

    fn lease_of(&mut self, operator: &str) -> Option<&mut Lease> {
        let mut leases = self.vehicles.values_mut().filter_map(|vehicle| vehicle.lease.as_mut());
        leases.find(|lease| lease.operator == operator)
    }

    fn vehicle_of(&self, operator: &str) -> Option<String> {
        let has =
            |vehicle: &Vehicle| vehicle.lease.as_ref().is_some_and(|l| l.operator == operator);
        self.vehicles.iter().find_map(|(name, vehicle)| has(vehicle).then(|| name.clone()))
    }

    fn is_registered(&self, id: ConnectionId) -> bool {
        let connection = self.connections.get(&id);
        connection.is_some_and(|connection| match connection.role {
            Role::Vehicle(_) | Role::Operator(_) => true,
            Role::Unregistered | Role::Administrator => false,
        })
    }

    fn set_role(&mut self, id: ConnectionId, role: Role) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.role = role;
        }
    }

    fn refuse_role(
        &mut self,
        id: ConnectionId,
        key: PublicKey,
        is: &str,
        wants: &str,
        now: Instant,
    ) {
        let text = format!("the key {key} is listed as {is}, so it cannot register as {wants}");
        self.turn_away(id, Refusal::NotAllowed, text, now);
    }

    fn refuse_name(&mut self, id: ConnectionId, what: &str, own: &str, name: &str, now: Instant) {
        let text = format!("this key is listed as {what} {own:?}, not {name:?}: set its name so");
        self.turn_away(id, Refusal::NotAllowed, text, now);
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
        self.handle_closed(id, now);
        self.outputs.push_back(Output::Close { to: id });
    }

    fn send(&mut self, to: ConnectionId, message: Control) {
        self.outputs.push_back(Output::Send { to, message });
    }
}

impl Vehicle {
    fn new(key: PublicKey) -> Self {
        Self { key, presence: None, epoch: 0, lease: None, pending_release: None }
    }
}

impl Operator {
    fn new(key: PublicKey) -> Self {
        Self { key, presence: None }
    }
}

impl Presence {
    /// Returns whether nothing is another but the candidates.
    fn same(&self, other: &Self) -> bool {
        self.id == other.id
            && self.addresses == other.addresses
            && self.versions == other.versions
            && self.relays == other.relays
    }
}

/// What somebody tells of itself when it registers.
#[derive(Debug)]
struct Told {
    addresses: Vec<String>,
    versions: Option<ProtocolVersions>,
    /// Whether it knows what a relay is.
    relays: bool,
    candidates: Vec<Candidate>,
    /// What it was introduced under last.
    held: Option<Held>,
}

fn introduction(
    lease: [u8; 16],
    peer_name: &str,
    peer_key: PublicKey,
    peer: &Presence,
    epoch: u64,
) -> Control {
    Control::Introduce {
        lease,
        peer_name: peer_name.to_owned(),
        peer_key: *peer_key.as_bytes(),
        peer_addresses: peer.addresses.iter().map(Destination::to_string).collect(),
        peer_versions: Some(peer.versions),
        peer_candidates: peer.candidates.clone(),
        epoch,
    }
}

/// What a build speaks that says nothing of versions.
const UNSAID: ProtocolVersions = ProtocolVersions { lowest: 1, highest: 1 };
/// The longest text that a message may carry.
const TEXT_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests;
