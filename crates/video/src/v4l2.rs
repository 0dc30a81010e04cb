//! Cameras by Video4Linux: a device behind a trait, how its mode is chosen, and its pictures.

mod native;

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

pub use self::native::Kernel;

use crate::pixels::Format;

/// A camera as the kernel shows it: the port that [`Kernel`] implements, and traces of devices in tests.
pub trait Device: Send {
    /// Returns the name that the device gives itself.
    fn name(&self) -> &str;

    /// Returns everything that it can capture and we can take.
    ///
    /// # Errors
    /// As the system.
    fn modes(&mut self) -> io::Result<Vec<Mode>>;

    /// Asks for a mode; gives what the driver made of that.
    ///
    /// # Errors
    /// As the system.
    fn set(&mut self, mode: &Mode) -> io::Result<Set>;

    /// Begins to capture.
    ///
    /// # Errors
    /// As the system.
    fn start(&mut self) -> io::Result<()>;

    /// Waits for a picture and copies the newest into `bytes`; older ones that wait are left out.
    ///
    /// # Errors
    /// As the system; [`io::ErrorKind::TimedOut`] if there is none within `timeout`.
    fn take(&mut self, timeout: Duration, bytes: &mut Vec<u8>) -> io::Result<Taken>;
}

/// What of a picture is told beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The driver's timestamp, on the machine's monotonic clock.
    pub at: Option<Duration>,
    /// Whether that is when exposure began; otherwise it is when the last row had come.
    pub is_of_start: bool,
    /// Whether the driver says that something of it is missing.
    pub is_damaged: bool,
    /// Older pictures that waited and were left out.
    pub left_out: u32,
    /// The driver's number of the picture, one more with each capture, wrapping.
    pub sequence: u32,
}

/// How a device gives its pixels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Code {
    /// 4:2:0 in two planes.
    Nv12,
    /// 4:2:0 in three planes.
    I420,
    /// 4:2:2, two pixels in four bytes.
    Yuyv,
    /// Each picture a JPEG: most USB cameras have their great sizes only so.
    Mjpeg,
}

impl Code {
    const ALL: [(Self, &str, [u8; 4]); 5] = [
        (Self::Nv12, "nv12", *b"NV12"),
        (Self::I420, "i420", *b"YU12"),
        (Self::Yuyv, "yuyv", *b"YUYV"),
        (Self::Mjpeg, "mjpeg", *b"MJPG"),
        (Self::Mjpeg, "jpeg", *b"JPEG"),
    ];

    /// Returns how the pixels lie, unless they are coded.
    pub fn pixels(self) -> Option<Format> {
        match self {
            Self::Nv12 => Some(Format::Nv12),
            Self::I420 => Some(Format::I420),
            Self::Yuyv => Some(Format::Yuyv),
            Self::Mjpeg => None,
        }
    }

    fn of(four: u32) -> Option<Self> {
        let four = four.to_le_bytes();
        Self::ALL.iter().find(|(.., code)| *code == four).map(|(code, ..)| *code)
    }

    fn four(self) -> u32 {
        let found = Self::ALL.iter().find(|(code, ..)| *code == self);
        found.map_or(0, |(.., four)| u32::from_le_bytes(*four))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(code, ..)| code == self);
        f.write_str(found.map_or("", |(_, name, _)| name))
    }
}

/// A fraction above zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fraction([u32; 2]);

impl Fraction {
    /// Returns `over / under`; `None` if either is zero.
    pub fn new(over: u32, under: u32) -> Option<Self> {
        (over > 0 && under > 0).then_some(Self([over, under]))
    }

    /// Returns what is divided.
    pub fn over(self) -> u32 {
        self.0[0]
    }

    /// Returns by what it is divided.
    pub fn under(self) -> u32 {
        self.0[1]
    }
}

/// One way in which a device can capture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mode {
    /// How its pixels come.
    pub code: Code,
    /// Pixels in a row, and rows.
    pub size: [u32; 2],
    /// Seconds between two pictures, if the device tells.
    pub interval: Option<Fraction>,
}

impl Mode {
    /// Returns the pictures a second, if they are known.
    pub fn pictures_per_second(&self) -> Option<f64> {
        self.interval.map(|interval| f64::from(interval.under()) / f64::from(interval.over()))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [width, height] = self.size;
        write!(f, "{} {width}x{height}", self.code)?;
        match self.pictures_per_second() {
            Some(rate) => write!(f, "@{}", (rate * 100.0).round() / 100.0),
            None => Ok(()),
        }
    }
}

/// A mode as the driver has set it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Set {
    /// The mode, which may be another than the one asked for.
    pub mode: Mode,
    /// Bytes from one row to the next; 0 where a driver does not say.
    pub stride: usize,
    /// Whether black and white are 0 and 255 rather than 16 and 235.
    pub is_full_range: bool,
}

/// A mode by name: `mjpeg 1280x720@30`, or any part of that.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Wanted {
    /// How the pixels are to come.
    pub code: Option<Code>,
    /// The size.
    pub size: Option<[u32; 2]>,
    /// Pictures a second.
    pub pictures_per_second: Option<f64>,
}

impl Wanted {
    /// Returns the mode among `modes` that has every part that is wanted, and fits best otherwise: of at least
    /// 25 pictures a second before others, then of a size close to 1280x720, then of a rate close to `usual_rate`,
    /// then as pixels rather than JPEGs.
    pub fn choose(&self, modes: &[Mode], usual_rate: f64) -> Option<Mode> {
        let close = |a: f64, b: f64| (a - b).abs() <= RATE_ERROR * b;
        let rate = |mode: &Mode| mode.pictures_per_second().unwrap_or(usual_rate);
        let fits = |mode: &&Mode| {
            let [width, height] = mode.size;
            let is_possible = self.size.is_some_and(|size| size == mode.size)
                || self.size.is_none() && width <= SIZE_MAX[0] && height <= SIZE_MAX[1];
            let is_even = width % 2 == 0 && height % 2 == 0;
            let has_code = self.code.is_none_or(|code| code == mode.code);
            let has_rate = self.pictures_per_second.is_none_or(|wanted| close(rate(mode), wanted));
            is_possible && is_even && has_code && has_rate
        };
        let wanted_rate = self.pictures_per_second.unwrap_or(usual_rate);
        let cost = |mode: &Mode| {
            let [width, height] = mode.size.map(f64::from);
            let distance = (width * height / SIZE_PREFERRED).log2().abs();
            let is_slow = rate(mode) < RATE_LEAST.min(wanted_rate) * (1.0 - RATE_ERROR);
            (is_slow, distance, (rate(mode) - wanted_rate).abs(), mode.code)
        };
        modes.iter().filter(fits).copied().min_by(|a, b| {
            let (a, b) = (cost(a), cost(b));
            let by_size = a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
            by_size.then(a.2.total_cmp(&b.2)).then(a.3.cmp(&b.3))
        })
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || format!("{text:?} is no mode such as \"mjpeg 1280x720@30\"");
        let mut wanted = Self::default();
        for part in text.split_whitespace() {
            if let Some((code, ..)) = Code::ALL.iter().find(|(_, name, _)| *name == part) {
                wanted.code = Some(*code);
                continue;
            }
            let (size, rate) = part.split_once('@').unwrap_or((part, ""));
            if !size.is_empty() {
                let sides = size.split_once('x').ok_or_else(malformed)?;
                let side = |side: &str| side.parse().ok().filter(|side| (2..=8192).contains(side));
                let sides = side(sides.0).zip(side(sides.1)).ok_or_else(malformed)?;
                wanted.size = Some([sides.0, sides.1]);
            }
            if !rate.is_empty() {
                let rate = rate.parse().ok().filter(|rate| (1.0..=240.0).contains(rate));
                wanted.pictures_per_second = Some(rate.ok_or_else(malformed)?);
            } else if part.contains('@') {
                return Err(malformed());
            }
        }
        Ok(wanted)
    }
}

/// Beyond this a size has to be asked for by name.
const SIZE_MAX: [u32; 2] = [1920, 1080];
/// The preference where no size is wanted, as pixels: docs/running.md tells it beside `camera_mode`.
const SIZE_PREFERRED: f64 = 1280.0 * 720.0;
/// Fewer pictures a second are harder to drive by than fewer pixels.
const RATE_LEAST: f64 = 25.0;
/// 30000/1001 counts as 30.
const RATE_ERROR: f64 = 0.01;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mode(code: Code, size: [u32; 2], rate: u32) -> Mode {
        Mode { code, size, interval: Fraction::new(1, rate) }
    }

    /// Returns the list of a common USB camera of 1080 rows: raw pixels only where the bus has room for them.
    fn usb_camera() -> Vec<Mode> {
        let mut modes = Vec::new();
        for (size, raw, coded) in [
            ([640, 480], 30, 60),
            ([800, 600], 24, 30),
            ([1280, 720], 10, 30),
            ([1920, 1080], 5, 30),
            ([2592, 1944], 2, 15),
        ] {
            modes.extend([mode(Code::Yuyv, size, raw), mode(Code::Mjpeg, size, coded)]);
        }
        modes
    }

    fn chosen(wanted: &str, modes: &[Mode]) -> String {
        let mode = wanted.parse::<Wanted>().unwrap().choose(modes, 60.0);
        mode.map_or("none".to_owned(), |mode| mode.to_string())
    }

    #[test]
    fn a_mode_is_chosen_by_name_or_by_what_fits_best() {
        let modes = usb_camera();
        assert_eq!(chosen("", &modes), "mjpeg 1280x720@30");
        assert_eq!(chosen("yuyv", &modes), "yuyv 640x480@30");
        assert_eq!(chosen("1920x1080", &modes), "mjpeg 1920x1080@30");
        assert_eq!(chosen("@60", &modes), "mjpeg 640x480@60");
        assert_eq!(chosen("yuyv 1280x720@10", &modes), "yuyv 1280x720@10");
        assert_eq!(chosen("2592x1944", &modes), "mjpeg 2592x1944@15");
        assert_eq!(chosen("nv12", &modes), "none");
        assert_eq!(chosen("640x480@50", &modes), "none");
        // A camera of a board, which tells no rate, and pixels before JPEGs where both are as good.
        let unknown = Mode { interval: None, ..mode(Code::Nv12, [1280, 720], 1) };
        assert_eq!(chosen("", &[modes.clone(), vec![unknown]].concat()), "nv12 1280x720");
        let ntsc = Mode { interval: Fraction::new(1001, 30_000), ..unknown };
        assert_eq!(chosen("@30", &[ntsc]), "nv12 1280x720@29.97");
    }

    #[test]
    fn a_mode_s_name_is_read_as_it_is_written() {
        for text in ["mjpeg 1280x720@30", "yuyv 640x480@7.5", "i420 2x2"] {
            let wanted: Wanted = text.parse().unwrap();
            assert!(wanted.code.is_some() && wanted.size.is_some(), "{text}");
        }
        for text in ["h264", "1280", "1280x", "1280x720@", "0x720", "@0", "@NaN"] {
            assert!(text.parse::<Wanted>().is_err(), "{text}");
        }
    }

    #[test]
    fn codes_are_told_by_their_four_letters() {
        for code in [Code::Nv12, Code::I420, Code::Yuyv, Code::Mjpeg] {
            assert_eq!(Code::of(code.four()), Some(code));
        }
        assert_eq!(Code::of(u32::from_le_bytes(*b"JPEG")), Some(Code::Mjpeg));
        assert_eq!(Code::of(0), None);
    }

    proptest! {
        #[test]
        fn any_name_and_any_modes_are_taken(
            text: String,
            modes in proptest::collection::vec((0u32..9000, 0u32..9000, any::<u32>(), any::<u32>()), 0..8),
            rate: f64,
        ) {
            let mode = |(width, height, over, under)| Mode {
                code: Code::Yuyv, size: [width, height], interval: Fraction::new(over, under),
            };
            let modes: Vec<Mode> = modes.into_iter().map(mode).collect();
            let _ = text.parse::<Wanted>().map(|wanted| wanted.choose(&modes, rate));
            let _ = Wanted::default().choose(&modes, rate);
        }
    }
}
