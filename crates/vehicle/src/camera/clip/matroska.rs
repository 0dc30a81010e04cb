//! The subset of Matroska (RFC 9559) in which ffmpeg writes raw pictures to a pipe, with their
//! times.

use std::io::{self, Error, ErrorKind, Read};
use std::time::Duration;

/// Reader of a single track of raw pictures.
///
/// Everything except clusters and their blocks is skipped. Times are whole milliseconds, as ffmpeg
/// writes them.
pub(super) struct Pictures<R> {
    input: R,
    /// Time of the current cluster, to which the times of its blocks are relative.
    cluster_millis: u64,
}

/// Start of a picture in the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Begun {
    /// Display time, from the start of the clip.
    pub(super) at: Duration,
    /// Number of bytes of the picture, which follow in the input.
    pub(super) bytes: u64,
}

impl<R: Read> Pictures<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, cluster_millis: 0 }
    }

    /// Returns the input from which the pictures are read.
    pub(super) fn input(&mut self) -> &mut R {
        &mut self.input
    }

    /// Reads up to the start of the next picture.
    ///
    /// # Errors
    /// Returns the input's error; [`ErrorKind::UnexpectedEof`] at its end;
    /// [`ErrorKind::InvalidData`] if the file has another format.
    pub(super) fn begin(&mut self) -> io::Result<Begun> {
        loop {
            let id = self.number(false)?.ok_or_else(|| malformed("an element's number"))?;
            let size = self.number(true)?;
            match (id, size) {
                // These elements contain others, which the next turns read.
                (SEGMENT | CLUSTER | BLOCK_GROUP, _) => {}
                (TIMESTAMP, Some(size @ 1..=8)) => {
                    let mut bytes = [0; 8];
                    self.input.read_exact(&mut bytes[8 - size as usize..])?;
                    self.cluster_millis = u64::from_be_bytes(bytes);
                }
                (SIMPLE_BLOCK | BLOCK, Some(size)) => {
                    let bytes = size.checked_sub(BLOCK_HEAD_BYTES);
                    let bytes = bytes.ok_or_else(|| malformed("a block"))?;
                    let mut head = [0; BLOCK_HEAD_BYTES as usize];
                    self.input.read_exact(&mut head)?;
                    let [track, high, low, flags] = head;
                    if track & 0x80 == 0 || flags & LACING != 0 {
                        return Err(malformed("a block"));
                    }
                    let after = i64::from(i16::from_be_bytes([high, low]));
                    let millis = self.cluster_millis.saturating_add_signed(after);
                    return Ok(Begun { at: Duration::from_millis(millis), bytes });
                }
                (_, Some(size)) => {
                    let skipped = io::copy(&mut (&mut self.input).take(size), &mut io::sink())?;
                    if skipped < size {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                (_, None) => return Err(malformed("an element's size")),
            }
        }
    }

    /// Reads the picture that was [begun](Self::begin); `picture` must have as many bytes as it.
    ///
    /// # Errors
    /// Returns the input's error.
    pub(super) fn read(&mut self, picture: &mut [u8]) -> io::Result<()> {
        self.input.read_exact(picture)
    }

    /// Reads a variable-length number of one to eight bytes; the first byte encodes the length. The
    /// length marker is part of an element's ID, but not of a size. `None` is an unknown size.
    fn number(&mut self, is_size: bool) -> io::Result<Option<u64>> {
        let mut first = [0];
        self.input.read_exact(&mut first)?;
        let more = first[0].leading_zeros() as usize;
        if more >= 8 {
            return Err(malformed("a number"));
        }
        let mut bytes = [0; 8];
        bytes[7 - more] = first[0];
        self.input.read_exact(&mut bytes[8 - more..])?;
        let number = u64::from_be_bytes(bytes);
        let value = number & !(1 << (7 * (more + 1)));
        let is_unknown = value == (1 << (7 * (more + 1))) - 1;
        Ok(match is_size {
            true => (!is_unknown).then_some(value),
            false => Some(number),
        })
    }
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("{what} is not valid Matroska"))
}

const SEGMENT: u64 = 0x1853_8067;
const CLUSTER: u64 = 0x1F43_B675;
const TIMESTAMP: u64 = 0xE7;
const SIMPLE_BLOCK: u64 = 0xA3;
const BLOCK_GROUP: u64 = 0xA0;
const BLOCK: u64 = 0xA1;
/// Bytes of a block before its picture: track number, time relative to the cluster, flags.
const BLOCK_HEAD_BYTES: u64 = 4;
/// Flag bits of a block with several pictures.
const LACING: u8 = 0x06;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file that begins with elements to skip, followed by two clusters, the first of
    /// unknown size.
    fn file() -> Vec<u8> {
        let mut bytes = vec![0x1A, 0x45, 0xDF, 0xA3, 0x82, 1, 2];
        bytes.extend([0x18, 0x53, 0x80, 0x67, 0x01, 255, 255, 255, 255, 255, 255, 255]);
        bytes.extend([0xEC, 0x40, 0x03, 9, 9, 9]);
        bytes.extend([0x1F, 0x43, 0xB6, 0x75, 0xFF, 0xE7, 0x82, 0x01, 0x00]);
        bytes.extend([0xA3, 0x86, 0x81, 0x00, 0x21, 0x80, 1, 2]);
        bytes.extend([0xA0, 0x88, 0xA1, 0x86, 0x81, 0xFF, 0xFF, 0x00, 3, 4]);
        bytes.extend([0x1F, 0x43, 0xB6, 0x75, 0x8B, 0xE7, 0x81, 0x05]);
        bytes.extend([0xA3, 0x86, 0x81, 0x00, 0x00, 0x80, 5, 6]);
        bytes
    }

    #[test]
    fn each_picture_has_its_own_time() {
        let bytes = file();
        let mut pictures = Pictures::new(&bytes[..]);
        for (millis, expected) in [(256 + 33, [1, 2]), (255, [3, 4]), (5, [5, 6])] {
            let begun = pictures.begin().unwrap();
            assert_eq!(begun, Begun { at: Duration::from_millis(millis), bytes: 2 });
            let mut picture = [0; 2];
            pictures.read(&mut picture).unwrap();
            assert_eq!(picture, expected);
        }
        assert_eq!(pictures.begin().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_file_that_is_cut_is_an_error_at_its_end() {
        let bytes = file();
        for length in 0..bytes.len() {
            let mut pictures = Pictures::new(&bytes[..length]);
            let error = loop {
                let read = pictures.begin().and_then(|_| pictures.read(&mut [0; 2]));
                if let Err(error) = read {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{length}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end_without_panic(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
            is_file: bool,
        ) {
            let bytes = if is_file { [file(), bytes].concat() } else { bytes };
            let mut pictures = Pictures::new(&bytes[..]);
            while let Ok(begun) = pictures.begin() {
                let mut picture = vec![0; begun.bytes.min(8) as usize];
                if pictures.read(&mut picture).is_err() {
                    break;
                }
            }
        }
    }
}
