//! Enrolment by one-time codes: admits machines without manual entry of their keys.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use rand::Rng;
use tautline_message::{Control, Known, Refusal, Role};
use tautline_net::connection_limit;
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use super::{Answer, ConnectionId, Directory, Operator, Output, Vehicle};
use crate::config::ENTRIES_MAX;
use crate::store::{Change, Machine};

/// Open invitations, and the machines enrolled by one.
#[derive(Debug)]
pub(super) struct Enrolment {
    /// Invitations by number. They are not stored across restarts: a new code is quickly made.
    invitations: BTreeMap<u16, Invitation>,
    /// Time and network of each wrong code of the last minute, the oldest first.
    wrong: VecDeque<(Instant, IpAddr)>,
    enrolled: BTreeMap<PublicKey, Machine>,
    /// Keys in the settings.
    in_settings: BTreeSet<PublicKey>,
}

#[derive(Debug)]
struct Invitation {
    secret: [u8; 4],
    machine: Machine,
    ends_at: Instant,
    attempts_left: u32,
}

impl Enrolment {
    /// Creates an enrolment without invitations and enrolled machines; the keys given are those of
    /// the settings.
    pub(super) fn beside(
        vehicles: &BTreeMap<String, PublicKey>,
        operators: &BTreeMap<String, PublicKey>,
    ) -> Self {
        Self {
            invitations: BTreeMap::new(),
            wrong: VecDeque::new(),
            enrolled: BTreeMap::new(),
            in_settings: vehicles.values().chain(operators.values()).copied().collect(),
        }
    }

    /// Applies new settings, and returns their lists combined with the enrolled machines.
    pub(super) fn with_settings(
        &mut self,
        vehicles: &BTreeMap<String, PublicKey>,
        operators: &BTreeMap<String, PublicKey>,
    ) -> [BTreeMap<String, PublicKey>; 2] {
        self.in_settings = vehicles.values().chain(operators.values()).copied().collect();
        let mut lists = [vehicles.clone(), operators.clone()];
        for (key, Machine { role, name }) in &self.enrolled {
            let list = match role {
                Role::Vehicle => &mut lists[0],
                Role::Operator => &mut lists[1],
            };
            let has_place = !list.contains_key(name) && list.len() < ENTRIES_MAX;
            if has_place && !self.in_settings.contains(key) {
                list.insert(name.clone(), *key);
            }
        }
        lists
    }

    /// Returns whether there is an open invitation.
    pub(super) fn is_awaited(&self, now: Instant) -> bool {
        self.invitations.values().any(|invitation| now < invitation.ends_at)
    }

    /// Checks a code from `remote`. A right code uses up its invitation. A wrong one is counted for
    /// its network, and takes one of the attempts of the invitation with its number.
    fn judge(&mut self, number: u16, secret: [u8; 4], remote: IpAddr, now: Instant) -> Judged {
        self.invitations.retain(|_, invitation| now < invitation.ends_at);
        let network = connection_limit::network(remote);
        while self.wrong.front().is_some_and(|(at, _)| now.since(*at) >= WRONG_WINDOW) {
            self.wrong.pop_front();
        }
        let from_there = self.wrong.iter().filter(|(_, from)| *from == network).count();
        if from_there >= WRONG_PER_NETWORK_MAX || self.wrong.len() >= WRONG_MAX {
            return Judged::TooOften;
        }
        if let Some(invitation) = self.invitations.get_mut(&number) {
            // Constant-time comparison: its duration reveals nothing about the secret.
            let differs = invitation.secret.iter().zip(secret).fold(0, |or, (a, b)| or | (a ^ b));
            invitation.attempts_left -= 1;
            let is_over = differs == 0 || invitation.attempts_left == 0;
            let invitation = if is_over { self.invitations.remove(&number) } else { None };
            if differs == 0
                && let Some(invitation) = invitation
            {
                return Judged::Right(invitation.machine);
            }
        }
        self.wrong.push_back((now, network));
        Judged::Wrong
    }
}

enum Judged {
    Right(Machine),
    Wrong,
    TooOften,
}

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

    /// Creates an invitation, and replaces an earlier one for the same machine.
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

    /// Handles an enrolment request of a machine.
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
    /// A text for people: no code enrolled the machine, or the settings list its key too.
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
/// Maximum attempts per invitation, against guessing: a mistyped letter is reported before anything
/// is sent.
const ATTEMPTS_MAX: u32 = 3;
const INVITATIONS_MAX: usize = 64;
const WRONG_WINDOW: Duration = Duration::from_secs(60);
const WRONG_PER_NETWORK_MAX: usize = 5;
/// Maximum wrong codes per minute. In ten minutes 600 guesses at 48 bits succeed with a probability
/// of 10^-11. If the number is known, three guesses at the 32 bits of the secret succeed with
/// 10^-9.
const WRONG_MAX: usize = 60;

#[cfg(test)]
mod tests;
