//! Comparison of a sent clip with the operator's recording.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tautline_net::clock::thread_time;
use tautline_operator::recorder::{INDEX, INDEX_HEAD};
use tautline_vehicle::camera::clip::ClipSensor;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Decoder, Layout, Picture, Sensor, stamp};

use crate::quality;

/// Quality figures of a transmitted clip.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Pictures from the first to the last complete one: before the first, the session was still
    /// starting, and after the last, it was ending.
    pub pictures: u64,
    /// Number of slices sent for `pictures`: six for each picture.
    pub slices: u64,
    /// Slices shown as sent, and thus before their deadline.
    pub slices_in_time: u64,
    /// Skip slices shown in place of lost ones.
    pub slices_skipped: u64,
    /// Slices shown, including skip slices, while the strip differed from its encoder's state.
    pub slices_corrupt: u64,
    /// Number of pictures from each loss until the strip matched its encoder's state again,
    /// ascending. Losses still visible at the end are left out.
    pub recovery: Vec<u32>,
    /// Luma PSNR in dB of each picture as the operator saw it, ascending. A strip without new
    /// content counts with the old one.
    pub psnr: Vec<f64>,
    /// Time from the start of a strip's readout to its delivery to the console, ascending.
    pub latency: Vec<Duration>,
    /// Part of the latency up to the end of encoding, ascending.
    pub encoding: Vec<Duration>,
    /// The remaining part of the latency, ascending: mostly the network's.
    pub network: Vec<Duration>,
    /// CPU time of a slice's decoder, openh264, ascending.
    pub decoding: Vec<Duration>,
    /// Every slice in time, in display order.
    pub passages: Vec<Passage>,
    /// Bytes of H.264 shown.
    pub bytes: u64,
    /// Picture rate of the clip, in pictures per second.
    pub pictures_per_second: f64,
}

/// Times of one slice from the camera to the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Index of the slice's strip, from the top.
    pub strip: usize,
    /// Start of the slice's readout, on the operator's clock.
    pub captured_at: Duration,
    /// Time from capture to the end of encoding.
    pub encoding: Duration,
    /// Time from capture to delivery to the console.
    pub latency: Duration,
    /// CPU time of the slice's decoder, openh264.
    pub decoding: Duration,
}

/// Compares the recording in `folder` with the clip that was sent, strip by strip.
///
/// The stamp in the first strip is drawn into the clip's picture in the same way.
///
/// # Errors
/// If the recording or the clip cannot be read, the clip is the shorter one, or no picture arrived
/// complete.
pub fn compare(clip: &Path, folder: &Path) -> anyhow::Result<Figures> {
    let shown = Recording::read(folder)?;
    let Some((first, last)) = shown.whole() else {
        bail!("no picture was received whole: the recording in {} is of no use", folder.display());
    };
    let mut source = ClipSensor::open(clip)?;
    let layout = source.layout();
    let mut screen = Screen::new(&layout)?;
    let mut figures = Figures {
        pictures: u64::from(last - first) + 1,
        slices: (u64::from(last - first) + 1) * Layout::STRIP_COUNT as u64,
        slices_in_time: 0,
        slices_skipped: 0,
        slices_corrupt: 0,
        recovery: Vec::new(),
        psnr: Vec::new(),
        latency: Vec::new(),
        encoding: Vec::new(),
        network: Vec::new(),
        decoding: Vec::new(),
        passages: Vec::new(),
        bytes: 0,
        pictures_per_second: source.pictures_per_second(),
    };
    let mut corrupt_since = [None; Layout::STRIP_COUNT];
    for picture in 0..=last {
        ensure!(source.next_picture()?, "{} ended early", clip.display());
        let counts = picture >= first;
        let mut error = 0.0;
        for (strip, corrupt_since) in corrupt_since.iter_mut().enumerate() {
            for slice in shown.slices.get(&(picture, strip)).into_iter().flatten() {
                let begun = thread_time();
                screen.show(strip, &slice.bytes)?;
                let decoding = thread_time() - begun;
                if counts {
                    figures.count(strip, slice, decoding);
                    figures.follow(picture, slice.clean, corrupt_since);
                }
            }
            if counts {
                error += screen.squared_error(&mut source, strip)?;
            }
        }
        if !counts {
            continue;
        }
        let pixels = (layout.width() * layout.height()) as f64;
        figures.psnr.push(quality::decibels(error / pixels));
    }
    figures.psnr.sort_by(f64::total_cmp);
    for times in
        [&mut figures.latency, &mut figures.encoding, &mut figures.network, &mut figures.decoding]
    {
        times.sort_unstable();
    }
    figures.recovery.sort_unstable();
    Ok(figures)
}

impl Figures {
    fn count(&mut self, strip: usize, slice: &Slice, decoding: Duration) {
        self.bytes += slice.bytes.len() as u64;
        self.decoding.push(decoding);
        match slice.times {
            Some(Times { captured_at, encoding, latency }) => {
                self.passages.push(Passage { strip, captured_at, encoding, latency, decoding });
                self.slices_in_time += 1;
                self.latency.push(latency);
                self.encoding.push(encoding);
                self.network.push(latency.saturating_sub(encoding));
            }
            None => self.slices_skipped += 1,
        }
    }

    fn follow(&mut self, picture: u32, is_clean: bool, corrupt_since: &mut Option<u32>) {
        if is_clean {
            self.recovery.extend(corrupt_since.take().map(|since| picture - since));
        } else {
            self.slices_corrupt += 1;
            corrupt_since.get_or_insert(picture);
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |part: u64| 100.0 * part as f64 / self.slices as f64;
        let seconds = self.pictures as f64 / self.pictures_per_second;
        let mean = self.psnr.iter().sum::<f64>() / self.psnr.len() as f64;
        let psnr = |percent| percentile(&self.psnr, percent).copied().unwrap_or(f64::NAN);
        let ms = |times: &[Duration], percent| {
            let found = percentile(times, percent).copied().unwrap_or_default();
            found.as_secs_f64() * 1e3
        };
        writeln!(f, "pictures sent          {:8}   ({:.1} s)", self.pictures, seconds)?;
        writeln!(
            f,
            "slices in time         {:8.2} % of {}",
            share(self.slices_in_time),
            self.slices
        )?;
        writeln!(f, "skip slices shown      {:8.2} %", share(self.slices_skipped))?;
        let recovery = |percent| percentile(&self.recovery, percent).copied().unwrap_or_default();
        writeln!(
            f,
            "slices corrupt         {:8.2} %   recovered in {} pictures p50, {} p90, {} worst, of {}",
            share(self.slices_corrupt),
            recovery(50),
            recovery(90),
            recovery(100),
            self.recovery.len()
        )?;
        writeln!(f, "H.264 shown            {:8.2} Mbit/s", self.bytes as f64 * 8e-6 / seconds)?;
        writeln!(f, "luma PSNR, mean        {mean:8.2} dB")?;
        writeln!(f, "luma PSNR, p50 p5 worst{:8.2} {:.2} {:.2} dB", psnr(50), psnr(5), psnr(0))?;
        let stages = [
            ("readout to encoded     ", &self.encoding),
            ("encoded to console     ", &self.network),
            ("readout to console     ", &self.latency),
        ];
        for (place, (stage, times)) in stages.into_iter().enumerate() {
            let [p50, p95, p99, worst] = [50, 95, 99, 100].map(|percent| ms(times, percent));
            let end = if place > 0 { "\n" } else { "" };
            write!(
                f,
                "{end}{stage}{p50:8.1} ms p50, {p95:.1} p95, {p99:.1} p99, {worst:.1} worst"
            )?;
        }
        Ok(())
    }
}

struct Slice {
    /// `None` for a skip slice.
    times: Option<Times>,
    /// True if the strip matched its encoder's state when the slice was shown.
    clean: bool,
    bytes: Vec<u8>,
}

struct Times {
    /// Start of a strip's readout, on the operator's clock.
    captured_at: Duration,
    /// Time from capture to the end of encoding.
    encoding: Duration,
    /// Time from capture to delivery to the console.
    latency: Duration,
}

/// The operator's recording.
struct Recording {
    /// Slices by picture and strip, in display order.
    slices: BTreeMap<(u32, usize), Vec<Slice>>,
}

impl Recording {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let index = fs::read_to_string(folder.join(INDEX))
            .with_context(|| format!("{} holds no recording", folder.display()))?;
        let mut streams = (0..Layout::STRIP_COUNT)
            .map(|strip| Ok((fs::read(folder.join(format!("strip-{strip}.h264")))?, 0)))
            .collect::<std::io::Result<Vec<(Vec<u8>, usize)>>>()
            .with_context(|| format!("the recording in {} is not whole", folder.display()))?;
        let mut lines = index.lines();
        ensure!(lines.next() == Some(INDEX_HEAD), "{INDEX} does not begin with {INDEX_HEAD}");
        let mut recording = Self { slices: BTreeMap::new() };
        for (number, line) in lines.enumerate() {
            let at = || format!("{INDEX}:{}: malformed: {line}", number + 2);
            let entry = Entry::parse(line).with_context(at)?;
            let (stream, position) = streams.get_mut(entry.strip).with_context(at)?;
            let bytes = stream.get(*position..*position + entry.bytes).with_context(at)?.to_vec();
            *position += entry.bytes;
            let times = (!entry.skip).then(|| Times {
                captured_at: Duration::from_micros(entry.captured_us),
                encoding: Duration::from_micros(entry.encoding_us),
                latency: Duration::from_micros(entry.latency_us),
            });
            let slices = recording.slices.entry((entry.picture, entry.strip)).or_default();
            slices.push(Slice { times, clean: entry.clean, bytes });
        }
        Ok(recording)
    }

    /// Returns the first and the last picture in which every strip was shown as sent; `None` if
    /// there is no such picture.
    fn whole(&self) -> Option<(u32, u32)> {
        let mut sent = BTreeMap::<u32, usize>::new();
        for ((picture, _), slices) in &self.slices {
            if slices.iter().any(|slice| slice.times.is_some()) {
                *sent.entry(*picture).or_default() += 1;
            }
        }
        let mut whole = sent.iter().filter(|(_, strips)| **strips == Layout::STRIP_COUNT);
        let first = *whole.next()?.0;
        Some((first, whole.next_back().map_or(first, |(last, _)| *last)))
    }
}

struct Entry {
    picture: u32,
    strip: usize,
    skip: bool,
    captured_us: u64,
    encoding_us: u64,
    latency_us: u64,
    bytes: usize,
    clean: bool,
}

impl Entry {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [picture, strip, kind, captured, encoded, shown, bytes, clean] = fields[..] else {
            return None;
        };
        let [captured, encoded, shown] =
            [captured, encoded, shown].map(|micros| micros.parse::<u64>());
        let captured = captured.ok()?;
        Some(Self {
            picture: picture.parse().ok()?,
            strip: strip.parse().ok()?,
            skip: kind == "skip",
            captured_us: captured,
            encoding_us: encoded.ok()?.saturating_sub(captured),
            latency_us: shown.ok()?.saturating_sub(captured),
            bytes: bytes.parse().ok()?,
            clean: clean == "1",
        })
    }
}

/// Content of the operator's screen, strip by strip.
struct Screen {
    decoders: Vec<StripDecoder>,
    strips: Vec<Picture>,
}

impl Screen {
    fn new(layout: &Layout) -> anyhow::Result<Self> {
        let strips = 0..Layout::STRIP_COUNT;
        Ok(Self {
            decoders: strips.clone().map(|_| StripDecoder::new()).collect::<Result<_, _>>()?,
            strips: strips
                .map(|strip| Picture::new(layout.width(), layout.strip_rows(strip).len()))
                .collect::<Result<_, _>>()?,
        })
    }

    fn show(&mut self, strip: usize, access_unit: &[u8]) -> anyhow::Result<()> {
        if let Some(picture) = self.decoders[strip].decode(access_unit)? {
            let size = |picture: &Picture| (picture.width(), picture.height());
            let (shown, sent) = (size(&picture), size(&self.strips[strip]));
            ensure!(
                shown == sent,
                "strip {strip} is {shown:?} in the recording, {sent:?} in the clip"
            );
            self.strips[strip] = picture;
        }
        Ok(())
    }

    fn squared_error(&self, source: &mut ClipSensor, strip: usize) -> anyhow::Result<f64> {
        let shown = &self.strips[strip];
        let mut sent = Picture::new(shown.width(), shown.height())?;
        source.read(strip, &mut sent);
        if strip == 0
            && let Some(value) = stamp::read(shown.luma(), shown.width())
        {
            stamp::draw(&mut sent, value)?;
        }
        let squared = |(a, b): (&u8, &u8)| f64::from(a.abs_diff(*b)).powi(2);
        Ok(sent.luma().iter().zip(shown.luma()).map(squared).sum())
    }
}

fn percentile<T>(ascending: &[T], percent: usize) -> Option<&T> {
    ascending.get((ascending.len() * percent / 100).min(ascending.len().checked_sub(1)?))
}
