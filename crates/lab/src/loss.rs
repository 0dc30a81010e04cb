//! Strips' streams with slices lost at random, through the concealer and into decoders: none of them
//! may ever stop, and each heals.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_units::ByteCount;
use tautline_video::avc::Healing;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Concealer, Decoder, Layout, Picture, Refresh, quality};

use crate::coding::{quantile, sorted};
use crate::footage::{Footage, Size};

/// Is how many pictures, and how many of them are lost.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Pictures of the strip.
    pub pictures: usize,
    /// The probability of a slice to be lost.
    pub loss: f64,
    /// From which what is lost follows.
    pub seed: u64,
}

/// Is how one way of coding came through.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The encoder and how it heals.
    pub name: String,
    /// Slices lost.
    pub lost: usize,
    /// Pictures of each loss until the strip is again as its encoder has it, ascending; one that
    /// another loss overtook is not counted.
    pub healing: Vec<f64>,
    /// Whether ffmpeg was there to decode it too.
    pub by_ffmpeg: bool,
}

/// Codes a strip in every way of this build, loses slices, and has openh264 and ffmpeg decode the rest.
///
/// Into `folder`, if one is given, go each way's stream, `N.h264`, and `N.json`: the lengths of its
/// access units, and the way's name, for decoders elsewhere.
///
/// # Errors
/// When a decoder gives an error, or fewer pictures than went in; when a file cannot be written.
pub fn run(weather: Weather, folder: Option<&Path>) -> Result<Vec<Passed>> {
    let footage = Footage::simulated(Size::SMALL, RATE, FOOTAGE_PICTURES, weather.seed)?;
    let layout = Layout::of(Size::SMALL.width, Size::SMALL.height)?;
    let rows = layout.strip_rows(MIDDLE_STRIP);
    let sources = footage.pictures.iter().map(|picture| picture.rows(rows.clone()));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let mut passed = Vec::new();
    for (number, way) in ways().into_iter().enumerate() {
        let stream = Stream::of(&way, &sources, weather).with_context(|| way.name.clone())?;
        let by_ffmpeg =
            check_with_ffmpeg(&stream).with_context(|| format!("{}, ffmpeg", way.name))?;
        if let Some(folder) = folder {
            stream.keep(&way.name, folder, number)?;
        }
        let (lost, healing) = (stream.lost, sorted(stream.healing.into_iter()));
        passed.push(Passed { name: way.name, lost, healing, by_ffmpeg });
    }
    Ok(passed)
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heal = |share| quantile(&self.healing, share);
        write!(
            f,
            "{}: {} lost, every picture out; healed in {} pictures p50, {} p90, {} worst, of {}{}",
            self.name,
            self.lost,
            heal(0.5),
            heal(0.9),
            heal(1.0),
            self.healing.len(),
            if self.by_ffmpeg { "" } else { " (skipped: ffmpeg is not installed)" }
        )
    }
}

/// Is one way of coding and healing.
struct Way {
    name: String,
    backend: Backend,
    /// What the receiver asks for after a loss; it comes a round trip later.
    asks: Refresh,
}

fn ways() -> Vec<Way> {
    let asking = Backend::all().into_iter().map(|backend| Way {
        name: format!("{backend}, IDR on loss"),
        backend,
        asks: Refresh::Idr,
    });
    let sweeping = Backend::refreshing(PERIOD).into_iter().map(|backend| Way {
        name: backend.to_string(),
        backend,
        asks: Refresh::No,
    });
    let on_loss = Backend::Avc(Healing::OnLoss { period: PERIOD });
    let told = Way { name: on_loss.to_string(), backend: on_loss, asks: Refresh::Heal };
    asking.chain(sweeping).chain([told]).collect()
}

/// Is a stream as it came to the decoder.
struct Stream {
    access_units: Vec<Vec<u8>>,
    lost: usize,
    healing: Vec<f64>,
}

impl Stream {
    fn of(way: &Way, sources: &[Picture], weather: Weather) -> Result<Self> {
        let first = sources.first().context("no pictures")?;
        let mut encoder = way.backend.open(first.width(), first.height(), RATE)?;
        let mut strip = Strip::new()?;
        let mut random = ChaCha8Rng::seed_from_u64(weather.seed);
        let mut asked_at = None;
        for number in 0..weather.pictures {
            // There and back again: the camera never jumps.
            let turn = number % (2 * sources.len() - 2);
            let source = &sources[turn.min(2 * sources.len() - 2 - turn)];
            let refresh = match asked_at {
                Some(at) if number >= at => way.asks,
                Some(_) | None => Refresh::No,
            };
            if refresh != Refresh::No {
                asked_at = None;
            }
            let coded = encoder.encode(source, BUDGET, refresh)?;
            let lost = number > 0 && random.random_bool(weather.loss);
            strip.show(number, &coded.bytes, lost)?;
            if lost {
                asked_at.get_or_insert(number + ROUND_TRIP);
            }
        }
        Ok(Self { access_units: strip.access_units, lost: strip.lost, healing: strip.healing })
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

/// Is one strip at the receiver, beside one that lost nothing.
struct Strip {
    concealer: Concealer,
    decoder: StripDecoder,
    clean: StripDecoder,
    access_units: Vec<Vec<u8>>,
    lost: usize,
    /// The picture of the last loss, until it has healed.
    hurt_at: Option<usize>,
    healing: Vec<f64>,
}

impl Strip {
    fn new() -> Result<Self> {
        Ok(Self {
            concealer: Concealer::new(),
            decoder: StripDecoder::new()?,
            clean: StripDecoder::new()?,
            access_units: Vec::new(),
            lost: 0,
            hurt_at: None,
            healing: Vec::new(),
        })
    }

    fn show(&mut self, number: usize, coded: &[u8], lost: bool) -> Result<()> {
        let handed_on = if lost {
            self.lost += 1;
            self.hurt_at = Some(number);
            Cow::Owned(self.concealer.skip().context("a loss before the first IDR")?)
        } else {
            self.concealer.pass(coded)?.context("a slice before the first IDR")?
        };
        let shown = self.decoder.decode(&handed_on)?;
        let shown = shown.with_context(|| format!("picture {number} did not come out"))?;
        let wanted = self.clean.decode(coded)?.context("a whole stream gave no picture")?;
        if let Some(since) = self.hurt_at
            && quality::psnr(&shown, &wanted)? > HEALED_DB
        {
            self.healing.push((number - since) as f64);
            self.hurt_at = None;
        }
        self.access_units.push(handed_on.into_owned());
        Ok(())
    }
}

/// Has ffmpeg decode the stream; false if there is none.
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
/// Pictures until what is asked for is coded.
const ROUND_TRIP: usize = 3;
const PERIOD: u8 = 16;
/// Against the encoder's own picture, where what is left is below what can be seen.
const HEALED_DB: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_stop_no_decoder_and_an_idr_heals() {
        let passed = run(Weather { pictures: 300, loss: 0.1, seed: 5 }, None).unwrap();
        for way in passed {
            assert!(way.lost > 10 && !way.healing.is_empty(), "{way}");
        }
    }
}
