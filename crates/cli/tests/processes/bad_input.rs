//! Bad input produces one clear line with the error and the remedy.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tautline_net::free_port;

fn tautline(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tautline"))
        .args(arguments)
        .env_remove("TAUTLINE_CONFIG")
        .output()
        .expect("the binary runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs a command that must fail, and returns its single line of output.
fn complaint(arguments: &[&str]) -> String {
    let (success, words) = tautline(arguments);
    assert!(!success, "{arguments:?} was accepted");
    assert_eq!(words.lines().count(), 1, "not one line: {words}");
    words
}

pub(super) struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn file(&self, name: &str, text: &str) -> String {
        let file = self.0.path().join(name);
        std::fs::write(&file, text).expect("a temporary file");
        file.to_str().expect("a plain path").to_owned()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a secret key, and returns its path.
    fn key(&self, name: &str) -> String {
        let file = self.path(name).to_str().expect("a plain path").to_owned();
        assert!(tautline(&["keys", "new", &file]).0);
        file
    }
}

fn set_mode(file: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

const KEY: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

#[test]
fn devices_that_only_root_may_make() {
    use std::os::unix::process::CommandExt;
    // The test may run as root, so drop the privileges.
    let mut command = Command::new(env!("CARGO_BIN_EXE_tautline"));
    command.args(["emulate", "--tun", "--wireless", "-35"]).env_remove("TAUTLINE_CONFIG");
    if rustix::process::geteuid().is_root() {
        command.uid(65_534);
    }
    match command.output() {
        Ok(output) => {
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && words.lines().count() == 1, "{words}");
            assert!(words.contains("--tun makes devices") && words.contains("root"), "{words}");
        }
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
            println!("not run: the binary is where only root may start it");
        }
    }
    for (arguments, expected) in [
        (&["emulate", "--wireless", "-35"][..], "--tun"),
        (&["emulate", "--tun", "--listen", "127.0.0.1:7101"][..], "--listen"),
    ] {
        let (success, words) = tautline(arguments);
        assert!(!success && words.contains(expected), "{words}");
    }
}

#[test]
fn a_missing_clip() {
    let words = complaint(&["demo", "--console", "127.0.0.1:0", "--clip", "/no/such.mp4"]);
    assert!(words.contains("there is no clip /no/such.mp4"), "{words}");
}

#[test]
fn a_malformed_key_file() {
    let folder = Folder::new();
    let key = folder.file("broken.key", "tautline-secret:123\n");
    set_mode(&key, 0o600);
    let words = complaint(&["keys", "show", &key]);
    assert!(words.contains("broken.key") && words.contains("64 hexadecimal digits"), "{words}");
}

#[test]
fn a_key_file_that_others_may_read() {
    let folder = Folder::new();
    let file = folder.path("shared.key");
    let key = file.to_str().unwrap();
    assert!(tautline(&["keys", "new", key]).0);
    for mode in [0o640, 0o604, 0o620, 0o644] {
        set_mode(key, mode);
        for command in [&["keys", "show", key][..], &["switchboard", "--key", key]] {
            let words = complaint(command);
            assert!(words.contains(&format!("(mode {mode:04o})")), "{words}");
            assert!(words.contains(&format!("`chmod 600 {key}`")), "{words}");
        }
    }
    set_mode(key, 0o400);
    assert!(tautline(&["keys", "show", key]).0);
}

#[test]
fn a_key_file_is_never_overwritten() {
    let folder = Folder::new();
    let key = folder.file("mine.key", "precious");
    let words = complaint(&["keys", "new", &key]);
    assert!(words.contains("exists already"), "{words}");
    assert_eq!(std::fs::read_to_string(folder.path("mine.key")).unwrap(), "precious");
}

#[test]
fn a_new_key_is_its_owners_alone_and_shows_its_public_half() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let file = folder.path("new.key");
    let path = file.to_str().unwrap();
    assert!(tautline(&["keys", "new", path]).0);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(tautline(&["keys", "show", path]).0);
}

#[test]
fn malformed_toml() {
    let folder = Folder::new();
    let config = folder.file("vehicle.toml", "name = \"a\"\npictures_per_second = \"many\"\n");
    let words = complaint(&["vehicle", "--config", &config]);
    assert!(words.contains("vehicle.toml:2"), "{words}");
}

#[test]
fn an_unknown_setting() {
    let folder = Folder::new();
    let config = folder.file("operator.toml", "colour = \"blue\"\n");
    let words = complaint(&["operator", "--config", &config]);
    assert!(words.contains("unknown field `colour`"), "{words}");
}

#[test]
fn a_malformed_public_key() {
    let folder = Folder::new();
    let key = folder.key("operator.key");
    let words = complaint(&["operator", "--switchboard-key", "abc", "--key", &key]);
    assert!(words.contains("switchboard_key") && words.contains("found 3"), "{words}");
}

#[test]
fn a_rate_out_of_bounds() {
    let folder = Folder::new();
    let words = complaint(&[
        "vehicle",
        "--key",
        &folder.key("vehicle.key"),
        "--switchboard-key",
        KEY,
        "--operator",
        KEY,
        "--pictures-per-second",
        "1000",
    ]);
    assert!(words.contains("must be 1 to 60"), "{words}");
}

#[test]
fn a_console_beyond_this_machine_that_is_not_safe() {
    let folder = Folder::new();
    let key = folder.key("operator.key");
    let wrong = |arguments: &[&str], what: &str| {
        let operator = ["operator", "--key", &key, "--switchboard-key", KEY];
        let words = complaint(&[&operator, arguments].concat());
        assert!(words.contains(what), "{words}");
    };
    wrong(&["--console", "0.0.0.0:0"], "with --console-name");
    wrong(&["--console-name", "http://drive.example/"], "is not a name");
    wrong(&["--console-certificate", "a.pem"], "needs console_certificate_key");
    wrong(&["--console-certificate-key", "a.pem"], "needs console_certificate");
    wrong(&["--metrics", "0.0.0.0:9101"], "everybody who reaches this address can probe");
}

#[test]
fn a_taken_port() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = complaint(&["demo", "--console", &address]);
    assert!(words.contains(&address) && words.contains("choose another"), "{words}");
    let folder = Folder::new();
    let key = folder.path("board.key");
    assert!(tautline(&["keys", "new", key.to_str().unwrap()]).0);
    let key = key.to_str().unwrap();
    let state = folder.path("state");
    let state = ["--state", state.to_str().unwrap()];
    let words =
        complaint(&[&["switchboard", "--key", key, "--listen", &address], &state[..]].concat());
    assert!(words.contains(&address), "{words}");
}

#[test]
fn a_trace_that_is_not_there_or_none() {
    let folder = Folder::new();
    let config = |trace: &str| {
        let link = "[[links]]\nname = \"a\"\nlisten = \"127.0.0.1:0\"\ntarget = \"127.0.0.1:9\"\n";
        let up =
            format!("up = {{ trace = {{ file = \"{trace}\" }} }}\ndown = {{ rate_mbps = 4.0 }}\n");
        folder.file("links.toml", &format!("{link}{up}"))
    };
    let words = complaint(&["emulate", "--config", &config("absent.up")]);
    assert!(words.contains("/absent.up: No") && words.contains("correct the link's"), "{words}");
    assert_eq!(words.matches("No such file").count(), 1, "{words}");
    let words_file = folder.file("words.up", "12\nmany\n");
    let words = complaint(&["emulate", "--config", &config(&words_file)]);
    assert!(words.contains("whole milliseconds, one a line"), "{words}");
    assert_eq!(words.matches("line 2").count(), 1, "{words}");
}

#[test]
fn a_transport_setting_out_of_bounds_is_named_once() {
    let folder = Folder::new();
    folder.key("vehicle.key");
    let text = format!(
        "switchboard_key = \"{KEY}\"\noperators = [\"{KEY}\"]\n[transport]\ndatagram_bytes_max = 9000\n"
    );
    let words = complaint(&["vehicle", "--config", &folder.file("vehicle.toml", &text)]);
    assert!(
        words.starts_with("tautline: transport.datagram_bytes_max = 9000: must be 150 to 1500"),
        "{words}"
    );
}

#[test]
fn a_status_of_nothing_or_a_stranger() {
    let closed = free_port(Ipv4Addr::LOCALHOST.into()).unwrap().to_string();
    let words = complaint(&["status", &closed]);
    assert!(words.contains(&closed) && words.contains("nothing listens"), "{words}");
    let address = stranger();
    let words = complaint(&["status", &address]);
    assert!(words.contains(&address), "{words}");
}

#[test]
#[cfg(feature = "lab")]
fn a_probe_without_session_and_a_missing_clip_are_reported() {
    let closed = free_port(Ipv4Addr::LOCALHOST.into()).unwrap().to_string();
    let folder = Folder::new();
    let out = folder.path("out");
    let out_text = out.to_str().unwrap();
    let probe = |at: &str| {
        complaint(&["probe", "mtu", "--operator", at, "--sizes", "400", "--out", out_text])
    };
    let words = probe(&closed);
    assert!(words.contains(&closed) && words.contains("nothing listens"), "{words}");
    let address = stranger();
    let words = probe(&address);
    assert!(words.contains(&address), "{words}");
    assert!(!out.exists());
    let words = complaint(&["lab", "encoders", "--clip", "/no/such.mp4"]);
    assert!(words.contains("there is no clip /no/such.mp4"), "{words}");
}

#[test]
#[cfg(not(feature = "lab"))]
fn a_lab_or_an_encoder_that_this_binary_lacks() {
    for arguments in [&["lab"][..], &["lab", "run", "all", "--quick"], &["probe", "mtu", "--help"]]
    {
        let words = complaint(arguments);
        assert!(
            words.contains("cargo build --release --package tautline --features lab"),
            "{words}"
        );
    }
    if cfg!(not(feature = "openh264")) {
        let words = complaint(&["demo", "--console", "127.0.0.1:0", "--encoder", "openh264"]);
        assert!(words.contains("--package tautline --features openh264"), "{words}");
    }
}

/// Returns the address of a server that is not Tautline's.
fn stranger() -> String {
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stranger.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for connection in stranger.incoming() {
            connection.unwrap().write_all(b"SSH-2.0-OpenSSH_10.0\r\n").unwrap();
        }
    });
    address
}

/// A running switchboard that knows `operator-1`, and no vehicle except `car-1`.
pub(super) struct Board {
    pub(super) folder: Folder,
    pub(super) address: String,
    pub(super) key: String,
    process: std::process::Child,
}

impl Board {
    pub(super) fn start() -> Self {
        let folder = Folder::new();
        let address = free_port(Ipv4Addr::LOCALHOST.into()).unwrap().to_string();
        let mut keys = ["board", "car-1", "operator-1"].map(|name| {
            let file = folder.path(&format!("{name}.key"));
            let output = Command::new(env!("CARGO_BIN_EXE_tautline"))
                .args(["keys", "new", file.to_str().unwrap()])
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        });
        let key_file = folder.path("board.key");
        let process = Command::new(env!("CARGO_BIN_EXE_tautline"))
            .args(["switchboard", "--listen", &address, "--key", key_file.to_str().unwrap()])
            .args(["--state", folder.path("state").to_str().unwrap()])
            .args(["--vehicle", &format!("car-1={}", keys[1])])
            .args(["--operator", &format!("operator-1={}", keys[2])])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let board = Self { folder, address, key: std::mem::take(&mut keys[0]), process };
        board.await_listening();
        board
    }

    /// Waits until the switchboard listens: a busy machine takes long to start it, and a command
    /// that finds nothing at its address fails at once.
    fn await_listening(&self) {
        let listens = || std::net::TcpStream::connect(&self.address).is_ok();
        for _ in 0..600 {
            if listens() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("the switchboard does not listen on {}", self.address);
    }

    fn operator(&self, name: &str, vehicle: &str) -> Command {
        let mut operator = Command::new(env!("CARGO_BIN_EXE_tautline"));
        operator
            .args(["operator", "--name", name, "--vehicle", vehicle])
            .args(["--key", self.folder.path(&format!("{name}.key")).to_str().unwrap()])
            .args(["--switchboard", &self.address, "--switchboard-key", &self.key])
            .args(["--link", "127.0.0.1:0", "--console", "127.0.0.1:0"])
            .env("TAUTLINE_LOG", "error");
        operator
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn an_unknown_vehicle_is_named_and_waited_for() {
    let board = Board::start();
    let mut operator = board.operator("operator-1", "car-9");
    operator.env("TAUTLINE_LOG", "warn").stderr(Stdio::piped());
    let mut process = operator.spawn().unwrap();
    let lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let told = lines.map_while(Result::ok).find(|line| line.contains("car-9"));
    let status = process.try_wait().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(status.is_none(), "it may be let in later: {status:?}");
    assert!(told.is_some_and(|line| line.contains("it knows: car-1")));
}

#[test]
fn all_wrong_settings_are_reported_at_once_with_exit_code_2() {
    let folder = Folder::new();
    let text = format!(
        "switchboard_key = \"{}O{}\"\noperator = \"{KEY}\"\nlink = \"wwan0\"\nreferences = 99\n\
         switchboard = \"desk:port\"\nclip = \"a.mp4\"\ncamera = \"/dev/video0\"\n",
        &KEY[..16],
        &KEY[17..]
    );
    let config = folder.file("vehicle.toml", &text);
    let output = Command::new(env!("CARGO_BIN_EXE_tautline"))
        .args(["vehicle", "--config", &config])
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    for expected in [
        "5 settings are wrong",
        "cannot read key file",
        "clip and camera are both given",
        "references = 99",
        "\"desk:port\" is not a switchboard address",
        "'O', character 17 of 64",
    ] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    let key = folder.key("operator.key");
    let operator = ["operator", "--key", &key, "--switchboard-key", KEY];
    let words = complaint(&[&operator[..], &["--switchboard", "https://desk"]].concat());
    assert!(words.contains("is not a switchboard address"), "{words}");
    let (_, words) = tautline(&["emulate", "--links", "nope.toml"]);
    assert!(words.contains("nope.toml: No such file") && words.contains("lte-town"), "{words}");
}

#[test]
fn each_process_reports_all_its_wrong_settings_at_once() {
    let other = "a".repeat(64);
    let vehicle = format!(
        "switchboard_key = \"{KEY}\"\noperators = [\"{KEY}\"]\nreferences = 0\n\
         [camera_geometry]\nheight_m = 0\npitch_degrees = 90\nfield_of_view_degrees = 60\n\
         to_front_m = 1\nto_rear_axle_m = 1\nwidth_m = 1.8\nwheelbase_m = 99\n\
         [[topics]]\ntopic = \"\"\nlisten = \"./a\"\nrate_cap_kbps = 0\ndeadline_ms = 0\n\
         [transport]\nping_interval_ms = 1\nmedia_deadline_ms = 0\n[transport.rate]\ninitial_kbps = 1\n"
    );
    let all = [
        (
            "guard",
            "vehicle = \"./a.sock\"\nmachine = \"./a.sock\"\n[guard.latency]\nproposal_timeout_ms = 1\n\
             loop_age_full_ms = 900\n[guard.machine]\nwheelbase_m = 99.0\n[blackbox]\nbefore_s = 0\nsync_ms = 1\n"
                .to_owned(),
            &[
                "vehicle and machine have the same address",
                "proposal_timeout_ms = 1",
                "loop_age_full_ms = 900 must be at most",
                "wheelbase_m = 99",
                "before_s = 0",
                "sync_ms = 1",
                "key must name the file",
            ][..],
        ),
        (
            "machine",
            "control_timeout_ms = 1\nslope = 2.0\nbrake_share = -1.0\nslip = 0.7\nnoise = 1.0\n".to_owned(),
            &["control_timeout_ms = 1:", "slope = 2:", "brake_share = -1:", "slip = 0.7:", "noise = 1:"],
        ),
        (
            "vehicle",
            vehicle,
            &[
                "references = 0",
                "height_m = 0",
                "pitch_degrees = 90",
                "wheelbase_m = 99",
                "topics.topic has 0 bytes: must be 1 to 255",
                "rate_cap_kbps = 0",
                "topics.deadline_ms = 0",
                "ping_interval_ms",
                "media_deadline_ms",
                "initial_kbps",
                "cannot read key file",
            ],
        ),
        (
            "operator",
            "vehicle = \"\"\nreorder_ms = 900\nconsole_certificate = \"a.pem\"\nmetrics = \"0.0.0.0:1\"\n".to_owned(),
            &[
                "vehicle is empty",
                "reorder_ms = 900",
                "needs console_certificate_key",
                "everybody who reaches this address",
                "switchboard_key is missing",
                "cannot read key file",
            ],
        ),
        (
            "switchboard",
            format!(
                "ping_interval_ms = 0\nlatency_mib = 0\n[vehicles]\na = \"{KEY}\"\n[operators]\nb = \"{KEY}\"\n\
                 [[relays]]\nkey = \"{KEY}\"\naddresses = []\n[[relays]]\nkey = \"{KEY}\"\naddresses = [\"0.0.0.0:7\"]\n"
            ),
            &[
                "ping_interval_ms = 0",
                "latency_mib = 0",
                "have the same key",
                "0 addresses",
                "is listed twice",
                "0.0.0.0:7 is not a reachable address",
                "cannot read key file",
            ],
        ),
        (
            "relay",
            format!("listen = []\nleases_max = 0\nlease_mbps = 0\nswitchboard_key = \"{other}\"\n"),
            &["listen has 0", "leases_max = 0", "lease_mbps = 0", "cannot read key file"],
        ),
    ];
    let folder = Folder::new();
    for (role, text, faults) in &all {
        let config = folder.file(&format!("{role}.toml"), text);
        let output = Command::new(env!("CARGO_BIN_EXE_tautline"))
            .args([role, "--config", &config])
            .env_remove("TAUTLINE_CONFIG")
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{role}: {words}");
        for fault in *faults {
            assert_eq!(words.matches(fault).count(), 1, "{role}: {fault}: {words}");
        }
    }
    // `tautline up` shows the faults of each.
    let (_, words) = tautline(&["up", folder.0.path().to_str().unwrap()]);
    assert!(words.contains("settings are wrong"), "{words}");
}
