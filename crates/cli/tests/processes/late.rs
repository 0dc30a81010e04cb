//! Resources missing at the start: each process waits for them, logs the reason once, and ends on
//! request.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// A process with settings of its own, and its log.
struct Late {
    role: &'static str,
    child: Child,
    log: PathBuf,
}

impl Late {
    fn start(folder: &tempfile::TempDir, role: &'static str, settings: &str) -> Self {
        let at = |ending: &str| folder.path().join(format!("{role}.{ending}"));
        let key = at("key");
        if !key.exists() {
            tautline().args(["keys", "new"]).arg(&key).output().unwrap();
        }
        std::fs::write(at("toml"), settings).unwrap();
        let mut command = tautline();
        command.arg(role).arg("--config").arg(at("toml")).env("TAUTLINE_LOG", "warn");
        let log = at("log");
        command.stdout(std::process::Stdio::null()).stderr(File::create(&log).unwrap());
        Self { role, child: command.spawn().unwrap(), log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn asked_to_end(&mut self) -> bool {
        let id = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        self.child.wait().unwrap().success()
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tautline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tautline"));
    command.env_remove("TAUTLINE_CONFIG");
    command
}

#[test]
fn a_resource_missing_at_start_ends_nothing_and_is_logged_once() {
    let folder = tempfile::tempdir().unwrap();
    let common = format!(
        "switchboard = \"switchboard.invalid\"\nswitchboard_key = \"{KEY}\"\nlinks = [\"wwan-never\", \"192.0.2.1:0\"]\n"
    );
    // No interface of this machine has the address 192.0.2.1.
    let vehicle = format!(
        "{common}operators = [\"{KEY}\"]\ncamera = \"/dev/video-never\"\nguard = \"./none/vehicle.sock\"\n\
         metrics = \"192.0.2.1:9100\"\n[[topics]]\ntopic = \"/scan\"\nlisten = \"./none/scan.sock\"\nrate_cap_kbps = 100\n"
    );
    let operator = format!("{common}console = \"192.0.2.1:8443\"\ntls = \"192.0.2.1:8444\"\n");
    let switchboard = "listen = \"192.0.2.1:7443\"\n".to_owned();
    let relay = format!("switchboard_key = \"{KEY}\"\nlisten = [\"192.0.2.1:7444\"]\n");
    let guard = format!(
        "vehicle = \"192.0.2.1:7500\"\nmachine = \"192.0.2.1:7501\"\n{}",
        include_str!("../../src/presets/simulated.toml")
    );
    let car = "guard = \"./none/machine.sock\"\nmetrics = \"192.0.2.1:9104\"\n".to_owned();
    let mut all = [
        ("vehicle", vehicle),
        ("operator", operator),
        ("switchboard", switchboard),
        ("relay", relay),
        ("guard", guard),
        ("machine", car),
    ]
    .map(|(role, settings)| Late::start(&folder, role, &settings));
    std::thread::sleep(Duration::from_millis(2_500));
    for late in &mut all {
        let (role, ended) = (late.role, late.child.try_wait().unwrap());
        assert!(ended.is_none(), "{role} ended ({ended:?}): {}", late.log());
    }
    for (role, reasons) in [
        (
            "vehicle",
            &["interface wwan-never: No such device", "192.0.2.1:0: Cannot assign", "source lost"]
                [..],
        ),
        (
            "vehicle",
            &["metrics cannot be served on 192.0.2.1:9100", "none/scan.sock: No such file"],
        ),
        ("operator", &["the console cannot listen on 192.0.2.1:8443: Cannot assign"]),
        ("switchboard", &["cannot listen on 192.0.2.1:7443"]),
        ("relay", &["192.0.2.1:7444"]),
        ("guard", &["cannot listen on 192.0.2.1:7500: Cannot assign"]),
    ] {
        let log = all.iter().find(|late| late.role == role).unwrap().log();
        for reason in reasons {
            assert_eq!(log.matches(reason).count(), 1, "{role}: {reason}: {log}");
        }
    }
    // A vehicle waits for a status of its machine.
    for late in all.iter_mut().filter(|late| late.role != "vehicle") {
        assert!(late.asked_to_end(), "{}: {}", late.role, late.log());
    }
}

const KEY: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
