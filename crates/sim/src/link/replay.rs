use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::interval::Intervals;
use crate::error::{Error, within};
use crate::recording::{Columns, Recording, decompressed};

/// Recorded round trips, replayed on one direction of a link, looped.
///
/// Each direction takes `share` of the round trip, on top of its `delay_ms` and jitter. Where the
/// recording lost packets, this direction loses them. Where it held packets, this direction's queue
/// is held, then drains in a burst at the link's rate. Use it in both directions with the same
/// start, since both share one radio. [`Recording`] documents the file format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Path of the recording, plain or gzip. A relative path is resolved by
    /// [`Config::load_files`](super::Config::load_files).
    pub file: PathBuf,
    /// The operator, in a file with several: a value in its `operator` column, or else the name of
    /// the column to read; `None` in a file with one operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Start offset in the recording, in s.
    #[serde(default)]
    pub start_s: f64,
    /// Time between two lines, for files without a time column, in s.
    #[serde(default = "default_interval_s")]
    pub interval_s: f64,
    /// This direction's share of the round trip. A round trip cannot be split by measurement, so
    /// the default of one half is an assumption.
    #[serde(default = "default_share")]
    pub share: f64,
    /// The content of `file`; `None` until it is loaded.
    #[serde(skip)]
    pub recording: Option<Arc<Recording>>,
}

impl Replay {
    /// Returns a replay of all of `recording` from its start, with half of each round trip.
    pub fn of(recording: Arc<Recording>) -> Self {
        Self {
            file: PathBuf::from("(in memory)"),
            operator: None,
            start_s: 0.0,
            interval_s: default_interval_s(),
            share: default_share(),
            recording: Some(recording),
        }
    }

    pub(super) fn load(&mut self, folder: &Path) -> Result<(), Error> {
        if self.recording.is_some() {
            return Ok(());
        }
        self.validate()?;
        let path = folder.join(&self.file);
        let bytes = std::fs::read(&path).and_then(decompressed);
        let text = bytes.map_err(|cause| Error::RecordingFile { path: path.clone(), cause })?;
        let interval = Duration::from_secs_f64(self.interval_s);
        let columns = Columns { operator: self.operator.as_deref(), interval };
        let recording = Recording::parse(&text, columns)
            .map_err(|cause| Error::RecordingText { path: path.clone(), cause })?;
        self.recording = Some(Arc::new(recording));
        Ok(())
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        within("recording.start_s", self.start_s, 0.0, 86_400.0)?;
        within("recording.interval_s", self.interval_s, 0.001, 3_600.0)?;
        within("recording.share", self.share, 0.0, 1.0)
    }

    pub(super) fn loaded(&self) -> Result<&Arc<Recording>, Error> {
        let missing = || Error::RecordingNotLoaded { path: self.file.clone() };
        self.recording.as_ref().ok_or_else(missing)
    }

    /// Returns the losing and the holding intervals of the recording.
    pub(super) fn interruptions(&self) -> Result<(Intervals, Intervals), Error> {
        let recording = self.loaded()?;
        let seen = |list: &Arc<[(u64, u64)]>| {
            Intervals::recorded(Arc::clone(list), recording.period_nanos(), self.start_nanos())
        };
        Ok((seen(recording.lost()), seen(recording.held())))
    }

    /// Returns the start offset in the recording, in nanoseconds.
    pub(super) fn start_nanos(&self) -> u64 {
        (self.start_s * 1e9) as u64
    }
}

/// Returns 1 s, the most common interval of recordings without a time column.
const fn default_interval_s() -> f64 {
    1.0
}

const fn default_share() -> f64 {
    0.5
}
