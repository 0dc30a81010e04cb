use std::io;
use std::path::PathBuf;

/// Why nothing can be recorded or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is out of its bounds.
    #[error("blackbox.{setting} = {value}: must be {min} to {max}")]
    OutOfBounds {
        /// Which one.
        setting: &'static str,
        /// What was set.
        value: u64,
        /// The least that works.
        min: u64,
        /// The most that works.
        max: u64,
    },
    /// A folder or a file cannot be made, read or deleted.
    #[error("{}: {source}", path.display())]
    Disk {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The thread that writes cannot be started.
    #[error("the recorder's thread cannot be started: {0}")]
    Thread(io::Error),
}
