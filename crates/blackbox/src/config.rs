//! Settings of a black box: folder, content and retention.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Bounded;

use crate::Error;

/// Settings of a black box; docs/blackbox.md explains each value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Folder that contains one folder per drive.
    pub folder: PathBuf,
    /// Vehicle identification number, recorded in each file. If unset, the machine's report is
    /// used.
    pub vin: Option<String>,
    /// Time before each stop that is recorded in full, in s.
    pub before_s: u64,
    /// Time after each stop that is recorded in full, in s.
    pub after_s: u64,
    /// Interval between recorded steps outside the time around stops. 0 records every step of a
    /// drive in full.
    pub between_stops_ms: u64,
    /// Interval at which written data is signed and synced to the disk. A transition is synced at
    /// once.
    pub sync_ms: u64,
    /// Age in days after which a drive is deleted; 0 keeps all.
    pub keep_days: u64,
    /// Total size above which the oldest drives are deleted; 0 keeps all.
    pub keep_mib: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            folder: PathBuf::from("blackbox"),
            vin: None,
            before_s: 30,
            after_s: 30,
            between_stops_ms: 100,
            sync_ms: 1_000,
            keep_days: 0,
            keep_mib: 16_384,
        }
    }
}

impl Config {
    /// Checks the range of every setting.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] naming the first setting out of range.
    pub fn validate(&self) -> Result<(), Error> {
        self.faults().next().map_or(Ok(()), Err)
    }

    /// Returns an error for every setting out of range.
    pub fn faults(&self) -> impl Iterator<Item = Error> {
        let vin = self.vin.as_ref().map(|vin| Bounded::size("vin", vin.len(), 1..=64, "bytes"));
        let bounded = |setting, value, bounds| Bounded::new(setting, value as f64, bounds);
        // 0 has a meaning of its own.
        let between = Some(self.between_stops_ms).filter(|ms| *ms != 0);
        let between = between.map(|ms| bounded("between_stops_ms", ms, 10.0..=10e3));
        let others = [
            bounded("before_s", self.before_s, 1.0..=120.0),
            bounded("after_s", self.after_s, 1.0..=600.0),
            bounded("sync_ms", self.sync_ms, 100.0..=60e3),
            bounded("keep_days", self.keep_days, 0.0..=36_500.0),
            bounded("keep_mib", self.keep_mib, 0.0..=f64::from(1 << 30)),
        ];
        let all = vin.into_iter().chain(between).chain(others);
        all.filter_map(|bounded| bounded.check().err()).map(Error::OutOfBounds)
    }

    pub(crate) fn before(&self) -> Duration {
        Duration::from_secs(self.before_s)
    }

    pub(crate) fn after(&self) -> Duration {
        Duration::from_secs(self.after_s)
    }

    /// Returns the interval between recorded steps outside the time around stops; `None` if every
    /// step of a drive is recorded in full.
    pub(crate) fn between(&self) -> Option<Duration> {
        (self.between_stops_ms > 0).then(|| Duration::from_millis(self.between_stops_ms))
    }

    pub(crate) fn sync(&self) -> Duration {
        Duration::from_millis(self.sync_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_out_of_its_bounds_is_named() {
        assert!(Config::default().validate().is_ok());
        assert!(Config { between_stops_ms: 0, ..Config::default() }.validate().is_ok());
        let told = |config: Config| config.validate().unwrap_err().to_string();
        assert_eq!(
            told(Config { before_s: 0, ..Config::default() }),
            "blackbox.before_s = 0: must be 1 to 120 s"
        );
        assert_eq!(
            told(Config { between_stops_ms: 5, ..Config::default() }),
            "blackbox.between_stops_ms = 5: must be 10 to 10000 ms"
        );
    }
}
