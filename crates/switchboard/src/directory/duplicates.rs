//! Duplicate registrations: two machines with one key, from a copied folder or card. The first
//! stays for as long as it answers.

use tautline_message::Refusal;
use tautline_transport::crypto::PublicKey;
use tautline_units::{Duration, Instant};

use super::claim::Claim;
use super::contender::Contender;
use super::duplicate::Duplicate;
use super::{ConnectionId, Directory, Lease, Presence, Vehicle};

impl Directory {
    /// Registers a vehicle or an operator. If the key has a connection that may be another
    /// machine's, that connection is pinged first, and its answer or its end decides. While one
    /// registration waits for that, another is refused.
    ///
    /// A process that reports the name of the current lease is the one that was introduced under
    /// it: only its peer also knows that name. The same is true of the name that an earlier run of
    /// the switchboard stored, for which a copy may have registered first.
    pub(super) fn register(&mut self, id: ConnectionId, claim: Claim, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let key = connection.key;
        let held = claim.told().held.as_ref().and_then(|held| held.lease);
        let first = self.presence_of(key).filter(|first| first.id != id);
        let is_of_lease = |first: &&Presence| first.held == held || self.restored_of(key) == held;
        let Some(first) = first.filter(|first| held.is_none() || !is_of_lease(first)) else {
            return self.admit_claim(id, claim, now);
        };
        let first = first.id;
        if self.contenders.get(&key).is_some_and(|contender| contender.id != id) {
            return self.refuse_duplicate(key, id, first, now);
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.begin_anew(now);
        }
        let since = self.contenders.get(&key).map_or(now, |contender| contender.since);
        self.contenders.insert(key, Contender { id, claim, since });
        if let Some(connection) = self.connections.get_mut(&first) {
            connection.ping_at = now;
        }
    }

    /// Refuses the duplicate registration under the key of connection `id`, which has answered the
    /// ping of `sent_at`, if one waits and came before that ping: the first machine is alive.
    pub(super) fn handle_alive(&mut self, id: ConnectionId, sent_at: Instant, now: Instant) {
        let Some(key) = self.connections.get(&id).map(|connection| connection.key) else { return };
        let is_first = self.presence_of(key).is_some_and(|first| first.id == id);
        let is_later = |contender: &Contender| contender.since <= sent_at && contender.id != id;
        if is_first && self.contenders.get(&key).is_some_and(is_later) {
            let duplicate = self.contenders.remove(&key).expect("found just now");
            self.refuse_duplicate(key, duplicate.id, id, now);
        }
    }

    /// Admits the registration that waited for the end of this connection, or drops it if its own
    /// connection ended.
    pub(super) fn settle_rivals(&mut self, ended: ConnectionId, key: PublicKey, now: Instant) {
        let Some(contender) = self.contenders.get(&key) else { return };
        let is_over = contender.id == ended;
        if is_over || self.presence_of(key).is_none() {
            let Contender { id, claim, .. } = self.contenders.remove(&key).expect("found just now");
            if !is_over {
                self.admit_claim(id, claim, now);
            }
        }
    }

    /// Returns a text for people: the source address of an end's connection, or that it is away,
    /// and the duplicate registration under its key that was refused within the last minute.
    pub(super) fn place_of(
        &self,
        presence: Option<&Presence>,
        duplicate: Option<Duplicate>,
        now: Instant,
    ) -> String {
        let remote = presence.and_then(|presence| self.connections.get(&presence.id));
        let place = remote.map_or("away".to_owned(), |it| format!("connected from {}", it.remote));
        match duplicate.filter(|duplicate| now.since(duplicate.at) <= RIVAL_MAX) {
            Some(Duplicate { remote, at }) => {
                let seconds = now.since(at).as_secs();
                format!(
                    "{place}; a connection with the same key from {remote} was refused {seconds} \
                     s ago"
                )
            }
            None => place,
        }
    }

    fn admit_claim(&mut self, id: ConnectionId, claim: Claim, now: Instant) {
        match claim {
            Claim::Vehicle(name, told) => self.register_vehicle(id, &name, told, now),
            Claim::Operator(name, told) => self.register_operator(id, &name, told, now),
        }
    }

    /// Refuses a duplicate registration and closes its connection `id`; `first` stays. Informs both
    /// machines and the log, and records it for people.
    pub(super) fn refuse_duplicate(
        &mut self,
        key: PublicKey,
        id: ConnectionId,
        first: ConnectionId,
        now: Instant,
    ) {
        let remote_of = |id| self.connections.get(&id).map(|connection| connection.remote);
        let (Some(remote), Some(first_at)) = (remote_of(id), remote_of(first)) else { return };
        let duplicate = Some(Duplicate { remote, at: now });
        let vehicle = self.vehicles.iter_mut().find(|(_, vehicle)| vehicle.key == key);
        let who = match vehicle {
            Some((name, vehicle)) => {
                vehicle.duplicate = duplicate;
                format!("vehicle {name}")
            }
            None => {
                let operator = self.operators.iter_mut().find(|(_, operator)| operator.key == key);
                let Some((name, operator)) = operator else { return };
                operator.duplicate = duplicate;
                format!("operator {name}")
            }
        };
        let text = format!(
            "{who} is at {first_at}, and another machine uses its key at {remote}: was a folder \
             or card copied? The first one stays, the other is refused"
        );
        if let Some(left_out) = self.duplicates.take(now) {
            tracing::warn!(%key, left_out, "{text}");
        }
        self.refuse(first, Refusal::NameTaken, text.clone());
        self.turn_away(id, Refusal::NameTaken, text, now);
    }

    /// Returns the name of the stored lease that this key's holder had when the switchboard was
    /// restarted; `None` without one, and once both ends have shown it.
    fn restored_of(&self, key: PublicKey) -> Option<[u8; 16]> {
        let is_its = |vehicle: &Vehicle, lease: &Lease| {
            let operator = self.operators.get(&lease.operator);
            vehicle.key == key || operator.is_some_and(|operator| operator.key == key)
        };
        let leases = self.vehicles.values().filter_map(|it| Some((it, it.lease.as_ref()?)));
        let its = leases.filter(|(vehicle, lease)| is_its(vehicle, lease));
        its.filter_map(|(_, lease)| lease.restored).next()
    }

    pub(super) fn presence_of(&self, key: PublicKey) -> Option<&Presence> {
        let vehicle = self.vehicles.values().find(|vehicle| vehicle.key == key);
        let operator = self.operators.values().find(|operator| operator.key == key);
        let of_vehicle = vehicle.and_then(|vehicle| vehicle.presence.as_ref());
        of_vehicle.or_else(|| operator.and_then(|operator| operator.presence.as_ref()))
    }
}

/// Time after its refusal for which a duplicate registration is shown to people: a refused machine
/// retries about every three seconds.
const RIVAL_MAX: Duration = Duration::from_secs(60);
