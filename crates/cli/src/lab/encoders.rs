//! `tautline lab encoders`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use tautline_lab::experiment::{Progress, Run};
use tautline_lab::sweeps::encoders::{Comparison, Scene, Terms};
use tautline_lab::sweeps::own_rate::{self, Mood};
use tautline_lab::{machine, record};
use tautline_units::Bitrate;

use super::progress::Line;

/// Compare this build's encoders on clips: quality at rate, time per slice, size against the budget
///
/// All encoders get the same pictures, rates and strips, and one thread each. Times are processor
/// times of the encoding thread. In a build with `--features x264`, BD-rates are relative to x264
/// superfast.
#[derive(Debug, Args)]
pub(crate) struct Encoders {
    /// Video file to code at 1280x720 and 60 pictures per second; requires ffmpeg; repeat for
    /// several
    #[arg(long, value_name = "FILE")]
    clip: Vec<PathBuf>,
    /// Code also the simulated camera's pictures, at 720p60 and at 1080p30; without a clip, only
    /// these
    #[arg(long)]
    simulated: bool,
    /// Compare Tautline's encoder with its own rate control to x264 superfast and openh264 with
    /// theirs, in pictures of six slices: on three drawn streets, by day, at night and in rain,
    /// then on the clips; requires ffmpeg with libx264
    #[arg(long, conflicts_with_all = ["simulated", "quantizer", "strips", "repeats", "no_noise", "out"])]
    own_rate: bool,
    /// Target rates of every encoder in Mbit/s [default: 4,6,8,12; with --own-rate 1,2,4,8]
    #[arg(long, value_name = "MBPS", value_delimiter = ',')]
    rate: Vec<f64>,
    /// Quantizers to set in every encoder
    #[arg(long, value_name = "QP", value_delimiter = ',', default_values_t = [24, 28, 32, 36],
        value_parser = clap::value_parser!(u8).range(12..=51))]
    quantizer: Vec<u8>,
    /// Number of pictures to code
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u16).range(2..=600))]
    pictures: u16,
    /// Number of strips per picture
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..=45))]
    strips: u8,
    /// Number of runs, encoders in turn; the least time of each slice counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    repeats: u8,
    /// Do not add the camera noise of 40 dB
    #[arg(long)]
    no_noise: bool,
    /// Seed of the noise and of the simulated drive
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for all numbers and the curves [default: none]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Encoders {
    /// Codes each scene with all encoders and prints the comparison; writes tables and plots if
    /// there is a folder. With `--own-rate`, only prints that comparison instead.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.own_rate {
            return self.run_own_rate();
        }
        let terms = self.terms()?;
        for clip in &self.clip {
            ensure!(
                clip.is_file(),
                "there is no clip {}: give the path of a video file",
                clip.display()
            );
        }
        if let Some(folder) = &self.out {
            record::create(folder)?;
        }
        let mut scenes: Vec<Scene> = self.clip.into_iter().map(Scene::Clip).collect();
        if self.simulated || scenes.is_empty() {
            scenes.extend([Scene::Simulated, Scene::SimulatedFullHd]);
        }
        tell!("{}, {} strips, {} pictures", machine::processor(), terms.strips, terms.pictures);
        let mut comparisons = Vec::new();
        for scene in &scenes {
            let line = Line::new("encoders");
            let progress = |progress: Progress<'_>| line.show(progress);
            let comparison = Comparison::of(&Run::new(false, self.seed, &progress), scene, &terms);
            line.clear();
            let comparison = comparison?;
            tell!("\n{comparison}");
            comparisons.push(comparison);
        }
        if let Some(folder) = &self.out {
            record::write_tables(folder, &[Comparison::table(&comparisons)])?;
            let plots: Vec<_> = comparisons.iter().map(Comparison::plot).collect();
            record::write_plots(folder, &plots)?;
        }
        Ok(())
    }

    fn run_own_rate(self) -> anyhow::Result<()> {
        let bitrates = self.bitrates(&[1.0, 2.0, 4.0, 8.0])?;
        let streets = Mood::ALL.map(own_rate::Scene::Street).into_iter();
        for scene in streets.chain(self.clip.into_iter().map(own_rate::Scene::Clip)) {
            let line = Line::new("encoders");
            let progress = |progress: Progress<'_>| line.show(progress);
            let run = Run::new(false, self.seed, &progress);
            let comparison =
                own_rate::Comparison::of(&run, &scene, &bitrates, self.pictures.into());
            line.clear();
            tell!("{}", comparison?);
        }
        Ok(())
    }

    fn bitrates(&self, default: &[f64]) -> anyhow::Result<Vec<Bitrate>> {
        let possible = |mbps: &f64| (0.1..=200.0).contains(mbps);
        ensure!(self.rate.iter().all(possible), "--rate: must be 0.1 to 200 Mbit/s");
        let bitrate = |mbps: &f64| Bitrate::from_bps((mbps * 1e6).round() as u64);
        let rates = if self.rate.is_empty() { default } else { &self.rate };
        Ok(rates.iter().map(bitrate).collect())
    }

    fn terms(&self) -> anyhow::Result<Terms> {
        Ok(Terms {
            pictures: self.pictures.into(),
            noise: !self.no_noise,
            bitrates: self.bitrates(&[4.0, 6.0, 8.0, 12.0])?,
            quantizers: self.quantizer.clone(),
            strips: self.strips.into(),
            repeats: self.repeats.into(),
        })
    }
}
