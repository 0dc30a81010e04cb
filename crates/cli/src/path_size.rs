//! Maximum packet size on the path to a STUN server.

use std::net::SocketAddr;
use std::time::Duration;

use tautline_net::clock::Clock;
use tautline_net::random;
use tautline_transport::stun::{Message, Request, Transaction};
use tautline_units::Instant;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::reach::seen_by;

/// Outcome of the tested sizes, in bytes of a packet including its IP and UDP headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct PathSize {
    /// Largest size that was answered; `None` if none was.
    pub(crate) largest: Option<u16>,
    /// Smallest size that this machine's own interface rejected; `None` if none was.
    pub(crate) refused_here: Option<u16>,
}

/// Request in a packet of one size, and whether it was answered.
struct Probe {
    packet_bytes: u16,
    request: Vec<u8>,
    transaction: Transaction,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Answered,
    RefusedHere,
}

/// Queries `server` in packets of several sizes without fragmentation, up to three times within 1
/// s, and returns which sizes pass.
///
/// The socket must forbid fragmentation, like those of links. Only the outbound direction is
/// measured: answers are small. A server of an older build reads no request of more than 576 bytes
/// and answers none of these.
pub(crate) async fn path_size(
    socket: &UdpSocket,
    server: SocketAddr,
    clock: Clock,
) -> anyhow::Result<PathSize> {
    let headers = if server.is_ipv4() { 28 } else { 48 };
    let seed: [u8; 32] = random::seed()?;
    let probe = |(index, packet_bytes): (u8, u16)| {
        let mut name: [u8; 12] = *seed.first_chunk().expect("a seed is longer");
        name[11] = index;
        let transaction = Transaction(name);
        let request = Request::new(transaction).padded(usize::from(packet_bytes - headers));
        Probe { packet_bytes, request, transaction, state: State::Open }
    };
    let mut probes: Vec<Probe> = (0..).zip(SIZES).map(probe).collect();
    for _ in 0..TRIES {
        for probe in probes.iter_mut().filter(|probe| probe.state == State::Open) {
            let sent = socket.send_to(&probe.request, seen_by(socket, server)).await;
            let is_too_large = |error: &std::io::Error| {
                error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
            };
            if sent.is_err_and(|error| is_too_large(&error)) {
                probe.state = State::RefusedHere;
            }
        }
        collect(socket, &mut probes, clock.now() + TRY, clock).await;
        if probes[0].state == State::Answered {
            break;
        }
    }
    Ok(PathSize {
        largest: sizes(&probes, State::Answered).max(),
        refused_here: sizes(&probes, State::RefusedHere).min(),
    })
}

/// Marks the requests that are answered before `until`; returns earlier if all are.
async fn collect(socket: &UdpSocket, probes: &mut [Probe], until: Instant, clock: Clock) {
    let mut bytes = [0; 576];
    while probes.iter().any(|probe| probe.state == State::Open) {
        let wait = until.since(clock.now());
        if wait.is_zero() {
            return;
        }
        let length = match timeout(wait, socket.recv_from(&mut bytes)).await {
            Ok(Ok((length, _))) => length,
            // An ICMP error: its request has no answer.
            Ok(Err(_)) => continue,
            Err(_) => return,
        };
        // A server that does not support the padding reports that; the packet arrived all the same.
        let transaction = match Message::parse(&bytes[..length]) {
            Ok(Message::Success(success)) => success.transaction,
            Ok(Message::Refusal(refusal)) => refusal.transaction,
            Ok(Message::Request(_)) | Err(_) => continue,
        };
        if let Some(probe) = probes.iter_mut().find(|probe| probe.transaction == transaction) {
            probe.state = State::Answered;
        }
    }
}

fn sizes(probes: &[Probe], state: State) -> impl Iterator<Item = u16> {
    probes.iter().filter(move |probe| probe.state == state).map(|probe| probe.packet_bytes)
}

/// Packet sizes to test, descending: those of Ethernet, VPNs and mobile networks, the minimum of
/// IPv6, and smaller ones. Datagram lengths are multiples of four.
const SIZES: [u16; 16] =
    [1500, 1492, 1480, 1460, 1440, 1420, 1400, 1380, 1360, 1340, 1300, 1280, 1248, 1000, 768, 576];
const TRIES: u32 = 3;
const TRY: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use tautline_net::Local;
    use tautline_net::reflector::Reflector;
    use tautline_transport::stun;

    use super::*;

    /// Opens a socket like those of links, and queries the server.
    async fn asked(server: SocketAddr) -> PathSize {
        let local = Local::Address(SocketAddr::from(([127, 0, 0, 1], 0)));
        let socket = std::net::UdpSocket::from(local.open().unwrap());
        let socket = UdpSocket::from_std(socket).unwrap();
        path_size(&socket, server, Clock::start()).await.unwrap()
    }

    #[tokio::test]
    async fn a_switchboard_answers_packets_of_an_ethernets_size() {
        let (reflector, at) = (0..50)
            .find_map(|_| {
                // The port after a free one may be in use; then another is tried.
                let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
                Some((Reflector::bind(free, None).ok()?, free))
            })
            .unwrap();
        let serving = tokio::spawn(reflector.serve(Clock::start()));
        assert_eq!(asked(at).await, PathSize { largest: Some(1_500), refused_here: None });
        serving.abort();
    }

    #[tokio::test]
    async fn the_path_size_is_the_largest_answered_packet() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = server.local_addr().unwrap();
        let narrow = tokio::spawn(async move {
            let mut bytes = [0; 2_048];
            loop {
                let (length, from) = server.recv_from(&mut bytes).await.unwrap();
                // Like a VPN of 1400 bytes.
                let Ok(Message::Request(request)) = Message::parse(&bytes[..length]) else {
                    continue;
                };
                if length + 28 <= 1_400 {
                    server.send_to(&stun::answer(&request, from, None), from).await.unwrap();
                }
            }
        });
        assert_eq!(asked(at).await, PathSize { largest: Some(1_400), refused_here: None });
        narrow.abort();
    }

    #[tokio::test]
    async fn of_a_server_that_says_nothing_nothing_is_known() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        assert_eq!(asked(server.local_addr().unwrap()).await, PathSize::default());
    }
}
