//! Measures kernel transports and Tautline's own session under emulated loss.
//!
//! README.md describes what is measured and how. On the host: `grid` lists the cells, `matrix` runs
//! them, `boot` starts a guest for each. In the guest: `guest` sets up the network and starts both
//! ends, `send` and `receive` over kernel sockets, `session` over Tautline's. Back on the host:
//! `measures` evaluates each log, `summary` averages over seeds, `expected` compares with an
//! independent measurement.

mod air;
mod boot;
mod cell;
mod clock;
mod counters;
mod edition;
mod end;
mod expected;
mod grid;
mod guest;
mod host_folder;
mod kept;
mod log;
mod matrix;
mod measures;
mod native;
mod packet;
mod page;
mod place;
mod quic;
mod receive;
mod schedule;
mod send;
mod session;
mod smoke;
mod summary;
mod timed;
mod transport;
mod video;
mod workers;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use tautline_sim::wireless::Power;

use crate::air::Air;
use crate::boot::Host;
use crate::cell::{Cell, Load};
use crate::matrix::Videos;
use crate::measures::Outcome;
use crate::transport::Transport;
use crate::video::Codec;
use crate::workers::Share;

/// Measures kernel transports and Tautline's own session under emulated loss.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the cells of the matrix that have no result yet
    Matrix(Matrix),
    /// Run one cell twice, and show its results
    Cell(One),
    /// Send packets over the loopback interface by every transport that this machine supports
    Smoke,
    /// Entry point of the sending end in the guest
    #[command(hide = true)]
    Send,
    #[command(hide = true)]
    Receive,
    #[command(hide = true)]
    Air,
}

#[derive(clap::Args)]
struct Matrix {
    /// Folder in which `make testbed` put the kernel
    #[arg(long)]
    kernel: PathBuf,
    /// Folder with one file per cell
    #[arg(long)]
    cells: PathBuf,
    /// Output file for the table of constant rates
    #[arg(long)]
    csv: PathBuf,
    /// Output file for the table of videos
    #[arg(long)]
    video_csv: PathBuf,
    /// Output file for the table of constant rates in the wireless network
    #[arg(long)]
    wireless_csv: PathBuf,
    /// Run a part that takes minutes
    #[arg(long)]
    quick: bool,
    /// Only write the tables from existing results
    #[arg(long)]
    table: bool,
    /// Seconds for which packets are offered in each cell; default 20, with --quick 5
    #[arg(long)]
    seconds: Option<u32>,
    /// Only these transports
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Transport>,
    /// Drop lines of an earlier table that have no cell here
    #[arg(long)]
    anew: bool,
    /// Write the tables into docs/transports.md and bench/testbed/README.md in this folder
    #[arg(long, value_name = "FOLDER")]
    pages: Option<PathBuf>,
    /// Number of parallel guests, 1 to 64; more than one needs root, or user namespaces
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
    /// Share of this worker
    #[arg(long, hide = true, value_name = "PLACE/COUNT")]
    share: Option<Share>,
}

#[derive(clap::Args)]
struct One {
    /// Folder in which `make testbed` put the kernel
    #[arg(long)]
    kernel: PathBuf,
    #[arg(value_enum)]
    transport: Transport,
    /// Offered load in kB/s
    #[arg(long, default_value_t = 1200)]
    rate: u32,
    /// Offer a video instead
    #[arg(long, value_enum)]
    video: Option<Codec>,
    /// Loss in percent
    #[arg(long, default_value_t = 1.5)]
    loss: f64,
    /// Round-trip time in milliseconds
    #[arg(long, default_value_t = 20)]
    rtt: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// Replace the wire by the paper's wireless network, at this power in dBm
    #[arg(long, allow_hyphen_values = true)]
    power: Option<i32>,
    /// Without other stations
    #[arg(long)]
    alone: bool,
}

fn main() -> Result<()> {
    // Process 1 is the guest's init: the kernel adds arguments of its own.
    if std::process::id() == 1 {
        return guest::init();
    }
    match Arguments::parse().command {
        Command::Matrix(matrix) => run_matrix(&matrix),
        Command::Cell(one) => run_cell(&one),
        Command::Smoke => smoke::run(),
        Command::Send => guest::send(),
        Command::Receive => guest::receive(),
        Command::Air => guest::carry(),
    }
}

fn run_matrix(matrix: &Matrix) -> Result<()> {
    let mut cells = match matrix.quick {
        true => grid::quick(matrix.seconds.unwrap_or(5)),
        false => grid::whole(matrix.seconds.unwrap_or(20)),
    };
    cells.retain(|cell| matrix.only.is_empty() || matrix.only.contains(&cell.transport));
    if let Some(share) = matrix.share {
        // The parent process writes the tables.
        let host = Host::prepare(&matrix.kernel, share.place())?;
        return matrix::run(&share.of(&cells), &matrix.cells, &host).map(|_| ());
    }
    let outcomes = if matrix.table {
        matrix::read_all(&cells, &matrix.cells)?
    } else if matrix.jobs > 1 {
        workers::run(matrix.jobs)?;
        matrix::read_all(&cells, &matrix.cells)?
    } else {
        matrix::run(&cells, &matrix.cells, &Host::prepare(&matrix.kernel, 0)?)?
    };
    let lines = summary::lines(&outcomes);
    show(&lines);
    let keep = !matrix.anew;
    for (file, told) in [
        (&matrix.csv, kept::update(&lines, &matrix.csv, keep)?),
        (
            &matrix.video_csv,
            kept::update(&summary::video_lines(&outcomes), &matrix.video_csv, keep)?,
        ),
        (
            &matrix.wireless_csv,
            kept::update(&summary::wireless_lines(&outcomes), &matrix.wireless_csv, keep)?,
        ),
    ] {
        let kept::Told { new, kept, replaced, outdated } = told;
        println!(
            "{}: {new} lines of these cells, {kept} of before stay, {replaced} gave way, {outdated} \
             were another edition's",
            file.display()
        );
    }
    if let Some(root) = &matrix.pages {
        let (lines, videos) = (kept::read(&matrix.csv)?, kept::read(&matrix.video_csv)?);
        page::put(&root.join("docs/transports.md"), &page::answer(&videos))?;
        page::put(&root.join("bench/testbed/README.md"), &page::throughput(&lines))?;
    }
    let comparisons = expected::compare(&outcomes);
    for comparison in comparisons.iter().filter(|it| !it.holds()) {
        println!(
            "{}: {} expected, {:.2} measured, {:.2} allowed",
            comparison.what, comparison.expected, comparison.measured.value, comparison.allowed
        );
    }
    let met = comparisons.iter().filter(|it| it.holds()).count();
    println!("{met} of {} figures of the independent measurement are met", comparisons.len());
    println!("{} of {} cells in {}", outcomes.len(), cells.len(), matrix.csv.display());
    expected::judge(&comparisons)
}

fn run_cell(one: &One) -> Result<()> {
    let host = Host::prepare(&one.kernel, 0)?;
    let cell = Cell {
        transport: one.transport,
        load: one.video.map_or(Load::Constant(one.rate), Load::Video),
        loss_percent: one.loss,
        rtt_ms: one.rtt,
        seed: one.seed,
        seconds: one.seconds,
        air: one.power.map(|dbm| air_at(dbm, !one.alone)).transpose()?,
    };
    let mut videos = Videos::default();
    let mut run = || matrix::run_one(&cell, &host, &mut videos);
    let outcomes: [Outcome; 2] = [run()?, run()?];
    println!("{}", serde_json::to_string_pretty(&outcomes[0])?);
    anyhow::ensure!(outcomes[0] == outcomes[1], "the second run differs: {:?}", outcomes[1]);
    println!("the second run is the same");
    Ok(())
}

fn air_at(dbm: i32, disturbed: bool) -> Result<Air> {
    Ok(Air { power: Power::of_dbm(dbm).context("the paper has -20, -35 and -60 dBm")?, disturbed })
}

fn show(lines: &[summary::Line]) {
    println!(
        "{:14} {:>5} {:>5} {:>4} {:>9} {:>7} {:>8} {:>17}",
        "", "kB/s", "loss", "rtt", "received", "+-", "jitter", "owd p50 p99, ms"
    );
    for line in lines {
        println!(
            "{:14} {:5} {:5} {:4} {:9.1} {:7.1} {:8.3} {:8.1} {:8.1}",
            line.transport.to_string(),
            line.rate_kbyte_per_s,
            line.loss_percent,
            line.rtt_ms,
            line.throughput_kbyte_per_s,
            line.throughput_ci,
            line.jitter_ms,
            line.owd_p50_ms,
            line.owd_p99_ms
        );
    }
}
