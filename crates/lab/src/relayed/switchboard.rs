use std::collections::{BTreeMap, VecDeque};

use tautline_sim::world::{Node, Route};
use tautline_units::Instant;

use super::address::{OPERATOR, VEHICLE, address};
use super::sent::digest;

/// A node that forwards everything from one end to the other, without looking inside.
///
/// It stores nothing: each datagram leaves before the next arrives.
#[derive(Default)]
pub(super) struct Switchboard {
    outbox: VecDeque<(Route, Vec<u8>)>,
    /// Arrival time of each datagram by its digest: from the vehicle, from the operator.
    pub(super) arrived: [BTreeMap<u64, Instant>; 2],
}

impl Node for Switchboard {
    fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) {
        let from = usize::from(route.socket);
        self.arrived[from].insert(digest(datagram), now);
        let to = [OPERATOR, VEHICLE][from];
        let route = Route { socket: 1 - route.socket, remote: address(to) };
        self.outbox.push_back((route, datagram.to_vec()));
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, _now: Instant) -> Option<Route> {
        let (route, datagram) = self.outbox.pop_front()?;
        buffer.extend_from_slice(&datagram);
        Some(route)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}
}
