//! Black box: a record on disk of a guard's input, its decisions and their reasons.
//!
//! A [`Recorder`] steps the guard and writes on a thread of its own: every transition, all steps
//! around each stop, and samples in between as configured. A [`Recording`] reads a file back and
//! verifies its signatures; a [`folder`] verifies all files together. [`replay()`] runs the guard
//! through the recorded inputs and compares its decisions. docs/blackbox.md specifies the format.
#![forbid(unsafe_code)]

mod body;
mod chain;
pub mod config;
pub mod drives;
mod error;
mod film;
pub mod folder;
mod hex;
pub mod mcap;
pub mod note;
pub mod recorder;
pub mod recording;
#[cfg(test)]
mod rehearsal;
pub mod replay;
mod stream;
mod topic;
mod utc;

pub use chain::{Head, Signer};
pub use config::Config;
pub use error::Error;
pub use folder::Folder;
pub use note::Note;
pub use recorder::{Health, Recorder};
pub use recording::Recording;
pub use replay::replay;
pub use stream::Stream;
pub use topic::{Fact, Topic};
pub use utc::utc;
