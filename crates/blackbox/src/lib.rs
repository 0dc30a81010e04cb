//! The black box: what a guard got, decided and why, on disk.
//!
//! A [`Recorder`] steps the guard and writes on a thread of its own: every transition, all steps
//! around each stop, and in between as configured. A [`Recording`] is a file read again: its signatures
//! are verified, a [`folder`] those of all files together, and [`replay()`] runs the guard through the recorded
//! inputs and compares what it decides. docs/blackbox.md has the format.
#![forbid(unsafe_code)]

mod body;
mod chain;
pub mod config;
pub mod drives;
mod error;
mod film;
pub mod folder;
mod hex;
pub mod note;
pub mod recorder;
pub mod recording;
#[cfg(test)]
mod rehearsal;
pub mod replay;
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
pub use topic::{Fact, Topic};
pub use utc::utc;
