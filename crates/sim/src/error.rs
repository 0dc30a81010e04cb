use std::path::{Path, PathBuf};

/// A reason why a link could not be made; each says all, with its cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field of a link's configuration is out of its range.
    #[error("{field} = {value}: {reason}")]
    Field {
        /// The field's name, as written in TOML.
        field: &'static str,
        /// The value found there.
        value: String,
        /// The range or rule that it breaks.
        reason: &'static str,
    },
    /// A trace could not be read from its file.
    #[error("cannot read the trace {}: {cause}; correct the link's trace.file", whole(path))]
    TraceFile {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// A trace's text is not in the Mahimahi format.
    #[error(
        "the trace {}: {cause}; a trace has whole milliseconds, one a line, none less than the one \
         before it",
        path.display()
    )]
    TraceText {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        cause: crate::trace::Error,
    },
    /// The configuration names a trace that has not been loaded.
    #[error("the trace {} has not been loaded", path.display())]
    TraceNotLoaded {
        /// The file.
        path: PathBuf,
    },
    /// A recording could not be read from its file.
    #[error(
        "cannot read the recording {}: {cause}; correct the link's recording.file",
        whole(path)
    )]
    RecordingFile {
        /// The file.
        path: PathBuf,
        /// What the operating system, or the decompression, said.
        cause: std::io::Error,
    },
    /// A recording's text has no round trips as they are expected.
    #[error("the recording {}: {cause}", path.display())]
    RecordingText {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        cause: crate::recording::Error,
    },
    /// The configuration names a recording that has not been loaded.
    #[error("the recording {} has not been loaded", path.display())]
    RecordingNotLoaded {
        /// The file.
        path: PathBuf,
    },
    /// No preset has this name.
    #[error("unknown preset {name:?}: choose one of {}", preset_names())]
    UnknownPreset {
        /// The name asked for.
        name: String,
    },
}

/// Refuses a value outside `from` to `to`.
pub(crate) fn within(
    field: &'static str,
    value: f64,
    from: f64,
    to: f64,
    reason: &'static str,
) -> Result<(), Error> {
    if (from..=to).contains(&value) { Ok(()) } else { Err(wrong(field, value, reason)) }
}

/// Returns what is wrong with a field.
pub(crate) fn wrong(field: &'static str, value: impl ToString, reason: &'static str) -> Error {
    Error::Field { field, value: value.to_string(), reason }
}

/// Returns the path from the root, which tells where a relative one was looked for.
fn whole(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn preset_names() -> String {
    <crate::preset::Preset as strum::VariantNames>::VARIANTS.join(", ")
}
