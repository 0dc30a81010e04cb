use std::net::SocketAddr;

use tautline_transport::Route;

/// Trains that are being filled, one per route.
#[derive(Debug, Default)]
pub(crate) struct Trains {
    /// The first `count` are in use; the others keep their capacity.
    trains: Vec<Train>,
    count: usize,
}

/// Concatenated datagrams of equal length over one route: the kernel splits them, at the cost of
/// one call.
#[derive(Debug)]
pub(crate) struct Train {
    /// Destination, and the socket to send from.
    pub(crate) to: Route,
    pub(crate) bytes: Vec<u8>,
    /// Length of each datagram except the last, which may be shorter.
    pub(crate) segment: usize,
    pub(crate) datagrams: usize,
}

impl Trains {
    /// Appends a datagram to the train of its route, and passes trains that must be sent before to
    /// `send`. `most`: maximum datagrams per train.
    pub(crate) fn push(
        &mut self,
        to: Route,
        datagram: &[u8],
        most: usize,
        send: &mut impl FnMut(&Train),
    ) {
        let open = self.trains[..self.count].iter_mut().find(|train| train.to == to);
        match open {
            Some(train) if train.takes(datagram, most) => train.append(datagram),
            Some(train) => {
                send(train);
                train.begin(to, datagram);
            }
            None => {
                if self.count == TRAINS_MAX {
                    self.flush(send);
                }
                if self.count == self.trains.len() {
                    self.trains.push(Train::new());
                }
                self.trains[self.count].begin(to, datagram);
                self.count += 1;
            }
        }
    }

    /// Passes all remaining trains to `send`.
    pub(crate) fn flush(&mut self, send: &mut impl FnMut(&Train)) {
        self.trains[..self.count].iter().for_each(&mut *send);
        self.count = 0;
    }
}

impl Train {
    fn new() -> Self {
        let nowhere = Route { socket: 0, remote: SocketAddr::from(([0, 0, 0, 0], 0)) };
        Self { to: nowhere, bytes: Vec::with_capacity(BYTES_MAX), segment: 0, datagrams: 0 }
    }

    fn begin(&mut self, to: Route, datagram: &[u8]) {
        (self.to, self.segment, self.datagrams) = (to, datagram.len(), 1);
        self.bytes.clear();
        self.bytes.extend_from_slice(datagram);
    }

    fn takes(&self, datagram: &[u8], most: usize) -> bool {
        let is_closed = self.bytes.len() < self.segment * self.datagrams;
        !is_closed
            && datagram.len() <= self.segment
            && self.segment <= SEGMENT_BYTES_MAX
            && self.datagrams < most
            && self.bytes.len() + datagram.len() <= BYTES_MAX
    }

    fn append(&mut self, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.datagrams += 1;
    }
}

/// Maximum trains at a time; a datagram of one more route first causes all of them to be sent.
const TRAINS_MAX: usize = 8;
/// Maximum bytes of a train: the kernel's limit is that of a UDP datagram, 65,507.
const BYTES_MAX: usize = 60_000;
/// Maximum datagram of a train in bytes, which fits every IPv6 interface's MTU; a longer one is
/// sent alone. If a single datagram exceeds the MTU, the kernel refuses the train, and may then
/// refuse all later ones.
const SEGMENT_BYTES_MAX: usize = 1_232;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn to(port: u16) -> Route {
        Route { socket: 0, remote: ([192, 0, 2, 1], port).into() }
    }

    /// Splits a train as the kernel does.
    fn cut(train: &Train) -> Vec<(Route, Vec<u8>)> {
        train.bytes.chunks(train.segment).map(|bytes| (train.to, bytes.to_vec())).collect()
    }

    #[test]
    fn datagrams_of_one_length_to_one_address_leave_as_one() {
        let (mut trains, mut sent) = (Trains::default(), Vec::new());
        let mut send = |train: &Train| sent.push((train.to, train.datagrams, train.bytes.len()));
        for _ in 0..3 {
            trains.push(to(1), &[7; 100], 64, &mut send);
            trains.push(to(2), &[7; 1_300], 64, &mut send);
        }
        trains.push(to(1), &[7; 60], 64, &mut send);
        trains.push(to(1), &[7; 100], 64, &mut send);
        trains.flush(&mut send);
        let long = (to(2), 1, 1_300);
        assert_eq!(sent, [long, long, (to(1), 4, 360), (to(1), 1, 100), long]);
    }

    proptest! {
        #[test]
        fn every_datagram_leaves_once_and_those_of_one_address_in_order(
            datagrams in vec((0u16..12, 1usize..1_400), 0..200),
            most in 1usize..70,
        ) {
            let (mut trains, mut sent) = (Trains::default(), Vec::new());
            let mut send = |train: &Train| {
                assert!(train.datagrams <= most && train.bytes.len() <= BYTES_MAX);
                let parts = cut(train);
                assert_eq!(parts.len(), train.datagrams);
                sent.extend(parts);
            };
            let mut given = Vec::new();
            for (index, (port, length)) in datagrams.iter().enumerate() {
                let datagram = vec![index as u8; *length];
                trains.push(to(*port), &datagram, most, &mut send);
                given.push((to(*port), datagram));
            }
            trains.flush(&mut send);
            prop_assert_eq!(sent.len(), given.len());
            // A stable sort by address keeps the order within each.
            sent.sort_by_key(|(to, _)| *to);
            given.sort_by_key(|(to, _)| *to);
            prop_assert_eq!(sent, given);
        }
    }
}
