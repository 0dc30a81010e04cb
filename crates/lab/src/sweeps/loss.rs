//! Strip streams with randomly lost slices, from the vehicle's encoder through the operator's
//! downlink to decoders. No decoder may ever stop, and each loss must be recovered.

mod pattern;
mod recovery_cost;
mod slice;

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_message::StripReport;
use tautline_operator::downlink::{Downlink, Shown};
use tautline_units::{ByteCount, Instant};
use tautline_vehicle::encode::{Plan, Request, StripCoder};
use tautline_video::avc::LossRecovery;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Decoder, Encoded, Layout, Picture, SliceKind};

pub use pattern::Pattern;
pub use recovery_cost::{RecoveryCost, Scene, Terms};
use slice::slice_of;

use crate::pictures::coding::{self, quantile, sorted};
use crate::pictures::footage::{Footage, Size};
#[cfg(feature = "x264")]
use crate::pictures::x264::Settings;
use crate::quality;

/// Length of a stream, its losses, and when the vehicle learns of them.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Pictures of the strip.
    pub pictures: usize,
    /// Probability that a slice is lost.
    pub loss: f64,
    /// Pictures from a slice's arrival until the vehicle learns of it.
    pub round_trip: usize,
    /// Seed of the losses.
    pub seed: u64,
}

/// Results of one coding method.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The encoder and its loss recovery.
    pub name: String,
    /// Slices lost.
    pub lost: usize,
    /// Pictures from each loss until the strip matches its encoder's state again to more than 50
    /// dB, ascending. A loss followed by another before recovery is not counted.
    pub recovery: Vec<f64>,
    /// IDRs coded, including the first.
    pub idrs: usize,
    /// True if ffmpeg decoded the stream too; false if it is not installed.
    pub by_ffmpeg: bool,
}

/// Codes a strip with every method of this build, loses slices, and decodes the rest with openh264,
/// and with ffmpeg if it is installed.
///
/// The vehicle's own code encodes; the operator's own code conceals, and reports arrivals a round
/// trip later. If `folder` is given, each method's stream `N.h264` is written there. `N.json` has
/// the lengths of its access units and the method's name, for other decoders.
///
/// # Errors
/// If a decoder fails or returns fewer pictures than were coded; if a strip reported as clean is
/// not, or recovery takes longer than the method promises; if a file cannot be written.
pub fn run(faults: Faults, folder: Option<&Path>) -> Result<Vec<Passed>> {
    let footage = Footage::simulated(Size::SMALL, RATE, FOOTAGE_PICTURES, faults.seed)?;
    let layout = Layout::of(Size::SMALL.width, Size::SMALL.height)?;
    let rows = layout.strip_rows(MIDDLE_STRIP);
    let sources = footage.pictures.iter().map(|picture| picture.rows(rows.clone()));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let mut passed = Vec::new();
    for (number, way) in ways(faults.round_trip).into_iter().enumerate() {
        let name = way.backend.to_string();
        let stream = Stream::of(&way, &sources, faults).with_context(|| name.clone())?;
        let by_ffmpeg = check_with_ffmpeg(&stream).with_context(|| format!("{name}, ffmpeg"))?;
        if let Some(folder) = folder {
            stream.keep(&name, folder, number)?;
        }
        let (lost, recovery) = (stream.lost, sorted(stream.recovery.into_iter()));
        let worst = recovery.last().copied().unwrap_or_default();
        if let Some(most) = way.most {
            ensure!(
                worst <= most as f64,
                "{name}: recovered in {worst} pictures, more than {most}"
            );
        }
        passed.push(Passed { name, lost, recovery, idrs: stream.idrs, by_ffmpeg });
    }
    Ok(passed)
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recovery = |share| quantile(&self.recovery, share);
        write!(
            f,
            "{}: {} lost, every picture out; recovered in {} pictures p50, {} p90, {} worst, of {}; {} IDRs{}",
            self.name,
            self.lost,
            recovery(0.5),
            recovery(0.9),
            recovery(1.0),
            self.recovery.len(),
            self.idrs,
            if self.by_ffmpeg { "" } else { " (skipped: ffmpeg is not installed)" }
        )
    }
}

/// One method of coding and of loss recovery.
struct Way {
    backend: Backend,
    /// True if the vehicle receives the operator's reports.
    hears: bool,
    /// Maximum number of pictures affected by a loss, without a further one; `None` if unknown.
    most: Option<usize>,
}

/// Returns every method of this build and its limit. A loss is detected when the next picture
/// arrives, and its report arrives a round trip after that.
fn ways(round_trip: usize) -> Vec<Way> {
    let (period, references) = (PERIOD, 16);
    let known = 1 + round_trip;
    let swept = usize::from(period);
    let own = [
        (LossRecovery::IntraRefresh { period }, false, swept),
        (LossRecovery::IntraColumns { spacing: period }, false, swept),
        (LossRecovery::IntraRefreshOnLoss { period }, true, known + swept - 1),
        (LossRecovery::AcknowledgedReferences { references }, true, 1),
        (LossRecovery::ReferenceSelection { references }, true, known),
        (LossRecovery::ReferencesByLoss { references }, true, known),
    ];
    let own = own.map(|(way, hears, most)| (Backend::Avc(way), hears, Some(most)));
    let idrs = coding::backends().into_iter().map(|backend| (backend, true, Some(known)));
    #[cfg(feature = "x264")]
    let others = [const { &Settings { refresh_period: PERIOD, ..Settings::BASELINE } }.backend()];
    #[cfg(not(feature = "x264"))]
    let others: [Backend; 0] = [];
    // The limit of other encoders' refresh is unknown.
    let others = others.map(|backend| (backend, false, None));
    let all = idrs.chain(own).chain(others);
    all.map(|(backend, hears, most)| Way { backend, hears, most }).collect()
}

/// A stream as it arrived at the decoder.
struct Stream {
    /// Access units that the decoder was given, in order.
    access_units: Vec<Vec<u8>>,
    /// Number of lost slices.
    lost: usize,
    /// Number of IDRs coded, the first included.
    idrs: usize,
    recovery: Vec<f64>,
}

impl Stream {
    fn of(way: &Way, sources: &[Picture], faults: Faults) -> Result<Self> {
        let first = sources.first().context("no pictures")?;
        let layout = Layout::with_strips(first.width(), first.height(), 1)?;
        let (mut sender, plan) = (StripCoder::new(way.backend, &layout, 0, RATE)?, Plan::new(1));
        let mut receiver = Receiver::new()?;
        let mut told = VecDeque::new();
        let mut random = ChaCha8Rng::seed_from_u64(faults.seed);
        for number in 0..faults.pictures {
            // Forwards and backwards, so that the camera never jumps.
            let turn = number % (2 * sources.len() - 2);
            let mut source = &sources[turn.min(2 * sources.len() - 2 - turn)];
            let mut asked = Request::Nothing;
            if way.hears && told.len() >= faults.round_trip.max(1) {
                let (report, needs_idr): (Option<StripReport>, bool) =
                    told.pop_front().expect("it was looked at");
                if let Some(report) = report {
                    sender.handle_report(&report);
                }
                asked = if needs_idr { Request::IdrByReceiver } else { Request::Nothing };
            }
            let now = Instant::ZERO + PERIOD_OF_PICTURES * number as u32;
            let coded = sender.encode(&mut source, number as u32, BUDGET, &plan, asked, now)?;
            let lost = number > 0 && random.random_bool(faults.loss);
            receiver.handle(number, coded, lost, now)?;
            told.push_back(receiver.report());
        }
        Ok(receiver.stream)
    }

    fn bytes(&self) -> Vec<u8> {
        self.access_units.concat()
    }

    fn keep(&self, name: &str, folder: &Path, number: usize) -> Result<()> {
        let lengths: Vec<usize> = self.access_units.iter().map(Vec::len).collect();
        let json = serde_json::json!({ "name": name, "lengths": lengths });
        let write = |ending: &str, bytes: &[u8]| {
            let file = folder.join(format!("{number}.{ending}"));
            fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))
        };
        fs::create_dir_all(folder)?;
        write("h264", &self.bytes())?;
        write("json", json.to_string().as_bytes())
    }
}

/// One strip at the operator, next to a lossless one.
struct Receiver {
    downlink: Downlink,
    decoder: StripDecoder,
    clean: StripDecoder,
    /// Output of the lossless decoder that has not been shown yet, by number of the picture.
    wanted: VecDeque<(usize, Picture)>,
    stream: Stream,
    /// Number of the last lost picture, until a later one has been shown almost as the lossless
    /// decoder shows it; then `None`.
    corrupt_from: Option<usize>,
}

impl Receiver {
    fn new() -> Result<Self> {
        Ok(Self {
            downlink: Downlink::new(Duration::ZERO),
            decoder: StripDecoder::new()?,
            clean: StripDecoder::new()?,
            wanted: VecDeque::new(),
            stream: Stream { access_units: Vec::new(), lost: 0, idrs: 0, recovery: Vec::new() },
            corrupt_from: None,
        })
    }

    /// Decodes the coded picture `number` losslessly as the reference and, unless it is `lost`,
    /// passes it to the downlink, then decodes and compares the pictures that the downlink shows.
    /// Records how many pictures a recovery took, but no other differences.
    ///
    /// # Errors
    /// If a decoder fails, or a picture shown as clean differs from its reference.
    fn handle(&mut self, number: usize, coded: Encoded, lost: bool, now: Instant) -> Result<()> {
        let wanted = self.clean.decode(&coded.bytes)?.context("a whole stream gave no picture")?;
        self.wanted.push_back((number, wanted));
        self.stream.idrs += usize::from(coded.kind == SliceKind::Idr);
        if lost {
            self.stream.lost += 1;
            self.corrupt_from = Some(number);
            return Ok(());
        }
        let slice = slice_of(coded, number as u32, 0, now);
        let mut due = Vec::new();
        self.downlink.handle_slice(slice, now, now, |shown| due.push(shown));
        due.into_iter().try_for_each(|shown| self.show(shown))
    }

    fn show(&mut self, Shown { slice, is_clean }: Shown) -> Result<()> {
        let number = slice.picture as usize;
        // Nothing is shown for pictures lost before an IDR.
        while self.wanted.front().is_some_and(|(wanted, _)| *wanted < number) {
            self.wanted.pop_front();
        }
        let wanted = self.wanted.pop_front().filter(|(wanted, _)| *wanted == number);
        let (_, wanted) = wanted.with_context(|| format!("picture {number} comes twice"))?;
        let shown = self.decoder.decode(&slice.bytes)?;
        let shown = shown.with_context(|| format!("picture {number} did not come out"))?;
        ensure!(!is_clean || shown == wanted, "picture {number} was said to be clean and is not");
        if let Some(since) = self.corrupt_from.filter(|since| number >= *since)
            && quality::psnr(&shown, &wanted)? > RECOVERED_DB
        {
            self.stream.recovery.push((number - since) as f64);
            self.corrupt_from = None;
        }
        self.stream.access_units.push(slice.bytes.to_vec());
        Ok(())
    }

    /// Returns the operator's current report, and whether it requests an IDR.
    fn report(&self) -> (Option<StripReport>, bool) {
        (self.downlink.reports(Instant::ZERO)[0], self.downlink.keyframe_strips() & 1 != 0)
    }
}

/// Decodes the stream with ffmpeg; false if ffmpeg is missing. An error if ffmpeg fails, prints a
/// message, or returns another number of pictures.
fn check_with_ffmpeg(stream: &Stream) -> Result<bool> {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        return Ok(false);
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("strip.h264");
    fs::write(&file, stream.bytes())?;
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-flags", "low_delay", "-threads", "1", "-i"])
        .arg(&file)
        .args(["-fps_mode", "passthrough", "-f", "framecrc", "-"])
        .stdin(Stdio::null())
        .output()?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && words.is_empty(), "it says: {words}");
    let lines = String::from_utf8_lossy(&output.stdout);
    let count = lines.lines().filter(|line| !line.starts_with('#')).count();
    let wanted = stream.access_units.len();
    ensure!(count == wanted, "{count} of {wanted} pictures came out");
    Ok(true)
}

const RATE: u32 = 60;
const FOOTAGE_PICTURES: usize = 120;
const MIDDLE_STRIP: usize = 2;
const BUDGET: ByteCount = ByteCount::new(900);
const PERIOD_OF_PICTURES: Duration = Duration::from_nanos(1_000_000_000 / RATE as u64);
const PERIOD: u8 = 8;
/// PSNR against the encoder's own picture above which no difference is visible.
const RECOVERED_DB: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_loss_stops_a_decoder_or_outlasts_its_modes_limit() {
        let faults = Faults { pictures: 300, loss: 0.1, round_trip: 3, seed: 5 };
        let passed = run(faults, None).unwrap();
        for way in passed {
            assert!(way.lost > 10 && !way.recovery.is_empty(), "{way}");
        }
    }

    /// Returns the first picture shown clean, and the number of IDRs in 120 pictures. The first
    /// slice of the strip is optionally lost, and the vehicle receives the operator's reports
    /// `round_trip` pictures later.
    fn begin(round_trip: usize, is_first_lost: bool) -> (Option<u32>, usize) {
        let footage = Footage::simulated(Size::SMALL, RATE, 2, 1).unwrap();
        let rows = Layout::of(Size::SMALL.width, Size::SMALL.height).unwrap().strip_rows(2);
        let source = footage.pictures[0].rows(rows).unwrap();
        let layout = Layout::with_strips(source.width(), source.height(), 1).unwrap();
        let backend = Backend::Avc(LossRecovery::ReferencesByLoss { references: 16 });
        let (mut sender, plan) =
            (StripCoder::new(backend, &layout, 0, RATE).unwrap(), Plan::new(1));
        let mut downlink = Downlink::new(Duration::from_millis(30));
        let (mut told, mut first, mut idrs) = (VecDeque::new(), None, 0);
        for picture in 0..120 {
            let now = Instant::ZERO + PERIOD_OF_PICTURES * picture;
            let mut asked = Request::Nothing;
            if told.len() >= round_trip {
                let (report, needs_idr): (Option<StripReport>, bool) = told.pop_front().unwrap();
                report.iter().for_each(|report| sender.handle_report(report));
                asked = if needs_idr { Request::IdrByReceiver } else { Request::Nothing };
            }
            let coded = sender.encode(&mut &source, picture, BUDGET, &plan, asked, now).unwrap();
            idrs += usize::from(coded.kind == SliceKind::Idr);
            let slice = slice_of(coded, picture, 0, now);
            let mut due = Vec::new();
            if picture > 0 || !is_first_lost {
                downlink.handle_slice(slice, now, now, |shown| due.push(shown));
            }
            downlink.handle_timeout(now, |shown| due.push(shown));
            let clean = due.iter().find(|shown| shown.is_clean).map(|shown| shown.slice.picture);
            first = first.or(clean);
            told.push_back((downlink.reports(now)[0], downlink.keyframe_strips() & 1 != 0));
        }
        (first, idrs)
    }

    #[test]
    fn a_lost_first_idr_is_repeated_once_after_one_round_trip() {
        for round_trip in [3, 6, 18, 30] {
            assert_eq!(begin(round_trip, false), (Some(0), 1), "{round_trip} pictures");
            let (first, idrs) = begin(round_trip, true);
            // The next picture, the 30 ms wait for the one before, and the round trip.
            let most = 1 + 2 + round_trip as u32;
            assert!(first.is_some_and(|first| first <= most), "{round_trip} pictures: {first:?}");
            assert_eq!(idrs, 2, "{round_trip} pictures");
        }
    }
}
