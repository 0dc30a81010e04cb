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

    /// Writes a time in integer milliseconds, rounded up, at most 65,534; all ones mean `None`.
    pub(super) fn millis(&mut self, value: Option<Duration>) {
        let millis = value.map(|value| value.as_nanos().div_ceil(1_000_000));
        let most = u16::MAX - 1;
        self.u16(millis.map_or(u16::MAX, |millis| millis.min(u128::from(most)) as u16));
    }

    pub(super) fn bytes<const N: usize>(&mut self, value: &[u8; N]) {
        self.put(*value);
    }

    pub(super) fn set<E>(&mut self, value: Set<E>) {
        self.u32(value.bits());
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

    /// Reads a number between `-most` and `most`. NaN, which means unknown, is returned as it is; a
    /// value out of range is counted and returned as NaN.
    pub(super) fn f32_within(&mut self, most: f32) -> f32 {
        let value = self.f32();
        if value.is_nan() || value.abs() <= most {
            return value;
        }
        self.impossible_count += 1;
        f32::NAN
    }

    /// Reads a number in the same way as [`f32_within`](Self::f32_within).
    pub(super) fn f64_within(&mut self, most: f64) -> f64 {
        let value = self.f64();
        if value.is_nan() || value.abs() <= most {
            return value;
        }
        self.impossible_count += 1;
        f64::NAN
    }

    /// Reads one of the optional numbers at the end of a frame; `None` if the frame ends before it.
    pub(super) fn trailing_f32(&mut self) -> Option<f32> {
        (self.at < self.bytes.len()).then(|| self.f32())
    }

    pub(super) fn f64(&mut self) -> f64 {
        f64::from_be_bytes(self.take())
    }

    pub(super) fn millis(&mut self) -> Option<Duration> {
        match self.u16() {
            u16::MAX => None,
            millis => Some(Duration::from_millis(millis.into())),
        }
    }

    pub(super) fn set<E: Member>(&mut self) -> Result<Set<E>, Error> {
        let at = self.at;
        Set::from_bits(self.u32()).ok_or(Error::Value { at })
    }

    /// Reads one byte and converts it by `known`; returns an error if that returns `None`.
    pub(super) fn choice<T>(&mut self, known: impl FnOnce(u8) -> Option<T>) -> Result<T, Error> {
        let at = self.at;
        known(self.u8()).ok_or(Error::Value { at })
    }

    pub(super) fn bool(&mut self) -> Result<bool, Error> {
        self.choice(|byte| match byte {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        })
    }

    /// Returns the error for a field that begins `back` bytes before the reader's position.
    pub(super) fn value_error(&self, back: usize) -> Error {
        Error::Value { at: self.at - back }
    }
}
