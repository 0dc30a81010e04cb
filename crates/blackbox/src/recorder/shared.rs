use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use tautline_guard::Guard;
use tautline_units::Instant;

use crate::body::Step;
use crate::topic::Fact;

/// A fault that prevents complete recording.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trouble {
    /// The disk is full.
    DiskFull,
    /// The disk refuses writes.
    DiskRefuses,
    /// The disk is too slow: the last step or fact was dropped.
    DiskBehind,
    /// The writer thread has ended.
    Ended,
}

impl Trouble {
    /// Returns the description of the fault for a person.
    pub fn words(self) -> &'static str {
        match self {
            Self::DiskFull => "disk full",
            Self::DiskRefuses => "disk refuses",
            Self::DiskBehind => "disk too slow",
            Self::Ended => "its thread has ended",
        }
    }
}

/// An item for the recorder's thread: a step of the guard, or a fact.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one step every 10 ms, and no allocation")]
pub(super) enum Item {
    Step(Taken),
    Fact(Fact, String, Instant),
}

/// A step to be recorded and, where a replay may begin, the state of the guard before it; `None`
/// elsewhere.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) step: Step,
    pub(super) before: Option<Box<Guard>>,
}

/// State shared by the recorder's caller and its thread.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) dropped: AtomicU64,
    pub(super) is_behind: AtomicU8,
    /// Result of the last write to the disk or check of it, one of the constants `DISK_*`;
    /// `DISK_ENDED` once the thread has ended.
    pub(super) disk: AtomicU8,
    /// Number of the drive that is being recorded; 0 if there is none.
    pub(super) drive: AtomicU32,
}

impl Shared {
    pub(super) fn trouble(&self) -> Option<Trouble> {
        match self.disk.load(Ordering::Relaxed) {
            DISK_FULL => Some(Trouble::DiskFull),
            DISK_REFUSES => Some(Trouble::DiskRefuses),
            DISK_ENDED => Some(Trouble::Ended),
            _ if self.is_behind.load(Ordering::Relaxed) > 0 => Some(Trouble::DiskBehind),
            _ => None,
        }
    }

    /// Stores the result of the last write to the disk or check of it: an error, or `None` for
    /// success.
    pub(super) fn set_disk(&self, error: Option<&io::Error>) {
        let state = match error.map(io::Error::kind) {
            None => DISK_WELL,
            Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => DISK_FULL,
            Some(_) => DISK_REFUSES,
        };
        self.disk.store(state, Ordering::Relaxed);
    }
}

pub(super) const DISK_WELL: u8 = 0;
pub(super) const DISK_FULL: u8 = 1;
pub(super) const DISK_REFUSES: u8 = 2;
pub(super) const DISK_ENDED: u8 = 3;
