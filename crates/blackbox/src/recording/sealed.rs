//! Reader of the second format: chunks of records, each followed by a signature over all preceding
//! bytes.

use serde_json::Value;

use super::{End, Fault, Format, Record, Recording, Verdict, What, has_end, is_end};
use crate::chain::{Growing, Seal};
use crate::film::{self, Sealed};
use crate::mcap::{self, Break, MAGIC, Records};
use crate::{Head, Topic};

/// Reads and verifies a file whose header names this format.
pub(super) fn read(bytes: &[u8]) -> Recording {
    let mut reading = Reading {
        bytes,
        hash: Growing::default(),
        hashed: 0,
        channels: 0,
        preamble: None,
        data: Vec::new(),
        records: Vec::new(),
        pending: Vec::new(),
        is_ended: false,
        seals: Vec::new(),
        verdict: Verdict { format: Format::Second, ..Verdict::default() },
    };
    reading.verdict.end = reading.run().unwrap_or_default();
    let Reading { data, records, pending, seals, mut verdict, .. } = reading;
    verdict.unsigned = pending.len() as u32;
    Recording { data, records, seals, verdict }
}

/// State of the reader of a file in the second format.
struct Reading<'a> {
    bytes: &'a [u8],
    hash: Growing,
    /// Number of bytes of the file that `hash` covers so far.
    hashed: usize,
    /// Number of channels read so far.
    channels: usize,
    /// Hash of all bytes before the first chunk; `None` until that is reached.
    preamble: Option<Head>,
    /// Concatenated content of the records read, to which their ranges refer.
    data: Vec<u8>,
    records: Vec<Record>,
    /// Records not yet covered by a signature.
    pending: Vec<Record>,
    /// `true` if the newest signature is the last one, over the end of the drive or part.
    is_ended: bool,
    seals: Vec<Sealed>,
    verdict: Verdict,
}

impl Reading<'_> {
    /// Returns the kind of end of the file; `None` if it ends between two records.
    fn run(&mut self) -> Option<End> {
        let bytes = self.bytes;
        for (offset, record) in Records::new(bytes)? {
            let taken = match record {
                Ok(mcap::Record::Header { .. }) if offset == MAGIC.len() => Ok(()),
                Ok(mcap::Record::Schema) if self.preamble.is_none() => Ok(()),
                Ok(mcap::Record::Channel { id, topic, .. }) => self.name(id, topic),
                Ok(mcap::Record::Chunk(chunk)) => self.unpack(&chunk, offset),
                Ok(mcap::Record::Message(message)) => self.check(&message, offset),
                Ok(mcap::Record::DataEnd) => match is_end(&bytes[offset..]) {
                    None => return Some(End::Open),
                    Some(true) if self.is_ended => return Some(End::Closed),
                    Some(true) => Err(What::End),
                    Some(false) => Err(What::Foreign),
                },
                Err(Break::Short) if !has_end(bytes) => return Some(End::Open),
                // Some file systems leave zeros in place of data lost in a power cut.
                Err(Break::Foreign) if bytes[offset..].iter().all(|byte| *byte == 0) => {
                    return Some(End::Open);
                }
                Ok(mcap::Record::Header { .. } | mcap::Record::Schema | mcap::Record::Footer)
                | Err(Break::Short | Break::Foreign) => Err(What::Foreign),
            };
            if let Err(what) = taken {
                return Some(self.broken(offset, what));
            }
        }
        None
    }

    /// Checks a channel: each must be the next of [`Topic::ALL`], before the first chunk.
    fn name(&mut self, id: u16, topic: &str) -> Result<(), What> {
        let expected = Topic::ALL.get(self.channels).filter(|_| self.preamble.is_none());
        let is_it = expected.is_some_and(|known| known.channel() == id && known.name() == topic);
        self.channels += 1;
        if is_it { Ok(()) } else { Err(What::Channel) }
    }

    /// Adds a chunk's records, which stay pending until a signature covers them. Fails if those of
    /// the previous chunk are still pending.
    fn unpack(&mut self, chunk: &mcap::Chunk<'_>, offset: usize) -> Result<(), What> {
        if self.preamble.is_none() {
            self.preamble = Some(self.head_at(offset));
        }
        if !self.pending.is_empty() || self.is_ended {
            return Err(What::Foreign);
        }
        let messages = chunk.messages().map_err(|_| What::Foreign)?;
        if self.data.len() + messages.len() > DATA_BYTES_MAX {
            return Err(What::TooMuch);
        }
        let mut pending = Vec::new();
        for (_, record) in Records::within(&messages) {
            let Ok(mcap::Record::Message(message)) = record else { return Err(What::Foreign) };
            let topic = usize::from(message.channel).checked_sub(1);
            let topic = topic.and_then(|place| Topic::ALL.get(place).copied());
            let topic = topic.filter(|topic| *topic != Topic::Seal).ok_or(What::Channel)?;
            if u64::from(message.sequence) != u64::from(self.verdict.records) + pending.len() as u64
            {
                return Err(What::Order);
            }
            let begin = self.data.len();
            self.data.extend(message.data);
            let data = begin..self.data.len();
            pending.push(Record { topic, unix_nanos: message.at, data });
        }
        self.pending = pending;
        Ok(())
    }

    /// Checks a signature over all preceding bytes, and accepts the records that waited for it.
    fn check(&mut self, message: &mcap::Message<'_>, offset: usize) -> Result<(), What> {
        let says = Seal::read(message.data, message.at);
        let (seal, key, signature) =
            says.filter(|_| message.channel == Topic::Seal.channel()).ok_or(What::Signature)?;
        let record = film::message(Topic::Seal, message.sequence, message.at, message.data);
        let is_its = self.verdict.key.as_deref().is_none_or(|known| known == key);
        let records = self.verdict.records + self.pending.len() as u32;
        // Only the seal's own hash distinguishes a changed record from a changed signature.
        if seal.head != self.head_at(offset) {
            return Err(match self.is_preamble_right() {
                true => What::Bytes,
                false => What::Preamble,
            });
        }
        let is_in_place = seal.bytes == offset as u64
            && (seal.records, message.sequence) == (records, records)
            && self.bytes[offset..].starts_with(&record);
        let is_ended = seal.is_last && self.pending.last().is_some_and(|last| self.is_end(last));
        if !is_in_place || !is_its || self.is_ended || !seal.is_signed(&key, &signature) {
            return Err(What::Signature);
        }
        self.records.append(&mut self.pending);
        let begin = self.data.len();
        self.data.extend(message.data);
        let data = begin..self.data.len();
        self.records.push(Record { topic: Topic::Seal, unix_nanos: message.at, data });
        self.seals.push(Sealed { records, head: seal.head });
        self.is_ended = is_ended;
        self.verdict.key = Some(key);
        self.verdict.sealed = records;
        self.verdict.records = records + 1;
        Ok(())
    }

    /// Returns whether header, schemas and channels match the hash in the first record; `true`
    /// without such a hash.
    fn is_preamble_right(&self) -> bool {
        let first = self.records.first().or(self.pending.first());
        let named = first.map(|first| self.body(first)["preamble"].clone());
        let named = named.as_ref().and_then(Value::as_str);
        named.is_none_or(|named| {
            Some(named) == self.preamble.map(|head| head.to_string()).as_deref()
        })
    }

    fn is_end(&self, record: &Record) -> bool {
        record.topic == Topic::Drive && self.body(record)["event"] == "end"
    }

    fn body(&self, record: &Record) -> Value {
        serde_json::from_slice(&self.data[record.data.clone()]).unwrap_or_default()
    }

    /// Returns the hash of all bytes before `offset`, which must not decrease between calls.
    fn head_at(&mut self, offset: usize) -> Head {
        self.hash.extend(&self.bytes[self.hashed..offset]);
        self.hashed = offset;
        self.hash.head()
    }

    fn broken(&self, offset: usize, what: What) -> End {
        let says = self.pending.first().map(|record| (record.topic, record.unix_nanos));
        End::Broken(Fault { record: self.verdict.records, offset, says, what })
    }
}

/// Maximum size of unpacked records in bytes: three times that of a regular part.
const DATA_BYTES_MAX: usize = 1 << 30;
