use std::path::{Path, PathBuf};

use tautline_units::Bounded;

/// A reason why a link could not be built; each variant carries its cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field of a link's configuration is out of its bounds.
    #[error(transparent)]
    OutOfBounds(#[from] Bounded),
    /// A field of a link's configuration breaks a rule.
    #[error("{field} = {value}: {reason}")]
    Field {
        /// The field's name, as written in TOML.
        field: &'static str,
        /// The rejected value of the field.
        value: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// A trace could not be read from its file.
    #[error("cannot read the trace {}: {cause}; correct the link's trace.file", whole(path))]
    TraceFile {
        /// Path of the trace's file.
        path: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// A trace's text is not in the Mahimahi format.
    #[error(
        "the trace {}: {cause}; a trace has whole milliseconds, one a line, none less than the one \
         before it",
        path.display()
    )]
    TraceText {
        /// Path of the trace's file.
        path: PathBuf,
        /// The fault, with its line number.
        cause: crate::trace::Error,
    },
    /// The configuration names a trace that has not been loaded.
    #[error("the trace {} has not been loaded", path.display())]
    TraceNotLoaded {
        /// Path of the trace's file.
        path: PathBuf,
    },
    /// A recording could not be read from its file.
    #[error(
        "cannot read the recording {}: {cause}; correct the link's recording.file",
        whole(path)
    )]
    RecordingFile {
        /// Path of the recording's file.
        path: PathBuf,
        /// The error of the operating system or of the decompression.
        cause: std::io::Error,
    },
    /// A recording's text has no round trips in the expected form.
    #[error("the recording {}: {cause}", path.display())]
    RecordingText {
        /// Path of the recording's file.
        path: PathBuf,
        /// The fault, with its line number.
        cause: crate::recording::Error,
    },
    /// The configuration names a recording that has not been loaded.
    #[error("the recording {} has not been loaded", path.display())]
    RecordingNotLoaded {
        /// Path of the recording's file.
        path: PathBuf,
    },
    /// No preset has this name.
    #[error("unknown preset {name:?}: choose one of {known}")]
    UnknownPreset {
        /// The unknown name of a preset, as requested.
        name: String,
        /// The names of all presets.
        known: String,
    },
}

/// Checks that `value` is at least `from` and at most `to`; NaN is an error too.
pub(crate) fn within(field: &'static str, value: f64, from: f64, to: f64) -> Result<(), Error> {
    Ok(Bounded::new(field, value, from..=to).check()?)
}

/// Returns the error for a field with a bad value.
pub(crate) fn wrong(field: &'static str, value: impl ToString, reason: &'static str) -> Error {
    Error::Field { field, value: value.to_string(), reason }
}

/// Returns the absolute path, which shows where a relative one was resolved.
fn whole(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
