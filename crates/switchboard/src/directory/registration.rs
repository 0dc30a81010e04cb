//! Registration of vehicles and operators.

use std::net::SocketAddr;

use tautline_message::{ProtocolVersions, Refusal};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use super::connection::{Connection, Role};
use super::told::Told;
use super::{ConnectionId, Directory, Presence, addresses};

impl Directory {
    pub(super) fn register_vehicle(
        &mut self,
        id: ConnectionId,
        name: &str,
        told: Told,
        now: Instant,
    ) {
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
        tracing::info!(vehicle = own, %remote, "vehicle connected");
        self.replace(key, old, id, now);
        if let Some(held) = &held {
            self.heed(&own, held, now);
        }
        if let Some(released) = pending_release.or_else(|| self.outlived(&own)) {
            self.send(id, released);
        }
        self.introduce(&own, now);
    }

    pub(super) fn register_operator(
        &mut self,
        id: ConnectionId,
        name: &str,
        told: Told,
        now: Instant,
    ) {
        let Some((key, remote, presence)) = self.admit(id, told, now) else { return };
        let Some(own) = self.operators.iter().find_map(|(n, o)| (o.key == key).then(|| n.clone()))
        else {
            return self.refuse_role(id, key, "vehicle", "an operator", now);
        };
        if own != name {
            return self.refuse_name(id, "operator", &own, name, now);
        }
        if presence.addresses.is_empty() {
            let text =
                "an operator must give at least one address that vehicles can reach".to_owned();
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
        tracing::info!(operator = own, %remote, "operator connected");
        self.replace(key, old, id, now);
        if let Some(lease) = self.lease_of(&own) {
            lease.ends_at = None;
        }
        if let Some(vehicle) = self.vehicle_of(&own) {
            self.introduce(&vehicle, now);
        }
    }

    /// Returns key, source address and presence of an end whose registration data is valid; refuses
    /// any other, closes its connection and returns `None`.
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
        let Told { addresses, versions, relays, candidates, held, place } = told;
        let link_count = u8::try_from(addresses.len()).unwrap_or(u8::MAX);
        // New addresses on an existing registration request a new introduction.
        let held = held.and_then(|held| held.lease).filter(|_| !self.is_registered(id));
        match addresses::reachable(&addresses, remote.ip()) {
            Ok(addresses) => {
                let versions = versions.unwrap_or(UNSAID);
                let presence = Presence {
                    id,
                    addresses,
                    versions,
                    relays,
                    candidates,
                    held,
                    place,
                    link_count,
                };
                Some((key, remote, presence))
            }
            Err(text) => {
                self.turn_away(id, Refusal::BadRequest, text, now);
                None
            }
        }
    }

    /// Closes the connection of `old`, if connection `id` has registered in its place: for the same
    /// process, or for another one with a copy of its key.
    fn replace(&mut self, key: PublicKey, old: Option<Presence>, id: ConnectionId, now: Instant) {
        let Some(old) = old.filter(|old| old.id != id) else { return };
        if self.presence_of(key).is_some_and(|new| new.held == old.held) {
            let text = "this process has connected again: its old connection ends".to_owned();
            return self.turn_away(old.id, Refusal::NameTaken, text, now);
        }
        self.refuse_duplicate(key, old.id, id, now);
    }

    fn is_registered(&self, id: ConnectionId) -> bool {
        let connection = self.connections.get(&id);
        connection.is_some_and(|connection| match connection.role {
            Role::Vehicle(_) | Role::Operator(_) => true,
            Role::Unregistered | Role::Administrator | Role::Supervisor => false,
        })
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
        let text = format!("this key is listed as {what} {own:?}, not {name:?}: set this name");
        self.turn_away(id, Refusal::NotAllowed, text, now);
    }
}

impl Presence {
    /// Returns whether both are of one connection, with the same addresses, versions and support of
    /// relays; the other fields are not compared.
    fn same(&self, other: &Self) -> bool {
        self.id == other.id
            && self.addresses == other.addresses
            && self.versions == other.versions
            && self.relays == other.relays
    }
}

/// Protocol versions assumed of a build that reports none.
pub(super) const UNSAID: ProtocolVersions = ProtocolVersions { lowest: 1, highest: 1 };
