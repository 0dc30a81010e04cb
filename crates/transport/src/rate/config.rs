use serde::Deserialize;
use tautline_units::Bitrate;

use crate::error::ConfigError;
use crate::setting::{check, kbps};

/// Parameters of the rate controllers, one of which each link has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Rate granted before the first report; default 8000 kbit/s (1 MB/s, [LLMLNCL]).
    #[serde(rename = "initial_kbps", deserialize_with = "kbps")]
    pub initial: Bitrate,
    /// Maximum granted rate; default 80000 kbit/s (10 MB/s, [LLMLNCL]).
    #[serde(rename = "ceiling_kbps", deserialize_with = "kbps")]
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
        let initial = check("rate.initial_kbps", self.initial >= Bitrate::from_kbps(8), || {
            format!("{} is below 8 kbit/s, which pings and reports need", self.initial)
        });
        let ceiling = check("rate.ceiling_kbps", self.ceiling >= self.initial, || {
            format!("{} is below the initial rate of {}", self.ceiling, self.initial)
        });
        [initial, ceiling].into_iter().filter_map(Result::err)
    }
}
