//! A NAT between two interfaces of a namespace with mapping and filtering of every behaviour, which
//! the kernel's NAT lacks. It reads from raw sockets, and writes complete packets.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tautline_net::clock::Clock;
use tautline_sim::nat::{By, Config, Nat};

/// Translates between the interfaces `in` and `out` until the process ends, configured by the
/// environment.
pub(crate) fn translate() {
    let read = |name: &str| std::env::var(name).unwrap();
    let by = |name: &str| match &*read(name) {
        "nothing" => By::Nothing,
        "address" => By::Address,
        "port" => By::AddressAndPort,
        other => panic!("{other}"),
    };
    let config = Config {
        mapping: by("NAT_MAPPING"),
        filtering: by("NAT_FILTERING"),
        outside: read("NAT_OUTSIDE").parse().unwrap(),
        lifetime: Duration::from_secs(120),
    };
    let nat = Arc::new(Mutex::new(Nat::new(config)));
    let clock = Clock::start();
    let [inside, outside] = ["in", "out"].map(|interface| {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)).unwrap();
        socket.set_header_included_v4(true).unwrap();
        socket.bind_device(Some(interface.as_bytes())).unwrap();
        Arc::new(socket)
    });
    {
        let (nat, inside, outside) = (nat.clone(), inside.clone(), outside.clone());
        std::thread::spawn(move || {
            carry(&inside, &outside, |packet| {
                let (from, to) = ends(packet);
                let mapped = nat.lock().unwrap().outbound(from, to, clock.now());
                rewrite(packet, mapped, to);
                Some(to)
            });
        });
    }
    {
        let nat = nat.clone();
        std::thread::spawn(move || {
            carry(&outside, &inside, |packet| {
                let (from, to) = ends(packet);
                let inside = nat.lock().unwrap().inbound(from, to, clock.now())?;
                rewrite(packet, from, inside);
                Some(inside)
            });
        });
    }
    println!("translating");
    let every = std::env::var("NAT_REBINDS_S").ok().map(|every| every.parse().unwrap());
    loop {
        std::thread::sleep(Duration::from_secs(every.unwrap_or(3_600)));
        nat.lock().unwrap().rebind();
    }
}

fn carry(from: &Socket, to: &Socket, mut turn: impl FnMut(&mut [u8]) -> Option<SocketAddr>) {
    let mut bytes = [0; 2_048];
    loop {
        let mut from = from;
        let Ok(length) = from.read(&mut bytes) else { continue };
        let packet = &mut bytes[..length];
        let is_whole = length >= 28 && packet[0] == 0x45 && packet[9] == 17;
        if is_whole && let Some(next) = turn(packet) {
            // A packet that the path cannot carry is lost, as on any path.
            let _ = to.send_to(packet, &next.into());
        }
    }
}

fn ends(packet: &[u8]) -> (SocketAddr, SocketAddr) {
    let ip = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let port = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    (SocketAddr::from((ip(12), port(20))), SocketAddr::from((ip(16), port(22))))
}

/// Rewrites the addresses of a packet; the UDP checksum is omitted, which IPv4 allows.
fn rewrite(packet: &mut [u8], from: SocketAddr, to: SocketAddr) {
    for (at, end) in [(12, from), (16, to)] {
        let IpAddr::V4(ip) = end.ip() else { continue };
        packet[at..at + 4].copy_from_slice(&ip.octets());
    }
    packet[20..22].copy_from_slice(&from.port().to_be_bytes());
    packet[22..24].copy_from_slice(&to.port().to_be_bytes());
    packet[26..28].fill(0);
}
