//! `tautline relay`, and the two ends of a lease.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use tautline_transport::Route;
use tautline_transport::crypto::Identity;
use tautline_transport::relay::{Admission, Client, Grant, Side, Ticket, Token};
use tautline_units::Instant;

use crate::relay::{Relay, free_port, socket};

/// Starts a relay and registers both ends with it.
pub(crate) fn start(binary: &Path) -> Result<Relay> {
    ensure!(binary.is_file(), "there is no {}: build it by `make build`", binary.display());
    let folder = std::env::temp_dir().join(format!("tautline-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let key = write(&folder, "relay.key", &identity(RELAY).to_text())?;
    let settings = format!(
        "listen = [\"{address}\"]\nkey = {key:?}\nswitchboard_key = \"{}\"\n\
         lease_mbps = 10000\nlink_gib = 1000\n",
        identity(SWITCHBOARD).public()
    );
    let settings = write(&folder, "relay.toml", &settings)?;
    let mut command = Command::new(binary);
    command.arg("relay").arg("--config").arg(settings).stderr(Stdio::null());
    let process = command.spawn().context("the relay does not start")?;
    let (from, to) = (socket()?, socket()?);
    for (socket, who, peer, side) in
        [(&from, VEHICLE, OPERATOR, Side::Initiator), (&to, OPERATOR, VEHICLE, Side::Responder)]
    {
        socket.connect(address)?;
        prove(socket, address, who, peer, side)?;
    }
    // The relay has read these files by now.
    std::fs::remove_dir_all(&folder)?;
    Ok(Relay { name: NAME, process: Some(process), from, to, head: Vec::new() })
}

/// Runs one end's handshake until the relay forwards.
fn prove(socket: &UdpSocket, relay: SocketAddr, who: u8, peer: u8, side: Side) -> Result<()> {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let grant = Grant {
        side,
        holder: identity(who).public(),
        peer: identity(peer).public(),
        relay: identity(RELAY).public(),
        until: unix + Duration::from_secs(3_600),
    };
    let token = Token::issue(&grant, &identity(SWITCHBOARD));
    let ticket = Ticket { addresses: vec![relay], streams: Vec::new(), relay: grant.relay, token };
    let admission = Admission {
        identity: identity(who),
        peer: grant.peer,
        tickets: vec![ticket],
        seed: u64::from(who).into(),
    };
    let (mut client, begun) = (Client::default(), std::time::Instant::now());
    client.admit(&admission, &[socket.local_addr()?], Instant::ZERO);
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    let (mut said, mut heard) = (Vec::new(), [0; 2_048]);
    while begun.elapsed() < Duration::from_secs(5) {
        let now = Instant::ZERO + begun.elapsed();
        while client.poll_transmit(&mut said, now).is_some() {
            // The relay may not listen yet: repeat.
            let _ = socket.send(&said);
        }
        if let Ok(length) = socket.recv(&mut heard) {
            let route = Route { socket: 0, remote: relay };
            client.handle_datagram(route, &heard[..length], Instant::ZERO + begun.elapsed());
        }
        if client.legs().all(|leg| leg.is_proven) {
            return Ok(());
        }
    }
    anyhow::bail!("the relay does not let an end in within 5 s")
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

/// Writes a file into this run's own folder.
fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = folder.join(name);
    let mut open = std::fs::OpenOptions::new();
    let mut output = open.write(true).create(true).truncate(true).mode(0o600).open(&file)?;
    std::io::Write::write_all(&mut output, text.as_bytes())?;
    Ok(file)
}

pub(crate) const NAME: &str = "tautline relay";
const VEHICLE: u8 = 1;
const OPERATOR: u8 = 2;
const RELAY: u8 = 3;
const SWITCHBOARD: u8 = 9;
