//! Measures serialization codecs on the paper's lidar message and on Tautline's own, in one run.
//!
//! README.md describes each codec and how to read its figures.

mod aligned;
mod clock;
mod codec;
mod guarded;
mod hostile;
mod measure;
mod memory;
mod normal;
mod own;
mod published;
mod real;
mod report;

macro_rules! generated {
    ($($name:ident = $path:literal;)*) => {$(
        #[rustfmt::skip]
        #[allow(warnings, clippy::all, unsafe_code, clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]
        #[path = $path]
        mod $name;
    )*};
}

generated! {
    lidar_capnp = "generated/lidar_capnp.rs";
    lidar_generated = "generated/lidar_generated.rs";
    lidar_quick = "generated/lidar_quick.rs";
    lidar_thrift = "generated/lidar_thrift.rs";
}

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand, ValueEnum};

use crate::codec::list::{self, Entry};
use crate::measure::{Effort, NOOP};
use crate::report::Report;

/// Measure serialization codecs on the paper's lidar message and on Tautline's own.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    inner: Option<Inner>,
    /// Take fewer turns: accurate to about 10 %
    #[arg(long)]
    quick: bool,
    /// Measure only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Measure only codecs whose names contain one of these, such as "Tautline,FlatBuffers"
    #[arg(long, value_delimiter = ',')]
    with: Vec<String>,
    /// Number of points in the table's message
    #[arg(long, default_value_t = 10_000)]
    points: usize,
    /// Mutated messages per codec
    #[arg(long, default_value_t = 20_000)]
    hostile: u64,
    /// Folder with recordings to measure as well
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Output file for the figures
    #[arg(long, default_value = "codecs.csv")]
    csv: PathBuf,
}

#[derive(Subcommand)]
enum Inner {
    /// Entry point of the child process
    #[command(hide = true)]
    HostileChild { name: String, seed: u64, from: u64, to: u64 },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The table: five metrics, cold and hot data, steps, and why the ranking differs today
    Table,
    /// Round trips over the number of points
    Sizes,
    /// Mutated messages
    Hostile,
    /// Recordings
    Real,
    /// Commands and telemetry
    Own,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Inner::HostileChild { name, seed, from, to }) = arguments.inner {
        return hostile::child(&name, seed, from, to);
    }
    let effort = Effort {
        rounds: if arguments.quick { 15 } else { 100 },
        turn: Duration::from_micros(if arguments.quick { 50 } else { 150 }),
    };
    let mut entries = list::all();
    let wanted = |entry: &Entry| {
        let named = arguments.with.iter().any(|part| entry.name.contains(part));
        arguments.with.is_empty() || named || entry.name == NOOP
    };
    entries.retain(wanted);
    ensure!(entries.len() > 1, "no codec is called that");
    let wants = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    let mut report = Report::new();
    if wants(Part::Hostile) {
        report.hostile(&entries, arguments.hostile)?;
    }
    if wants(Part::Sizes) {
        report.sizes(&entries, effort)?;
    }
    if wants(Part::Own) {
        report.own(effort)?;
    }
    if wants(Part::Real) {
        report.real(&entries, &arguments.data, effort)?;
    }
    // Last, because it is the main result.
    if wants(Part::Table) {
        report.table(&entries, arguments.points, effort)?;
    }
    std::fs::write(&arguments.csv, report.csv())
        .with_context(|| format!("cannot write {}", arguments.csv.display()))?;
    println!("All figures: {}", arguments.csv.display());
    Ok(())
}
