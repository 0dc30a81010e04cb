use std::io;
use std::sync::Arc;

use tautline_blackbox::mcap::{self, Channel, Schema};
use tautline_transport::channel::Descriptor;

use super::output::Output;

/// A received unit of a channel, to be recorded.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Descriptor of the unit's channel.
    pub descriptor: Arc<Descriptor>,
    /// Time of hand-over at the vehicle, in nanoseconds of Unix time by the operator's clock; the
    /// time of arrival if that is unknown.
    pub sent_at: u64,
    /// Time of arrival, in nanoseconds of Unix time by the operator's clock.
    pub came_at: u64,
    /// Content of the unit.
    pub bytes: Vec<u8>,
}

/// MCAP file of all received units, with the vehicle's descriptors.
pub(super) struct Log {
    file: Output,
    /// Channels in the file, each with its number of units; the first is channel 1.
    channels: Vec<(Arc<Descriptor>, u32)>,
    record: Vec<u8>,
}

impl Log {
    /// Writes the beginning of an MCAP file to `file`.
    pub(super) fn begin(file: Output) -> io::Result<Self> {
        let mut log = Self { file, channels: Vec::new(), record: Vec::new() };
        mcap::write_begin("", SOFTWARE, &mut log.record);
        log.write()?;
        Ok(log)
    }

    /// Appends a unit, after the description of its channel if that is new. Beyond 65535 channels,
    /// units of new ones are left out.
    pub(super) fn take(&mut self, unit: &Unit) -> io::Result<()> {
        let known = self.channels.iter().position(|(known, _)| *known == unit.descriptor);
        let at = match known {
            Some(at) => at,
            None if self.channels.len() < usize::from(u16::MAX) => self.add(&unit.descriptor),
            None => return Ok(()),
        };
        let (_, count) = &mut self.channels[at];
        let message = mcap::Message {
            channel: at as u16 + 1,
            sequence: *count,
            at: unit.came_at,
            published_at: unit.sent_at,
            data: &unit.bytes,
        };
        *count = count.wrapping_add(1);
        mcap::write_message(&message, &mut self.record);
        self.write()
    }

    /// Writes the buffered data to the system.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Writes the end of the MCAP file.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        mcap::write_end(&mut self.record);
        self.write()?;
        self.flush()
    }

    fn add(&mut self, descriptor: &Arc<Descriptor>) -> usize {
        let Descriptor { topic, message_encoding, schema_name, schema_encoding, schema } =
            &**descriptor;
        let has_schema = !(schema_name.is_empty() && schema.is_empty());
        let channel = Channel {
            id: self.channels.len() as u16 + 1,
            topic,
            message_encoding,
            schema: has_schema.then_some(Schema {
                name: schema_name,
                encoding: schema_encoding,
                bytes: schema,
            }),
        };
        mcap::write_channel(&channel, &mut self.record);
        self.channels.push((descriptor.clone(), 0));
        self.channels.len() - 1
    }

    fn write(&mut self) -> io::Result<()> {
        let written = self.file.append(&self.record);
        self.record.clear();
        written
    }
}

const SOFTWARE: &str = concat!("tautline ", env!("CARGO_PKG_VERSION"));
