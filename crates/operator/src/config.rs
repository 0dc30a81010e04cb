//! What an operator needs to know.

use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use tautline_net::Local;
use tautline_net::datagram::Address;
use tautline_transport::crypto::PublicKey;

use crate::console::access::Names;
use crate::console::tls::Files;

/// An operator's settings; every field has its flag of the same name.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Name that others are told.
    pub name: String,
    /// Secret key file.
    pub key: PathBuf,
    /// The switchboard's address, `host:port`.
    pub switchboard: String,
    /// The switchboard's public key, 64 hexadecimal digits.
    pub switchboard_key: String,
    /// Name of the vehicle to take; of none given, a person picks one on the console.
    pub vehicle: Option<String>,
    /// That vehicle's public key; of none given, the first one with which there is a session.
    pub vehicle_key: Option<String>,
    /// Public keys of vehicles that a person may pick, by name; any other key under such a name is refused.
    pub vehicles: BTreeMap<String, String>,
    /// Local ends for the vehicle's links.
    pub links: Vec<Local>,
    /// Where the vehicle reaches this machine; if empty that is found out, through NATs too.
    pub advertise: Vec<SocketAddr>,
    /// Where to listen for a link over TLS, for networks that let no UDP pass; nowhere if not given.
    pub tls: Option<SocketAddr>,
    /// Where the vehicle reaches that; the address itself if empty.
    pub tls_advertise: Vec<SocketAddr>,
    /// Address of the browser console; beyond the loopback interface it speaks HTTPS.
    pub console: SocketAddr,
    /// Names by which browsers reach it, each with a port if that is another; the address if empty.
    pub console_names: Vec<String>,
    /// Its certificate chain in PEM form; of none given one is made from the machine's key.
    pub console_certificate: Option<PathBuf>,
    /// The certificate's secret key in PEM form.
    pub console_certificate_key: Option<PathBuf>,
    /// Whether addresses are told too that let browsers in which only watch.
    pub watch: bool,
    /// Address for metrics, status and probes, which have no other if the console speaks HTTPS.
    pub metrics: Option<SocketAddr>,
    /// Folder to record into.
    pub record: Option<PathBuf>,
    /// Which program of this machine gets the units of a topic of another's, each as a datagram.
    pub deliver: BTreeMap<String, Address>,
    /// Control address of a link emulator.
    pub emulator: Option<SocketAddr>,
    /// Milliseconds that a slice waits for one missing before it until the vehicle is told of a loss.
    pub reorder_ms: u64,
    /// The multi-link transport.
    pub transport: tautline_transport::Config,
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
            console_certificate: None,
            console_certificate_key: None,
            watch: false,
            metrics: None,
            record: None,
            deliver: BTreeMap::new(),
            emulator: None,
            reorder_ms: 30,
            transport: tautline_transport::Config::default(),
        }
    }
}

impl Config {
    /// Checks every field.
    ///
    /// # Errors
    /// One line that names the field, what is wrong and what to do.
    pub fn validate(&self) -> anyhow::Result<()> {
        ensure!(!self.name.is_empty(), "name is empty: give the operator's name with --name");
        ensure!(
            self.vehicle.as_deref() != Some(""),
            "vehicle is empty: name the vehicle with --vehicle, or leave it out to pick one on the console"
        );
        ensure!(
            self.vehicle.is_some() || self.vehicle_key.is_none(),
            "vehicle_key: of which vehicle? Name it with --vehicle, or put the key into [vehicles]"
        );
        ensure!(!self.links.is_empty(), "links is empty: give at least one local end with --link");
        ensure!(
            self.tls.is_some() || self.tls_advertise.is_empty(),
            "tls_advertise: there is no link over TLS: give the address to listen on with --tls"
        );
        ensure!(self.reorder_ms <= 500, "reorder_ms = {}: must be 0 to 500", self.reorder_ms);
        for name in &self.console_names {
            let is_name = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
            ensure!(
                !name.is_empty() && name.chars().all(is_name),
                "console_names: {name:?} is no name: give it as in drive.example or 10.0.0.7:8443"
            );
        }
        Names::of(self.console, &self.console_names, self.console_is_secure())?;
        self.certificate()?;
        ensure!(
            self.metrics.is_none_or(|metrics| metrics.ip().is_loopback()),
            "metrics: whoever reaches them can probe: give an address of the loopback interface"
        );
        self.switchboard_public_key()?;
        self.vehicle_public_key()?;
        self.vehicle_keys()?;
        Ok(self.transport.validate()?)
    }

    /// Returns whether the console speaks HTTPS: always beyond the loopback interface.
    pub(crate) fn console_is_secure(&self) -> bool {
        !self.console.ip().is_loopback() || self.console_certificate.is_some()
    }

    /// Returns where metrics and status are told, if anywhere: without an address of their own at the console's, unless
    /// that speaks HTTPS.
    pub fn told_at(&self) -> Option<SocketAddr> {
        self.metrics.or((!self.console_is_secure()).then_some(self.console))
    }

    /// Returns the person's own certificate, if there is one.
    ///
    /// # Errors
    /// One line that says which of its two files is missing.
    pub(crate) fn certificate(&self) -> anyhow::Result<Option<Files>> {
        match (&self.console_certificate, &self.console_certificate_key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => {
                Ok(Some(Files { certificate: certificate.clone(), key: key.clone() }))
            }
            (Some(_), None) => bail!("console_certificate needs console_certificate_key beside it"),
            (None, Some(_)) => bail!("console_certificate_key needs console_certificate beside it"),
        }
    }

    /// Returns the vehicle's key, if it is set.
    ///
    /// # Errors
    /// One line that says that it is malformed.
    pub fn vehicle_public_key(&self) -> anyhow::Result<Option<PublicKey>> {
        let key = self.vehicle_key.as_ref();
        key.map(|key| key.parse().with_context(|| format!("vehicle_key: {key:?}"))).transpose()
    }

    /// Returns the keys of all vehicles that are set, by name.
    ///
    /// # Errors
    /// One line that names the malformed one, or a vehicle with two.
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
                "vehicle_key: [vehicles] has another key of {name:?}"
            );
        }
        Ok(keys)
    }

    /// Returns the switchboard's key.
    ///
    /// # Errors
    /// One line that says that it is missing or malformed.
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
