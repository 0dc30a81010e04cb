use std::io;
use std::path::PathBuf;

/// An error that prevents recording or reading.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is out of range.
    #[error("blackbox.{setting} = {value}: must be {min} to {max}")]
    OutOfBounds {
        /// Name of the setting.
        setting: &'static str,
        /// Refused value of the setting.
        value: u64,
        /// Minimum of the setting.
        min: u64,
        /// Maximum of the setting; larger values are refused.
        max: u64,
    },
    /// A folder or a file cannot be created, read or deleted.
    #[error("{}: {source}", path.display())]
    Disk {
        /// Path of the folder or file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The writer thread cannot be started.
    #[error("cannot start the recorder's thread: {0}")]
    Thread(io::Error),
}
