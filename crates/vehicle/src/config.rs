//! What a vehicle needs to know.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde::Deserialize;
use tautline_net::Local;
use tautline_transport::crypto::PublicKey;

use crate::failsafe;

/// A vehicle's settings; every field has its flag of the same name.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Name under which the switchboard knows it.
    pub name: String,
    /// Secret key file.
    pub key: PathBuf,
    /// The switchboard's address, `host:port`.
    pub switchboard: String,
    /// The switchboard's public key, 64 hexadecimal digits.
    pub switchboard_key: String,
    /// Public keys of the operators that may drive.
    pub operators: Vec<String>,
    /// Local ends, one a modem: an address with a port, or an interface.
    pub links: Vec<Local>,
    /// A video file in the camera's place.
    pub clip: Option<PathBuf>,
    /// A V4L2 device in the simulated camera's place.
    pub camera: Option<PathBuf>,
    /// Pictures a second of the simulated camera, and asked of a device; a clip has its own.
    pub pictures_per_second: f64,
    /// Seed of the course.
    pub seed: u64,
    /// Where `/metrics` is served; nowhere if not given.
    pub metrics: Option<SocketAddr>,
    /// When the vehicle stops by itself.
    pub failsafe: failsafe::Config,
    /// The multi-link transport.
    pub transport: tautline_transport::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "car-1".into(),
            key: "vehicle.key".into(),
            switchboard: "127.0.0.1:7443".into(),
            switchboard_key: String::new(),
            operators: Vec::new(),
            links: vec![Local::default()],
            clip: None,
            camera: None,
            pictures_per_second: 60.0,
            seed: 1,
            metrics: None,
            failsafe: failsafe::Config::default(),
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
        ensure!(!self.name.is_empty(), "name is empty: give the vehicle's name with --name");
        ensure!(
            (1.0..=60.0).contains(&self.pictures_per_second),
            "pictures_per_second = {}: must be 1 to 60",
            self.pictures_per_second
        );
        ensure!(
            self.clip.is_none() || self.camera.is_none(),
            "clip and camera are both given: only one can be seen with"
        );
        ensure!(
            self.camera.is_none() || cfg!(feature = "v4l2"),
            "camera: this binary was built without cameras: build it with --features v4l2"
        );
        ensure!(!self.links.is_empty(), "links is empty: give at least one local end with --link");
        ensure!(
            !self.operators.is_empty(),
            "no operator may drive: give at least one public key with --operator"
        );
        self.operator_keys()?;
        self.switchboard_public_key()?;
        self.failsafe.validate()?;
        Ok(self.transport.validate()?)
    }

    /// The operators' keys.
    ///
    /// # Errors
    /// One line that names the malformed key.
    pub fn operator_keys(&self) -> anyhow::Result<Vec<PublicKey>> {
        self.operators
            .iter()
            .map(|text| text.parse().with_context(|| format!("operators: {text:?}")))
            .collect()
    }

    /// The switchboard's key.
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
