//! Big-endian fields, written and read in sequence.

use core::time::Duration;

use super::error::Error;
use crate::set::{Member, Set};

/// A cursor that writes the fields of a frame.
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn put<const N: usize>(&mut self, field: [u8; N]) {
        self.bytes[self.at..self.at + N].copy_from_slice(&field);
        self.at += N;
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.put([value]);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.put(value.to_be_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.put(value.to_be_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.put(value.to_be_bytes());
    }

    pub(super) fn f32(&mut self, value: f32) {
        self.put(value.to_be_bytes());
    }

    pub(super) fn f64(&mut self, value: f64) {
        self.put(value.to_be_bytes());
    }

    pub(super) fn bytes<const N: usize>(&mut self, value: &[u8; N]) {
        self.put(*value);
    }
}

/// A cursor that reads the fields of a frame.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Number of values out of range so far, which were treated as unknown.
    impossible_count: u32,
}

impl<'a> Reader<'a> {
    /// Creates a reader of a frame, positioned at offset `at`; the caller has checked the frame's
    /// length.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, impossible_count: 0 }
    }

    /// Returns the number of values out of range so far, which were treated as unknown.
    pub(super) fn impossible_count(&self) -> u32 {
        self.impossible_count
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        field
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        self.take()
    }

    pub(super) fn u8(&mut self) -> u8 {
        let [value] = self.take();
        value
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }

    pub(super) fn f32(&mut self) -> f32 {
        f32::from_be_bytes(self.take())
    }

    pub(super) fn f64(&mut self) -> f64 {
        f64::from_be_bytes(self.take())
    }

    /// Reads one of the optional numbers at the end of a frame; NaN if the frame ends before it.
    pub(super) fn trailing_f32(&mut self) -> f32 {
        if self.at < self.bytes.len() { self.f32() } else { f32::NAN }
    }

    /// Returns a number between `-most` and `most` as it is, also NaN, which means unknown; a value
    /// out of range is counted and becomes NaN.
    pub(super) fn within(&mut self, value: f32, most: f32) -> f32 {
        if value.is_nan() || value.abs() <= most {
            return value;
        }
        self.impossible_count += 1;
        f32::NAN
    }

    /// Returns a number in the same way as [`within`](Self::within).
    pub(super) fn within_f64(&mut self, value: f64, most: f64) -> f64 {
        if value.is_nan() || value.abs() <= most {
            return value;
        }
        self.impossible_count += 1;
        f64::NAN
    }
}

/// Returns a time in integer milliseconds, rounded up, at most 65,534; all ones for `None`.
pub(super) fn to_millis(value: Option<Duration>) -> u16 {
    let millis = value.map(|value| value.as_nanos().div_ceil(1_000_000));
    let most = u16::MAX - 1;
    millis.map_or(u16::MAX, |millis| millis.min(u128::from(most)) as u16)
}

/// Returns the time that [`to_millis`] turned into this number, in whole milliseconds; `None` for
/// all ones.
pub(super) fn from_millis(millis: u16) -> Option<Duration> {
    (millis != u16::MAX).then(|| Duration::from_millis(millis.into()))
}

/// Returns the set of these bits, which stand at offset `at`; an error with that offset if a bit
/// has no member.
pub(super) fn set<E: Member>(bits: u32, at: usize) -> Result<Set<E>, Error> {
    Set::from_bits(bits).ok_or(Error::Value { at })
}

/// Returns the flag of this byte, which stands at offset `at`; an error with that offset unless it
/// is 0 or 1.
pub(super) fn flag(byte: u8, at: usize) -> Result<bool, Error> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::Value { at }),
    }
}
