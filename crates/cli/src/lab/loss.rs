//! `tautline lab loss`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use tautline_lab::sweeps::loss::{self, Faults, Pattern, RecoveryCost, Scene, Terms};
use tautline_units::Bitrate;
use tautline_video::avc::LossRecovery;

/// Lose slices at random, and check that no decoder ever stops and that each strip recovers
///
/// Every encoder of this build codes a strip and recovers by each of its methods from the
/// receiver's reports; openh264 and ffmpeg decode the rest. With --toll it reports instead how many
/// complete pictures patterns of losses cost, for the methods without refresh.
#[derive(Debug, Args)]
pub(crate) struct Loss {
    /// Number of pictures to code [default: 10000, with --toll 960]
    #[arg(long, value_name = "N")]
    pictures: Option<usize>,
    /// Loss probability of a slice; with --toll only that pattern [default: 0.05, with --toll ten
    /// patterns]
    #[arg(long, value_name = "P")]
    loss: Option<f64>,
    /// Number of pictures from a slice's arrival until the vehicle knows of it: 6 are 100 ms at 60
    /// per second
    #[arg(long, value_name = "N", default_value_t = 6)]
    round_trip: usize,
    /// Seed of the losses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Report how many complete pictures of 1280x720 at 60 per second ten patterns of losses cost:
    /// single slices, bursts, complete pictures, every 17th slice, and 30 % for 10 s
    #[arg(long)]
    toll: bool,
    /// Total rate of the slices with --toll, in Mbit/s
    #[arg(long, value_name = "MBPS", default_value_t = 6)]
    mbps: u32,
    /// Video file in place of the simulated camera with --toll; requires ffmpeg
    #[arg(long, value_name = "FILE")]
    clip: Option<PathBuf>,
    /// Folder for the streams, for other decoders [default: none]
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

impl Loss {
    /// Runs every encoder with every method of loss recovery, and prints a line for each; with
    /// `--toll`, a line for each pattern of losses and each of [`WAYS`].
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let loss = self.loss.unwrap_or(0.05);
        ensure!((0.0..=0.9).contains(&loss), "--loss {loss}: must be 0 to 0.9");
        ensure!(self.round_trip <= 60, "--round-trip {}: must be 0 to 60", self.round_trip);
        if self.toll {
            return self.tell_toll();
        }
        let Self { round_trip, seed, .. } = self;
        let pictures = self.pictures.unwrap_or(10_000);
        let faults = Faults { pictures, loss, round_trip, seed };
        for way in loss::run(faults, self.keep.as_deref())? {
            tell!("{way}");
        }
        Ok(())
    }

    fn tell_toll(&self) -> anyhow::Result<()> {
        let pictures = self.pictures.unwrap_or(960);
        ensure!(pictures >= 60, "--pictures {pictures}: must be 60 at least");
        ensure!((1..=100).contains(&self.mbps), "--mbps {}: must be 1 to 100", self.mbps);
        let bitrate = Bitrate::from_mbps(self.mbps.into());
        let terms = Terms { pictures, bitrate, round_trip: self.round_trip, seed: self.seed };
        let scene = match &self.clip {
            Some(clip) => Scene::clip(clip, FOOTAGE)?,
            None => Scene::simulated(false, FOOTAGE, self.seed)?,
        };
        tell!("| lost | way | lost, % | damaged, % | PSNR, dB | worst tenth, dB | IDRs | Mbit/s |");
        tell!("|---|---|---|---|---|---|---|---|");
        let patterns = match self.loss {
            Some(loss) => vec![Pattern::Random(loss)],
            None => Pattern::ALL.to_vec(),
        };
        for pattern in patterns {
            for way in WAYS {
                tell!("{}", RecoveryCost::of(&scene, way, pattern, &terms)?);
            }
        }
        Ok(())
    }
}

/// Number of pictures of the scene: two seconds at 60 per second, played forwards and backwards.
const FOOTAGE: usize = 120;
/// Methods of loss recovery without intra refresh, which `--toll` compares.
const WAYS: [LossRecovery; 3] = [
    LossRecovery::AcknowledgedReferences { references: 16 },
    LossRecovery::ReferenceSelection { references: 16 },
    LossRecovery::ReferencesByLoss { references: 16 },
];
