//! Settings of a relay.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tautline_net::settings::{Faults, one_or_several};
use tautline_transport::crypto::PublicKey;
use tautline_units::{Bitrate, Bounded, ByteCount};

/// Settings of a relay; every field has a flag of the same name.
///
/// ```
/// # let config: tautline_relay::Config = toml::from_str(r#"
/// listen = ["0.0.0.0:7444", "0.0.0.0:7445"]
/// switchboard_key = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
/// lease_mbps = 50
/// # "#).unwrap();
/// # config.validate().unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// UDP addresses to listen on: an end that reaches two peers at once uses two.
    #[serde(deserialize_with = "one_or_several")]
    pub listen: Vec<SocketAddr>,
    /// TCP address to listen on for ends whose network blocks UDP; none if unset.
    pub tls: Option<SocketAddr>,
    /// Path at which the owner of a shared port, a switchboard, hands over connections over TLS;
    /// `None` if no port is shared.
    pub shared_port: Option<PathBuf>,
    /// File of the relay's secret key.
    pub key: PathBuf,
    /// Public key of the switchboard whose tokens are accepted, 64 hexadecimal digits.
    pub switchboard_key: String,
    /// Folder for raw files of latency: a line for each answered probe; without it no probes are
    /// sent.
    pub latency: Option<PathBuf>,
    /// Maximum total size of the files of latency; the oldest are deleted first.
    pub latency_mib: u64,
    /// TCP address at which `/metrics` and `/status` are served; none if unset.
    pub metrics: Option<SocketAddr>,
    /// Maximum number of simultaneous leases; an end that needs one more is refused.
    pub leases_max: usize,
    /// Maximum bitrate of one lease, both directions together.
    pub lease_mbps: u64,
    /// Maximum data that one socket of an end, usually a modem's, may send and receive together,
    /// for as long as the lease lasts.
    pub link_gib: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![
                (Ipv4Addr::UNSPECIFIED, 7444).into(),
                (Ipv4Addr::UNSPECIFIED, 7445).into(),
            ],
            tls: None,
            shared_port: None,
            key: "relay.key".into(),
            switchboard_key: String::new(),
            latency: None,
            latency_mib: 256,
            metrics: None,
            leases_max: 256,
            lease_mbps: 100,
            link_gib: 100,
        }
    }
}

impl Config {
    /// Checks that all numbers are within their bounds and that the switchboard's key is valid.
    ///
    /// # Errors
    /// Every fault on a line of its own, with the name of the field.
    pub fn validate(&self) -> anyhow::Result<()> {
        let mut faults = Faults::default();
        let listen = self.listen.len();
        faults.of(Bounded::size("listen", listen, 1..=LISTEN_MAX, "addresses").check());
        let within =
            |name, value: u64, most: u64| Bounded::new(name, value as f64, 1.0..=most as f64);
        faults.of(within("latency_mib", self.latency_mib, LATENCY_MIB_MAX).check());
        let leases = within("leases_max", self.leases_max as u64, LEASES_MAX);
        faults.of(leases.in_unit("leases").check());
        faults.of(within("lease_mbps", self.lease_mbps, MBPS_MAX).check());
        faults.of(within("link_gib", self.link_gib, GIB_MAX).check());
        faults.of(self.switchboard_public_key());
        faults.finish()
    }

    /// Parses the public key of the switchboard whose tokens are accepted.
    ///
    /// # Errors
    /// One line that reports it missing or malformed.
    pub fn switchboard_public_key(&self) -> anyhow::Result<PublicKey> {
        ensure!(
            !self.switchboard_key.is_empty(),
            "switchboard_key is missing: `tautline keys show` prints it from the switchboard's key"
        );
        let key = &self.switchboard_key;
        key.parse().with_context(|| format!("switchboard_key: {key:?}"))
    }

    /// Returns the maximum total size of the files of latency.
    pub fn latency_bytes_max(&self) -> ByteCount {
        ByteCount::new(self.latency_mib << 20)
    }

    /// Returns the limits of the traffic that these settings permit.
    pub fn limits(&self) -> Limits {
        Limits {
            leases_max: self.leases_max,
            lease_rate: Bitrate::from_mbps(self.lease_mbps),
            link_bytes_max: ByteCount::new(self.link_gib << 30),
        }
    }
}

/// Limits of a relay's traffic: further leases are refused, and datagrams beyond the limit of their
/// lease or socket dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of simultaneous leases.
    pub leases_max: usize,
    /// Maximum bitrate of one lease, both directions together.
    pub lease_rate: Bitrate,
    /// Maximum bytes of sessions' datagrams that one socket of an end may send and receive together
    /// during a lease.
    pub link_bytes_max: ByteCount,
}

/// Maximum addresses to listen on: socket numbers have four bits.
const LISTEN_MAX: usize = 16;
/// Maximum of `leases_max`: a lease takes a few kilobytes.
const LEASES_MAX: u64 = 4_096;
const MBPS_MAX: u64 = 10_000;
/// Maximum of `latency_mib`: one TiB.
const LATENCY_MIB_MAX: u64 = 1 << 20;
/// Maximum of `link_gib`: one pebibyte.
const GIB_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use tautline_transport::crypto::Identity;

    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let wrong = |change: fn(&mut Config)| {
            let key = Identity::from_seed(&[1; 32]).public().to_string();
            let mut config = Config { switchboard_key: key, ..Config::default() };
            config.validate().unwrap();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert_eq!(
            wrong(|c| c.listen.clear()),
            "listen has 0 addresses: must be 1 to 16 addresses"
        );
        assert_eq!(wrong(|c| c.latency_mib = 0), "latency_mib = 0: must be 1 to 1048576 MiB");
        assert_eq!(wrong(|c| c.leases_max = 0), "leases_max = 0: must be 1 to 4096 leases");
        assert_eq!(
            wrong(|c| c.lease_mbps = 20_000),
            "lease_mbps = 20000: must be 1 to 10000 Mbit/s"
        );
        assert_eq!(wrong(|c| c.link_gib = 0), "link_gib = 0: must be 1 to 1048576 GiB");
        assert!(wrong(|c| c.switchboard_key.clear()).starts_with("switchboard_key is missing"));
        assert!(wrong(|c| c.switchboard_key = "ab".into()).starts_with("switchboard_key: \"ab\""));
    }

    #[test]
    fn an_unknown_setting_is_reported() {
        let error = toml::from_str::<Config>("lisen = []\n").unwrap_err();
        assert!(error.message().contains("unknown field `lisen`"), "{error}");
    }
}
