//! `tautline lab budgets`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use tautline_lab::sweeps::budgets::{Drive, Scene};
use tautline_units::Bitrate;

/// Drive the vehicle's encoders over low-rate links in virtual time: what is refused, what arrives
/// complete, how late
#[derive(Debug, Args)]
pub(crate) struct Budgets {
    /// Total rate of the links in kbit/s, headers included
    #[arg(long, value_name = "KBPS", value_delimiter = ',', default_values_t = [200, 250, 500, 1000, 2000])]
    kbps: Vec<u64>,
    /// Number of links that share the rate
    #[arg(long, value_name = "N", default_value_t = 1)]
    links: u8,
    /// Video file in place of the simulated camera; requires ffmpeg
    #[arg(long, value_name = "FILE")]
    clip: Option<PathBuf>,
    /// Pictures per second of the source
    #[arg(long, value_name = "N", default_value_t = 60)]
    rate: u32,
    /// Duration of the drive in seconds
    #[arg(long, value_name = "S", default_value_t = 20)]
    seconds: u64,
    /// Compare the received with the sent pictures
    #[arg(long)]
    psnr: bool,
    /// Seed of the course and of the links
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Budgets {
    /// Runs the drive at each rate and prints a line for each.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        ensure!((1..=16).contains(&self.links), "--links {}: must be 1 to 16", self.links);
        ensure!((5..=240).contains(&self.rate), "--rate {}: must be 5 to 240", self.rate);
        ensure!(self.seconds >= 4, "--seconds {}: the first 3 are not measured", self.seconds);
        let scene = match &self.clip {
            Some(clip) => Scene::clip(clip, self.rate, PICTURES)?,
            None => Scene::simulated(false, self.rate, PICTURES, self.seed)?,
        };
        for kbps in self.kbps {
            ensure!(
                kbps >= 20 * u64::from(self.links),
                "--kbps {kbps}: must be 20 or more for each link"
            );
            let mut drive = Drive::over(Bitrate::from_kbps(kbps), self.links.into(), self.seed);
            drive.length = Duration::from_secs(self.seconds);
            drive.decodes = self.psnr;
            tell!("{kbps} kbit/s: {}", drive.run(&scene)?);
        }
        Ok(())
    }
}

/// Number of pictures of the scene: two seconds at 60 per second, played forwards and backwards.
const PICTURES: usize = 120;
