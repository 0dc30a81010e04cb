//! Duration for which a lost slice is visible: the output of decoders with the loss compared to
//! that without.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tautline_video::avc::LossRecovery;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Concealer, Decoder, Picture, Quantizers, Refresh};

use crate::pictures::chromium;
use crate::quality;

/// A decoder for the comparison.
#[derive(Clone, Copy, Debug, strum::VariantArray)]
pub(super) enum Shown {
    Openh264,
    /// libavcodec, through ffmpeg; the paper's decoder.
    Ffmpeg,
    /// The decoder of the operator's page.
    Chromium,
}

impl Shown {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Openh264 => "openh264",
            Self::Ffmpeg => "ffmpeg",
            Self::Chromium => "Chromium",
        }
    }

    pub(super) fn is_there(self) -> bool {
        match self {
            Self::Openh264 => true,
            Self::Ffmpeg => {
                Command::new("ffmpeg").arg("-version").stdout(Stdio::null()).status().is_ok()
            }
            Self::Chromium => chromium::is_there(),
        }
    }

    /// Returns, for each stream after the first, the sum of squared luma differences to the first
    /// stream for each picture.
    fn errors(
        self,
        streams: &[Vec<Vec<u8>>],
        width: usize,
        height: usize,
    ) -> Result<Vec<Vec<u64>>> {
        let decode = |access_units: &[Vec<u8>]| match self {
            Self::Openh264 => by_openh264(access_units),
            Self::Ffmpeg => by_ffmpeg(access_units, width, height),
            Self::Chromium => unreachable!("it compares by itself"),
        };
        if let Self::Chromium = self {
            return chromium::errors(streams);
        }
        let whole = decode(&streams[0])?;
        let of_stream = |access_units: &Vec<Vec<u8>>| {
            let shown = decode(access_units)?;
            ensure!(shown.len() == whole.len(), "{}: pictures are missing", self.name());
            Ok(whole.iter().zip(&shown).map(|(whole, shown)| squares(whole, shown)).collect())
        };
        streams[1..].iter().map(of_stream).collect()
    }
}

/// One loss, and the duration of its visibility.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// Number of the lost picture.
    pub(super) lost: usize,
    /// Number of pictures from the lost one to the last one with a visible difference, both
    /// included; 0 if none has one.
    pub(super) seen: usize,
    /// Number of pictures from the lost one to the last one in which any luma sample differs, both
    /// included; 0 if none does.
    pub(super) differing: usize,
}

/// Codes a strip at one quantizer, loses each of `losses` in a separate stream, and compares the
/// output of each decoder pixel by pixel. A difference that persists counts to the end of the
/// stream.
pub(super) fn of(
    sources: &[Picture],
    way: LossRecovery,
    qp: u8,
    losses: &[usize],
    decoders: &[Shown],
) -> Result<Vec<(Shown, Vec<Recovery>)>> {
    let (width, height) = (sources[0].width(), sources[0].height());
    let mut encoder = Backend::Avc(way).open_at(width, height, RATE)?;
    let code =
        |source| Ok(encoder.encode_at(source, Quantizers::both(qp), Refresh::No)?.bytes.to_vec());
    let coded = sources.iter().map(code).collect::<Result<Vec<_>>>()?;
    let lost_in = |lost: &usize| passed(&coded, Some(*lost));
    let mut streams = vec![passed(&coded, None)?];
    streams.extend(losses.iter().map(lost_in).collect::<Result<Vec<_>>>()?);
    let by = |decoder: &Shown| {
        let errors = decoder.errors(&streams, width, height)?;
        let recovery =
            |(lost, errors): (&usize, &Vec<u64>)| Recovery::of(*lost, errors, width * height);
        Ok((*decoder, losses.iter().zip(&errors).map(recovery).collect()))
    };
    decoders.iter().map(by).collect()
}

/// Returns the access units that the operator's decoder receives, with a skip slice in place of the
/// lost one.
fn passed(coded: &[Vec<u8>], lost: Option<usize>) -> Result<Vec<Vec<u8>>> {
    let mut concealer = Concealer::new();
    let pass = |(number, bytes): (usize, &Vec<u8>)| match lost == Some(number) {
        true => concealer.skip().context("the first slice is never lost"),
        false => Ok(concealer.pass(bytes)?.context("the first slice is an IDR")?.into_owned()),
    };
    coded.iter().enumerate().map(pass).collect()
}

impl Recovery {
    /// Evaluates the loss of a picture from the squared luma errors of all pictures, of `samples`
    /// samples each.
    fn of(lost: usize, errors: &[u64], samples: usize) -> Self {
        let until = |differs: &dyn Fn(u64) -> bool| {
            errors[lost..].iter().rposition(|error| differs(*error)).map_or(0, |last| last + 1)
        };
        let is_seen =
            |squares: u64| quality::decibels(squares as f64 / samples as f64) < RECOVERED_DB;
        Self { lost, seen: until(&is_seen), differing: until(&|squares| squares > 0) }
    }
}

fn squares(a: &[u8], b: &[u8]) -> u64 {
    a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum()
}

fn by_openh264(access_units: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let mut decoder = StripDecoder::new()?;
    let shown = access_units.iter().map(|bytes| {
        let shown = decoder.decode(bytes)?.context("a slice gave no rows")?;
        Ok(shown.luma().to_vec())
    });
    shown.collect()
}

fn by_ffmpeg(access_units: &[Vec<u8>], width: usize, height: usize) -> Result<Vec<Vec<u8>>> {
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let file = folder.path().join("strip.h264");
    fs::write(&file, access_units.concat())?;
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-flags", "low_delay", "-threads", "1", "-i"])
        .arg(&file)
        .args(["-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-"])
        .stdin(Stdio::null())
        .output()?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && words.is_empty(), "ffmpeg says: {words}");
    let luma = width * height;
    let pictures = output.stdout.chunks_exact(luma * 3 / 2);
    let shown: Vec<Vec<u8>> = pictures.map(|picture| picture[..luma].to_vec()).collect();
    let wanted = access_units.len();
    ensure!(shown.len() == wanted, "ffmpeg gave {} of {wanted} pictures", shown.len());
    Ok(shown)
}

/// PSNR of a strip's luma against the output without loss, above which no difference is visible.
pub(super) const RECOVERED_DB: f64 = 50.0;
const RATE: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_seen_until_the_last_picture_that_differs() {
        let whole = vec![vec![100; 64]; 6];
        let mut shown = whole.clone();
        shown[2] = vec![90; 64];
        shown[3] = vec![80; 64];
        shown[4][0] = 101;
        let errors: Vec<u64> = whole.iter().zip(&shown).map(|(a, b)| squares(a, b)).collect();
        let Recovery { lost, seen, differing } = Recovery::of(2, &errors, 64);
        assert_eq!((lost, seen, differing), (2, 2, 3));
        assert_eq!(Recovery::of(1, &[0; 6], 64).differing, 0);
    }
}
