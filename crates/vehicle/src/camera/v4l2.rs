//! A camera of the machine's own, by Video4Linux.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use tautline_net::clock::Clock;
use tautline_video::pixels::{self, Format, Image};
use tautline_video::v4l2::{Device, Kernel, Mode, Set, Taken, Wanted};
use tautline_video::{Error, Layout, Picture, Sensor, jpeg};

/// A sensor of what a V4L2 device captures, in NV12, I420, YUYV or MJPEG.
///
/// Linux hands over whole pictures only: all strips of one are there at once. Their capture is when exposure
/// began, as the driver tells; of a driver that tells the end alone, or nothing, a picture's time before that.
/// So exposure, transfer and waiting count as latency.
pub struct DeviceSensor {
    path: PathBuf,
    device: Box<dyn Device>,
    set: Set,
    pictures_per_second: f64,
    layout: Layout,
    /// What the device gave, and the decoder for it if that is a JPEG.
    bytes: Vec<u8>,
    jpeg: Option<jpeg::Decoder>,
    /// The picture's pixels, if decoded.
    decoded: Vec<u8>,
    age: Duration,
    sequence: Option<u32>,
}

impl DeviceSensor {
    /// Opens the device at `path` in the mode that `wanted` names, and fits best otherwise.
    ///
    /// # Errors
    /// One line that says whether the device is missing, no camera, or has no such mode.
    pub fn open(path: &Path, wanted: &Wanted, pictures_per_second: f64) -> anyhow::Result<Self> {
        let device = Kernel::open(path).map_err(|error| {
            let at = path.display();
            match error.kind() {
                io::ErrorKind::NotFound => {
                    anyhow!("there is no camera {at}: give a V4L2 device such as /dev/video0")
                }
                io::ErrorKind::PermissionDenied => {
                    anyhow!("the camera {at} may not be opened: is this user in the group video?")
                }
                _ => anyhow!("{at} is no camera that gives pictures: {error}"),
            }
        })?;
        Self::of(Box::new(device), path, wanted, pictures_per_second)
    }

    /// Sets up a device that is open, as [`open`](Self::open) does.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of(
        mut device: Box<dyn Device>,
        path: &Path,
        wanted: &Wanted,
        pictures_per_second: f64,
    ) -> anyhow::Result<Self> {
        let at = path.display();
        let modes = device.modes().with_context(|| format!("{at} does not tell its modes"))?;
        let mode = wanted.choose(&modes, pictures_per_second).with_context(|| {
            let mut has = String::new();
            for mode in modes.iter().take(MODES_TOLD_MAX) {
                let _ = write!(has, " {mode},");
            }
            format!("{at} has no such mode; those that can be taken:{has} ..")
        })?;
        let set = device.set(&mode).with_context(|| format!("{at} refuses {mode}"))?;
        let [width, height] = set.mode.size.map(|side| side as usize);
        let layout = Layout::around(width, height)
            .with_context(|| format!("{at} gives pictures of {width}x{height}"))?;
        ensure!(
            layout.shown() == (width, height),
            "{at} gives pictures of {width}x{height}: both sides must be even"
        );
        let jpeg = match set.mode.code.pixels() {
            Some(_) => None,
            None => Some(jpeg::Decoder::new(width, height)?),
        };
        device.start().with_context(|| format!("{at} does not stream"))?;
        let Set { mode, .. } = set;
        tracing::info!(camera = device.name(), path = %at, %mode, "seeing with a camera");
        Ok(Self {
            path: path.to_owned(),
            device,
            set,
            pictures_per_second: mode.pictures_per_second().unwrap_or(pictures_per_second),
            layout,
            bytes: Vec::new(),
            jpeg,
            decoded: Vec::new(),
            age: Duration::ZERO,
            sequence: None,
        })
    }

    /// Returns the pixels as they lie.
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

    /// Returns whether the picture just taken can be shown, decoded if it has to be.
    fn is_whole(&mut self, taken: &Taken) -> bool {
        if taken.is_damaged {
            return false;
        }
        match &mut self.jpeg {
            Some(decoder) => decoder.decode(&self.bytes, &mut self.decoded).is_ok(),
            None => self.image().is_whole(),
        }
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
        self.age
    }

    fn sequence(&self) -> Option<u32> {
        self.sequence
    }

    fn next_picture(&mut self) -> Result<bool, Error> {
        // An older picture in the place of one that is damaged would seem to be fresh.
        for _ in 0..DAMAGED_MAX {
            let taken = match self.device.take(PICTURE_TIMEOUT, &mut self.bytes) {
                Ok(taken) => taken,
                Err(error) => {
                    let at = self.path.display();
                    let reason = format!("the camera {at} gives no more pictures: {error}");
                    return Err(Error::Sensor { reason });
                }
            };
            if self.is_whole(&taken) {
                let told = taken.at.map(Clock::age_of_monotonic).unwrap_or_default();
                let exposed_before = match taken {
                    Taken { at: Some(_), is_of_start: true, .. } => Duration::ZERO,
                    Taken { .. } => self.interval(),
                };
                self.age = told + exposed_before;
                self.sequence = Some(taken.sequence);
                return Ok(true);
            }
            tracing::debug!(camera = self.device.name(), "a picture was damaged");
        }
        let reason = format!("the camera {} gives damaged pictures alone", self.path.display());
        Err(Error::Sensor { reason })
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        let first_row = self.layout.strip_rows(strip).start;
        self.image().fill(first_row, rows).expect("the picture is whole");
        if self.set.is_full_range {
            pixels::limit(rows);
        }
    }
}

/// A device that says nothing for so long is gone.
const PICTURE_TIMEOUT: Duration = Duration::from_secs(2);
/// So many damaged pictures in a row are no accident.
const DAMAGED_MAX: usize = 30;
/// Modes that are told where none fits.
const MODES_TOLD_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tautline_video::v4l2::{Code, Fraction};

    use super::*;

    /// A device that does what was written down: pictures of one grey each, and then it is unplugged.
    struct Trace {
        modes: Vec<Mode>,
        /// What the driver gives in the place of the size that it is asked for.
        size: Option<[u32; 2]>,
        padding: usize,
        taken: VecDeque<(u8, Taken)>,
        set: Option<Set>,
        streams: bool,
    }

    impl Trace {
        fn of(code: Code, size: [u32; 2], taken: &[(u8, Taken)]) -> Self {
            let modes = vec![Mode { code, size, interval: Fraction::new(1, 30) }];
            let taken = taken.iter().copied().collect();
            Self { modes, size: None, padding: 0, taken, set: None, streams: false }
        }

        fn open(self) -> anyhow::Result<DeviceSensor> {
            DeviceSensor::of(Box::new(self), Path::new("/dev/video7"), &Wanted::default(), 60.0)
        }
    }

    impl Device for Trace {
        fn name(&self) -> &str {
            "trace"
        }

        fn modes(&mut self) -> io::Result<Vec<Mode>> {
            Ok(self.modes.clone())
        }

        fn set(&mut self, mode: &Mode) -> io::Result<Set> {
            let mode = Mode { size: self.size.unwrap_or(mode.size), ..*mode };
            let packed =
                mode.code.pixels().map_or(0, |format| format.row_bytes(mode.size[0] as usize));
            let set = Set { mode, stride: packed + self.padding, is_full_range: false };
            self.set = Some(set);
            Ok(set)
        }

        fn start(&mut self) -> io::Result<()> {
            self.streams = true;
            Ok(())
        }

        fn take(&mut self, _timeout: Duration, bytes: &mut Vec<u8>) -> io::Result<Taken> {
            assert!(self.streams);
            let Some((grey, taken)) = self.taken.pop_front() else {
                return Err(io::Error::from_raw_os_error(19));
            };
            let Set { mode, stride, .. } = self.set.unwrap();
            let rows = mode.size[1] as usize;
            let count = if mode.code == Code::Yuyv { stride * rows } else { stride * rows * 3 / 2 };
            bytes.clear();
            bytes.resize(if taken.is_damaged { count / 2 } else { count }, grey);
            Ok(taken)
        }
    }

    fn taken(ago: Option<Duration>, is_of_start: bool, is_damaged: bool) -> Taken {
        let at = ago.map(|ago| Clock::monotonic() - ago);
        Taken { at, is_of_start, is_damaged, left_out: 0, sequence: 0 }
    }

    fn luma(sensor: &mut DeviceSensor, strip: usize) -> Vec<u8> {
        let layout = sensor.layout();
        let mut rows = Picture::new(layout.width(), layout.strip_rows(strip).len()).unwrap();
        sensor.read(strip, &mut rows);
        rows.luma().to_vec()
    }

    #[test]
    fn exposure_and_transfer_count_as_age() {
        let ago = Some(Duration::from_millis(40));
        let told = [taken(ago, true, false), taken(ago, false, false), taken(None, false, false)];
        let pictures = told.map(|taken| (90, taken));
        let mut sensor = Trace::of(Code::Yuyv, [640, 480], &pictures).open().unwrap();
        let ages = [0; 3].map(|_| {
            assert!(sensor.next_picture().unwrap());
            sensor.age().as_millis()
        });
        assert!((40..5_000).contains(&ages[0]), "{ages:?}");
        assert!(ages[1] >= 73, "the end of a picture of 33 ms: {ages:?}");
        assert_eq!(ages[2], 33, "where nothing is told");
    }

    #[test]
    fn a_damaged_picture_is_left_out_and_an_unplugged_camera_is_told() {
        let whole = |grey| (grey, taken(None, true, false));
        let pictures = [whole(50), (60, taken(None, true, true)), whole(70)];
        let mut sensor = Trace::of(Code::Nv12, [640, 362], &pictures).open().unwrap();
        assert_eq!(sensor.layout().shown(), (640, 362));
        for grey in [50, 70] {
            assert!(sensor.next_picture().unwrap());
            assert!(luma(&mut sensor, 5).iter().all(|value| *value == grey));
        }
        let error = sensor.next_picture().unwrap_err().to_string();
        assert!(error.starts_with("the camera /dev/video7 gives no more pictures: "), "{error}");
    }

    #[test]
    fn what_the_driver_makes_of_a_size_is_what_is_seen() {
        let pictures = [(80, taken(None, true, false))];
        let trace = Trace::of(Code::Nv12, [1280, 720], &pictures);
        let mut sensor = Trace { size: Some([800, 600]), padding: 64, ..trace }.open().unwrap();
        assert_eq!(sensor.layout().shown(), (800, 600));
        assert!(sensor.next_picture().unwrap());
        assert!(luma(&mut sensor, 0).iter().all(|value| *value == 80));
        let trace = Trace::of(Code::Nv12, [1280, 720], &[]);
        assert!(Trace { size: Some([801, 600]), ..trace }.open().is_err());
    }

    #[test]
    fn a_mode_that_is_missing_is_told_with_those_that_are_there() {
        let wanted = "mjpeg 640x480".parse().unwrap();
        let trace = Box::new(Trace::of(Code::Yuyv, [640, 480], &[]));
        let error = DeviceSensor::of(trace, Path::new("/dev/video7"), &wanted, 30.0).err().unwrap();
        assert!(error.to_string().ends_with("taken: yuyv 640x480@30, .."), "{error}");
    }

    #[test]
    fn a_missing_device_is_told_by_its_path() {
        let path = Path::new("/no/such/camera");
        let error = DeviceSensor::open(path, &Wanted::default(), 30.0).err().unwrap();
        assert!(error.to_string().starts_with("there is no camera /no/such/camera"), "{error:#}");
    }

    #[test]
    #[ignore = "needs a camera at /dev/video0 (v4l2loopback or vivid makes one)"]
    fn a_device_of_this_machine_gives_pictures() {
        let path = Path::new("/dev/video0");
        let mut sensor = DeviceSensor::open(path, &Wanted::default(), 30.0).unwrap();
        for _ in 0..5 {
            assert!(sensor.next_picture().unwrap());
            assert!(sensor.age() < Duration::from_secs(1));
        }
    }
}
