//! A camera of the machine's own, by Video4Linux.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use tautline_video::pixels::{Format, Image};
use tautline_video::{Error, Layout, Picture, Sensor};
use v4l::buffer::Type;
use v4l::io::mmap::Stream;
use v4l::io::traits::CaptureStream;
use v4l::video::Capture;
use v4l::video::capture::Parameters;
use v4l::{Device, FourCC};

/// A sensor of what a V4L2 device captures, in YUYV, NV12 or I420.
///
/// Linux hands over whole pictures only: all strips of one are there at once, and their capture is
/// taken to be when it was handed over. What exposure, readout and transfer took before is not known.
/// A picture has whole macroblocks: what the device has beyond the last of them is left out.
pub struct DeviceSensor {
    path: PathBuf,
    stream: Stream<'static>,
    format: Format,
    width: usize,
    height: usize,
    pictures_per_second: f64,
    layout: Layout,
    picture: Picture,
}

impl DeviceSensor {
    /// Opens the device at `path` with the size that it is set to (`v4l2-ctl --set-fmt-video`).
    ///
    /// # Errors
    /// One line that says whether the device is missing, gives none of the three formats, or too small
    /// a size.
    pub fn open(path: &Path, pictures_per_second: f64) -> anyhow::Result<Self> {
        let at = path.display();
        let device = Device::with_path(path).with_context(|| {
            format!("there is no camera {at}: give a V4L2 device such as /dev/video0")
        })?;
        let (format, set) = choose(&device)
            .with_context(|| format!("{at} captures neither YUYV nor NV12 nor I420"))?;
        let rate = pictures_per_second.round() as u32;
        let interval = device
            .set_params(&Parameters::with_fps(rate))
            .with_context(|| format!("{at} takes no picture rate"))?
            .interval;
        ensure!(
            interval.numerator > 0 && interval.denominator > 0,
            "{at} does not say how many pictures a second it takes"
        );
        let (width, height) = (set.width as usize, set.height as usize);
        ensure!(
            format.bytes(width, height, format.row_bytes(width)).is_some(),
            "{at} gives pictures of {width}x{height}: both sides must be even"
        );
        let layout = Layout::around(width, height)
            .with_context(|| format!("{at} gives pictures of {width}x{height}"))?;
        let mut stream = Stream::with_buffers(&device, Type::VideoCapture, BUFFERS)
            .with_context(|| format!("{at} cannot stream"))?;
        stream.set_timeout(PICTURE_TIMEOUT);
        Ok(Self {
            path: path.to_owned(),
            stream,
            format,
            width,
            height,
            pictures_per_second: f64::from(interval.denominator) / f64::from(interval.numerator),
            layout,
            picture: Picture::new(layout.width(), layout.height())?,
        })
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

    fn next_picture(&mut self) -> Result<bool, Error> {
        let at = self.path.display();
        let (bytes, _) = match self.stream.next() {
            Ok(captured) => captured,
            Err(error) => {
                let reason = format!("the camera {at} gives no more pictures: {error}");
                return Err(Error::Sensor { reason });
            }
        };
        // A picture that the device cut short is skipped: the last one stands.
        let (format, width, height) = (self.format, self.width, self.height);
        let image = Image { format, width, height, stride: format.row_bytes(width), bytes };
        if let Err(error) = image.fill(0, &mut self.picture) {
            tracing::debug!(%at, %error, "a picture was cut short");
        }
        Ok(true)
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        let source = self.picture.rows(self.layout.strip_rows(strip));
        *rows = source.expect("the picture has the layout's size");
    }
}

/// Sets the first of the formats that the device takes.
fn choose(device: &Device) -> Option<(Format, v4l::Format)> {
    let now = device.format().ok()?;
    FORMATS.iter().find_map(|(format, code)| {
        let code = FourCC::new(code);
        let wanted = v4l::Format::new(now.width, now.height, code);
        let set = device.set_format(&wanted).ok()?;
        // Rows with padding between them are none of the three.
        let packed = match format {
            Format::Yuyv => set.width * 2,
            Format::Nv12 | Format::I420 => set.width,
        };
        (set.fourcc == code && (set.stride == packed || set.stride == 0)).then_some((*format, set))
    })
}

const FORMATS: [(Format, &[u8; 4]); 3] =
    [(Format::Nv12, b"NV12"), (Format::I420, b"YU12"), (Format::Yuyv, b"YUYV")];
/// One is filled while one is read, and one waits.
const BUFFERS: u32 = 3;
/// A device that says nothing for so long is gone.
const PICTURE_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_is_told_by_its_path() {
        let error = DeviceSensor::open(Path::new("/no/such/camera"), 30.0).err().unwrap();
        assert!(error.to_string().starts_with("there is no camera /no/such/camera"), "{error:#}");
    }

    #[test]
    #[ignore = "needs a camera at /dev/video0 (v4l2loopback makes one)"]
    fn a_device_of_this_machine_gives_pictures() {
        let path = Path::new("/dev/video0");
        let mut sensor = DeviceSensor::open(path, 30.0).unwrap();
        for _ in 0..5 {
            assert!(sensor.next_picture().unwrap());
        }
    }
}
