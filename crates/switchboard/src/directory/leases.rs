//! Leases: granted, ended, stored across restarts, and reconciled with the vehicles' own records.

use std::collections::BTreeMap;
use std::time::Duration;

use tautline_message::{Control, EPOCH_STEP_MAX, Held, Refusal};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use super::{ConnectionId, Directory, Lease, Operator, Output, Vehicle};
use crate::store::{Change, Kept, KeptLease, Record};

impl Directory {
    /// Restores the state that an earlier run stored; `unix_start` is the Unix time at
    /// [`Instant::ZERO`].
    ///
    /// Driving operators have time to reconnect, even if the grace time is shorter than that takes.
    pub fn restore(&mut self, kept: &Kept, unix_start: Duration, now: Instant) {
        self.unix_start = unix_start;
        self.restore_enrolled(&kept.machines);
        let ends_at = now + self.lease_grace.max(RETURN_MAX);
        self.return_until = now + RETURN_MAX;
        for (key, record) in &kept.vehicles {
            let lease = record.lease.as_ref();
            let operator = lease.and_then(|lease| self.free_operator(&lease.operator));
            let vehicle = self.vehicles.iter_mut().find(|(_, vehicle)| vehicle.key == *key);
            let Some((name, vehicle)) = vehicle else {
                self.unlisted.insert(*key, record.epoch);
                if lease.is_some() {
                    let record = Record { epoch: record.epoch, lease: None };
                    self.outputs.push_back(Output::Keep(Change::Vehicle { key: *key, record }));
                }
                continue;
            };
            vehicle.epoch = record.epoch;
            match (operator, lease) {
                (Some(operator), Some(lease)) => {
                    tracing::info!(vehicle = name, operator, epoch = record.epoch, "lease kept");
                    let given = Lease::new(operator, lease.since);
                    let (name, restored, ends_at) = (lease.name, lease.name, Some(ends_at));
                    vehicle.lease = Some(Lease { name, restored, ends_at, ..given });
                }
                (None, Some(_)) => {
                    tracing::info!(
                        vehicle = name,
                        "a lease ends because its operator is not listed"
                    );
                    self.outputs.push_back(Output::Keep(change(vehicle, &self.operators)));
                }
                (_, None) => {}
            }
        }
    }

    /// Reconciles the epoch with a vehicle's report of a lease unknown here: a backup has restored
    /// older ones, or another switchboard has granted them.
    ///
    /// The operator in the vehicle's report keeps or gets the lease, if it has no other. Otherwise
    /// the current lease, granted without that knowledge, gets an epoch that the vehicle accepts. A
    /// report more than [`EPOCH_STEP_MAX`] ahead is ignored and logged.
    pub(super) fn heed(&mut self, name: &str, held: &Held, now: Instant) {
        let holder = PublicKey::from_bytes(held.peer_key).ok();
        let Some(vehicle) = self.vehicles.get(name) else { return };
        let driver = vehicle.lease.as_ref().map(|lease| lease.operator.clone());
        let is_holders = driver.as_ref().is_none_or(|driver| {
            self.operators.get(driver).is_some_and(|operator| Some(operator.key) == holder)
        });
        if held.epoch < vehicle.epoch || held.epoch == vehicle.epoch && is_holders {
            return;
        }
        if held.epoch.saturating_sub(vehicle.epoch) > EPOCH_STEP_MAX {
            // Stored here, it would outlast the vehicle that reported it.
            tracing::warn!(
                vehicle = name,
                told = held.epoch,
                known = vehicle.epoch,
                "the vehicle reports an epoch that no lease can have had: stop it and delete its \
                 epoch file"
            );
            return;
        }
        tracing::warn!(
            vehicle = name,
            told = held.epoch,
            known = vehicle.epoch,
            "the vehicle has had a later lease than the switchboard knows"
        );
        let in_hand = held.lease.and_then(|lease| Some((lease, self.free_operator(&holder?)?)));
        if driver.is_some() && is_holders {
            let vehicle = self.vehicles.get_mut(name).expect("found just now");
            vehicle.epoch = held.epoch;
            if let Some(lease) = &mut vehicle.lease {
                lease.name = held.lease.or(lease.name);
            }
        } else if let Some((lease_name, operator)) = in_hand {
            if let Some(driver) = driver {
                self.release(&driver, &format!("vehicle {name} is driven by {operator}"));
            }
            self.give(name, &operator, held.epoch, now);
            let is_away = self.operators.get(&operator).is_none_or(|o| o.presence.is_none());
            let ends_at = is_away.then(|| now + self.lease_grace.max(RETURN_MAX));
            let vehicle = self.vehicles.get_mut(name).expect("found just now");
            if let Some(lease) = &mut vehicle.lease {
                (lease.name, lease.ends_at) = (Some(lease_name), ends_at);
            }
        } else {
            let vehicle = self.vehicles.get_mut(name).expect("found just now");
            vehicle.epoch = match vehicle.lease {
                Some(_) => held.epoch.saturating_add(1),
                None => held.epoch,
            };
        }
        self.keep(name);
    }

    pub(super) fn take(&mut self, id: ConnectionId, operator: &str, name: &str, now: Instant) {
        let Some(vehicle) = self.vehicles.get(name) else {
            let text = format!("there is no vehicle {name:?} here");
            return self.refuse(id, Refusal::UnknownVehicle, text);
        };
        let is_here = vehicle.presence.is_some();
        let ended =
            vehicle.ended.as_ref().filter(|(driver, until)| driver == operator && *until > now);
        if let Some((_, until)) = ended {
            let seconds = until.since(now).as_secs();
            let text = format!("a supervisor has ended this drive: wait {seconds} s more");
            return self.refuse(id, Refusal::VehicleTaken, text);
        }
        match &vehicle.lease {
            Some(lease) if lease.operator != operator => {
                let text = format!("vehicle {name} is driven by {}", lease.operator);
                tracing::info!(vehicle = name, operator, "refused: {text}");
                self.refuse(id, Refusal::VehicleTaken, text);
            }
            // The operator already holds it: it was introduced when both ends were registered.
            Some(_) if is_here => {}
            Some(_) => self.wait(id, name),
            None => {
                let Some(epoch) = vehicle.epoch.checked_add(1) else {
                    let text =
                        format!("vehicle {name} reports that it has had the last possible lease");
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

    /// Informs the operator on this connection that it holds the lease of the vehicle, which is
    /// away.
    fn wait(&mut self, id: ConnectionId, name: &str) {
        let text = format!("vehicle {name} is away: it is reserved for you until it returns");
        self.refuse(id, Refusal::VehicleAway, text);
    }

    /// Ends the operator's lease, if it has one, stores that and notifies both ends: an absent
    /// vehicle when it returns, unless it was never introduced.
    pub(super) fn release(&mut self, operator: &str, reason: &str) {
        let Some(name) = self.vehicle_of(operator) else { return };
        let vehicle = self.vehicles.get_mut(&name).expect("found just now");
        let lease = vehicle.lease.take().expect("found by its lease");
        tracing::info!(vehicle = name, reason, "vehicle released");
        let released =
            Control::Released { lease: lease.name.unwrap_or_default(), reason: reason.to_owned() };
        let to_operator = self.operators.get(operator).and_then(|o| o.presence.as_ref());
        let to_operator = to_operator.map(|presence| presence.id);
        self.outputs.push_back(Output::Keep(change(vehicle, &self.operators)));
        match vehicle.presence.as_ref().map(|presence| presence.id) {
            Some(to) => {
                let message = released.clone();
                self.outputs.push_back(Output::Send { to, message });
            }
            // Never introduced, so the vehicle does not know the lease.
            None if lease.name.is_none() => {}
            None => vehicle.pending_release = Some(released.clone()),
        }
        if let Some(to_operator) = to_operator {
            self.send(to_operator, released);
        }
    }

    /// Grants the vehicle to the operator, both of which are free, under `epoch`, and stores that.
    pub(super) fn give(&mut self, name: &str, operator: &str, epoch: u64, now: Instant) {
        let since = self.unix_start + now.since(Instant::ZERO);
        let operator = operator.to_owned();
        let vehicle = self.vehicles.get_mut(name).expect("checked by the caller");
        vehicle.epoch = epoch;
        vehicle.lease = Some(Lease::new(operator, since));
        self.keep(name);
    }

    /// Requests that the epoch and the lease of the vehicle be stored.
    pub(super) fn keep(&mut self, name: &str) {
        if let Some(vehicle) = self.vehicles.get(name) {
            self.outputs.push_back(Output::Keep(change(vehicle, &self.operators)));
        }
    }

    /// Returns the release message for a registered vehicle that reports a lease although the
    /// directory has none for it; `None` for any other.
    pub(super) fn outlived(&self, name: &str) -> Option<Control> {
        let vehicle = self.vehicles.get(name)?;
        let lease = vehicle.presence.as_ref()?.held.filter(|_| vehicle.lease.is_none())?;
        Some(Control::Released { lease, reason: "the lease has ended meanwhile".to_owned() })
    }

    pub(super) fn lease_of(&mut self, operator: &str) -> Option<&mut Lease> {
        let mut leases = self.vehicles.values_mut().filter_map(|vehicle| vehicle.lease.as_mut());
        leases.find(|lease| lease.operator == operator)
    }

    pub(super) fn vehicle_of(&self, operator: &str) -> Option<String> {
        let has =
            |vehicle: &Vehicle| vehicle.lease.as_ref().is_some_and(|l| l.operator == operator);
        self.vehicles.iter().find_map(|(name, vehicle)| has(vehicle).then(|| name.clone()))
    }

    /// Returns the name of the operator with this key, if it has no lease.
    fn free_operator(&self, key: &PublicKey) -> Option<String> {
        let (name, _) = self.operators.iter().find(|(_, operator)| operator.key == *key)?;
        self.vehicle_of(name).is_none().then(|| name.clone())
    }
}

impl Lease {
    /// Creates a lease whose ends were not introduced yet.
    fn new(operator: String, since: Duration) -> Self {
        Self {
            operator,
            name: None,
            restored: None,
            since,
            ends_at: None,
            renew_at: None,
            introduce_at: None,
        }
    }
}

/// Returns the change that stores a vehicle's epoch and lease.
pub(super) fn change(vehicle: &Vehicle, operators: &BTreeMap<String, Operator>) -> Change {
    let kept = |lease: &Lease| {
        let operator = operators.get(&lease.operator)?.key;
        Some(KeptLease { operator, name: lease.name, since: lease.since })
    };
    let lease = vehicle.lease.as_ref().and_then(kept);
    Change::Vehicle { key: vehicle.key, record: Record { epoch: vehicle.epoch, lease } }
}

/// Minimum time for which a restored lease is kept without its operator, since clients return
/// within it after a restart of the switchboard. A client takes 3 s each to detect that its
/// switchboard is gone, to wait before the next attempt, and to complete a handshake.
const RETURN_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
