//! A video file in the camera's place, read by ffmpeg.

use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, bail, ensure};
use tautline_video::{Layout, Picture};

use super::Sensor;

/// The pictures of a clip, scaled to the layout's size, again and again at the clip's own rate.
pub struct ClipSensor {
    reader: Reader,
    width: usize,
    height: usize,
    pictures_per_second: f64,
    picture: Vec<u8>,
}

impl ClipSensor {
    /// Opens `path`.
    ///
    /// # Errors
    /// One line that says whether the file, ffmpeg or a video in the file is missing.
    pub fn open(path: &Path, layout: &Layout) -> anyhow::Result<Self> {
        let (width, height) = (layout.width(), layout.height());
        ensure!(
            path.is_file(),
            "there is no clip {}: give the path of a video file",
            path.display()
        );
        let pictures_per_second = probe_rate(path)?;
        ensure!(
            (1.0..=60.0).contains(&pictures_per_second),
            "{} has {pictures_per_second} pictures a second: 1 to 60 are possible; \
             `ffmpeg -i IN -r 60 OUT` makes one that has",
            path.display()
        );
        let reader = Reader::open(path, width, height)?;
        let picture = vec![0; width * height * 3 / 2];
        Ok(Self { reader, width, height, pictures_per_second, picture })
    }
}

impl Sensor for ClipSensor {
    fn pictures_per_second(&self) -> f64 {
        self.pictures_per_second
    }

    fn next_picture(&mut self) -> anyhow::Result<bool> {
        self.reader.read(&mut self.picture)?;
        Ok(true)
    }

    fn read(&mut self, layout: &Layout, strip: usize, rows: &mut Picture) {
        let (width, pixels) = (self.width, self.width * self.height);
        let range = layout.strip_rows(strip);
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
    fn open(path: &Path, width: usize, height: usize) -> anyhow::Result<Self> {
        let mut ffmpeg = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-threads", "1", "-stream_loop", "-1", "-i"])
            .arg(path)
            .args(["-an", "-vf", &format!("scale={width}:{height}")])
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
    fn read(&mut self, picture: &mut [u8]) -> anyhow::Result<()> {
        match self.pictures.read_exact(picture) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                bail!("the clip ends: ffmpeg gives no more pictures of it, for the reason it told")
            }
            Err(error) => Err(error).context("ffmpeg's output cannot be read"),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.ffmpeg.kill();
        let _ = self.ffmpeg.wait();
    }
}

fn probe_rate(path: &Path) -> anyhow::Result<f64> {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", "v:0", "-show_entries", "stream=avg_frame_rate"])
        .args(["-of", "default=noprint_wrappers=1:nokey=1"])
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .map_err(missing_ffmpeg)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(rate) = parse_rate(text.trim()) else {
        let why = String::from_utf8_lossy(&output.stderr);
        let why = why.lines().last().unwrap_or("no video stream in it");
        bail!("{} is no clip that ffmpeg can read: {why}", path.display());
    };
    Ok(rate)
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
    use std::sync::atomic::AtomicBool;

    use tautline_net::clock::Clock;
    use tautline_units::Bitrate;

    use super::*;
    use crate::camera::{self, Counters, Outlet};
    use crate::encode::Wishes;

    #[test]
    fn the_rate_of_a_clip_is_a_fraction() {
        assert_eq!(parse_rate("25/1"), Some(25.0));
        assert_eq!(parse_rate("0/0"), None);
        assert_eq!(parse_rate(""), None);
    }

    #[test]
    fn a_corrupt_clip_is_refused_in_one_line() {
        Command::new("ffprobe").arg("-version").output().expect("needs ffmpeg: ./setup ffmpeg");
        let layout = Layout::of(1280, 720).unwrap();
        let file =
            std::env::temp_dir().join(format!("tautline-corrupt-{}.mp4", std::process::id()));
        for bytes in [&[][..], &[0; 4096], b"\0\0\0\x18ftypmp42 and then nothing of use"] {
            std::fs::write(&file, bytes).unwrap();
            let error = ClipSensor::open(&file, &layout).err().unwrap().to_string();
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
        let layout = Layout::of(640, 96).unwrap();
        let mut sensor = ClipSensor::open(&file, &layout).unwrap();
        // Further than the clip is long: it is looped.
        for _ in 0..10 {
            assert!(sensor.next_picture().unwrap());
        }
        sensor.reader.ffmpeg.kill().unwrap();
        let clock = Clock::start();
        let wishes = Arc::new(Wishes::new());
        wishes.set_budget(Bitrate::from_mbps(1), clock.now());
        let (outlet, queues, _give_back) = Outlet::new(1, wishes);
        let (counters, stop) = (Counters::default(), AtomicBool::new(false));
        let reader = std::thread::spawn(move || queues[0].iter().count());
        let ended = camera::run(Box::new(sensor), &layout, outlet, &counters, clock, &stop);
        let error = ended.unwrap_err().to_string();
        assert!(error.starts_with("the clip ends"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        // The encoders' queues end with it.
        reader.join().unwrap();
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_missing_clip_is_told_by_its_path() {
        let layout = Layout::of(1280, 720).unwrap();
        let error = ClipSensor::open(Path::new("/no/such.mp4"), &layout).err().unwrap();
        assert!(error.to_string().starts_with("there is no clip /no/such.mp4"), "{error}");
    }
}
