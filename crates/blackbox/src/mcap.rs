//! The MCAP records that Tautline writes, and a reader that returns each with its offset in the
//! file.
//!
//! Files have no index, so everything that reached the disk before a power cut is readable.
//! Messages are stored one by one or in [chunks](Chunk) compressed with LZ4.
//!
//! The format: <https://mcap.dev/spec>. Numbers are little-endian; a text is preceded by its
//! length.

mod bytes;
mod chunk;

pub use bytes::Break;
use bytes::{
    CHANNEL, CHUNK, DATA_END, FOOTER, HEADER, MESSAGE, SCHEMA, take, take_text, write, write_text,
};
pub use chunk::{Chunk, MESSAGES_BYTES_MAX, write_chunk};

/// The first and the last bytes of a file.
pub const MAGIC: [u8; 8] = *b"\x89MCAP0\r\n";

/// Offset of a message's data in its record, after opcode, length, channel, sequence and times.
pub const MESSAGE_DATA_AT: usize = 9 + 22;

/// One record, named as in the format.
///
/// ```text
/// 0  opcode   u8
/// 1  length   u64  of the content
/// 9  content
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// First record of a file.
    Header {
        /// Kind of file, named with the prefix `x-`; usually empty.
        profile: &'a str,
    },
    /// Definition of a channel's messages.
    Schema,
    /// Assignment of a number in this file to a topic.
    Channel {
        /// Number of the channel in this file.
        id: u16,
        /// Name of the topic.
        topic: &'a str,
        /// MCAP's name of the message encoding.
        message_encoding: &'a str,
    },
    /// A single message, which is not in a chunk.
    Message(Message<'a>),
    /// Several messages that are compressed together.
    Chunk(Chunk<'a>),
    /// End of the file's messages.
    DataEnd,
    /// Last record of a file.
    Footer,
}

/// A message of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// Number of the channel in this file.
    pub channel: u16,
    /// Number of earlier messages, in the file or of the channel, as the writer counts them; a
    /// reader may use it to detect losses.
    pub sequence: u32,
    /// Time of recording, in nanoseconds of Unix time.
    pub at: u64,
    /// Time of publication, in nanoseconds of Unix time.
    pub published_at: u64,
    /// Content of the message.
    pub data: &'a [u8],
}

/// Description of a topic's messages, written before the first of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channel<'a> {
    /// Number of the channel in this file, above 0; its schema has the same number.
    pub id: u16,
    /// Name of the topic.
    pub topic: &'a str,
    /// MCAP's name of the message encoding.
    pub message_encoding: &'a str,
    /// Schema of the messages, if known.
    pub schema: Option<Schema<'a>>,
}

/// Definition of the content of a channel's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schema<'a> {
    /// Name of the schema.
    pub name: &'a str,
    /// MCAP's name of the schema encoding.
    pub encoding: &'a str,
    /// Definition of the schema, in its encoding.
    pub bytes: &'a [u8],
}

/// Appends the magic and the header record, with the kind of file and the name of the writer.
pub fn write_begin(profile: &str, library: &str, to: &mut Vec<u8>) {
    to.extend(MAGIC);
    write(HEADER, to, |to| {
        write_text(profile, to);
        write_text(library, to);
    });
}

/// Appends a channel, preceded by its schema.
pub fn write_channel(channel: &Channel<'_>, to: &mut Vec<u8>) {
    if let Some(Schema { name, encoding, bytes }) = channel.schema {
        write(SCHEMA, to, |to| {
            to.extend(channel.id.to_le_bytes());
            write_text(name, to);
            write_text(encoding, to);
            to.extend((bytes.len() as u32).to_le_bytes());
            to.extend(bytes);
        });
    }
    write(CHANNEL, to, |to| {
        to.extend(channel.id.to_le_bytes());
        to.extend(channel.schema.map_or(0, |_| channel.id).to_le_bytes());
        write_text(channel.topic, to);
        write_text(channel.message_encoding, to);
        to.extend(0u32.to_le_bytes());
    });
}

/// Appends the record of a message to `to`.
pub fn write_message(message: &Message<'_>, to: &mut Vec<u8>) {
    write(MESSAGE, to, |to| {
        to.extend(message.channel.to_le_bytes());
        to.extend(message.sequence.to_le_bytes());
        to.extend(message.at.to_le_bytes());
        to.extend(message.published_at.to_le_bytes());
        to.extend(message.data);
    });
}

/// Appends the end of a file: no checksum over its data, and no summary.
pub fn write_end(to: &mut Vec<u8>) {
    write(DATA_END, to, |to| to.extend([0; 4]));
    write(FOOTER, to, |to| to.extend([0; 20]));
    to.extend(MAGIC);
}

/// Iterator over the records of a file, in order; it ends after the footer, or after the first
/// invalid record, which it returns as an error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    is_over: bool,
}

impl<'a> Records<'a> {
    /// Returns the records of `bytes`; `None` if it does not begin with the MCAP magic.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let is_mcap = bytes.starts_with(&MAGIC);
        is_mcap.then_some(Self { bytes, at: MAGIC.len(), is_over: false })
    }

    /// Returns the records of a chunk's [messages](Chunk::messages).
    pub fn within(messages: &'a [u8]) -> Self {
        Self { bytes: messages, at: 0, is_over: false }
    }
}

impl<'a> Iterator for Records<'a> {
    /// Offset of the record, and the record.
    type Item = (usize, Result<Record<'a>, Break>);

    fn next(&mut self) -> Option<Self::Item> {
        let (at, rest) = (self.at, &self.bytes[self.at..]);
        if self.is_over || rest.is_empty() {
            return None;
        }
        let record = read(rest).and_then(|(record, length)| {
            self.at += length;
            let end = &self.bytes[self.at..];
            match record {
                Record::Footer if end.is_empty() || MAGIC.starts_with(end) && end != MAGIC => {
                    Err(Break::Short)
                }
                Record::Footer if end != MAGIC => Err(Break::Foreign),
                record => Ok(record),
            }
        });
        self.is_over = record.is_err() || record == Ok(Record::Footer);
        Some((at, record))
    }
}

/// Returns the first record of `bytes` and its length in bytes.
pub(crate) fn read(bytes: &[u8]) -> Result<(Record<'_>, usize), Break> {
    let mut rest = bytes;
    let [opcode] = take(&mut rest)?;
    if !matches!(opcode, HEADER | FOOTER | SCHEMA | CHANNEL | MESSAGE | CHUNK | DATA_END) {
        return Err(Break::Foreign);
    }
    let length = u64::from_le_bytes(take(&mut rest)?);
    let length = usize::try_from(length).map_err(|_| Break::Short)?;
    let mut content = rest.get(..length).ok_or(Break::Short)?;
    // The content is complete, so a missing field means that it is malformed, not truncated.
    let record = read_content(opcode, &mut content).map_err(|_| Break::Foreign)?;
    Ok((record, 9 + length))
}

fn read_content<'a>(opcode: u8, content: &mut &'a [u8]) -> Result<Record<'a>, Break> {
    match opcode {
        HEADER => Ok(Record::Header { profile: take_text(content)? }),
        SCHEMA => Ok(Record::Schema),
        CHANNEL => {
            let id = u16::from_le_bytes(take(content)?);
            let _schema: [u8; 2] = take(content)?;
            let (topic, message_encoding) = (take_text(content)?, take_text(content)?);
            Ok(Record::Channel { id, topic, message_encoding })
        }
        MESSAGE => {
            let channel = u16::from_le_bytes(take(content)?);
            let sequence = u32::from_le_bytes(take(content)?);
            let at = u64::from_le_bytes(take(content)?);
            let published_at = u64::from_le_bytes(take(content)?);
            Ok(Record::Message(Message { channel, sequence, at, published_at, data: content }))
        }
        CHUNK => Ok(Record::Chunk(chunk::read(content)?)),
        DATA_END => Ok(Record::DataEnd),
        FOOTER => Ok(Record::Footer),
        _ => Err(Break::Foreign),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file() -> Vec<u8> {
        let mut bytes = Vec::new();
        write_begin("", "a library", &mut bytes);
        let schema = Some(Schema { name: "A", encoding: "jsonschema", bytes: b"{}" });
        let channel = Channel { id: 1, topic: "/a", message_encoding: "json", schema };
        write_channel(&channel, &mut bytes);
        let message = Message { channel: 1, sequence: 7, at: 9, published_at: 9, data: b"{}" };
        write_message(&message, &mut bytes);
        write_end(&mut bytes);
        bytes
    }

    /// The reader of mcap.dev accepts these bytes.
    #[test]
    fn a_file_has_the_bytes_that_others_read() {
        let long = |length: u64| length.to_le_bytes();
        let expected: &[&[u8]] = &[
            b"\x89MCAP0\r\n",
            &[HEADER],
            &long(17),
            b"\0\0\0\0\x09\0\0\0a library",
            &[SCHEMA],
            &long(27),
            b"\x01\0\x01\0\0\0A\x0a\0\0\0jsonschema\x02\0\0\0{}",
            &[CHANNEL],
            &long(22),
            b"\x01\0\x01\0\x02\0\0\0/a\x04\0\0\0json\0\0\0\0",
            &[MESSAGE],
            &long(24),
            b"\x01\0\x07\0\0\0\x09\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0{}",
            &[DATA_END],
            &long(4),
            &[0; 4],
            &[FOOTER],
            &long(20),
            &[0; 20],
            b"\x89MCAP0\r\n",
        ];
        assert_eq!(file(), expected.concat());
    }

    #[test]
    fn a_channel_may_have_no_schema() {
        let (mut bytes, channel) =
            (Vec::new(), Channel { id: 3, topic: "/b", message_encoding: "", schema: None });
        write_channel(&channel, &mut bytes);
        assert_eq!(bytes[9..13], [3, 0, 0, 0], "the number, and that of no schema");
        let found = Record::Channel { id: 3, topic: "/b", message_encoding: "" };
        let found = Ok((found, bytes.len()));
        assert_eq!(read(&bytes), found);
    }

    #[test]
    fn a_file_cut_anywhere_breaks_off_there() {
        let bytes = file();
        let whole = Records::new(&bytes).unwrap();
        let ends: Vec<usize> = whole.clone().map(|(at, _)| at).chain([bytes.len() - 8]).collect();
        assert!(whole.clone().all(|(_, record)| record.is_ok()));
        for length in MAGIC.len()..bytes.len() {
            let mut cut = Records::new(&bytes[..length]).unwrap();
            let broken = cut.find_map(|(at, record)| record.err().map(|broken| (at, broken)));
            // A cut between two records breaks nothing; only the footer shows that the file is
            // complete.
            let is_between = ends[..ends.len() - 1].contains(&length);
            assert_eq!(broken.is_none(), is_between, "cut at {length}");
            assert!(broken.is_none_or(|(_, broken)| broken == Break::Short), "cut at {length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(bytes: Vec<u8>, is_mcap: bool) {
            let bytes = if is_mcap { [&MAGIC[..], &bytes].concat() } else { bytes };
            let count = Records::new(&bytes).map_or(0, Iterator::count);
            prop_assert!(count <= bytes.len());
        }
    }
}
