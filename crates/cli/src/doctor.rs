//! `tautline doctor`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket as StdUdpSocket};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use rustix::process::{Resource, geteuid, getrlimit};
use tautline_net::clock::Clock;
use tautline_net::datagram::Address;
use tautline_net::{Local, reach};
use tautline_transport::reach::{Behaviour, Found};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::reach::discover;
use crate::{keys, operator, vehicle};

/// Look at what a vehicle or an operator needs of its machine and its networks, and say what to mend.
///
/// Changes nothing, and takes up to five seconds a link. It fails if something is to be mended; what is only
/// to be looked at is no failure.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// A vehicle's settings
    #[arg(long, value_name = "FILE", required_unless_present = "operator")]
    vehicle: Option<PathBuf>,
    /// An operator's settings
    #[arg(long, value_name = "FILE", conflicts_with = "vehicle")]
    operator: Option<PathBuf>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    verdict: Verdict,
    /// What was looked at.
    what: String,
    /// What was found, and what to do.
    words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Look,
    Mend,
}

impl Doctor {
    /// Looks at one thing after the other and prints what it finds.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut faults = 0;
        let mut tell = |finding: Finding| {
            faults += usize::from(finding.verdict == Verdict::Mend);
            println!("{finding}");
        };
        let (key, switchboard, links) = match (&self.vehicle, &self.operator) {
            (Some(file), _) => {
                let config = vehicle::settings(Some(file))?;
                config.validate()?;
                tell(clock());
                tell(real_time());
                tell(guard(&config.guard));
                tell(picture_source(&config));
                (config.key, config.switchboard, config.links)
            }
            (None, Some(file)) => {
                let config = operator::settings(Some(file))?;
                config.validate()?;
                tell(clock());
                tell(console(config.console));
                (config.key, config.switchboard, config.links)
            }
            (None, None) => bail!("say whose settings: --vehicle FILE or --operator FILE"),
        };
        tell(secret_key(&key));
        let servers = reach::servers(&switchboard).await;
        tell(switchboard_over_tcp(&switchboard, &servers).await);
        for local in &links {
            for finding in link(local, &servers).await {
                tell(finding);
            }
        }
        match faults {
            0 => Ok(()),
            1 => bail!("one thing is to be mended"),
            many => bail!("{many} things are to be mended"),
        }
    }
}

fn secret_key(file: &Path) -> Finding {
    match keys::read(file) {
        Ok(identity) => good("key", format!("{}, public {}", file.display(), identity.public())),
        Err(error) => mend("key", format!("{error:#}")),
    }
}

async fn switchboard_over_tcp(name: &str, servers: &[SocketAddr]) -> Finding {
    let clock = Clock::start();
    let mut failed = format!("the name {name} has no address here: is it right, does DNS answer?");
    for server in servers {
        let asked_at = clock.now();
        match timeout(TCP_TIMEOUT, TcpStream::connect(server)).await {
            Ok(Ok(_)) => {
                let took = clock.now().since(asked_at).as_millis();
                return good("switchboard", format!("{server} answers over TCP after {took} ms"));
            }
            Ok(Err(error)) => failed = format!("{server} over TCP: {error}: does it run there?"),
            Err(_) => {
                failed = format!(
                    "{server} over TCP: nothing for {} s: is a firewall between?",
                    TCP_TIMEOUT.as_secs()
                );
            }
        }
    }
    mend("switchboard", failed)
}

async fn link(local: &Local, servers: &[SocketAddr]) -> Vec<Finding> {
    let what = match local {
        Local::Interface(name) => format!("link {name}"),
        Local::Address(address) => format!("link {address}"),
    };
    let mut findings = Vec::new();
    if let Local::Interface(name) = local {
        let mtu = std::fs::read_to_string(format!("/sys/class/net/{name}/mtu"));
        findings.extend(mtu.ok().and_then(|mtu| packet_size(&what, mtu.trim().parse().ok()?)));
    }
    // From a port of its own: the link's may be in use, and filtering shows on a fresh one.
    let fresh = match local {
        Local::Address(address) => Local::Address(SocketAddr::new(address.ip(), 0)),
        Local::Interface(_) => local.clone(),
    };
    let socket = match fresh.open().map(StdUdpSocket::from) {
        Ok(socket) => UdpSocket::from_std(socket).context("the system gives no socket"),
        Err(error) => Err(error),
    };
    let socket = match socket {
        Ok(socket) => socket,
        Err(error) => {
            findings.push(mend(&what, format!("{error:#}")));
            return findings;
        }
    };
    let reaches = |server: &&SocketAddr| {
        socket.local_addr().is_ok_and(|own| {
            own.is_ipv4() == server.is_ipv4() || own.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED)
        })
    };
    let Some(server) = servers.iter().find(reaches) else {
        findings.push(look(&what, "nobody to ask: no address of the switchboard fits".to_owned()));
        return findings;
    };
    findings.push(match discover(&socket, *server).await {
        Ok(found) => nat(&what, &found, *server),
        Err(error) => mend(&what, format!("{error:#}")),
    });
    findings
}

/// Returns what the NATs between mean for driving.
fn nat(what: &str, found: &Found, server: SocketAddr) -> Finding {
    let Some(mapped) = found.mapped else {
        return mend(
            what,
            format!(
                "no answer from {server} over UDP: it is blocked, or nothing is there; where a network lets none \
                 pass, the operator's `tls` is the way"
            ),
        );
    };
    match found.mapping {
        None => look(
            what,
            format!(
                "seen as {mapped} over UDP; what its NAT does is not known: the server has one address"
            ),
        ),
        Some(Behaviour::EndpointIndependent) => {
            good(what, format!("seen as {mapped} over UDP, by any other end alike"))
        }
        Some(mapping) => look(
            what,
            format!(
                "seen as {mapped} over UDP; mapping {mapping}: two ends behind such NATs meet through a relay only"
            ),
        ),
    }
}

fn packet_size(what: &str, mtu: u32) -> Option<Finding> {
    (mtu < MTU_LEAST).then(|| {
        look(
            what,
            format!("packets of {mtu} bytes at most: less than {MTU_LEAST} costs headers and time"),
        )
    })
}

/// Returns whether somebody keeps the clock: sessions compare their own, the black box tells UTC.
fn clock() -> Finding {
    let asked =
        Command::new("timedatectl").args(["show", "-p", "NTPSynchronized", "--value"]).output();
    let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match said.as_deref() {
        Ok("yes") => good("clock", "set by a time server".to_owned()),
        Ok("no") => look(
            "clock",
            "not set by a time server: times of the black box may be wrong; `timedatectl set-ntp true`".to_owned(),
        ),
        Ok(_) | Err(_) => look(
            "clock",
            "not known whether a time server sets it: times of the black box are as right as it is".to_owned(),
        ),
    }
}

fn real_time() -> Finding {
    let [priority, locked] =
        [Resource::Rtprio, Resource::Memlock].map(|resource| getrlimit(resource).current);
    let may = |limit: Option<u64>, least: u64| limit.is_none_or(|limit| limit >= least);
    match geteuid().is_root() || (may(priority, 1) && may(locked, LOCKED_LEAST)) {
        true => good(
            "real time",
            "the guard may run before other processes, its memory locked".to_owned(),
        ),
        false => look(
            "real time",
            "the guard may be held up by other processes, and stops the machine then: give it \
             LimitRTPRIO= and LimitMEMLOCK= (systemd), or CAP_SYS_NICE and CAP_IPC_LOCK"
                .to_owned(),
        ),
    }
}

fn guard(address: &Address) -> Finding {
    match address {
        Address::Udp(address) => look("guard", format!("expected at {address}, UDP: not asked")),
        Address::Path(path) => match std::fs::metadata(path) {
            Ok(found) if found.file_type().is_socket() => {
                good("guard", format!("listens at {}", path.display()))
            }
            Ok(_) => mend("guard", format!("{} is no socket", path.display())),
            Err(error) => look(
                "guard",
                format!("{}: {error}: without `tautline guard` nothing moves", path.display()),
            ),
        },
    }
}

fn picture_source(config: &tautline_vehicle::Config) -> Finding {
    let Some(source) = config.source() else {
        return look("pictures", "of the simulated camera: none is set".to_owned());
    };
    match source.check() {
        Ok(found) => good("pictures", found),
        Err(error) => mend("pictures", format!("{error:#}")),
    }
}

fn console(address: SocketAddr) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => good("console", format!("{address} is free")),
        Err(error) => look(
            "console",
            format!("{address}: {error}: does an operator run already? `--console` takes another"),
        ),
    }
}

fn good(what: &str, words: String) -> Finding {
    Finding { verdict: Verdict::Good, what: what.to_owned(), words }
}

fn look(what: &str, words: String) -> Finding {
    Finding { verdict: Verdict::Look, what: what.to_owned(), words }
}

fn mend(what: &str, words: String) -> Finding {
    Finding { verdict: Verdict::Mend, what: what.to_owned(), words }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Good => "ok",
            Verdict::Look => "look",
            Verdict::Mend => "mend",
        };
        write!(f, "{verdict:<5} {:<14} {}", self.what, self.words)
    }
}

const TCP_TIMEOUT: Duration = Duration::from_secs(3);
/// A datagram of 1200 bytes with the headers of IPv6 and UDP.
const MTU_LEAST: u32 = 1_248;
/// The guard's memory.
const LOCKED_LEAST: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nats_do_is_told_by_what_it_means() {
        let server = SocketAddr::from(([192, 0, 2, 1], 7443));
        let verdict = |mapped: bool, mapping: Option<Behaviour>| {
            let mapped = mapped.then(|| SocketAddr::from(([198, 51, 100, 2], 20_007)));
            let finding = nat("link wwan0", &Found { mapped, mapping, filtering: None }, server);
            (finding.verdict, finding.to_string())
        };
        let (blocked, words) = verdict(false, None);
        assert_eq!(blocked, Verdict::Mend);
        assert!(words.starts_with("mend  link wwan0     no answer from 192.0.2.1:7443"), "{words}");
        assert_eq!(verdict(true, Some(Behaviour::EndpointIndependent)).0, Verdict::Good);
        let (narrow, words) = verdict(true, Some(Behaviour::AddressAndPortDependent));
        assert_eq!(narrow, Verdict::Look);
        assert!(words.contains("through a relay only"), "{words}");
        assert_eq!(verdict(true, None).0, Verdict::Look);
    }

    #[test]
    fn a_small_packet_size_is_told() {
        assert_eq!(packet_size("link wwan0", 1_500), None);
        assert_eq!(packet_size("link wwan0", 1_247).map(|it| it.verdict), Some(Verdict::Look));
    }
}
