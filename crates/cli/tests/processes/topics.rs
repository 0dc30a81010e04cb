//! A topic of another program from end to end, by real processes.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tautline_net::free_port;

use crate::setup::{Running, init, tautline};
use crate::tries::tried;

#[test]
fn a_topic_of_the_operators_program_reaches_the_vehicles() {
    tried(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let free = free_port(Ipv4Addr::LOCALHOST.into()).expect("a port");
        let output = init(folder.path(), &["mine", "--switchboard", &free.to_string()]);
        assert!(output.status.success(), "{output:?}");
        // Paths in the settings are relative to them.
        let listen =
            "\n[[topics]]\ntopic = \"/goal\"\nlisten = \"./goal.sock\"\nrate_cap_kbps = 20\n";
        append(&folder.path().join("mine/operator/operator.toml"), listen);
        let deliver = "\n[deliver]\n\"/goal\" = \"./goal.sock\"\n";
        append(&folder.path().join("mine/vehicle/vehicle.toml"), deliver);
        let program = UnixDatagram::bind(folder.path().join("mine/vehicle/goal.sock"));
        let program = program.expect("a path of ours");
        program.set_read_timeout(Some(Duration::from_millis(50))).expect("a time limit");
        let mut running = Running(Vec::new());
        for (role, more) in [
            ("switchboard", &[][..]),
            ("vehicle", &[]),
            ("operator", &["--console", "127.0.0.1:0", "--link", "127.0.0.1:0"]),
        ] {
            let mut command = tautline(folder.path());
            command.args([role, "--config", &format!("mine/{role}/{role}.toml")]).args(more);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            running.0.push(command.spawn().expect("our own binary"));
        }
        let goal = UnixDatagram::unbound().expect("a socket");
        let mut unit = [0; 64];
        let length = (0..600).find_map(|number: u32| {
            let to = folder.path().join("mine/operator/goal.sock");
            let _ = goal.send_to(format!("goal {number}").as_bytes(), to);
            program.recv(&mut unit).ok()
        });
        let unit = &unit[..length.expect("a unit within half a minute")];
        assert!(unit.starts_with(b"goal "), "{unit:?}");
    });
}

#[test]
fn a_topic_of_another_program_is_carried_recorded_and_handed_on() {
    tried(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let free = free_port(Ipv4Addr::LOCALHOST.into()).expect("a port");
        let output = init(folder.path(), &["mine", "--switchboard", &free.to_string()]);
        assert!(output.status.success(), "{output:?}");
        let [said, heard] = ["said.sock", "heard.sock"].map(|name| folder.path().join(name));
        let program = UnixDatagram::bind(&heard).expect("a path of ours");
        program.set_read_timeout(Some(Duration::from_millis(50))).expect("a time limit");
        append(
            &folder.path().join("mine/vehicle/vehicle.toml"),
            &format!(
                "\n[[topics]]\ntopic = \"/scan\"\nlisten = {said:?}\nrate_cap_kbps = 200\n\
                 message_encoding = \"json\"\nschema_name = \"Scan\"\nschema_encoding = \"jsonschema\"\n\
                 schema = \"scan.json\"\n"
            ),
        );
        fs::write(folder.path().join("mine/vehicle/scan.json"), SCHEMA).expect("room");
        let deliver = format!("\n[deliver]\n\"/scan\" = {heard:?}\n");
        append(&folder.path().join("mine/operator/operator.toml"), &deliver);
        let mut running = Running(Vec::new());
        let mut start = |role: &str, more: &[&str]| {
            let mut command = tautline(folder.path());
            command.args([role, "--config", &format!("mine/{role}/{role}.toml")]).args(more);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            running.0.push(command.spawn().expect("our own binary"));
        };
        start("switchboard", &[]);
        start("vehicle", &[]);
        let record = ["--record", "drive", "--console", "127.0.0.1:0", "--link", "127.0.0.1:0"];
        start("operator", &record);
        let scan = UnixDatagram::unbound().expect("a socket");
        let mut unit = [0; 64];
        let length = (0..600).find_map(|number: u32| {
            // Before the vehicle listens the datagram has no receiver, and before the session it is
            // refused.
            let _ = scan.send_to(format!("{{\"number\":{number}}}").as_bytes(), &said);
            program.recv(&mut unit).ok()
        });
        let unit = &unit[..length.expect("a unit within half a minute")];
        assert!(unit.starts_with(b"{\"number\":"), "{unit:?}");
        let operator = &mut running.0[2];
        let asked = Command::new("kill").arg(operator.id().to_string()).status();
        assert!(asked.expect("kill").success() && operator.wait().expect("it ends").success());
        let file = fs::read(folder.path().join("drive/channels.mcap")).expect("a recording");
        let has = |words: &[u8]| file.windows(words.len()).any(|found| found == words);
        for words in [&b"/scan"[..], b"jsonschema", SCHEMA, unit, b"/vehicle/telemetry"] {
            assert!(has(words), "no {:?}", String::from_utf8_lossy(words));
        }
        assert!(file.ends_with(b"\x89MCAP0\r\n"), "it was closed");
    });
}

fn append(file: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(file).expect("settings");
    file.write_all(text.as_bytes()).expect("room");
}

const SCHEMA: &[u8] = b"{\"type\":\"object\",\"title\":\"Scan\"}";
