//! Complete pictures coded by other encoders, each with its own rate control.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tautline_units::{Bitrate, ByteCount};
use tautline_video::openh264::{RateControlled, StripDecoder};
use tautline_video::{Decoder, Picture};

use super::footage::Footage;
use super::kept;

/// An encoder with its rate control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// x264 superfast in ffmpeg: constrained baseline, no delay, average bitrate.
    X264,
    /// openh264, bitrate mode, without skipped pictures.
    Openh264,
}

/// Footage coded by a peer: the total size, and the pictures as decoded.
pub(crate) struct Made {
    pub(crate) bytes: ByteCount,
    pub(crate) shown: Vec<Picture>,
}

impl Peer {
    /// All peers.
    pub const ALL: [Self; 2] = [Self::X264, Self::Openh264];

    /// Returns the encoder's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::X264 => "x264 superfast",
            Self::Openh264 => "openh264",
        }
    }

    /// Codes footage in pictures of `slices` slices, with the first picture as the only IDR.
    ///
    /// # Errors
    /// If ffmpeg is missing or has no libx264, or a codec fails.
    pub(crate) fn code(self, footage: &Footage, bitrate: Bitrate, slices: u32) -> Result<Made> {
        match self {
            Self::X264 => x264(footage, bitrate, slices),
            Self::Openh264 => openh264(footage, bitrate, slices),
        }
    }
}

fn openh264(footage: &Footage, bitrate: Bitrate, slices: u32) -> Result<Made> {
    let first = footage.pictures.first().context("no pictures")?;
    let (width, height) = (first.width(), first.height());
    let mut encoder = RateControlled::new(width, height, footage.rate, bitrate, slices)?;
    let mut decoder = StripDecoder::new()?;
    let mut made = Made { bytes: ByteCount::ZERO, shown: Vec::new() };
    for picture in &footage.pictures {
        let bytes = encoder.encode(picture)?;
        made.bytes += ByteCount::of(&bytes);
        made.shown.push(decoder.decode(&bytes)?.context("a picture did not come out")?);
    }
    Ok(made)
}

fn x264(footage: &Footage, bitrate: Bitrate, slices: u32) -> Result<Made> {
    let first = footage.pictures.first().context("no pictures")?;
    let size = [first.width(), first.height()];
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x264.h264");
    let mut ffmpeg = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p"])
        .args([
            "-s",
            &format!("{}x{}", size[0], size[1]),
            "-r",
            &footage.rate.to_string(),
            "-i",
            "-",
        ])
        .args(["-c:v", "libx264", "-preset", "superfast", "-tune", "zerolatency"])
        .args(["-profile:v", "baseline", "-b:v", &bitrate.bps().to_string(), "-g", "100000"])
        .args(["-x264-params", &format!("slices={slices}:sliced-threads=0:threads=1:scenecut=0")])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("x264 by its own rate control needs ffmpeg")?;
    let mut input = ffmpeg.stdin.take().context("ffmpeg has no input")?;
    for picture in &footage.pictures {
        for plane in [picture.luma(), picture.cb(), picture.cr()] {
            input.write_all(plane).context("ffmpeg ended: has it libx264?")?;
        }
    }
    drop(input);
    ensure!(ffmpeg.wait()?.success(), "ffmpeg cannot code by libx264");
    let bytes = ByteCount::new(file.metadata()?.len());
    Ok(Made { bytes, shown: decoded(&file, size, footage.pictures.len())? })
}

fn decoded(file: &Path, size: [usize; 2], count: usize) -> Result<Vec<Picture>> {
    let mut ffmpeg = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-threads", "1", "-i"])
        .arg(file)
        .args(["-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = ffmpeg.stdout.take().context("ffmpeg has no output")?;
    let pictures = (0..count).map(|_| kept::read(&mut output, size)).collect::<Result<_>>();
    drop(output);
    ffmpeg.wait()?;
    pictures.context("ffmpeg gave fewer pictures than went in")
}
