//! Orders of an administrator: whoever holds the switchboard's own key.

use std::fmt::Write;

use tautline_message::{Control, Order, Refusal};
use tautline_transport::crypto::PublicKey;
use tautline_transport::order::SignedOrder;
use tautline_units::Instant;

use super::{Answer, ConnectionId, Directory, Output, Presence};

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
            Order::End { name, signed } => self.end(&name, signed, now),
        };
        match answer {
            Ok(answer) => self.outputs.push_back(Output::Answer { to: id, answer }),
            Err(text) => self.refuse(id, Refusal::BadRequest, text),
        }
    }

    /// Ends a drive: hands the vehicle the order, which alone stops it, and ends the lease.
    ///
    /// The order is looked at, so that one that the vehicle would refuse is told to who gives it; what counts is what
    /// the vehicle makes of it.
    fn end(&mut self, name: &str, signed: Vec<u8>, now: Instant) -> Result<Answer, String> {
        let unix = self.unix_start + now.since(Instant::ZERO);
        let Some(vehicle) = self.vehicles.get_mut(name) else {
            return Err(format!("there is no vehicle {name:?} here"));
        };
        let order = SignedOrder::read(&signed).map_err(|error| error.to_string())?;
        order.judge(&vehicle.key, unix).map_err(|error| error.to_string())?;
        let lists = |(_, key): &(&String, &PublicKey)| **key == order.supervisor;
        let Some((supervisor, _)) = self.supervisors.iter().find(lists) else {
            return Err(format!("{} is no supervisor here", order.supervisor));
        };
        let reason = format!("supervisor {supervisor} has ended the drive");
        let driver = vehicle.lease.as_ref().map(|lease| lease.operator.clone());
        vehicle.ended = driver.clone().map(|driver| (driver, order.until));
        // First: the vehicle does not wait for what is written to disk.
        let handed = match &vehicle.presence {
            Some(Presence { id, .. }) => {
                let (to, message) = (*id, Control::Ordered { signed });
                self.outputs.push_back(Output::Send { to, message });
                "it is handed the order"
            }
            None => "it is away, and has not got the order",
        };
        let lease = match driver {
            Some(driver) => {
                self.release(&driver, &reason);
                format!("the lease of {driver} has ended")
            }
            None => "nobody has a lease".to_owned(),
        };
        tracing::warn!(vehicle = name, "{reason}: {lease}; {handed}");
        Ok(Answer::Text(format!("{name}: {lease}; {handed}\n")))
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

#[cfg(test)]
mod tests;
