//! Verification of all drives of a black box together: missing, shortened and misplaced files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::film::Sealed;
use crate::note::{self, Note};
use crate::recording::{End, Format};
use crate::{Head, Recording, Topic};

/// Drives and files of a black box that were added for verification together.
#[derive(Default, Debug)]
pub struct Folder {
    drives: BTreeSet<u32>,
    files: BTreeMap<Place, File>,
    /// Highest recorded number of the oldest drive that is kept: the drives below it were deleted
    /// by the settings. `None` before such a record was added.
    kept_from: Option<u32>,
}

/// Place of a file in a black box. Each drive is a folder, and its parts are the files in it, in
/// the order of their numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Number of the drive, which only grows over the life of a black box.
    pub drive: u32,
    /// Number of the part within its drive, from 1.
    pub part: u32,
}

/// A fault of a black box's files in combination.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The drive or part of a file by its name differs from the one in its content.
    #[error("{at} claims to be {says}")]
    Misplaced {
        /// Place of the file by its name and folder.
        at: Place,
        /// Place that the file's content contains.
        says: Place,
    },
    /// A drive is missing, the first one of a gap in the numbers, and no deletion of it is
    /// recorded.
    #[error("drive {0} is missing, and no deletion of it is recorded")]
    DriveMissing(u32),
    /// A file is missing although another one references it.
    #[error("{missing} is missing: {by} refers to it")]
    FileMissing {
        /// Place of the missing file.
        missing: Place,
        /// File that references the missing one.
        by: By,
    },
    /// A file lacks a signature that another one references.
    #[error(
        "{at} was shortened or replaced: it lacks the signature over {records} records that {by} \
         refers to"
    )]
    Shortened {
        /// Place of the shortened or replaced file.
        at: Place,
        /// Number of records that the signature covers.
        records: u32,
        /// File that references the missing signature.
        by: By,
    },
    /// A file does not reference its predecessor, although there is one.
    #[error("{0} does not refer to a preceding file")]
    Unlinked(Place),
    /// The note about the newest file is missing, although a file is of the second format.
    #[error("{} is missing: a deletion of the newest drive would go unnoticed", note::NAME)]
    NoteMissing,
    /// The note about the newest file cannot be read, or its signature is invalid.
    #[error("{}: {reason}", note::NAME)]
    NoteBroken {
        /// Text of the error with which the note was read.
        reason: String,
    },
}

/// The origin of a reference to a file: another file, or the note about the newest file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// The file at this place, by the reference to its predecessor.
    File(Place),
    /// The note about the newest file.
    Note,
}

/// Signatures and predecessor of one file, for checks against the references between files.
#[derive(Debug)]
struct File {
    seals: Vec<Sealed>,
    previous: Option<(Place, Sealed)>,
    /// `true` if the file has no valid signature.
    is_empty: bool,
    format: Format,
}

impl Folder {
    /// Adds a drive, which may have no file.
    pub fn take_drive(&mut self, number: u32) {
        self.drives.insert(number);
    }

    /// Adds the file at `at`; returns a fault if the drive and part in its content differ from
    /// `at`, and `None` otherwise.
    pub fn take(&mut self, at: Place, recording: &Recording) -> Option<Fault> {
        let begin = recording.begin().unwrap_or_default();
        let number = |name: &str| begin[name].as_u64().and_then(|number| number.try_into().ok());
        let says = number("drive").zip(number("part"));
        let named = &begin["previous"];
        let of = |name: &str| named[name].as_u64().and_then(|number| u32::try_from(number).ok());
        let previous = (|| {
            let place = Place { drive: of("drive")?, part: of("part")? };
            let head = Head::from_hex(named["head"].as_str()?)?;
            Some((place, Sealed { records: of("records")?, head }))
        })();
        let file = File {
            seals: recording.seals().to_vec(),
            previous,
            is_empty: recording.seals().is_empty(),
            format: recording.verdict().format,
        };
        self.files.insert(at, file);
        for record in recording.records().iter().filter(|record| record.topic == Topic::Drive) {
            let kept_from = recording.body(record)["kept_from"].as_u64();
            self.keep_from(kept_from.and_then(|number| number.try_into().ok()));
        }
        let says = says.map(|(drive, part)| Place { drive, part });
        says.filter(|says| *says != at).map(|says| Fault::Misplaced { at, says })
    }

    /// Returns the faults between the added drives and files, without those that
    /// [`take`](Self::take) has returned. `note` is the one about the newest file.
    pub fn faults(&mut self, note: &io::Result<Option<Note>>) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut named: Vec<(By, Place, Sealed)> = Vec::new();
        match note {
            Ok(Some(note)) => {
                self.keep_from(Some(note.kept_from));
                let place = Place { drive: note.drive, part: note.part };
                named.push((By::Note, place, note.sealed));
            }
            Ok(None) if self.files.values().any(|file| file.format == Format::Second) => {
                faults.push(Fault::NoteMissing);
            }
            Ok(None) => {}
            Err(error) => faults.push(Fault::NoteBroken { reason: error.to_string() }),
        }
        let mut is_first = true;
        for (at, file) in self.files.iter().filter(|(_, file)| !file.is_empty) {
            match file.previous {
                Some((place, sealed)) => named.push((By::File(*at), place, sealed)),
                None if is_first => {}
                None => faults.push(Fault::Unlinked(*at)),
            }
            is_first = false;
        }
        // Before deletions were recorded, the first drives may have been deleted.
        let oldest = self.drives.first().copied().unwrap_or_default();
        let kept_from = self.kept_from.unwrap_or(oldest);
        let newest = named.iter().map(|(_, place, _)| place.drive).max().unwrap_or_default();
        let newest = newest.max(self.drives.last().copied().unwrap_or_default());
        // Each gap reports one fault: a foreign folder's name can make a gap arbitrarily long.
        let mut expected = kept_from;
        for number in self.drives.range(kept_from..).copied().chain([newest.saturating_add(1)]) {
            faults.extend((expected < number).then_some(Fault::DriveMissing(expected)));
            expected = number.saturating_add(1);
        }
        for (by, place, sealed) in named {
            if place.drive < kept_from {
                continue;
            }
            match self.files.get(&place) {
                None => faults.push(Fault::FileMissing { missing: place, by }),
                Some(file) if file.seals.contains(&sealed) => {}
                Some(_) => {
                    faults.push(Fault::Shortened { at: place, records: sealed.records, by });
                }
            }
        }
        faults
    }

    /// Returns the faults between the parts of one drive that was added alone.
    pub fn faults_within(&mut self, number: u32) -> Vec<Fault> {
        let mut faults = self.faults(&Ok(None));
        faults.retain(|fault| match fault {
            Fault::FileMissing { missing: place, .. }
            | Fault::Shortened { at: place, .. }
            | Fault::Unlinked(place) => place.drive == number,
            Fault::Misplaced { .. }
            | Fault::DriveMissing(_)
            | Fault::NoteMissing
            | Fault::NoteBroken { .. } => false,
        });
        faults
    }

    fn keep_from(&mut self, number: Option<u32>) {
        self.kept_from = self.kept_from.max(number);
    }
}

impl Recording {
    /// Returns whether all records up to the end of the file are as they were written; the file may
    /// break off early.
    pub fn is_right(&self) -> bool {
        !matches!(self.verdict().end, End::Broken(_))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "drive {}, part {}", self.drive, self.part)
    }
}

impl std::fmt::Display for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(place) => write!(f, "{place}"),
            Self::Note => write!(f, "{}", note::NAME),
        }
    }
}

#[cfg(test)]
mod tests;
