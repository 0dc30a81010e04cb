//! Tables for people, and every figure as CSV.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use crate::codec::Entry;
use crate::hostile::{self, Counts};
use crate::measure::{self, Effort, Heat, METRICS, NOOP, Timing};
use crate::normal::Cloud;
use crate::{own, published, real};

/// What a run has found so far.
pub(crate) struct Report {
    csv: String,
    hostile: Vec<(&'static str, Counts)>,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { csv: "part,codec,case,metric,value,unit\n".to_owned(), hostile: Vec::new() }
    }

    /// Every figure, a line each.
    pub(crate) fn csv(&self) -> &str {
        &self.csv
    }

    fn line(&mut self, part: &str, codec: &str, case: &str, metric: &str, value: f64, unit: &str) {
        let _ = writeln!(self.csv, "{part},\"{codec}\",{case},{metric},{value},{unit}");
    }

    /// Mutated messages, each codec in a process of its own.
    pub(crate) fn hostile(&mut self, entries: &[Entry], count: u64) -> Result<()> {
        println!("{count} mutated messages of 3, 40 and 200 points for each codec");
        println!(
            "{:24} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
            "", "read", "refused", "panic", "abort", "segv", "greedy", "slow", "hung"
        );
        for entry in entries.iter().filter(|entry| entry.name != NOOP) {
            let counts = hostile::run(entry.name, SEED, count)?;
            let Counts { read, refused, panicked, aborted, segfaults, greedy, slow, hung } = counts;
            let all = [read, refused, panicked, aborted, segfaults, greedy, slow, hung];
            print!("{:24}", entry.name);
            for (number, name) in all.into_iter().zip(HOSTILE) {
                print!(" {number:>7}");
                self.line("hostile", entry.name, "", name, number as f64, "messages");
            }
            println!();
            self.hostile.push((entry.name, counts));
        }
        println!(
            "segv counts reads beyond the message's end; a codec is given up after 100 deaths, 12 slow or 3 hung.\n"
        );
        Ok(())
    }

    /// The table, hot and cold, with the paper's figures and the ranking beside.
    pub(crate) fn table(&mut self, entries: &[Entry], points: usize, effort: Effort) -> Result<()> {
        let cloud = Cloud::of(points);
        for (heat, case) in [(Heat::Hot, "hot"), (Heat::Cold, "cold")] {
            let (timings, limits) = measure::run(entries, &cloud, heat, effort)?;
            println!("{points} points, {case}: microseconds (times memcpy)");
            println!("memcpy {:.2}   read {:.2}", limits.memcpy * 1e6, limits.read * 1e6);
            self.line("table", "memcpy", case, "copy", limits.memcpy, "s");
            self.line("table", "read", case, "read", limits.read, "s");
            self.print(entries, &timings, case, limits.memcpy);
            if heat == Heat::Hot {
                self.ranking(entries, &timings);
                firsts(entries, &timings, &self.hostile);
            }
        }
        Ok(())
    }

    fn print(&mut self, entries: &[Entry], timings: &[Timing], case: &str, memcpy: f64) {
        print!("{:24} {:>8} {:4}", "", "bytes", "");
        METRICS.iter().for_each(|metric| print!(" {metric:>17}"));
        println!("   paper's five");
        for (entry, timing) in entries.iter().zip(timings) {
            let evolves = if entry.traits.evolves { "e" } else { "-" };
            let checked = if entry.traits.checked { "c" } else { "-" };
            print!(
                "{:24} {:>8} {evolves}{checked}{} ",
                timing.name,
                timing.bytes,
                self.mark(entry.name)
            );
            self.line("table", timing.name, case, "bytes", timing.bytes as f64, "B");
            for (metric, seconds) in METRICS.iter().zip(timing.seconds) {
                print!(" {:>9} {:>7}", micros(seconds), format!("({:.2})", seconds / memcpy));
                self.line("table", timing.name, case, metric, seconds, "s");
            }
            match entry.published.and_then(published::of) {
                Some(five) => println!("   {}", five.map(|time| time.to_string()).join(" / ")),
                None => println!(),
            }
        }
        println!("e: evolves; c: checked; x: crashed, spun or grew under mutated messages\n");
    }

    fn mark(&self, name: &str) -> &'static str {
        match self.hostile.iter().find(|(known, _)| *known == name) {
            Some((_, counts)) if !counts.clean() => "x",
            _ => " ",
        }
    }

    /// The paper's codecs in its order and in ours, by the sum of encode and decode.
    fn ranking(&mut self, entries: &[Entry], timings: &[Timing]) {
        let both = entries.iter().zip(timings).filter_map(|(entry, timing)| {
            let [encode, decode, ..] = entry.published.and_then(published::of)?;
            Some((entry.name, encode + decode, timing.seconds[0] + timing.seconds[1]))
        });
        let both: Vec<(&str, f64, f64)> = both.collect();
        let mut paper = both.clone();
        paper.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut here = both;
        here.sort_by(|a, b| a.2.total_cmp(&b.2));
        println!("Round trip, fastest first     paper, us                          here, us");
        for ((old, theirs, _), (new, _, ours)) in paper.iter().zip(&here) {
            println!("{:24} {theirs:>10.1}        {new:24} {:>10}", old, micros(*ours));
        }
        println!();
    }

    /// Round trips over the number of points.
    pub(crate) fn sizes(&mut self, entries: &[Entry], effort: Effort) -> Result<()> {
        println!("Encode and sum, microseconds");
        let effort = Effort { rounds: effort.rounds / 3 + 1, ..effort };
        let mut columns = Vec::new();
        for points in SIZES {
            let (timings, _) = measure::run(entries, &Cloud::of(points), Heat::Hot, effort)?;
            for timing in &timings {
                for (metric, seconds) in METRICS.iter().zip(timing.seconds) {
                    self.line("sizes", timing.name, &points.to_string(), metric, seconds, "s");
                }
            }
            columns.push(timings);
        }
        print!("{:24}", "points");
        SIZES.iter().for_each(|points| print!(" {points:>10}"));
        println!();
        for (at, entry) in entries.iter().enumerate() {
            print!("{:24}", entry.name);
            for column in &columns {
                print!(" {:>10}", micros(column[at].seconds[0] + column[at].seconds[2]));
            }
            println!();
        }
        println!();
        Ok(())
    }

    /// Commands and telemetry.
    pub(crate) fn own(&mut self, effort: Effort) -> Result<()> {
        println!("Our small messages, nanoseconds: encode / decode, whole, verified and checked");
        for own::Timing { name, bytes, encode, decode } in own::run(effort) {
            println!("{name:24} {bytes:>6} bytes {:>8.0} {:>8.0}", encode * 1e9, decode * 1e9);
            self.line("own", name, "", "encode", encode, "s");
            self.line("own", name, "", "decode", decode, "s");
        }
        println!();
        Ok(())
    }

    /// Recordings, as far as they are there.
    pub(crate) fn real(&mut self, entries: &[Entry], data: &Path, effort: Effort) -> Result<()> {
        let effort = Effort { rounds: effort.rounds / 3 + 1, ..effort };
        for scan in real::SCANS {
            let Some(cloud) = real::scan(&data.join("lidar").join(scan))? else {
                println!("skipped: {scan} is not in {}\n", data.display());
                continue;
            };
            let (timings, limits) = measure::run(entries, &cloud, Heat::Hot, effort)?;
            println!("{scan}: {} points, microseconds (times memcpy)", cloud.points.len());
            println!("memcpy {:.2}   read {:.2}", limits.memcpy * 1e6, limits.read * 1e6);
            self.line("table", "memcpy", scan, "copy", limits.memcpy, "s");
            self.print(entries, &timings, scan, limits.memcpy);
        }
        let log = data.join("can").join(real::CAN);
        let Some(frames) = real::can(&log)? else {
            println!("skipped: {} is not in {}\n", real::CAN, data.display());
            return Ok(());
        };
        println!("{}: {} frames, nanoseconds a frame", real::CAN, frames.len());
        for (name, bytes, encode, decode) in real::time_frames(&frames, effort.rounds)? {
            println!("{name:24} {bytes:>6.1} bytes {:>8.1} {:>8.1}", encode * 1e9, decode * 1e9);
            self.line("can", name, "", "encode", encode, "s");
            self.line("can", name, "", "decode", decode, "s");
        }
        println!();
        Ok(())
    }
}

/// Says how far Tautline's message is from the first of those that evolve and are safe.
fn firsts(entries: &[Entry], timings: &[Timing], hostile: &[(&'static str, Counts)]) {
    let Some(ours) = timings.iter().find(|timing| timing.name == "Tautline") else { return };
    let safe = |entry: &Entry| {
        let known = hostile.iter().find(|(name, _)| *name == entry.name);
        entry.traits.evolves && entry.traits.checked && known.is_none_or(|(_, c)| c.clean())
    };
    println!("Tautline among the safe that evolve (all but those marked - or x):");
    for (at, metric) in METRICS.iter().enumerate() {
        let rivals = entries.iter().zip(timings);
        let first = rivals
            .filter(|(entry, timing)| safe(entry) && timing.name != ours.name)
            .min_by(|(_, a), (_, b)| a.seconds[at].total_cmp(&b.seconds[at]));
        let Some((entry, first)) = first else { continue };
        let ratio = ours.seconds[at] / first.seconds[at];
        let verdict = if ratio <= 1.1 { "first or tied" } else { "behind" };
        println!("{metric:>8}: {ratio:.2} times {}: {verdict}", entry.name);
    }
    println!();
}

fn micros(seconds: f64) -> String {
    let micros = seconds * 1e6;
    if micros < 0.1 { format!("{micros:.4}") } else { format!("{micros:.2}") }
}

const SEED: u64 = 5;
const SIZES: [usize; 7] = [0, 1, 10, 100, 1000, 10_000, 100_000];
const HOSTILE: [&str; 8] =
    ["read", "refused", "panicked", "aborted", "segfaults", "greedy", "slow", "hung"];
