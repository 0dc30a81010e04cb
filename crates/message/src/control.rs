use std::time::Duration;

use flatbuffers::FlatBufferBuilder;
use tautline_units::Instant;

use crate::Error;
use crate::fields::choice;
use crate::generated::control::{self as wire_control, Control as Root};
use crate::wire::{Kind, codec};

mod variants;

/// Range of protocol versions between vehicle and operator that one end supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProtocolVersions {
    /// Lowest version, at least 1.
    pub lowest: u8,
    /// Highest version, not below the lowest.
    pub highest: u8,
}

/// An address at which an end may be reachable, in addition to its certain addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Kind of the address, by the way in which it was found.
    pub kind: CandidateKind,
    /// Index of the end's socket to which the address leads, 0 to 15.
    pub end: u8,
    /// Address as `host:port`, at most 64 bytes.
    pub address: String,
}

choice! {
    /// Source of a candidate.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum CandidateKind of wire_control::CandidateKind, "candidates.kind" {
        /// Address of an interface.
        Host,
        /// Address of a NAT, as seen by a server.
        Reflexive,
        /// Address of a relay.
        Relayed,
    }
}

/// A message between switchboard, vehicles and operators.
///
/// Limits: names 64 bytes, texts and reasons 256 bytes, addresses 64 bytes each and at most 32,
/// candidates at most 32.
#[derive(Clone, PartialEq, Debug)]
pub enum Control {
    /// Vehicle to switchboard: registration.
    RegisterVehicle {
        /// Name shown to operators.
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
        /// Name shown to vehicles.
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
        /// Identifier of the lease.
        lease: [u8; 16],
        /// Reason in words.
        reason: String,
    },
    /// Switchboard to the sender of a request: refusal.
    Refused {
        /// Reason as a code.
        reason_code: Refusal,
        /// Reason in words.
        text: String,
    },
    /// Either direction: liveness check.
    Ping {
        /// Time on the sender's clock.
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
    /// Switchboard to administrator: a part of the answer.
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
        /// Secret of the invitation.
        secret: [u8; 4],
    },
    /// Switchboard to that machine: confirmation that it is now listed.
    Enrolled {
        /// Role under which it is listed.
        role: Role,
        /// Name under which it is listed.
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

codec!(Control);

impl Control {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let (message_type, message) = variants::write(self, builder);
        let arguments = wire_control::ControlArgs { message_type, message: Some(message) };
        let root = Root::create(builder, &arguments);
        wire_control::finish_control_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        variants::read(root)
    }
}

/// Maximum step of an epoch beyond the newest known one: one lease per minute for two years.
///
/// An epoch never decreases, so one far ahead would leave no room for later ones: it is refused and
/// not stored. Exhausting all epochs in steps of this size takes 2^44 leases.
pub const EPOCH_STEP_MAX: u64 = 1 << 20;

/// The newest lease under which an end was introduced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// Identifier of the lease, while the introduced process runs and has not received the end of
    /// the lease; else `None`.
    pub lease: Option<[u8; 16]>,
    /// Epoch of the lease.
    pub epoch: u64,
    /// Static public key of the peer.
    pub peer_key: [u8; 32],
}

/// An order of an administrator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Return a copy of the stored state.
    Backup,
    /// Report listed and connected machines, and who drives which vehicle since when.
    Who,
    /// Create a one-time code that enrols a machine.
    Invite {
        /// Role of the machine.
        role: Role,
        /// Name of the machine, at most 64 bytes.
        name: String,
    },
    /// Remove a machine that was enrolled by a code.
    Revoke {
        /// Role of the machine.
        role: Role,
        /// Name of the machine, at most 64 bytes.
        name: String,
    },
    /// End the lease of a vehicle, and forward the supervisor's signed order to the vehicle.
    End {
        /// Name of the vehicle, at most 64 bytes.
        name: String,
        /// Signed order for the vehicle, at most 256 bytes.
        signed: Vec<u8>,
    },
}

choice! {
    /// Role of a machine towards the switchboard.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Role of wire_control::Role, "role" {
        /// A machine that is driven.
        Vehicle,
        /// A machine that drives.
        Operator,
    }
}

/// A machine to which another may be introduced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// Name of the machine, at most 64 bytes.
    pub name: String,
    /// Static public key of the machine.
    pub key: [u8; 32],
}

/// A relay, and the right to reach a peer through it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelayTicket {
    /// Addresses of the relay: `host:port`, at most 32.
    pub addresses: Vec<String>,
    /// Static public key of the relay.
    pub key: [u8; 32],
    /// Token that the relay checks, at most 256 bytes.
    pub token: Vec<u8>,
}

/// A vehicle in the switchboard's directory.
#[derive(Clone, PartialEq, Debug)]
pub struct VehicleEntry {
    /// Registered name, at most 64 bytes.
    pub name: String,
    /// Static public key of the vehicle.
    pub key: [u8; 32],
    /// Availability: free, taken or away.
    pub state: VehicleState,
    /// Round-trip time between switchboard and vehicle in milliseconds, if known.
    pub round_trip_ms: Option<f32>,
    /// Operator that drives it, at most 64 bytes; `None` if there is none, or from an older
    /// switchboard.
    pub driver: Option<String>,
    /// Start of the present drive or absence: Unix time in whole seconds, if known.
    pub since: Option<Duration>,
    /// Location as the vehicle reported it, at most 32 bytes; `None` if it reported none.
    pub place: Option<String>,
    /// Number of links that the vehicle reported; 0 while it is away, and from an older
    /// switchboard.
    pub link_count: u8,
    /// Number of the vehicle's links with a known address.
    pub links: u8,
}

choice! {
    /// Availability of a vehicle.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum VehicleState of wire_control::VehicleState, "vehicles.state" {
        /// Connected and not leased.
        Free,
        /// Leased to an operator.
        Taken,
        /// Known, but not connected.
        Away,
    }
}

choice! {
    /// A reason for a refusal by the switchboard.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Refusal of wire_control::Refusal, "reason_code" {
        /// No vehicle of this name is known.
        UnknownVehicle,
        /// Another operator has the vehicle, or a supervisor has just ended this one's drive of it.
        VehicleTaken,
        /// The vehicle is not connected. The operator holds it, and is introduced when it returns.
        VehicleAway,
        /// This key is not permitted to do this.
        NotAllowed,
        /// The request requires registration.
        NotRegistered,
        /// Another machine has registered with this key, or this connection was replaced by one.
        NameTaken,
        /// The request is invalid, or invalid in the present state.
        BadRequest,
        /// A limit is reached: of wrong codes per minute, or of the epochs of a vehicle.
        Full,
    }
}

const KIND: Kind = Kind {
    name: "control message",
    identifier: Some(wire_control::CONTROL_IDENTIFIER),
    // A full list of vehicles with all texts at maximum length takes nearly all of it.
    bytes_max: 64 * 1024,
    // Control, its message, and the vehicles of a full list; there are fewer candidates than
    // vehicles.
    tables_max: 2 + variants::VEHICLE_COUNT_MAX,
    depth_max: 3,
};
