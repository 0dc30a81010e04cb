//! Header of a picture that a program delivers.

use std::time::Duration;

use tautline_video::pixels::Format;

/// Header of one picture, before its bytes.
///
/// ```text
///  0  magic          u32  "TPIC"; all numbers are big-endian
///  4  version        u16  1
///  6  flags          u16  bit 0: samples use the full range, 0 to 255
///                         bit 1: captured is the end of the capture, not its begin
///  8  format         4 bytes: NV12, YU12 (I420), YUYV, UYVY, GREY, RGB3, BGR3, RGBA, BGRA, MJPG
/// 12  width, height  u32 each, even
/// 20  stride         u32  bytes from one row to the next in the first plane; of MJPG 0
/// 24  bytes          u32  of the picture, which follow
/// 28  number         u32  one more with each capture; always 0: not known
/// 32  captured       u64  time of the capture, ns
/// 40  rate           f32  mean pictures per second; 0: not known
/// 44  clock          u32  of the time: 1 CLOCK_MONOTONIC, 2 CLOCK_REALTIME
/// 48  reserved       16 bytes, 0
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Header {
    pub(super) pixels: Pixels,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) is_full_range: bool,
    /// Length of the picture.
    pub(super) byte_count: usize,
    pub(super) number: u32,
    /// Time of the capture by `clock`.
    pub(super) captured_at: Duration,
    pub(super) clock: ClockId,
    /// True if `captured_at` is the end of the capture.
    pub(super) is_of_end: bool,
    /// Mean pictures per second; `None` if unknown.
    pub(super) rate: Option<f32>,
}

/// Clock of the system that dates a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClockId {
    /// The clock since the start of the system.
    Monotonic,
    /// Unix time.
    Realtime,
}

/// Coding of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pixels {
    /// Samples in this format, with the bytes from one row to the next.
    Raw(Format, usize),
    /// A JPEG.
    Jpeg,
}

impl Header {
    /// Length of a header.
    pub(super) const BYTES: usize = 64;

    /// Reads a header.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub(super) fn parse(bytes: &[u8; Self::BYTES]) -> Result<Self, String> {
        let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let u64_at = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        if bytes[..4] != *MAGIC {
            return Err("no picture begins here".to_owned());
        }
        if u16_at(4) != VERSION {
            return Err(format!("version {} of the header is not known", u16_at(4)));
        }
        let flags = u16_at(6);
        if flags & !(FULL_RANGE | OF_END) != 0 || bytes[48..].iter().any(|byte| *byte != 0) {
            return Err("a field that must be 0 is not".to_owned());
        }
        let [width, height, stride, byte_count] = [12, 16, 20, 24].map(|at| u32_at(at) as usize);
        let is_possible = |side: usize| side.is_multiple_of(2) && (2..=SIDE_MAX).contains(&side);
        if !is_possible(width) || !is_possible(height) {
            return Err(format!("{width}x{height} is no size: even sides from 2 to {SIDE_MAX}"));
        }
        let raw = |format: Format| {
            let wanted = format.bytes(width, height, stride);
            let wanted = wanted.ok_or_else(|| {
                format!("rows of {width} pixels do not fit in a stride of {stride} bytes")
            })?;
            match byte_count == wanted {
                true => Ok(Pixels::Raw(format, stride)),
                false => Err(format!("{byte_count} bytes instead of {wanted}")),
            }
        };
        let pixels = match &bytes[8..12] {
            b"NV12" => raw(Format::Nv12)?,
            b"YU12" => raw(Format::I420)?,
            b"YUYV" => raw(Format::Yuyv)?,
            b"UYVY" => raw(Format::Uyvy)?,
            b"GREY" => raw(Format::Grey)?,
            b"RGB3" => raw(Format::Rgb)?,
            b"BGR3" => raw(Format::Bgr)?,
            b"RGBA" => raw(Format::Rgba)?,
            b"BGRA" => raw(Format::Bgra)?,
            b"MJPG" => Pixels::Jpeg,
            other => {
                return Err(format!("format {:?} is not known", String::from_utf8_lossy(other)));
            }
        };
        if !(1..=BYTES_MAX).contains(&byte_count) {
            return Err(format!("{byte_count} bytes: 1 to {BYTES_MAX} are possible"));
        }
        let rate = f32::from_bits(u32_at(40));
        if !(rate == 0.0 || RATES.contains(&rate)) {
            return Err(format!("{rate} pictures per second is not possible"));
        }
        let clock = match u32_at(44) {
            1 => ClockId::Monotonic,
            2 => ClockId::Realtime,
            other => return Err(format!("clock {other} is not known")),
        };
        Ok(Self {
            pixels,
            width,
            height,
            is_full_range: flags & FULL_RANGE != 0,
            byte_count,
            number: u32_at(28),
            captured_at: Duration::from_nanos(u64_at(32)),
            clock,
            is_of_end: flags & OF_END != 0,
            rate: (rate > 0.0).then_some(rate),
        })
    }

    /// Returns the time of the capture on the monotonic clock, at which the picture arrived at
    /// `arrived_at`, when Unix time was `unix`. Zero for a time before the start of the system.
    pub(super) fn captured_at(&self, arrived_at: Duration, unix: Duration) -> Duration {
        match self.clock {
            ClockId::Monotonic => self.captured_at,
            ClockId::Realtime => (arrived_at + self.captured_at).saturating_sub(unix),
        }
    }

    /// Returns whether pictures of both headers can be read by one sensor.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.rate == other.rate
            && (self.pixels == Pixels::Jpeg) == (other.pixels == Pixels::Jpeg)
            && (self.width, self.height) == (other.width, other.height)
    }
}

const MAGIC: &[u8; 4] = b"TPIC";
const VERSION: u16 = 1;
const FULL_RANGE: u16 = 1;
const OF_END: u16 = 2;
/// Longest side of a picture, as of a layout's.
const SIDE_MAX: usize = 8192;
/// Maximum bytes of a picture: 32 bits for each pixel of 5120x3276.
const BYTES_MAX: usize = 64 << 20;
/// Possible rates of a camera.
const RATES: std::ops::RangeInclusive<f32> = 0.5..=240.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a valid header of a picture of 64 by 48 pixels.
    fn sound(format: &[u8; 4], stride: u32, byte_count: u32) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..4].copy_from_slice(b"TPIC");
        bytes[5] = 1;
        bytes[8..12].copy_from_slice(format);
        for (at, value) in [(12, 64), (16, 48), (20, stride), (24, byte_count), (28, 7)] {
            bytes[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
        }
        bytes[32..40].copy_from_slice(&5_000_000_000_u64.to_be_bytes());
        bytes[40..44].copy_from_slice(&30.0_f32.to_be_bytes());
        bytes[47] = 1;
        bytes
    }

    #[test]
    fn every_format_is_read_with_its_length() {
        let formats: [(&[u8; 4], u32, u32); 10] = [
            (b"NV12", 64, 64 * 72),
            (b"YU12", 80, 80 * 72),
            (b"YUYV", 128, 128 * 48),
            (b"UYVY", 128, 128 * 48),
            (b"GREY", 64, 64 * 48),
            (b"RGB3", 192, 192 * 48),
            (b"BGR3", 201, 201 * 48),
            (b"RGBA", 256, 256 * 48),
            (b"BGRA", 256, 256 * 48),
            (b"MJPG", 0, 1_234),
        ];
        for (format, stride, byte_count) in formats {
            let header = Header::parse(&sound(format, stride, byte_count)).unwrap();
            assert_eq!((header.width, header.height, header.number), (64, 48, 7));
            assert_eq!(header.byte_count, byte_count as usize);
            assert_eq!(header.captured_at, Duration::from_secs(5));
            assert_eq!(header.rate, Some(30.0));
            if stride > 0 {
                assert!(Header::parse(&sound(format, stride, byte_count - 2)).is_err());
                assert!(Header::parse(&sound(format, stride / 2, byte_count)).is_err());
            }
        }
    }

    #[test]
    fn what_is_not_defined_is_refused() {
        let right = sound(b"GREY", 64, 64 * 48);
        for at in [0, 4, 5, 6, 8, 44, 47, 48, 63] {
            let mut wrong = right;
            wrong[at] ^= 0x40;
            assert!(Header::parse(&wrong).is_err(), "byte {at}");
        }
        for rate in [f32::NAN, -1.0, 1_000.0, f32::INFINITY] {
            let mut wrong = right;
            wrong[40..44].copy_from_slice(&rate.to_be_bytes());
            assert!(Header::parse(&wrong).is_err(), "{rate}");
        }
        assert!(Header::parse(&sound(b"MJPG", 0, (64 << 20) + 1)).is_err(), "bounded");
    }

    #[test]
    fn a_time_of_either_clock_is_one_of_the_monotonic() {
        let mut bytes = sound(b"GREY", 64, 64 * 48);
        let at = |bytes: &[u8; 64], unix: u64| {
            let [arrived_at, unix] = [6_000, unix].map(Duration::from_millis);
            Header::parse(bytes).unwrap().captured_at(arrived_at, unix).as_millis()
        };
        assert_eq!(at(&bytes, 5_100), 5_000);
        bytes[47] = 2;
        assert_eq!([5_100, 4_000, 90_000].map(|unix| at(&bytes, unix)), [5_900, 7_000, 0]);
        bytes[32..40].fill(0xFF);
        assert!(at(&bytes, 5_100) > 1_000_000);
    }

    proptest! {
        #[test]
        fn any_bytes_of_a_header_are_bounded_or_refused(
            bytes: [u8; 32], more: [u8; 32], keeps in prop::sample::select(vec![0, 4, 12, 20, 24, 32]),
            format in prop::sample::select(vec![b"NV12", b"RGBA", b"MJPG"]),
            times: [u64; 2],
        ) {
            let mut header = sound(format, 64, 64 * 72);
            let all = [bytes, more].concat();
            header[keeps..].copy_from_slice(&all[keeps..]);
            if let Ok(header) = Header::parse(&header) {
                let [arrived_at, unix] = times.map(Duration::from_nanos);
                header.captured_at(arrived_at, unix);
                prop_assert!(header.byte_count <= BYTES_MAX && header.width <= SIDE_MAX);
            }
        }
    }
}
