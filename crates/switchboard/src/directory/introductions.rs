//! Introductions: inform both ends of a lease about each other, and about the relays between them.

use rand::Rng;
use tautline_message::Control;
use tautline_net::Destination;
use tautline_transport::crypto::PublicKey;
use tautline_transport::relay::Side;
use tautline_units::Instant;

use super::{Directory, Output, Presence};

impl Directory {
    /// Introduces the ends of the vehicle's lease to each other, if both are registered. The name
    /// is new, unless both hold the current one, under which their session continues: then they get
    /// each other's addresses again, if both report candidates. Relay tokens are sent first.
    ///
    /// Shortly after a restart, an end that does not show the stored name may be a copy of the one
    /// that does, which is still reconnecting: that one is waited for.
    pub(super) fn introduce(&mut self, name: &str, now: Instant) {
        // The session's initiator then already knows the relays.
        self.tell_relays(name, now);
        let Some(vehicle) = self.vehicles.get_mut(name) else { return };
        let (Some(at), Some(lease)) = (&mut vehicle.presence, &mut vehicle.lease) else { return };
        let Some(operator) = self.operators.get_mut(&lease.operator) else { return };
        let Some(operator_at) = &mut operator.presence else { return };
        let holds = [&*at, operator_at].map(|end| lease.name.is_some() && end.held == lease.name);
        lease.introduce_at = None;
        if lease.restored.is_some() && holds[0] != holds[1] && now < self.return_until {
            lease.introduce_at = Some(self.return_until);
            return;
        }
        lease.restored = lease.restored.filter(|_| holds != [true; 2]);
        if holds == [true; 2] {
            tracing::info!(vehicle = name, operator = lease.operator, "both ends are back");
            if !at.candidates.is_empty() && !operator_at.candidates.is_empty() {
                self.tell_operator(name);
                self.tell_vehicle(name);
            }
            return;
        }
        let mut lease_name = [0; 16];
        self.rng.fill_bytes(&mut lease_name);
        lease.name = Some(lease_name);
        (at.held, operator_at.held) = (lease.name, lease.name);
        vehicle.pending_release = None;
        let epoch = vehicle.epoch;
        tracing::info!(vehicle = name, operator = lease.operator, epoch, "introduced");
        // The operator first: it waits for the vehicle's first datagram.
        let to_operator = introduction(lease_name, name, vehicle.key, at, epoch);
        let to_vehicle =
            introduction(lease_name, &lease.operator, operator.key, operator_at, epoch);
        let (operator_at, vehicle_at) = (operator_at.id, at.id);
        self.keep(name);
        self.send(operator_at, to_operator);
        self.send(vehicle_at, to_vehicle);
    }

    /// Sends relay tokens to both ends of the vehicle's lease, if both are registered and support
    /// relays; sets when to send the next.
    pub(super) fn tell_relays(&mut self, name: &str, now: Instant) {
        let unix = self.unix_start + now.since(Instant::ZERO);
        let Some(issuer) = &self.issuer else { return };
        let Some(vehicle) = self.vehicles.get_mut(name) else { return };
        let (Some(at), Some(lease)) = (&vehicle.presence, &mut vehicle.lease) else { return };
        lease.renew_at = issuer.renew_at(now);
        let Some(operator) = self.operators.get(&lease.operator) else { return };
        let Some(operator_at) = &operator.presence else { return };
        if lease.renew_at.is_none() || !at.relays || !operator_at.relays {
            return;
        }
        let ends = [
            (operator_at.id, Side::Responder, operator.key, vehicle.key),
            (at.id, Side::Initiator, vehicle.key, operator.key),
        ];
        for (to, side, holder, peer) in ends {
            let relays = issuer.tickets(side, holder, peer, unix);
            let message = Control::Relays { peer_key: *peer.as_bytes(), relays };
            self.outputs.push_back(Output::Send { to, message });
        }
    }

    /// Sends the vehicle's current addresses to the operator of its lease, under the lease that
    /// both know. An operator without candidates gets none: it is of an older build and would start
    /// a new session.
    pub(super) fn tell_operator(&mut self, name: &str) {
        let Some(vehicle) = self.vehicles.get(name) else { return };
        let (Some(at), Some(lease)) = (&vehicle.presence, &vehicle.lease) else { return };
        let Some(operator) = self.operators.get(&lease.operator) else { return };
        if let (Some(lease_name), Some(to)) = (lease.name, &operator.presence)
            && !to.candidates.is_empty()
        {
            let message = introduction(lease_name, name, vehicle.key, at, vehicle.epoch);
            let to = to.id;
            self.send(to, message);
        }
    }

    /// Sends the vehicle the current addresses of its lease's operator, under the lease that both
    /// know. A vehicle without candidates gets none: it is of an older build and would start a new
    /// session.
    pub(super) fn tell_vehicle(&mut self, name: &str) {
        let Some(vehicle) = self.vehicles.get(name) else { return };
        let (Some(to), Some(lease)) = (&vehicle.presence, &vehicle.lease) else { return };
        let Some(operator) = self.operators.get(&lease.operator) else { return };
        if let (Some(lease_name), Some(at)) = (lease.name, &operator.presence)
            && !to.candidates.is_empty()
        {
            let epoch = vehicle.epoch;
            let message = introduction(lease_name, &lease.operator, operator.key, at, epoch);
            let to = to.id;
            self.send(to, message);
        }
    }
}

fn introduction(
    lease: [u8; 16],
    peer_name: &str,
    peer_key: PublicKey,
    peer: &Presence,
    epoch: u64,
) -> Control {
    Control::Introduce {
        lease,
        peer_name: peer_name.to_owned(),
        peer_key: *peer_key.as_bytes(),
        peer_addresses: peer.addresses.iter().map(Destination::to_string).collect(),
        peer_versions: Some(peer.versions),
        peer_candidates: peer.candidates.clone(),
        epoch,
    }
}
