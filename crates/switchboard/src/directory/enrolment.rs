//! Open invitations and their codes, and the machines that were enrolled by one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use tautline_message::Role;
use tautline_net::connection_limit;
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use crate::config::ENTRIES_MAX;
use crate::store::Machine;

/// Open invitations, and the machines enrolled by one.
#[derive(Debug)]
pub(super) struct Enrolment {
    /// Invitations by number. They are not stored across restarts: a new code is quickly made.
    pub(super) invitations: BTreeMap<u16, Invitation>,
    /// Time and network of each wrong code of the last minute, the oldest first.
    wrong: VecDeque<(Instant, IpAddr)>,
    pub(super) enrolled: BTreeMap<PublicKey, Machine>,
    /// Keys of the vehicles and operators in the settings.
    pub(super) in_settings: BTreeSet<PublicKey>,
}

/// An open invitation of one machine, by a code that was not used yet.
#[derive(Debug)]
pub(super) struct Invitation {
    pub(super) secret: [u8; 4],
    pub(super) machine: Machine,
    pub(super) ends_at: Instant,
    pub(super) attempts_left: u32,
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

    /// Applies new settings, and returns their lists of vehicles and operators combined with the
    /// enrolled machines. A machine whose name or key the settings list, or beyond [`ENTRIES_MAX`],
    /// is left out.
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

    /// Returns whether an invitation is open at `now`.
    pub(super) fn is_awaited(&self, now: Instant) -> bool {
        self.invitations.values().any(|invitation| now < invitation.ends_at)
    }

    /// Checks a code from `remote`. A right code uses up its invitation. A wrong one is counted for
    /// its network, and takes one of the attempts of the invitation with its number. After too many
    /// wrong ones in the last minute, from its network or in total, no code is checked.
    pub(super) fn judge(
        &mut self,
        number: u16,
        secret: [u8; 4],
        remote: IpAddr,
        now: Instant,
    ) -> Judged {
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

/// Result of a check of a machine's code: right, wrong, or refused because of too many wrong ones.
pub(super) enum Judged {
    Right(Machine),
    Wrong,
    TooOften,
}

pub(super) const WRONG_WINDOW: Duration = Duration::from_secs(60);
pub(super) const WRONG_PER_NETWORK_MAX: usize = 5;
/// Maximum wrong codes per minute, from all networks together; beyond it no code is checked. In ten
/// minutes 600 guesses at 48 bits succeed with a probability of 10^-11. If the number is known,
/// three guesses at the 32 bits of the secret succeed with 10^-9.
const WRONG_MAX: usize = 60;
