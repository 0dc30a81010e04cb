//! Prints, for an encoder on a clip: quality at rate, milliseconds a strip, and size over budget.
//!
//!     encoders CLIP.yuv PICTURES avc|openh264|x264 qp|rate NUMBER..
//!
//! The clip is raw YUV 4:2:0 of 1280x720, made by ffmpeg (`-pix_fmt yuv420p -f rawvideo`). With
//! `qp`, one quantizer throughout; with `rate`, that many Mbit/s at 60 pictures a
//! second, shared equally by six strips. Each line: Mbit/s, PSNR of luma in dB, then ms a strip
//! (median, p99, share of a core at 60 pictures/s), then size over budget (p50, p99, mean).

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use tautline_units::ByteCount;
#[cfg(feature = "x264")]
use tautline_video::x264;
use tautline_video::{
    Decoder, Error, Layout, Picture, QuantizerEncoder, Quantizers, Refresh, avc, openh264, quality,
};

const WIDTH: usize = 1280;
const HEIGHT: usize = 720;
const RATE: u32 = 60;

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
    let (mut times, mut shares, mut bytes, mut squares) = (Vec::new(), Vec::new(), 0, 0.0);
    for strip in 0..Layout::STRIP_COUNT {
        let rows = layout.strip_rows(strip);
        let mut encoder = encoder(backend, rows.len())?;
        let mut decoder = openh264::StripDecoder::new()?;
        for (index, picture) in pictures.iter().enumerate() {
            let source = picture.rows(rows.clone())?;
            let budget = number * 1e6 / 8.0 / f64::from(RATE) / Layout::STRIP_COUNT as f64;
            let begun = now();
            let coded = match kind {
                "qp" => encoder.encode_at(&source, Quantizers::both(number as u8), Refresh::No)?,
                _ => encoder.encode(&source, ByteCount::new(budget as u64), Refresh::No)?,
            }
            .bytes;
            let taken = now() - begun;
            let shown = decoder.decode(&coded)?.expect("one in, one out");
            squares += error(&shown, &source) * (rows.len() * WIDTH) as f64;
            bytes += coded.len();
            if index > 0 {
                times.push(taken.as_secs_f64() * 1e3);
                shares.push(coded.len() as f64 / budget);
            }
        }
    }
    let seconds = pictures.len() as f64 / f64::from(RATE);
    let psnr = quality::decibels(squares / (pictures.len() * WIDTH * HEIGHT) as f64);
    let core = times.iter().sum::<f64>() / 1e3 / seconds;
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

fn encoder(backend: &str, height: usize) -> Result<Box<dyn QuantizerEncoder>, Error> {
    Ok(match backend {
        "avc" => Box::new(avc::StripEncoder::new(avc::Config {
            width: WIDTH,
            height,
            cropped: [0, 0],
            pictures_per_second: RATE,
            healing: avc::Healing::Idr,
            joinable: false,
        })?),
        #[cfg(feature = "x264")]
        "x264" => {
            Box::new(x264::StripEncoder::new(WIDTH, height, RATE, x264::Settings::default())?)
        }
        _ => Box::new(openh264::StripEncoder::new(WIDTH, height, RATE)?),
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
