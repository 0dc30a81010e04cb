//! A file of a black box, read again and verified. Any bytes are safe to read.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use serde_json::Value;
use tautline_mcap::{self as mcap, Break, Records};

use crate::film::Sealed;
use crate::{Error, Head, Topic, chain, utc};

/// What a file says, up to the first record that is broken.
#[derive(Clone, Debug)]
pub struct Recording {
    bytes: Vec<u8>,
    records: Vec<Record>,
    verdict: Verdict,
}

/// One record, whose place in the chain is right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// What it is about.
    pub topic: Topic,
    /// Nanoseconds of Unix time.
    pub unix_nanos: u64,
    data: Range<usize>,
}

/// What of a file can be relied on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Verdict {
    /// How many records follow each other unbroken.
    pub records: u32,
    /// How many of them a signature covers.
    pub sealed: u32,
    /// The public key that signed, in the file's own words: compare it with the machine's.
    pub key: Option<String>,
    /// How the file ends.
    pub end: End,
}

/// How a file ends.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum End {
    /// As its writer ended it.
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
    /// Which one, from 0.
    pub record: u32,
    /// Where it begins in the file.
    pub offset: usize,
    /// What it is about, and its time, as far as it says.
    pub says: Option<(Topic, u64)>,
    /// What is wrong.
    pub what: What,
}

/// What is wrong with a record.
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
    /// The signature is not over the records before, or not by the key that the file names.
    #[error("the signature is not by the file's key over the records before")]
    Signature,
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

    /// Verifies the bytes of a file. O(bytes).
    pub fn parse(bytes: Vec<u8>) -> Self {
        let mut reading = Reading::default();
        reading.run(&bytes);
        let Reading { records, verdict, .. } = reading;
        Self { bytes, records, verdict }
    }

    /// Returns the records before the first broken one, in the order in which they were written.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns what a record says.
    pub fn body(&self, record: &Record) -> Value {
        serde_json::from_slice(&self.bytes[record.data.clone()]).unwrap_or_default()
    }

    /// Returns what can be relied on.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns what the newest signature covers.
    pub(crate) fn sealed(&self) -> Option<Sealed> {
        let seal = self.records.iter().rev().find(|record| record.topic == Topic::Seal)?;
        let body = self.body(seal);
        let head = Head::from_hex(body["head"].as_str()?)?;
        Some(Sealed { records: u32::try_from(body["records"].as_u64()?).ok()?, head })
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

/// A file while it is read.
#[derive(Default)]
struct Reading {
    channels: BTreeMap<u16, Topic>,
    head: Head,
    records: Vec<Record>,
    verdict: Verdict,
}

impl Reading {
    fn run(&mut self, bytes: &[u8]) {
        let Some(records) = Records::new(bytes) else {
            // A power cut may leave even less.
            if !mcap::MAGIC.starts_with(bytes) {
                self.verdict.end = self.broken(0, None, What::NotMcap);
            }
            return;
        };
        for (offset, record) in records {
            let end = match record {
                Ok(mcap::Record::Header | mcap::Record::Schema | mcap::Record::DataEnd) => None,
                Ok(mcap::Record::Footer) => Some(End::Closed),
                Ok(mcap::Record::Channel { id, topic }) => self.name(id, topic, offset),
                Ok(mcap::Record::Message(message)) => self.take(&message, offset),
                Err(Break::Short) => Some(End::Open),
                Err(Break::Foreign) => Some(self.broken(offset, None, What::Foreign)),
            };
            if let Some(end) = end {
                self.verdict.end = end;
                return;
            }
        }
    }

    fn name(&mut self, id: u16, topic: &str, offset: usize) -> Option<End> {
        let topic = Topic::from_name(topic).filter(|_| !self.channels.contains_key(&id));
        let Some(topic) = topic else { return Some(self.broken(offset, None, What::Channel)) };
        self.channels.insert(id, topic);
        None
    }

    /// Takes a message; returns how the file ends if it ends here.
    fn take(&mut self, message: &mcap::Message<'_>, offset: usize) -> Option<End> {
        let Some(topic) = self.channels.get(&message.channel).copied() else {
            return Some(self.broken(offset, None, What::Channel));
        };
        let says = Some((topic, message.at));
        // The chain holds one time, and so does a record.
        if message.published_at != message.at {
            return Some(self.broken(offset, None, What::Foreign));
        }
        if message.sequence != self.verdict.records {
            return Some(self.broken(offset, says, What::Order));
        }
        let Some((body, head)) = chain::split(message.data) else {
            return Some(self.broken(offset, says, What::Hash));
        };
        let before = self.head;
        self.head = before.after(topic, message.sequence, message.at, &[body, b"}"]);
        if self.head != head {
            return Some(self.broken(offset, says, What::Hash));
        }
        if topic == Topic::Seal
            && let Err(what) = self.check(message.data, before)
        {
            return Some(self.broken(offset, says, what));
        }
        let begin = offset + mcap::MESSAGE_DATA_AT;
        let data = begin..begin + message.data.len();
        self.records.push(Record { topic, unix_nanos: message.at, data });
        self.verdict.records += 1;
        None
    }

    /// Checks a signature over the records so far, which lead to `head`.
    fn check(&mut self, data: &[u8], head: Head) -> Result<(), What> {
        let body: Value = serde_json::from_slice(data).map_err(|_| What::Json)?;
        let text = |member: &str| body[member].as_str().unwrap_or_default();
        let records = self.verdict.records;
        let is_of_these = body["records"] == records && text("head") == head.to_string();
        let key = text("key");
        let is_its = self.verdict.key.as_deref().is_none_or(|known| known == key);
        if !is_of_these || !is_its || !chain::is_signed(key, text("signature"), head, records) {
            return Err(What::Signature);
        }
        self.verdict.key = Some(key.to_owned());
        self.verdict.sealed = records;
        Ok(())
    }

    fn broken(&self, offset: usize, says: Option<(Topic, u64)>, what: What) -> End {
        End::Broken(Fault { record: self.verdict.records, offset, says, what })
    }
}

#[cfg(test)]
mod tests;
