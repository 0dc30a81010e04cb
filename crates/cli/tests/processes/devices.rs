//! `tautline emulate --tun`: kernel sockets in two network namespaces, with the emulated links
//! between them.
//!
//! Requires root. `cargo test` counts these tests as ignored; `make tun` runs them, or reports that
//! it cannot.
#![allow(clippy::unwrap_used, reason = "a network that cannot be set up has failed")]

use std::io::{BufRead, BufReader, IoSliceMut, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use serde_json::Value;
use tautline_net::tun::Namespace;

/// An emulator with these arguments between two namespaces of its own; it ends on drop.
struct Rig {
    emulator: Child,
    names: [String; 2],
}

impl Rig {
    /// Starts the emulator, and waits until its links exist.
    fn start(name: &str, arguments: &[&str], links: usize) -> Self {
        let names = ["v", "o"].map(|end| format!("tl-{name}-{}-{end}", std::process::id()));
        let mut emulator = Command::new(env!("CARGO_BIN_EXE_tautline"))
            .args(["emulate", "--tun", "--namespaces", &names.join(",")])
            .args(arguments)
            .env_remove("TAUTLINE_CONFIG")
            .env("TAUTLINE_LOG", "info")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(emulator.stderr.take().unwrap());
        let (mut told, mut line) = (0, String::new());
        while told < links {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
            told += usize::from(line.contains(" link: 10.77."));
        }
        // Later output must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { emulator, names }
    }

    /// Runs `open` in the vehicle's namespace, and returns what it opens.
    fn vehicle<T: Send>(&self, open: impl FnOnce() -> T + Send) -> T {
        Namespace::open_or_make(&self.names[0]).unwrap().within(open).unwrap()
    }

    /// Runs `open` in the operator's namespace, and returns what it opens.
    fn operator<T: Send>(&self, open: impl FnOnce() -> T + Send) -> T {
        Namespace::open_or_make(&self.names[1]).unwrap().within(open).unwrap()
    }

    /// Ends the emulator with a signal, asserts that its namespaces are gone, and returns the JSON
    /// that it prints.
    fn end(mut self, signal: &str) -> Value {
        let pid = self.emulator.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let mut printed = String::new();
        self.emulator.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        assert!(self.emulator.wait().unwrap().success());
        for name in &self.names {
            assert!(!Path::new("/run/netns").join(name).exists(), "{name} is left");
        }
        serde_json::from_str(&printed).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
        for name in &self.names {
            // Only a failed test leaves a namespace behind.
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
        }
    }
}

fn bound(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

/// Returns a settings file of two links of 8 Mbit/s up; the second has a delay of 40 ms each way,
/// the first of 10 ms.
fn two_links() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for (name, delay) in [("a", 10.0), ("b", 40.0)] {
        write!(
            file,
            "[[links]]\nname = {name:?}\nup = {{ rate_mbps = 8.0, delay_ms = {delay:?}, queue_bytes = 200000 }}\n\
             down = {{ rate_mbps = 20.0, delay_ms = {delay:?} }}\n"
        )
        .unwrap();
    }
    file
}

#[test]
#[ignore = "needs root; make tun runs it"]
fn udp_and_tcp_of_the_kernel_meet_the_links_that_were_asked_for() {
    let file = two_links();
    let rig = Rig::start("two", &["--config", file.path().to_str().unwrap()], 2);
    for (link, round_trip) in [(0, Duration::from_millis(20)), (1, Duration::from_millis(80))] {
        let address = |host: u8, port: u16| format!("10.77.{link}.{host}:{port}");
        let there = rig.operator(|| bound(&address(2, 9000)));
        let here = rig.vehicle(|| bound(&address(1, 0)));
        let mut buffer = [0; 64];
        let begin = now();
        here.send_to(b"there and back", address(2, 9000)).unwrap();
        let (bytes, from) = there.recv_from(&mut buffer).unwrap();
        there.send_to(&buffer[..bytes], from).unwrap();
        let (bytes, _) = here.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..bytes], b"there and back");
        assert!(begin.elapsed() >= round_trip, "link {link}: {:?}", begin.elapsed());
    }
    // TCP: one megabyte up, complete, and no faster than the link's rate.
    let listener = rig.operator(|| TcpListener::bind("10.77.0.2:9001").unwrap());
    let sent: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    let begin = now();
    let received = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut received = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
            received
        });
        let mut stream = rig.vehicle(|| TcpStream::connect("10.77.0.2:9001").unwrap());
        stream.write_all(&sent).unwrap();
        drop(stream);
        receiver.join().unwrap()
    });
    let took = begin.elapsed();
    assert!(received == sent, "{} bytes of {} came", received.len(), sent.len());
    assert!(took >= Duration::from_secs(1), "8 Mbit/s carry a megabyte in a second: {took:?}");
    println!("a megabyte over TCP at 8 Mbit/s: {took:?}");

    let told = rig.end("-TERM");
    let links = told["links"].as_array().unwrap();
    assert!(links[0]["up"]["delivered_bytes"].as_u64().unwrap() > 1_000_000, "{told}");
    assert!(links[0]["down"]["delivered"].as_u64().unwrap() > 10, "acknowledgements: {told}");
    assert_eq!(links[1]["up"]["delivered"], 1, "nothing but ours: {told}");
    assert_eq!(links[1]["down"]["delivered"], 1, "nothing but ours: {told}");
    // 28 bytes of IP and UDP headers belong to the packet.
    assert_eq!(links[1]["up"]["received_bytes"], 14 + 28, "{told}");
}

/// Sends a datagram with each of these codepoints at once, and returns the received codepoints in
/// order.
fn sent_as(
    rig: &Rig,
    [from, to]: [&str; 2],
    codepoints: &[Option<EcnCodepoint>],
) -> Vec<Option<EcnCodepoint>> {
    let there = rig.operator(|| bound(to));
    let here = rig.vehicle(|| bound(from));
    let states = [&here, &there].map(|socket| UdpSocketState::new(socket.into()).unwrap());
    let destination = there.local_addr().unwrap();
    for ecn in codepoints {
        let transmit = Transmit {
            destination,
            ecn: *ecn,
            contents: &[7; 1_000],
            segment_size: None,
            src_ip: None,
        };
        states[0].try_send((&here).into(), &transmit).unwrap();
    }
    let (mut came, mut buffer) = (Vec::new(), vec![0; 65_536]);
    let begin = now();
    while came.len() < codepoints.len() && begin.elapsed() < Duration::from_secs(10) {
        let mut meta = [RecvMeta::default()];
        match states[1].recv((&there).into(), &mut [IoSliceMut::new(&mut buffer)], &mut meta) {
            Ok(_) => came.extend(vec![meta[0].ecn; meta[0].len / 1_000]),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    came
}

#[test]
#[ignore = "needs root; make tun runs it"]
fn queued_packets_are_marked_with_a_valid_ip_header() {
    use EcnCodepoint::{Ce, Ect0, Ect1};
    let mut file = tempfile::NamedTempFile::new().unwrap();
    // 41 ms per packet, so a thread that stalls changes nothing.
    let model = "rate_mbps = 0.2, l4s = { threshold_ms = 1.0, range_ms = 0.0 }";
    write!(file, "[[links]]\nname = \"l4s\"\nup = {{ {model} }}\ndown = {{ {model} }}\n").unwrap();
    let rig = Rig::start("l4s", &["--config", file.path().to_str().unwrap()], 1);
    let left = [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ect0), None, Some(Ce), Some(Ect1)];
    let came = sent_as(&rig, ["10.77.0.1:9000", "10.77.0.2:9000"], &left);
    let told = rig.end("-TERM");
    let wanted = [Some(Ect1), Some(Ect1), Some(Ce), Some(Ect0), None, Some(Ce), Some(Ce)];
    assert_eq!(came, wanted, "{told}");
    assert_eq!(told["links"][0]["up"]["marked"], 2, "{told}");
}

#[test]
#[ignore = "needs root; make tun runs it"]
fn both_directions_of_a_wireless_network_share_its_channel() {
    let rig = Rig::start("air", &["--wireless", "-35", "--links", "1"], 1);
    let there = rig.operator(|| bound("10.77.0.2:9000"));
    let here = rig.vehicle(|| bound("10.77.0.1:9000"));
    // The paper's competing flow takes half of about 4.2 MB/s; the offered load exceeds the rest
    // and the queue.
    let (begin, packet) = (now(), [7; 1328]);
    let mut sent = 0_u64;
    while begin.elapsed() < Duration::from_secs(1) {
        for _ in 0..8 {
            sent += u64::from(here.send_to(&packet, "10.77.0.2:9000").is_ok());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    there.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let (mut came, mut buffer) = (0_u64, [0; 2048]);
    while there.recv_from(&mut buffer).is_ok() {
        came += 1;
    }
    let told = rig.end("-INT");
    let up = &told["links"][0]["up"];
    let count = |value: &Value| value.as_u64().unwrap();
    println!("{came} of {sent} packets came: {up}");
    assert!(came > 0 && count(&up["received"]) <= sent);
    assert!(count(&up["drops"]["queue"]) > 100, "the access point's queue holds 120: {up}");
    let mbyte_per_s = count(&up["delivered_bytes"]) as f64 / begin.elapsed().as_secs_f64() / 1e6;
    assert!(mbyte_per_s < 2.6, "the channel is shared: {mbyte_per_s} MB/s");
}

#[test]
#[ignore = "needs root; make tun runs it"]
fn a_namespace_that_was_there_stays() {
    let name = format!("tl-kept-{}", std::process::id());
    let kept = Namespace::open_or_make(&name).unwrap();
    let other = format!("tl-other-{}", std::process::id());
    let output = Command::new("timeout")
        .args([
            "-s",
            "INT",
            "2",
            env!("CARGO_BIN_EXE_tautline"),
            "emulate",
            "--tun",
            "--links",
            "2",
        ])
        .args(["--preset", "lan", "--namespaces", &format!("{name},{other}")])
        .env_remove("TAUTLINE_CONFIG")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("10.77.1.2 in ") && said.contains(&other), "{said}");
    let is_there = |name: &str| Path::new("/run/netns").join(name).exists();
    assert!(is_there(&name) && !is_there(&other), "{said}");
    let devices = || std::fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!kept.within(devices).unwrap().contains("tautline"), "its devices are gone");
}

#[expect(clippy::disallowed_methods, reason = "these are tests in real time")]
fn now() -> Instant {
    Instant::now()
}
