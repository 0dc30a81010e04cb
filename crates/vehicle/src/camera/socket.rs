//! Pictures of a program on this computer, such as one in Python or a node of ROS 2, by a Unix
//! socket.

mod header;
mod inlet;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, ensure};
use tautline_net::clock::Clock;
use tautline_video::pixels::{self, Format, Image};
use tautline_video::{Error, Layout, Losses, Picture, Sensor, jpeg};

use self::header::{Header, Pixels};
use self::inlet::{Delivered, Inlet, Missing};
use super::complaint::Complaint;
use super::dating::{Arrival, Capture, Dating};
use super::numbers::Numbers;

/// Sensor whose pictures a program delivers at a Unix socket: each a header of 64 bytes, then its
/// bytes ([`Header`]). The vehicle listens; one program at a time is connected.
///
/// The newest complete picture is taken, older ones are counted. Its capture time is the program's;
/// a picture whose time is [not plausible](Dating) is refused, because an old one must not look
/// fresh. A picture of another size ends the sensor, which is then opened anew.
#[derive(Debug)]
pub struct SocketSensor {
    path: PathBuf,
    inlet: Inlet,
    pictures_per_second: f64,
    layout: Layout,
    current: Delivered,
    /// True while `current` is the picture that came at the opening, not begun yet.
    is_fresh: bool,
    jpeg: Option<jpeg::Decoder>,
    /// Pixels of the current picture, decoded from a JPEG; unused with other formats.
    decoded: Vec<u8>,
    dating: Dating,
    /// Start of the current picture's capture, on the monotonic clock.
    captured_at: Duration,
    numbers: Numbers,
    losses: Losses,
    misdated: Complaint,
    damaged: Complaint,
}

impl SocketSensor {
    /// Listens at `path`, and waits up to 2 s for the first picture. Without a rate of its own the
    /// program is taken to deliver `pictures_per_second`.
    ///
    /// # Errors
    /// One line that says that the socket cannot be opened, or that no picture comes.
    pub fn open(path: &Path, pictures_per_second: f64) -> anyhow::Result<Self> {
        let inlet = Inlet::open(path)?;
        let (current, _) =
            inlet.take(Vec::new(), PICTURE_TIMEOUT).map_err(|it| missing(path, it))?;
        let Header { width, height, rate, .. } = current.header;
        let layout = Layout::of_sensor(width, height)?;
        let is_jpeg = current.header.pixels == Pixels::Jpeg;
        let jpeg = is_jpeg.then(|| jpeg::Decoder::new(width, height)).transpose()?;
        let pictures_per_second = rate.map_or(pictures_per_second, f64::from);
        ensure!(pictures_per_second > 0.0, "unix:{}: a camera has a rate", path.display());
        tracing::info!(path = %path.display(), width, height, "a program delivers pictures");
        let interval = Duration::from_secs_f64(1.0 / pictures_per_second);
        Ok(Self {
            path: path.to_owned(),
            inlet,
            pictures_per_second,
            layout,
            dating: Dating::new(interval, current.arrived_at.saturating_sub(interval)),
            current,
            is_fresh: true,
            jpeg,
            decoded: Vec::new(),
            captured_at: Duration::ZERO,
            numbers: Numbers::default(),
            losses: Losses::default(),
            misdated: Complaint::default(),
            damaged: Complaint::default(),
        })
    }

    /// Takes the next picture as the current one; returns the number of those that it replaced.
    fn take(&mut self) -> Result<u32, Error> {
        if std::mem::take(&mut self.is_fresh) {
            return Ok(0);
        }
        let used = std::mem::take(&mut self.current.bytes);
        let taken = self.inlet.take(used, PICTURE_TIMEOUT);
        let (next, superseded) =
            taken.map_err(|it| Error::Sensor { reason: missing(&self.path, it).to_string() })?;
        if !next.header.is_like(&self.current.header) {
            let Header { width, height, .. } = next.header;
            let at = self.path.display();
            let reason =
                format!("unix:{at} delivers another kind of picture now, {width}x{height}");
            return Err(Error::Sensor { reason });
        }
        self.current = next;
        Ok(superseded)
    }

    /// Returns the current picture's pixels; those of a JPEG are decoded.
    fn image(&self) -> Image<'_> {
        let Header { pixels, width, height, .. } = self.current.header;
        let (format, stride, bytes) = match pixels {
            Pixels::Raw(format, stride) => (format, stride, &self.current.bytes),
            Pixels::Jpeg => (Format::I420, width, &self.decoded),
        };
        Image { format, width, height, stride, bytes }
    }

    /// Dates the current picture, before which `superseded` others came.
    ///
    /// # Errors
    /// [`Error::PictureLost`] if its capture time is not plausible.
    fn date(&mut self, asked_at: Duration, superseded: u32) -> Result<(), Error> {
        let Header { number, is_of_end, .. } = self.current.header;
        let missed = self.numbers.missed_before(number, superseded);
        self.losses.superseded += u64::from(superseded);
        self.losses.missed += u64::from(missed);
        let steps = 1 + superseded + missed;
        let arrival = Arrival { asked_at, taken_at: self.current.arrived_at, steps };
        let told = Some(self.current.captured_at);
        let Capture { at, fault } = self.dating.date(told, !is_of_end, arrival);
        self.captured_at = at;
        let Some(fault) = fault else { return Ok(()) };
        self.losses.misdated += 1;
        let reason = format!("pictures are refused, whose capture time is {fault}");
        if self.misdated.begin(&reason, Clock::monotonic()) {
            tracing::warn!(path = %self.path.display(), "{reason}");
        }
        Err(Error::PictureLost { reason })
    }
}

impl Sensor for SocketSensor {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn pictures_per_second(&self) -> f64 {
        self.pictures_per_second
    }

    fn gives_rows(&self) -> bool {
        false
    }

    fn age(&self) -> Duration {
        Clock::age_of_monotonic(self.captured_at)
    }

    fn sequence(&self) -> Option<u32> {
        self.numbers.shown()
    }

    fn losses(&self) -> Losses {
        self.losses
    }

    fn trouble(&self) -> Option<&str> {
        let now = Clock::monotonic();
        self.damaged.words(now).or_else(|| self.misdated.words(now))
    }

    fn next_picture(&mut self) -> Result<bool, Error> {
        let asked_at = Clock::monotonic();
        let superseded = self.take()?;
        self.date(asked_at, superseded)?;
        let Some(decoder) = &mut self.jpeg else { return Ok(true) };
        let Err(error) = decoder.decode(&self.current.bytes, &mut self.decoded) else {
            return Ok(true);
        };
        let count = self.current.bytes.len();
        let reason = format!("a JPEG of {count} bytes: {error}");
        self.losses.damaged += 1;
        if self.damaged.begin(&reason, Clock::monotonic()) {
            tracing::warn!(path = %self.path.display(), reason, "a program's picture is damaged");
        }
        Err(Error::PictureLost { reason })
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        let first_row = self.layout.strip_rows(strip).start;
        self.image().fill(first_row, rows).expect("the header was checked");
        let is_full_range = match self.current.header.pixels {
            Pixels::Jpeg => true,
            Pixels::Raw(Format::Rgb | Format::Bgr | Format::Rgba | Format::Bgra, _) => false,
            Pixels::Raw(..) => self.current.header.is_full_range,
        };
        if is_full_range {
            pixels::limit(rows);
        }
    }
}

fn missing(path: &Path, missing: Missing) -> anyhow::Error {
    let at = path.display();
    match missing {
        Missing::Program => anyhow!("no program delivers pictures at unix:{at}"),
        Missing::Picture => {
            anyhow!(
                "the program at unix:{at} delivers no picture for {} s",
                PICTURE_TIMEOUT.as_secs()
            )
        }
        Missing::Refused(reason) => {
            anyhow!("the program at unix:{at} delivers no pictures: {reason}")
        }
    }
}

/// Time without a picture after which a program counts as stopped.
const PICTURE_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
