//! A video file in the camera's place, read by ffmpeg.

use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, bail, ensure};
use tautline_video::{Error, Layout, Picture, Sensor};

/// The pictures of a clip, again and again at the clip's own size and rate.
///
/// A picture has whole macroblocks: what a clip has beyond the last of them, at the right and at the
/// bottom, is left out.
pub struct ClipSensor {
    reader: Reader,
    layout: Layout,
    pictures_per_second: f64,
    picture: Vec<u8>,
}

impl ClipSensor {
    /// Opens `path`.
    ///
    /// # Errors
    /// One line that says whether the file, ffmpeg or a video in the file is missing, or what of its
    /// size or rate is not possible.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        ensure!(
            path.is_file(),
            "there is no clip {}: give the path of a video file",
            path.display()
        );
        let Format { width, height, pictures_per_second } = Format::probe(path)?;
        ensure!(
            (1.0..=60.0).contains(&pictures_per_second),
            "{} has {pictures_per_second} pictures a second: 1 to 60 are possible; \
             `ffmpeg -i IN -r 60 OUT` makes one that has",
            path.display()
        );
        let layout = Layout::within(width, height).with_context(|| {
            format!(
                "{} has pictures of {width}x{height}: `ffmpeg -i IN -vf scale=640:480 OUT` makes \
                 one of another size",
                path.display()
            )
        })?;
        let reader = Reader::open(path, &layout)?;
        let picture = vec![0; layout.width() * layout.height() * 3 / 2];
        Ok(Self { reader, layout, pictures_per_second, picture })
    }
}

impl Sensor for ClipSensor {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn pictures_per_second(&self) -> f64 {
        self.pictures_per_second
    }

    fn next_picture(&mut self) -> Result<bool, Error> {
        self.reader.read(&mut self.picture)?;
        Ok(true)
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        let (width, pixels) = (self.layout.width(), self.layout.width() * self.layout.height());
        let range = self.layout.strip_rows(strip);
        let (luma, cb, cr) = rows.planes_mut();
        luma.copy_from_slice(&self.picture[range.start * width..range.end * width]);
        let quarter = range.start * width / 4..range.end * width / 4;
        let chroma = &self.picture[pixels..];
        cb.copy_from_slice(&chroma[quarter.clone()]);
        cr.copy_from_slice(&chroma[pixels / 4..][quarter]);
    }
}

struct Reader {
    ffmpeg: Child,
    pictures: BufReader<ChildStdout>,
}

impl Reader {
    fn open(path: &Path, layout: &Layout) -> anyhow::Result<Self> {
        let (width, height) = (layout.width(), layout.height());
        let mut ffmpeg = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-threads", "1", "-stream_loop", "-1", "-i"])
            .arg(path)
            .args(["-an", "-vf", &format!("crop={width}:{height}:0:0")])
            .args(["-pix_fmt", "yuv420p", "-f", "rawvideo", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(missing_ffmpeg)?;
        let output = ffmpeg.stdout.take().expect("asked for above");
        let pictures = BufReader::with_capacity(width * height * 3 / 2, output);
        Ok(Self { ffmpeg, pictures })
    }

    /// Reads one picture whole. There is no last one: an end means that ffmpeg gave up.
    fn read(&mut self, picture: &mut [u8]) -> Result<(), Error> {
        self.pictures.read_exact(picture).map_err(|error| Error::Sensor {
            reason: match error.kind() {
                ErrorKind::UnexpectedEof => {
                    "the clip ends: ffmpeg gives no more pictures of it, for the reason it told"
                        .to_owned()
                }
                _ => format!("ffmpeg's output cannot be read: {error}"),
            },
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.ffmpeg.kill();
        let _ = self.ffmpeg.wait();
    }
}

/// What a clip says of its pictures.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Format {
    width: usize,
    height: usize,
    pictures_per_second: f64,
}

impl Format {
    fn probe(path: &Path) -> anyhow::Result<Self> {
        let entries = "stream=width,height,avg_frame_rate:stream_side_data=rotation";
        let output = Command::new("ffprobe")
            .args(["-v", "error", "-select_streams", "v:0", "-show_entries", entries])
            .args(["-of", "default=noprint_wrappers=1"])
            .arg(path)
            .stdin(Stdio::null())
            .output()
            .map_err(missing_ffmpeg)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some(format) = Self::parse(&text) else {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = why.lines().last().unwrap_or("no video stream in it");
            bail!("{} is no clip that ffmpeg can read: {why}", path.display());
        };
        Ok(format)
    }

    /// Parses ffprobe's lines, such as `width=640`. ffmpeg turns the pictures of a clip that asks for
    /// it upright: then their sides change places.
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let side = |name: &str| field(name)?.parse::<usize>().ok().filter(|side| *side > 0);
        let (width, height) = (side("width=")?, side("height=")?);
        let rotation = field("rotation=").and_then(|text| text.parse::<f64>().ok());
        let is_turned = rotation.is_some_and(|angle| (angle.abs() % 180.0 - 90.0).abs() < 45.0);
        let (width, height) = if is_turned { (height, width) } else { (width, height) };
        let pictures_per_second = parse_rate(field("avg_frame_rate=")?)?;
        Some(Self { width, height, pictures_per_second })
    }
}

/// Parses ffprobe's `25/1` or `30000/1001`.
fn parse_rate(text: &str) -> Option<f64> {
    let (over, under) = text.split_once('/')?;
    let rate = over.parse::<f64>().ok()? / under.parse::<f64>().ok()?;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

fn missing_ffmpeg(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!(
            "a clip needs ffmpeg and ffprobe, which are not installed: `apt-get install ffmpeg`"
        ),
        _ => anyhow::Error::new(error).context("ffmpeg cannot be started"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32};

    use tautline_net::clock::Clock;
    use tautline_units::Bitrate;

    use super::*;
    use crate::camera::{self, Counters, Outlet};
    use crate::encode::EncoderControl;

    #[test]
    fn the_rate_of_a_clip_is_a_fraction() {
        assert_eq!(parse_rate("25/1"), Some(25.0));
        assert_eq!(parse_rate("0/0"), None);
        assert_eq!(parse_rate(""), None);
    }

    #[test]
    fn the_size_of_a_clip_is_as_it_is_seen() {
        let text = "width=1920\nheight=1080\navg_frame_rate=30000/1001\n";
        let format = Format::parse(text).unwrap();
        assert_eq!((format.width, format.height), (1920, 1080));
        let turned = Format::parse(&format!("{text}rotation=-90\n")).unwrap();
        assert_eq!((turned.width, turned.height), (1080, 1920));
        let turned = Format::parse(&format!("{text}rotation=180\n")).unwrap();
        assert_eq!((turned.width, turned.height), (1920, 1080));
        for text in ["", "width=640\nheight=480\n", "width=0\nheight=9\navg_frame_rate=25/1\n"] {
            assert_eq!(Format::parse(text), None);
        }
    }

    #[test]
    fn a_corrupt_clip_is_refused_in_one_line() {
        Command::new("ffprobe").arg("-version").output().expect("needs ffmpeg: ./setup ffmpeg");
        let file =
            std::env::temp_dir().join(format!("tautline-corrupt-{}.mp4", std::process::id()));
        for bytes in [&[][..], &[0; 4096], b"\0\0\0\x18ftypmp42 and then nothing of use"] {
            std::fs::write(&file, bytes).unwrap();
            let error = ClipSensor::open(&file).err().unwrap().to_string();
            assert!(error.contains("is no clip that ffmpeg can read"), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    /// As a camera that is unplugged: its source ends while it is read.
    #[test]
    fn a_source_that_ends_ends_the_reading_with_one_line() {
        let file = std::env::temp_dir().join(format!("tautline-ends-{}.mp4", std::process::id()));
        let made = Command::new("ffmpeg")
            .args(["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=size=640x96:rate=60"])
            .args(["-frames:v", "6", "-pix_fmt", "yuv420p"])
            .arg(&file)
            .status()
            .expect("needs ffmpeg: ./setup ffmpeg");
        assert!(made.success());
        let mut sensor = ClipSensor::open(&file).unwrap();
        assert_eq!(sensor.layout(), Layout::of(640, 96).unwrap());
        // Further than the clip is long: it is looped.
        for _ in 0..10 {
            assert!(sensor.next_picture().unwrap());
        }
        sensor.reader.ffmpeg.kill().unwrap();
        let clock = Clock::start();
        let control = Arc::new(EncoderControl::new());
        control.set_budget(Bitrate::from_mbps(1), clock.now());
        let (outlet, queues, _give_back) = Outlet::new(1, control);
        let (counters, stop) = (Counters::default(), AtomicBool::new(false));
        let reader = std::thread::spawn(move || queues[0].iter().count());
        let ended =
            camera::run(Box::new(sensor), outlet, &counters, &AtomicU32::new(0), clock, &stop);
        let error = ended.unwrap_err().to_string();
        assert!(error.starts_with("the clip ends"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        // The encoders' queues end with it.
        reader.join().unwrap();
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_missing_clip_is_told_by_its_path() {
        let error = ClipSensor::open(Path::new("/no/such.mp4")).err().unwrap();
        assert!(error.to_string().starts_with("there is no clip /no/such.mp4"), "{error}");
    }
}
