//! `tautline lab mtu`: packet sizes over modelled links.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use tautline_lab::experiment::Progress;
use tautline_lab::record;
use tautline_lab::sweeps::packet_size::sweep::Sweep;
use tautline_lab::sweeps::packet_size::{self, Recommendation, Size, Trial};
use tautline_sim::link::Pair;
use tautline_sim::preset::Preset;
use tautline_units::{Bitrate, ByteCount, Duration};

use super::progress::Line;
use crate::settings;

/// Sweep packet sizes over a modelled link: delay bins, and the recommended size
///
/// Two sessions run in virtual time, with media from the vehicle and commands to it. First every
/// size from the vehicle is tried, then every size to it, with the best of the former. "vehicle
/// only" are media units, "operator only" commands. "end to end" is the time from a command to the
/// arrival of the first media unit sent after the command arrived. The model carries any size; the
/// limit of a real path, usually 1472 bytes, has precedence. Writes the bins as CSV, and plots,
/// into a folder.
#[derive(Debug, Args)]
pub(crate) struct Mtu {
    /// Model of the vehicle's link; the operator is wired
    #[arg(long, default_value = "lte-driving")]
    preset: Preset,
    /// TOML file with the vehicle's link, in place of the preset: tables up and down, with fields
    /// as in docs/emulate.md
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    link: Option<PathBuf>,
    /// Datagram sizes in bytes, 150 to 1500, without the headers of IP and UDP
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "150,200,300,400,500,600,800,1000,1200,1350,1500",
        default_value_if("quick", "true", "150,400,800,1200,1500"),
        value_parser = clap::value_parser!(u64).range(150..=1500)
    )]
    sizes: Vec<u64>,
    /// Size in bytes to the vehicle while those from it are tried
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1200,
        value_parser = clap::value_parser!(u64).range(150..=1500)
    )]
    down: u64,
    /// Media units per second: 360 are six slices of 60 pictures
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 360,
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    units: u64,
    /// Maximum rate of the media source in kbit/s
    #[arg(long, value_name = "KBPS", default_value_t = 8_000)]
    most: u64,
    /// Number of runs per size, all under the same conditions
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 8,
        default_value_if("quick", "true", "3"),
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    rounds: u64,
    /// Length of each run in virtual seconds, including the warm-up of 3 s
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        default_value_if("quick", "true", "10"),
        value_parser = clap::value_parser!(u64).range(5..)
    )]
    seconds: u64,
    /// Use 5 sizes, 3 rounds and 10 s, unless set otherwise
    #[arg(long)]
    quick: bool,
    /// Seed of every random number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for the results
    #[arg(long, value_name = "FOLDER", default_value = "lab/mtu")]
    out: PathBuf,
}

impl Mtu {
    /// Sweeps both directions, writes and prints the bins, and recommends a size.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let sweep = self.sweep()?;
        record::create(&self.out)?;
        let up: Vec<Size> = self.sizes.iter().map(|bytes| size(*bytes, self.down)).collect();
        let up = tried(&sweep, "mtu up", &up)?;
        let best_up = tell(&self.out, "up", "from the vehicle", &up, |size| size.up.get() as f64)?;
        let best_bytes = best_up.size.up.get();
        let down: Vec<Size> = self.sizes.iter().map(|bytes| size(best_bytes, *bytes)).collect();
        let down = tried(&sweep, "mtu down", &down)?;
        tell(&self.out, "down", "to the vehicle", &down, |size| size.down.get() as f64)?;
        tell!("{}", self.out.display());
        Ok(())
    }

    fn sweep(&self) -> anyhow::Result<Sweep> {
        let link = match &self.link {
            Some(file) => read(file)?,
            None => self.preset.pair(),
        };
        let length = Duration::from_secs(self.seconds);
        Ok(Sweep {
            units_per_second: self.units,
            rate_max: Bitrate::from_kbps(self.most),
            ..Sweep::over(link, self.rounds, length, self.seed)
        })
    }
}

/// Writes and prints the bins of one direction, and returns the recommended size; fails if no
/// message went from end to end. `words` describes the direction; `at` returns a size's position on
/// the plot's axis.
pub(crate) fn tell(
    out: &Path,
    direction: &str,
    words: &str,
    trials: &[Trial],
    at: fn(Size) -> f64,
) -> anyhow::Result<Recommendation> {
    let name = format!("bins-{direction}");
    let title = format!("Control in time over the size of packets {words}");
    record::write_tables(out, &[packet_size::table(&name, trials)])?;
    let axis = format!("bytes {words}");
    record::write_plots(out, &[packet_size::plot(&name, &title, trials, &axis, at)])?;
    let recommendation = Recommendation::of(trials)
        .context("no message went from end to end: the link may be dead")?;
    tell!("Packets {words}\n{}\n{recommendation}\n", packet_size::text(trials));
    Ok(recommendation)
}

fn tried(sweep: &Sweep, name: &'static str, sizes: &[Size]) -> anyhow::Result<Vec<Trial>> {
    let line = Line::new(name);
    let trials =
        sweep.trials(sizes, |done, total, what| line.show(Progress { done, total, what }))?;
    line.clear();
    Ok(trials)
}

fn read(file: &Path) -> anyhow::Result<Pair> {
    let mut pair: Pair = settings::read(file)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    for direction in [&mut pair.up, &mut pair.down] {
        direction.load_files(folder)?;
        direction.validate()?;
    }
    Ok(pair)
}

fn size(up: u64, down: u64) -> Size {
    Size { up: ByteCount::new(up), down: ByteCount::new(down) }
}
