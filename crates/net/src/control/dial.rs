//! Connections to a server over all links and all addresses of its name at once.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tautline_transport::crypto::Identity;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::listener::HANDSHAKE_MAX;
use super::race::{Attempt, Sources, by_turns};
use super::{Code, Connection, Error, Host, error, tls};
use crate::clock::Clock;
use crate::socket::Local;

/// A caller of one server, with the paths to it and their failures.
#[derive(Debug)]
pub(super) struct Dialler {
    host: Host,
    /// Local end of each path; `None` leaves the choice to the system.
    locals: Vec<Option<Local>>,
    sources: Sources,
    names: Names,
    /// Server's address that the last connection reached: the next attempts begin with it; `None`
    /// before the first.
    last: Option<SocketAddr>,
    clock: Clock,
}

/// An established connection to the server, and how it was reached.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) connection: Connection,
    /// Index of the path that the connection uses, for [`Dialler::handle_lost`].
    pub(super) source: usize,
    /// All addresses of the server, the reached one first.
    pub(super) servers: Vec<SocketAddr>,
}

impl Dialler {
    /// Creates the paths to `host` over each of `links` that has an address or an interface of its
    /// own, and last over the system's own route.
    pub(super) fn new(host: Host, links: &[Local]) -> Self {
        let is_bound = |local: &&Local| match local {
            Local::Address(address) => !address.ip().is_unspecified(),
            Local::Interface(_) => true,
        };
        let mut locals: Vec<_> = links.iter().filter(is_bound).cloned().map(Some).collect();
        locals.push(None);
        let sources = Sources::new(locals.len());
        Self { host, locals, sources, names: Names::default(), last: None, clock: Clock::start() }
    }

    /// Returns a path's name for logs.
    pub(super) fn name_of(&self, source: usize) -> String {
        match self.locals.get(source) {
            Some(Some(local)) => local.to_string(),
            Some(None) | None => "the system's own route".to_owned(),
        }
    }

    /// Records that the connection on a path was lost: the other paths are tried first.
    pub(super) fn handle_lost(&mut self, source: usize) {
        self.sources.handle_failed(source);
    }

    /// Connects over the path whose handshake is complete first. Safe to cancel.
    ///
    /// # Errors
    /// The reason, if the name cannot be resolved or only one attempt was possible; that of another
    /// server, if one answered; else [`Error::NoWay`] with the reasons of all attempts.
    pub(super) async fn dial(&mut self, config: &Arc<ClientConfig>) -> Result<Reached, Error> {
        let addresses = self.names.resolve(&self.host).await?;
        let servers = by_turns(&addresses, self.last);
        let mut race = self.sources.race(&servers, self.clock.now());
        let mut attempts = JoinSet::new();
        let mut failures: Vec<(usize, Error)> = Vec::new();
        loop {
            while let Some(attempt) = race.poll_start(self.clock.now()) {
                self.begin(attempt, config, &mut attempts);
            }
            if race.is_lost() {
                return Err(self.no_way(failures));
            }
            let due = race.poll_timeout().map(|at| at.since(self.clock.now()));
            let ended = tokio::select! {
                ended = attempts.join_next(), if !attempts.is_empty() => ended,
                () = sleep(due.unwrap_or_default()), if due.is_some() => continue,
            };
            match ended {
                Some(Ok((Attempt { source, address }, Ok(connection)))) => {
                    self.sources.handle_reached(source);
                    self.last = Some(address);
                    let servers = by_turns(&addresses, self.last);
                    return Ok(Reached { connection, source, servers });
                }
                Some(Ok((Attempt { source, .. }, Err(error)))) => {
                    self.sources.handle_failed(source);
                    failures.push((source, error));
                    race.handle_failed(self.clock.now());
                }
                // Only a bug ends an attempt in this manner; the others continue.
                Some(Err(error)) => {
                    tracing::error!(%error, "a connection attempt ended unexpectedly");
                    race.handle_failed(self.clock.now());
                }
                None => {}
            }
        }
    }

    fn begin(
        &self,
        attempt: Attempt,
        config: &Arc<ClientConfig>,
        attempts: &mut JoinSet<(Attempt, Result<Connection, Error>)>,
    ) {
        let local = self.locals.get(attempt.source).cloned().flatten();
        let (config, shown) = (Arc::clone(config), self.shown(attempt.address));
        attempts.spawn(async move {
            (attempt, connect(attempt.address, local.as_ref(), &config, &shown).await)
        });
    }

    /// Returns the server's name in errors: as configured, and with its address if it is configured
    /// by a name.
    fn shown(&self, address: SocketAddr) -> String {
        match self.host.address() {
            Some(_) => self.host.to_string(),
            None => format!("{} ({})", self.host, address.ip()),
        }
    }

    fn no_way(&self, mut failures: Vec<(usize, Error)>) -> Error {
        if self.locals.len() == 1
            && failures.len() == 1
            && let Some((_, error)) = failures.pop()
        {
            return error;
        }
        // A wrong server is the most important error; otherwise each path reports its reason once.
        if let Some(place) = failures.iter().position(|(_, error)| error.is_another_server()) {
            return failures.swap_remove(place).1;
        }
        let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
        for (source, error) in failures {
            let (reason, name) = (error.to_string(), self.name_of(source));
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) if !names.contains(&name) => names.push(name),
                Some(_) => {}
                None => reasons.push((reason, vec![name])),
            }
        }
        let each =
            reasons.iter().map(|(reason, names)| format!("by {}: {reason}", names.join(", ")));
        Error::NoWay {
            address: self.host.to_string(),
            reasons: each.collect::<Vec<_>>().join("; "),
        }
    }
}

/// Addresses of a host, resolved at each attempt. The last known ones are used while resolution
/// fails.
#[derive(Debug, Default)]
struct Names {
    found: Vec<SocketAddr>,
    /// Pending query of the system's resolver, one at a time, because it blocks a thread.
    asked: Option<JoinHandle<io::Result<Vec<SocketAddr>>>>,
}

impl Names {
    /// Returns the addresses of `host`; falls back to the last known ones if the system is slow or
    /// finds none.
    ///
    /// Safe to cancel.
    ///
    /// # Errors
    /// [`Error::Connect`] if there are no earlier addresses to fall back to.
    async fn resolve(&mut self, host: &Host) -> Result<Vec<SocketAddr>, Error> {
        if let Some(address) = host.address() {
            return Ok(vec![address]);
        }
        let asked = self.asked.get_or_insert_with(|| {
            let (name, port) = (host.name().to_owned(), host.port());
            tokio::spawn(async move {
                Ok(tokio::net::lookup_host((name.as_str(), port)).await?.collect())
            })
        });
        let most = if self.found.is_empty() { NAMES_MAX } else { NAMES_KNOWN_MAX };
        let answer = match timeout(most, asked).await {
            Ok(answer) => {
                self.asked = None;
                answer.unwrap_or_else(|ended| Err(io::Error::other(ended)))
            }
            // The query continues for the next attempt.
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no name server answers")),
        };
        match answer {
            Ok(found) if !found.is_empty() => self.found = found,
            Ok(_) if self.found.is_empty() => {
                let cause = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                return Err(Error::Connect { address: host.to_string(), cause });
            }
            Err(cause) if self.found.is_empty() => {
                return Err(Error::Connect { address: host.to_string(), cause });
            }
            Ok(_) | Err(_) => {
                tracing::debug!(%host, "the name cannot be resolved: trying its last known \
                                        addresses");
            }
        }
        Ok(self.found.clone())
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        if let Some(asked) = &self.asked {
            asked.abort();
        }
    }
}

impl Connection {
    /// Connects to `address` (`host:port`), where the server that issued `code` must answer;
    /// [`peer_key`](Self::peer_key) then returns its key. No other server receives any data.
    ///
    /// # Errors
    /// [`Error::WrongCode`] if another server answers; otherwise those of a
    /// [`Client`](super::Client)'s events.
    pub async fn by_code(address: &str, code: Code, identity: &Identity) -> Result<Self, Error> {
        let config = tls::client(identity, tls::Expected::Code(code), tls::CONTROL)?;
        let mut dialler = Dialler::new(address.parse().map_err(Error::Address)?, &[]);
        Ok(dialler.dial(&Arc::new(config)).await?.connection)
    }
}

/// Connects to `address` from `local`'s address or interface and any port, within [`HANDSHAKE_MAX`]
/// for each of TCP and TLS; `shown` names the server in errors.
pub(super) async fn connect(
    address: SocketAddr,
    local: Option<&Local>,
    config: &Arc<ClientConfig>,
    shown: &str,
) -> Result<Connection, Error> {
    let unanswered = |_| Error::Unanswered { address: shown.to_owned(), after: HANDSHAKE_MAX };
    let failed = |cause| Error::Connect { address: shown.to_owned(), cause };
    let tcp = timeout(HANDSHAKE_MAX, open(address, local)).await.map_err(unanswered)?;
    let tcp = tcp.map_err(failed)?;
    // Disables Nagle's algorithm: frames are small and latency matters.
    tcp.set_nodelay(true).map_err(failed)?;
    let handshake = TlsConnector::from(Arc::clone(config)).connect(tls::server_name(), tcp);
    let stream = timeout(HANDSHAKE_MAX, handshake).await.map_err(unanswered)?;
    let stream = stream.map_err(|failed| error::handshake(shown, failed))?;
    Connection::new(stream.into(), shown)
}

async fn open(address: SocketAddr, local: Option<&Local>) -> io::Result<TcpStream> {
    let socket = match address.ip() {
        IpAddr::V4(_) => TcpSocket::new_v4()?,
        IpAddr::V6(_) => TcpSocket::new_v6()?,
    };
    match local {
        Some(Local::Interface(name)) => socket.bind_device(Some(name.as_bytes()))?,
        Some(Local::Address(own)) if own.is_ipv4() == address.is_ipv4() => {
            socket.bind(SocketAddr::new(own.ip(), 0))?;
        }
        Some(Local::Address(_)) => {
            return Err(io::Error::new(
                io::ErrorKind::AddrNotAvailable,
                "the link has another address family",
            ));
        }
        None => {}
    }
    socket.connect(address).await
}

/// Maximum wait for a first resolution: two attempts at each of two servers under the resolver's
/// defaults.
const NAMES_MAX: Duration = Duration::from_secs(20);
/// Maximum wait for a resolution while addresses from an earlier one are known; then those are
/// used.
const NAMES_KNOWN_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tautline_transport::crypto::Identity;

    use super::*;
    use crate::control::Listener;

    #[tokio::test]
    async fn a_name_that_no_longer_resolves_keeps_its_last_addresses() {
        let last: SocketAddr = "192.0.2.1:7443".parse().unwrap();
        let mut names = Names { found: vec![last], asked: None };
        let nowhere: Host = "switchboard.invalid".parse().unwrap();
        // RFC 6761: the name `invalid` never has an address.
        assert_eq!(names.resolve(&nowhere).await.unwrap(), [last]);
        let mut unknown = Names { found: Vec::new(), asked: None };
        // A resolver that does not answer at all must not fail this test.
        let asked = tokio::spawn(async { Err(io::Error::other("no such name")) });
        unknown.asked = Some(asked);
        let error = unknown.resolve(&nowhere).await.unwrap_err().to_string();
        assert_eq!(error, "cannot connect to switchboard.invalid:7443: no such name");
    }

    #[tokio::test]
    async fn a_slow_name_query_runs_once_and_blocks_no_known_address() {
        let last: SocketAddr = "192.0.2.1:7443".parse().unwrap();
        let mut names = Names { found: vec![last], asked: None };
        names.asked = Some(tokio::spawn(std::future::pending()));
        let host: Host = "switchboard.invalid".parse().unwrap();
        let begun = std::time::Duration::from_secs(5);
        assert_eq!(timeout(begun, names.resolve(&host)).await.unwrap().unwrap(), [last]);
        assert!(names.asked.as_ref().is_some_and(|asked| !asked.is_finished()));
    }

    #[tokio::test]
    async fn a_silent_address_delays_the_next_by_its_turn_only() {
        let [client, server] = [1, 2].map(|seed| Identity::from_seed(&[seed; 32]));
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), &server).await.unwrap();
        // It accepts the connection, and then sends nothing.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = vec![silent.local_addr().unwrap(), listener.local()];
        let mut dialler = Dialler::new("switchboard.invalid".parse().unwrap(), &[]);
        dialler.names.asked = Some(tokio::spawn(async { Ok(addresses) }));
        let config = Arc::new(tls::client(&client, server.public(), tls::CONTROL).unwrap());
        let answered = async { listener.accept().await.unwrap().handshake().await };
        let (reached, _answered) = tokio::join!(dialler.dial(&config), answered);
        assert_eq!(reached.unwrap().connection.remote(), listener.local());
    }

    #[test]
    fn each_failure_reason_is_named_once() {
        let links = ["wwan0", "wwan1"].map(|name| name.parse().unwrap());
        let dialler = Dialler::new("192.0.2.1".parse().unwrap(), &links);
        let unanswered =
            || Error::Unanswered { address: "192.0.2.1:7443".into(), after: HANDSHAKE_MAX };
        let refused = Error::Connect {
            address: "192.0.2.1:7443".into(),
            cause: io::ErrorKind::ConnectionRefused.into(),
        };
        let words = dialler.no_way(vec![(0, unanswered()), (1, unanswered()), (2, refused)]);
        assert_eq!(
            words.to_string(),
            "cannot reach 192.0.2.1:7443: by interface wwan0, interface wwan1: no answer from \
             192.0.2.1:7443 within 3s; by the system's own route: cannot connect to 192.0.2.1:7443: \
             connection refused: nothing listens there"
        );
        let any = Dialler::new("192.0.2.1".parse().unwrap(), &["0.0.0.0:7000".parse().unwrap()]);
        assert_eq!(any.locals, [None]);
    }
}
