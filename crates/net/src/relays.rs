//! Relays received from the switchboard, in the form for the event loop.

use std::collections::VecDeque;
use std::net::SocketAddr;

use tautline_message::RelayTicket;
use tautline_transport::Route;
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_transport::relay::{self, Admission, Ticket, Token};

use crate::destination::Destination;
use crate::random;

/// Relays towards each peer, as last received from the switchboard; kept for the last two peers.
#[derive(Debug, Default)]
pub struct Relays {
    named: VecDeque<(PublicKey, Vec<Ticket>)>,
}

impl Relays {
    /// Stores the relays from the switchboard in place of earlier ones towards this peer, and
    /// returns the admission for the event loop ([`Handle::admit`](crate::driver::Handle::admit)).
    /// Invalid tickets are skipped.
    ///
    /// # Errors
    /// When the peer's key is invalid, or the system has no randomness.
    pub fn take(
        &mut self,
        identity: &Identity,
        peer_key: [u8; 32],
        relays: &[RelayTicket],
    ) -> anyhow::Result<Admission> {
        let peer = PublicKey::from_bytes(peer_key)?;
        let mut tickets: Vec<Ticket> = relays.iter().filter_map(ticket).collect();
        tickets.iter_mut().for_each(|ticket| self.arrange(&peer, ticket));
        self.named.retain(|(known, _)| *known != peer);
        self.named.truncate(PEERS_MAX - 1);
        self.named.push_front((peer, tickets.clone()));
        Ok(Admission { identity: identity.clone(), peer, tickets, seed: random::seed()?.into() })
    }

    /// Moves addresses in use for another peer to the end, so that a relay can distinguish the two.
    /// The addresses of a relay already known for this peer keep their order.
    fn arrange(&self, peer: &PublicKey, ticket: &mut Ticket) {
        let of_relay = |tickets: &[Ticket]| {
            let same = tickets.iter().find(|other| other.relay == ticket.relay);
            same.map_or(Vec::new(), |other| other.addresses.clone())
        };
        let known = self.named.iter().find(|(known, _)| known == peer);
        let before = known.map_or(Vec::new(), |(_, tickets)| of_relay(tickets));
        let others = self.named.iter().filter(|(known, _)| known != peer);
        let taken: Vec<SocketAddr> = others
            .flat_map(|(_, tickets)| {
                let addresses = of_relay(tickets);
                let first = |is_ipv4| addresses.iter().find(|at| at.is_ipv4() == is_ipv4).copied();
                [first(true), first(false)].into_iter().flatten()
            })
            .collect();
        let place = |at: &SocketAddr| before.iter().position(|known| known == at);
        ticket.addresses.sort_by_key(|at| (place(at).unwrap_or(usize::MAX), taken.contains(at)));
    }

    /// Returns the routes through relays to `peer` from sockets with these addresses: one for each
    /// socket and relay.
    pub fn routes(&self, peer: &PublicKey, locals: &[SocketAddr]) -> Vec<Route> {
        relay::datagram_routes(self.tickets(peer), locals).map(|(_, route)| route).collect()
    }

    /// Returns the routes through relays to `peer` over TLS, at most four.
    pub fn streams(&self, peer: &PublicKey, locals: &[SocketAddr]) -> Vec<Route> {
        relay::stream_routes(self.tickets(peer), locals).map(|(_, route)| route).collect()
    }

    fn tickets(&self, peer: &PublicKey) -> &[Ticket] {
        let named = self.named.iter().find(|(known, _)| known == peer);
        named.map_or(&[], |(_, tickets)| tickets)
    }
}

/// Parses a ticket; `None` if it is invalid or has no address.
fn ticket(told: &RelayTicket) -> Option<Ticket> {
    let (mut addresses, mut streams) = (Vec::new(), Vec::new());
    for destination in told.addresses.iter().filter_map(|text| text.parse().ok()) {
        match destination {
            Destination::Datagrams(address) => addresses.push(address),
            Destination::Tls(address) => streams.push(address),
        }
    }
    let relay = PublicKey::from_bytes(told.key).ok()?;
    let token = Token::from_bytes(&told.token)?;
    let leads_anywhere = !addresses.is_empty() || !streams.is_empty();
    leads_anywhere.then_some(Ticket { addresses, streams, relay, token })
}

/// Maximum peers, beyond which the one named longest ago is dropped: that of the current session,
/// and that of a successor session.
const PEERS_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(seed: u8, addresses: &[&str], token_bytes: usize) -> RelayTicket {
        RelayTicket {
            addresses: addresses.iter().map(|&text| text.to_owned()).collect(),
            key: *Identity::from_seed(&[seed; 32]).public().as_bytes(),
            token: vec![0; token_bytes],
        }
    }

    #[test]
    fn each_socket_has_a_route_by_each_relay_that_it_reaches() {
        let identity = Identity::from_seed(&[1; 32]);
        let peer = Identity::from_seed(&[2; 32]).public();
        let mut relays = Relays::default();
        let whole = Token::BYTES;
        let named = [
            told(3, &["[2001:db8::9]:1", "192.0.2.9:1", "192.0.2.9:2"], whole),
            told(4, &["192.0.2.8:1", "tls:192.0.2.8:443"], whole),
            told(5, &["192.0.2.7:1"], whole - 1),
            told(6, &["relay.example:1"], whole),
        ];
        let admission = relays.take(&identity, *peer.as_bytes(), &named).unwrap();
        assert_eq!(admission.tickets.len(), 2);
        let locals = ["0.0.0.0:5", "[::]:6"].map(|text| text.parse().unwrap());
        let found = relays.routes(&peer, &locals);
        let found: Vec<_> =
            found.iter().map(|route| (route.socket, route.remote.to_string())).collect();
        // The second socket supports both address families.
        let expected =
            [(0, "192.0.2.9:1"), (1, "[2001:db8::9]:1"), (0, "192.0.2.8:1"), (1, "192.0.2.8:1")];
        assert_eq!(found, expected.map(|(socket, to)| (socket, to.to_owned())));
        assert_eq!(relays.routes(&identity.public(), &locals), []);
        let stream = |index| Route::stream(index, "192.0.2.8:443".parse().unwrap());
        assert_eq!(relays.streams(&peer, &locals), [stream(0), stream(1)]);
        // Another peer is reached through another port, and both keep theirs.
        let other = Identity::from_seed(&[7; 32]).public();
        relays.take(&identity, *other.as_bytes(), &named[..1]).unwrap();
        relays.take(&identity, *peer.as_bytes(), &named[..1]).unwrap();
        let of = |peer| relays.routes(peer, &locals[..1])[0].remote.to_string();
        assert_eq!((of(&other), of(&peer)), ("192.0.2.9:2".to_owned(), "192.0.2.9:1".to_owned()));
        assert!(relays.take(&identity, [0; 32], &named).is_err());
    }
}
