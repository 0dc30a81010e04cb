use std::path::PathBuf;

/// Why a link could not be made.
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
    #[error("cannot read the trace {}: {source}", path.display())]
    TraceFile {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A trace's text is not in the Mahimahi format.
    #[error("the trace {}: {source}", path.display())]
    TraceText {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        source: crate::trace::Error,
    },
    /// The configuration names a trace that has not been loaded.
    #[error("the trace {} has not been loaded", path.display())]
    TraceNotLoaded {
        /// The file.
        path: PathBuf,
    },
    /// A recording could not be read from its file.
    #[error("cannot read the recording {}: {source}", path.display())]
    RecordingFile {
        /// The file.
        path: PathBuf,
        /// What the operating system, or the decompression, said.
        source: std::io::Error,
    },
    /// A recording's text has no round trips as they are expected.
    #[error("the recording {}: {source}", path.display())]
    RecordingText {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        source: crate::recording::Error,
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

fn preset_names() -> String {
    crate::preset::Preset::ALL.map(crate::preset::Preset::name).join(", ")
}
