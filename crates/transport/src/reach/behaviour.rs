use std::fmt;
use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use tautline_units::{Duration, Instant};

use crate::crypto::Seed;
use crate::stun::{Change, Message, Request, Success, Transaction};

/// The dependence of a NAT's mapping or filtering on the other end ([RFC4787] 4.1 and 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Behaviour {
    /// Independent of the other end: one mapping or filter rule for all ends.
    EndpointIndependent,
    /// Dependent on the other end's address: one mapping or filter rule for each address.
    AddressDependent,
    /// Dependent on the other end's address and port: one for each pair of them.
    AddressAndPortDependent,
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EndpointIndependent => "endpoint-independent",
            Self::AddressDependent => "address-dependent",
            Self::AddressAndPortDependent => "address-and-port-dependent",
        })
    }
}

/// The results of a test of the NAT in front of a socket, as far as it has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Address of the socket as seen by the server; `None` before the server answers.
    pub mapped: Option<SocketAddr>,
    /// Mapping behaviour; `None` before it is found, and if the server has no second address or
    /// does not answer there.
    pub mapping: Option<Behaviour>,
    /// Filtering behaviour; `None` before it is found, and if the server has no second address.
    pub filtering: Option<Behaviour>,
}

/// A test of the behaviour of the NAT in front of a socket, by a server with two addresses
/// ([RFC5780] 4.3 and 4.4).
///
/// Sans-I/O: up to five requests in sequence, each sent at most six times within 1.8 s. The socket
/// must not have contacted the server before, because filtering shows only in first contacts.
#[derive(Debug)]
pub struct Discovery {
    server: SocketAddr,
    rng: ChaCha20Rng,
    step: Step,
    asked: Option<Transaction>,
    sent: u32,
    due_at: Instant,
    first: Option<Success>,
    mapped_second: Option<SocketAddr>,
    found: Found,
}

/// The outstanding request. Filtering tests come before those that would open the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Mapped,
    FilterAll,
    FilterPort,
    MappingSecond,
    MappingThird,
    Ended,
}

impl Discovery {
    /// Starts the test; `server` is the server's first address and port.
    pub fn new(server: SocketAddr, seed: impl Into<Seed>, now: Instant) -> Self {
        Self {
            server,
            rng: seed.into().into_rng(),
            step: Step::Mapped,
            asked: None,
            sent: 0,
            due_at: now,
            first: None,
            mapped_second: None,
            found: Found { mapped: None, mapping: None, filtering: None },
        }
    }

    /// Returns the next request and its destination, or `None` if none is due now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        while self.step != Step::Ended && now >= self.due_at {
            if self.sent == ASKED_MAX {
                self.on_silence(now);
                continue;
            }
            self.sent += 1;
            self.due_at = now + if self.sent == ASKED_MAX { LAST_PAUSE } else { PAUSE };
            let (to, change) = self.question()?;
            let transaction = match self.asked {
                Some(transaction) => transaction,
                None => {
                    let mut name = [0; 12];
                    self.rng.fill_bytes(&mut name);
                    *self.asked.insert(Transaction(name))
                }
            };
            return Some((to, Request { change, ..Request::new(transaction) }.to_bytes()));
        }
        None
    }

    /// Handles a datagram received on the socket; anything but an answer to the outstanding request
    /// is ignored.
    pub fn handle_datagram(&mut self, datagram: &[u8], now: Instant) {
        let Ok(Message::Success(success)) = Message::parse(datagram) else { return };
        if self.asked == Some(success.transaction) {
            self.on_answer(success, now);
        }
    }

    /// Returns when to poll again; `None` when the test has ended.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.step != Step::Ended).then_some(self.due_at)
    }

    /// Returns the results of the test so far.
    pub fn found(&self) -> Found {
        self.found
    }

    fn question(&self) -> Option<(SocketAddr, Change)> {
        let other = self.first.and_then(|first| first.other);
        let here = Change::default();
        Some(match self.step {
            Step::Mapped => (self.server, here),
            Step::FilterAll => (self.server, Change { address: true, port: true }),
            Step::FilterPort => (self.server, Change { address: false, port: true }),
            Step::MappingSecond => (SocketAddr::new(other?.ip(), self.server.port()), here),
            Step::MappingThird => (other?, here),
            Step::Ended => return None,
        })
    }

    fn on_answer(&mut self, success: Success, now: Instant) {
        let next = match self.step {
            Step::Mapped => {
                self.found.mapped = Some(success.mapped);
                self.first = Some(success);
                match success.other {
                    Some(other) if other.ip() != self.server.ip() => Step::FilterAll,
                    Some(_) | None => Step::Ended,
                }
            }
            Step::FilterAll => {
                self.found.filtering = Some(Behaviour::EndpointIndependent);
                Step::MappingSecond
            }
            Step::FilterPort => {
                self.found.filtering = Some(Behaviour::AddressDependent);
                Step::MappingSecond
            }
            Step::MappingSecond if self.found.mapped == Some(success.mapped) => {
                self.found.mapping = Some(Behaviour::EndpointIndependent);
                Step::Ended
            }
            Step::MappingSecond => {
                self.mapped_second = Some(success.mapped);
                Step::MappingThird
            }
            Step::MappingThird => {
                self.found.mapping = Some(match self.mapped_second == Some(success.mapped) {
                    true => Behaviour::AddressDependent,
                    false => Behaviour::AddressAndPortDependent,
                });
                Step::Ended
            }
            Step::Ended => Step::Ended,
        };
        self.ask(next, now);
    }

    /// Handles that the outstanding request was not answered: in a filtering test, that shows
    /// filtering, and the next step begins; in any other step, the test ends.
    fn on_silence(&mut self, now: Instant) {
        let next = match self.step {
            Step::FilterAll => Step::FilterPort,
            Step::FilterPort => {
                self.found.filtering = Some(Behaviour::AddressAndPortDependent);
                Step::MappingSecond
            }
            Step::Mapped | Step::MappingSecond | Step::MappingThird | Step::Ended => Step::Ended,
        };
        self.ask(next, now);
    }

    fn ask(&mut self, step: Step, now: Instant) {
        (self.step, self.asked, self.sent, self.due_at) = (step, None, 0, now);
    }
}

const ASKED_MAX: u32 = 6;
const PAUSE: Duration = Duration::from_millis(200);
/// Time after the last request of a step in which an answer is awaited. Longer than a mobile link's
/// round trip: a late answer must not look like filtering.
const LAST_PAUSE: Duration = Duration::from_millis(800);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nat_discovery_ends_in_time_whatever_servers_answer(
            answers in prop::collection::vec(
                (0u8..4, any::<(u32, u16, u128, u16)>(), any::<Vec<u8>>(), 0u64..900),
                0..40,
            ),
        ) {
            let server = SocketAddr::from(([192, 0, 2, 9], 3_478));
            let begin = Instant::from_millis(5);
            let (mut now, mut asked) = (begin, 0);
            let mut discovery = Discovery::new(server, [7; 32], now);
            let mut answers = answers.into_iter();
            while let Some(at) = discovery.poll_timeout() {
                now = now.max(at);
                let mut newest = None;
                while let Some((to, request)) = discovery.poll_transmit(now) {
                    asked += 1;
                    newest = Some((to, request));
                }
                let (Some((to, request)), Some(answer)) = (newest, answers.next()) else { continue };
                let (kind, (v4, port, v6, other_port), bytes, later) = answer;
                now += Duration::from_millis(later);
                discovery.handle_datagram(&bytes, now);
                let Ok(Message::Request(request)) = Message::parse(&request) else {
                    panic!("a request to {to}")
                };
                let other = SocketAddr::from((v6.to_be_bytes(), other_port));
                let success = Success {
                    transaction: request.transaction,
                    mapped: SocketAddr::from((v4.to_be_bytes(), port)),
                    origin: (kind & 1 == 0).then_some(other),
                    other: (kind & 2 == 0).then_some(other),
                };
                discovery.handle_datagram(&success.to_bytes(), now);
                // An answer to another request.
                let foreign = Success { transaction: Transaction([9; 12]), ..success };
                let found = discovery.found();
                discovery.handle_datagram(&foreign.to_bytes(), now);
                prop_assert_eq!(discovery.found(), found);
            }
            prop_assert!(asked <= 5 * ASKED_MAX, "{asked} requests");
            let longest = (PAUSE * (ASKED_MAX - 1) + LAST_PAUSE) * 5 + Duration::from_millis(900 * 40);
            prop_assert!(now.since(begin) <= longest);
            prop_assert!(discovery.poll_transmit(now).is_none());
        }
    }
}
