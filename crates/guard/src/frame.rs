//! The frames between vehicle, guard and machine: fixed in size, protected as profile 4 of
//! AUTOSAR's end-to-end protection asks ([E2E]); docs/guard.md has every byte.
//!
//! Each direction has a [`Sender`], which counts, and a [`Receiver`], which checks:
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
//! A receiver whose socket has several frames takes all, in their order, and acts on the newest.

mod bytes;
mod control;
mod crc;
mod fact;
mod machine;
mod proposal;
mod status;

use core::marker::PhantomData;

use tautline_units::Instant;

pub use control::Control;
pub use fact::{About, Fact};
pub use proposal::{Absence, Absences, Command, DeadMan, Proposal, Trouble, Troubles};
pub use status::{BlackBox, Budget, Counts, Status};

use bytes::{Reader, Writer};

/// What a frame carries behind its header.
///
/// ```text
///  0  length   u16  bytes of the whole frame
///  2  counter  u16  one more with each frame, 0 after 65535
///  4  data id  u32  the kind of frame, and its version
///  8  CRC      u32  CRC-32/P4 over all other bytes
/// 12  source   u64  nanoseconds by the sender's clock
/// 20  payload
/// ```
/// Everything is big-endian, numbers with a point are IEEE 754.
pub trait Frame: Copy {
    /// The kind of frame, and its version.
    const DATA_ID: u32;
    /// Bytes of the whole frame.
    const BYTES: usize;
    /// Bytes without the numbers that a machine tells at its end, if it has such: of them an earlier build sends
    /// fewer, and a later one more, which are skipped.
    const BYTES_LEAST: usize = Self::BYTES;
    /// An array of that many bytes.
    type Bytes: AsRef<[u8]> + AsMut<[u8]> + Copy;
    /// So many zeros.
    const ZEROS: Self::Bytes;

    /// Returns when the sender made it, by the sender's clock.
    fn source(&self) -> Instant;

    #[doc(hidden)]
    fn write(&self, writer: &mut Writer<'_>);

    #[doc(hidden)]
    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error>;
}

/// What is wrong with the bytes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are too few or too many bytes, or the header says so.
    #[error("{bytes} bytes, {said} by the header: the frame has {wanted}")]
    Length {
        /// How many there are.
        bytes: usize,
        /// How many the header says.
        said: u16,
        /// How many there have to be.
        wanted: usize,
    },
    /// It is another kind or version of frame.
    #[error("data id {got:#010x}, not {wanted:#010x}")]
    DataId {
        /// What the header says.
        got: u32,
        /// What it has to say.
        wanted: u32,
    },
    /// Bytes were changed on the way.
    #[error("CRC {got:#010x}, not {wanted:#010x}")]
    Crc {
        /// What the header says.
        got: u32,
        /// What the bytes give.
        wanted: u32,
    },
    /// The frame came before: E2E's state REPEATED.
    #[error("frame {counter} came again")]
    Repeated {
        /// Its counter.
        counter: u16,
    },
    /// Too many frames are missing before it, or it is older than the last: E2E's state
    /// WRONGSEQUENCE. The next one is checked against this one.
    #[error("frame {counter} after {last}: more than {LOST_MAX} are missing")]
    WrongSequence {
        /// Its counter.
        counter: u16,
        /// That of the frame before.
        last: u16,
    },
    /// A value of the payload is none.
    #[error("byte {at}: not a value of this field")]
    Value {
        /// Where the field begins in the frame.
        at: usize,
    },
}

/// Returns the bytes of `frame` with this counter.
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

/// Returns the frame of `bytes` and its counter. Any bytes are safe to give.
///
/// # Errors
/// [`Error`] naming the first thing that is wrong.
pub fn decode<F: Frame>(bytes: &[u8]) -> Result<(F, u16), Error> {
    read(bytes).map(|Decoded { frame, counter, .. }| (frame, counter))
}

/// A frame, its counter, and how many of its numbers were beyond what there can be: those are not known.
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

/// Returns whether the bytes say that they are a frame of this kind, whatever else they are.
pub fn is_called<F: Frame>(bytes: &[u8]) -> bool {
    bytes.get(4..8) == Some(&F::DATA_ID.to_be_bytes())
}

/// One end that sends frames of a kind, and counts them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sender {
    counter: u16,
}

impl Sender {
    /// Returns the next frame's bytes.
    pub fn encode<F: Frame>(&mut self, frame: &F) -> F::Bytes {
        let bytes = encode(frame, self.counter);
        self.counter = self.counter.wrapping_add(1);
        bytes
    }
}

/// One end that receives frames of a kind, and checks them as the profile says.
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
    /// Returns the frame of `bytes`, if it is sound and newer than the last. Any bytes are safe.
    ///
    /// # Errors
    /// [`Error`] naming what is wrong; it is counted.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<F, Error> {
        let result = self.check(bytes);
        self.refused_count += u64::from(result.is_err());
        result
    }

    /// Returns how many frames were refused.
    pub fn refused_count(&self) -> u64 {
        self.refused_count
    }

    /// Returns how many frames are missing between those taken.
    pub fn missing_count(&self) -> u64 {
        self.missing_count
    }

    /// Returns how many frames had numbers at their end that only a later build knows.
    pub fn skipped_count(&self) -> u64 {
        self.skipped_count
    }

    /// Returns how many numbers of the frames were beyond what there can be, and are taken as not known.
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

/// How many frames may be missing between two, E2E's MaxDeltaCounter less one: what is missing for
/// longer than a tenth of a second is not the same sequence.
pub const LOST_MAX: u16 = 9;

/// Bytes of the longest frame whose end a build may not know: as many numbers behind a status as nobody tells.
pub const BYTES_MAX: usize = 512;

/// Bytes of each number that a machine tells at the end of a frame.
const TRAILING_BYTES: usize = 4;
/// Where the CRC stands.
const CRC_AT: usize = 8;
/// Where the payload begins.
const PAYLOAD_AT: usize = 20;

#[cfg(test)]
mod tests;
