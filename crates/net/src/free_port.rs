use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};

/// Returns a port of `address` for a process to be started later. It is free in TCP and UDP, as is
/// the next one, since a switchboard needs two. The port lies outside the system's ephemeral range,
/// so no socket opened in between gets it. Within a process each call returns another port.
///
/// # Errors
/// `address` is not this machine's, or no such port is free.
///
/// ```
/// use std::net::Ipv4Addr;
/// use tautline_net::free_port;
///
/// let [one, other] = [(); 2].map(|()| free_port(Ipv4Addr::LOCALHOST.into()).unwrap());
/// assert!(one.port().abs_diff(other.port()) > 1);
/// ```
pub fn free_port(address: IpAddr) -> io::Result<SocketAddr> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let given = range.ok().and_then(|it| it.split_whitespace().next()?.parse().ok());
    let ports = FIRST..given.filter(|given| *given > FIRST + 1).unwrap_or(u16::MAX);
    let mut tries = ports.clone();
    loop {
        let pair = PAIRS.fetch_add(1, Ordering::Relaxed);
        let first = place(&ports, std::process::id(), pair);
        let free = |port| {
            let at = SocketAddr::new(address, port);
            TcpListener::bind(at).and_then(|_| UdpSocket::bind(at)).and(Ok(at))
        };
        match free(first + 1).and_then(|_| free(first)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries.next().is_some() => {}
            found => return found,
        }
    }
}

/// Returns the next port to try: concurrent processes have close ids, and try different ports.
fn place(ports: &Range<u16>, process: u32, pair: u16) -> u16 {
    let at = u64::from(process) * PROCESS_PAIRS + u64::from(pair);
    let of = ports.len() as u64 / 2;
    ports.start + 2 * u16::try_from(at % of).expect("fewer than the ports of a system")
}

static PAIRS: AtomicU16 = AtomicU16::new(0);
/// Lowest port that is tried: well-known services listen on lower ones.
const FIRST: u16 = 10_000;
/// Pairs of ports from the first one of a process to the first one of the process with the next id:
/// one process is unlikely to try more.
const PROCESS_PAIRS: u64 = 64;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn processes_side_by_side_look_at_ports_of_their_own() {
        let ports = FIRST..32_768;
        let looked: HashSet<_> = (700..850)
            .flat_map(|process| (0..64).map(move |pair| place(&(FIRST..32_768), process, pair)))
            .flat_map(|port| [port, port + 1])
            .collect();
        assert_eq!(looked.len(), 150 * 128);
        assert!(looked.iter().all(|port| ports.contains(port)));
        assert!(ports.contains(&(place(&ports, u32::MAX, u16::MAX) + 1)));
    }

    #[test]
    fn used_ports_are_skipped_and_the_found_one_can_be_bound() {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let first = free_port(here).expect("one");
        let next = SocketAddr::new(here, first.port() + 2);
        let _tcp = TcpListener::bind(next);
        let after = SocketAddr::new(here, first.port() + 5);
        let _udp = UdpSocket::bind(after);
        let found = free_port(here).expect("one");
        assert!(![next, after].contains(&found) && found.port() + 1 != after.port(), "{found}");
        TcpListener::bind(found).and_then(|_| UdpSocket::bind(found)).expect("free");
    }

    #[test]
    fn of_an_address_elsewhere_there_is_none() {
        free_port(Ipv4Addr::new(192, 0, 2, 1).into()).expect_err("not ours");
    }
}
