//! The vehicle and the switchboard as processes of their own, with the test as operator.

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tautline_guard::Mode;
use tautline_net::free_port;
use tautline_transport::crypto::Identity;

use crate::faults::operator::Operator;
use crate::faults::rig::{Limits, Rig, Setup, signal, tautline, tautline_in};

/// Addresses of the processes in the network.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Address of the operator and the switchboard.
    pub(crate) here: Ipv4Addr,
    /// Local address and port of the vehicle's link.
    pub(crate) vehicle_at: &'static str,
    /// Process in whose network the vehicle runs; `None` for the test's own.
    pub(crate) network_of: Option<u32>,
    /// Port at which the operator listens for a link over TLS.
    pub(crate) tls_port: Option<u16>,
    /// Relay between vehicle and operator; `None` without one.
    pub(crate) relay: Option<Relay>,
    /// Folder of the switchboard's state and latency files; `None` for one with the other files.
    pub(crate) state_at: Option<PathBuf>,
}

impl Default for Place {
    fn default() -> Self {
        let here = Ipv4Addr::LOCALHOST;
        let vehicle_at = "127.0.0.1:0";
        let (network_of, tls_port, relay, state_at) = (None, None, None, None);
        Self { here, vehicle_at, network_of, tls_port, relay, state_at }
    }
}

/// Ports of an emulated link between vehicle and operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relay {
    /// Port at which the link listens for the vehicle.
    pub(crate) from: u16,
    /// Port of the operator.
    pub(crate) to: u16,
}

/// Vehicle and switchboard as real processes, and an operator played by the test who sees every
/// complete picture.
pub(crate) struct Remote {
    pub(crate) operator: Operator,
    pub(crate) vehicle: Child,
    pub(crate) switchboard: Child,
    /// Emulated link between vehicle and operator; `None` without one.
    pub(crate) relay: Option<Child>,
    /// Address of the switchboard.
    pub(crate) address: String,
    folder: PathBuf,
    settings: PathBuf,
    known: PathBuf,
}

impl Rig<Remote> {
    /// Starts switchboard, guard, car and vehicle, with these settings in addition to the vehicle's
    /// ordinary ones.
    pub(crate) fn remote(settings: &str) -> Self {
        Self::remote_with(settings, &Setup::default())
    }

    /// Starts all processes with the late limits, for a test of drives that must not stop.
    pub(crate) fn patient() -> Self {
        Self::remote_with("", &Setup { limits: Limits::Late, ..Setup::default() })
    }

    /// Starts all processes as [`patient`](Self::patient) does, at another place.
    pub(crate) fn patient_at(place: &Place) -> Self {
        let network_of = place.network_of;
        Self::remote_at(place, "", &Setup { limits: Limits::Late, network_of, ..Setup::default() })
    }

    fn remote_with(settings: &str, setup: &Setup) -> Self {
        Self::remote_at(&Place::default(), settings, setup)
    }

    pub(crate) fn remote_at(place: &Place, settings: &str, setup: &Setup) -> Self {
        let setup = Setup { car: Some(Vec::new()), ..setup.clone() };
        let rig = Self::with(&setup, |folder| Remote::start(folder, settings, place));
        rig.vehicle.operator.eventually("pictures", |operator| operator.pictures() > 3);
        rig
    }

    /// Arms and applies throttle until the car is faster than `speed` m/s. A machine that is too
    /// busy for young pictures may stop it, and is retried.
    pub(crate) fn drive(&self, speed: f64) {
        let operator = &self.vehicle.operator;
        for _ in 0..10 {
            operator.arm();
            operator.throttle(1.0);
            for _ in 0..1_000 {
                if self.car("speed_metres_per_second") > speed {
                    return;
                }
                if operator.guard().is_some_and(|guard| guard.mode == Mode::Held) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        panic!("it does not drive: {:?}, {:?}", operator.guard(), self.cause());
    }
}

impl Remote {
    fn start(folder: &Path, settings: &str, place: &Place) -> Self {
        let [switchboard, vehicle, operator, supervisor] =
            [1, 2, 3, 4].map(|seed| Identity::from_seed(&[seed; 32]));
        let key = |name: &str, identity: &Identity| {
            let file = folder.join(name);
            let opened =
                std::fs::File::options().write(true).create_new(true).mode(0o600).open(&file);
            opened
                .expect("new")
                .write_all(identity.to_text().as_bytes())
                .expect("a folder of ours");
            file
        };
        let at = free_port(place.here.into()).expect("a port").to_string();
        let write = |name: &str, text: String| {
            let file = folder.join(name);
            std::fs::write(&file, text).expect("a folder of ours");
            file
        };
        let known = format!(
            "listen = \"{at}\"\nkey = {:?}\n[vehicles]\n{NAME} = \"{}\"\n[operators]\nanna = \"{}\"\n\
             [supervisors]\neva = \"{}\"\n",
            key("switchboard.key", &switchboard),
            vehicle.public(),
            operator.public(),
            supervisor.public()
        );
        let state = place.state_at.as_ref().map(|state| {
            format!("state = {state:?}\nlatency = {:?}\n", state.with_file_name("latency"))
        });
        let known = write("switchboard.toml", state.unwrap_or_default() + &known);
        let text = format!(
            "name = \"{NAME}\"\nkey = {:?}\nswitchboard = \"{at}\"\nswitchboard_key = \"{}\"\n\
             operators = [\"{}\"]\nlinks = [\"{}\"]\nguard = {:?}\norders = \"orders\"\n\
             pictures_per_second = 20.0\n{settings}\n[supervisors]\neva = \"{}\"\n",
            key("vehicle.key", &vehicle),
            switchboard.public(),
            operator.public(),
            place.vehicle_at,
            folder.join("vehicle.sock"),
            supervisor.public(),
        );
        let settings = write("vehicle.toml", text);
        let text = format!(
            "key = {:?}\nswitchboard = \"{at}\"\nswitchboard_key = \"{}\"\n[vehicles]\n{NAME} = \"{}\"\n",
            key("supervisor.key", &supervisor),
            switchboard.public(),
            vehicle.public(),
        );
        write("supervisor.toml", text);
        Self {
            switchboard: start(tautline(), "switchboard", &known),
            vehicle: start(tautline_in(place.network_of), "vehicle", &settings),
            relay: place.relay.map(|relay| emulate(place.here, relay)),
            operator: Operator::start(operator, &vehicle, at.clone(), switchboard.public(), place),
            address: at,
            folder: folder.to_owned(),
            settings,
            known,
        }
    }

    /// Returns the log of the vehicle or the switchboard.
    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(format!("{name}.log"))).expect("a log")
    }

    /// Starts the switchboard again, with its settings and what it has kept.
    pub(crate) fn restart_switchboard(&mut self) {
        self.switchboard = start(tautline(), "switchboard", &self.known);
    }

    /// Returns what `tautline switchboard who` prints.
    pub(crate) fn who(&self) -> String {
        let asked =
            tautline().args(["switchboard", "--config"]).arg(&self.known).arg("who").output();
        String::from_utf8_lossy(&asked.expect("our own binary").stdout).into_owned()
    }

    /// Returns the result of `tautline switchboard invite` for a vehicle of this name.
    pub(crate) fn invite(&self, name: &str) -> std::process::Output {
        let mut asked = tautline();
        asked.args(["switchboard", "--config"]).arg(&self.known);
        asked.args(["invite", "--role", "vehicle", "--name", name]);
        asked.output().expect("our own binary")
    }

    /// Starts another process with the vehicle's own settings; the caller may read its standard
    /// error.
    pub(crate) fn another(&self) -> Another {
        let another = tautline()
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .arg("vehicle")
            .arg("--config")
            .arg(&self.settings)
            .spawn();
        Another(another.expect("our own binary"))
    }

    /// Returns the ids of the vehicle's child processes, which read a clip.
    pub(crate) fn children(&self) -> Vec<u32> {
        let tasks =
            std::fs::read_dir(format!("/proc/{}/task", self.vehicle.id())).expect("it runs");
        let lists = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
        let lists: Vec<String> = lists.collect();
        lists
            .iter()
            .flat_map(|list| list.split_whitespace())
            .filter_map(|id| id.parse().ok())
            .collect()
    }
}

/// A process that is killed when it is dropped, as when its test fails.
pub(crate) struct Another(pub(crate) Child);

impl Drop for Another {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(mut command: Command, name: &str, settings: &Path) -> Child {
    let log = settings.with_file_name(format!("{name}.log"));
    let log = std::fs::File::options().create(true).append(true).open(log);
    command.stdout(Stdio::null()).stderr(log.expect("a folder of ours"));
    command.arg(name).arg("--config").arg(settings).spawn().expect("our own binary")
}

impl Drop for Remote {
    fn drop(&mut self) {
        for child in [&mut self.vehicle, &mut self.switchboard].into_iter().chain(&mut self.relay) {
            signal(child.id(), "CONT");
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts the emulated link of a local network.
fn emulate(here: Ipv4Addr, relay: Relay) -> Child {
    let mut command = tautline();
    command.args(["emulate", "--preset", "lan", "--links", "1", "--listen"]);
    command.arg(format!("{here}:{}", relay.from)).arg("--target");
    command.arg(format!("{here}:{}", relay.to)).stdout(Stdio::null());
    command.spawn().expect("our own binary")
}

/// Name of the vehicle.
pub(crate) const NAME: &str = "rover";
