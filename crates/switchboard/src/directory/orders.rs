//! Orders of administrators, who hold the switchboard's own key, and of supervisors.

use std::fmt::Write;

use tautline_message::{Control, Order, Refusal};
use tautline_transport::crypto::PublicKey;
use tautline_transport::order::{OrderError, SignedOrder};
use tautline_units::Instant;

use super::awaiting::Awaiting;
use super::{Answer, ConnectionId, Directory, Output, Presence};

impl Directory {
    /// Makes the holder of `key` the administrator.
    pub(crate) fn obey(&mut self, key: PublicKey) {
        self.administrator = Some(key);
    }

    /// Carries out an order and answers it on connection `id`; an invalid one is refused.
    pub(super) fn obey_order(&mut self, id: ConnectionId, order: Order, now: Instant) {
        let answer = match order {
            Order::Backup => Ok(Answer::Copy),
            Order::Who => Ok(Answer::Text(self.who(now))),
            Order::Invite { role, name } => self.invite(role, name, now),
            Order::Revoke { role, name } => self.revoke(role, &name, now),
            Order::End { name, signed } => self.end(id, &name, signed, now),
        };
        match answer {
            Ok(answer) => self.outputs.push_back(Output::Answer { to: id, answer }),
            Err(text) => self.refuse(id, Refusal::BadRequest, text),
        }
    }

    /// Ends a drive: forwards the order to the vehicle, which alone stops the drive, and ends the
    /// lease. The operator gets no new lease of the vehicle for as long as the order is valid,
    /// counted from now, and connection `id` receives the vehicle's answers.
    ///
    /// The order is checked here so that its author learns of mistakes, but the vehicle's own check
    /// is decisive. Only the vehicle checks its times: no other clock must be right, and this one
    /// may not be set yet.
    fn end(
        &mut self,
        id: ConnectionId,
        name: &str,
        signed: Vec<u8>,
        now: Instant,
    ) -> Result<Answer, String> {
        let Some(vehicle) = self.vehicles.get_mut(name) else {
            return Err(format!("there is no vehicle {name:?} here"));
        };
        let order = SignedOrder::read(&signed).map_err(|error| error.to_string())?;
        if order.vehicle != vehicle.key {
            return Err(OrderError::Foreign.to_string());
        }
        let lists = |(_, key): &(&String, &PublicKey)| **key == order.supervisor;
        let Some((supervisor, _)) = self.supervisors.iter().find(lists) else {
            return Err(format!("{} is not a supervisor here", order.supervisor));
        };
        let reason = format!("supervisor {supervisor} has ended the drive");
        let driver = vehicle.lease.as_ref().map(|lease| lease.operator.clone());
        if let Some(driver) = &driver {
            vehicle.ended = Some((driver.clone(), now + (order.until - order.made_at)));
        }
        vehicle.awaiting.truncate(AWAITING_MAX - 1);
        vehicle.awaiting.insert(0, Awaiting { to: id, left: ANSWERS_MAX });
        // Sent first, so that the vehicle does not wait for a write to disk.
        let handed = match &vehicle.presence {
            Some(Presence { id, .. }) => {
                let (to, message) = (*id, Control::Ordered { signed, is_answered: true });
                self.outputs.push_back(Output::Send { to, message });
                "the order was delivered"
            }
            None => "the vehicle is away and did not get the order",
        };
        let lease = match driver {
            Some(driver) => {
                self.release(&driver, &reason);
                format!("the lease of {driver} has ended")
            }
            None => "there was no lease".to_owned(),
        };
        tracing::warn!(vehicle = name, "{reason}: {lease}; {handed}");
        Ok(Answer::Text(format!("{name}: {lease}; {handed}\n")))
    }

    /// Forwards a vehicle's answer to the supervisors that wait, who match it to their order;
    /// counts it as unclaimed if none waits.
    pub(super) fn carry_answer(&mut self, name: &str, signed: &[u8]) {
        let Some(vehicle) = self.vehicles.get_mut(name) else { return };
        for Awaiting { to, left } in &mut vehicle.awaiting {
            *left -= 1;
            let message = Control::Answered { signed: signed.to_vec() };
            self.outputs.push_back(Output::Send { to: *to, message });
        }
        if vehicle.awaiting.is_empty() {
            self.unclaimed += 1;
        }
        vehicle.awaiting.retain(|awaiting| awaiting.left > 0);
    }

    /// Removes the connection `id`, which has ended, from those that wait for a vehicle's answer.
    pub(super) fn await_no_more(&mut self, id: ConnectionId) {
        for vehicle in self.vehicles.values_mut() {
            vehicle.awaiting.retain(|awaiting| awaiting.to != id);
        }
    }

    /// Returns the number of vehicles' answers for which no supervisor waited.
    pub fn unclaimed_answers(&self) -> u64 {
        self.unclaimed
    }

    /// Returns a text for people: listed ends, their connections, and current drives with their
    /// duration.
    pub(super) fn who(&self, now: Instant) -> String {
        let unix = self.unix_start + now.since(Instant::ZERO);
        let mut text = String::new();
        for (name, vehicle) in &self.vehicles {
            let place = self.place_of(vehicle.presence.as_ref(), vehicle.duplicate, now);
            let _ = write!(text, "vehicle   {name}  {place}");
            if let Some(lease) = &vehicle.lease {
                let minutes = unix.saturating_sub(lease.since).as_secs() / 60;
                let _ = write!(text, "  driven by {} for {minutes} min", lease.operator);
            }
            let _ = writeln!(text, "  epoch {}  {}", vehicle.epoch, vehicle.key);
        }
        for (name, operator) in &self.operators {
            let place = self.place_of(operator.presence.as_ref(), operator.duplicate, now);
            let _ = writeln!(text, "operator  {name}  {place}  {}", operator.key);
        }
        text
    }
}

/// Maximum supervisors that wait for the answers of one vehicle; the oldest is dropped for a new
/// one.
const AWAITING_MAX: usize = 8;
/// Maximum answers of a vehicle that are forwarded per order: it reports begin and outcome, in at
/// most four messages.
const ANSWERS_MAX: u32 = 4;

#[cfg(test)]
mod tests;
