use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::lateness::Summary;

/// State and counters of the emulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Links in the order of the configuration.
    pub links: Vec<LinkStatus>,
    /// Lateness of sent datagrams, over all links.
    pub lateness: Summary,
}

/// State and counters of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Number of the link, counted from 0.
    pub link: usize,
    /// Display name of the link.
    pub name: String,
    /// `true` if the link is cut in at least one direction.
    pub cut: bool,
    /// Address at which the link receives from the vehicle; between devices the vehicle's address
    /// with port 0.
    pub listen: SocketAddr,
    /// Address of the target; between devices the operator's address with port 0.
    pub target: SocketAddr,
    /// Latest address that sent to the listen address; `None` before, and between devices.
    pub client: Option<SocketAddr>,
    /// Counters of the direction from client to target.
    pub up: DirectionStatus,
    /// Counters of the direction from target to client.
    pub down: DirectionStatus,
    /// Lateness of the link's sent datagrams.
    pub lateness: Summary,
}

/// Counters of one direction of a link: received datagrams are delivered, dropped by the model or
/// in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// Datagrams received for this direction since the start.
    pub received: u64,
    /// Bytes of the received datagrams, without headers; between devices, of complete IP packets.
    pub received_bytes: u64,
    /// Datagrams that passed the model.
    pub delivered: u64,
    /// Bytes of the datagrams that passed the model, without headers; between devices, of complete
    /// IP packets.
    pub delivered_bytes: u64,
    /// Datagrams now within the model: neither delivered nor dropped.
    pub in_flight: u64,
    /// Bytes in the model's queue now, including headers.
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
