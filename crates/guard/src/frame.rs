//! Frames between vehicle, guard and machine: fixed in size, protected by profile 4 of AUTOSAR's
//! end-to-end protection ([E2E]); docs/guard.md lists every byte.
//!
//! Each direction has a [`Sender`], which counts frames, and a [`Receiver`], which checks them:
//!
//! ```
//! use tautline_guard::frame::{Control, Receiver, Sender};
//!
//! let (mut sender, mut receiver) = (Sender::default(), Receiver::<Control>::default());
//! let bytes = sender.encode(&Control::default());
//! assert_eq!(receiver.receive(&bytes), Ok(Control::default()));
//! assert!(receiver.receive(&bytes).is_err(), "a repeated frame is refused");
//! ```
//!
//! If a socket holds several frames, the receiver takes all in order and acts on the newest.

mod bytes;
mod control;
mod crc;
mod description;
mod error;
mod fact;
mod layout;
mod machine;
mod payload;
mod proposal;
mod status;
mod value;

use core::marker::PhantomData;

use tautline_units::Instant;

pub use control::Control;
pub use description::{Description, revision};
pub use error::{Error, LOST_MAX};
pub use fact::{About, Fact};
pub use payload::Frame;
pub use proposal::{Absence, Absences, Command, DeadMan, Proposal, Trouble, Troubles};
pub use status::{BlackBox, Budget, Counts, Status};
pub use value::Value;

use bytes::{Reader, Writer};
use payload::TRAILING_BYTES;

/// Encodes `frame` with this counter in its header.
pub fn encode<F: Frame>(frame: &F, counter: u16) -> F::Bytes {
    let mut bytes = F::ZEROS;
    let all = bytes.as_mut();
    let mut writer = Writer::new(all);
    writer.u16(F::BYTES as u16);
    writer.u16(counter);
    writer.u32(F::DATA_ID);
    writer.u32(0);
    writer.u64(frame.source().as_nanos());
    frame.write(&mut writer);
    assert_eq!(writer.at(), F::BYTES, "a frame fills its bytes");
    let crc = crc::p4(&[&all[..CRC_AT], &all[CRC_AT + 4..]]);
    all[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// Decodes a frame and its counter from `bytes`, without comparing the counter. Any input is safe.
///
/// # Errors
/// [`Error`] naming the first fault found.
pub fn decode<F: Frame>(bytes: &[u8]) -> Result<(F, u16), Error> {
    read(bytes).map(|Decoded { frame, counter, .. }| (frame, counter))
}

/// A frame, its counter, and the number of its values out of range, which are treated as unknown.
struct Decoded<F> {
    frame: F,
    counter: u16,
    impossible_count: u32,
}

fn read<F: Frame>(bytes: &[u8]) -> Result<Decoded<F>, Error> {
    let said = match bytes {
        [high, low, ..] => u16::from_be_bytes([*high, *low]),
        [] | [_] => 0,
    };
    if !has_length::<F>(bytes) || usize::from(said) != bytes.len() {
        return Err(Error::Length { bytes: bytes.len(), said, wanted: F::BYTES });
    }
    let mut reader = Reader::new(bytes, 2);
    let (counter, got, crc) = (reader.u16(), reader.u32(), reader.u32());
    if got != F::DATA_ID {
        return Err(Error::DataId { got, wanted: F::DATA_ID });
    }
    let wanted = crc::p4(&[&bytes[..CRC_AT], &bytes[CRC_AT + 4..]]);
    if crc != wanted {
        return Err(Error::Crc { got: crc, wanted });
    }
    let source = Instant::from_nanos(reader.u64());
    let frame = F::read(source, &mut reader)?;
    Ok(Decoded { frame, counter, impossible_count: reader.impossible_count() })
}

fn has_length<F: Frame>(bytes: &[u8]) -> bool {
    let trailing = bytes.len().checked_sub(F::BYTES_LEAST);
    let has_numbers =
        |trailing: usize| F::BYTES_LEAST < F::BYTES && trailing.is_multiple_of(TRAILING_BYTES);
    bytes.len() == F::BYTES || bytes.len() <= BYTES_MAX && trailing.is_some_and(has_numbers)
}

/// Returns whether the header carries the data id of this kind of frame; checks nothing else.
pub fn is_called<F: Frame>(bytes: &[u8]) -> bool {
    bytes.get(4..8) == Some(&F::DATA_ID.to_be_bytes())
}

/// The sending end of one kind of frame, with its counter.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sender {
    counter: u16,
}

impl Sender {
    /// Encodes the next frame: with a counter one higher than the previous frame's, 0 after 65535.
    pub fn encode<F: Frame>(&mut self, frame: &F) -> F::Bytes {
        let bytes = encode(frame, self.counter);
        self.counter = self.counter.wrapping_add(1);
        bytes
    }
}

/// The receiving end of one kind of frame, which checks frames as the profile requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receiver<F> {
    last: Option<u16>,
    refused_count: u64,
    missing_count: u64,
    skipped_count: u64,
    impossible_count: u64,
    kind: PhantomData<fn() -> F>,
}

impl<F> Default for Receiver<F> {
    fn default() -> Self {
        Self {
            last: None,
            refused_count: 0,
            missing_count: 0,
            skipped_count: 0,
            impossible_count: 0,
            kind: PhantomData,
        }
    }
}

impl<F: Frame> Receiver<F> {
    /// Decodes the frame in `bytes`, if it is valid and newer than the previous one, with at most
    /// [`LOST_MAX`] frames missing between them. Any input is safe.
    ///
    /// # Errors
    /// [`Error`] naming the fault, which is also counted.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<F, Error> {
        let result = self.check(bytes);
        self.refused_count += u64::from(result.is_err());
        result
    }

    /// Returns the number of frames for which [`receive`](Self::receive) returned an error.
    pub fn refused_count(&self) -> u64 {
        self.refused_count
    }

    /// Returns the number of frames missing between those accepted; a gap of more than [`LOST_MAX`]
    /// is not included.
    pub fn missing_count(&self) -> u64 {
        self.missing_count
    }

    /// Returns the number of frames longer than expected, with trailing numbers that only a later
    /// build knows.
    pub fn skipped_count(&self) -> u64 {
        self.skipped_count
    }

    /// Returns the number of values that were out of range and treated as unknown.
    pub fn impossible_count(&self) -> u64 {
        self.impossible_count
    }

    fn check(&mut self, bytes: &[u8]) -> Result<F, Error> {
        let Decoded { frame, counter, impossible_count } = read::<F>(bytes)?;
        self.impossible_count += u64::from(impossible_count);
        self.skipped_count += u64::from(bytes.len() > F::BYTES);
        let Some(last) = self.last.replace(counter) else { return Ok(frame) };
        match counter.wrapping_sub(last) {
            0 => Err(Error::Repeated { counter }),
            step if step <= LOST_MAX + 1 => {
                self.missing_count += u64::from(step - 1);
                Ok(frame)
            }
            _ => Err(Error::WrongSequence { counter, last }),
        }
    }
}

/// Maximum accepted length in bytes of a frame with unknown trailing numbers: ample for a status
/// with future additions.
pub const BYTES_MAX: usize = 512;

/// Offset of the CRC in a frame, in bytes.
const CRC_AT: usize = 8;

#[cfg(test)]
mod tests;
