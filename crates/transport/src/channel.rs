//! Channels: streams of units of one kind that an application opens in a session.

use std::collections::BTreeMap;
use std::fmt;

use tautline_units::{Bitrate, ByteCount};

/// A channel's number on the wire, within a session.
///
/// 0 is the command channel and 1 the media channel in every session. In a packet, the numbers 0 to
/// 14 need no byte of their own (docs/protocol.md, 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelNumber(u8);

impl ChannelNumber {
    /// Channel of driving commands.
    pub const COMMAND: Self = Self(0);
    /// Channel whose units are protected by a code and paced by rate control.
    pub const MEDIA: Self = Self(1);

    /// Returns the channel number `number`.
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// Returns the channel number as an integer.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for ChannelNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "channel {}", self.0)
    }
}

impl fmt::Display for ChannelNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The rule by which the receiver delivers a channel's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Newest wins: a unit older than the last delivered one is dropped.
    NewestWins,
    /// Every unit is delivered that is complete by its own deadline, in any order.
    ByDeadline,
}

/// The priority of a channel, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A copy goes over every live link, without a cap of the channel. Above 250 commands a second,
    /// only the newest waits and older ones are dropped.
    Command,
    /// A copy goes over every live link, as the channel's cap allows.
    Feedback,
    /// A copy goes over every live link, as the channel's cap allows, after feedback.
    Telemetry,
    /// The packets are protected by a code across the links and paced at the links' granted rates.
    Media,
    /// One copy goes over one link, as the channel's cap allows and within what units of all other
    /// priorities leave of the links' granted rates.
    Data,
}

/// A channel's content description, in the form in which MCAP describes a channel and its schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Topic, such as `/vehicle/telemetry`.
    pub topic: String,
    /// Encoding of units, by MCAP's name: `flatbuffer`, `cdr`, `json`.
    pub message_encoding: String,
    /// Schema name, such as `tautline.Telemetry`; empty without a schema.
    pub schema_name: String,
    /// Encoding of the schema, by MCAP's name.
    pub schema_encoding: String,
    /// The schema in its encoding; empty without a schema.
    pub schema: Vec<u8>,
}

/// A channel of one direction: number, rules and descriptor, as its sender opened it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Number of the channel on the wire.
    pub number: ChannelNumber,
    /// Rule by which the receiver delivers the channel's units.
    pub order: Order,
    /// Priority of the channel's units.
    pub priority: Priority,
    /// Maximum rate of the channel: on each link if its packets are copied to every link, over all
    /// links together for data. On the application's channels, those from 16 on, it counts the
    /// bytes of units, on Tautline's own channels below the bytes of datagrams. `None` for
    /// commands, which have no cap, and for media, whose cap is the budget.
    pub rate_cap: Option<Bitrate>,
    /// Description of what the channel's units contain.
    pub descriptor: Descriptor,
}

impl Channel {
    /// Returns the command channel: number 0, newest wins, no cap and an empty descriptor.
    pub fn command() -> Self {
        Self {
            number: ChannelNumber::COMMAND,
            order: Order::NewestWins,
            priority: Priority::Command,
            rate_cap: None,
            descriptor: Descriptor::default(),
        }
    }

    /// Returns the media channel: number 1, by deadline, no cap and an empty descriptor.
    pub fn media() -> Self {
        Self {
            number: ChannelNumber::MEDIA,
            order: Order::ByDeadline,
            priority: Priority::Media,
            rate_cap: None,
            descriptor: Descriptor::default(),
        }
    }

    /// Returns whether the channel's number, order, priority and cap are consistent.
    fn is_consistent(&self) -> bool {
        match self.priority {
            Priority::Command => {
                self.number == ChannelNumber::COMMAND
                    && self.order == Order::NewestWins
                    && self.rate_cap.is_none()
            }
            Priority::Media => {
                self.number == ChannelNumber::MEDIA
                    && self.order == Order::ByDeadline
                    && self.rate_cap.is_none()
            }
            Priority::Feedback | Priority::Telemetry | Priority::Data => {
                self.number > ChannelNumber::MEDIA
                    && self.rate_cap.is_some_and(|cap| cap > Bitrate::ZERO)
            }
        }
    }
}

impl Descriptor {
    /// Returns the length of the descriptor in announcements.
    pub fn bytes(&self) -> ByteCount {
        let texts = [&self.topic, &self.message_encoding, &self.schema_name, &self.schema_encoding];
        let texts: usize = texts.into_iter().map(|text| 1 + text.len()).sum();
        ByteCount::new((texts + 2 + self.schema.len()) as u64)
    }
}

/// A reason why a channel cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The channel's number, order, priority and cap are inconsistent. Only channel 0 is the
    /// command channel, newest wins, and only 1 the media channel, by deadline; both are without a
    /// cap, and every other has one above zero.
    #[error("{number:?}: number, order, priority and cap are not consistent")]
    Inconsistent {
        /// Number of the channel that cannot be opened.
        number: ChannelNumber,
    },
    /// A text of the channel's descriptor is longer than 255 bytes.
    #[error("{number:?}: a name of {found}, at most 255 B are allowed")]
    TextTooLong {
        /// Number of the channel that cannot be opened.
        number: ChannelNumber,
        /// Length of the text that is too long.
        found: ByteCount,
    },
    /// There are 64 other channels already.
    #[error("{number:?}: a session has at most {} channels", CHANNELS_MAX)]
    TooMany {
        /// Number of the channel that cannot be opened.
        number: ChannelNumber,
    },
    /// The descriptors of all channels, this one included, are together longer than 64 KiB.
    #[error("{number:?}: all descriptors have {found}, at most 64 KiB are allowed")]
    DescriptorsTooLong {
        /// Number of the channel that cannot be opened.
        number: ChannelNumber,
        /// Length of the descriptors of all channels together, this one included.
        found: ByteCount,
    },
}

/// The channels of one direction of a session, by number.
#[derive(Debug, Clone)]
pub(crate) struct Channels {
    channels: BTreeMap<ChannelNumber, Channel>,
}

impl Channels {
    /// Creates the set with the command and media channels.
    pub(crate) fn new() -> Self {
        let both = [Channel::command(), Channel::media()];
        Self { channels: both.into_iter().map(|channel| (channel.number, channel)).collect() }
    }

    /// Opens a channel, or replaces an open one of the same number.
    ///
    /// # Errors
    /// [`OpenError`]; nothing changes then.
    pub(crate) fn open(&mut self, channel: Channel) -> Result<(), OpenError> {
        let number = channel.number;
        if !channel.is_consistent() {
            return Err(OpenError::Inconsistent { number });
        }
        let Descriptor { topic, message_encoding, schema_name, schema_encoding, .. } =
            &channel.descriptor;
        for text in [topic, message_encoding, schema_name, schema_encoding] {
            if text.len() > TEXT_BYTES_MAX {
                return Err(OpenError::TextTooLong {
                    number,
                    found: ByteCount::of(text.as_bytes()),
                });
            }
        }
        let others = || self.channels.values().filter(|other| other.number != number);
        if others().count() >= CHANNELS_MAX {
            return Err(OpenError::TooMany { number });
        }
        let bytes = others().map(|other| other.descriptor.bytes().get()).sum::<u64>()
            + channel.descriptor.bytes().get();
        if bytes > DESCRIPTOR_BYTES_MAX {
            return Err(OpenError::DescriptorsTooLong { number, found: ByteCount::new(bytes) });
        }
        self.channels.insert(number, channel);
        Ok(())
    }

    /// Returns every channel, in order of channel numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.channels.values()
    }

    pub(crate) fn get(&self, number: ChannelNumber) -> Option<&Channel> {
        self.channels.get(&number)
    }
}

/// Maximum number of channels of one direction.
pub(crate) const CHANNELS_MAX: usize = 64;
/// Maximum bytes of all descriptors of one direction together.
pub(crate) const DESCRIPTOR_BYTES_MAX: u64 = 64 << 10;
/// Maximum bytes of a text in a descriptor: its length takes one byte on the wire.
const TEXT_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn data(number: u8, schema_bytes: usize) -> Channel {
        Channel {
            number: ChannelNumber::new(number),
            order: Order::ByDeadline,
            priority: Priority::Data,
            rate_cap: Some(Bitrate::from_kbps(64)),
            descriptor: Descriptor { schema: vec![7; schema_bytes], ..Descriptor::default() },
        }
    }

    #[test]
    fn channels_and_their_descriptors_are_bounded() {
        let mut channels = Channels::new();
        for number in 2..CHANNELS_MAX as u8 {
            channels.open(data(number, 1_000)).unwrap();
        }
        let number = ChannelNumber::new(64);
        assert_eq!(channels.open(data(64, 0)), Err(OpenError::TooMany { number }));
        let number = ChannelNumber::new(2);
        let refused = channels.open(data(2, 5_000));
        assert!(
            matches!(refused, Err(OpenError::DescriptorsTooLong { number: of, .. }) if of == number)
        );
        assert_eq!(channels.open(data(2, 100)), Ok(()));
        let mut wordy = data(3, 0);
        wordy.descriptor.topic = "a".repeat(256);
        assert!(matches!(channels.open(wordy), Err(OpenError::TextTooLong { .. })));
    }

    #[test]
    fn only_channel_0_commands_and_only_channel_1_is_media() {
        let mut channels = Channels::new();
        let inconsistent =
            |channel| matches!(Channels::new().open(channel), Err(OpenError::Inconsistent { .. }));
        assert!(inconsistent(Channel { priority: Priority::Command, ..data(5, 0) }));
        assert!(inconsistent(Channel { priority: Priority::Media, ..data(5, 0) }));
        assert!(inconsistent(Channel { rate_cap: None, ..data(5, 0) }));
        assert!(inconsistent(data(0, 0)));
        assert!(inconsistent(data(1, 0)));
        let described = Descriptor { topic: "/command".into(), ..Descriptor::default() };
        channels.open(Channel { descriptor: described.clone(), ..Channel::command() }).unwrap();
        assert_eq!(channels.get(ChannelNumber::COMMAND).unwrap().descriptor, described);
    }
}
