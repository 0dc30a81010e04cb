//! Prints, for an encoder on a clip: quality at rate, milliseconds a strip, and size over budget.
//!
//!     encoders CLIP.yuv PICTURES avc|openh264|x264 qp|rate NUMBER..
//!
//! The clip is raw YUV 4:2:0 of 1280x720, made by ffmpeg (`-pix_fmt yuv420p -f rawvideo`). With
//! `qp`, one quantizer throughout; with `rate`, that many Mbit/s at 60 pictures a second, shared
//! among six strips: by our planner for our encoder, equally for others. Each line: Mbit/s, PSNR of
//! luma in dB, then ms a strip until its slice is out (median, p99), the share of a core at 60
//! pictures/s with what is done after that, then size over budget (p50, p99, mean).

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use tautline_units::ByteCount;
#[cfg(feature = "x264")]
use tautline_video::x264;
use tautline_video::{
    Decoder, Encoder, Error, Layout, Picture, QuantizerEncoder, Quantizers, Refresh, avc, openh264,
    quality,
};

const WIDTH: usize = 1280;
const HEIGHT: usize = 720;
const RATE: u32 = 60;
/// Equal shares of a picture's budget that one strip may take.
const CEILING: f64 = 2.5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [clip, count, backend, kind, numbers @ ..] = &arguments[..] else {
        return Err("CLIP.yuv PICTURES avc|openh264|x264 qp|rate NUMBER..".into());
    };
    let pictures = read(clip, count.parse()?)?;
    for number in numbers {
        run(&pictures, backend, kind, number.parse()?)?;
    }
    Ok(())
}

fn read(path: &str, count: usize) -> Result<Vec<Picture>, Box<dyn std::error::Error>> {
    let mut file = File::open(path)?;
    let mut pictures = Vec::new();
    while pictures.len() < count {
        let mut picture = Picture::new(WIDTH, HEIGHT)?;
        let (luma, cb, cr) = picture.planes_mut();
        if [luma, cb, cr].into_iter().any(|plane| file.read_exact(plane).is_err()) {
            break;
        }
        pictures.push(picture);
    }
    Ok(pictures)
}

fn run(pictures: &[Picture], backend: &str, kind: &str, number: f64) -> Result<(), Error> {
    let layout = Layout::of(WIDTH, HEIGHT)?;
    let mut strips = (0..Layout::STRIP_COUNT)
        .map(|strip| {
            let rows = layout.strip_rows(strip);
            Ok((encoder(backend, rows.len())?, openh264::StripDecoder::new()?, rows))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let picture_budget = number * 1e6 / 8.0 / f64::from(RATE);
    let mut planner = avc::Planner::new(Layout::STRIP_COUNT, CEILING);
    let (mut times, mut shares, mut bytes, mut squares) = (Vec::new(), Vec::new(), 0, 0.0);
    let mut settling = 0.0;
    for (index, picture) in pictures.iter().enumerate() {
        planner.begin(ByteCount::new(picture_budget as u64));
        for (strip, (encoder, decoder, rows)) in strips.iter_mut().enumerate() {
            let source = picture.rows(rows.clone())?;
            let budget = match encoder {
                Strip::Own(_) => planner.give(strip),
                _ => ByteCount::new((picture_budget / Layout::STRIP_COUNT as f64) as u64),
            };
            let begun = now();
            let coded = match kind {
                "qp" => encoder.at(&source, number as u8)?,
                _ => encoder.within(&source, budget)?,
            };
            let taken = now() - begun;
            if let Strip::Own(own) = encoder {
                own.settle();
                settling += (now() - begun - taken).as_secs_f64();
                planner.done(strip, budget, ByteCount::of(&coded), own.weight());
            }
            let shown = decoder.decode(&coded)?.expect("one in, one out");
            let mse = error(&shown, &source);
            squares += mse * (rows.len() * WIDTH) as f64;
            bytes += coded.len();
            if index > 0 {
                times.push(taken.as_secs_f64() * 1e3);
                shares.push(coded.len() as f64 / budget.get() as f64);
            }
        }
    }
    let seconds = pictures.len() as f64 / f64::from(RATE);
    let psnr = quality::decibels(squares / (pictures.len() * WIDTH * HEIGHT) as f64);
    let core = (times.iter().sum::<f64>() / 1e3 + settling) / seconds;
    println!(
        "{number:>5} {:8.4} Mbit/s {psnr:7.3} dB  {:.3} {:.3} ms {:.1} %  {:.3} {:.3} {:.3}",
        bytes as f64 * 8e-6 / seconds,
        at(&mut times, 0.5),
        at(&mut times, 0.99),
        core * 100.0,
        at(&mut shares, 0.5),
        at(&mut shares, 0.99),
        shares.iter().sum::<f64>() / shares.len() as f64,
    );
    Ok(())
}

enum Strip {
    Own(Box<avc::StripEncoder>),
    Other(Box<dyn QuantizerEncoder>),
}

impl Strip {
    fn at(&mut self, source: &Picture, qp: u8) -> Result<Vec<u8>, Error> {
        let quantizers = Quantizers::both(qp);
        Ok(match self {
            Self::Own(own) => own.encode_at(source, quantizers, Refresh::No)?,
            Self::Other(other) => other.encode_at(source, quantizers, Refresh::No)?,
        }
        .bytes)
    }

    fn within(&mut self, source: &Picture, budget: ByteCount) -> Result<Vec<u8>, Error> {
        Ok(match self {
            Self::Own(own) => own.encode(source, budget, Refresh::No)?,
            Self::Other(other) => other.encode(source, budget, Refresh::No)?,
        }
        .bytes)
    }
}

fn encoder(backend: &str, height: usize) -> Result<Strip, Error> {
    Ok(match backend {
        "avc" => Strip::Own(Box::new(avc::StripEncoder::new(avc::Config {
            width: WIDTH,
            height,
            cropped: [0, 0],
            pictures_per_second: RATE,
            healing: avc::Healing::Idr,
            joinable: false,
        })?)),
        #[cfg(feature = "x264")]
        "x264" => Strip::Other(Box::new(x264::StripEncoder::new(
            WIDTH,
            height,
            RATE,
            x264::Settings::default(),
        )?)),
        _ => Strip::Other(Box::new(openh264::StripEncoder::new(WIDTH, height, RATE)?)),
    })
}

fn error(shown: &Picture, source: &Picture) -> f64 {
    let squares = shown.luma().iter().zip(source.luma()).map(|(&a, &b)| {
        let apart = u64::from(a.abs_diff(b));
        apart * apart
    });
    squares.sum::<u64>() as f64 / source.luma().len() as f64
}

fn at(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get((values.len().max(1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

#[expect(clippy::disallowed_methods, reason = "it measures how long encoding takes")]
fn now() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
