//! The operator's settings.

use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use tautline_net::Local;
use tautline_net::control::Host;
use tautline_net::datagram::Address;
use tautline_net::settings::{Faults, one_or_several};
use tautline_net::topics::Topic;
use tautline_transport::crypto::PublicKey;
use tautline_units::Bounded;

use crate::console::access::Names;
use crate::console::tls::Files;

/// Settings of an operator; most fields have a flag of the same name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Name of the operator, visible to others.
    pub name: String,
    /// File of the operator's secret key.
    pub key: PathBuf,
    /// Address of the switchboard, `host:port`.
    pub switchboard: String,
    /// Public key of the switchboard, 64 hexadecimal digits.
    pub switchboard_key: String,
    /// Name of the vehicle to take; if not given, a person picks one on the console.
    pub vehicle: Option<String>,
    /// Public key of the vehicle named by `vehicle`; if not given, the first key that the
    /// switchboard reports for it, and no other until this process ends. A key of that name in
    /// `vehicles` counts in place of the reported one.
    pub vehicle_key: Option<String>,
    /// Public keys of vehicles that a person may pick, by name; any other key under such a name is
    /// refused.
    pub vehicles: BTreeMap<String, String>,
    /// Local ends of the links to the vehicle: addresses with a port, or interfaces.
    #[serde(alias = "link", deserialize_with = "one_or_several")]
    pub links: Vec<Local>,
    /// Addresses at which the vehicle reaches this machine; if empty they are discovered, also
    /// through NATs.
    #[serde(deserialize_with = "one_or_several")]
    pub advertise: Vec<SocketAddr>,
    /// Address to listen on for a link over TLS, for networks that block UDP; if not given, none.
    pub tls: Option<SocketAddr>,
    /// Addresses at which the vehicle reaches the address in `tls`; that address itself if empty.
    #[serde(deserialize_with = "one_or_several")]
    pub tls_advertise: Vec<SocketAddr>,
    /// Address of the browser console; beyond the loopback interface it uses HTTPS, and on it with
    /// a certificate.
    pub console: SocketAddr,
    /// Names by which browsers reach the console, each with its port if that is not the port of
    /// `console`; the address of `console` if empty. Behind a proxy, names are required; each has
    /// the proxy's port if that is not 443, and the path prefix if there is one.
    #[serde(alias = "console_name", deserialize_with = "one_or_several")]
    pub console_names: Vec<String>,
    /// Scheme of a proxy before the console, by which browsers reach it under its names; no proxy
    /// if not given.
    pub console_behind: Option<Behind>,
    /// Certificate chain of the console in PEM form; if not given, one is made from the operator's
    /// key where the console uses HTTPS.
    pub console_certificate: Option<PathBuf>,
    /// Secret key of the configured certificate in PEM form; not given without one.
    pub console_certificate_key: Option<PathBuf>,
    /// True to announce, in addition to addresses that admit a browser to drive, addresses that
    /// admit one only to watch.
    pub watch: bool,
    /// Separate address for metrics, status and probes; if not given, the console's address serves
    /// them, unless other machines can reach it. A console with a certificate does not serve them
    /// either.
    pub metrics: Option<SocketAddr>,
    /// Folder to record sessions into; nothing is recorded if not given.
    pub record: Option<PathBuf>,
    /// Addresses of local programs, by topic; a program gets each unit of its topic as a datagram.
    pub deliver: BTreeMap<String, Address>,
    /// Topics of other programs to carry to the vehicle.
    pub topics: Vec<Topic>,
    /// Control address of a link emulator, if there is one.
    pub emulator: Option<SocketAddr>,
    /// Time that a slice waits for an earlier missing one before the loss is reported to the
    /// vehicle.
    pub reorder_ms: u64,
    /// Settings of the multi-link transport.
    pub transport: tautline_transport::Config,
}

/// Kind of proxy before the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behind {
    /// A proxy that terminates TLS and forwards plain HTTP with the browser's own `Host` and
    /// `Origin`.
    Https,
}

impl FromStr for Behind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        match name {
            "https" => Ok(Self::Https),
            _ => bail!("{name:?} is unknown: only https is supported"),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "operator-1".into(),
            key: "operator.key".into(),
            switchboard: "127.0.0.1:7443".into(),
            switchboard_key: String::new(),
            vehicle: None,
            vehicle_key: None,
            vehicles: BTreeMap::new(),
            links: vec![Local::Address(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 7000)))],
            advertise: Vec::new(),
            tls: None,
            tls_advertise: Vec::new(),
            console: SocketAddr::from(([127, 0, 0, 1], 8080)),
            console_names: Vec::new(),
            console_behind: None,
            console_certificate: None,
            console_certificate_key: None,
            watch: false,
            metrics: None,
            record: None,
            deliver: BTreeMap::new(),
            topics: Vec::new(),
            emulator: None,
            reorder_ms: 30,
            transport: tautline_transport::Config::default(),
        }
    }
}

impl Config {
    /// Checks every setting; opens no file.
    ///
    /// # Errors
    /// Returns one line per fault, which names the field, what is wrong and the remedy.
    pub fn validate(&self) -> anyhow::Result<()> {
        let mut faults = Faults::default();
        faults.unless(!self.name.is_empty(), || {
            "name is empty: give the operator's name with --name".to_owned()
        });
        faults.unless(self.vehicle.as_deref() != Some(""), || {
            "vehicle is empty: name the vehicle with --vehicle, or omit it to pick one on the \
             console"
                .to_owned()
        });
        faults.unless(self.vehicle.is_some() || self.vehicle_key.is_none(), || {
            "vehicle_key: name its vehicle with --vehicle, or put the key into [vehicles]"
                .to_owned()
        });
        faults.unless(!self.links.is_empty(), || {
            "links is empty: give at least one local address or interface with --link".to_owned()
        });
        faults.unless(self.tls.is_some() || self.tls_advertise.is_empty(), || {
            "tls_advertise needs a link over TLS: give the address to listen on with --tls"
                .to_owned()
        });
        faults.of(Topic::validate(&self.topics));
        faults.of(Bounded::new("reorder_ms", self.reorder_ms as f64, 0.0..=500.0).check());
        for name in &self.console_names {
            // Behind a proxy a name may have a path, for the printed address.
            let (host, path) = match self.console_behind {
                Some(Behind::Https) => name.split_once('/').unwrap_or((name, "")),
                None => (name.as_str(), ""),
            };
            let is_name = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
            let is_path = |c: char| c.is_ascii_alphanumeric() || "/.-_~".contains(c);
            let is_right =
                !host.is_empty() && host.chars().all(is_name) && path.chars().all(is_path);
            faults.unless(is_right, || {
                format!(
                    "console_names: {name:?} is not a name: use a form such as drive.example or \
                     10.0.0.7:8443"
                )
            });
        }
        faults.of(self.names(self.console));
        faults.unless(self.console_behind.is_none() || self.console.ip().is_loopback(), || {
            format!(
                "console_behind: console = {} can be reached without the proxy: give a loopback \
                 address",
                self.console
            )
        });
        faults.unless(self.console_behind.is_none() || self.console_certificate.is_none(), || {
            "console_behind and console_certificate are both given: either the proxy or the \
             console has the certificate"
                .to_owned()
        });
        faults.of(self.certificate());
        faults.unless(self.metrics.is_none_or(|metrics| metrics.ip().is_loopback()), || {
            "metrics: everybody who reaches this address can probe: give a loopback address"
                .to_owned()
        });
        faults.of(self.switchboard.parse::<Host>().context("switchboard"));
        faults.of(self.switchboard_public_key());
        faults.of(self.vehicle_public_key());
        faults.of(self.vehicle_keys());
        faults.all(self.transport.faults());
        faults.finish()
    }

    /// Returns whether the console uses HTTPS: beyond the loopback interface always, on it if a
    /// certificate is configured.
    pub(crate) fn console_is_secure(&self) -> bool {
        !self.console.ip().is_loopback() || self.console_certificate.is_some()
    }

    /// Returns the names by which browsers reach the console at `address`.
    ///
    /// # Errors
    /// Returns one line if no name is given where one is needed: for a wildcard address, or behind
    /// a proxy.
    pub(crate) fn names(&self, address: SocketAddr) -> anyhow::Result<Names> {
        match self.console_behind {
            Some(Behind::Https) => Names::behind_https(&self.console_names),
            None => Names::of(address, &self.console_names, self.console_is_secure()),
        }
    }

    /// Returns whether other machines may reach the console: beyond the loopback interface, or by a
    /// proxy. A console with a certificate counts too.
    pub(crate) fn console_is_open(&self) -> bool {
        self.console_is_secure() || self.console_behind.is_some()
    }

    /// Returns the address of metrics and status: one of its own if set, else the console's. `None`
    /// if no address is set and other machines can reach the console, or it has a certificate.
    pub fn told_at(&self) -> Option<SocketAddr> {
        self.metrics.or((!self.console_is_open()).then_some(self.console))
    }

    /// Returns the paths of the configured certificate and its key, if they are set; opens no file.
    ///
    /// # Errors
    /// Returns one line that says which of the two settings is missing.
    pub(crate) fn certificate(&self) -> anyhow::Result<Option<Files>> {
        match (&self.console_certificate, &self.console_certificate_key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => {
                Ok(Some(Files { certificate: certificate.clone(), key: key.clone() }))
            }
            (Some(_), None) => bail!("console_certificate needs console_certificate_key"),
            (None, Some(_)) => bail!("console_certificate_key needs console_certificate"),
        }
    }

    /// Returns the key of the configured vehicle; `None` if it is not set.
    ///
    /// # Errors
    /// Returns one line that says that it is malformed.
    pub fn vehicle_public_key(&self) -> anyhow::Result<Option<PublicKey>> {
        let key = self.vehicle_key.as_ref();
        key.map(|key| key.parse().with_context(|| format!("vehicle_key: {key:?}"))).transpose()
    }

    /// Returns the keys of all configured vehicles, by name, with that in `vehicle_key`.
    ///
    /// # Errors
    /// Returns one line that names the malformed key, or a vehicle with two different keys.
    pub fn vehicle_keys(&self) -> anyhow::Result<BTreeMap<String, PublicKey>> {
        let read = |(name, key): (&String, &String)| {
            let key = key.parse().with_context(|| format!("vehicles: {name}: {key:?}"))?;
            Ok((name.clone(), key))
        };
        let mut keys: BTreeMap<_, _> =
            self.vehicles.iter().map(read).collect::<anyhow::Result<_>>()?;
        if let (Some(name), Some(key)) = (&self.vehicle, self.vehicle_public_key()?) {
            let other = keys.insert(name.clone(), key);
            ensure!(
                other.is_none_or(|other| other == key),
                "vehicle_key: [vehicles] has a different key for {name:?}"
            );
        }
        Ok(keys)
    }

    /// Returns the switchboard's key.
    ///
    /// # Errors
    /// Returns one line that says that it is missing or malformed.
    pub fn switchboard_public_key(&self) -> anyhow::Result<PublicKey> {
        ensure!(
            !self.switchboard_key.is_empty(),
            "switchboard_key is missing: `tautline keys show` prints it from the switchboard's key"
        );
        self.switchboard_key
            .parse()
            .with_context(|| format!("switchboard_key: {:?}", self.switchboard_key))
    }
}
