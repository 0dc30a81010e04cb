use std::io;
use std::path::PathBuf;

use tautline_units::Bounded;

/// An error that prevents recording or reading.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is out of range.
    #[error("blackbox.{0}")]
    OutOfBounds(Bounded),
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
