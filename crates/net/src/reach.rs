//! Candidates of an event loop's sockets: local addresses, STUN queries, announcements.

use std::net::{IpAddr, SocketAddr};

use tautline_message::CandidateKind;
use tautline_transport::reach::{Candidate, Gatherer, Kind};
use tautline_units::{Duration, Instant};
use tokio::sync::watch;

use crate::control::Host;
use crate::slot::Slot;
use crate::socket::Local;
use crate::source_address::{ANYWHERE, source};
pub use crate::source_address::{IPV4_ON_IPV6, is_ipv6_only};

/// Search for the candidates of sockets. It begins when servers are set.
#[derive(Debug)]
pub(crate) struct Reach {
    gatherer: Gatherer,
    tell: watch::Sender<Vec<Candidate>>,
    look_at: Option<Instant>,
}

impl Reach {
    /// Creates the search for sockets bound to `locals`, which sends its results to `tell`.
    pub(crate) fn new(
        locals: &[SocketAddr],
        seed: [u8; 32],
        tell: watch::Sender<Vec<Candidate>>,
    ) -> Self {
        Self { gatherer: Gatherer::new(locals, seed), tell, look_at: None }
    }

    /// Starts to query these servers, in place of any before.
    pub(crate) fn begin(&mut self, servers: &[SocketAddr], now: Instant) {
        self.gatherer.set_servers(servers, now);
        self.look_at = Some(now);
    }

    /// Makes the next query due now, because the peer has fallen silent; does nothing before
    /// [`begin`](Self::begin).
    pub(crate) fn hurry(&mut self, now: Instant) {
        if self.look_at.is_some() {
            self.gatherer.hurry(now);
            self.look_at = Some(now);
        }
    }

    /// Handles a STUN datagram that arrived at `socket`; logs one that answers no query.
    pub(crate) fn handle_datagram(
        &mut self,
        socket: u8,
        from: SocketAddr,
        datagram: &[u8],
        now: Instant,
    ) {
        if !self.gatherer.handle_datagram(socket, from, datagram, now) {
            tracing::debug!(%from, "unexpected answer to an address query");
        }
    }

    /// Looks up the sockets' own addresses if it is due, and announces the candidates if they
    /// changed.
    pub(crate) fn turn(&mut self, slots: &[Slot], now: Instant) {
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = Some(now + LOOK_INTERVAL);
            for (index, slot) in (0..=u8::MAX).zip(slots) {
                let hosts = match slot.is_open() {
                    true => hosts(slot.local(), self.gatherer.servers()),
                    false => Vec::new(),
                };
                self.gatherer.set_hosts(index, slot.address(), hosts, now);
            }
        }
        if let Some(found) = self.gatherer.poll_candidates() {
            tracing::info!(candidates = %text(found), "this end may be reached at");
            self.tell.send_replace(found.to_vec());
        }
    }

    /// Returns the next socket whose address has changed; `None` if all changes were returned.
    pub(crate) fn poll_moved(&mut self) -> Option<u8> {
        self.gatherer.poll_moved()
    }

    /// Returns the next request: its socket, destination and bytes; `None` if none is due.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<(u8, SocketAddr, Vec<u8>)> {
        self.gatherer.poll_transmit(now)
    }

    /// Returns the time of the next query or look at the interfaces; `None` before
    /// [`begin`](Self::begin).
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        [self.gatherer.poll_timeout(), self.look_at].into_iter().flatten().min()
    }
}

/// Converts candidates to the form of the control plane.
pub fn to_message(candidates: &[Candidate]) -> Vec<tautline_message::Candidate> {
    let told = candidates.iter().map(|candidate| tautline_message::Candidate {
        kind: match candidate.kind {
            Kind::Host => CandidateKind::Host,
            Kind::Reflexive => CandidateKind::Reflexive,
            Kind::Relayed => CandidateKind::Relayed,
        },
        end: candidate.end,
        address: candidate.address.to_string(),
    });
    told.collect()
}

/// Converts candidates from the form of the control plane; invalid addresses are skipped.
pub fn from_message(candidates: &[tautline_message::Candidate]) -> Vec<Candidate> {
    let read = candidates.iter().filter_map(|candidate| {
        let kind = match candidate.kind {
            CandidateKind::Host => Kind::Host,
            CandidateKind::Reflexive => Kind::Reflexive,
            CandidateKind::Relayed => Kind::Relayed,
        };
        Some(Candidate { kind, end: candidate.end, address: candidate.address.parse().ok()? })
    });
    read.collect()
}

/// Returns the addresses of the switchboard at `address` (a [`Host`]), which answers STUN queries
/// at the same port over UDP; an empty list if its name cannot be resolved now.
pub async fn servers(address: &str) -> Vec<SocketAddr> {
    let address =
        address.parse().map_or_else(|_| address.to_owned(), |host: Host| host.to_string());
    match tokio::net::lookup_host(&address).await {
        Ok(found) => found.collect(),
        Err(error) => {
            tracing::debug!(%error, address, "the name is unknown");
            Vec::new()
        }
    }
}

/// Formats candidates for people.
fn text(candidates: &[Candidate]) -> String {
    let texts = candidates.iter().map(|candidate| {
        let kind = match candidate.kind {
            Kind::Host => "own",
            Kind::Reflexive => "seen",
            Kind::Relayed => "relayed",
        };
        format!("{} ({kind})", candidate.address)
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Returns the source addresses that the system would use through `local`: its own address if it is
/// bound to one, otherwise one per family, towards the server or any destination. No datagram is
/// sent.
fn hosts(local: &Local, servers: &[SocketAddr]) -> Vec<IpAddr> {
    if let Local::Address(address) = local
        && !address.ip().is_unspecified()
    {
        return vec![address.ip()];
    }
    let only_four = matches!(local, Local::Address(address) if address.is_ipv4());
    let towards = ANYWHERE.map(|anywhere| {
        let family = |server: &&SocketAddr| server.is_ipv4() == anywhere.is_ipv4();
        servers.iter().find(family).copied().unwrap_or(anywhere)
    });
    let towards = towards.into_iter().filter(|to| to.is_ipv4() || !only_four);
    towards.filter_map(|to| source(local, to)).collect()
}

/// Interval at which the addresses of the interfaces are read.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_address_towards_a_server_is_the_one_that_it_sees() {
        let any: Local = "0.0.0.0:7".parse().unwrap();
        let server = ["127.0.0.1:9".parse().unwrap()];
        assert_eq!(hosts(&any, &server), [IpAddr::V4(Ipv4Addr::LOCALHOST)]);
        let own: Local = "127.0.0.2:7".parse().unwrap();
        assert_eq!(hosts(&own, &server), ["127.0.0.2".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn candidates_come_through_the_control_plane_as_they_are() {
        let candidate =
            |kind, end, address: &str| Candidate { kind, end, address: address.parse().unwrap() };
        let all = [
            candidate(Kind::Host, 0, "[2001:db8::1]:7"),
            candidate(Kind::Reflexive, 1, "192.0.2.1:7"),
            candidate(Kind::Relayed, 1, "192.0.2.2:7"),
        ];
        assert_eq!(from_message(&to_message(&all)), all);
        let mut spoilt = to_message(&all);
        spoilt[0].address = "nowhere".into();
        assert_eq!(from_message(&spoilt), all[1..]);
    }
}
