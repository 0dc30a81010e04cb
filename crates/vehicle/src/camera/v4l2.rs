//! Camera at the vehicle's computer, by Video4Linux.

use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use rustix::io::Errno;
use tautline_net::clock::Clock;
use tautline_video::pixels::{self, Format, Image};
use tautline_video::v4l2::{self, Device, Kernel, Mode, Set, Taken, Wanted};
use tautline_video::{Error, Layout, Losses, Picture, Sensor, jpeg};

use super::complaint::Complaint;
use super::dating::{Arrival, Capture, Dating};
use super::numbers::Numbers;

/// Sensor for a V4L2 device that captures NV12, I420, YUYV, UYVY, grey or MJPEG.
///
/// Linux delivers complete pictures only, so all strips of one are available at once. The capture
/// time is the start of exposure, if the driver reports it. If the driver reports only the end, or
/// nothing, it is one picture interval before that. So exposure, transfer and waiting count as
/// latency. An [implausible](Dating) time is replaced.
///
/// A picture that is truncated or cannot be decoded is lost, and the device continues. An older
/// picture in its place would look fresh.
pub struct DeviceSensor {
    path: PathBuf,
    device: Box<dyn Device>,
    set: Set,
    pictures_per_second: f64,
    layout: Layout,
    /// Current picture's bytes from the device. If they are a JPEG, `jpeg` decodes them.
    bytes: Vec<u8>,
    jpeg: Option<jpeg::Decoder>,
    /// Pixels of the current picture, decoded from a JPEG; unused with other formats.
    decoded: Vec<u8>,
    dating: Dating,
    /// Start of the current picture's capture, on the monotonic clock.
    captured_at: Duration,
    numbers: Numbers,
    losses: Losses,
    /// Consecutive input/output errors of the device; 0 after a picture.
    errors_in_a_row: u32,
    misdated: Complaint,
    damaged: Complaint,
}

impl DeviceSensor {
    /// Opens the device at `path` in the mode that best fits `wanted`.
    ///
    /// # Errors
    /// Returns one line that says whether the device is missing, is no camera, or lacks the mode.
    pub fn open(path: &Path, wanted: &Wanted, pictures_per_second: f64) -> anyhow::Result<Self> {
        let device = Kernel::open(path).map_err(|error| {
            let at = path.display();
            match error.kind() {
                io::ErrorKind::NotFound => {
                    anyhow!("there is no camera {at}: give a V4L2 device such as /dev/video0")
                }
                io::ErrorKind::PermissionDenied => {
                    anyhow!("cannot open the camera {at}: is this user in the group video?")
                }
                _ => anyhow!("{at} is not a camera that delivers pictures: {error}"),
            }
        })?;
        Self::of(Box::new(device), path, wanted, pictures_per_second)
    }

    /// Sets up an open device, as [`open`](Self::open) does.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn of(
        mut device: Box<dyn Device>,
        path: &Path,
        wanted: &Wanted,
        pictures_per_second: f64,
    ) -> anyhow::Result<Self> {
        let at = path.display();
        let modes = device.modes().with_context(|| format!("{at} does not list its modes"))?;
        let Some(mode) = wanted.choose(&modes, pictures_per_second) else {
            let listed = v4l2::list(&modes);
            match modes.iter().any(|mode| mode.obstacle().is_none()) {
                true => bail!("{at} has no mode \"{wanted}\"; its modes are: {listed}"),
                false if modes.is_empty() => {
                    bail!("{at} lists no mode, so it delivers no pictures")
                }
                false => bail!("{at} has no usable mode; its modes are: {listed}"),
            }
        };
        let set = device.set(&mode).with_context(|| format!("the camera {at} refuses {mode}"))?;
        if let Some(obstacle) = set.mode.obstacle() {
            bail!("the camera {at} was set to {mode} and delivers {}: {obstacle}", set.mode);
        }
        let [width, height] = set.mode.size.map(|side| side as usize);
        let layout = Layout::of_sensor(width, height)?;
        let jpeg = match set.mode.code.pixels() {
            Some(_) => None,
            None => Some(jpeg::Decoder::new(width, height)?),
        };
        device.start().map_err(|error| {
            let help = match error.raw_os_error() {
                Some(code) if code == Errno::NOSPC.raw_os_error() => {
                    ": its USB bus has no room for this mode in addition to its other devices: \
                     use a smaller mode, mjpeg or another socket"
                }
                _ => "",
            };
            anyhow::Error::new(error).context(format!("the camera {at} does not stream{help}"))
        })?;
        let Set { mode, .. } = set;
        tracing::info!(camera = device.name(), path = %at, %mode, "using a camera");
        let told = mode.pictures_per_second();
        let pictures_per_second = match told {
            Some(told) if RATES.contains(&told) => told,
            Some(told) => {
                let camera = device.name();
                tracing::warn!(
                    camera,
                    told,
                    pictures_per_second,
                    "the driver's rate is not plausible"
                );
                pictures_per_second
            }
            None => pictures_per_second,
        };
        let interval = Duration::from_secs_f64(1.0 / pictures_per_second);
        Ok(Self {
            path: path.to_owned(),
            device,
            set,
            pictures_per_second,
            layout,
            bytes: Vec::new(),
            jpeg,
            decoded: Vec::new(),
            dating: Dating::new(interval, Clock::monotonic()),
            captured_at: Duration::ZERO,
            numbers: Numbers::default(),
            losses: Losses::default(),
            errors_in_a_row: 0,
            misdated: Complaint::default(),
            damaged: Complaint::default(),
        })
    }

    /// Returns the current picture's pixels, in their layout in memory; for a format that is
    /// decoded, those of the decoded picture.
    fn image(&self) -> Image<'_> {
        let Mode { code, size, .. } = self.set.mode;
        let [width, height] = size.map(|side| side as usize);
        let (format, bytes) = match code.pixels() {
            Some(format) => (format, &self.bytes),
            None => (Format::I420, &self.decoded),
        };
        let packed = format.row_bytes(width);
        let stride = if self.jpeg.is_some() { packed } else { self.set.stride.max(packed) };
        Image { format, width, height, stride, bytes }
    }

    /// Checks that the picture just taken can be displayed, and decodes it if necessary.
    ///
    /// # Errors
    /// Returns a description of the defect.
    fn check(&mut self, taken: &Taken) -> Result<(), String> {
        if taken.is_damaged {
            return Err("its driver reports missing data".to_owned());
        }
        let count = self.bytes.len();
        if let Some(decoder) = &mut self.jpeg {
            let decoded = decoder.decode(&self.bytes, &mut self.decoded);
            return decoded.map_err(|error| format!("a JPEG of {count} bytes: {error}"));
        }
        match self.image().is_whole() {
            true => Ok(()),
            false => Err(format!("{count} bytes are fewer than {} needs", self.set.mode)),
        }
    }

    /// Waits up to 2 s for the device's next picture, valid or not. An input/output error counts as
    /// a lost picture, and the 30th in a row as a fault of the device.
    fn take(&mut self) -> Result<Taken, Error> {
        let asked_at = Clock::monotonic();
        loop {
            let left = PICTURE_TIMEOUT.saturating_sub(Clock::age_of_monotonic(asked_at));
            let error = match self.device.take(left, &mut self.bytes) {
                Ok(taken) => return Ok(taken),
                Err(error) => error,
            };
            let at = self.path.display();
            let unplugged = [Errno::NODEV, Errno::NXIO].map(|it| Some(it.raw_os_error()));
            let reason = match error.kind() {
                _ if unplugged.contains(&error.raw_os_error()) => {
                    format!("the camera {at} was unplugged")
                }
                _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    let reason = format!("the camera {at} reports an error: {error}");
                    self.errors_in_a_row += 1;
                    if self.errors_in_a_row < ERRORS_MAX {
                        return Err(self.lose(reason));
                    }
                    format!("{reason}, {ERRORS_MAX} times in a row")
                }
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut if left > Duration::ZERO => {
                    // The device announced a picture that was not there: do not ask again at once.
                    std::thread::sleep(PROMISED_PAUSE);
                    continue;
                }
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!(
                    "the camera {at} is frozen: no picture for {} s, and no error",
                    PICTURE_TIMEOUT.as_secs()
                ),
                _ => format!("the camera {at} delivers no more pictures: {error}"),
            };
            return Err(Error::Sensor { reason });
        }
    }

    /// Counts a lost picture; returns the error that reports it.
    fn lose(&mut self, reason: String) -> Error {
        self.losses.damaged += 1;
        let camera = self.device.name();
        if self.damaged.begin(&reason, Clock::monotonic()) {
            tracing::warn!(camera, reason, "the camera loses pictures");
        }
        Error::PictureLost { reason }
    }
}

impl Sensor for DeviceSensor {
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
        let taken = self.take()?;
        self.errors_in_a_row = 0;
        let now = Clock::monotonic();
        self.losses.superseded += u64::from(taken.left_out);
        let missed = self.numbers.missed_before(taken.sequence, taken.left_out);
        self.losses.missed += u64::from(missed);
        let arrival = Arrival { asked_at, taken_at: now, steps: 1 + taken.left_out + missed };
        let Capture { at, fault } = self.dating.date(taken.at, taken.is_of_start, arrival);
        self.captured_at = at;
        if let Some(fault) = fault {
            self.losses.misdated += 1;
            let words = format!(
                "the camera's time of a picture is not plausible ({fault}): it counts as captured \
                 {} ms before its arrival",
                self.dating.interval().as_millis()
            );
            if self.misdated.begin(&words, now) {
                tracing::warn!(camera = self.device.name(), "{words}");
            }
        }
        if let Err(lacks) = self.check(&taken) {
            let reason =
                format!("the camera {} delivered a damaged picture: {lacks}", self.path.display());
            return Err(self.lose(reason));
        }
        Ok(true)
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        let first_row = self.layout.strip_rows(strip).start;
        self.image().fill(first_row, rows).expect("the picture is complete");
        if self.set.is_full_range {
            pixels::limit(rows);
        }
    }
}

/// Time without a picture after which a device counts as stopped and is reopened.
const PICTURE_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause before asking again a device that announced a picture and had none.
const PROMISED_PAUSE: Duration = Duration::from_millis(2);
/// Consecutive errors after which a device is reopened, which may help.
const ERRORS_MAX: u32 = 30;
/// Plausible rates of a camera in pictures per second; for a driver that reports another one, the
/// rate in the settings is used.
const RATES: RangeInclusive<f64> = 0.5..=240.0;

#[cfg(test)]
mod tests;
