//! A video file in place of the camera, read by ffmpeg.

mod matroska;

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use tautline_video::pixels::{self, Image};
use tautline_video::{Error, Layout, Origin, Picture, Sensor};

use self::matroska::{Begun, Pictures};
use crate::config::PictureSource;

/// Pictures of a clip in an endless loop, with the clip's own size and times.
///
/// Pixels that are not square are resampled to square ones, and pictures greater than [`SIZE_MAX`]
/// are reduced. The size is that of the displayed pictures.
pub struct ClipSensor {
    reader: Reader,
    layout: Layout,
    /// Size of ffmpeg's pictures, which the layout pads to whole macroblocks.
    size: [usize; 2],
    pictures_per_second: f64,
    picture: Vec<u8>,
    /// Time and size of the next picture; ffmpeg's output has been read up to its first byte.
    next: Begun,
    interval: Duration,
}

impl ClipSensor {
    /// Opens the clip at `path`.
    ///
    /// # Errors
    /// Returns one line that says whether the file, ffmpeg or a video in the file is missing, or
    /// which size or rate is not possible.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        PictureSource::Clip(path).check()?;
        let format = Format::probe(path)?;
        let Format { width, height, pictures_per_second } = format;
        ensure!(
            (1.0..=60.0).contains(&pictures_per_second),
            "{} has {pictures_per_second} pictures per second: must be 1 to 60; `ffmpeg -i IN -r \
             60 OUT` converts it",
            path.display()
        );
        let size = format.shown();
        let layout = Layout::of_sensor(size[0], size[1]).with_context(|| {
            format!(
                "{} has pictures of {width}x{height}: `ffmpeg -i IN -vf scale=640:480 OUT` \
                 converts them to another size",
                path.display()
            )
        })?;
        if size[0] < width - width % 2 || size[1] < height - height % 2 {
            let shown = format!("{}x{}", size[0], size[1]);
            tracing::info!(clip = %path.display(), width, height, shown, "pictures are scaled down");
        }
        let mut reader = Reader::open(path, size)?;
        let next =
            reader.begin().with_context(|| format!("{} contains no pictures", path.display()))?;
        reader.pictures.input().timeout = READ_TIMEOUT;
        let picture = vec![0; size[0] * size[1] * 3 / 2];
        let interval = Duration::from_secs_f64(1.0 / pictures_per_second);
        Ok(Self { reader, layout, size, pictures_per_second, picture, next, interval })
    }
}

impl Sensor for ClipSensor {
    fn origin(&self) -> Origin {
        Origin::Recorded
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn pictures_per_second(&self) -> f64 {
        self.pictures_per_second
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn next_picture(&mut self) -> Result<bool, Error> {
        let begun = self.next;
        if begun.bytes != self.picture.len() as u64 {
            let reason = format!(
                "the clip has a picture of {} bytes among those of another size",
                begun.bytes
            );
            return Err(Error::Sensor { reason });
        }
        self.reader.read(&mut self.picture)?;
        self.next = self.reader.begin()?;
        self.interval = interval(begun.at, self.next.at, self.pictures_per_second);
        Ok(true)
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        let (format, [width, height]) = (pixels::Format::I420, self.size);
        let image = Image { format, width, height, stride: width, bytes: &self.picture };
        let first_row = self.layout.strip_rows(strip).start;
        image.fill(first_row, rows).expect("the size is even, and all bytes are there");
    }
}

/// Returns how long a picture of time `at` is displayed, if the next one has time `next`. It is the
/// mean interval if that difference is not positive, exceeds 2 s, or is within 1 ms of the mean, as
/// by rounding.
fn interval(at: Duration, next: Duration, pictures_per_second: f64) -> Duration {
    let mean = Duration::from_secs_f64(1.0 / pictures_per_second);
    match next.checked_sub(at) {
        Some(told) if told.is_zero() || told > INTERVAL_MAX => mean,
        Some(told) if told.abs_diff(mean) > TIMES_ERROR => told,
        Some(_) | None => mean,
    }
}

struct Reader {
    ffmpeg: Child,
    pictures: Pictures<Patient>,
    /// Error output of ffmpeg; `complaint` is the last line of it so far, or empty.
    complaints: ChildStderr,
    complaint: String,
}

impl Reader {
    /// Starts ffmpeg on `path` with an output of `width` by `height` pixels.
    fn open(path: &Path, [width, height]: [usize; 2]) -> anyhow::Result<Self> {
        let mut ffmpeg = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-threads", "1", "-stream_loop", "-1", "-i"])
            .arg(path)
            .args(["-map", "0:v:0", "-vf", &format!("scale={width}:{height},setsar=1")])
            // A container is needed for the pictures' times: raw video alone would have those of a
            // steady rate.
            .args(["-pix_fmt", "yuv420p", "-enc_time_base", "1:1000"])
            .args(["-c:v", "rawvideo", "-f", "matroska", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(missing_ffmpeg)?;
        let output = ffmpeg.stdout.take().expect("configured above");
        let pictures =
            Pictures::new(Patient { output, timeout: START_MAX, read: Vec::new(), taken: 0 });
        let complaints = ffmpeg.stderr.take().expect("configured above");
        ioctl_fionbio(&complaints, true).context("cannot read ffmpeg's error output")?;
        Ok(Self { ffmpeg, pictures, complaints, complaint: String::new() })
    }

    /// Reads up to the next picture. The loop has no end: end of file means that ffmpeg failed.
    fn begin(&mut self) -> Result<Begun, Error> {
        self.hear();
        self.pictures.begin().map_err(|error| self.ended(&error))
    }

    fn read(&mut self, picture: &mut [u8]) -> Result<(), Error> {
        self.pictures.read(picture).map_err(|error| self.ended(&error))
    }

    /// Reads what ffmpeg has written to its error output, without waiting, and keeps the last line;
    /// an unread pipe would block ffmpeg.
    fn hear(&mut self) {
        let mut bytes = [0; AHEAD_BYTES];
        while let Ok(count @ 1..) = self.complaints.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..count]);
            if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
                self.complaint = nameless(line).chars().take(COMPLAINT_MAX).collect();
            }
        }
    }

    fn ended(&mut self, error: &io::Error) -> Error {
        if error.kind() == ErrorKind::UnexpectedEof {
            // The last lines arrive when ffmpeg ends, which is imminent.
            let ends = |_: &u32| matches!(self.ffmpeg.try_wait(), Ok(None));
            (0..END_TURNS).take_while(ends).for_each(|_| std::thread::sleep(END_TURN));
        }
        self.hear();
        let why = match self.complaint.as_str() {
            "" => String::new(),
            complaint => format!(": {complaint}"),
        };
        let reason = match error.kind() {
            ErrorKind::UnexpectedEof => {
                format!("the clip has ended: ffmpeg delivers no more pictures{why}")
            }
            ErrorKind::TimedOut => {
                format!("the clip is frozen: ffmpeg delivers nothing{why}")
            }
            _ => format!("cannot read ffmpeg's output: {error}{why}"),
        };
        Error::Sensor { reason }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.ffmpeg.kill();
        let _ = self.ffmpeg.wait();
    }
}

/// Returns ffmpeg's line without the address in its part's name, which differs in every run:
/// `[h264 @ 0x5581c0ffee]` becomes `[h264]`.
fn nameless(line: &str) -> String {
    match line.split_once(" @ 0x") {
        Some((part, rest)) => {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            format!("{part}{}", nameless(rest))
        }
        None => line.to_owned(),
    }
}

/// Output of ffmpeg with a read timeout.
struct Patient {
    output: ChildStdout,
    timeout: Duration,
    /// Bytes read and not yet taken: short headers lie between the pictures.
    read: Vec<u8>,
    taken: usize,
}

impl Patient {
    /// Reads what arrives within the whole seconds of `timeout` into `bytes`: at least one byte, or
    /// none at the end. Fails with [`ErrorKind::TimedOut`] if nothing arrives.
    fn fetch(output: &mut ChildStdout, timeout: Duration, bytes: &mut [u8]) -> io::Result<usize> {
        let limit = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: 0 };
        let mut ready = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN)];
        match poll(&mut ready, Some(&limit))? {
            0 => Err(ErrorKind::TimedOut.into()),
            _ => output.read(bytes),
        }
    }
}

impl Read for Patient {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Self { output, timeout, read, taken } = self;
        if *taken == read.len() {
            if bytes.len() >= AHEAD_BYTES {
                return Self::fetch(output, *timeout, bytes);
            }
            read.resize(AHEAD_BYTES, 0);
            *taken = 0;
            let count = Self::fetch(output, *timeout, read);
            read.truncate(*count.as_ref().unwrap_or(&0));
            count?;
        }
        let count = bytes.len().min(read.len() - *taken);
        bytes[..count].copy_from_slice(&read[*taken..][..count]);
        *taken += count;
        Ok(count)
    }
}

/// Size and rate of a clip's pictures.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Format {
    /// Width in pixels as displayed, with square pixels; `height` likewise.
    width: usize,
    height: usize,
    pictures_per_second: f64,
}

impl Format {
    fn probe(path: &Path) -> anyhow::Result<Self> {
        let entries =
            "stream=width,height,sample_aspect_ratio,avg_frame_rate:stream_side_data=rotation";
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
            let why = nameless(why.lines().last().unwrap_or("it has no video stream"));
            bail!("ffmpeg cannot read the clip {}: {why}", path.display());
        };
        Ok(format)
    }

    /// Parses ffprobe's lines, such as `width=640`; `None` if size or rate is missing or invalid.
    /// The width is scaled to square pixels. ffmpeg rotates the pictures of a clip with a rotation
    /// tag; then width and height are swapped.
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let side = |name: &str| {
            field(name)?.parse::<usize>().ok().filter(|side| (1..=SIDE_MAX).contains(side))
        };
        let (width, height) = (side("width=")?, side("height=")?);
        let ratio = field("sample_aspect_ratio=").and_then(|text| parse_fraction(text, ':'));
        let ratio = ratio.filter(|ratio| (0.1..=10.0).contains(ratio)).unwrap_or(1.0);
        let width = (width as f64 * ratio).round() as usize;
        let rotation = field("rotation=").and_then(|text| text.parse::<f64>().ok());
        let is_turned = rotation.is_some_and(|angle| (angle.abs() % 180.0 - 90.0).abs() < 45.0);
        let (width, height) = if is_turned { (height, width) } else { (width, height) };
        let pictures_per_second = parse_fraction(field("avg_frame_rate=")?, '/')?;
        Some(Self { width, height, pictures_per_second })
    }

    /// Returns the width and height to send: reduced in proportion to at most [`SIZE_MAX`], and
    /// rounded down to even numbers, at least 2.
    fn shown(&self) -> [usize; 2] {
        let [longest, shortest] = [self.width.max(self.height), self.width.min(self.height)];
        let share = SIZE_MAX[0] as f64 / longest as f64;
        let share = share.min(SIZE_MAX[1] as f64 / shortest as f64).min(1.0);
        [self.width, self.height].map(|side| {
            let side = (side as f64 * share).round() as usize;
            (side - side % 2).max(2)
        })
    }
}

/// Parses ffprobe's `25/1`, `30000/1001` or `4:3`; `None` unless the result is finite and positive.
fn parse_fraction(text: &str, between: char) -> Option<f64> {
    let (over, under) = text.split_once(between)?;
    let fraction = over.parse::<f64>().ok()? / under.parse::<f64>().ok()?;
    (fraction.is_finite() && fraction > 0.0).then_some(fraction)
}

fn missing_ffmpeg(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!(
            "a clip needs ffmpeg and ffprobe, which are not installed: run `apt-get install \
             ffmpeg`"
        ),
        _ => anyhow::Error::new(error).context("cannot start ffmpeg"),
    }
}

/// Longer and shorter side, in pixels, of the greatest pictures to send; greater ones are reduced,
/// because a small computer cannot decode, encode and send four times as many pixels in time.
pub const SIZE_MAX: [usize; 2] = [1920, 1080];
/// Greatest side of a clip in pixels; a larger one counts as no video.
const SIDE_MAX: usize = 65_536;
/// Time without output after which ffmpeg counts as hung.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// Time without output at the start after which ffmpeg counts as hung; the start may take longer.
const START_MAX: Duration = Duration::from_secs(15);
/// Longest plausible display time of a picture; instead of a longer one, the mean interval is used.
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// Difference between an interval and the mean that rounding to whole milliseconds explains.
const TIMES_ERROR: Duration = Duration::from_millis(1);
/// Size of a read ahead of the pictures: less than a picture, and more than the headers between
/// two.
const AHEAD_BYTES: usize = 4096;
/// Number of waits, of 10 ms each, for an ffmpeg that has closed its output to end.
const END_TURNS: u32 = 20;
const END_TURN: Duration = Duration::from_millis(10);
/// Characters of ffmpeg's error line that are repeated in ours.
const COMPLAINT_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use tautline_net::clock::Clock;
    use tautline_units::Bitrate;

    use super::*;
    use crate::camera::{self, Counters, Outlet};
    use crate::encode::EncoderControl;
    use crate::ticks::Ticks;

    /// Creates a clip from ffmpeg's `source`; `more` are arguments before the file's name.
    fn made(name: &str, source: &str, more: &[&str]) -> PathBuf {
        let process = std::process::id();
        let file = std::env::temp_dir().join(format!("tautline-{name}-{process}.mp4"));
        let done = Command::new("ffmpeg")
            .args(["-v", "error", "-y", "-f", "lavfi", "-i", source])
            .args(more)
            .args(["-pix_fmt", "yuv420p"])
            .arg(&file)
            .status()
            .expect("needs ffmpeg: ./setup ffmpeg");
        assert!(done.success());
        file
    }

    #[test]
    fn the_rate_of_a_clip_is_a_fraction() {
        assert_eq!(parse_fraction("25/1", '/'), Some(25.0));
        assert_eq!(parse_fraction("4:3", ':'), Some(4.0 / 3.0));
        assert_eq!(parse_fraction("0/0", '/'), None);
        assert_eq!(parse_fraction("", '/'), None);
    }

    #[test]
    fn a_clip_has_its_own_size_and_ratio_of_sides() {
        let shown = |width: usize, height: usize, ratio: &str| {
            let text = format!("width={width}\nheight={height}\nsample_aspect_ratio={ratio}\n");
            Format::parse(&format!("{text}avg_frame_rate=25/1\n")).unwrap().shown()
        };
        assert_eq!(shown(640, 480, "1:1"), [640, 480]);
        assert_eq!(shown(1920, 1080, "N/A"), [1920, 1080]);
        assert_eq!(shown(1081, 1921, "0:1"), [1080, 1918]);
        assert_eq!(shown(720, 576, "64:45"), [1024, 576]);
        assert_eq!(shown(3840, 2160, "1:1"), [1920, 1080]);
        assert_eq!(shown(4000, 3000, "1:1"), [1440, 1080]);
        assert_eq!(shown(65_536, 3, "1:1"), [1920, 2]);
    }

    /// The clip's own pixels are visible up to its last row and column, whose repetition fills the
    /// last macroblocks.
    #[test]
    fn a_clip_of_any_size_is_seen_to_its_edge() {
        let colours =
            "color=red:size=646x100:rate=25,drawbox=x=644:y=0:w=2:h=100:color=white:t=fill";
        let file = made("odd", colours, &["-frames:v", "2", "-c:v", "libx264", "-qp", "1"]);
        let mut sensor = ClipSensor::open(&file).unwrap();
        let layout = sensor.layout();
        assert_eq!((layout.shown(), layout.width(), layout.height()), ((646, 100), 656, 112));
        assert!(sensor.next_picture().unwrap());
        let mut rows = Picture::new(656, layout.strip_rows(5).len()).unwrap();
        sensor.read(5, &mut rows);
        let last = &rows.luma()[rows.luma().len() - 656..];
        assert!(last[10].abs_diff(81) < 6, "red: {}", last[10]);
        assert!(last[645].abs_diff(235) < 6 && last[655].abs_diff(235) < 6, "white: {last:?}");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_clip_of_variable_rate_is_shown_at_its_own_times() {
        // Every one of the first ten pictures, then every third, 40 ms each.
        let source = "testsrc=size=640x96:rate=25,select='lt(n,10)+not(mod(n,3))'";
        let file = made("variable", source, &["-vsync", "vfr", "-frames:v", "20"]);
        let mut sensor = ClipSensor::open(&file).unwrap();
        let mut intervals = Vec::new();
        for _ in 0..19 {
            assert!(sensor.next_picture().unwrap());
            intervals.push(sensor.interval().as_millis());
        }
        assert_eq!(intervals[..9], [40; 9]);
        assert_eq!(intervals[9..], [120; 10]);
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn times_that_are_rounded_or_jump_are_those_of_the_rate() {
        let interval = |at: u64, next: u64| {
            let [at, next] = [at, next].map(Duration::from_millis);
            interval(at, next, 60.0).as_micros()
        };
        assert_eq!([interval(0, 17), interval(17, 33), interval(900, 0)], [16_666; 3]);
        assert_eq!([interval(0, 0), interval(7, 9_000)], [16_666; 2]);
        assert_eq!(interval(100, 140), 40_000);
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
        for bytes in [&[0; 4096][..], b"\0\0\0\x18ftypmp42 and then nothing of use"] {
            std::fs::write(&file, bytes).unwrap();
            let error = ClipSensor::open(&file).err().unwrap().to_string();
            assert!(error.contains("ffmpeg cannot read the clip"), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    /// Like an unplugged camera: the source ends while it is read.
    #[test]
    fn a_source_that_ends_ends_the_reading_with_one_line() {
        let file = made("ends", "testsrc=size=640x96:rate=60", &["-frames:v", "6"]);
        let mut sensor = ClipSensor::open(&file).unwrap();
        assert_eq!(sensor.layout(), Layout::of(640, 96).unwrap());
        // Further than the length of the clip, which is looped.
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
            camera::run(Box::new(sensor), outlet, &counters, &Ticks::default(), clock, &stop);
        let error = ended.unwrap_err().to_string();
        assert!(error.starts_with("the clip has ended"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        // The encoders' queues end with it.
        reader.join().unwrap();
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_line_of_ffmpeg_is_the_same_in_every_run() {
        let told = nameless("[vist#0:0/h264 @ 0x55aa] [dec:h264 @ 0xbeef0] Error: 0 @ 1x");
        assert_eq!(told, "[vist#0:0/h264] [dec:h264] Error: 0 @ 1x");
    }

    /// Each of these once blocked the opening, or was reported as missing.
    #[test]
    fn a_clip_that_is_no_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, empty) = (folder.path().join("pipe"), folder.path().join("empty.mp4"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::write(&empty, []).unwrap();
        for (path, words) in [
            (&*pipe, "it is a pipe, which can be read only once"),
            (&*empty, "it is empty"),
            (folder.path(), "it is a folder"),
            (Path::new("/dev/zero"), "it is a device"),
        ] {
            let error = ClipSensor::open(path).err().unwrap().to_string();
            let expected = format!("cannot use {} as a clip: {words};", path.display());
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn a_missing_clip_is_reported_by_its_path() {
        let error = ClipSensor::open(Path::new("/no/such.mp4")).err().unwrap();
        assert!(error.to_string().starts_with("there is no clip /no/such.mp4"), "{error}");
    }
}
