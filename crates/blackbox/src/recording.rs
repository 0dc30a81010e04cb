//! Reader that verifies a file of a black box. Any input is safe.

mod content;
mod first;
mod sealed;
mod verdict;

use std::path::Path;

use crate::Error;
use crate::film::PROFILE;
use crate::mcap::{self, Records};
pub use content::Recording;
pub use verdict::{End, Fault, Format, Record, Verdict, What};
use verdict::{has_end, is_end};

impl Recording {
    /// Reads and verifies a file.
    ///
    /// # Errors
    /// When the file cannot be read; faults of its content are in the verdict.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path);
        let bytes = bytes.map_err(|source| Error::Disk { path: path.to_path_buf(), source })?;
        Ok(Self::parse(bytes))
    }

    /// Reads and verifies the bytes of a file. O(bytes); at most a gigabyte of records is unpacked.
    pub fn parse(bytes: Vec<u8>) -> Self {
        let Some(mut records) = Records::new(&bytes) else {
            let mut verdict = Verdict::default();
            // After a power cut even the magic may be incomplete.
            if !mcap::MAGIC.starts_with(&bytes) {
                let what = What::NotMcap;
                verdict.end = End::Broken(Fault { record: 0, offset: 0, says: None, what });
            }
            return Self { data: Vec::new(), records: Vec::new(), seals: Vec::new(), verdict };
        };
        let is_second = match records.next() {
            Some((_, Ok(mcap::Record::Header { profile }))) => profile == PROFILE,
            Some(_) | None => false,
        };
        match is_second {
            true => sealed::read(&bytes),
            false => first::read(bytes),
        }
    }
}

#[cfg(test)]
mod tests;
