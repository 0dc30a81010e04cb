//! The video under test: pictures of a simulated windscreen camera, coded by ffmpeg, in TS packets.
//! Its quality is measured after packet loss.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tautline_lab::quality;
use tautline_testtrack::{Autopilot, Camera, World};
use tautline_video::Picture;

use crate::packet::Packet;
use crate::schedule::Schedule;

/// A coded video, with its original pictures.
#[derive(Debug)]
pub(crate) struct Video {
    pictures: Vec<Picture>,
    /// TS packets, [`TS_PER_PACKET`] in each packet; the last one may have fewer.
    stream: Vec<u8>,
    schedule: Schedule,
    /// Presentation time of the first picture, on the stream's own clock.
    first: f64,
    /// File into which ffmpeg writes the presentation times.
    times: PathBuf,
}

/// Quality of the shown pictures relative to the originals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quality {
    /// Mean over pictures of the PSNR of luma, in dB; a missing picture is replaced by the one
    /// before it.
    pub(crate) psnr_db: f64,
    pub(crate) ssim: f64,
    /// Share of missing pictures.
    pub(crate) frozen_share: f64,
}

impl Video {
    /// Renders the pictures and codes them; writes into `folder`.
    pub(crate) fn prepare(codec: Codec, seconds: u32, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("no folder {}", folder.display()))?;
        let pictures = drive(seconds * PICTURES_PER_SECOND)?;
        let stream = code(&pictures, codec)?;
        let schedule = schedule(&stream)?;
        let times = folder.join("times");
        let mut video = Self { pictures, stream, schedule, first: 0.0, times };
        let (first, _) = video.decode(&video.stream)?.into_iter().next().context("no picture")?;
        video.first = first;
        Ok(video)
    }

    /// Returns the due times of the packets.
    pub(crate) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the quality of a video of which the packets with these numbers arrived, in that
    /// order.
    pub(crate) fn quality(&self, numbers: &[u32]) -> Result<Quality> {
        let packets: Vec<&[u8]> = self.stream.chunks(TS_PER_PACKET * TS_BYTES).collect();
        let came = numbers.iter().filter_map(|number| packets.get(*number as usize));
        let came: Vec<u8> = came.flat_map(|packet| packet.iter().copied()).collect();
        let mut shown: Vec<Option<Picture>> = self.pictures.iter().map(|_| None).collect();
        for (time, picture) in self.decode(&came)? {
            let at = ((time - self.first) * f64::from(PICTURES_PER_SECOND)).round();
            // A presentation time garbled by a loss matches no picture.
            if let Some(place) = shown.get_mut(at.max(0.0) as usize) {
                *place = Some(picture);
            }
        }
        self.judge(shown)
    }

    fn judge(&self, shown: Vec<Option<Picture>>) -> Result<Quality> {
        let (mut psnr, mut ssim, mut frozen) = (0.0, 0.0, 0_u32);
        let mut last = Picture::new(WIDTH, HEIGHT)?;
        for (taken, shown) in self.pictures.iter().zip(shown) {
            match shown {
                Some(picture) => last = picture,
                None => frozen += 1,
            }
            psnr += quality::psnr(&last, taken)?;
            ssim += quality::ssim(&last, taken)?;
        }
        let count = self.pictures.len() as f64;
        let frozen_share = f64::from(frozen) / count;
        Ok(Quality { psnr_db: psnr / count, ssim: ssim / count, frozen_share })
    }

    /// Decodes `stream` with ffmpeg, and returns the pictures, each with its presentation time in
    /// seconds on the stream's own clock.
    fn decode(&self, stream: &[u8]) -> Result<Vec<(f64, Picture)>> {
        let _ = fs::remove_file(&self.times);
        let size = format!("{WIDTH}x{HEIGHT}");
        let all = ["-map", "0:v:0", "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-s", &size];
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-v", "quiet", "-threads", "1", "-copyts", "-f", "mpegts", "-i", "pipe:0"]);
        ffmpeg.args(all).args(["-f", "rawvideo", "pipe:1"]);
        ffmpeg.args(all).args(["-c:v", "rawvideo", "-f", "framecrc"]).arg(&self.times);
        let pixels = pipe(ffmpeg, stream.to_vec())?;
        // No file: nothing decodable arrived.
        let times = fs::read_to_string(&self.times).unwrap_or_default();
        let pictures = pixels.chunks_exact(WIDTH * HEIGHT * 3 / 2).map(picture);
        times_of(&times).into_iter().zip(pictures).map(|(time, it)| Ok((time, it?))).collect()
    }
}

/// Returns the camera's pictures of a drive, from its fifth second on.
fn drive(count: u32) -> Result<Vec<Picture>> {
    let camera = Camera::new(WIDTH, HEIGHT)?;
    let mut world = World::new(COURSE);
    let driver = Autopilot::default();
    let mut step = || {
        let controls = driver.controls(world.course(), world.car());
        world.step(&controls, Duration::from_secs(1) / PICTURES_PER_SECOND);
        world.view()
    };
    (0..HEAD_START_S * PICTURES_PER_SECOND).for_each(|_| drop(step()));
    let pictures = (0..count).map(|_| {
        let mut picture = Picture::new(WIDTH, HEIGHT)?;
        camera.render(&step(), &mut picture);
        Ok(picture)
    });
    pictures.collect()
}

fn code(pictures: &[Picture], codec: Codec) -> Result<Vec<u8>> {
    let (size, rate) = (format!("{WIDTH}x{HEIGHT}"), PICTURES_PER_SECOND.to_string());
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", &size]);
    ffmpeg.args(["-r", &rate, "-i", "pipe:0", "-threads", "1"]).args(codec.arguments());
    ffmpeg.args(["-flags", "+bitexact", "-fflags", "+bitexact", "-f", "mpegts", "pipe:1"]);
    let planes = pictures.iter().flat_map(|it| [it.luma(), it.cb(), it.cr()]);
    let stream = pipe(ffmpeg, planes.flatten().copied().collect())?;
    let whole = !stream.is_empty() && stream.len().is_multiple_of(TS_BYTES);
    ensure!(whole, "ffmpeg gave {} bytes, which are no packets of TS", stream.len());
    Ok(stream)
}

/// Runs a program with `input` as its standard input, and returns its standard output.
fn pipe(mut command: Command, input: Vec<u8>) -> Result<Vec<u8>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("video needs ffmpeg")?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let mut stdout = child.stdout.take().context("no standard output")?;
    // A program that needs no more input, or fails, closes its end; its output shows which.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let mut output = Vec::new();
    stdout.read_to_end(&mut output)?;
    let _ = writer.join();
    child.wait()?;
    Ok(output)
}

/// Returns the schedule, in which a picture's packets are spread evenly over the time until the
/// next picture.
fn schedule(stream: &[u8]) -> Result<Schedule> {
    let packets: Vec<&[u8]> = stream.chunks_exact(TS_BYTES).collect();
    let mut begins: Vec<usize> =
        (0..packets.len()).filter(|at| begins_picture(packets[*at])).collect();
    ensure!(!begins.is_empty(), "the stream has no video");
    // Tables precede the first picture.
    begins[0] = 0;
    begins.push(packets.len());
    let mut due = Vec::new();
    for (picture, ends) in begins.windows(2).enumerate() {
        let count = ends[1] - ends[0];
        let at = |packet: usize| picture as f64 + packet as f64 / count as f64;
        let seconds = (0..count).map(|packet| at(packet) / f64::from(PICTURES_PER_SECOND));
        due.extend(seconds.map(|seconds| (Duration::from_secs_f64(seconds), picture as u32)));
    }
    // A packet is due when its last TS packet is ready, and belongs to the frame of its first.
    let due = due.chunks(TS_PER_PACKET).filter_map(|of| Some((of.last()?.0, of.first()?.1)));
    Ok(Schedule::new(due.collect()))
}

/// Returns whether a picture begins with this TS packet.
fn begins_picture(packet: &[u8]) -> bool {
    let pid = u16::from(packet[1] & 0x1F) << 8 | u16::from(packet[2]);
    packet[0] == TS_SYNC && packet[1] & 0x40 != 0 && pid == TS_VIDEO
}

/// Parses the times in ffmpeg's `framecrc` output, in seconds.
fn times_of(text: &str) -> Vec<f64> {
    let mut unit = 1.0 / f64::from(PICTURES_PER_SECOND);
    let mut times = Vec::new();
    for line in text.lines() {
        if let Some((numerator, denominator)) =
            line.strip_prefix("#tb 0: ").and_then(|it| it.split_once('/'))
            && let (Ok(numerator), Ok(denominator)) =
                (numerator.parse::<f64>(), denominator.parse::<f64>())
        {
            unit = numerator / denominator;
        }
        if line.starts_with('#') {
            continue;
        }
        // A picture that lost its time to packet loss follows the one before it.
        let following =
            times.last().map_or(0.0, |last: &f64| last + 1.0 / f64::from(PICTURES_PER_SECOND));
        let time = line.split(',').nth(2).and_then(|time| time.trim().parse::<f64>().ok());
        times.push(time.map_or(following, |time| time * unit));
    }
    times
}

fn picture(pixels: &[u8]) -> Result<Picture> {
    let mut picture = Picture::new(WIDTH, HEIGHT)?;
    let (luma, cb, cr) = picture.planes_mut();
    let mut rest = pixels;
    for plane in [luma, cb, cr] {
        let (pixels, behind) = rest.split_at(plane.len());
        plane.copy_from_slice(pixels);
        rest = behind;
    }
    Ok(picture)
}

/// Codec of the video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Codec {
    /// MPEG-2, as in the paper.
    Mpeg2,
    H264,
}

impl Codec {
    /// Returns ffmpeg's arguments: a constant quality, hence a variable bitrate.
    fn arguments(self) -> [&'static str; 8] {
        match self {
            Self::Mpeg2 => ["-c:v", "mpeg2video", "-q:v", "3", "-g", "12", "-bf", "2"],
            Self::H264 => ["-c:v", "libx264", "-crf", "23", "-g", "12", "-bf", "0"],
        }
    }
}

const WIDTH: usize = 640;
const HEIGHT: usize = 368;
/// Pictures per second, as in PAL.
const PICTURES_PER_SECOND: u32 = 25;
const COURSE: u64 = 1;
const HEAD_START_S: u32 = 5;
const TS_BYTES: usize = 188;
const TS_PER_PACKET: usize = (Packet::BYTES - Packet::HEADER_BYTES) / TS_BYTES;
const TS_SYNC: u8 = 0x47;
/// PID that ffmpeg assigns to the first stream.
const TS_VIDEO: u16 = 0x100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_room_for_seven_of_ts() {
        assert_eq!(TS_PER_PACKET, 7);
    }

    #[test]
    fn times_are_read_in_any_unit() {
        let text = "#software: x\n#tb 0: 1/50\n#codec_id 0: rawvideo\n0, 70, 70, 1, 9, 0x1\n\
                    0, NOPTS, NOPTS, 1, 9, 0x1\n";
        let ms: Vec<u32> = times_of(text).iter().map(|it| (it * 1e3).round() as u32).collect();
        assert_eq!(ms, [1400, 1440]);
    }

    #[test]
    fn a_pictures_packets_are_spread_until_the_next() {
        // Two pictures, of seven and of fourteen TS packets.
        let mut stream = vec![0; 21 * TS_BYTES];
        for at in 0..21 {
            stream[at * TS_BYTES..][..3].copy_from_slice(&[0x47, 0x01, 0x00]);
        }
        for at in [0, 7] {
            stream[at * TS_BYTES + 1] |= 0x40;
        }
        let schedule = schedule(&stream).unwrap();
        let micros: Vec<u128> = (0..3).map(|it| schedule.due(it).as_micros()).collect();
        assert_eq!(micros, [34_285, 57_142, 77_142]);
    }
}
