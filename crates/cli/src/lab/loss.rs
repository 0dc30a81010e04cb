//! `tautline lab loss`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use tautline_lab::sweeps::loss::{self, Faults};

/// Lose slices at random and check that no decoder ever stops, and that each strip recovers
///
/// Every encoder of this build codes a strip, and recovers in each of its ways by what the receiver tells;
/// openh264 and ffmpeg decode what is left.
#[derive(Debug, Args)]
pub(crate) struct Loss {
    /// Pictures to code
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pictures: usize,
    /// Probability of a slice to be lost
    #[arg(long, value_name = "P", default_value_t = 0.05)]
    loss: f64,
    /// Pictures from a slice's arrival until the vehicle knows of it: 6 are 100 ms at 60 a second
    #[arg(long, value_name = "N", default_value_t = 6)]
    round_trip: usize,
    /// Seed of what is lost
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder to keep the streams in, for decoders elsewhere [default: none]
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

impl Loss {
    /// Runs and prints a line for every encoder.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        ensure!((0.0..=0.9).contains(&self.loss), "--loss {}: must be 0 to 0.9", self.loss);
        ensure!(self.round_trip <= 60, "--round-trip {}: must be 0 to 60", self.round_trip);
        let Self { pictures, loss, round_trip, seed, .. } = self;
        let faults = Faults { pictures, loss, round_trip, seed };
        for way in loss::run(faults, self.keep.as_deref())? {
            println!("{way}");
        }
        Ok(())
    }
}
