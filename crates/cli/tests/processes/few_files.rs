//! Idle connections that take every file a process may open: a drive continues, the log names the
//! cause, and a client that asks for something is served again.

use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tautline_net::free_port;

use crate::faults::remote::Another;
use crate::faults::rig::Rig;
use crate::restart::Demo;
use crate::tries::tried;

#[test]
fn idle_connections_fill_a_console_and_end_no_session() {
    tried(|| {
        let demo = Demo::start();
        demo.await_video("at first");
        let (operator, before) = (demo.id("operator"), demo.units());
        leave_files(operator, 8);
        let idle = Idle::connect(&demo.console, 60);
        assert!(
            eventually(|| demo.first_log("operator").contains(CAUSE)),
            "{}",
            demo.first_log("operator")
        );
        let log = demo.first_log("operator");
        assert!(
            log.contains("the console cannot accept a connection") && log.contains(REMEDY),
            "{log}"
        );
        assert_eq!(log.matches(CAUSE).count(), 1, "{log}");
        // A client that sends a request is served while the others are there.
        demo.await_video("among idle connections");
        assert!(demo.units() > before, "the session is the same");
        idle.are_closed();
        demo.await_video("after them");
    });
}

#[test]
fn idle_connections_fill_a_switchboard_and_stop_no_drive() {
    tried(|| {
        let rig = Rig::patient();
        rig.drive(3.0);
        rig.vehicle.operator.throttle(0.2);
        leave_files(rig.vehicle.switchboard.id(), 8);
        let idle = Idle::connect(&rig.vehicle.address, 60);
        let begun = rig.car("odometer_metres");
        assert!(eventually(|| rig.vehicle.log("switchboard").contains(CAUSE)));
        assert!(
            rig.car("odometer_metres") > begun && rig.car("hazard") == 0.0,
            "{:?}",
            rig.cause()
        );
        // It answers while the others are there.
        assert!(
            eventually(|| rig.vehicle.who().contains("anna")),
            "{}",
            rig.vehicle.log("switchboard")
        );
        idle.are_closed();
        assert_eq!(rig.car("hazard"), 0.0, "{:?}", rig.cause());
        let log = rig.vehicle.log("switchboard");
        assert_eq!(log.matches(CAUSE).count(), 1, "{log}");
        assert!(log.contains(REMEDY), "{log}");
        assert_eq!(rig.vehicle.operator.introductions(), 1, "nobody lost its connection");
    });
}

#[test]
fn with_few_files_idle_connections_leave_most_of_them_free() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("relay.key");
    let made = tautline().args(["keys", "new"]).arg(&key).output().expect("our own binary");
    assert!(made.status.success());
    let [tls, metrics] = [(); 2].map(|()| free_port(Ipv4Addr::LOCALHOST.into()).expect("a port"));
    let log = folder.path().join("log");
    let limited = format!(
        "ulimit -n 64; exec \"$0\" relay --listen 127.0.0.1:0 --tls {tls} \
                           --metrics {metrics} --switchboard-key {KEY} --key \"$1\""
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &limited, env!("CARGO_BIN_EXE_tautline")]).arg(&key);
    shell.env_remove("TAUTLINE_CONFIG").stdout(Stdio::null());
    let relay = shell.stderr(std::fs::File::create(&log).expect("a folder of ours")).spawn();
    let relay = Another(relay.expect("a shell"));
    let log = || std::fs::read_to_string(&log).expect("a log");
    assert!(eventually(|| TcpStream::connect(metrics).is_ok()), "{}", log());
    let idle = [tls, metrics].map(|address| Idle::connect(&address.to_string(), 60));
    for _ in 0..20 {
        let count = files(relay.0.id());
        assert!(count < 48, "{count} of 64: {}", log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!log().contains(CAUSE), "{}", log());
    idle.iter().for_each(Idle::are_closed);
}

/// Connections that send nothing.
struct Idle(Vec<TcpStream>);

impl Idle {
    fn connect(address: &str, count: usize) -> Self {
        let address = address.parse().expect("an address");
        let connect = || TcpStream::connect_timeout(&address, Duration::from_secs(5));
        Self((0..count).map(|_| connect().expect("the kernel queues it")).collect())
    }

    /// Waits until the other end has closed each of them.
    fn are_closed(&self) {
        for (place, mut stream) in self.0.iter().enumerate() {
            stream.set_read_timeout(Some(Duration::from_secs(30))).expect("not zero");
            let read = stream.read(&mut [0]);
            let is_closed = match &read {
                Ok(count) => *count == 0,
                Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
            };
            assert!(is_closed, "connection {place}: {read:?}");
        }
    }
}

/// Lowers the limit of a running process, so that it can open `left` more files.
fn leave_files(id: u32, left: u64) {
    let limit = Some(files(id) + left);
    let pid = Pid::from_raw(id.try_into().expect("a process number")).expect("not 0");
    let limit = Rlimit { current: limit, maximum: limit };
    prlimit(Some(pid), Resource::Nofile, limit).expect("the process is ours");
}

/// Returns the number of files that a process has open.
fn files(id: u32) -> u64 {
    std::fs::read_dir(format!("/proc/{id}/fd")).expect("it runs").count() as u64
}

fn eventually(holds: impl Fn() -> bool) -> bool {
    (0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        holds()
    })
}

fn tautline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tautline"));
    command.env_remove("TAUTLINE_CONFIG");
    command
}

const CAUSE: &str = "Too many open files";
const REMEDY: &str = "raise it by LimitNOFILE";
const KEY: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
