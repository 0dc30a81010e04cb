use serde::{Deserialize, Serialize};
use tautline_units::Bitrate;

use crate::error::ConfigError;
use crate::setting::{check, kbps, rate_within};

/// Parameters of the rate controllers, one of which each link has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Assumed capacity before the first report, of which the default controller grants nine
    /// tenths; the default is that of [LLMLNCL].
    #[serde(rename = "initial_kbps", with = "kbps")]
    pub initial: Bitrate,
    /// Maximum capacity estimate of the default controller, which grants at most nine tenths of it;
    /// the default is that of [LLMLNCL].
    #[serde(rename = "ceiling_kbps", with = "kbps")]
    pub ceiling: Bitrate,
}

impl Default for Config {
    fn default() -> Self {
        Self { initial: Bitrate::from_mbps(8), ceiling: Bitrate::from_mbps(80) }
    }
}

impl Config {
    /// Checks every field.
    ///
    /// # Errors
    /// [`ConfigError`] with the name of the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.faults().next().map_or(Ok(()), Err)
    }

    /// Returns an error for every invalid field.
    pub(crate) fn faults(&self) -> impl Iterator<Item = ConfigError> {
        let initial = rate_within("rate.initial_kbps", self.initial, KBPS_MIN);
        let bounded = rate_within("rate.ceiling_kbps", self.ceiling, KBPS_MIN);
        let ceiling = check("rate.ceiling_kbps", self.ceiling >= self.initial, || {
            format!("{} is below the initial rate of {}", self.ceiling, self.initial)
        });
        [initial, bounded, ceiling].into_iter().filter_map(Result::err)
    }
}

/// Minimum of both configured rates, kbit/s: what pings and reports need.
const KBPS_MIN: u32 = 8;
