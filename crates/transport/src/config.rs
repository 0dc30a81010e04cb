use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tautline_units::{Bounded, ByteCount, Duration};

use crate::error::ConfigError;
use crate::planner::{self, QuantileFactory};
use crate::protect;
use crate::rate::{self, DelayRateFactory};
use crate::setting::{bytes, check, millis, within};
use crate::wire::Versions;

/// Parameters of a session. Every field has a default; the TOML names carry the units.
///
/// ```toml
/// datagram_bytes_max = 1200   # UDP payload, 150 to 1500
/// ping_interval_ms = 20
/// link_timeout_ms = 250
/// report_interval_ms = 10
/// media_deadline_ms = 200
/// command_deadline_ms = 250
/// spread = true
/// retransmit = true
/// [protect]
/// code = "block"   # or "stream"
/// miss_target = 0.005
/// floor_kbps = 400
/// [rate]
/// initial_kbps = 8000
/// ceiling_kbps = 80000
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Maximum UDP payload that this end sends. The default passes every path that carries IPv6,
    /// with room for tunnels.
    #[serde(with = "bytes")]
    pub datagram_bytes_max: ByteCount,
    /// Interval between pings on a live link.
    #[serde(rename = "ping_interval_ms", with = "millis")]
    pub ping_interval: Duration,
    /// Time without a pong after which a link is silent and carries no media; at least two ping
    /// intervals. It is longer on standby and over a stream. Other links take over its media
    /// earlier: after three ping intervals plus four times the jitter, 60 ms at least.
    #[serde(rename = "link_timeout_ms", with = "millis")]
    pub link_timeout: Duration,
    /// Interval between reports of a link that receives media. Others are reported ten times less
    /// often.
    #[serde(rename = "report_interval_ms", with = "millis")]
    pub report_interval: Duration,
    /// Assumed lifetime of a received media unit before the clocks are compared. Also the lifetime
    /// for which the clock estimate is shifted in favour of media; see
    /// [`ClockEstimate::favour`](crate::clock::ClockEstimate::favour).
    #[serde(rename = "media_deadline_ms", with = "millis")]
    pub media_deadline: Duration,
    /// Assumed lifetime of a received unit of any other channel before the clocks are compared.
    #[serde(rename = "command_deadline_ms", with = "millis")]
    pub command_deadline: Duration,
    /// True if a media unit must survive the loss of any one link. The planner waives this while
    /// one link carries most of the traffic and using it fully is worth more than the misses that
    /// it costs.
    pub spread: bool,
    /// True if media packets that are reported lost, or held by a silent link, are resent over
    /// another link. A packet is resent while its unit needs it and it can arrive in
    /// time.
    pub retransmit: bool,
    /// Parameters of the erasure code that protects media units.
    pub protect: protect::Config,
    /// Parameters of each link's rate control.
    pub rate: rate::Config,
    /// Rate control of each link: [`DelayRate`](rate::DelayRate), unless another crate supplies its
    /// own.
    #[serde(skip)]
    pub controllers: Arc<dyn rate::Factory>,
    /// Planner of media units: [`Quantile`](planner::Quantile), unless another crate supplies its
    /// own.
    #[serde(skip)]
    pub planner: Arc<dyn planner::Factory>,
    /// Protocol versions supported by this end: those of this build, except in tests.
    #[serde(skip)]
    pub versions: Versions,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            datagram_bytes_max: ByteCount::new(1_200),
            ping_interval: Duration::from_millis(20),
            link_timeout: Duration::from_millis(250),
            report_interval: Duration::from_millis(10),
            media_deadline: Duration::from_millis(200),
            command_deadline: Duration::from_millis(250),
            spread: true,
            retransmit: true,
            protect: protect::Config::default(),
            rate: rate::Config::default(),
            controllers: Arc::new(DelayRateFactory),
            planner: Arc::new(QuantileFactory),
            versions: Versions::OURS,
        }
    }
}

impl Config {
    /// Returns the parameters that the planner uses.
    pub fn planning(&self) -> planner::Config {
        planner::Config {
            protect: self.protect.clone(),
            spread: self.spread,
            media_deadline: self.media_deadline,
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`ConfigError`] with the name of the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.faults().next().map_or(Ok(()), Err)
    }

    /// Returns an error for every invalid field.
    pub fn faults(&self) -> impl Iterator<Item = ConfigError> {
        let bytes = self.datagram_bytes_max.get() as f64;
        let bytes = Bounded::new("datagram_bytes_max", bytes, 150.0..=1500.0);
        let checked = [
            bytes.check().map_err(ConfigError::OutOfBounds),
            within("ping_interval_ms", self.ping_interval, 5, 1_000),
            within("link_timeout_ms", self.link_timeout, 20, 10_000),
            check("link_timeout_ms", self.link_timeout >= self.ping_interval * 2, || {
                "must be at least two ping intervals".into()
            }),
            within("report_interval_ms", self.report_interval, 5, 1_000),
            within("media_deadline_ms", self.media_deadline, 1, 30_000),
            within("command_deadline_ms", self.command_deadline, 1, 30_000),
            self.protect.validate(),
        ];
        checked.into_iter().filter_map(Result::err).chain(self.rate.faults())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        assert_eq!(Config::default().validate(), Ok(()));
    }

    #[test]
    fn a_file_sets_what_it_names_and_leaves_the_rest() {
        let text = "link_timeout_ms = 300.5\nspread = false\n[rate]\ninitial_kbps = 2000";
        let config: Config = toml::from_str(text).unwrap();
        assert_eq!(config.link_timeout, Duration::from_micros(300_500));
        assert!(!config.spread);
        assert_eq!(config.rate.initial, tautline_units::Bitrate::from_mbps(2));
        assert_eq!(config.protect, protect::Config::default());
        let wrong = toml::from_str::<Config>("ping_intervall_ms = 20").unwrap_err();
        assert!(wrong.to_string().contains("unknown field `ping_intervall_ms`"), "{wrong}");
    }

    #[test]
    fn a_wrong_field_is_named() {
        let wrong = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert_eq!(
            wrong(|c| c.datagram_bytes_max = ByteCount::new(149)),
            "transport.datagram_bytes_max = 149: must be 150 to 1500 bytes"
        );
        assert_eq!(
            wrong(|c| c.link_timeout = Duration::from_millis(30)),
            "transport.link_timeout_ms: must be at least two ping intervals"
        );
        assert_eq!(
            wrong(|c| c.protect.miss_target = f64::NAN),
            "transport.protect.miss_target = NaN: must be 0.0001 to 0.2"
        );
        assert_eq!(
            wrong(|c| c.rate.initial = tautline_units::Bitrate::ZERO),
            "transport.rate.initial_kbps = 0: must be 8 to 10000000 kbit/s"
        );
    }
}
