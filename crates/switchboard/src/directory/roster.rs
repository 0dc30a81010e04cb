//! List of served ends, which may change during operation.

use std::collections::{BTreeMap, BTreeSet};

use tautline_message::Refusal;
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use super::{Directory, Operator, Vehicle};

impl Directory {
    /// Replaces the lists of vehicles and operators, by name and key; enrolled machines stay
    /// listed.
    ///
    /// An end that is no longer listed under its name and key loses its lease and its connection;
    /// nothing changes for the others. A vehicle that is listed again, even under another name,
    /// continues from its epoch.
    pub fn relist(
        &mut self,
        vehicles: &BTreeMap<String, PublicKey>,
        operators: &BTreeMap<String, PublicKey>,
        now: Instant,
    ) {
        let [vehicles, operators] = self.enrolment.with_settings(vehicles, operators);
        self.relist_exactly(&vehicles, &operators, now);
    }

    pub(super) fn relist_exactly(
        &mut self,
        vehicles: &BTreeMap<String, PublicKey>,
        operators: &BTreeMap<String, PublicKey>,
        now: Instant,
    ) {
        let gone_vehicles: Vec<_> = self
            .vehicles
            .iter()
            .filter(|(name, vehicle)| vehicles.get(*name) != Some(&vehicle.key))
            .map(|(name, vehicle)| {
                (name.clone(), vehicle.lease.as_ref().map(|l| l.operator.clone()))
            })
            .collect();
        let gone_operators: Vec<_> = self
            .operators
            .iter()
            .filter(|(name, operator)| operators.get(*name) != Some(&operator.key))
            .map(|(name, _)| name.clone())
            .collect();
        let mut gone = BTreeSet::new();
        for (name, driver) in gone_vehicles {
            if let Some(driver) = driver {
                self.release(&driver, &format!("vehicle {name} is no longer listed"));
            }
            if let Some(vehicle) = self.vehicles.remove(&name) {
                tracing::info!(vehicle = name, key = %vehicle.key, "no longer listed");
                self.unlisted.insert(vehicle.key, vehicle.epoch);
                gone.insert(vehicle.key);
            }
        }
        for name in gone_operators {
            self.release(&name, &format!("operator {name} is no longer listed"));
            if let Some(operator) = self.operators.remove(&name) {
                tracing::info!(operator = name, key = %operator.key, "no longer listed");
                gone.insert(operator.key);
            }
        }
        let connections = self.connections.iter().filter(|(_, other)| gone.contains(&other.key));
        let connections: Vec<_> = connections.map(|(id, _)| *id).collect();
        for id in connections {
            let text = "this key is no longer listed under this name".to_owned();
            self.turn_away(id, Refusal::NotAllowed, text, now);
        }
        for (name, key) in vehicles {
            if !self.vehicles.contains_key(name) {
                tracing::info!(vehicle = name, %key, "listed");
                let epoch = self.unlisted.remove(key).unwrap_or(0);
                self.vehicles.insert(name.clone(), Vehicle { epoch, ..Vehicle::new(*key) });
            }
        }
        for (name, key) in operators {
            if !self.operators.contains_key(name) {
                tracing::info!(operator = name, %key, "listed");
                self.operators.insert(name.clone(), Operator::new(*key));
            }
        }
    }

    /// Replaces the list of supervisors.
    pub fn list_supervisors(&mut self, supervisors: &BTreeMap<String, PublicKey>) {
        self.supervisors.clone_from(supervisors);
    }

    /// Returns the keys of all listed ends and supervisors.
    pub fn known(&self) -> impl Iterator<Item = PublicKey> + '_ {
        self.listed().chain(self.supervisors.values().copied())
    }

    /// Returns the keys of all listed vehicles and operators.
    pub fn listed(&self) -> impl Iterator<Item = PublicKey> + '_ {
        let vehicles = self.vehicles.values().map(|vehicle| vehicle.key);
        vehicles.chain(self.operators.values().map(|operator| operator.key))
    }
}
