//! Enrolment by one-time codes: admits machines without manual entry of their keys.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::Rng;
use tautline_message::{Control, Known, Refusal, Role};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use super::enrolment::{Invitation, Judged};
use super::{Answer, ConnectionId, Directory, Operator, Output, Vehicle};
use crate::config::ENTRIES_MAX;
use crate::store::{Change, Machine};

impl Directory {
    /// Lists the machines enrolled in an earlier run; entries of the settings take precedence.
    pub(super) fn restore_enrolled(&mut self, machines: &BTreeMap<PublicKey, Machine>) {
        for (key, machine) in machines {
            self.enrolment.enrolled.insert(*key, machine.clone());
            if self.enrolment.in_settings.contains(key) {
                continue;
            }
            match self.place_for(machine) {
                Ok(()) => self.list_machine(*key, machine),
                Err(text) => tracing::warn!(%key, "an enrolled key is ignored because the \
                                                   settings list it differently: {text}"),
            }
        }
    }

    /// Creates an invitation, and replaces an earlier one for the same machine. The error is a text
    /// for people: an unusable or listed name, a full list, or too many open invitations.
    pub(super) fn invite(
        &mut self,
        role: Role,
        name: String,
        now: Instant,
    ) -> Result<Answer, String> {
        if name.is_empty() || name.contains(char::is_control) {
            return Err(format!("{name:?}: a name must have 1 to 64 bytes, all printable"));
        }
        let machine = Machine { role, name };
        self.place_for(&machine)?;
        let waiting = &mut self.enrolment.invitations;
        waiting.retain(|_, other| now < other.ends_at && other.machine != machine);
        if waiting.len() >= INVITATIONS_MAX {
            return Err(format!("{INVITATIONS_MAX} invitations are already open"));
        }
        let mut bytes = [0; 6];
        let number = loop {
            self.rng.fill_bytes(&mut bytes);
            let number = u16::from_be_bytes([bytes[0], bytes[1]]);
            if !waiting.contains_key(&number) {
                break number;
            }
        };
        let secret = [bytes[2], bytes[3], bytes[4], bytes[5]];
        let (ends_at, attempts_left) = (now + INVITATION_LIFE, ATTEMPTS_MAX);
        tracing::info!(name = machine.name, role = ?role, "invited");
        waiting.insert(number, Invitation { secret, machine, ends_at, attempts_left });
        Ok(Answer::Code(number, secret))
    }

    /// Handles an enrolment request of a machine: a right code is used up, and lists its key if its
    /// name is free and the list is not full. A key that is listed already gets the same answer
    /// without a check. Any other request is refused, and its connection closed.
    pub(super) fn enroll(&mut self, id: ConnectionId, number: u16, secret: [u8; 4], now: Instant) {
        let Some(connection) = self.connections.get(&id) else { return };
        let (key, remote) = (connection.key, connection.remote);
        // It may have missed the first answer.
        if let Some(machine) = self.machine_of(key) {
            return self.welcome(id, machine);
        }
        match self.enrolment.judge(number, secret, remote.ip(), now) {
            Judged::Right(machine) if self.place_for(&machine).is_ok() => {
                tracing::info!(name = machine.name, role = ?machine.role, %key, %remote, "enrolled");
                let change = Change::Machine { key, machine: Some(machine.clone()) };
                self.outputs.push_back(Output::Keep(change));
                self.enrolment.enrolled.insert(key, machine.clone());
                self.list_machine(key, &machine);
                self.outputs.push_back(Output::Relist);
                self.welcome(id, machine);
            }
            Judged::Right(_) | Judged::Wrong => {
                tracing::warn!(%key, %remote, "refused a wrong code");
                let text = "this code is not valid: a code works once, for ten minutes and three \
                            attempts; ask for a new one";
                self.turn_away(id, Refusal::NotAllowed, text.to_owned(), now);
            }
            Judged::TooOften => {
                let text = "too many wrong codes: try again in a minute".to_owned();
                self.turn_away(id, Refusal::Full, text, now);
            }
        }
    }

    /// Removes an enrolled machine from the list, which ends its lease and its connection.
    ///
    /// # Errors
    /// A text for people: no code enrolled the machine, or the settings list its key too; then only
    /// the enrolment is removed.
    pub(super) fn revoke(
        &mut self,
        role: Role,
        name: &str,
        now: Instant,
    ) -> Result<Answer, String> {
        let is_it = |machine: &Machine| machine.role == role && machine.name == name;
        let mut enrolled = self.enrolment.enrolled.iter();
        let Some(key) = enrolled.find(|(_, machine)| is_it(machine)).map(|(key, _)| *key) else {
            return Err(format!(
                "{name:?} was not admitted by a code: remove it from the settings and send SIGHUP"
            ));
        };
        self.enrolment.enrolled.remove(&key);
        self.outputs.push_back(Output::Keep(Change::Machine { key, machine: None }));
        if self.enrolment.in_settings.contains(&key) {
            return Err(format!(
                "no code admits {name} any more, but the settings list its key: remove it there \
                 too and send SIGHUP"
            ));
        }
        let vehicles = self.vehicles.iter().map(|(name, it)| (name.clone(), it.key));
        let operators = self.operators.iter().map(|(name, it)| (name.clone(), it.key));
        let vehicles = vehicles.filter(|(_, it)| *it != key).collect();
        let operators = operators.filter(|(_, it)| *it != key).collect();
        self.relist_exactly(&vehicles, &operators, now);
        self.outputs.push_back(Output::Relist);
        Ok(Answer::Text(format!("{name} is no longer listed\n")))
    }

    fn welcome(&mut self, id: ConnectionId, Machine { role, name }: Machine) {
        let known =
            |name: &String, key: PublicKey| Known { name: name.clone(), key: *key.as_bytes() };
        let peers = match role {
            Role::Vehicle => self.operators.iter().map(|(name, it)| known(name, it.key)).collect(),
            Role::Operator => self.vehicles.iter().map(|(name, it)| known(name, it.key)).collect(),
        };
        self.send(id, Control::Enrolled { role, name, peers });
    }

    fn machine_of(&self, key: PublicKey) -> Option<Machine> {
        let vehicle = self.vehicles.iter().find(|(_, it)| it.key == key);
        let operator = self.operators.iter().find(|(_, it)| it.key == key);
        vehicle
            .map(|(name, _)| Machine { role: Role::Vehicle, name: name.clone() })
            .or(operator.map(|(name, _)| Machine { role: Role::Operator, name: name.clone() }))
    }

    /// Checks that the machine can be added to its list.
    ///
    /// # Errors
    /// A text for people: the name is already listed, or the list is full.
    fn place_for(&self, Machine { role, name }: &Machine) -> Result<(), String> {
        let (is_listed, count) = match role {
            Role::Vehicle => (self.vehicles.contains_key(name), self.vehicles.len()),
            Role::Operator => (self.operators.contains_key(name), self.operators.len()),
        };
        if is_listed {
            return Err(format!("{name:?} is already listed"));
        }
        if count >= ENTRIES_MAX {
            return Err(format!("{ENTRIES_MAX} keys are already listed"));
        }
        Ok(())
    }

    fn list_machine(&mut self, key: PublicKey, Machine { role, name }: &Machine) {
        match role {
            Role::Vehicle => {
                let epoch = self.unlisted.remove(&key).unwrap_or(0);
                self.vehicles.insert(name.clone(), Vehicle { epoch, ..Vehicle::new(key) });
            }
            Role::Operator => {
                self.operators.insert(name.clone(), Operator::new(key));
            }
        }
    }
}

/// Validity of an invitation: time to walk to the machine and type the code.
const INVITATION_LIFE: Duration = Duration::from_secs(600);
/// Number of wrong codes after which an invitation ends, against guessing: a mistyped letter is
/// reported before anything is sent.
const ATTEMPTS_MAX: u32 = 3;
const INVITATIONS_MAX: usize = 64;

#[cfg(test)]
mod tests;
