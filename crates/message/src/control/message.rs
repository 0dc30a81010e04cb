use tautline_units::Instant;

use super::candidate::Candidate;
use super::held::Held;
use super::known::Known;
use super::order::{Order, Role};
use super::protocol_versions::ProtocolVersions;
use super::refusal::Refusal;
use super::relay_ticket::RelayTicket;
use super::vehicle_entry::VehicleEntry;

/// A message between switchboard, vehicles and operators.
///
/// Limits: names 64 bytes, texts and reasons 256 bytes, addresses 64 bytes each and at most 32,
/// candidates at most 32.
#[derive(Clone, PartialEq, Debug)]
pub enum Control {
    /// Vehicle to switchboard: registration.
    RegisterVehicle {
        /// Name under which the switchboard lists the vehicle's key; it refuses any other. The
        /// operators see it.
        name: String,
        /// Addresses at which the vehicle is reachable: `host:port`.
        addresses: Vec<String>,
        /// Protocol versions that the vehicle supports with an operator; `None` from a build of
        /// version 1.
        versions: Option<ProtocolVersions>,
        /// True if the vehicle supports relays.
        relays: bool,
        /// Further addresses at which the vehicle may be reachable; sent again when they change.
        candidates: Vec<Candidate>,
        /// Last lease under which the vehicle was introduced, as far as it knows; `None` if it
        /// knows none.
        held: Option<Held>,
        /// Location in free text from the vehicle's owner, at most 32 bytes; `None` if the owner
        /// set none.
        place: Option<String>,
    },
    /// Operator to switchboard: registration.
    RegisterOperator {
        /// Name under which the switchboard lists the operator's key; it refuses any other. The
        /// vehicles see it.
        name: String,
        /// Addresses at which the operator is reachable: `host:port`.
        addresses: Vec<String>,
        /// Protocol versions that the operator supports with a vehicle; `None` from a build of
        /// version 1.
        versions: Option<ProtocolVersions>,
        /// True if the operator supports relays.
        relays: bool,
        /// Further addresses at which the operator may be reachable; sent again when they change.
        candidates: Vec<Candidate>,
        /// Last lease under which the operator was introduced, as far as it knows; `None` if it
        /// knows none.
        held: Option<Held>,
    },
    /// Operator to switchboard: request for the list of vehicles.
    ListVehicles,
    /// Switchboard to operator: list of vehicles.
    VehicleList {
        /// Vehicles, at most 256.
        vehicles: Vec<VehicleEntry>,
    },
    /// Operator to switchboard: request for a vehicle.
    Take {
        /// Registered name of the vehicle.
        vehicle_name: String,
    },
    /// Operator to switchboard: release of its vehicle.
    Release,
    /// Switchboard to both: introduction to the peer for direct communication. Sent again under the
    /// same lease, to an end that sent candidates, when the peer's candidates change.
    Introduce {
        /// Identifier of the lease; part of the handshake between the two.
        lease: [u8; 16],
        /// Registered name of the peer.
        peer_name: String,
        /// Static public key of the peer.
        peer_key: [u8; 32],
        /// Addresses at which the peer is reachable: `host:port`.
        peer_addresses: Vec<String>,
        /// Protocol versions that the peer supports; `None` from an older switchboard.
        peer_versions: Option<ProtocolVersions>,
        /// Further addresses at which the peer may be reachable.
        peer_candidates: Vec<Candidate>,
        /// Epoch of the lease: a vehicle refuses a lower one; 0 from an older switchboard.
        epoch: u64,
    },
    /// Switchboard to both: end of the lease.
    Released {
        /// Identifier of the ended lease.
        lease: [u8; 16],
        /// Reason for the end of the lease, in words.
        reason: String,
    },
    /// Switchboard to the sender of a request: refusal.
    Refused {
        /// Reason for the refusal, as a code.
        reason_code: Refusal,
        /// Reason for the refusal, in words.
        text: String,
    },
    /// Either direction: liveness check.
    Ping {
        /// Time of sending, on the sender's clock.
        t: Instant,
    },
    /// Response to a ping.
    Pong {
        /// The ping's `t`, unchanged.
        t: Instant,
        /// Arrival time of the ping on the responder's clock; `None` from an older build.
        seen_at: Option<Instant>,
    },
    /// Switchboard to both, before the introduction and again later: relays through which the peer
    /// is reachable.
    Relays {
        /// Static public key of the peer.
        peer_key: [u8; 32],
        /// Relays, at most 4.
        relays: Vec<RelayTicket>,
    },
    /// Administrator to switchboard: an order. The holder of the switchboard's own key is its
    /// administrator; a supervisor may send [`Order::End`] and [`Order::Who`].
    Order(Order),
    /// Switchboard to administrator: a part of the answer to an order.
    OrderPart {
        /// Bytes that follow the previous parts, at most 32 KiB.
        bytes: Vec<u8>,
        /// True if this is the last part of the answer.
        is_last: bool,
    },
    /// A machine whose key is not listed to the switchboard: enrolment by invitation.
    Enroll {
        /// Number of the invitation, which is not secret.
        number: u16,
        /// Secret of the invitation, which only the invited machine knows.
        secret: [u8; 4],
    },
    /// Switchboard to the invited machine: confirmation that it is now listed.
    Enrolled {
        /// Role under which the machine is listed.
        role: Role,
        /// Name under which the machine is listed.
        name: String,
        /// Currently listed machines of the other role, at most 256.
        peers: Vec<Known>,
    },
    /// Switchboard to vehicle: a supervisor's order.
    Ordered {
        /// Order as signed by the supervisor, at most 256 bytes.
        signed: Vec<u8>,
        /// True if the switchboard forwards answers; an older one does not.
        is_answered: bool,
    },
    /// Vehicle to switchboard, and switchboard to supervisor: result of an order.
    Answered {
        /// Result as signed by the vehicle, at most 256 bytes.
        signed: Vec<u8>,
    },
}
