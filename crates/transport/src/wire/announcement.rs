use super::field::{put_length, take};
use super::kind::{KIND_ACKNOWLEDGEMENT, KIND_ANNOUNCEMENT};
use super::malformed::Malformed;
use crate::channel::{ChannelNumber, Descriptor, Order, Priority};

/// A part of a channel's announcement: order, priority, and bytes of its descriptor.
///
/// ```text
///  0               1               3               4
/// +-------+-------+---------------+---------------+-------+-------+
/// |   8   |   0   | length        | channel       | order |priorit|
/// +-------+-------+---------------+---------------+-------+-------+
/// | total length of descriptor    | offset of the bytes in it     |
/// +-------------------------------+-------------------------------+
/// | bytes of the descriptor ..
/// ```
///
/// The length counts the bytes after it. Order: 0 newest wins, 1 by deadline. Priority: 0 command,
/// 1 feedback, 2 telemetry, 3 media, 4 data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announcement<'a> {
    /// Number of the announced channel.
    pub channel: ChannelNumber,
    /// Rule by which the channel's units are delivered.
    pub order: Order,
    /// Priority of the channel's units.
    pub priority: Priority,
    /// Length of the complete descriptor in bytes.
    pub total: u16,
    /// Offset of `bytes` in the descriptor.
    pub at: u16,
    /// Bytes of the descriptor from `at` on; they end within it.
    pub bytes: &'a [u8],
}

impl<'a> Announcement<'a> {
    /// Length of the packet before the bytes of the descriptor.
    pub const HEADER_BYTES: usize = 9;

    /// Appends the part of the announcement to `out` as a packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        let order = match self.order {
            Order::NewestWins => 0,
            Order::ByDeadline => 1,
        };
        let priority = PRIORITIES.iter().position(|priority| *priority == self.priority);
        out.push(KIND_ANNOUNCEMENT << 4);
        put_length(out, Self::HEADER_BYTES - 3 + self.bytes.len());
        out.extend_from_slice(&[self.channel.get(), order << 4 | priority.unwrap_or(0) as u8]);
        out.extend_from_slice(&self.total.to_be_bytes());
        out.extend_from_slice(&self.at.to_be_bytes());
        out.extend_from_slice(self.bytes);
    }

    pub(super) fn parse(mut body: &'a [u8]) -> Result<Self, Malformed> {
        let [channel, treatment] = take(&mut body)?;
        let order = match treatment >> 4 {
            0 => Order::NewestWins,
            1 => Order::ByDeadline,
            _ => return Err(Malformed("unknown order")),
        };
        let priority = PRIORITIES.get(usize::from(treatment & 0x0f));
        let priority = *priority.ok_or(Malformed("unknown priority"))?;
        let total = u16::from_be_bytes(take(&mut body)?);
        let at = u16::from_be_bytes(take(&mut body)?);
        if usize::from(at) + body.len() > usize::from(total) {
            return Err(Malformed("a part beyond its descriptor"));
        }
        let channel = ChannelNumber::new(channel);
        Ok(Self { channel, order, priority, total, at, bytes: body })
    }
}

/// An acknowledgement of a channel's announcement: how much of the descriptor has been received.
///
/// ```text
///  0               1               3               4
/// +-------+-------+---------------+---------------+---------------+---------------+
/// |   9   |   0   | length        | channel       | bytes of the descriptor       |
/// +-------+-------+---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Number of the announced channel.
    pub channel: ChannelNumber,
    /// Number of bytes of the channel's descriptor received without gaps from the start on.
    pub received: u16,
}

impl Acknowledgement {
    /// Length of an acknowledgement on the wire, in bytes.
    pub const BYTES: usize = 6;

    /// Appends the acknowledgement to `out` as a packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(KIND_ACKNOWLEDGEMENT << 4);
        put_length(out, Self::BYTES - 3);
        out.push(self.channel.get());
        out.extend_from_slice(&self.received.to_be_bytes());
    }

    /// Reads the packet and leaves unknown fields in `body`.
    pub(super) fn parse(body: &mut &[u8]) -> Result<Self, Malformed> {
        let [channel] = take(body)?;
        let received = u16::from_be_bytes(take(body)?);
        Ok(Self { channel: ChannelNumber::new(channel), received })
    }
}

impl Descriptor {
    /// Appends the descriptor: four texts, each with a length prefix of one byte, and the schema
    /// with one of two bytes.
    ///
    /// # Panics
    /// If a text is longer than 255 bytes or the schema longer than 65535. A session refuses those.
    pub fn write(&self, out: &mut Vec<u8>) {
        for text in [&self.topic, &self.message_encoding, &self.schema_name, &self.schema_encoding]
        {
            out.push(u8::try_from(text.len()).expect("texts are bounded when a channel is opened"));
            out.extend_from_slice(text.as_bytes());
        }
        let length = u16::try_from(self.schema.len()).expect("schemas are bounded in the same way");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.schema);
    }

    /// Reads a descriptor; bytes after the schema belong to later versions.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes end early, or a text is not UTF-8.
    pub fn parse(mut bytes: &[u8]) -> Result<Self, Malformed> {
        let mut text = || -> Result<String, Malformed> {
            let [length] = take(&mut bytes)?;
            let text = take_slice(&mut bytes, usize::from(length))?;
            let text =
                std::str::from_utf8(text).map_err(|_| Malformed("a text that is not UTF-8"))?;
            Ok(text.to_owned())
        };
        let (topic, message_encoding) = (text()?, text()?);
        let (schema_name, schema_encoding) = (text()?, text()?);
        let length = u16::from_be_bytes(take(&mut bytes)?);
        let schema = take_slice(&mut bytes, usize::from(length))?.to_vec();
        Ok(Self { topic, message_encoding, schema_name, schema_encoding, schema })
    }
}

fn take_slice<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Malformed> {
    let (head, tail) = rest.split_at_checked(length).ok_or(Malformed("truncated descriptor"))?;
    *rest = tail;
    Ok(head)
}

/// Priorities by their numbers on the wire.
const PRIORITIES: [Priority; 5] =
    [Priority::Command, Priority::Feedback, Priority::Telemetry, Priority::Media, Priority::Data];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_descriptor_comes_back_as_it_was(
            texts in prop::array::uniform4("\\PC{0,60}"),
            schema in prop::collection::vec(any::<u8>(), 0..2_000),
            beyond in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let [topic, message_encoding, schema_name, schema_encoding] = texts;
            let descriptor =
                Descriptor { topic, message_encoding, schema_name, schema_encoding, schema };
            let mut bytes = Vec::new();
            descriptor.write(&mut bytes);
            prop_assert_eq!(descriptor.bytes().get(), bytes.len() as u64);
            for length in 0..bytes.len() {
                prop_assert!(Descriptor::parse(&bytes[..length]).is_err());
            }
            bytes.extend(beyond);
            prop_assert_eq!(Descriptor::parse(&bytes), Ok(descriptor));
        }

        #[test]
        fn any_bytes_make_a_descriptor_or_none(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(descriptor) = Descriptor::parse(&bytes) {
                let mut again = Vec::new();
                descriptor.write(&mut again);
                prop_assert_eq!(&again[..], &bytes[..again.len()]);
            }
        }
    }
}
