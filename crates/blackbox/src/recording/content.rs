use serde_json::Value;

use super::verdict::{Record, Verdict};
use crate::Topic;
use crate::film::Sealed;

/// Verified content of a file, up to the first byte that differs from what was written.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Concatenated bytes of the records; the range of each record refers to them.
    pub(super) data: Vec<u8>,
    pub(super) records: Vec<Record>,
    pub(super) seals: Vec<Sealed>,
    pub(super) verdict: Verdict,
}

impl Recording {
    /// Returns the records before the first broken one, in the order in which they were written.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the content of a record; null if it is no JSON.
    pub fn body(&self, record: &Record) -> Value {
        serde_json::from_slice(self.bytes(record)).unwrap_or_default()
    }

    /// Returns the bytes of a record's content, which are JSON.
    pub fn bytes(&self, record: &Record) -> &[u8] {
        &self.data[record.data.clone()]
    }

    /// Returns what the verification of the file has found.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns the content of the newest signature; `None` if the file has none.
    pub(crate) fn sealed(&self) -> Option<Sealed> {
        self.seals.last().copied()
    }

    /// Returns the content of each signature, the oldest first.
    pub(crate) fn seals(&self) -> &[Sealed] {
        &self.seals
    }

    /// Returns the content of the first record, if its topic is [`Topic::Drive`], which names the
    /// drive.
    pub(crate) fn begin(&self) -> Option<Value> {
        let first = self.records.first().filter(|record| record.topic == Topic::Drive)?;
        Some(self.body(first))
    }
}
