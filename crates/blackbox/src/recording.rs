//! A file of a black box, read again and verified. Any bytes are safe to read.

mod first;
mod sealed;

use std::fmt;
use std::ops::Range;
use std::path::Path;

use serde_json::Value;
use tautline_mcap::{self as mcap, Records};

use crate::film::{PROFILE, Sealed};
use crate::{Error, Topic, utc};

/// The content of a file, up to the first bytes that are not as they were written.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The messages, one behind the other.
    data: Vec<u8>,
    records: Vec<Record>,
    seals: Vec<Sealed>,
    verdict: Verdict,
}

/// One record, verified: signed, or in the first format in its place in the chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its subject.
    pub topic: Topic,
    /// Nanoseconds of Unix time.
    pub unix_nanos: u64,
    data: Range<usize>,
}

/// What of a file can be relied on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Verdict {
    /// The format of the file.
    pub format: Format,
    /// How many records follow each other unbroken.
    pub records: u32,
    /// How many of them a signature covers.
    pub sealed: u32,
    /// How many records behind the last signature are not listed: anybody could have written them.
    pub unsigned: u32,
    /// The public key that signed, in the file's own words: compare it with the machine's.
    pub key: Option<String>,
    /// How the file ends.
    pub end: End,
}

/// How a file is protected.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Format {
    /// The file is too short to tell.
    #[default]
    Unknown,
    /// A chain through the records, whose head is signed; header, schemas and channels are not.
    First,
    /// Signatures over all bytes.
    Second,
}

/// How a file ends.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum End {
    /// With the end of the drive and a signature over it.
    Closed,
    /// In the midst of writing: the power was cut, it is still written to, or its end was taken
    /// away.
    #[default]
    Open,
    /// At a record that is not as it was written.
    Broken(Fault),
}

/// The first record that is not as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Its number, from 0.
    pub record: u32,
    /// Where it begins in the file.
    pub offset: usize,
    /// Its subject and its time, as far as it says.
    pub says: Option<(Topic, u64)>,
    /// The kind of fault.
    pub what: What,
}

/// A kind of fault of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum What {
    /// The file does not begin as MCAP does.
    #[error("no MCAP file")]
    NotMcap,
    /// These bytes are no record of a black box.
    #[error("no record of a black box")]
    Foreign,
    /// It belongs to no channel of a black box.
    #[error("of no channel of a black box")]
    Channel,
    /// Records are missing before it, or stand in another order.
    #[error("records are missing before it, or stand in another order")]
    Order,
    /// Its hash does not follow from it and the record before.
    #[error("its hash does not follow from it and the record before")]
    Hash,
    /// It is no JSON.
    #[error("no JSON")]
    Json,
    /// Bytes since the signature before it are not those that were signed.
    #[error("a byte since the signature before it is not as it was signed")]
    Bytes,
    /// The header, a schema or a channel is not as it was signed.
    #[error("the file's header, schemas or channels are not as they were signed")]
    Preamble,
    /// The signature is not over the records before, or not by the key that the file names.
    #[error("the signature is not by the file's key over the records before")]
    Signature,
    /// The file ends without the drive's end.
    #[error("the file ends here without a signature over the drive's end: its end was cut off")]
    End,
    /// The file holds more than a writer puts into one.
    #[error("more than a black box writes into one file")]
    TooMuch,
}

impl Recording {
    /// Reads and verifies a file.
    ///
    /// # Errors
    /// When it cannot be read; what is wrong in it is in the verdict.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path);
        let bytes = bytes.map_err(|source| Error::Disk { path: path.to_path_buf(), source })?;
        Ok(Self::parse(bytes))
    }

    /// Verifies the bytes of a file. O(bytes), unpacked at most a gigabyte.
    pub fn parse(bytes: Vec<u8>) -> Self {
        let Some(mut records) = Records::new(&bytes) else {
            let mut verdict = Verdict::default();
            // A power cut may leave even less.
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

    /// Returns the records before the first broken one, in the order in which they were written.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the content of a record.
    pub fn body(&self, record: &Record) -> Value {
        serde_json::from_slice(&self.data[record.data.clone()]).unwrap_or_default()
    }

    /// Returns what can be relied on.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns the newest signature's cover.
    pub(crate) fn sealed(&self) -> Option<Sealed> {
        self.seals.last().copied()
    }

    /// Returns the cover of each signature, the oldest first.
    pub(crate) fn seals(&self) -> &[Sealed] {
        &self.seals
    }

    /// Returns the record with which the file begins, if it is the one that says of which drive it is.
    pub(crate) fn begin(&self) -> Option<Value> {
        let first = self.records.first().filter(|record| record.topic == Topic::Drive)?;
        Some(self.body(first))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} at byte {}", self.record, self.offset)?;
        if let Some((topic, unix_nanos)) = self.says {
            write!(f, " ({} of {})", topic.name(), utc(unix_nanos))?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Returns whether the bytes from the end of data on are those of a file's end; `None` if they are cut.
fn is_end(rest: &[u8]) -> Option<bool> {
    let mut end = Vec::new();
    mcap::write_end(&mut end);
    if rest.len() < end.len() && end.starts_with(rest) { None } else { Some(rest == end) }
}

/// Returns whether a file that breaks off within a record ends as one that was ended: then nothing broke
/// off, and a length is wrong.
fn has_end(bytes: &[u8]) -> bool {
    bytes.len() > mcap::MAGIC.len() && bytes.ends_with(&mcap::MAGIC)
}

#[cfg(test)]
mod tests;
