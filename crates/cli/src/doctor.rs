//! `tautline doctor`.

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket as StdUdpSocket};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use rustix::process::{Resource, geteuid, getrlimit};
use tautline_net::clock::Clock;
use tautline_net::datagram::Address;
use tautline_net::{Local, reach};
use tautline_transport::reach::{Behaviour, Found};
use tautline_vehicle::camera;
use tautline_video::{Picture, Sensor};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::path_size::{PathSize, path_size};
use crate::reach::{answers_from, discover};
use crate::{keys, local, operator, vehicle};

/// Check what a vehicle or an operator requires of its machine and its networks, and print what to
/// fix.
///
/// For a vehicle it takes one picture from the clip or camera, for up to 20 seconds. For an
/// operator it asks the running process how its last page decodes. It changes nothing, and takes up
/// to 6 seconds per link. The exit status is a failure if something must be fixed; warnings are no
/// failure.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Settings file of a vehicle
    #[arg(long, value_name = "FILE", required_unless_present = "operator")]
    vehicle: Option<PathBuf>,
    /// Settings file of an operator
    #[arg(long, value_name = "FILE", conflicts_with = "vehicle")]
    operator: Option<PathBuf>,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    verdict: Verdict,
    /// Subject of the check.
    what: String,
    /// Result of the check, with advice if something is not as it should be.
    words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Look,
    Mend,
}

impl Doctor {
    /// Runs all checks and prints their findings; fails if something must be fixed.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut faults = 0;
        let mut tell = |finding: Finding| {
            faults += usize::from(finding.verdict == Verdict::Mend);
            tell!("{finding}");
        };
        let (key, switchboard, links) = match (&self.vehicle, &self.operator) {
            (Some(file), _) => {
                let config = vehicle::settings(Some(file))?;
                config.validate()?;
                tell(clock());
                tell(real_time());
                tell(guard(&config.guard));
                tell(picture_source(&config).await);
                (config.key, config.switchboard, config.links)
            }
            (None, Some(file)) => {
                let config = operator::settings(Some(file))?;
                config.validate()?;
                tell(clock());
                tell(console(config.console));
                tell(decoding(config.told_at()).await);
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
            Ok(Err(_)) if server.is_ipv4() && reach::is_ipv6_only() => {
                failed = format!("{server} over TCP: {}", reach::IPV4_ON_IPV6);
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
    // Uses a separate port: the link's port may be in use, and filtering is visible only on a fresh
    // one.
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
    let (found, elsewhere) = match discover(&socket, *server).await {
        Ok(found) => found,
        Err(error) => {
            findings.push(mend(&what, format!("{error:#}")));
            return findings;
        }
    };
    findings.extend(elsewhere.map(|from| mend(&what, answers_from(from, *server))));
    findings.push(nat(&what, &found, *server));
    if found.mapped.is_some() {
        findings.push(match path_size(&socket, *server, Clock::start()).await {
            Ok(found) => path(&what, found),
            Err(error) => look(&what, format!("the size of packets on the way: {error:#}")),
        });
    }
    findings
}

/// Returns the finding on the largest packet that came to the switchboard whole. Sessions discover
/// that size themselves; larger packets have less overhead.
fn path(what: &str, PathSize { largest, refused_here }: PathSize) -> Finding {
    let here = refused_here.map_or_else(String::new, |bytes| {
        format!("; this machine's own interface takes none of {bytes}: `ip link` shows its mtu")
    });
    match largest {
        Some(bytes) if u32::from(bytes) >= MTU_LEAST => {
            good(what, format!("packets of {bytes} bytes come to the switchboard whole{here}"))
        }
        // Largest packet that an older switchboard reads.
        Some(576) => look(
            what,
            format!(
                "packets of 576 bytes come to the switchboard whole and no larger ones of those tried: it is an older \
                 one, which reads no more, or a VPN is on the way{here}"
            ),
        ),
        Some(bytes) => look(
            what,
            format!(
                "packets of {bytes} bytes come to the switchboard whole and no larger ones of those tried: sessions find \
                 that out by themselves, but less than {MTU_LEAST} costs headers and time; is a VPN on the way?{here}"
            ),
        ),
        None => look(
            what,
            format!("the size of packets on the way is not known: none was answered{here}"),
        ),
    }
}

/// Returns the finding on the NATs between this machine and `server`, and on whether UDP passes at
/// all.
fn nat(what: &str, found: &Found, server: SocketAddr) -> Finding {
    let Some(mapped) = found.mapped else {
        return mend(
            what,
            format!(
                "no answer from {server} over UDP: it is blocked, or nothing is there, or an older switchboard answers from \
                 another of its addresses, which a NAT drops; where a network lets none pass, the operator's `tls` is \
                 the way"
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

/// Returns the finding on this machine's clock: whether a time server sets it. Sessions compare
/// their own clocks, but the black box records UTC.
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

async fn picture_source(config: &tautline_vehicle::Config) -> Finding {
    let Some(source) = config.source() else {
        return look("pictures", "of the simulated camera: none is set".to_owned());
    };
    if let Err(error) = source.check() {
        return mend("pictures", format!("{error:#}"));
    }
    let config = config.clone();
    let open = move || camera::open(&config)?.context("no source is set");
    first_picture(open, PICTURE_MAX).await
}

/// Properties of a source of pictures, found with its first picture.
#[derive(Debug)]
struct FirstPicture {
    size: (usize, usize),
    /// Width and height of the pictures to send; `None` if they equal `size`.
    sent: Option<(usize, usize)>,
    pictures_per_second: f64,
    /// Fault that the source reports, in its own words; `None` without one.
    trouble: Option<String>,
}

/// Opens a source and takes its first picture like a vehicle, and returns the finding; waits for at
/// most `within`. Works on a thread of its own, because a device may hang.
async fn first_picture(
    open: impl FnOnce() -> anyhow::Result<Box<dyn Sensor>> + Send + 'static,
    within: Duration,
) -> Finding {
    let what = "pictures";
    let clock = Clock::start();
    let begun = clock.now();
    let (tell, told) = oneshot::channel();
    let spawned = std::thread::Builder::new().name("first-picture".into()).spawn(move || {
        // After the timeout nobody receives the picture.
        let _ = tell.send(take_picture(open));
    });
    if let Err(error) = spawned {
        return mend(what, format!("the kernel gives no thread: {error}"));
    }
    match timeout(within, told).await {
        Ok(Ok(Ok(FirstPicture { size: (width, height), sent, pictures_per_second, trouble }))) => {
            let took = clock.now().since(begun).as_millis();
            let sent = sent.map(|(width, height)| format!(", sent as {width}x{height}"));
            let words = format!(
                "{width}x{height}{}, {pictures_per_second:.3} a second; the first was there after {took} ms",
                sent.unwrap_or_default()
            );
            match trouble {
                None => good(what, words),
                Some(trouble) => look(what, format!("{words}; {trouble}")),
            }
        }
        Ok(Ok(Err(error))) if is_busy(&error) => {
            look(what, format!("{error:#}: another process has it; does the vehicle run already?"))
        }
        Ok(Ok(Err(error))) => mend(what, format!("{error:#}")),
        Ok(Err(_)) => mend(what, "what reads the source broke down".to_owned()),
        Err(_) => mend(
            what,
            format!(
                "the source is opened, and no picture comes within {} s: unplug the camera and plug it in; of a clip, try \
                 whether `ffmpeg -i FILE -f null -` reads it",
                within.as_secs()
            ),
        ),
    }
}

/// Opens a source and takes one picture with all its strips; up to 30 lost pictures before it are
/// skipped.
fn take_picture(
    open: impl FnOnce() -> anyhow::Result<Box<dyn Sensor>>,
) -> anyhow::Result<FirstPicture> {
    let sensor = open()?;
    let (size, pictures_per_second) = (sensor.layout().shown(), sensor.pictures_per_second());
    let mut sensor = camera::fitted(sensor)?;
    let mut lost = 0;
    let begun = loop {
        match sensor.next_picture() {
            // The first pictures of many cameras are truncated.
            Err(tautline_video::Error::PictureLost { .. }) if lost < LOST_MAX => lost += 1,
            begun => break begun?,
        }
    };
    ensure!(begun, "it gives no picture");
    let layout = sensor.layout();
    for strip in 0..layout.strip_count() {
        let mut rows = Picture::new(layout.width(), layout.strip_rows(strip).len())?;
        sensor.read(strip, &mut rows);
    }
    let sent = Some(layout.shown()).filter(|sent| *sent != size);
    let trouble = sensor.trouble().map(str::to_owned);
    Ok(FirstPicture { size, sent, pictures_per_second, trouble })
}

fn is_busy(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    let mut kinds = kinds.map(std::io::Error::kind);
    kinds.any(|kind| matches!(kind, ErrorKind::ResourceBusy | ErrorKind::AddrInUse))
}

/// Returns the finding on how the last page of the operator running at `address` decodes; without
/// an address it is unknown.
async fn decoding(address: Option<SocketAddr>) -> Finding {
    let what = "decoding";
    let Some(address) = address else {
        return look(
            what,
            "not known: the console speaks HTTPS, and `metrics` names no address to ask at"
                .to_owned(),
        );
    };
    match local::get(address, "/metrics").await {
        Ok(page) => decoded(&page),
        Err(error) => look(
            what,
            format!("not known: {error:#}. Start the operator, open its console, and look again"),
        ),
    }
}

/// Returns the finding on the last page's decoder from the text of an operator's metrics.
fn decoded(page: &str) -> Finding {
    let what = "decoding";
    let is_told = |by: &str| {
        let line = format!("{DECODER}{{by=\"{by}\"}} 1");
        page.lines().any(|it| {
            it == line || it.strip_prefix(&line).is_some_and(|rest| rest.starts_with('.'))
        })
    };
    if is_told("hardware") {
        good(what, "the last page says that its browser decodes the strips by hardware".to_owned())
    } else if is_told("processor") {
        look(
            what,
            "the last page says that its browser decodes the strips by the processor: if pictures are late, look for the video \
             decoder in chrome://gpu, or in about:support"
                .to_owned(),
        )
    } else if is_told("unknown") {
        look(what, "the browser of the last page does not say how it decodes".to_owned())
    } else {
        look(what, "not known: no page has told; open the console, and look again".to_owned())
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
/// Time limit for a source's first picture, after which the source counts as faulty: a clip's own
/// limit plus a margin.
const PICTURE_MAX: Duration = Duration::from_secs(20);
/// Number of lost pictures before a source's first complete one that are skipped; one more makes
/// the source faulty.
const LOST_MAX: u32 = 30;
/// Name of the operator's metric that tells which decoder its last page uses.
const DECODER: &str = "tautline_operator_page_decoder";
/// Packet size in bytes from which a path is good: a datagram of 1200 bytes with IPv6 and UDP
/// headers.
const MTU_LEAST: u32 = 1_248;
/// Bytes of memory that a process must be allowed to lock for the guard to count as able to run in
/// real time.
const LOCKED_LEAST: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tautline_net::free_port;

    use super::*;

    #[test]
    fn nat_behaviour_is_reported_by_its_consequence() {
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
    fn a_small_packet_size_is_reported() {
        assert_eq!(packet_size("link wwan0", 1_500), None);
        assert_eq!(packet_size("link wwan0", 1_247).map(|it| it.verdict), Some(Verdict::Look));
    }

    #[test]
    fn path_mtu_is_reported_by_its_consequence() {
        let told = |largest, refused_here| {
            let finding = path("link wwan0", PathSize { largest, refused_here });
            (finding.verdict, finding.words)
        };
        for bytes in [1_500, 1_248] {
            let (verdict, words) = told(Some(bytes), None);
            assert_eq!(verdict, Verdict::Good);
            assert_eq!(words, format!("packets of {bytes} bytes come to the switchboard whole"));
        }
        let (verdict, words) = told(Some(1_000), None);
        assert!(verdict == Verdict::Look && words.contains("is a VPN on the way?"), "{words}");
        let (verdict, words) = told(Some(576), None);
        assert!(verdict == Verdict::Look && words.contains("it is an older one"), "{words}");
        let (verdict, words) = told(None, None);
        assert!(verdict == Verdict::Look && words.contains("is not known"), "{words}");
        let (verdict, words) = told(Some(1_400), Some(1_420));
        assert!(verdict == Verdict::Good && words.ends_with("`ip link` shows its mtu"), "{words}");
    }

    /// Source whose first picture comes after this time.
    struct Slow(Duration);

    /// Thermal camera whose first pictures are lost.
    struct Thermal(u32);

    impl Sensor for Thermal {
        fn layout(&self) -> tautline_video::Layout {
            tautline_video::Layout::of_sensor(160, 120).unwrap()
        }

        fn pictures_per_second(&self) -> f64 {
            9.0
        }

        fn next_picture(&mut self) -> Result<bool, tautline_video::Error> {
            let reason = "a picture is cut".to_owned();
            self.0 = self.0.saturating_sub(1);
            if self.0 > 0 { Err(tautline_video::Error::PictureLost { reason }) } else { Ok(true) }
        }

        fn read(&mut self, _strip: usize, _rows: &mut Picture) {}
    }

    #[tokio::test]
    async fn a_small_source_shows_its_sent_size_and_a_cut_one_its_fault() {
        let open = |lost| move || Ok(Box::new(Thermal(lost)) as Box<dyn Sensor>);
        let finding = first_picture(open(5), Duration::from_secs(20)).await;
        assert_eq!(finding.verdict, Verdict::Good);
        let words = "160x120, sent as 480x360, 9.000 a second; the first was there after ";
        assert!(finding.words.starts_with(words), "{finding}");
        let finding = first_picture(open(1_000), Duration::from_secs(20)).await;
        assert_eq!((finding.verdict, &*finding.words), (Verdict::Mend, "a picture is cut"));
    }

    impl Sensor for Slow {
        fn layout(&self) -> tautline_video::Layout {
            tautline_video::Layout::of(640, 480).unwrap()
        }

        fn pictures_per_second(&self) -> f64 {
            25.0
        }

        fn next_picture(&mut self) -> Result<bool, tautline_video::Error> {
            std::thread::sleep(self.0);
            Ok(true)
        }

        fn read(&mut self, _strip: usize, _rows: &mut Picture) {}
    }

    #[tokio::test]
    async fn the_first_picture_of_a_source_has_a_time_limit() {
        let (within, briefly) = (Duration::from_secs(20), Duration::from_millis(200));
        let open = |wait| move || Ok(Box::new(Slow(wait)) as Box<dyn Sensor>);
        let finding = first_picture(open(Duration::ZERO), within).await;
        assert_eq!(finding.verdict, Verdict::Good);
        let first = "640x480, 25.000 a second; the first was there after ";
        assert!(finding.words.starts_with(first), "{finding}");
        let finding = first_picture(open(Duration::from_secs(2)), briefly).await;
        assert_eq!(finding.verdict, Verdict::Mend);
        assert!(finding.words.contains("no picture comes within"), "{finding}");
        let finding = first_picture(|| bail!("clip.mp4 gives nothing"), within).await;
        assert_eq!((finding.verdict, &*finding.words), (Verdict::Mend, "clip.mp4 gives nothing"));
        let finding =
            first_picture(|| Err(std::io::Error::from(ErrorKind::ResourceBusy).into()), within);
        assert_eq!(finding.await.verdict, Verdict::Look);
        let finding = first_picture(|| panic!("as a device's own code may"), within).await;
        assert_eq!(
            (finding.verdict, &*finding.words),
            (Verdict::Mend, "what reads the source broke down")
        );
    }

    #[test]
    fn the_decoder_reported_by_the_page_is_shown() {
        let page = |by: &str| {
            let all = ["hardware", "processor", "unknown"];
            let line = |it: &&str| format!("{DECODER}{{by=\"{it}\"}} {}.0\n", u8::from(*it == by));
            all.iter().map(line).collect::<String>()
        };
        let verdict = |text: &str| (decoded(text).verdict, decoded(text).words);
        assert_eq!(verdict(&page("hardware")).0, Verdict::Good);
        let (processor, words) = verdict(&page("processor"));
        assert!(processor == Verdict::Look && words.contains("chrome://gpu"), "{words}");
        assert!(verdict(&page("unknown")).1.contains("does not say"));
        assert!(verdict("tautline_operator_established 1.0\n").1.contains("no page has told"));
    }

    #[tokio::test]
    async fn without_a_running_operator_the_decoder_is_unknown() {
        let free = free_port(Ipv4Addr::LOCALHOST.into()).unwrap();
        let finding = decoding(Some(free)).await;
        assert_eq!(finding.verdict, Verdict::Look);
        assert!(finding.words.contains("Start the operator"), "{finding}");
        let finding = decoding(None).await;
        assert!(finding.verdict == Verdict::Look && finding.words.contains("HTTPS"), "{finding}");
    }
}
