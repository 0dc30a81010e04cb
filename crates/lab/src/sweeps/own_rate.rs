//! Our own encoder with its rate control, compared with others and theirs: quality at rate, by
//! complete pictures.

use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use tautline_units::Bitrate;
use tautline_video::avc::LossRecovery;
use tautline_video::{Backend, Layout, Picture};

use crate::experiment::Run;
use crate::pictures::coding::{Coding, Rate};
use crate::pictures::footage::{Footage, Size};
pub use crate::pictures::peers::Peer;
pub use crate::pictures::street::Mood;
use crate::quality::{Point, bd_rate, psnr};

/// Footage to code, at 1280x720 and 60 pictures per second.
#[derive(Clone, Debug)]
pub enum Scene {
    /// A rendered street.
    Street(Mood),
    /// A video; needs ffmpeg.
    Clip(PathBuf),
}

/// Results for one scene.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The footage's name and the hash of its samples.
    pub footage: (String, u64),
    /// Ours first, then each peer.
    pub curves: Vec<Curve>,
}

/// Results of one encoder.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The encoder.
    pub name: String,
    /// For each target, the resulting bitrate and the mean luma PSNR in dB.
    pub points: Vec<Point>,
}

impl Comparison {
    /// Codes a scene at all bitrates.
    ///
    /// # Errors
    /// If a clip cannot be read, ffmpeg is missing, or a codec fails.
    pub fn of(run: &Run<'_>, scene: &Scene, bitrates: &[Bitrate], count: usize) -> Result<Self> {
        run.progress(0, 1, "footage");
        let footage = match scene {
            Scene::Street(mood) => Footage::street(*mood, Size::HD, 60, count, run.seed)?,
            Scene::Clip(path) => Footage::clip(path, Size::HD, 60, count)?.with_noise(run.seed)?,
        };
        let seconds = count as f64 / f64::from(footage.rate);
        let mut curves = vec![Curve { name: "own".to_owned(), points: Vec::new() }];
        for (done, &bitrate) in bitrates.iter().enumerate() {
            run.progress(done as u64, bitrates.len() as u64, "own");
            let backend = Backend::Avc(LossRecovery::Idr);
            let coding = Coding::of(&footage, backend, Rate::Held(bitrate), Layout::STRIP_COUNT)?;
            let coded = coding.decoded(&footage)?;
            let quality = mean_psnr(&coded.shown, &footage.pictures)?;
            curves[0].points.push(Point { bitrate: coded.bitrate(), quality });
        }
        for peer in Peer::ALL {
            let mut points = Vec::new();
            for (done, &bitrate) in bitrates.iter().enumerate() {
                run.progress(done as u64, bitrates.len() as u64, peer.name());
                let made = peer.code(&footage, bitrate, Layout::STRIP_COUNT as u32)?;
                let taken = (made.bytes.get() as f64 * 8.0 / seconds).round() as u64;
                let quality = mean_psnr(&made.shown, &footage.pictures)?;
                points.push(Point { bitrate: Bitrate::from_bps(taken), quality });
            }
            curves.push(Curve { name: peer.name().to_owned(), points });
        }
        let hash = footage.hash();
        Ok(Self { footage: (footage.name, hash), curves })
    }

    /// Returns our bitrate excess over another encoder at equal PSNR, as a share; `None` as for
    /// [`bd_rate`].
    pub fn excess(&self, other: &Curve) -> Option<f64> {
        bd_rate(&other.points, &self.curves.first()?.points)
    }
}

/// Writes a Markdown table for readers.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, hash) = &self.footage;
        writeln!(f, "{name}, FNV-1a {hash:016x}")?;
        writeln!(f, "| encoder | Mbit/s, dB | our BD-rate |")?;
        writeln!(f, "|---|---|---|")?;
        for (index, curve) in self.curves.iter().enumerate() {
            let points = curve
                .points
                .iter()
                .map(|point| format!("{:.2}, {:.2}", point.bitrate.as_f64() / 1e6, point.quality));
            let points = points.collect::<Vec<_>>().join("; ");
            let excess = match self.excess(curve) {
                _ if index == 0 => String::new(),
                Some(excess) => format!("{:+.1} %", excess * 100.0),
                None => "no quality in common".to_owned(),
            };
            writeln!(f, "| {} | {points} | {excess} |", curve.name)?;
        }
        Ok(())
    }
}

fn mean_psnr(shown: &[Picture], captured: &[Picture]) -> Result<f64> {
    let mut sum = 0.0;
    for (shown, captured) in shown.iter().zip(captured) {
        sum += psnr(shown, captured)?;
    }
    Ok(sum / shown.len() as f64)
}
