use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use tautline_sim::link::{self, Common, Seeds};
use tautline_sim::preset::{Carrier, Preset};
use tautline_sim::wireless::{self, Disturbance, Power};
use tautline_units::Bounded;

use super::model::Model;

/// Settings of the emulator.
///
/// ```toml
/// control = "127.0.0.1:7100"        # none: no control channel
/// seed = 1                          # of what links have in common
///
/// [[links]]
/// name = "carrier a, modem 1"
/// listen = "127.0.0.1:7101"         # where the vehicle sends to
/// target = "127.0.0.1:7200"         # the operator
/// preset = "lte-driving"            # or lan, lte, lte-town, lte-countryside, model
/// carrier = "a"                     # a or b, of an lte preset
/// seed = 1
///
/// [[links]]
/// name = "of my own"
/// listen = "127.0.0.1:7102"
/// target = "127.0.0.1:7200"
/// up = { rate_mbps = 4.0, delay_ms = 30.0 }   # every field: tautline_sim::link::Config
/// down = { rate_mbps = 20.0, delay_ms = 20.0 }
///
/// [[links]]
/// name = "a wireless network"       # of [`tautline_sim::wireless`], whose access point is at the vehicle's side;
/// wireless = { power_dbm = -35 }    # between devices only
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address of the control channel (TCP). Any client of it may cut links, so it must be a
    /// loopback address. `None` for no channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<SocketAddr>,
    /// Seed of the randomness that links share.
    #[serde(default)]
    pub seed: u64,
    /// Emulated links; a link's index in this list, from 0, is its number.
    pub links: Vec<LinkConfig>,
}

/// One emulated link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Display name of the link, which no other link has.
    pub name: String,
    /// UDP address that the vehicle sends to; port 0 takes a free one. Unused between devices.
    /// `None` only between devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// UDP address of the target. Unused between devices. `None` only between devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SocketAddr>,
    /// Wireless network that replaces `preset`, `up` and `down`; `None` if those apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wireless: Option<WirelessConfig>,
    /// Model of both directions, unless `up` or `down` replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Carrier of an LTE preset; other presets ignore it.
    #[serde(default)]
    pub carrier: Carrier,
    /// Model from the vehicle to the target; `None` for that of `preset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<link::Config>,
    /// Model from the target to the vehicle, with the settings of `up`; `None` for that of
    /// `preset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<link::Config>,
    /// Seed of the link's randomness.
    #[serde(default)]
    pub seed: u64,
}

/// A wireless network from [CAR], whose two directions share one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WirelessConfig {
    /// Received power at the station in dBm: -20, -35 or -60.
    pub power_dbm: i32,
    /// True if another flow of 2000 kB/s shares the wireless network, as in the paper's tests.
    #[serde(default = "yes")]
    pub disturbed: bool,
}

const fn yes() -> bool {
    true
}

impl Config {
    /// Maximum number of links: that of a session.
    pub const LINKS_MAX: usize = 16;

    /// Creates `link_count` links of one preset, alternating between the two carriers, each with
    /// its own seed drawn from `seed`.
    ///
    /// They listen on `listen_first` and the following ports, or on free ports if it is 0. Their
    /// names are "a1", "b1", "a2", "b2" and so on.
    pub fn of_preset(
        preset: Preset,
        link_count: usize,
        listen_first: SocketAddr,
        target: SocketAddr,
        seed: u64,
    ) -> Self {
        let link = |index: usize| {
            let (carrier, letter) =
                if index.is_multiple_of(2) { (Carrier::A, 'a') } else { (Carrier::B, 'b') };
            let mut listen = listen_first;
            if listen.port() != 0 {
                let step = u16::try_from(index).unwrap_or(u16::MAX);
                listen.set_port(listen.port().saturating_add(step));
            }
            LinkConfig {
                name: format!("{letter}{}", index / 2 + 1),
                listen: Some(listen),
                target: Some(target),
                wireless: None,
                preset: Some(preset),
                carrier,
                up: None,
                down: None,
                seed: spread(seed) ^ spread(index as u64 + 1),
            }
        };
        let links = (0..link_count).map(link).collect();
        Self { control: None, seed: spread(seed), links }
    }

    /// Reads the traces and recordings of the links; relative paths start at `folder`.
    ///
    /// # Errors
    /// One line that names the link, and the file and its line or the field at fault.
    pub fn load_files(&mut self, folder: &Path) -> anyhow::Result<()> {
        for link in &mut self.links {
            for model in [&mut link.up, &mut link.down].into_iter().flatten() {
                model.load_files(folder).with_context(|| format!("link {:?}", link.name))?;
            }
        }
        Ok(())
    }

    /// Checks all settings whose validity does not depend on this machine's addresses.
    ///
    /// # Errors
    /// One line that names the link and the field.
    pub fn validate(&self) -> anyhow::Result<()> {
        Bounded::size("links", self.links.len(), 1..=Self::LINKS_MAX, "entries").check()?;
        let mut names = BTreeSet::new();
        let mut common: Vec<(&str, Common)> = Vec::new();
        for link in &self.links {
            let name = &link.name;
            ensure!(names.insert(name), "links: the name {name:?} is used twice");
            if let (Some(listen), Some(target)) = (link.listen, link.target) {
                ensure!(
                    listen.is_ipv4() == target.is_ipv4(),
                    "link {name:?}: listen {listen} and target {target} must both be IPv4 or both IPv6"
                );
                ensure!(target.port() != 0, "link {name:?}: target {target} has no port");
            }
            if let Some(wireless) = &link.wireless {
                let models = [link.preset.is_some(), link.up.is_some(), link.down.is_some()];
                ensure!(
                    models == [false; 3],
                    "link {name:?}: wireless replaces preset, up and down; give only one of them"
                );
                wireless.model().with_context(|| format!("link {name:?}"))?;
                continue;
            }
            let pair = link.pair()?;
            for (direction, model) in [("up", &pair.up), ("down", &pair.down)] {
                model.validate().with_context(|| format!("link {name:?}, {direction}"))?;
                for entry in &model.common {
                    let other = common.iter().find(|(_, other)| !other.agrees_with(entry));
                    if let Some((other, _)) = other {
                        bail!(
                            "links {other:?} and {name:?} have different times for common {:?}",
                            entry.name
                        );
                    }
                    common.push((name, entry.clone()));
                }
            }
        }
        Ok(())
    }
}

impl LinkConfig {
    /// Returns the models of both directions.
    ///
    /// # Errors
    /// When there is neither a preset nor both models.
    pub fn pair(&self) -> anyhow::Result<link::Pair> {
        let preset = self.preset.map(|preset| preset.pair_of(self.carrier, self.seed));
        match (preset, self.up.clone(), self.down.clone()) {
            (_, Some(up), Some(down)) => Ok(link::Pair { up, down }),
            (Some(pair), up, down) => {
                Ok(link::Pair { up: up.unwrap_or(pair.up), down: down.unwrap_or(pair.down) })
            }
            (None, _, _) => bail!("link {:?}: give preset, or both up and down", self.name),
        }
    }

    /// Returns the listen address and the target of a link between sockets.
    ///
    /// # Errors
    /// When either is missing, or the link is a wireless network.
    pub(super) fn addresses(&self) -> anyhow::Result<(SocketAddr, SocketAddr)> {
        let name = &self.name;
        ensure!(
            self.wireless.is_none(),
            "link {name:?}: a wireless network works only between devices (--tun)"
        );
        let listen = self.listen.with_context(|| format!("link {name:?}: give listen"))?;
        let target = self.target.with_context(|| format!("link {name:?}: give target"))?;
        Ok((listen, target))
    }

    /// Creates the model of both directions. `common` is the seed that the links share.
    /// `header_bytes` of each packet are headers, which the configured overhead must not add again.
    pub(super) fn model(&self, common: u64, header_bytes: u64) -> anyhow::Result<Model> {
        if let Some(wireless) = &self.wireless {
            return Ok(Model::of_wireless(wireless.model()?, self.seed));
        }
        let mut pair = self.pair()?;
        for config in [&mut pair.up, &mut pair.down] {
            config.overhead_bytes = config.overhead_bytes.saturating_sub(header_bytes);
        }
        let seeds = Seeds { common, ..Seeds::of(self.seed) };
        let (up, down) = pair.links_of(seeds).with_context(|| format!("link {:?}", self.name))?;
        Ok(Model::of_links(up, down))
    }
}

impl WirelessConfig {
    fn model(&self) -> anyhow::Result<wireless::Config> {
        let power = Power::of_dbm(self.power_dbm).with_context(|| {
            format!("wireless: power_dbm = {}: must be -20, -35 or -60 dBm", self.power_dbm)
        })?;
        let mut config = power.config();
        config.disturbance = self.disturbed.then(Disturbance::of_table_2);
        Ok(config)
    }
}

/// Spreads adjacent numbers over 48 bits, which both TOML and JSON can represent.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}
