//! Writer of one file.

use std::fs::File;
use std::io::{self, Write};

use serde_json::Value;

use crate::chain::{Growing, Seal};
use crate::{Head, Signer, Topic, body, mcap};

/// Storage of a file: a disk, or its replacement in tests.
pub(crate) trait Sink: Write {
    /// Syncs: returns after the written data is safe from a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

impl Sink for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// One file being written: records in chunks, each followed by a signature over all preceding
/// bytes.
pub(crate) struct Film<S> {
    sink: S,
    signer: Signer,
    hash: Growing,
    /// Hash of the bytes before the first record: header, schemas and channels.
    preamble: Head,
    records: u32,
    chunk: Chunk,
    newest: Option<Sealed>,
    /// `true` while written data is not yet safe from a power cut.
    is_open: bool,
    /// Length of the file in bytes, including bytes not yet passed to the sink.
    length: u64,
    /// Bytes not yet passed to the sink.
    bytes: Vec<u8>,
}

/// Encoded records that wait to be written as one chunk, before the next signature.
#[derive(Default)]
struct Chunk {
    messages: Vec<u8>,
    begins_at: u64,
    ends_at: u64,
}

/// Content of a signature: number of the preceding records that it covers, and the hash that it
/// signs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Sealed {
    pub(crate) records: u32,
    pub(crate) head: Head,
}

impl<S: Sink> Film<S> {
    /// Begins a file in `sink`.
    pub(crate) fn begin(sink: S, signer: Signer) -> Self {
        let bytes = preamble();
        let mut hash = Growing::default();
        hash.extend(&bytes);
        Self {
            sink,
            signer,
            preamble: hash.head(),
            hash,
            records: 0,
            chunk: Chunk::default(),
            newest: None,
            is_open: true,
            length: bytes.len() as u64,
            bytes,
        }
    }

    /// Returns the hash of header, schemas and channels, which the first record contains.
    pub(crate) fn preamble(&self) -> Head {
        self.preamble
    }

    /// Returns the length of the file in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Appends a record of the time `at`, in nanoseconds of Unix time; `body` is an object. Signs
    /// and writes the waiting records once they exceed 128 KiB.
    pub(crate) fn put(&mut self, topic: Topic, body: &Value, at: u64) -> io::Result<()> {
        if self.chunk.messages.is_empty() {
            self.chunk.begins_at = at;
        }
        self.chunk.begins_at = self.chunk.begins_at.min(at);
        self.chunk.ends_at = self.chunk.ends_at.max(at);
        let message = message(topic, self.records, at, body.to_string().as_bytes());
        self.chunk.messages.extend(message);
        self.records = self.records.saturating_add(1);
        self.is_open = true;
        if self.chunk.messages.len() < CHUNK_BYTES {
            return Ok(());
        }
        self.sign(false, at);
        self.flush()
    }

    /// Signs the appended records and syncs them to the disk; does nothing if that is already done.
    /// With `is_last`, also ends the file. Returns the content of the newest signature.
    pub(crate) fn seal(&mut self, is_last: bool, at: u64) -> io::Result<Sealed> {
        let newest = match self.newest {
            Some(newest) if self.chunk.messages.is_empty() && !is_last => newest,
            Some(_) | None => self.sign(is_last, at),
        };
        if self.is_open || is_last {
            if is_last {
                mcap::write_end(&mut self.bytes);
            }
            self.flush()?;
            self.sink.sync()?;
            self.is_open = false;
        }
        Ok(newest)
    }

    /// Appends the waiting records as a chunk, and a signature over all preceding bytes; returns
    /// the signature's content.
    fn sign(&mut self, is_last: bool, at: u64) -> Sealed {
        let Chunk { messages, begins_at, ends_at } = std::mem::take(&mut self.chunk);
        if !messages.is_empty() {
            let mut chunk = Vec::new();
            mcap::write_chunk(&messages, begins_at, ends_at, &mut chunk);
            self.append(&chunk);
        }
        let sealed = Sealed { records: self.records, head: self.hash.head() };
        let Sealed { records, head } = sealed;
        let seal = Seal { at, records, bytes: self.length, head, is_last };
        let text = self.signer.seal(&seal);
        self.append(&message(Topic::Seal, self.records, at, text.as_bytes()));
        self.records = self.records.saturating_add(1);
        self.is_open = true;
        self.newest = Some(sealed);
        sealed
    }

    fn append(&mut self, bytes: &[u8]) {
        self.hash.extend(bytes);
        self.length += bytes.len() as u64;
        self.bytes.extend(bytes);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

/// Returns the bytes before the first record: header, schemas and channels.
fn preamble() -> Vec<u8> {
    let mut bytes = Vec::new();
    mcap::write_begin(PROFILE, body::SOFTWARE, &mut bytes);
    for topic in Topic::ALL {
        let (name, schema) = topic.schema();
        let schema = mcap::Schema { name, encoding: "jsonschema", bytes: schema.as_bytes() };
        let channel = mcap::Channel {
            id: topic.channel(),
            topic: topic.name(),
            message_encoding: "json",
            schema: Some(schema),
        };
        mcap::write_channel(&channel, &mut bytes);
    }
    bytes
}

/// Encodes the record of a message.
pub(crate) fn message(topic: Topic, sequence: u32, at: u64, data: &[u8]) -> Vec<u8> {
    let channel = topic.channel();
    let mut bytes = Vec::new();
    let message = mcap::Message { channel, sequence, at, published_at: at, data };
    mcap::write_message(&message, &mut bytes);
    bytes
}

/// Profile in the header of this format; the first format has none.
pub(crate) const PROFILE: &str = "x-tautline-blackbox-2";
/// Size of waiting records at which they are signed and written, about 65 steps: the maximum loss
/// when the guard's process is killed.
const CHUNK_BYTES: usize = 128 << 10;
