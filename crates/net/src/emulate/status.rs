use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::lateness::Summary;

/// What the emulator tells of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The links, in the order of the configuration.
    pub links: Vec<LinkStatus>,
    /// How late datagrams left, over all links.
    pub lateness: Summary,
}

/// One link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Its number, counted from 0.
    pub link: usize,
    /// Its name.
    pub name: String,
    /// Whether it is cut.
    pub cut: bool,
    /// Where it listens; of a device the vehicle's address, and port 0.
    pub listen: SocketAddr,
    /// Where it forwards to; of a device the operator's address, and port 0.
    pub target: SocketAddr,
    /// The latest address that sent to it.
    pub client: Option<SocketAddr>,
    /// From client to target.
    pub up: DirectionStatus,
    /// From target to client.
    pub down: DirectionStatus,
    /// How late its datagrams left.
    pub lateness: Summary,
}

/// One direction of a link: what came in is delivered, dropped by the model or in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// Datagrams that came in.
    pub received: u64,
    /// Their bytes, without headers.
    pub received_bytes: u64,
    /// Datagrams that got through the model.
    pub delivered: u64,
    /// Their bytes, without headers.
    pub delivered_bytes: u64,
    /// Datagrams on their way.
    pub in_flight: u64,
    /// Bytes in the queue, headers included.
    pub queued_bytes: u64,
    /// Datagrams delivered, or lost in a cut, with one bit changed.
    #[serde(default)]
    pub damaged: u64,
    /// Datagrams marked as an L4S queue does, if they were lost afterwards as well.
    #[serde(default)]
    pub marked: u64,
    /// Drops by name: `queue`, `loss`, `outage`, `cut` by the model; after it `no_client`,
    /// `refused` and `send` of those delivered.
    pub drops: BTreeMap<String, u64>,
}
