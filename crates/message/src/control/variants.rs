//! Conversions between each variant of [`Control`] and its table.

use std::time::Duration;

use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, UnionWIPOffset, Vector, WIPOffset};
use tautline_units::Instant;

use super::candidate::{Candidate, CandidateKind};
use super::held::Held;
use super::known::Known;
use super::message::Control;
use super::order::{Order, Role};
use super::protocol_versions::ProtocolVersions;
use super::refusal::Refusal;
use super::relay_ticket::RelayTicket;
use super::vehicle_entry::{VehicleEntry, VehicleState};
use crate::Error;
use crate::fields::Kinds;
use crate::generated::control::{self as wire_control, ControlMessage, OrderKind};
use crate::wire::{
    NAME_BYTES_MAX, TEXT_BYTES_MAX, length, list, millis, millis_on_wire, strings, text, within,
};

type Fbb = FlatBufferBuilder<'static>;
type Message = WIPOffset<UnionWIPOffset>;

/// Writes the table of `control`; returns the type of the message and the table's place.
pub(super) fn write(control: &Control, builder: &mut Fbb) -> (ControlMessage, Message) {
    match control {
        Control::RegisterVehicle { .. } => {
            (ControlMessage::RegisterVehicle, register_vehicle(builder, control))
        }
        Control::RegisterOperator { .. } => {
            (ControlMessage::RegisterOperator, register_operator(builder, control))
        }
        Control::ListVehicles => (ControlMessage::ListVehicles, list_vehicles(builder)),
        Control::VehicleList { vehicles } => {
            (ControlMessage::VehicleList, vehicle_list(builder, vehicles))
        }
        Control::Take { vehicle_name } => (ControlMessage::Take, take(builder, vehicle_name)),
        Control::Release => (ControlMessage::Release, release(builder)),
        Control::Introduce { .. } => (ControlMessage::Introduce, introduce(builder, control)),
        Control::Released { lease, reason } => {
            (ControlMessage::Released, released(builder, lease, reason))
        }
        Control::Refused { reason_code, text } => {
            (ControlMessage::Refused, refused(builder, *reason_code, text))
        }
        Control::Ping { t } => (ControlMessage::Ping, ping(builder, *t)),
        Control::Pong { t, seen_at } => (ControlMessage::Pong, pong(builder, *t, *seen_at)),
        Control::Relays { peer_key, relays } => {
            (ControlMessage::Relays, write_relays(builder, peer_key, relays))
        }
        Control::Order(order) => (ControlMessage::Order, write_order(builder, order)),
        Control::OrderPart { bytes, is_last } => {
            (ControlMessage::OrderPart, order_part(builder, bytes, *is_last))
        }
        Control::Enroll { number, secret } => {
            (ControlMessage::Enroll, enroll(builder, *number, secret))
        }
        Control::Enrolled { role, name, peers } => {
            (ControlMessage::Enrolled, enrolled(builder, *role, name, peers))
        }
        Control::Ordered { signed, is_answered } => {
            (ControlMessage::Ordered, ordered(builder, signed, *is_answered))
        }
        Control::Answered { signed } => (ControlMessage::Answered, answered(builder, signed)),
    }
}

/// Returns the message in a verified root, after a check of every value.
pub(super) fn read(root: wire_control::Control<'_>) -> Result<Control, Error> {
    let read = match root.message_type() {
        ControlMessage::RegisterVehicle => root.message_as_register_vehicle().map(|table| {
            let name = text("name", table.name(), NAME_BYTES_MAX)?;
            let versions = read_versions(table.versions())?;
            Ok(Control::RegisterVehicle {
                name,
                addresses: addresses(table.addresses())?,
                versions,
                relays: table.relays(),
                candidates: candidates(table.candidates())?,
                held: table.held().map(read_held),
                place: read_place("place", table.place())?,
            })
        }),
        ControlMessage::RegisterOperator => root.message_as_register_operator().map(|table| {
            let name = text("name", table.name(), NAME_BYTES_MAX)?;
            let versions = read_versions(table.versions())?;
            Ok(Control::RegisterOperator {
                name,
                addresses: addresses(table.addresses())?,
                versions,
                relays: table.relays(),
                candidates: candidates(table.candidates())?,
                held: table.held().map(read_held),
            })
        }),
        ControlMessage::ListVehicles => {
            root.message_as_list_vehicles().map(|_| Ok(Control::ListVehicles))
        }
        ControlMessage::VehicleList => root.message_as_vehicle_list().map(|table| {
            let vehicles = list("vehicles", table.vehicles(), VEHICLE_COUNT_MAX, read_vehicle)?;
            Ok(Control::VehicleList { vehicles })
        }),
        ControlMessage::Take => root.message_as_take().map(|table| {
            let vehicle_name = text("vehicle_name", table.vehicle_name(), NAME_BYTES_MAX)?;
            Ok(Control::Take { vehicle_name })
        }),
        ControlMessage::Release => root.message_as_release().map(|_| Ok(Control::Release)),
        ControlMessage::Introduce => root.message_as_introduce().map(read_introduce),
        ControlMessage::Released => root.message_as_released().map(|table| {
            let reason = text("reason", table.reason(), TEXT_BYTES_MAX)?;
            Ok(Control::Released { lease: table.lease().bytes().into(), reason })
        }),
        ControlMessage::Refused => root.message_as_refused().map(|table| {
            let reason_code = Refusal::from_wire(table.reason_code())?;
            Ok(Control::Refused { reason_code, text: text("text", table.text(), TEXT_BYTES_MAX)? })
        }),
        ControlMessage::Ping => root
            .message_as_ping()
            .map(|table| Ok(Control::Ping { t: Instant::from_nanos(table.t()) })),
        ControlMessage::Pong => root.message_as_pong().map(|table| {
            let seen_at = Some(Instant::from_nanos(table.seen())).filter(|at| *at != Instant::ZERO);
            Ok(Control::Pong { t: Instant::from_nanos(table.t()), seen_at })
        }),
        ControlMessage::Relays => root.message_as_relays().map(|table| {
            let relays = list("relays", table.relays(), RELAY_COUNT_MAX, read_relay)?;
            Ok(Control::Relays { peer_key: table.peer_key().bytes().into(), relays })
        }),
        ControlMessage::Order => root.message_as_order().map(read_order),
        ControlMessage::OrderPart => root.message_as_order_part().map(|table| {
            let bytes = table.bytes().bytes().to_vec();
            length("bytes", bytes.len(), PART_BYTES_MAX)?;
            Ok(Control::OrderPart { bytes, is_last: table.is_last() })
        }),
        ControlMessage::Enroll => root.message_as_enroll().map(|table| {
            Ok(Control::Enroll { number: table.number(), secret: table.secret().bytes().into() })
        }),
        ControlMessage::Enrolled => root.message_as_enrolled().map(|table| {
            let name = text("name", table.name(), NAME_BYTES_MAX)?;
            let peers = list("peers", table.peers(), VEHICLE_COUNT_MAX, |known| {
                let name = text("peers.name", known.name(), NAME_BYTES_MAX)?;
                Ok(Known { name, key: known.key().bytes().into() })
            })?;
            Ok(Control::Enrolled { role: Role::from_wire(table.role())?, name, peers })
        }),
        ControlMessage::Ordered => root.message_as_ordered().map(|table| {
            let (signed, is_answered) = (read_signed(Some(table.signed()))?, table.is_answered());
            Ok(Control::Ordered { signed, is_answered })
        }),
        ControlMessage::Answered => root
            .message_as_answered()
            .map(|table| Ok(Control::Answered { signed: read_signed(Some(table.signed()))? })),
        other => return Err(Error::Unknown { field: "message", value: other.0 }),
    };
    read.unwrap_or(Err(Error::Missing { field: "message" }))
}

/// Writes a vehicle's registration; `control` must be that variant.
fn register_vehicle(builder: &mut Fbb, control: &Control) -> Message {
    let Control::RegisterVehicle { name, addresses, versions, relays, candidates, held, place } =
        control
    else {
        unreachable!("checked by the caller")
    };
    let versions = versions.map(to_wire);
    let arguments = wire_control::RegisterVehicleArgs {
        name: Some(builder.create_string(name)),
        addresses: Some(strings(builder, addresses)),
        versions: versions.as_ref(),
        relays: *relays,
        candidates: write_candidates(builder, candidates),
        held: write_held(builder, held.as_ref()),
        place: place.as_ref().map(|place| builder.create_string(place)),
    };
    wire_control::RegisterVehicle::create(builder, &arguments).as_union_value()
}

/// Writes an operator's registration; `control` must be that variant.
fn register_operator(builder: &mut Fbb, control: &Control) -> Message {
    let Control::RegisterOperator { name, addresses, versions, relays, candidates, held } = control
    else {
        unreachable!("checked by the caller")
    };
    let versions = versions.map(to_wire);
    let arguments = wire_control::RegisterOperatorArgs {
        name: Some(builder.create_string(name)),
        addresses: Some(strings(builder, addresses)),
        versions: versions.as_ref(),
        relays: *relays,
        candidates: write_candidates(builder, candidates),
        held: write_held(builder, held.as_ref()),
    };
    wire_control::RegisterOperator::create(builder, &arguments).as_union_value()
}

fn list_vehicles(builder: &mut Fbb) -> Message {
    let arguments = wire_control::ListVehiclesArgs {};
    wire_control::ListVehicles::create(builder, &arguments).as_union_value()
}

fn vehicle_list(builder: &mut Fbb, vehicles: &[VehicleEntry]) -> Message {
    let entries: Vec<_> = vehicles
        .iter()
        .map(|vehicle| {
            let arguments = wire_control::VehicleEntryArgs {
                name: Some(builder.create_string(&vehicle.name)),
                key: Some(&wire_control::Key::new(&vehicle.key)),
                state: vehicle.state.to_wire(),
                round_trip_ms: millis_on_wire(vehicle.round_trip_ms),
                driver: vehicle.driver.as_ref().map(|driver| builder.create_string(driver)),
                // Valid until the year 2106.
                since_s: vehicle
                    .since
                    .map_or(0, |since| u32::try_from(since.as_secs()).unwrap_or(u32::MAX)),
                place: vehicle.place.as_ref().map(|place| builder.create_string(place)),
                link_count: vehicle.link_count,
                links: vehicle.links,
            };
            wire_control::VehicleEntry::create(builder, &arguments)
        })
        .collect();
    let vehicles = Some(builder.create_vector(&entries));
    let arguments = wire_control::VehicleListArgs { vehicles };
    wire_control::VehicleList::create(builder, &arguments).as_union_value()
}

fn take(builder: &mut Fbb, vehicle_name: &str) -> Message {
    let vehicle_name = Some(builder.create_string(vehicle_name));
    let arguments = wire_control::TakeArgs { vehicle_name };
    wire_control::Take::create(builder, &arguments).as_union_value()
}

fn release(builder: &mut Fbb) -> Message {
    wire_control::Release::create(builder, &wire_control::ReleaseArgs {}).as_union_value()
}

/// Writes an introduction; `control` must be that variant.
fn introduce(builder: &mut Fbb, control: &Control) -> Message {
    let Control::Introduce {
        lease,
        peer_name,
        peer_key,
        peer_addresses,
        peer_versions,
        peer_candidates,
        epoch,
    } = control
    else {
        unreachable!("checked by the caller")
    };
    let peer_versions = peer_versions.map(to_wire);
    let arguments = wire_control::IntroduceArgs {
        lease: Some(&wire_control::Lease::new(lease)),
        peer_name: Some(builder.create_string(peer_name)),
        peer_key: Some(&wire_control::Key::new(peer_key)),
        peer_addresses: Some(strings(builder, peer_addresses)),
        peer_versions: peer_versions.as_ref(),
        peer_candidates: write_candidates(builder, peer_candidates),
        epoch: *epoch,
    };
    wire_control::Introduce::create(builder, &arguments).as_union_value()
}

fn released(builder: &mut Fbb, lease: &[u8; 16], reason: &str) -> Message {
    let arguments = wire_control::ReleasedArgs {
        lease: Some(&wire_control::Lease::new(lease)),
        reason: Some(builder.create_string(reason)),
    };
    wire_control::Released::create(builder, &arguments).as_union_value()
}

fn refused(builder: &mut Fbb, reason_code: Refusal, text: &str) -> Message {
    let arguments = wire_control::RefusedArgs {
        reason_code: reason_code.to_wire(),
        text: Some(builder.create_string(text)),
    };
    wire_control::Refused::create(builder, &arguments).as_union_value()
}

fn ping(builder: &mut Fbb, t: Instant) -> Message {
    let arguments = wire_control::PingArgs { t: t.as_nanos() };
    wire_control::Ping::create(builder, &arguments).as_union_value()
}

fn pong(builder: &mut Fbb, t: Instant, seen_at: Option<Instant>) -> Message {
    let seen = seen_at.map_or(0, Instant::as_nanos);
    let arguments = wire_control::PongArgs { t: t.as_nanos(), seen };
    wire_control::Pong::create(builder, &arguments).as_union_value()
}

fn write_relays(builder: &mut Fbb, peer_key: &[u8; 32], relays: &[RelayTicket]) -> Message {
    let relays: Vec<_> = relays
        .iter()
        .map(|relay| {
            let arguments = wire_control::RelayTicketArgs {
                addresses: Some(strings(builder, &relay.addresses)),
                key: Some(&wire_control::Key::new(&relay.key)),
                token: Some(builder.create_vector(&relay.token)),
            };
            wire_control::RelayTicket::create(builder, &arguments)
        })
        .collect();
    let arguments = wire_control::RelaysArgs {
        peer_key: Some(&wire_control::Key::new(peer_key)),
        relays: Some(builder.create_vector(&relays)),
    };
    wire_control::Relays::create(builder, &arguments).as_union_value()
}

fn write_order(builder: &mut Fbb, order: &Order) -> Message {
    let (kind, machine, signed) = match order {
        Order::Backup => (OrderKind::Backup, None, None),
        Order::Who => (OrderKind::Who, None, None),
        Order::Invite { role, name } => (OrderKind::Invite, Some((*role, name)), None),
        Order::Revoke { role, name } => (OrderKind::Revoke, Some((*role, name)), None),
        Order::End { name, signed } => (OrderKind::End, Some((Role::Vehicle, name)), Some(signed)),
    };
    let arguments = wire_control::OrderArgs {
        kind,
        role: machine.map_or(Role::Vehicle, |(role, _)| role).to_wire(),
        name: machine.map(|(_, name)| builder.create_string(name)),
        signed: signed.map(|signed| builder.create_vector(signed)),
    };
    wire_control::Order::create(builder, &arguments).as_union_value()
}

fn read_order(table: wire_control::Order<'_>) -> Result<Control, Error> {
    let machine = || {
        let name = table.name().ok_or(Error::Missing { field: "name" })?;
        Ok((Role::from_wire(table.role())?, text("name", name, NAME_BYTES_MAX)?))
    };
    let order = match table.kind() {
        OrderKind::Backup => Order::Backup,
        OrderKind::Who => Order::Who,
        OrderKind::Invite => machine().map(|(role, name)| Order::Invite { role, name })?,
        OrderKind::Revoke => machine().map(|(role, name)| Order::Revoke { role, name })?,
        OrderKind::End => {
            let (_, name) = machine()?;
            Order::End { name, signed: read_signed(table.signed())? }
        }
        other => return Err(Error::Unknown { field: "kind", value: other.0 }),
    };
    Ok(Control::Order(order))
}

fn enroll(builder: &mut Fbb, number: u16, secret: &[u8; 4]) -> Message {
    let secret = wire_control::Secret::new(secret);
    let arguments = wire_control::EnrollArgs { number, secret: Some(&secret) };
    wire_control::Enroll::create(builder, &arguments).as_union_value()
}

fn enrolled(builder: &mut Fbb, role: Role, name: &str, peers: &[Known]) -> Message {
    let peers: Vec<_> = peers
        .iter()
        .map(|known| {
            let arguments = wire_control::KnownArgs {
                name: Some(builder.create_string(&known.name)),
                key: Some(&wire_control::Key::new(&known.key)),
            };
            wire_control::Known::create(builder, &arguments)
        })
        .collect();
    let arguments = wire_control::EnrolledArgs {
        role: role.to_wire(),
        name: Some(builder.create_string(name)),
        peers: Some(builder.create_vector(&peers)),
    };
    wire_control::Enrolled::create(builder, &arguments).as_union_value()
}

fn ordered(builder: &mut Fbb, signed: &[u8], is_answered: bool) -> Message {
    let signed = Some(builder.create_vector(signed));
    let arguments = wire_control::OrderedArgs { signed, is_answered };
    wire_control::Ordered::create(builder, &arguments).as_union_value()
}

fn answered(builder: &mut Fbb, signed: &[u8]) -> Message {
    let signed = Some(builder.create_vector(signed));
    wire_control::Answered::create(builder, &wire_control::AnsweredArgs { signed }).as_union_value()
}

fn read_signed(bytes: Option<Vector<'_, u8>>) -> Result<Vec<u8>, Error> {
    let bytes = bytes.ok_or(Error::Missing { field: "signed" })?.bytes().to_vec();
    length("signed", bytes.len(), SIGNED_BYTES_MAX)?;
    Ok(bytes)
}

fn order_part(builder: &mut Fbb, bytes: &[u8], is_last: bool) -> Message {
    let bytes = Some(builder.create_vector(bytes));
    let arguments = wire_control::OrderPartArgs { bytes, is_last };
    wire_control::OrderPart::create(builder, &arguments).as_union_value()
}

fn read_introduce(table: wire_control::Introduce<'_>) -> Result<Control, Error> {
    Ok(Control::Introduce {
        lease: table.lease().bytes().into(),
        peer_name: text("peer_name", table.peer_name(), NAME_BYTES_MAX)?,
        peer_key: table.peer_key().bytes().into(),
        peer_addresses: addresses(table.peer_addresses())?,
        peer_versions: read_versions(table.peer_versions())?,
        peer_candidates: candidates(table.peer_candidates())?,
        epoch: table.epoch(),
    })
}

type Candidates = WIPOffset<Vector<'static, ForwardsUOffset<wire_control::Candidate<'static>>>>;

/// Writes candidates; an empty list is omitted (`None`), as in an older build.
fn write_candidates(builder: &mut Fbb, candidates: &[Candidate]) -> Option<Candidates> {
    if candidates.is_empty() {
        return None;
    }
    let written: Vec<_> = candidates
        .iter()
        .map(|candidate| {
            let arguments = wire_control::CandidateArgs {
                address: Some(builder.create_string(&candidate.address)),
                kind: candidate.kind.to_wire(),
                end: candidate.end,
            };
            wire_control::Candidate::create(builder, &arguments)
        })
        .collect();
    Some(builder.create_vector(&written))
}

fn candidates(
    vector: Option<Vector<'_, ForwardsUOffset<wire_control::Candidate<'_>>>>,
) -> Result<Vec<Candidate>, Error> {
    let Some(vector) = vector else { return Ok(Vec::new()) };
    let read = list("candidates", vector, CANDIDATE_COUNT_MAX, |candidate| {
        let end = within("candidates.end", candidate.end().into(), 0, END_MAX)?;
        let address = text("candidates.address", candidate.address(), NAME_BYTES_MAX)?;
        // Skip candidates of a kind that only a later build knows: the others suffice.
        let kind = CandidateKind::from_wire(candidate.kind()).ok();
        Ok(kind.map(|kind| Candidate { kind, end: end as u8, address }))
    })?;
    Ok(read.into_iter().flatten().collect())
}

fn write_held(
    builder: &mut Fbb,
    held: Option<&Held>,
) -> Option<WIPOffset<wire_control::Held<'static>>> {
    let Held { lease, epoch, peer_key } = held?;
    let lease = lease.as_ref().map(wire_control::Lease::new);
    let arguments = wire_control::HeldArgs {
        lease: lease.as_ref(),
        epoch: *epoch,
        peer_key: Some(&wire_control::Key::new(peer_key)),
    };
    Some(wire_control::Held::create(builder, &arguments))
}

fn read_held(table: wire_control::Held<'_>) -> Held {
    Held {
        lease: table.lease().map(|lease| lease.bytes().into()),
        epoch: table.epoch(),
        peer_key: table.peer_key().bytes().into(),
    }
}

fn to_wire(versions: ProtocolVersions) -> wire_control::Versions {
    wire_control::Versions::new(versions.lowest, versions.highest)
}

fn read_versions(
    versions: Option<&wire_control::Versions>,
) -> Result<Option<ProtocolVersions>, Error> {
    let Some(versions) = versions else { return Ok(None) };
    let (lowest, highest) = (versions.lowest(), versions.highest());
    within("versions.lowest", lowest.into(), 1, highest.into())?;
    Ok(Some(ProtocolVersions { lowest, highest }))
}

fn read_vehicle(entry: wire_control::VehicleEntry<'_>) -> Result<VehicleEntry, Error> {
    Ok(VehicleEntry {
        name: text("vehicles.name", entry.name(), NAME_BYTES_MAX)?,
        key: entry.key().bytes().into(),
        state: VehicleState::from_wire(entry.state())?,
        round_trip_ms: millis("vehicles.round_trip_ms", entry.round_trip_ms())?,
        driver: entry
            .driver()
            .map(|driver| text("vehicles.driver", driver, NAME_BYTES_MAX))
            .transpose()?,
        since: Some(entry.since_s())
            .filter(|since| *since > 0)
            .map(|since| Duration::from_secs(since.into())),
        place: read_place("vehicles.place", entry.place())?,
        link_count: entry.link_count(),
        links: entry.links(),
    })
}

fn read_place(field: &'static str, place: Option<&str>) -> Result<Option<String>, Error> {
    place.map(|place| text(field, place, PLACE_BYTES_MAX)).transpose()
}

fn read_relay(entry: wire_control::RelayTicket<'_>) -> Result<RelayTicket, Error> {
    let token = entry.token().bytes();
    let length = u16::try_from(token.len()).unwrap_or(u16::MAX);
    within("relays.token", length, 1, TOKEN_BYTES_MAX)?;
    Ok(RelayTicket {
        addresses: addresses(entry.addresses())?,
        key: entry.key().bytes().into(),
        token: token.to_vec(),
    })
}

fn addresses(vector: Vector<'_, ForwardsUOffset<&str>>) -> Result<Vec<String>, Error> {
    list("addresses", vector, ADDRESS_COUNT_MAX, |address| {
        text("addresses", address, NAME_BYTES_MAX)
    })
}

/// Maximum number of vehicles in a list, or of an enrolled machine's peers; a message with more is
/// refused.
pub(super) const VEHICLE_COUNT_MAX: usize = 256;
/// Maximum number of relays of a lease; a message with more is refused.
const RELAY_COUNT_MAX: usize = 4;
/// Maximum length of a part of an order's answer in bytes, beyond which it is refused: half of a
/// message.
const PART_BYTES_MAX: usize = 32 * 1024;
/// Maximum length of a relay's token in bytes, beyond which it is refused: one and a half times the
/// present length.
const TOKEN_BYTES_MAX: u16 = 256;
/// Maximum number of addresses of one peer, beyond which a message is refused: twice the links of a
/// session.
const ADDRESS_COUNT_MAX: usize = 32;
/// Maximum number of candidates of one peer; a message with more is refused.
const CANDIDATE_COUNT_MAX: usize = 32;
/// Maximum length of a vehicle's location in bytes, beyond which it is refused: a full list of
/// vehicles must fit in one message.
pub(super) const PLACE_BYTES_MAX: usize = 32;
/// Highest index of a candidate's socket, beyond which it is refused: a session has sixteen links.
const END_MAX: u16 = 15;
/// Maximum length in bytes of a signed order or answer, beyond which it is refused; none is as
/// long.
const SIGNED_BYTES_MAX: usize = 256;
