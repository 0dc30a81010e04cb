use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use tautline_sim::link::{self, Common, Seeds};
use tautline_sim::preset::{Carrier, Preset};
use tautline_sim::wireless::{self, Disturbance, Power};

use super::model::Model;

/// What the emulator emulates.
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
    /// The address of the control channel (TCP). Who reaches it may cut links: a loopback address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<SocketAddr>,
    /// Where the randomness begins of what links have in common.
    #[serde(default)]
    pub seed: u64,
    /// The links, 1 to [`Config::LINKS_MAX`]; their places in this list are their numbers.
    pub links: Vec<LinkConfig>,
}

/// One emulated link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// The name that people see; each its own.
    pub name: String,
    /// The UDP address that the vehicle sends to; port 0 takes a free one. Between devices it is of no use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// The UDP address that it is forwarded to. Between devices it is of no use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SocketAddr>,
    /// A wireless network in the place of `preset`, `up` and `down`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wireless: Option<WirelessConfig>,
    /// The model of both directions, as far as `up` and `down` do not replace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// The carrier, of an LTE preset.
    #[serde(default)]
    pub carrier: Carrier,
    /// The model from the vehicle to the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<link::Config>,
    /// The model from the target to the vehicle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<link::Config>,
    /// Where the link's randomness begins.
    #[serde(default)]
    pub seed: u64,
}

/// A wireless network of [CAR]'s, whose two directions share one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WirelessConfig {
    /// The power that the station receives, dBm: -20, -35 or -60.
    pub power_dbm: i32,
    /// Whether another's flow of 2000 kB/s shares it, as in the paper's tests.
    #[serde(default = "yes")]
    pub disturbed: bool,
}

const fn yes() -> bool {
    true
}

impl Config {
    /// Links that a session can have.
    pub const LINKS_MAX: usize = 16;

    /// Returns `link_count` links of one preset, of the two carriers in turn, each with a seed of its own
    /// drawn from `seed`.
    ///
    /// They listen on `listen_first` and the ports after it (all on free ports if it is 0) and
    /// are named "a1", "b1", "a2", "b2" and so on.
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

    /// Reads the traces and recordings that the links name; relative paths begin at `folder`.
    ///
    /// # Errors
    /// One line with the link, the path and the line.
    pub fn load_files(&mut self, folder: &Path) -> anyhow::Result<()> {
        for link in &mut self.links {
            for model in [&mut link.up, &mut link.down].into_iter().flatten() {
                model.load_files(folder).with_context(|| format!("link {:?}", link.name))?;
            }
        }
        Ok(())
    }

    /// Checks everything that can be checked without opening a socket.
    ///
    /// # Errors
    /// One line that names the link and the field.
    pub fn validate(&self) -> anyhow::Result<()> {
        let count = self.links.len();
        ensure!(
            (1..=Self::LINKS_MAX).contains(&count),
            "links: {count} given; 1 to {} are possible",
            Self::LINKS_MAX
        );
        let mut names = BTreeSet::new();
        let mut common: Vec<(&str, Common)> = Vec::new();
        for link in &self.links {
            let name = &link.name;
            ensure!(names.insert(name), "links: the name {name:?} is given twice");
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
                    "link {name:?}: wireless stands in the place of preset, up and down"
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
                            "links {other:?} and {name:?}: common {:?} has other times",
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

    /// Returns where it listens, and where it leads to.
    pub(super) fn addresses(&self) -> anyhow::Result<(SocketAddr, SocketAddr)> {
        let name = &self.name;
        ensure!(
            self.wireless.is_none(),
            "link {name:?}: a wireless network is between devices only (--tun)"
        );
        let listen = self.listen.with_context(|| format!("link {name:?}: give listen"))?;
        let target = self.target.with_context(|| format!("link {name:?}: give target"))?;
        Ok((listen, target))
    }

    /// Makes what carries the packets, each of which has `header_bytes` of its headers already.
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
            format!("wireless: power_dbm = {}: dBm, -20, -35 or -60", self.power_dbm)
        })?;
        let mut config = power.config();
        config.disturbance = self.disturbed.then(Disturbance::of_table_2);
        Ok(config)
    }
}

/// Spreads neighbouring numbers over 48 bits, which TOML and JSON can write alike.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}
