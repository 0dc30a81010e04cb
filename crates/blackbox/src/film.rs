//! One file while it is written.

use std::fs::File;
use std::io::{self, Write};

use serde_json::{Value, json};
use tautline_mcap as mcap;

use crate::{Head, Signer, Topic, body, chain};

/// Where a file goes: a disk, or a test's idea of one.
pub(crate) trait Sink: Write {
    /// Returns once what was written survives a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

impl Sink for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// One file while it is written: records, chained, and signed whenever they reach the disk.
#[derive(Debug)]
pub(crate) struct Film<S> {
    sink: S,
    signer: Signer,
    head: Head,
    records: u32,
    /// What does not end in a seal yet.
    is_open: bool,
    /// Not handed to the sink yet.
    bytes: Vec<u8>,
}

/// Which records a signature covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sealed {
    pub(crate) records: u32,
    pub(crate) head: Head,
}

impl<S: Sink> Film<S> {
    /// Begins a file in `sink`.
    pub(crate) fn begin(sink: S, signer: Signer) -> Self {
        let mut bytes = Vec::new();
        mcap::write_begin(body::SOFTWARE, &mut bytes);
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
        Self { sink, signer, head: Head::default(), records: 0, is_open: true, bytes }
    }

    /// Appends a record of `at` nanoseconds of Unix time; `body` is an object with a member.
    pub(crate) fn put(&mut self, topic: Topic, body: &Value, at: u64) -> io::Result<()> {
        let body = body.to_string().into_bytes();
        self.head = self.head.after(topic, self.records, at, &[&body]);
        let data = chain::join(body, self.head);
        let message = mcap::Message {
            channel: topic.channel(),
            sequence: self.records,
            at,
            published_at: at,
            data: &data,
        };
        mcap::write_message(&message, &mut self.bytes);
        self.records = self.records.saturating_add(1);
        self.is_open = true;
        if self.bytes.len() >= BYTES_MAX { self.flush() } else { Ok(()) }
    }

    /// Signs what was put and brings it to the disk; does nothing if that has been done.
    pub(crate) fn seal(&mut self, is_last: bool, at: u64) -> io::Result<Sealed> {
        let sealed = Sealed { records: self.records, head: self.head };
        if self.is_open || is_last {
            let body = json!({
                "records": sealed.records,
                "head": sealed.head.to_string(),
                "key": self.signer.public(),
                "signature": self.signer.sign(sealed.head, sealed.records),
                "is_last": is_last,
            });
            self.put(Topic::Seal, &body, at)?;
            if is_last {
                mcap::write_end(&mut self.bytes);
            }
            self.flush()?;
            self.sink.sync()?;
            self.is_open = false;
        }
        Ok(sealed)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

/// What is collected before the sink is asked: some 50 steps.
const BYTES_MAX: usize = 1 << 16;
