//! libwebrtc's congestion control compared to Tautline's rate control, each alone on a recorded
//! link.
//!
//! Both use the same simulated link, with the same offset into its recording. A WebRTC sender runs
//! the crate goog_cc, a port of libwebrtc's controller, with a pacer and an encoder that follows
//! it. One Tautline session per rate control runs on the same link. The comparison covers the
//! link's utilisation and the packets' delay.

mod call;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use tautline_lab::experiment::Table;
use tautline_lab::plot::{Axis, Plot, Series};
use tautline_lab::record;
use tautline_lab::sweeps::links::combo;
use tautline_lab::sweeps::links::drive::Drive;
use tautline_lab::sweeps::links::set::Set;
use tautline_lab::sweeps::links::trail::{Passage, WARM_UP};
use tautline_units::Instant;

/// Compare Tautline's rate control with libwebrtc's on recorded links
#[derive(Debug, Parser)]
struct Options {
    /// Folder with the Mahimahi recordings, named as in docs/lab.md
    #[arg(long, value_name = "FOLDER", required_unless_present = "recording")]
    traces: Option<PathBuf>,
    /// Recordings of any name and length, each used alone, instead of those in a folder
    #[arg(long, value_name = "FILES", value_delimiter = ',', conflicts_with = "traces")]
    recording: Vec<PathBuf>,
    /// Number of seeds, from 1 on; each has its own offset into every recording
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    seeds: u64,
    /// Length of each run in virtual seconds, warm-up of 2 s included
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    seconds: u64,
    /// The session's deadline in ms, one way; WebRTC's controller has none
    #[arg(long, value_name = "MS", default_value_t = 100)]
    deadline_ms: u64,
    /// Folder for the results
    #[arg(long, value_name = "FOLDER", default_value = "lab/gcc")]
    out: PathBuf,
}

/// Results of one sender on one recording, over all seeds.
struct Measured {
    sender: &'static str,
    /// Bytes received, with their headers, as a share of what the link could carry.
    utilisation: f64,
    /// Rate of all packets received, Mbit/s, with their headers.
    received_mbps: f64,
    /// Rate of the packets received within 100 ms, Mbit/s, with their headers.
    in_time_mbps: f64,
    /// Median, 95th and 99th percentile of the delay of the media packets that arrived, ms.
    delay_ms: [f64; 3],
    /// Share of the media packets that took longer than 100 ms or were lost.
    over_100_ms: f64,
    /// Share of the media packets that were lost.
    lost: f64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    record::create(&options.out)?;
    let mut table = Table::new(
        "gcc",
        [
            "recording",
            "sender",
            "utilisation",
            "received_mbps",
            "in_time_mbps",
            "delay_p50_ms",
            "delay_p95_ms",
            "delay_p99_ms",
            "over_100_ms",
            "lost",
        ],
    );
    let mut plots = Vec::new();
    let sets = match &options.traces {
        Some(folder) => Set::single_recordings(folder)?,
        None => {
            options.recording.iter().map(|file| Set::of_files(&[file])).collect::<Result<_>>()?
        }
    };
    for set in sets {
        println!("{}", set.name);
        let all = compare(&set, &options)?;
        for seen in &all {
            print(seen);
            table.push([
                set.name.as_str().into(),
                seen.sender.into(),
                seen.utilisation.into(),
                seen.received_mbps.into(),
                seen.in_time_mbps.into(),
                seen.delay_ms[0].into(),
                seen.delay_ms[1].into(),
                seen.delay_ms[2].into(),
                seen.over_100_ms.into(),
                seen.lost.into(),
            ]);
        }
        verdict(&all);
        plots.push(plot(&set.name, &all));
    }
    record::write_tables(&options.out, &[table])?;
    record::write_plots(&options.out, &plots)?;
    println!("{}", options.out.display());
    Ok(())
}

/// Runs every sender on one recording, libwebrtc's first.
fn compare(set: &Set, options: &Options) -> Result<Vec<Measured>> {
    let length = Duration::from_secs(options.seconds);
    let mut calls = Vec::new();
    for seed in 1..=options.seeds {
        let link = set.pairs(seed).into_iter().next().context("a set of one link")?;
        calls.extend(call::passages(&link, seed, length)?);
    }
    let mut all = vec![seen(GCC, &calls, set, options)?];
    for combo in OURS {
        let found = combo::all().into_iter().find(|other| other.name == *combo);
        let transport = found.context(*combo)?.transport();
        let mut passages = Vec::new();
        for seed in 1..=options.seeds {
            let mut drive = Drive::new(set.pairs(seed), transport.clone(), seed);
            drive.length = length;
            drive.deadline = Duration::from_millis(options.deadline_ms);
            passages.extend(drive.run_following()?.1);
        }
        all.push(seen(combo, &passages, set, options)?);
    }
    Ok(all)
}

fn seen(
    sender: &'static str,
    passages: &[Passage],
    set: &Set,
    options: &Options,
) -> Result<Measured> {
    let (from, to) = (Instant::ZERO + WARM_UP, Instant::from_millis(options.seconds * 1_000));
    let mut capacity = 0;
    for seed in 1..=options.seeds {
        capacity += set.capacity(seed, 0, from, to).context("a recording")?.get();
    }
    let seconds = to.since(from).as_secs_f64() * options.seeds as f64;
    let (mut received, mut in_time, mut lost, mut late, mut count) = (0, 0, 0_u64, 0_u64, 0_u64);
    let mut delays = Vec::new();
    for passage in passages {
        let delay = passage.arrived.map(|at| at.since(passage.at));
        let within = delay.is_some_and(|delay| delay <= BOUND);
        // Packets that arrive after the end used capacity that is not counted.
        if passage.arrived.is_some_and(|at| at < to) {
            received += passage.bytes.get() + HEADERS;
            in_time += if within { passage.bytes.get() + HEADERS } else { 0 };
        }
        // Pings would bias the percentiles where little else is sent.
        if passage.media {
            count += 1;
            lost += u64::from(delay.is_none());
            late += u64::from(!within);
            delays.extend(delay.map(|delay| delay.as_secs_f64() * 1e3));
        }
    }
    delays.sort_by(f64::total_cmp);
    let last = delays.len().saturating_sub(1) as f64;
    let quantile = |q: f64| delays.get((last * q).round() as usize).copied().unwrap_or(f64::NAN);
    let mbps = |bytes: u64| bytes as f64 * 8.0 / 1e6 / seconds;
    Ok(Measured {
        sender,
        utilisation: received as f64 / capacity as f64,
        received_mbps: mbps(received),
        in_time_mbps: mbps(in_time),
        delay_ms: [0.5, 0.95, 0.99].map(quantile),
        over_100_ms: late as f64 / count as f64,
        lost: lost as f64 / count as f64,
    })
}

fn print(seen: &Measured) {
    let [p50, p95, p99] = seen.delay_ms;
    println!(
        "  {:30} utilisation {:.2}, {:6.3} Mbit/s, {:6.3} within 100 ms; \
         p50 {p50:5.0} p95 {p95:6.0} p99 {p99:6.0} ms; over 100 ms {:.3}, lost {:.4}",
        seen.sender,
        seen.utilisation,
        seen.received_mbps,
        seen.in_time_mbps,
        seen.over_100_ms,
        seen.lost,
    );
}

/// Prints whether the last sender has a higher utilisation than the first, and whether its 95th
/// percentile of the delay is no higher.
fn verdict(all: &[Measured]) {
    let (Some(gcc), Some(ours)) = (all.first(), all.last()) else { return };
    let more = if ours.utilisation > gcc.utilisation { "higher" } else { "LOWER" };
    let sooner = if ours.delay_ms[1] <= gcc.delay_ms[1] { "no higher" } else { "HIGHER" };
    println!("  {}: {more} utilisation, {sooner} p95 than libwebrtc's\n", ours.sender);
}

fn plot(name: &str, all: &[Measured]) -> Plot {
    let marks = all
        .iter()
        .map(|seen| Series::points(seen.sender, vec![(seen.delay_ms[1], seen.utilisation)]));
    let x = Axis::log("delay of packets, 95th percentile, ms");
    let y = Axis::linear("share of the capacity used").range(0.0, 1.0);
    Plot::new(&format!("gcc-{name}"), name, x, y).with_all(marks)
}

const GCC: &str = "libwebrtc's GCC";
/// Tautline's configurations that are compared with libwebrtc; [`verdict`] is about the last one.
const OURS: &[&str] =
    &["two-state/quantile/0.5", "delay-rate/earliest/uncoded", "delay-rate/quantile/0.5"];
const BOUND: Duration = Duration::from_millis(100);
/// Bytes of the IPv4 (20) and UDP (8) headers of a packet.
const HEADERS: u64 = 28;
