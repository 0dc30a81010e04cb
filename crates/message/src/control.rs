use std::time::Duration;

use flatbuffers::FlatBufferBuilder;
use tautline_units::Instant;

use crate::Error;
use crate::fields::choice;
use crate::generated::control::{self as wire_control, Control as Root};
use crate::wire::{Kind, codec};

mod variants;

/// The versions of the protocol between vehicle and operator that one of them speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProtocolVersions {
    /// The lowest, at least 1.
    pub lowest: u8,
    /// The highest, not below the lowest.
    pub highest: u8,
}

/// An address at which one of the two may be reached, beside those that are certain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Where it comes from.
    pub kind: CandidateKind,
    /// Which of its sockets it leads to, 0 to 15.
    pub end: u8,
    /// `host:port`, at most 64 bytes.
    pub address: String,
}

/// Where a candidate comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CandidateKind {
    /// An interface has it.
    Host,
    /// A server saw it: that of a NAT.
    Reflexive,
    /// A relay's.
    Relayed,
}

choice!(CandidateKind, wire_control::CandidateKind, "candidates.kind", [Host, Reflexive, Relayed]);

/// What switchboard, vehicles and operators say to each other.
///
/// Names are at most 64 bytes, texts and reasons 256, addresses 64 bytes each and at most 32,
/// candidates at most 32 too.
#[derive(Clone, PartialEq, Debug)]
pub enum Control {
    /// Vehicle to switchboard: it is there.
    RegisterVehicle {
        /// What operators know it by.
        name: String,
        /// Where it can be reached: `host:port`.
        addresses: Vec<String>,
        /// What it speaks with its peer; `None` from a build of version 1.
        versions: Option<ProtocolVersions>,
        /// Whether it knows what a relay is.
        relays: bool,
        /// Where it may be reached beside; said again when it is elsewhere.
        candidates: Vec<Candidate>,
        /// What it was introduced under last, as far as it knows.
        held: Option<Held>,
        /// Where it is, in words of whoever runs it, at most 32 bytes.
        place: Option<String>,
    },
    /// Operator to switchboard: it is there.
    RegisterOperator {
        /// What vehicles know it by.
        name: String,
        /// Where it can be reached: `host:port`.
        addresses: Vec<String>,
        /// What it speaks with its peer; `None` from a build of version 1.
        versions: Option<ProtocolVersions>,
        /// Whether it knows what a relay is.
        relays: bool,
        /// Where it may be reached beside; said again when it is elsewhere.
        candidates: Vec<Candidate>,
        /// What it was introduced under last, as far as it knows.
        held: Option<Held>,
    },
    /// Operator to switchboard: who is there?
    ListVehicles,
    /// Switchboard to operator: these are.
    VehicleList {
        /// At most 256.
        vehicles: Vec<VehicleEntry>,
    },
    /// Operator to switchboard: it wants this vehicle.
    Take {
        /// The vehicle's registered name.
        vehicle_name: String,
    },
    /// Operator to switchboard: it lets go of its vehicle.
    Release,
    /// Switchboard to both: speak to this peer directly. Again under the same lease, to who told
    /// candidates: the peer may be reached elsewhere now.
    Introduce {
        /// Names the lease; goes into the handshake between the two.
        lease: [u8; 16],
        /// The peer's registered name.
        peer_name: String,
        /// The peer's static public key.
        peer_key: [u8; 32],
        /// Where the peer can be reached: `host:port`.
        peer_addresses: Vec<String>,
        /// What the peer speaks; `None` from an older switchboard.
        peer_versions: Option<ProtocolVersions>,
        /// Where the peer may be reached beside.
        peer_candidates: Vec<Candidate>,
        /// The lease's: a vehicle takes none of a lower one; 0 from an older switchboard.
        epoch: u64,
    },
    /// Switchboard to both: the lease has ended.
    Released {
        /// Which lease.
        lease: [u8; 16],
        /// Why, for people.
        reason: String,
    },
    /// Switchboard to whoever asked: no.
    Refused {
        /// Why, for programs.
        reason_code: Refusal,
        /// Why, for people.
        text: String,
    },
    /// Either way: are you there?
    Ping {
        /// Sender's clock.
        t: Instant,
    },
    /// The answer to a ping.
    Pong {
        /// The ping's `t`, unchanged.
        t: Instant,
        /// When the ping came, by the answerer's clock; `None` from an older build.
        seen_at: Option<Instant>,
    },
    /// Switchboard to both, before it brings them together and again later: reach the peer through these too.
    Relays {
        /// The peer's static public key.
        peer_key: [u8; 32],
        /// At most 4.
        relays: Vec<RelayTicket>,
    },
    /// Administrator to switchboard: do this. Whoever holds the switchboard's own key is its administrator; a
    /// supervisor may order [`Order::End`] and [`Order::Who`].
    Order(Order),
    /// Switchboard to administrator: a part of the answer.
    OrderPart {
        /// What follows the parts before, at most 32 KiB.
        bytes: Vec<u8>,
        /// Whether no more follows.
        is_last: bool,
    },
    /// A machine whose key is not listed, to the switchboard: it was invited.
    Enroll {
        /// The invitation's number.
        number: u16,
        /// What only who was invited knows.
        secret: [u8; 4],
    },
    /// Switchboard to that machine: it is listed from now on.
    Enrolled {
        /// As what.
        role: Role,
        /// Under which name.
        name: String,
        /// Those of the other role who are listed at present: at most 256.
        peers: Vec<Known>,
    },
    /// Switchboard to vehicle: a supervisor orders this.
    Ordered {
        /// As the supervisor signed it, at most 256 bytes.
        signed: Vec<u8>,
        /// Whether the switchboard carries answers back; an older one does not.
        is_answered: bool,
    },
    /// Vehicle to switchboard, and switchboard to supervisor: what has become of an order.
    Answered {
        /// As the vehicle signed it, at most 256 bytes.
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

/// The most by which an epoch may go beyond the newest one that is known: a lease each minute, for two years.
///
/// An epoch never falls, so one far ahead would leave no room for later ones: it is refused and remembered nowhere. To
/// use up all epochs in steps of this size takes 2^44 leases.
pub const EPOCH_STEP_MAX: u64 = 1 << 20;

/// The newest lease under which an end has been introduced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// Its name, as long as the process that was introduced lives and has not been told of its end.
    pub lease: Option<[u8; 16]>,
    /// Its epoch.
    pub epoch: u64,
    /// The static public key of the peer.
    pub peer_key: [u8; 32],
}

/// An order of an administrator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Give a copy of what is kept.
    Backup,
    /// Tell who is listed, who is there, and who drives what since when.
    Who,
    /// Make a one-time code that lets a machine in.
    Invite {
        /// What it is to be.
        role: Role,
        /// Its name, at most 64 bytes.
        name: String,
    },
    /// Take a machine off that was let in so.
    Revoke {
        /// What it is.
        role: Role,
        /// Its name, at most 64 bytes.
        name: String,
    },
    /// End the lease of a vehicle, and hand the vehicle what a supervisor has signed.
    End {
        /// The vehicle's name, at most 64 bytes.
        name: String,
        /// For the vehicle, at most 256 bytes.
        signed: Vec<u8>,
    },
}

/// The role of a machine: what it is to the switchboard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// It is driven.
    Vehicle,
    /// It drives.
    Operator,
}

choice!(Role, wire_control::Role, "role", [Vehicle, Operator]);

/// One whom a machine may meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// Its name, at most 64 bytes.
    pub name: String,
    /// Its static public key.
    pub key: [u8; 32],
}

/// A relay, and the right to reach a peer through it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelayTicket {
    /// Where it is: `host:port`, at most 32.
    pub addresses: Vec<String>,
    /// Its static public key.
    pub key: [u8; 32],
    /// The right, as the relay reads it: at most 256 bytes.
    pub token: Vec<u8>,
}

/// A vehicle as the switchboard knows it.
#[derive(Clone, PartialEq, Debug)]
pub struct VehicleEntry {
    /// Its registered name, at most 64 bytes.
    pub name: String,
    /// Its static public key.
    pub key: [u8; 32],
    /// Whether it can be taken.
    pub state: VehicleState,
    /// Round-trip time between switchboard and vehicle in milliseconds, if known.
    pub round_trip_ms: Option<f32>,
    /// The operator who has it, at most 64 bytes; `None` if nobody has, or from an older switchboard.
    pub driver: Option<String>,
    /// Since when it is driven, or away: Unix time in whole seconds, if known.
    pub since: Option<Duration>,
    /// Where it is, as it has said itself, at most 32 bytes.
    pub place: Option<String>,
    /// How many links it has said that it has; 0 from an older switchboard.
    pub link_count: u8,
    /// Of how many of these an address is known.
    pub links: u8,
}

/// The state of a vehicle: whether it can be taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VehicleState {
    /// It is there and nobody has it.
    Free,
    /// An operator has it.
    Taken,
    /// It is known, but not connected at present.
    Away,
}

choice!(VehicleState, wire_control::VehicleState, "vehicles.state", [Free, Taken, Away]);

/// A reason why the switchboard refuses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// No vehicle of this name is known.
    UnknownVehicle,
    /// Another operator has it.
    VehicleTaken,
    /// It is not connected at present.
    VehicleAway,
    /// This key may not do this.
    NotAllowed,
    /// Only who has registered may ask this.
    NotRegistered,
    /// Another key has registered this name.
    NameTaken,
    /// The request makes no sense, or not now.
    BadRequest,
    /// The switchboard can take no more.
    Full,
}

choice!(
    Refusal,
    wire_control::Refusal,
    "reason_code",
    [
        UnknownVehicle,
        VehicleTaken,
        VehicleAway,
        NotAllowed,
        NotRegistered,
        NameTaken,
        BadRequest,
        Full,
    ]
);

const KIND: Kind = Kind {
    name: "control message",
    identifier: Some(wire_control::CONTROL_IDENTIFIER),
    // A full list of vehicles takes nearly all, where each text is at its longest.
    bytes_max: 64 * 1024,
    // Control, its message, and the vehicles of a full list; candidates are fewer.
    tables_max: 2 + variants::VEHICLE_COUNT_MAX,
    depth_max: 3,
};
