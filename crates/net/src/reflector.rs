//! STUN Binding over UDP, from two ports and up to two addresses.
//!
//! Each request is answered with its source address, in a datagram of about the same size. With two
//! addresses a client can determine the type of its NAT ([RFC5780]).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, ensure};
use socket2::{Domain, Protocol, Socket, Type};
use tautline_transport::stun::{self, CHANGE_REQUEST, Message, Request};
use tautline_units::{Duration, Ecn, Instant};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::udp::{BUFFER_BYTES, Outgoing, Received, Udp};

/// A server that listens on one or two addresses, on two ports of each.
#[derive(Debug)]
pub struct Reflector {
    corners: Arc<Vec<Corner>>,
    counters: Arc<Counters>,
}

/// Counters of the requests to a reflector since its start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests whose answer the kernel accepted.
    pub answered: AtomicU64,
    /// Requests above the rate limit of their network.
    pub limited: AtomicU64,
    /// Datagrams that are no STUN request.
    pub malformed: AtomicU64,
}

/// One socket: at the first or second address, on the first or second port.
#[derive(Debug)]
struct Corner {
    /// Locked while a datagram is passed to the system, which does not block.
    socket: Mutex<Udp<UdpSocket>>,
    /// `true` for the second address, and `true` for the second port.
    place: (bool, bool),
    at: SocketAddr,
}

impl Reflector {
    /// Listens on `first` and its next port, and on the same ports of `second`, if given.
    ///
    /// # Errors
    /// One line with the address that is in use, or that cannot be one of two.
    pub fn bind(first: SocketAddr, second: Option<IpAddr>) -> anyhow::Result<Self> {
        Self::bind_with(first, second, Arc::default())
    }

    /// Binds as [`bind`](Self::bind) does, and counts in `counters`.
    ///
    /// # Errors
    /// Same as [`bind`](Self::bind).
    pub fn bind_with(
        first: SocketAddr,
        second: Option<IpAddr>,
        counters: Arc<Counters>,
    ) -> anyhow::Result<Self> {
        let next = first
            .port()
            .checked_add(1)
            .context("the second address needs a port after the first one")?;
        let mut places = vec![((false, false), first)];
        places.push(((false, true), SocketAddr::new(first.ip(), next)));
        if let Some(second) = second {
            ensure!(
                !first.ip().is_unspecified() && first.ip() != second,
                "a second address needs a specific first address to listen on, not 0.0.0.0 or ::"
            );
            ensure!(
                first.is_ipv4() == second.is_ipv4(),
                "both addresses must be IPv4, or both IPv6"
            );
            places.push(((true, false), SocketAddr::new(second, first.port())));
            places.push(((true, true), SocketAddr::new(second, next)));
        }
        let corners = places.into_iter().map(|(place, at)| {
            let socket = open(at).with_context(|| format!("cannot answer on UDP {at}"))?;
            Ok(Corner { socket: Mutex::new(socket), place, at })
        });
        let corners = corners.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self { corners: Arc::new(corners), counters })
    }

    /// Returns the counters of this reflector, updated while it serves.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    /// Answers requests forever.
    pub async fn serve(self, clock: Clock) {
        let mut tasks = JoinSet::new();
        for index in 0..self.corners.len() {
            let (corners, counters) = (self.corners.clone(), self.counters.clone());
            tasks.spawn(async move { attend(&corners, index, &counters, clock).await });
        }
        while tasks.join_next().await.is_some() {}
    }
}

async fn attend(corners: &[Corner], index: usize, counters: &Counters, clock: Clock) {
    let (mut bytes, mut limiter) = (vec![0; BUFFER_BYTES], Limiter::new());
    loop {
        let Ok(received) = corners[index].receive(&mut bytes).await else {
            // An ICMP error of a client that has gone; the socket remains usable.
            tokio::task::yield_now().await;
            continue;
        };
        let Received { remote: from, local, .. } = received;
        for datagram in received.datagrams(&bytes) {
            let Ok(Message::Request(request)) = Message::parse(datagram) else {
                counters.malformed.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            if !limiter.take(from.ip(), clock.now()) {
                counters.limited.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let (by, answer) = answer(corners, index, request, from);
            if corners[by].send(&answer, from, local).is_ok() {
                counters.answered.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Corner {
    async fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            std::future::poll_fn(|context| self.udp().socket().poll_recv_ready(context)).await?;
            let udp = self.udp();
            match udp.socket().try_io(Interest::READABLE, || udp.receive(buffer)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return received,
            }
        }
    }

    /// Sends from `local`, the address that received the request, unless this corner is bound to
    /// one.
    fn send(&self, answer: &[u8], to: SocketAddr, local: Option<IpAddr>) -> io::Result<()> {
        let from = local.filter(|_| self.at.ip().is_unspecified());
        let answer = Outgoing { bytes: answer, segment: None, to, from, ecn: Ecn::NotEct };
        self.udp().send(&answer)
    }

    fn udp(&self) -> MutexGuard<'_, Udp<UdpSocket>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the index of the corner that must send the answer, and the answer. A client may demand
/// another address or port than the one asked; without such a corner the answer says so.
fn answer(
    corners: &[Corner],
    index: usize,
    mut request: Request,
    from: SocketAddr,
) -> (usize, Vec<u8>) {
    let (second, next) = corners[index].place;
    let at = |place| corners.iter().position(|corner| corner.place == place);
    let wanted = (second ^ request.change.address, next ^ request.change.port);
    let by = at(wanted).unwrap_or_else(|| {
        request.unknown.push(CHANGE_REQUEST);
        index
    });
    let places = at((!second, !next)).map(|other| [by, other].map(|corner| corners[corner].at));
    let from = SocketAddr::new(from.ip().to_canonical(), from.port());
    (by, stun::answer(&request, from, places))
}

/// Rate limit of the answers per network and second: legitimate clients ask rarely, and with forged
/// source addresses only little traffic can be reflected.
#[derive(Debug)]
struct Limiter {
    second: Option<Instant>,
    answers: Vec<u16>,
}

impl Limiter {
    fn new() -> Self {
        Self { second: None, answers: vec![0; NETWORKS] }
    }

    fn take(&mut self, from: IpAddr, now: Instant) -> bool {
        if self.second.is_none_or(|begun| now.since(begun) >= Duration::from_secs(1)) {
            self.second = Some(now);
            self.answers.fill(0);
        }
        let network = match from.to_canonical() {
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        };
        let mut hasher = DefaultHasher::new();
        network.hash(&mut hasher);
        let answers = &mut self.answers[hasher.finish() as usize % NETWORKS];
        *answers = answers.saturating_add(1);
        *answers <= ANSWERS_MAX
    }
}

fn open(at: SocketAddr) -> io::Result<Udp<UdpSocket>> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    if at.is_ipv6() && at.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    Udp::new(UdpSocket::from_std(socket.into())?)
}

/// Number of distinguished networks; those with the same hash share a limit.
const NETWORKS: usize = 4096;
/// Maximum answers to one network per second, beyond which requests are ignored: several machines
/// of one home, each with some links, all asking at once.
const ANSWERS_MAX: u16 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_does_not_take_the_answers_of_another() {
        let mut limiter = Limiter::new();
        let now = Instant::from_millis(5);
        let [a, b] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        assert_eq!((0..1_000).filter(|_| limiter.take(a, now)).count(), usize::from(ANSWERS_MAX));
        assert!(limiter.take(b, now));
        assert!(limiter.take(a, Instant::from_millis(1_005)));
    }

    #[tokio::test]
    async fn both_ports_answer_a_client_with_its_address() {
        // The port after a free one may be in use: then try another.
        let reflector = (0..50).find_map(|_| {
            let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            Reflector::bind(free, None).ok()
        });
        let reflector = reflector.unwrap();
        let ports: Vec<_> = reflector.corners.iter().map(|corner| corner.at).collect();
        let counters = reflector.counters();
        let serving = tokio::spawn(reflector.serve(Clock::start()));
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        for port in ports {
            let transaction = stun::Transaction([7; 12]);
            client.send_to(b"noise", port).await.unwrap();
            client.send_to(&Request::new(transaction).to_bytes(), port).await.unwrap();
            let mut bytes = [0; 100];
            let (length, from) = client.recv_from(&mut bytes).await.unwrap();
            assert_eq!(from, port);
            let Ok(Message::Success(success)) = Message::parse(&bytes[..length]) else { panic!() };
            assert_eq!(success.transaction, transaction);
            assert_eq!(success.mapped, client.local_addr().unwrap());
        }
        assert_eq!(counters.malformed.load(Ordering::Relaxed), 2);
        serving.abort();
    }

    #[tokio::test]
    async fn a_wildcard_reflector_answers_from_the_queried_address() {
        let any: [IpAddr; 2] = ["0.0.0.0", "::"].map(|any| any.parse().unwrap());
        for any in any {
            let port = crate::free_port(any);
            let Ok(reflector) = port.map_err(Into::into).and_then(|at| Reflector::bind(at, None))
            else {
                continue;
            };
            let ports: Vec<_> = reflector.corners.iter().map(|corner| corner.at.port()).collect();
            let serving = tokio::spawn(reflector.serve(Clock::start()));
            let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            for (asked, port) in ["127.0.0.1", "127.0.0.2"].into_iter().zip(ports) {
                let asked = SocketAddr::new(asked.parse().unwrap(), port);
                let request = Request::new(stun::Transaction([7; 12])).to_bytes();
                client.send_to(&request, asked).await.unwrap();
                let (_, from) = client.recv_from(&mut [0; 100]).await.unwrap();
                assert_eq!(from, asked, "{any}");
            }
            serving.abort();
        }
    }
}
