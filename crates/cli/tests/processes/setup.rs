//! Set-up: the output of `tautline init` drives unchanged, from any folder. Also the doctor, and
//! notifications to a service manager.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tautline_net::clock::Clock;
use tautline_net::free_port;

#[test]
fn settings_written_by_init_connect_vehicle_and_operator() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = free_port(Ipv4Addr::LOCALHOST.into()).expect("a port");
    let output = init(folder.path(), &["mine", "--switchboard", &free.to_string()]);
    assert!(output.status.success(), "{output:?}");
    let steps = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut running = Running(Vec::new());
    let mut console = String::new();
    // Each command as printed, except for ports that may be in use.
    for line in steps.lines().filter_map(|line| line.strip_prefix("  tautline ")) {
        let mut words: Vec<&str> = line.split(' ').collect();
        if words[0] == "operator" {
            words.extend(["--console", "127.0.0.1:0", "--link", "127.0.0.1:0"]);
        }
        let mut command = tautline(folder.path());
        command.args(&words).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("our own binary");
        let printed = child.stdout.take().expect("piped");
        running.0.push(child);
        if words[0] == "operator" {
            let mut lines = BufReader::new(printed).lines().map_while(Result::ok);
            let open = lines.find_map(|line| line.strip_prefix("Open  http://").map(str::to_owned));
            let open = open.expect("an address");
            console = open.split_once('/').expect("a path").0.to_owned();
        }
    }
    assert_eq!(running.0.len(), 5, "{steps}");
    let clock = Clock::start();
    let begun = clock.now();
    while !page(&console).lines().any(|line| delivered(line) > 0) {
        assert!(clock.now().since(begun) < Duration::from_secs(20), "no picture comes");
        std::thread::sleep(Duration::from_millis(100));
    }
    for role in ["vehicle", "operator"] {
        let output = doctor(folder.path(), role);
        assert!(output.status.success(), "{output:?}");
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        let found = |what: &str| words.lines().any(|line| line.starts_with(what));
        assert!(found("ok    key ") && found("ok    switchboard "), "{words}");
        assert!(words.contains("over UDP"), "{words}");
        assert!(words.contains("packets of 1500 bytes come to the switchboard whole"), "{words}");
    }
}

#[test]
fn an_operator_waits_for_a_vehicle_that_another_one_drives() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = free_port(Ipv4Addr::LOCALHOST.into()).expect("a port");
    assert!(init(folder.path(), &["mine", "--switchboard", &free.to_string()]).status.success());
    let key = tautline(folder.path()).args(["keys", "new", "bert.key"]).output().expect("a key");
    let bert = format!("bert={}", String::from_utf8_lossy(&key.stdout).trim());
    let mut running = Running(Vec::new());
    let mut start = |role: &str, more: &[&str]| {
        let log = folder.path().join(format!("{}.log", running.0.len()));
        let mut command = tautline(folder.path());
        command.args([role, "--config", &format!("mine/{role}/{role}.toml")]).args(more);
        command.env("TAUTLINE_LOG", "info").stdout(Stdio::null());
        let child = command.stderr(File::create(&log).expect("a log")).spawn();
        running.0.push(child.expect("our own binary"));
        log
    };
    start("switchboard", &["--operator", &bert, "--lease-grace-ms", "200"]);
    start("vehicle", &[]);
    let anywhere = ["--console", "127.0.0.1:0", "--link", "127.0.0.1:0"];
    await_words(&start("operator", &anywhere), "introduced");
    let mut other = vec!["--name", "bert", "--key", "bert.key"];
    other.extend(anywhere);
    let log = start("operator", &other);
    await_words(&log, "vehicle car-1 is driven by operator-1");
    let first = &mut running.0[2];
    first.kill().and_then(|()| first.wait()).expect("it runs");
    await_words(&log, "introduced");
}

#[test]
fn a_switchboard_reloads_its_lists_on_sighup() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = free_port(Ipv4Addr::LOCALHOST.into()).expect("a port");
    assert!(init(folder.path(), &["mine", "--switchboard", &free.to_string()]).status.success());
    let log = folder.path().join("log");
    let settings = folder.path().join("mine/switchboard/switchboard.toml");
    let mut command = tautline(folder.path());
    command.args(["switchboard", "--config"]).arg(&settings).env("TAUTLINE_LOG", "info");
    let child = command.stderr(File::create(&log).expect("a log")).spawn();
    let running = Running(vec![child.expect("our own binary")]);
    let hang_up = || {
        let id = running.0[0].id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().expect("kill").success());
    };
    await_words(&log, "the switchboard is listening");
    let good = std::fs::read_to_string(&settings).expect("settings");
    std::fs::write(&settings, good.replace("[operators]", "[operators")).expect("room");
    hang_up();
    await_words(&log, "the settings stay as they were");
    std::fs::write(&settings, good.replace("operator-1", "anna")).expect("room");
    hang_up();
    await_words(&log, "no longer listed operator=\"operator-1\"");
    await_words(&log, "the settings were read again vehicles=1 operators=1");
}

#[test]
fn a_code_lets_one_machine_in_and_believes_no_other_switchboard() {
    let folder = tempfile::tempdir().expect("a folder");
    let board = |name: &str| {
        let free = free_port(Ipv4Addr::LOCALHOST.into()).expect("a port");
        assert!(init(folder.path(), &[name, "--switchboard", &free.to_string()]).status.success());
        let settings = format!("{name}/switchboard/switchboard.toml");
        let log = folder.path().join(format!("{name}.log"));
        let mut command = tautline(folder.path());
        command.args(["switchboard", "--config", &settings]).env("TAUTLINE_LOG", "info");
        let child = command.stderr(File::create(&log).expect("a log")).spawn();
        await_words(&log, "the switchboard is listening");
        (free.to_string(), settings, child.expect("our own binary"))
    };
    let order = |settings: &str, words: &[&str]| {
        let mut command = tautline(folder.path());
        command.arg("switchboard").args(words).args(["--config", settings]);
        let output = command.output().expect("our own binary");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let enroll = |name: &str, address: &str, code: &str| {
        let mut command = tautline(folder.path());
        command.args(["enroll", name, "--switchboard", address]).stdin(Stdio::piped());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("our own binary");
        child.stdin.take().expect("piped").write_all(code.as_bytes()).expect("it listens");
        child.wait_with_output().expect("it ends")
    };
    let (address, settings, first) = board("mine");
    let (elsewhere, _, second) = board("other");
    let _running = Running(vec![first, second]);
    let invite = ["invite", "--role", "vehicle", "--name", "truck"];
    let code = order(&settings, &invite);
    // A man in the middle has another key, and learns nothing of the code.
    let words = complaint(&enroll("truck", &elsewhere, &code));
    assert!(words.contains("which does not match the code"), "{words}");
    let words = complaint(&enroll("truck", &address, &code.replacen(['0', '1', '2'], "3", 1)[1..]));
    assert!(words.contains("a code has 28 letters") || words.contains("mistyped"), "{words}");
    let output = enroll("truck", &address, &code);
    assert!(output.status.success(), "{output:?}");
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(words.contains("This machine is vehicle truck"), "{words}");
    let words = complaint(&enroll("thief", &address, &code));
    assert!(words.contains("this code is not valid"), "{words}");
    let log = folder.path().join("truck.log");
    let mut command = tautline(folder.path());
    command.args(["vehicle", "--config", "truck/vehicle.toml"]).env("TAUTLINE_LOG", "info");
    let child = command.stderr(File::create(&log).expect("a log")).stdout(Stdio::null()).spawn();
    let _vehicle = Running(vec![child.expect("our own binary")]);
    await_words(&log, "registered");
    let who = order(&settings, &["who"]);
    assert!(who.contains("vehicle   truck  connected from"), "{who}");
    order(&settings, &["revoke", "--role", "vehicle", "--name", "truck"]);
    await_words(&log, "this key is no longer listed");
}

#[test]
fn the_doctor_fails_where_no_switchboard_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = free_port(Ipv4Addr::LOCALHOST.into()).expect("a port");
    assert!(init(folder.path(), &["mine", "--switchboard", &free.to_string()]).status.success());
    let output = doctor(folder.path(), "operator");
    let words = complaint(&output);
    assert!(words.contains("2 things are to be mended"), "{words}");
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    let to_mend = words.lines().filter(|line| line.starts_with("mend "));
    let to_mend: Vec<_> = to_mend.map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(to_mend, [Some("switchboard"), Some("link")], "{words}");
}

#[test]
fn a_folder_is_the_users_alone_and_never_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(init(folder.path(), &[]).status.success());
    for name in ["tautline", "tautline/vehicle", "tautline/vehicle/vehicle.key"] {
        let mode = std::fs::metadata(folder.path().join(name)).expect(name).permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
    let key = folder.path().join("tautline/operator/operator.key");
    let before = std::fs::read(&key).expect("a key");
    let words = complaint(&init(folder.path(), &[]));
    assert!(words.contains("tautline exists already and is left as it is"), "{words}");
    assert_eq!(std::fs::read(&key).expect("still there"), before);
}

#[test]
fn a_refused_init_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = "x".repeat(65);
    for (arguments, wrong) in [
        (["--switchboard", "https://host"], "a name or an address"),
        (["--vehicle", long.as_str()], "1 to 64 bytes"),
        (["--operator", ""], "1 to 64 bytes"),
    ] {
        let words = complaint(&init(folder.path(), &arguments));
        assert!(words.contains(wrong), "{words}");
        assert!(!folder.path().join("tautline").exists(), "{arguments:?}");
    }
}

#[test]
fn a_relay_is_named_to_the_switchboard() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = init(folder.path(), &["--relay", "2001:db8::9", "--vehicle", "Käfer \"7\""]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(folder.path().join("tautline/switchboard/switchboard.toml"));
    let text = text.expect("settings");
    assert!(text.contains("[\"[2001:db8::9]:7444\", \"[2001:db8::9]:7445\"]"), "{text}");
    let steps = String::from_utf8_lossy(&output.stdout);
    assert!(steps.contains("tautline relay --config tautline/relay/relay.toml"), "{steps}");
}

#[test]
fn a_service_manager_hears_that_a_process_is_up_lives_and_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = tautline(folder.path()).args(["keys", "new", "switchboard.key"]).output();
    assert!(key.expect("our own binary").status.success());
    let manager = UnixDatagram::bind(folder.path().join("manager")).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
    let mut command = tautline(folder.path());
    command.args(["switchboard", "--listen", "127.0.0.1:0", "--key", "switchboard.key"]);
    command.env("NOTIFY_SOCKET", folder.path().join("manager")).env("WATCHDOG_USEC", "150000");
    command.env_remove("WATCHDOG_PID").stderr(Stdio::null());
    let running = Running(vec![command.spawn().expect("our own binary")]);
    let heard = || {
        let mut bytes = [0; 256];
        let length = manager.recv(&mut bytes).expect("a word");
        String::from_utf8_lossy(&bytes[..length]).trim().to_owned()
    };
    assert_eq!([heard(), heard(), heard()], ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]);
    let id = running.0[0].id().to_string();
    assert!(Command::new("kill").arg(id).status().expect("kill").success());
    let last = std::iter::repeat_with(heard).find(|word| word != "WATCHDOG=1");
    assert_eq!(last.as_deref(), Some("STOPPING=1"));
}

fn await_words(log: &Path, words: &str) {
    let clock = Clock::start();
    let begun = clock.now();
    loop {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        if said.contains(words) {
            return;
        }
        assert!(clock.now().since(begun) < Duration::from_secs(20), "not {words:?}: {said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Processes that end on drop.
pub(crate) struct Running(pub(crate) Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn tautline(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tautline"));
    command.current_dir(folder).env_remove("TAUTLINE_CONFIG");
    command
}

pub(crate) fn init(folder: &Path, arguments: &[&str]) -> Output {
    tautline(folder).arg("init").args(arguments).output().expect("our own binary")
}

fn doctor(folder: &Path, role: &str) -> Output {
    let file = format!("mine/{role}/{role}.toml");
    let mut command = tautline(folder);
    command.args(["doctor", &format!("--{role}"), &file]).output().expect("our own binary")
}

/// Returns the single line of a failure.
fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(words.lines().count(), 1, "not one line: {words}");
    words
}

/// Returns the operator's metrics; empty while it does not answer.
fn page(console: &str) -> String {
    let mut text = String::new();
    let Ok(mut stream) = TcpStream::connect(console) else { return text };
    let asked = write!(stream, "GET /metrics HTTP/1.0\r\nHost: {console}\r\n\r\n");
    if asked.is_ok() && stream.read_to_string(&mut text).is_err() {
        text.clear();
    }
    text
}

fn delivered(line: &str) -> u64 {
    let count = line.split_once("channel_units_total{channel=\"video\",what=\"delivered\"} ");
    count.and_then(|(_, count)| count.trim().parse().ok()).unwrap_or(0)
}
