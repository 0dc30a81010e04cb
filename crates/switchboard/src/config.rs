//! Settings of a switchboard.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tautline_net::control::SERVER_TIMEOUT;
use tautline_net::settings::Faults;
use tautline_transport::crypto::PublicKey;
use tautline_units::{Bounded, ByteCount};

use crate::relays::Relay;

/// Settings of a switchboard.
///
/// ```
/// # let config: tautline_switchboard::Config = toml::from_str(r#"
/// listen = "0.0.0.0:7443"
///
/// [vehicles]
/// rover = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
///
/// [operators]
/// anna = "1398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93ca"
///
/// [[relays]]
/// key = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
/// addresses = ["203.0.113.9:7444", "203.0.113.9:7445"]
/// # "#).unwrap();
/// # config.validate().unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// TCP address to listen on. The same UDP port and the next one answer requests for the
    /// sender's address.
    pub listen: SocketAddr,
    /// Path at which a relay on this machine accepts the connections for a relay that arrive at the
    /// port of `listen`; `None` if the port is not shared.
    pub shared_port: Option<PathBuf>,
    /// Second address of this machine, with which ends can determine the type of their NATs; `None`
    /// without one.
    pub second_address: Option<IpAddr>,
    /// File of the switchboard's secret key.
    pub key: PathBuf,
    /// Folder that keeps leases, epochs and enrolled machines across restarts; created if missing.
    pub state: PathBuf,
    /// Folder for raw files of latency, with a line for each answered ping; no files if unset.
    pub latency: Option<PathBuf>,
    /// Maximum total size of the files of latency; the oldest are deleted first.
    pub latency_mib: u64,
    /// TCP address at which `/metrics` and `/status` are served; none if unset.
    pub metrics: Option<SocketAddr>,
    /// Time for which a lease is kept after its operator lost the connection.
    pub lease_grace_ms: u64,
    /// Interval between two pings on each connection.
    pub ping_interval_ms: u64,
    /// Time without a message after which a connection is closed; at least twice
    /// `ping_interval_ms`.
    pub connection_timeout_ms: u64,
    /// Validity of a relay token; both ends of a lease receive new ones at half of it.
    pub relay_token_s: u64,
    /// Relays that both ends of a lease may use.
    pub relays: Vec<Relay>,
    /// Vehicles that may register: their public keys by name.
    #[serde(alias = "vehicle", deserialize_with = "vehicles")]
    pub vehicles: BTreeMap<String, PublicKey>,
    /// Operators that may register: their public keys by name.
    #[serde(alias = "operator", deserialize_with = "operators")]
    pub operators: BTreeMap<String, PublicKey>,
    /// Supervisors, who may end a drive and query who drives: their public keys by name.
    #[serde(alias = "supervisor", deserialize_with = "supervisors")]
    pub supervisors: BTreeMap<String, PublicKey>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::UNSPECIFIED, 7443).into(),
            shared_port: None,
            second_address: None,
            key: "switchboard.key".into(),
            state: "state".into(),
            latency: None,
            latency_mib: 256,
            metrics: None,
            lease_grace_ms: 10_000,
            ping_interval_ms: 1_000,
            connection_timeout_ms: 3_000,
            relay_token_s: 3_600,
            relays: Vec::new(),
            vehicles: BTreeMap::new(),
            operators: BTreeMap::new(),
            supervisors: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Checks that all numbers are within their bounds, the second address, the relays, and the
    /// listed names and keys.
    ///
    /// # Errors
    /// Every fault on a line of its own, with the name of the field.
    pub fn validate(&self) -> anyhow::Result<()> {
        let mut faults = Faults::default();
        // Clients would consider a switchboard dead that pings less often.
        let ping_max = u64::try_from(SERVER_TIMEOUT.as_millis()).unwrap_or(u64::MAX) / 2;
        let bounds = [
            ("ping_interval_ms", self.ping_interval_ms, 1, ping_max),
            ("connection_timeout_ms", self.connection_timeout_ms, 2, TIME_MS_MAX),
            ("lease_grace_ms", self.lease_grace_ms, 0, TIME_MS_MAX),
            ("relay_token_s", self.relay_token_s, TOKEN_S_MIN, TOKEN_S_MAX),
            ("latency_mib", self.latency_mib, 1, LATENCY_MIB_MAX),
        ];
        for (setting, value, min, max) in bounds {
            faults.of(Bounded::new(setting, value as f64, min as f64..=max as f64).check());
        }
        let pings = self.ping_interval_ms.saturating_mul(2);
        faults.unless(self.connection_timeout_ms >= pings, || {
            format!(
                "connection_timeout_ms = {}: must be at least twice ping_interval_ms",
                self.connection_timeout_ms
            )
        });
        faults.of(Relay::validate(&self.relays));
        faults.unless(
            self.second_address.is_none_or(|second| {
                !self.listen.ip().is_unspecified()
                    && second != self.listen.ip()
                    && second.is_ipv4() == self.listen.is_ipv4()
            }),
            || {
                "second_address: listen must be another address of the same family, and not 0.0.0.0"
                    .to_owned()
            },
        );
        let mut owners = BTreeMap::new();
        let tables = [
            ("vehicles", &self.vehicles),
            ("operators", &self.operators),
            ("supervisors", &self.supervisors),
        ];
        for (table, entries) in tables {
            faults.of(Bounded::size(table, entries.len(), 0..=ENTRIES_MAX, "entries").check());
            for (name, key) in entries {
                let is_name =
                    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control);
                faults.unless(is_name, || {
                    format!(
                        "[{table}] {name:?}: a name must have 1 to {NAME_BYTES_MAX} bytes, all \
                         printable"
                    )
                });
                if let Some((other_table, other)) = owners.insert(*key.as_bytes(), (table, name)) {
                    faults.add(format!(
                        "[{table}] {name} and [{other_table}] {other} have the same key: each needs its own"
                    ));
                }
            }
        }
        faults.finish()
    }

    /// Returns the maximum total size of the files of latency.
    pub fn latency_bytes_max(&self) -> ByteCount {
        ByteCount::new(self.latency_mib << 20)
    }

    /// Returns the time for which a lease is kept after its operator lost the connection.
    pub fn lease_grace(&self) -> Duration {
        Duration::from_millis(self.lease_grace_ms)
    }

    /// Returns the interval between two pings on each connection.
    pub fn ping_interval(&self) -> Duration {
        Duration::from_millis(self.ping_interval_ms)
    }

    /// Returns the validity of a relay token.
    pub fn relay_token_life(&self) -> Duration {
        Duration::from_secs(self.relay_token_s)
    }

    /// Returns the time without a message after which a connection is closed.
    pub fn connection_timeout(&self) -> Duration {
        Duration::from_millis(self.connection_timeout_ms)
    }
}

fn vehicles<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, PublicKey>, D::Error> {
    from.deserialize_map(Keys { table: "vehicles" })
}

fn operators<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, PublicKey>, D::Error> {
    from.deserialize_map(Keys { table: "operators" })
}

fn supervisors<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, PublicKey>, D::Error> {
    from.deserialize_map(Keys { table: "supervisors" })
}

/// A visitor for a table of names and keys, whose errors name the entry.
struct Keys {
    table: &'static str,
}

impl<'de> Visitor<'de> for Keys {
    type Value = BTreeMap<String, PublicKey>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table [{}] of NAME = \"PUBLIC KEY\"", self.table)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut keys = BTreeMap::new();
        while let Some((name, text)) = entries.next_entry::<String, String>()? {
            let key = text
                .parse()
                .map_err(|error| A::Error::custom(format!("[{}] {name}: {error}", self.table)))?;
            keys.insert(name, key);
        }
        Ok(keys)
    }
}

/// Maximum entries in each list of vehicles, operators or supervisors: a list of all vehicles then
/// fits into one frame of the control connection.
pub(crate) const ENTRIES_MAX: usize = 256;
const NAME_BYTES_MAX: usize = 64;
/// Maximum of `latency_mib`: one TiB.
const LATENCY_MIB_MAX: u64 = 1 << 20;
/// Maximum of times in milliseconds: an hour; a higher value is a mistaken unit.
const TIME_MS_MAX: u64 = 3_600_000;
/// Minimum of `relay_token_s`: a minute; a shorter life would not outlast a restart of the
/// switchboard.
const TOKEN_S_MIN: u64 = 60;
/// Maximum of `relay_token_s`: a day; a former driver can use a relay to a vehicle for no longer.
const TOKEN_S_MAX: u64 = 86_400;

#[cfg(test)]
mod tests {
    use tautline_transport::crypto::Identity;

    use super::*;

    #[test]
    fn an_empty_file_gives_the_defaults() {
        let config: Config = toml::from_str("").unwrap();
        assert_eq!(config, Config::default());
        config.validate().unwrap();
    }

    #[test]
    fn a_malformed_key_is_reported_by_its_entry() {
        let error = toml::from_str::<Config>("[vehicles]\nrover = \"12\"\n").unwrap_err();
        assert_eq!(
            error.message(),
            "[vehicles] rover: not a key: expected 64 hexadecimal digits, found 2 characters"
        );
        let error = toml::from_str::<Config>("[operators]\nanna = 12\n").unwrap_err();
        assert!(error.message().contains("invalid type: integer"), "{error}");
        let error = toml::from_str::<Config>("lisen = 3\n").unwrap_err();
        assert!(error.message().contains("unknown field `lisen`"), "{error}");
    }

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let key = |seed| Identity::from_seed(&[seed; 32]).public();
        let wrong = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert!(wrong(|c| c.ping_interval_ms = 0).starts_with("ping_interval_ms = 0:"));
        let slow = wrong(|c| (c.ping_interval_ms, c.connection_timeout_ms) = (2_000, 4_000));
        assert!(slow.starts_with("ping_interval_ms = 2000:"), "{slow}");
        assert!(
            wrong(|c| c.connection_timeout_ms = 1_000).starts_with("connection_timeout_ms = 1000:")
        );
        assert!(wrong(|c| c.lease_grace_ms = u64::MAX).starts_with("lease_grace_ms = "));
        assert_eq!(wrong(|c| c.latency_mib = 0), "latency_mib = 0: must be 1 to 1048576 MiB");
        assert!(wrong(|c| c.relay_token_s = 5).starts_with("relay_token_s = 5: must be 60 to"));
        let mut config = Config::default();
        config.vehicles.insert("rover".into(), key(1));
        config.operators.insert("anna".into(), key(1));
        assert_eq!(
            config.validate().unwrap_err().to_string(),
            "[operators] anna and [vehicles] rover have the same key: each needs its own"
        );
        config.operators.clear();
        config.operators.insert("a\nb".into(), key(2));
        assert!(config.validate().unwrap_err().to_string().starts_with("[operators] \"a\\nb\":"));
    }
}
