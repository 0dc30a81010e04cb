use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::lateness::Summary;

/// Status of the emulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Links in the order of the configuration.
    pub links: Vec<LinkStatus>,
    /// Lateness of sent datagrams, over all links.
    pub lateness: Summary,
}

/// Status of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Number, counted from 0.
    pub link: usize,
    /// Display name.
    pub name: String,
    /// `true` if it is cut.
    pub cut: bool,
    /// Listen address; for a device the vehicle's address with port 0.
    pub listen: SocketAddr,
    /// Target; for a device the operator's address with port 0.
    pub target: SocketAddr,
    /// Latest address that sent to it.
    pub client: Option<SocketAddr>,
    /// From client to target.
    pub up: DirectionStatus,
    /// From target to client.
    pub down: DirectionStatus,
    /// Lateness of its sent datagrams.
    pub lateness: Summary,
}

/// Counters of one direction of a link: received datagrams are delivered, dropped by the model or
/// in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// Received datagrams.
    pub received: u64,
    /// Their bytes, without headers.
    pub received_bytes: u64,
    /// Datagrams that passed the model.
    pub delivered: u64,
    /// Their bytes, without headers.
    pub delivered_bytes: u64,
    /// Datagrams in transit.
    pub in_flight: u64,
    /// Bytes in the queue, including headers.
    pub queued_bytes: u64,
    /// Datagrams with one changed bit, delivered or lost in a cut.
    #[serde(default)]
    pub damaged: u64,
    /// Datagrams marked as in an L4S queue, including those lost afterwards.
    #[serde(default)]
    pub marked: u64,
    /// Drops by name: `queue`, `loss`, `outage`, `cut` by the model; after it `no_client`,
    /// `refused` and `send` of those delivered.
    pub drops: BTreeMap<String, u64>,
}
