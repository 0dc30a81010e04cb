//! `tautline init`.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Args;
use tautline_transport::crypto::PublicKey;
use tautline_vehicle::SimulatedMachine;

use crate::owner::Owner;
use crate::{keys, settings};

/// Write keys and settings for all machines, one folder each, and print the next steps.
///
/// Without options, all run on this machine, for a trial.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Folder to create; it must not exist yet, and only you will be able to read it
    #[arg(default_value = "tautline")]
    folder: PathBuf,
    /// Address at which vehicle and operator reach the switchboard: a name or an IP address, with
    /// its port if that is not 7443
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    switchboard: String,
    /// Address at which they reach a relay, on UDP ports 7444 and 7445 [default: no relay]
    #[arg(long, value_name = "IP")]
    relay: Option<IpAddr>,
    /// Name of the vehicle
    #[arg(long, value_name = "NAME", default_value = "car-1")]
    vehicle: String,
    /// Write no settings for the vehicle: it creates its own key, and is admitted by a code
    /// (`tautline up --invite`)
    #[arg(long)]
    by_code: bool,
    /// Name of the operator
    #[arg(long, value_name = "NAME", default_value = "operator-1")]
    operator: String,
    #[command(flatten)]
    owner: Owner,
}

/// Host and port of a switchboard, in a person's notation.
pub(crate) struct Host {
    name: String,
    port: u16,
}

impl Init {
    /// Writes everything or nothing, and prints the commands to run next.
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        let host = Host::parse(&self.switchboard)?;
        if !self.by_code {
            self.owner = self.owner.clone().ask()?;
        }
        let (_, is_dead_man_required) = self.owner.settings()?;
        let shown = self.folder.display();
        if let Err(error) = DirBuilder::new().mode(0o700).create(&self.folder) {
            ensure!(
                error.kind() != ErrorKind::AlreadyExists,
                "{shown} exists already and is left as it is; choose another name"
            );
            return Err(error).with_context(|| format!("cannot make the folder {shown}"));
        }
        if let Err(error) = self.write(&host) {
            // The folder was created here, so it contains nothing else.
            let _ = fs::remove_dir_all(&self.folder);
            return Err(error);
        }
        answer!("{}", self.next_steps(&host).trim_end());
        if !self.by_code {
            if let Some(words) = self.owner.blanks_words()? {
                answer!("{words}");
            }
            answer!("{}", dead_man_words(is_dead_man_required));
        }
        Ok(())
    }

    fn write(&self, host: &Host) -> anyhow::Result<()> {
        let key = |role: &str| -> anyhow::Result<PublicKey> {
            let folder = self.folder.join(role);
            let made = DirBuilder::new().mode(0o700).create(&folder);
            made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
            keys::create(&folder.join(format!("{role}.key")))
        };
        let write = |file: &str, text: String| -> anyhow::Result<PathBuf> {
            let file = self.folder.join(file);
            let written = fs::write(&file, text);
            written.with_context(|| format!("cannot write {}", file.display()))?;
            Ok(file)
        };
        let (switchboard, operator) = (key("switchboard")?, key("operator")?);
        let vehicle = if self.by_code { None } else { Some(key("vehicle")?) };
        let relay = self.relay.map(|address| key("relay").map(|key| (address, key))).transpose()?;
        let vehicles = listed(vehicle.map(|vehicle| (&*self.vehicle, vehicle)));
        let operators = listed([(&*self.operator, operator)]);
        let mut text = format!(
            "# Brings vehicle and operator together; both reach it at TCP and UDP port {port}, and at the next by UDP.\n\
             # Every setting: `tautline switchboard --help`.\n\
             listen = \"0.0.0.0:{port}\"\nkey = \"switchboard.key\"\n\
             # Keeps leases over a restart; a service has /var/lib/tautline/switchboard in its place.\n\
             state = \"state\"\n\n\
             [vehicles]\n{vehicles}\n[operators]\n{operators}",
            port = host.port
        );
        if let Some((address, key)) = &relay {
            let [one, other] = RELAY_PORTS.map(|port| SocketAddr::new(*address, port));
            text +=
                &format!("\n[[relays]]\nkey = \"{key}\"\naddresses = [\"{one}\", \"{other}\"]\n");
            let any = if address.is_ipv4() { "0.0.0.0" } else { "[::]" };
            let [one, other] = RELAY_PORTS;
            let file = write(
                "relay/relay.toml",
                format!(
                    "# Forwards between vehicle and operator where no direct way joins them.\n\
                     # Every setting: `tautline relay --help`.\n\
                     listen = [\"{any}:{one}\", \"{any}:{other}\"]\nkey = \"relay.key\"\n\
                     switchboard_key = \"{switchboard}\"\n"
                ),
            )?;
            settings::read::<tautline_relay::Config>(&file)?.validate()?;
        }
        let file = write("switchboard/switchboard.toml", text)?;
        settings::read::<tautline_switchboard::Config>(&file)?.validate()?;

        let text = match vehicle {
            Some(vehicle) => {
                for (file, text) in vehicle_files(
                    &self.vehicle,
                    host,
                    switchboard,
                    &[operator],
                    &self.owner.settings()?.0,
                    self.owner.stand_in(),
                ) {
                    write(&format!("vehicle/{file}"), text)?;
                }
                let file = self.folder.join("vehicle/vehicle.toml");
                settings::read::<tautline_vehicle::Config>(&file)?.validate()?;
                let vehicles = [(self.vehicle.as_str(), vehicle)];
                operator_file(&self.operator, host, switchboard, &vehicles)
            }
            // The vehicle's key does not exist yet.
            None => {
                let text = operator_file(&self.operator, host, switchboard, &[]);
                format!("{text}vehicle = {}\n", quoted(&self.vehicle))
            }
        };
        let file = write("operator/operator.toml", text)?;
        settings::read::<tautline_operator::Config>(&file)?.validate()
    }

    fn next_steps(&self, host: &Host) -> String {
        let folder = self.folder.display();
        if self.by_code {
            return format!(
                "Keys and settings of the switchboard and the operator are in {folder}. Here:\n  \
                 tautline up {folder} --invite {}\n\
                 In the vehicle, with the code that this prints:\n  \
                 tautline enroll --switchboard {host} --up\n",
                self.vehicle
            );
        }
        let relay = self.relay.map_or_else(String::new, |address| {
            format!("At {address}:\n  tautline relay --config {folder}/relay/relay.toml\n")
        });
        format!(
            "Keys and settings are in {folder}, a folder a machine. Copy each to its machine (scp -rp) and keep\n\
             no copy: anyone with a key file can act as that machine. Then:\n\
             At {}:\n  tautline switchboard --config {folder}/switchboard/switchboard.toml\n{relay}\
             In the vehicle, the guard first; a simulated machine, or your machine's adapter, is behind it:\n  \
             tautline guard --config {folder}/vehicle/guard.toml\n  \
             tautline machine --config {folder}/vehicle/machine.toml\n  \
             tautline vehicle --config {folder}/vehicle/vehicle.toml\n\
             At the operator's desk; open the address that it prints:\n  \
             tautline operator --config {folder}/operator/operator.toml\n\
             Or, of each folder, all at once: tautline up FOLDER; on one machine: tautline up {folder}\n\
             Others are let in by a code, without copying keys: `tautline switchboard invite --help`.\n",
            host.name
        )
    }
}

impl Host {
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let of = |name: &str, port| Self { name: name.to_owned(), port };
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(of(&address.to_string(), PORT));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(of(&address.ip().to_string(), address.port()));
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port < u16::MAX)),
            None => (text, Some(PORT)),
        };
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        match port {
            Some(port) if !name.is_empty() && name.chars().all(is_name) => Ok(of(name, port)),
            Some(_) | None => bail!(
                "--switchboard {text}: a name or an address, as in switchboard.example, 203.0.113.9:7443 or \
                 [2001:db8::9]:7443"
            ),
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, port } = self;
        match name.contains(':') {
            true => write!(f, "[{name}]:{port}"),
            false => write!(f, "{name}:{port}"),
        }
    }
}

/// Returns the texts of a vehicle's settings files, each with the file's name; `owner` is appended
/// to the guard's. A simulated `machine` stands in for the vehicle's own.
pub(crate) fn vehicle_files(
    name: &str,
    host: &Host,
    switchboard: PublicKey,
    operators: &[PublicKey],
    owner: &str,
    machine: SimulatedMachine,
) -> [(&'static str, String); 3] {
    let operators: Vec<String> = operators.iter().map(PublicKey::to_string).collect();
    let vehicle = format!(
        "# The vehicle's side. Every setting: `tautline vehicle --help`.\n\
         name = {}\nkey = \"vehicle.key\"\nepoch = \"epoch\"\n\
         switchboard = {}\nswitchboard_key = \"{switchboard}\"\noperators = {operators:?}\n\
         # One per modem; without it, one link by the default route:\n\
         # links = [\"wwan0\", \"wwan1\"]\nguard = \"./vehicle.sock\"\n\
         # What the simulated camera is on, until another source of pictures is set:\nmachine = \"{machine}\"\n",
        quoted(name),
        quoted(&host.to_string())
    );
    let mut guard =
        "# The guard between the vehicle's side and its machine. Every setting: docs/settings.md.\n\
         vehicle = \"./vehicle.sock\"\nmachine = \"./machine.sock\"\nlatch = \"latch\"\n\
         key = \"vehicle.key\"\n[blackbox]\nfolder = \"blackbox\"\n"
            .to_owned();
    guard += owner;
    let simulated = format!(
        "# A simulated machine in the place of yours: remove this file when yours is there.\n\
         kind = \"{machine}\"\nguard = \"./machine.sock\"\n"
    );
    [("vehicle.toml", vehicle), ("guard.toml", guard), ("machine.toml", simulated)]
}

/// Returns a text for the owner: whether driving requires a dead-man input, and where to set that.
pub(crate) fn dead_man_words(is_required: bool) -> &'static str {
    match is_required {
        true => {
            "To drive it a person must hold a dead-man input (Shift, or a pad's button): `dead_man_required` of \
             [guard.presence] in guard.toml, docs/safety.md says why."
        }
        false => {
            "To drive it nobody has to hold a dead-man input: see docs/safety.md, \"Dead-man input\"."
        }
    }
}

/// Returns the text of an operator's settings file: for one vehicle, or for several or none to pick
/// from.
pub(crate) fn operator_file(
    name: &str,
    host: &Host,
    switchboard: PublicKey,
    vehicles: &[(&str, PublicKey)],
) -> String {
    let mut text = format!(
        "# The operator's side. Every setting: `tautline operator --help`.\n\
         name = {}\nkey = \"operator.key\"\n\
         switchboard = {}\nswitchboard_key = \"{switchboard}\"\n",
        quoted(name),
        quoted(&host.to_string())
    );
    text += "console = \"127.0.0.1:8080\"\n";
    match vehicles {
        [(vehicle, key)] => {
            text += &format!("vehicle = {}\nvehicle_key = \"{key}\"\n", quoted(vehicle));
        }
        [] => {}
        several => {
            text += "# The person picks one of them on the console; `vehicle = NAME` takes one at the start.\n[vehicles]\n";
            text += &listed(several.iter().copied());
        }
    }
    text
}

/// Returns lines `name = "key"` in TOML, for names with any characters.
fn listed<'a>(keys: impl IntoIterator<Item = (&'a str, PublicKey)>) -> String {
    let lines = keys.into_iter().map(|(name, key)| (name.to_owned(), key.to_string().into()));
    lines.collect::<toml::Table>().to_string()
}

/// Returns a text as a TOML value.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

const PORT: u16 = 7443;
const RELAY_PORTS: [u16; 2] = [7444, 7445];

#[cfg(test)]
mod tests {
    use tautline_transport::crypto::Identity;

    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_with_a_port_or_without() {
        let shown = |text: &str| Host::parse(text).map(|host| host.to_string()).ok();
        for (text, host) in [
            ("switchboard.example", Some("switchboard.example:7443")),
            ("switchboard.example:443", Some("switchboard.example:443")),
            ("203.0.113.9", Some("203.0.113.9:7443")),
            ("203.0.113.9:9000", Some("203.0.113.9:9000")),
            ("2001:db8::9", Some("[2001:db8::9]:7443")),
            ("[2001:db8::9]:9000", Some("[2001:db8::9]:9000")),
            ("", None),
            ("a b", None),
            ("host:port", None),
            ("host:65535", None),
            ("https://host", None),
        ] {
            assert_eq!(shown(text).as_deref(), host, "{text}");
        }
    }

    #[test]
    fn generated_settings_parse_back_for_any_name() {
        let key = |seed: u8| Identity::from_seed(&[seed; 32]).public();
        let host = Host::parse("switchboard.example").unwrap();
        let (switchboard, operators) = (key(1), [key(2), key(3)]);
        for name in ["car-1", "Käfer \"7\"", "it's\\", "\"\"\"", "'''", "# off", "a = 1", " "] {
            let [(_, vehicle), ..] = {
                let machine = SimulatedMachine::Rover;
                vehicle_files(name, &host, switchboard, &operators, "", machine)
            };
            let config: tautline_vehicle::Config = toml::from_str(&vehicle).unwrap();
            assert_eq!((&*config.name, &*config.switchboard), (name, "switchboard.example:7443"));
            assert_eq!(config.operators, operators.map(|key| key.to_string()));
            let operator = |vehicles: &[(&str, PublicKey)]| {
                let text = operator_file(name, &host, switchboard, vehicles);
                toml::from_str::<tautline_operator::Config>(&text).unwrap()
            };
            let config = operator(&[(name, key(4))]);
            assert_eq!((&*config.name, config.vehicle.as_deref()), (name, Some(name)));
            assert_eq!(config.vehicle_public_key().unwrap(), Some(key(4)));
            assert_eq!(config.switchboard_public_key().unwrap(), switchboard);
            // If there are several vehicles, a person picks one.
            let config = operator(&[(name, key(4)), ("mule", key(5))]);
            assert_eq!(config.vehicle, None);
            let keys = [(name.to_owned(), key(4)), ("mule".to_owned(), key(5))];
            assert_eq!(config.vehicle_keys().unwrap(), keys.into());
            assert_eq!(operator(&[]).vehicle, None);
        }
    }
}
