//! Measures Tautline's erasure codes against others, in one run on one core.
//!
//! Contenders take turns over many rounds, because other work on the machine slows the current one.
//! Every result is verified. Ratios compare figures of the same rounds. README.md describes each
//! peer and how to read its figures.

mod bars;
mod block;
mod clock;
mod isal;
mod limit;
mod measure;
mod memory;
mod random;
mod report;
mod stream;
mod table;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};

use crate::block::{Family, Shape};
use crate::measure::Effort;
use crate::report::Report;

/// Measure Tautline's erasure codes against others.
#[derive(Parser)]
struct Arguments {
    /// Take fewer turns, with only Tautline's best kernel: under 20 seconds, accurate to about 10 %
    #[arg(long)]
    quick: bool,
    /// Measure only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Measure only contenders whose names contain one of these, such as "gfni,ISA-L"
    #[arg(long, value_delimiter = ',')]
    with: Vec<String>,
    /// Repair packets, and source packets lost, in the blocks of 100
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 20, 30, 40, 50])]
    repairs: Vec<usize>,
    /// Packet size in bytes in the blocks of 100; reed-solomon-simd takes part if it is even
    #[arg(long, default_value_t = 1296)]
    bytes: usize,
    /// Bytes from the start of a cache line to a packet's first byte
    #[arg(long, default_value_t = 0)]
    shift: usize,
    /// Turns that every contender takes [default: 40, or 12 with --quick]
    #[arg(long)]
    rounds: Option<usize>,
    /// Output file for the figures [default: peers.csv next to the program]
    #[arg(long)]
    csv: Option<PathBuf>,
    /// Fail unless every bar holds
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Blocks of 100 packets
    Block,
    /// Blocks of the sizes of video slices
    Slice,
    /// Ceilings of the CPU
    Limit,
    /// Streaming codes
    Stream,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let effort = Effort {
        rounds: arguments.rounds.unwrap_or(if arguments.quick { 12 } else { 40 }).max(1),
        turn: Duration::from_micros(if arguments.quick { 300 } else { 2000 }),
    };
    let possible = |repairs: &usize| (1..=100).contains(repairs);
    ensure!(arguments.repairs.iter().all(possible), "--repairs takes numbers from 1 to 100");
    ensure!(arguments.bytes > 0 && arguments.shift < 64, "packets have bytes, lines have 64");
    let wanted = |name: &str, family| match arguments.with.as_slice() {
        [] => !arguments.quick || family != Family::TautlineElsewhere,
        with => with.iter().any(|part| name.contains(part)),
    };
    let mut codes = block::list::codes();
    codes.retain(|code| wanted(&code.name(), code.family()));
    ensure!(!codes.is_empty(), "no contender is called that");
    let wants = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    let mut report = Report::new();
    report.header(effort);
    if wants(Part::Limit) {
        report.limit(&codes, arguments.shift, effort)?;
    }
    if wants(Part::Block) {
        let shapes: Vec<Shape> = arguments
            .repairs
            .iter()
            .map(|&repairs| Shape {
                sources: 100,
                repairs,
                packet_bytes: arguments.bytes,
                shift: arguments.shift,
            })
            .collect();
        report.blocks(&codes, &shapes, effort)?;
    }
    if wants(Part::Slice) {
        report.slices(&codes, arguments.shift, effort)?;
    }
    if wants(Part::Stream) {
        report.streams(wanted, effort)?;
    }
    let csv = arguments.csv.map_or_else(beside_the_program, Ok)?;
    std::fs::File::create(&csv)
        .and_then(|mut file| file.write_all(report.csv().as_bytes()))
        .with_context(|| format!("cannot write {}", csv.display()))?;
    println!("All figures: {}", csv.display());
    ensure!(!arguments.strict || report.all_hold(), "not every bar holds");
    Ok(())
}

fn beside_the_program() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("peers.csv"))
}
