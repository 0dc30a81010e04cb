use std::fmt;
use std::ops::Range;

use crate::mcap;
use crate::{Topic, utc};

/// One verified record: signed, or in the first format part of the chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Topic of the record.
    pub topic: Topic,
    /// Time of the record in nanoseconds of Unix time.
    pub unix_nanos: u64,
    pub(super) data: Range<usize>,
}

/// Result of the verification of a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Verdict {
    /// Format of the file.
    pub format: Format,
    /// Number of records before the first fault or the end, signatures included; in the second
    /// format only those up to the last signature.
    pub records: u32,
    /// Number of records covered by the newest signature.
    pub sealed: u32,
    /// Number of records after the last signature in the second format, 0 in the first. They are
    /// not listed, since anybody could have written them.
    pub unsigned: u32,
    /// Public key of the signatures, as written in the file: compare it with the machine's; `None`
    /// if the file has none.
    pub key: Option<String>,
    /// Kind of end of the file: complete, open or broken.
    pub end: End,
}

/// Protection scheme of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Format {
    /// Unknown: the file is not MCAP, or too short.
    #[default]
    Unknown,
    /// A chain of hashes whose head is signed; header, schemas and channels are not.
    First,
    /// Signatures over all preceding bytes of the file.
    Second,
}

/// Kind of end of a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum End {
    /// Complete, with the end of the drive or of its part, and a signature over it.
    Closed,
    /// Incomplete: the power was cut, the file is still written to, or its end was removed.
    #[default]
    Open,
    /// At a record that differs from what was written.
    Broken(Fault),
}

/// The first record that differs from what was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Number of the differing record in the file, from 0.
    pub record: u32,
    /// Offset of the differing record in the file, in bytes.
    pub offset: usize,
    /// Topic of the record and its time in nanoseconds of Unix time, if readable.
    pub says: Option<(Topic, u64)>,
    /// Kind of the fault of the record.
    pub what: What,
}

/// A kind of fault of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum What {
    /// The file does not begin as MCAP does.
    #[error("not an MCAP file")]
    NotMcap,
    /// The bytes are no record of a black box.
    #[error("not a record of a black box")]
    Foreign,
    /// The record belongs to no channel of a black box.
    #[error("not from a channel of a black box")]
    Channel,
    /// Records before this one are missing, or the order differs.
    #[error("records before it are missing or in another order")]
    Order,
    /// The record's hash does not match its content and the record before.
    #[error("its hash does not match its content and the preceding record")]
    Hash,
    /// The signature's record is no JSON.
    #[error("no JSON")]
    Json,
    /// Bytes since the previous signature differ from those that this signature covers.
    #[error("a byte since the preceding signature was changed")]
    Bytes,
    /// The header, a schema or a channel differs from what was signed.
    #[error("the file's header, schemas or channels do not match the signature")]
    Preamble,
    /// The signature does not cover the preceding records, or is not by the file's key.
    #[error("the signature over the preceding records is not from the file's key")]
    Signature,
    /// The file ends without the end of its drive or part, and a signature over it.
    #[error("the file ends without a signature over the drive's end: its end was cut off")]
    End,
    /// The file is larger than any that a writer produces.
    #[error("more than a black box writes into one file")]
    TooMuch,
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

/// Returns whether `rest`, which begins with the record of the data's end, is the regular end of a
/// file; `None` if it is a truncated one.
pub(super) fn is_end(rest: &[u8]) -> Option<bool> {
    let mut end = Vec::new();
    mcap::write_end(&mut end);
    if rest.len() < end.len() && end.starts_with(rest) { None } else { Some(rest == end) }
}

/// Returns whether a file ends with the MCAP magic. If a record seems to go beyond the end of such
/// a file, the file is complete and the record's length is wrong.
pub(super) fn has_end(bytes: &[u8]) -> bool {
    bytes.len() > mcap::MAGIC.len() && bytes.ends_with(&mcap::MAGIC)
}
