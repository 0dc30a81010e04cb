//! `tautline lab clip`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::time::sleep;

use crate::coding::Coding;
use crate::local_system::{Links, LocalSystem, Setup};
use crate::source::Source;
use crate::stop;

#[derive(Debug, Args)]
pub(crate) struct Clip {
    /// Video file in place of the camera; requires ffmpeg
    #[arg(long, value_name = "FILE")]
    clip: PathBuf,
    /// Links between vehicle and operator
    #[arg(long, value_enum, default_value = "lte-driving")]
    links: Links,
    /// Running time in seconds
    #[arg(long, value_name = "S", default_value_t = 15)]
    seconds: u64,
    /// Folder for the received H.264 streams [default: none, they are discarded]
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    #[command(flatten)]
    coding: Coding,
    /// Seed of the links
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Clip {
    /// Runs the whole system for the given time, or until it is interrupted, compares the received
    /// with the sent pictures, and prints the figures.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let thrown_away = tempfile::tempdir().context("no temporary folder can be made")?;
        let folder = match &self.record {
            Some(folder) => std::path::absolute(folder)?,
            None => thrown_away.path().to_owned(),
        };
        let setup = Setup {
            console: SocketAddr::from(([127, 0, 0, 1], 0)),
            console_names: Vec::new(),
            links: self.links,
            machine: tautline_vehicle::SimulatedMachine::default(),
            source: Source::clip(std::path::absolute(&self.clip)?),
            pictures_per_second: 60.0,
            record: Some(folder.clone()),
            blackbox: None,
            coding: self.coding.clone(),
            seed: self.seed,
        };
        let mut stand = LocalSystem::raise(&setup).await?;
        note!("{} over {:?}, {} s ..", self.clip.display(), self.links, self.seconds);
        tokio::select! {
            () = sleep(Duration::from_secs(self.seconds)) => {}
            () = stop::asked() => {}
            words = stand.ended() => anyhow::bail!(words),
        }
        stand.lower().await;
        note!("comparing ..");
        let figures = tautline_lab::pictures::clip::compare(&self.clip, &folder)?;
        tell!("{figures}");
        Ok(())
    }
}
