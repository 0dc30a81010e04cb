//! `tautline reach`.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use clap::Args;
use tautline_net::clock::Clock;
use tautline_net::{random, reach};
use tautline_transport::reach::{Behaviour, Discovery, Found};
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

/// Ask a switchboard which address it sees of this machine, and determine the behaviour of the NATs
/// between.
///
/// Any STUN server works; the behaviour is visible only with a server that has two addresses. Takes
/// up to 5 seconds.
#[derive(Debug, Args)]
pub(crate) struct Reach {
    /// Address of the server, host:port, UDP
    #[arg(value_name = "SERVER")]
    server: String,
    /// Local address from which to ask [default: any]
    #[arg(long, value_name = "ADDRESS")]
    local: Option<SocketAddr>,
}

impl Reach {
    /// Asks the server, and prints the findings.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let servers = reach::servers(&self.server).await;
        let family = |server: &&SocketAddr| {
            self.local.is_none_or(|local| local.is_ipv4() == server.is_ipv4())
        };
        let Some(server) = servers.iter().find(family).copied() else {
            bail!("the name {} has no address here", self.server);
        };
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let local = self.local.map_or_else(|| any.to_owned(), |local| local.to_string());
        let socket = UdpSocket::bind(&local).await;
        let socket = socket.with_context(|| format!("cannot open a UDP socket on {local}"))?;
        let (found, elsewhere) = discover(&socket, server).await?;
        if let Some(elsewhere) = elsewhere {
            answer!("{}", answers_from(elsewhere, server));
        }
        let Some(mapped) = found.mapped else {
            bail!("no answer from {server} over UDP: is UDP blocked, or is nothing there?");
        };
        answer!("seen as     {mapped}");
        answer!("mapping     {}", words(found.mapping));
        answer!("filtering   {}", words(found.filtering));
        Ok(())
    }
}

/// Queries a server for up to 5 s from a socket that has not sent to it before. Returns the
/// findings, and the address from which the first answer came if that is not the queried one.
pub(crate) async fn discover(
    socket: &UdpSocket,
    server: SocketAddr,
) -> anyhow::Result<(Found, Option<SocketAddr>)> {
    let clock = Clock::start();
    // The first request expects an answer from the queried address; later ones may ask for another
    // address.
    let mut elsewhere = None;
    let mut is_first = true;
    let mut discovery = Discovery::new(server, random::seed()?, clock.now());
    let mut bytes = [0; 576];
    while let Some(due) = discovery.poll_timeout() {
        while let Some((to, request)) = discovery.poll_transmit(clock.now()) {
            // A request that is not sent has no answer, which is reported.
            let _ = socket.send_to(&request, seen_by(socket, to)).await;
        }
        let wait = due.since(clock.now());
        match timeout(wait, socket.recv_from(&mut bytes)).await {
            Ok(Ok((length, from))) => {
                let from = SocketAddr::new(from.ip().to_canonical(), from.port());
                if std::mem::take(&mut is_first) && from.ip() != server.ip() {
                    elsewhere = Some(from);
                }
                discovery.handle_datagram(&bytes[..length], clock.now());
            }
            // An ICMP error: the next request follows in time.
            Ok(Err(_)) => sleep(wait.min(PAUSE)).await,
            Err(_) => {}
        }
    }
    Ok((discovery.found(), elsewhere))
}

/// Returns a text for people that a server answers from another address than the queried one, and
/// what to do.
pub(crate) fn answers_from(elsewhere: SocketAddr, asked: SocketAddr) -> String {
    format!(
        "{asked} answers over UDP from {elsewhere}: a NAT drops that; it listens on all addresses of a machine that has \
         several, and is an older one: update it, or let it listen on {asked}"
    )
}

/// Returns an address in the form that this socket takes: a dual-stack socket needs IPv4-mapped
/// IPv6 addresses.
pub(crate) fn seen_by(socket: &UdpSocket, to: SocketAddr) -> SocketAddr {
    match (to, socket.local_addr()) {
        (SocketAddr::V4(to), Ok(SocketAddr::V6(_))) => {
            SocketAddr::from((to.ip().to_ipv6_mapped(), to.port()))
        }
        (SocketAddr::V4(_) | SocketAddr::V6(_), _) => to,
    }
}

fn words(behaviour: Option<Behaviour>) -> String {
    behaviour.map_or_else(
        || "not known: the server has one address".to_owned(),
        |behaviour| behaviour.to_string(),
    )
}

const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
