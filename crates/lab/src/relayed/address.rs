//! Addresses of both ends and the switchboard.

use std::net::SocketAddr;

pub(super) fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 5_000))
}

pub(super) const VEHICLE: u8 = 1;
pub(super) const OPERATOR: u8 = 2;
/// Host number of the switchboard's address towards the vehicle; [`TO_OPERATOR`] is that towards
/// the operator.
pub(super) const TO_VEHICLE: u8 = 3;
pub(super) const TO_OPERATOR: u8 = 4;
