use tautline_units::Instant;

use super::bytes::{Reader, Writer};
use super::error::Error;
use super::layout;
use super::payload::Frame;
use crate::set::numbered;

/// A diagnostics message for the guard's black box, as the text of a JSON object: data of a vehicle
/// or a machine that the guard itself neither has nor inspects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// Time of sending, by the sender's clock.
    pub source: Instant,
    /// Subject of the text.
    pub about: About,
    /// Length of the text in bytes; the bytes behind it are 0.
    length: u16,
    text: [u8; Fact::TEXT_BYTES_MAX],
}

numbered! {
    /// Subject of a fact.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum About {
        /// The vehicle: its identification number.
        Vehicle = 0,
        /// The person who drives.
        Person = 1,
        /// The links: delays, bitrates and losses.
        Network = 2,
        /// Values specific to the machine: its power supply, its fault memory.
        Machine = 3,
        /// The vehicle's computer.
        System = 4,
    }
}

impl Fact {
    /// Maximum length of the text in bytes.
    pub const TEXT_BYTES_MAX: usize = 1000;

    /// Creates a fact from this text, sent at `source` by the sender's clock; `None` if the text is
    /// longer than [`TEXT_BYTES_MAX`](Self::TEXT_BYTES_MAX).
    pub fn new(about: About, text: &str, source: Instant) -> Option<Self> {
        let mut bytes = [0; Self::TEXT_BYTES_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { source, about, length: text.len() as u16, text: bytes })
    }

    /// Returns the text of a JSON object.
    pub fn text(&self) -> &str {
        let text = &self.text[..usize::from(self.length)];
        core::str::from_utf8(text).expect("it was made of a text, or read as one")
    }
}

impl Frame for Fact {
    const DATA_ID: u32 = layout::Fact::DATA_ID;
    const BYTES: usize = layout::Fact::BYTES;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.source
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let Self { about, length, text, .. } = *self;
        layout::Fact { about: about.number(), length, text }.write(writer);
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let layout::Fact { about, length, text } = layout::Fact::read(reader);
        let wrong = |at| Error::Value { at };
        let about = About::from_number(about).ok_or(wrong(layout::Fact::ABOUT_AT))?;
        let (said, rest) =
            text.split_at_checked(length.into()).ok_or(wrong(layout::Fact::LENGTH_AT))?;
        let is_text = core::str::from_utf8(said).is_ok() && rest.iter().all(|byte| *byte == 0);
        let fact = Self { source, about, length, text };
        is_text.then_some(fact).ok_or(wrong(layout::Fact::TEXT_AT))
    }
}
