//! Tables for readers, and every figure as CSV.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use crate::codec::list::{self, Entry};
use crate::hostile::{self, Counts};
use crate::measure::{self, Effort, Heat, Limits, METRICS, NOOP, PHASES, Timing};
use crate::normal::Cloud;
use crate::{own, published, real};

/// Results of a run so far.
pub(crate) struct Report {
    csv: String,
    hostile: Vec<(&'static str, Counts)>,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { csv: "part,codec,case,metric,value,unit\n".to_owned(), hostile: Vec::new() }
    }

    /// Returns every figure so far as CSV, one per line.
    pub(crate) fn csv(&self) -> &str {
        &self.csv
    }

    fn line(&mut self, part: &str, codec: &str, case: &str, metric: &str, value: f64, unit: &str) {
        // Unmeasured values have no line.
        if !value.is_finite() {
            return;
        }
        let _ = writeln!(self.csv, "{part},\"{codec}\",{case},{metric},{value},{unit}");
    }

    /// Prints the outcomes of mutated messages, each codec in a separate process.
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

    /// Prints the steps, the table cold and hot, the paper's figures, and the ranking.
    pub(crate) fn table(&mut self, entries: &[Entry], points: usize, effort: Effort) -> Result<()> {
        let cloud = Cloud::of(points);
        self.phases(entries, &cloud, "hot", effort);
        for (heat, case) in [(Heat::Cold, "cold"), (Heat::Hot, "hot")] {
            let (timings, limits) = measure::run(entries, &cloud, heat, effort)?;
            println!("{points} points, {case}: microseconds (times memcpy)");
            self.limits(&limits, case);
            self.print(entries, &timings, case, limits.memcpy);
            if heat == Heat::Hot {
                self.ranking(&timings);
                firsts(entries, &timings, &self.hostile);
            }
        }
        Ok(())
    }

    fn limits(&mut self, limits: &Limits, case: &str) {
        let Limits { memcpy, fresh, read } = *limits;
        let [copy, new, look] = [memcpy, fresh, read].map(micros);
        println!("memcpy {copy}, into new memory {new}; read {look}");
        self.line("table", "memcpy", case, "copy", memcpy, "s");
        self.line("table", "memcpy", case, "fresh", fresh, "s");
        self.line("table", "read", case, "read", read, "s");
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
                let ratio = seconds / memcpy;
                let ratio = if ratio.is_finite() { format!("({ratio:.2})") } else { String::new() };
                print!(" {:>9} {ratio:>7}", micros(seconds));
                self.line("table", timing.name, case, metric, seconds, "s");
            }
            match published::of(entry.name) {
                Some(paper) => {
                    println!("   {}", paper.micros.map(|time| time.to_string()).join(" / "))
                }
                None => println!(),
            }
        }
        for (name, needs) in list::skipped() {
            println!("{name:24} skipped: needs {needs}");
        }
        println!("e: evolves; c: checked; x: crashed, spun or grew under mutated messages\n");
    }

    fn mark(&self, name: &str) -> &'static str {
        match self.hostile.iter().find(|(known, _)| *known == name) {
            Some((_, counts)) if !counts.clean() => "x",
            _ => " ",
        }
    }

    /// Prints the paper's codecs in today's order, with their rank in the paper, and the reason for
    /// the difference.
    fn ranking(&self, timings: &[Timing]) {
        let mut paper: Vec<_> = published::table_1().collect();
        let round_trip = |five: &[f64; 5]| five[0] + five[1];
        paper.sort_by(|a, b| round_trip(&a.micros).total_cmp(&round_trip(&b.micros)));
        let here = |name: &str| {
            let timing = timings.iter().find(|timing| timing.name == name);
            timing.map(|timing| timing.seconds[0] + timing.seconds[1])
        };
        let mut lines: Vec<_> =
            paper.iter().zip(1..).map(|(line, place)| (here(line.here), place, line)).collect();
        lines.sort_by(|a, b| a.0.unwrap_or(f64::INFINITY).total_cmp(&b.0.unwrap_or(f64::INFINITY)));
        println!("Encode and decode, microseconds: the paper's codecs in today's order, and why");
        println!("{:24} {:>12} {:>12} {:>7}", "", "here", "paper", "faster");
        for ((seconds, place, line), now) in lines.into_iter().zip(1..) {
            let published = round_trip(&line.micros);
            let here = seconds.map_or("not here".to_owned(), |s| format!("{now}. {:.1}", s * 1e6));
            let gain = seconds.map_or(String::new(), |s| format!("{:.1} x", published / s * 1e-6));
            let paper = format!("{place}. {published:.1}");
            println!("{:24} {here:>12} {paper:>12} {gain:>7}   {}", line.here, line.why);
        }
        println!();
    }

    /// Prints the conversion steps of codecs with their own structures.
    fn phases(&mut self, entries: &[Entry], cloud: &Cloud, case: &str, effort: Effort) {
        let phases = measure::phases(entries, cloud, effort);
        if phases.is_empty() {
            return;
        }
        println!("Codecs with structures of their own, microseconds");
        println!(
            "{:24} {:>10} {:>10} {:>10} {:>10}",
            "", "normal>own", "own>bytes", "bytes>own", "own>normal"
        );
        for (name, seconds) in phases {
            print!("{name:24}");
            for (phase, seconds) in PHASES.iter().zip(seconds) {
                print!(" {:>10}", micros(seconds));
                self.line("phases", name, case, phase, seconds, "s");
            }
            println!();
        }
        println!();
    }

    /// Prints round trips over the number of points.
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

    /// Prints commands and telemetry.
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

    /// Prints the results of the available recordings.
    pub(crate) fn real(&mut self, entries: &[Entry], data: &Path, effort: Effort) -> Result<()> {
        let effort = Effort { rounds: effort.rounds / 3 + 1, ..effort };
        for scan in real::SCANS {
            let Some(cloud) = real::scan(&data.join("lidar").join(scan))? else {
                println!("skipped: {scan} is not in {}\n", data.display());
                continue;
            };
            let (timings, limits) = measure::run(entries, &cloud, Heat::Hot, effort)?;
            println!("{scan}: {} points, microseconds (times memcpy)", cloud.points.len());
            self.limits(&limits, scan);
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

/// Prints the ratio of Tautline's message to the best of the codecs that evolve and are safe.
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
    if !seconds.is_finite() {
        return "-".to_owned();
    }
    let micros = seconds * 1e6;
    if micros < 0.1 { format!("{micros:.4}") } else { format!("{micros:.2}") }
}

const SEED: u64 = 5;
const SIZES: [usize; 7] = [0, 1, 10, 100, 1000, 10_000, 100_000];
const HOSTILE: [&str; 8] =
    ["read", "refused", "panicked", "aborted", "segfaults", "greedy", "slow", "hung"];
