use std::time::Duration;

use crate::fields::choice;
use crate::generated::control as wire_control;

/// A vehicle in the switchboard's directory.
#[derive(Clone, PartialEq, Debug)]
pub struct VehicleEntry {
    /// Registered name of the vehicle, at most 64 bytes.
    pub name: String,
    /// Static public key of the vehicle.
    pub key: [u8; 32],
    /// Availability: free, taken or away.
    pub state: VehicleState,
    /// Round-trip time between switchboard and vehicle in milliseconds, if known.
    pub round_trip_ms: Option<f32>,
    /// Name of the operator that drives the vehicle, at most 64 bytes; `None` if there is none, or
    /// from an older switchboard.
    pub driver: Option<String>,
    /// Start of the present drive or absence: Unix time in whole seconds, if known.
    pub since: Option<Duration>,
    /// Location as the vehicle reported it, at most 32 bytes; `None` if it reported none.
    pub place: Option<String>,
    /// Number of links that the vehicle reported; 0 while it is away, and from an older
    /// switchboard.
    pub link_count: u8,
    /// Number of the vehicle's `link_count` links whose address is known.
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
