//! Orders of an administrator: whoever holds the switchboard's own key.

use std::fmt::Write;

use tautline_message::{Order, Refusal};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use super::{Answer, ConnectionId, Directory, Output};

impl Directory {
    /// Carries out the orders of whoever holds `key`.
    pub(crate) fn obey(&mut self, key: PublicKey) {
        self.administrator = Some(key);
    }

    /// Carries out an administrator's order.
    pub(super) fn obey_order(&mut self, id: ConnectionId, order: Order, now: Instant) {
        let answer = match order {
            Order::Backup => Ok(Answer::Copy),
            Order::Who => Ok(Answer::Text(self.who(now))),
            Order::Invite { role, name } => self.invite(role, name, now),
            Order::Revoke { role, name } => self.revoke(role, &name, now),
        };
        match answer {
            Ok(answer) => self.outputs.push_back(Output::Answer { to: id, answer }),
            Err(text) => self.refuse(id, Refusal::BadRequest, text),
        }
    }

    /// Returns for people who is listed, who is there, and who drives what since when.
    fn who(&self, now: Instant) -> String {
        let unix = self.unix_start + now.since(Instant::ZERO);
        let there = |is_there| if is_there { "there" } else { "away" };
        let mut text = String::new();
        for (name, vehicle) in &self.vehicles {
            let _ = write!(text, "vehicle   {name}  {}", there(vehicle.presence.is_some()));
            if let Some(lease) = &vehicle.lease {
                let minutes = unix.saturating_sub(lease.since).as_secs() / 60;
                let _ = write!(text, "  driven by {} for {minutes} min", lease.operator);
            }
            let _ = writeln!(text, "  epoch {}  {}", vehicle.epoch, vehicle.key);
        }
        for (name, operator) in &self.operators {
            let is_there = there(operator.presence.is_some());
            let _ = writeln!(text, "operator  {name}  {is_there}  {}", operator.key);
        }
        text
    }
}
