//! Debian's coturn, and the part of TURN (RFC 8656) that one channel needs.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::relay::{Relay, free_port, socket};

/// Starts coturn without passwords, and binds a channel from one socket to the other.
pub(crate) fn start() -> Result<Relay> {
    let port = free_port()?;
    let mut command = Command::new("turnserver");
    command.args([
        "-n",
        "--no-auth",
        "--no-tls",
        "--no-dtls",
        "--no-cli",
        "--allow-loopback-peers",
    ]);
    command.args(["--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1"]);
    command.args(["--relay-threads", "1", "--log-file", "stdout", "--pidfile", "/dev/null"]);
    // It probes every port in its range before it answers.
    command.args(["--min-port", "50000", "--max-port", "50099"]);
    command.arg("--listening-port").arg(port.to_string());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let process = command.spawn().context("coturn is missing: run ./setup coturn")?;
    let (from, to) = (socket()?, socket()?);
    from.connect(SocketAddr::from(([127, 0, 0, 1], port)))?;
    let mut relay = Relay { name: "coturn", process: Some(process), from, to, head: Vec::new() };
    match bind(&relay.from, &relay.to) {
        Ok(()) => {
            // Channel number, and the length, which is always the same.
            relay.head = vec![0x40, 0x00, 0, 0];
            Ok(relay)
        }
        Err(error) => {
            if let Some(process) = &mut relay.process {
                process.kill()?;
                process.wait()?;
            }
            Err(error)
        }
    }
}

fn bind(from: &UdpSocket, to: &UdpSocket) -> Result<()> {
    from.set_read_timeout(Some(PAUSE))?;
    // Attributes: type, length, value, padded to four bytes.
    let udp = [&[0x00, 0x19, 0, 4][..], &[17, 0, 0, 0]].concat();
    ask(from, ALLOCATE, &udp)?;
    let SocketAddr::V4(peer) = to.local_addr()? else { bail!("an IPv4 socket was asked for") };
    let peer = [&[0x00, 0x12, 0, 8][..], &xored(peer)].concat();
    let number = [0x00, 0x0c, 0, 4, 0x40, 0x00, 0, 0];
    ask(from, CHANNEL_BIND, &[&number[..], &peer].concat())
}

/// Sends a request until an answer arrives.
///
/// # Errors
/// If the answer is no success, or 100 requests have none.
fn ask(socket: &UdpSocket, method: u16, attributes: &[u8]) -> Result<()> {
    let mut request = method.to_be_bytes().to_vec();
    request.extend_from_slice(&(attributes.len() as u16).to_be_bytes());
    request.extend_from_slice(&COOKIE);
    request.extend_from_slice(&[7; 12]);
    request.extend_from_slice(attributes);
    let mut answer = [0; 1_024];
    for _ in 0..100 {
        // A server that does not listen yet refuses at once; the request is repeated.
        let _ = socket.send(&request);
        let Ok(length) = socket.recv(&mut answer) else {
            std::thread::sleep(PAUSE);
            continue;
        };
        ensure!(length >= 20, "coturn answers {length} bytes");
        let kind = u16::from_be_bytes([answer[0], answer[1]]);
        ensure!(kind == method | SUCCESS, "coturn answers {kind:#06x} to {method:#06x}");
        return Ok(());
    }
    bail!("coturn does not answer within {} s", (PAUSE * 100).as_secs())
}

/// Returns the value of an XOR address attribute.
fn xored(address: SocketAddrV4) -> [u8; 8] {
    let port = address.port() ^ u16::from_be_bytes([COOKIE[0], COOKIE[1]]);
    let [a, b] = port.to_be_bytes();
    let ip = u32::from(*address.ip()) ^ u32::from_be_bytes(COOKIE);
    let [c, d, e, f] = Ipv4Addr::from(ip).octets();
    [0, 1, a, b, c, d, e, f]
}

const PAUSE: Duration = Duration::from_millis(100);
const ALLOCATE: u16 = 0x0003;
const CHANNEL_BIND: u16 = 0x0009;
const SUCCESS: u16 = 0x0100;
const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
