//! Reader of the first format: single records, each with the hash of a chain.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{End, Fault, Format, Record, Recording, Verdict, What, has_end, is_end};
use crate::film::Sealed;
use crate::mcap::{self, Break, Records};
use crate::{Head, Topic, chain};

/// Reads and verifies a file that begins as MCAP does.
pub(super) fn read(bytes: Vec<u8>) -> Recording {
    let mut reading = Reading::default();
    reading.run(&bytes);
    let Reading { records, seals, verdict, .. } = reading;
    Recording { data: bytes, records, seals, verdict }
}

/// State of the reader of a file in the first format.
#[derive(Default)]
struct Reading {
    channels: BTreeMap<u16, Topic>,
    head: Head,
    records: Vec<Record>,
    seals: Vec<Sealed>,
    /// `true` if the last record is the end of the drive.
    is_ending: bool,
    /// `true` if the last record is a signature over the drive's end.
    is_ended: bool,
    verdict: Verdict,
}

impl Reading {
    fn run(&mut self, bytes: &[u8]) {
        for (offset, record) in Records::new(bytes).into_iter().flatten() {
            let end = match record {
                Ok(mcap::Record::Header { .. } | mcap::Record::Schema) => None,
                Ok(mcap::Record::DataEnd) => Some(self.end(offset, &bytes[offset..])),
                Ok(mcap::Record::Channel { id, topic, .. }) => self.name(id, topic, offset),
                Ok(mcap::Record::Message(message)) => {
                    self.verdict.format = Format::First;
                    self.take(&message, offset)
                }
                Err(Break::Short) if !has_end(bytes) => Some(End::Open),
                Ok(mcap::Record::Footer | mcap::Record::Chunk(_))
                | Err(Break::Foreign | Break::Short) => {
                    Some(self.broken(offset, None, What::Foreign))
                }
            };
            if let Some(end) = end {
                self.verdict.end = end;
                return;
            }
        }
    }

    /// Returns the kind of end of a file whose data ends here.
    fn end(&self, offset: usize, rest: &[u8]) -> End {
        match is_end(rest) {
            None => End::Open,
            Some(true) if self.is_ended => End::Closed,
            Some(true) => self.broken(offset, None, What::End),
            Some(false) => self.broken(offset, None, What::Foreign),
        }
    }

    fn name(&mut self, id: u16, topic: &str, offset: usize) -> Option<End> {
        let topic = Topic::from_name(topic).filter(|_| !self.channels.contains_key(&id));
        let Some(topic) = topic else { return Some(self.broken(offset, None, What::Channel)) };
        self.channels.insert(id, topic);
        None
    }

    /// Takes a message; returns the kind of end if the verified part of the file ends here, and
    /// `None` if it continues.
    fn take(&mut self, message: &mcap::Message<'_>, offset: usize) -> Option<End> {
        let Some(topic) = self.channels.get(&message.channel).copied() else {
            return Some(self.broken(offset, None, What::Channel));
        };
        let says = Some((topic, message.at));
        // The chain holds a single time, so a record must too.
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
        self.head = before.after(topic.name(), message.sequence, message.at, &[body, b"}"]);
        if self.head != head {
            return Some(self.broken(offset, says, What::Hash));
        }
        if topic == Topic::Seal
            && let Err(what) = self.check(message.data, before)
        {
            return Some(self.broken(offset, says, what));
        }
        self.is_ended = topic == Topic::Seal && self.is_ending;
        self.is_ending = topic == Topic::Drive && is_end_of_drive(message.data);
        let begin = offset + mcap::MESSAGE_DATA_AT;
        let data = begin..begin + message.data.len();
        self.records.push(Record { topic, unix_nanos: message.at, data });
        self.verdict.records += 1;
        None
    }

    /// Checks a signature over the records so far, whose chain ends in `head`, and takes it into
    /// the verdict.
    fn check(&mut self, data: &[u8], head: Head) -> Result<(), What> {
        let body: Value = serde_json::from_slice(data).map_err(|_| What::Json)?;
        let text = |member: &str| body[member].as_str().unwrap_or_default();
        let records = self.verdict.records;
        let is_of_these = body["records"] == records && text("head") == head.to_string();
        let key = text("key");
        let is_its = self.verdict.key.as_deref().is_none_or(|known| known == key);
        let is_signed = || chain::is_signed_first(key, text("signature"), head, records);
        if !is_of_these || !is_its || !is_signed() {
            return Err(What::Signature);
        }
        self.verdict.key = Some(key.to_owned());
        self.verdict.sealed = records;
        self.seals.push(Sealed { records, head });
        Ok(())
    }

    fn broken(&self, offset: usize, says: Option<(Topic, u64)>, what: What) -> End {
        End::Broken(Fault { record: self.verdict.records, offset, says, what })
    }
}

fn is_end_of_drive(data: &[u8]) -> bool {
    serde_json::from_slice::<Value>(data).is_ok_and(|body| body["event"] == "end")
}
