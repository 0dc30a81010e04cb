//! `tautline latency`.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use tautline_blackbox::utc;
use tautline_net::file::Input;
use tautline_net::latency::{self, BINS, Leg, Line, Malformed, Spikes, Summary};

/// Summarize files of latency from switchboard, relay and operator.
///
/// Prints rows for each leg, far end and link: round trips and, if the far end reports its time,
/// the one-way delays to it (out) and from it (in). Columns: percentiles and the maximum in
/// milliseconds; the shares below 125, 250, 375 and 500 ms; the share of 1 s and more. For delays
/// of 1 s and more also: how often the delay rose that far, the number of answers per rise, and the
/// seconds between rises. The last columns are the error of the clock comparison, in half of the
/// answers and at worst: "out" is too long by as much as "in" is too short.
#[derive(Debug, Args)]
pub(crate) struct Latency {
    /// Files to read, or folders of files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one line of JSON per row
    #[arg(long)]
    json: bool,
    /// Show the distribution of the round trips, in steps that double
    #[arg(long, conflicts_with = "json")]
    histogram: bool,
}

/// Content of all files read: samples by leg, far end and link, and counts of what is missing.
#[derive(Debug, Default)]
struct Found {
    tracks: BTreeMap<(Leg, String, String), Track>,
    /// Samples that the writing process dropped, as the files say.
    lost: u64,
    /// Number of lines cut off by the end of a file.
    unfinished: u64,
    malformed: u64,
    /// File, line number and error of the first malformed line.
    first: Option<String>,
}

/// Samples of one link to one far end.
#[derive(Debug, Default)]
struct Track {
    samples: Vec<Measured>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    sent_us: u64,
    round_trip_us: u64,
    /// Delay of the outbound direction and the error of the clock comparison, both in microseconds;
    /// `None` if the far end reported no time or the clocks were not compared.
    out_us: Option<(i64, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Delay {
    RoundTrip,
    Out,
    In,
}

/// Content of one row: one kind of delay of one link.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Row {
    delay: Delay,
    summary: Summary,
    spikes: Spikes,
    /// Error of the clock comparison, its median and maximum over the samples; `None` for round
    /// trips.
    error: Option<[Duration; 2]>,
}

impl Latency {
    /// Reads all files and prints their summary; fails if lines were malformed or nothing was
    /// measured.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut found = Found::default();
        for file in self.all_files()? {
            let opened = Input::open(&file);
            let opened = opened.with_context(|| format!("cannot read {}", file.display()))?;
            found.read(BufReader::new(opened), &file)?;
        }
        if !self.json && !found.tracks.is_empty() {
            print(HEAD);
        }
        for (name, track) in &mut found.tracks {
            match self.json {
                true => track.rows().iter().for_each(|row| print(&row.to_json(name).to_string())),
                false => print(track.told(name, self.histogram).trim_end()),
            }
        }
        found.judge()
    }

    fn all_files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for file in &self.files {
            if !file.is_dir() {
                files.push(file.clone());
                continue;
            }
            let within = latency::files_in(file);
            let within = within.with_context(|| format!("cannot read {}", file.display()))?;
            ensure!(!within.is_empty(), "{} holds no files of latency", file.display());
            files.extend(within.into_iter().map(|(_, file)| file));
        }
        Ok(files)
    }
}

impl Found {
    fn read(&mut self, input: impl std::io::BufRead, file: &Path) -> anyhow::Result<()> {
        let read = latency::read(input, |number, line| match line {
            Ok(line) => self.take(&line),
            Err(Malformed::Unfinished) => self.unfinished += 1,
            Err(malformed) => {
                self.malformed += 1;
                self.first
                    .get_or_insert_with(|| format!("{}:{number}: {malformed}", file.display()));
            }
        });
        read.with_context(|| format!("cannot read {}", file.display()))
    }

    fn take(&mut self, line: &Line) {
        let sample = &line.sample;
        self.lost = self.lost.saturating_add(line.lost);
        let track = (sample.leg, sample.peer.to_string(), sample.link.to_string());
        self.tracks.entry(track).or_default().samples.push(Measured {
            sent_us: micros(sample.sent_at),
            round_trip_us: micros(sample.round_trip()),
            out_us: sample.one_way.map(|way| (way.out_nanos / 1_000, micros(way.error))),
        });
    }

    /// Prints how many samples are missing; fails if lines were malformed or there are no samples.
    fn judge(self) -> anyhow::Result<()> {
        if self.lost > 0 {
            note!("{} samples were not written: the disk was too slow, or full", self.lost);
        }
        if self.unfinished > 0 {
            note!("{} times a file ends within a line, which is left out", self.unfinished);
        }
        if let Some(first) = self.first {
            bail!("malformed lines left out: {}; the first is {first}", self.malformed);
        }
        ensure!(!self.tracks.is_empty(), "nothing was measured");
        Ok(())
    }
}

impl Track {
    /// Returns a row for each kind of delay of which there are samples.
    fn rows(&mut self) -> Vec<Row> {
        // Files may be given in any order, and answers may overtake each other.
        self.samples.sort_by_key(|sample| sample.sent_us);
        [Delay::RoundTrip, Delay::Out, Delay::In]
            .into_iter()
            .filter_map(|delay| {
                let known = self.samples.iter().filter_map(|it| delay.of(it));
                let mut delays: Vec<Duration> = known.collect();
                let spikes = Spikes::of(delays.iter().copied());
                Some(Row {
                    delay,
                    summary: Summary::of(&mut delays)?,
                    spikes,
                    error: self.error(delay),
                })
            })
            .collect()
    }

    fn error(&self, delay: Delay) -> Option<[Duration; 2]> {
        if delay == Delay::RoundTrip {
            return None;
        }
        let errors = self.samples.iter().filter_map(|it| Some(Duration::from_micros(it.out_us?.1)));
        let summary = Summary::of(&mut errors.collect::<Vec<_>>())?;
        Some([summary.p50, summary.max])
    }

    /// Returns the Unix time of the first sample in microseconds, and the time from it to the last
    /// one; the samples must be sorted.
    fn span(&self) -> (u64, Duration) {
        let first = self.samples.first().map_or(0, |it| it.sent_us);
        let last = self.samples.last().map_or(0, |it| it.sent_us);
        (first, Duration::from_micros(last.saturating_sub(first)))
    }

    fn told(&mut self, (leg, peer, link): &(Leg, String, String), histogram: bool) -> String {
        let rows = self.rows();
        let (from, span) = self.span();
        let link = if link.is_empty() { String::new() } else { format!(" by {link}") };
        let mut told = format!(
            "\n{} {peer}{link}, {:.0} s from {}\n",
            leg.name(),
            span.as_secs_f64(),
            utc(from.saturating_mul(1_000))
        );
        for row in &rows {
            told += &row.told(span);
        }
        if histogram {
            told += &self.histogram();
        }
        told
    }

    /// Returns a bar chart of the number of round trips below 1 ms, from 1 to 2, from 2 to 4 ..,
    /// over the range of the samples.
    fn histogram(&self) -> String {
        let step = |sample: &Measured| {
            (sample.round_trip_us / 1_000).checked_ilog2().map_or(0, |it| it + 1)
        };
        let mut counts = BTreeMap::new();
        for sample in &self.samples {
            *counts.entry(step(sample)).or_insert(0_usize) += 1;
        }
        let most = counts.values().copied().max().unwrap_or(1);
        let steps = counts.keys().next().copied().zip(counts.keys().last().copied());
        let Some((least, last)) = steps else { return String::new() };
        let mut told = String::new();
        for step in least..=last {
            let below = 1_u64 << step;
            let label =
                if step == 0 { "< 1".to_owned() } else { format!("{} - {below}", below / 2) };
            let count = counts.get(&step).copied().unwrap_or(0);
            let bar = "#".repeat((count * BAR_CHARS).div_ceil(most));
            told += &format!("  {label:>13} ms {count:>9}  {bar}\n");
        }
        told
    }
}

impl Delay {
    const fn name(self) -> &'static str {
        match self {
            Self::RoundTrip => "round trip",
            Self::Out => "out",
            Self::In => "in",
        }
    }

    /// Returns this delay of a sample; `None` if the sample lacks it. A negative delay lies within
    /// the clocks' error and counts as zero.
    fn of(self, sample: &Measured) -> Option<Duration> {
        let whole = sample.round_trip_us;
        let out = |(out, _error): (i64, u64)| u64::try_from(out).unwrap_or(0);
        let back = |(out, _error): (i64, u64)| whole.saturating_add_signed(out.saturating_neg());
        let micros = match self {
            Self::RoundTrip => whole,
            Self::Out => out(sample.out_us?),
            Self::In => back(sample.out_us?),
        };
        Some(Duration::from_micros(micros))
    }
}

impl Row {
    fn told(&self, span: Duration) -> String {
        let Self { delay, summary, spikes, error } = self;
        let ms = |it: Duration| format!("{:.2}", it.as_secs_f64() * 1e3);
        let within: String =
            summary.within.iter().map(|share| format!(" {:>6.2}", share * 100.0)).collect();
        let clocks =
            error.map_or("-".to_owned(), |[half, most]| format!("{} {}", ms(half), ms(most)));
        let [one_in, every] = match spikes.count {
            0 => ["-".to_owned(), "-".to_owned()],
            count => [
                format!("{:.0}", summary.count as f64 / count as f64),
                format!("{:.1}", span.as_secs_f64() / count as f64),
            ],
        };
        format!(
            "  {:<10} {:>9} {:>8} {:>8} {:>8} {:>8}{within} {:>6.2} {:>6} {one_in:>7} {every:>7}  {clocks}\n",
            delay.name(),
            summary.count,
            ms(summary.p50),
            ms(summary.p95),
            ms(summary.p99),
            ms(summary.max),
            100.0 * spikes.samples as f64 / summary.count as f64,
            spikes.count,
        )
    }

    fn to_json(self, (leg, peer, link): &(Leg, String, String)) -> Value {
        let Self { delay, summary, spikes, error } = self;
        let ms = |it: Duration| it.as_secs_f64() * 1e3;
        let bins = BINS.iter().zip(summary.within);
        let within: serde_json::Map<String, Value> =
            bins.map(|(bin, share)| (bin.as_millis().to_string(), share.into())).collect();
        json!({
            "leg": leg.name(),
            "peer": peer,
            "link": link,
            "delay": delay.name(),
            "count": summary.count,
            "p50_ms": ms(summary.p50),
            "p95_ms": ms(summary.p95),
            "p99_ms": ms(summary.p99),
            "worst_ms": ms(summary.max),
            "share_below_ms": within,
            "share_from_1000_ms": spikes.samples as f64 / summary.count as f64,
            "spikes": spikes.count,
            "clock_error_p50_ms": error.map(|[half, _]| ms(half)),
            "clock_error_worst_ms": error.map(|[_, most]| ms(most)),
        })
    }
}

fn print(line: &str) {
    answer!("{line}");
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

const HEAD: &str = "                 count   p50 ms   p95 ms   p99 ms worst ms \
                    <125 % <250 % <375 % <500 % >=1s % spikes  one in every s  clocks +- ms";
/// Length of a histogram's longest bar in characters.
const BAR_CHARS: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Found {
        let mut found = Found::default();
        let file = format!("{}\n{text}", latency::HEAD);
        found.read(file.as_bytes(), Path::new("a.csv")).unwrap();
        found
    }

    /// Returns one ping per second; the answer to the 40th takes 2 s, and to the 20th 300 ms.
    fn a_minute() -> String {
        let line = |second: u64| {
            let sent = 1_764_000_000_000_000 + second * 1_000_000;
            let whole = match second {
                39 => 2_000_000,
                19 => 300_000,
                _ => 80_000,
            };
            let (seen, back, there) = (second * 1_000_000, sent + whole, 30_000);
            let here = whole - there;
            format!(
                "switchboard-vehicle,rover,,{sent},{seen},{back},0,{whole},{there},{here},20001,0\n"
            )
        };
        (0..60).map(line).collect()
    }

    #[test]
    fn a_minute_of_pings_comes_to_what_it_is() {
        let mut found = found(&a_minute());
        let (name, track) = found.tracks.iter_mut().next().unwrap();
        assert_eq!(*name, (Leg::SwitchboardVehicle, "rover".to_owned(), String::new()));
        let rows = track.rows();
        let ms = |it: Duration| it.as_millis();
        let seen: Vec<_> = rows
            .iter()
            .map(|row| {
                (row.delay.name(), row.summary.count, ms(row.summary.p50), ms(row.summary.max))
            })
            .collect();
        let expected = [("round trip", 60, 80, 2_000), ("out", 60, 30, 30), ("in", 60, 50, 1_970)];
        assert_eq!(seen, expected);
        let [round_trip, out, back] = &rows[..] else { panic!() };
        assert_eq!(round_trip.summary.within, [58.0 / 60.0, 58.0 / 60.0, 59.0 / 60.0, 59.0 / 60.0]);
        assert_eq!(round_trip.spikes, Spikes { count: 1, samples: 1 });
        assert_eq!((out.spikes.count, back.spikes.count), (0, 1));
        assert_eq!(round_trip.error, None);
        assert_eq!(out.error, Some([Duration::from_micros(20_001); 2]));
        let told = track.told(name, true);
        answer!("{HEAD}{told}");
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[1], "switchboard-vehicle rover, 59 s from 2025-11-24 16:00:00.000Z");
        let words: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(
            words[2..],
            "60 80.00 80.00 2000.00 2000.00 96.67 96.67 98.33 98.33 1.67 1 60 59.0 -"
                .split(' ')
                .collect::<Vec<_>>()
        );
        assert!(lines[3].ends_with("0       -       -  20.00 20.00"), "{}", lines[3]);
        let end = |line: &str, word: &str| line.rfind(word).map(|at| at + word.len());
        assert_eq!(end(HEAD, "worst ms"), end(lines[2], "2000.00"), "columns");
        assert_eq!(end(HEAD, "every s"), end(lines[2], "59.0"), "columns");
        assert!(told.contains("64 - 128 ms        58  ##"), "{told}");
        assert!(told.contains("512 - 1024 ms         0  \n"), "{told}");
        found.judge().unwrap();
    }

    #[test]
    fn json_has_the_same_rows_one_per_line() {
        let mut found = found(&a_minute());
        let (name, track) = found.tracks.iter_mut().next().unwrap();
        let rows: Vec<Value> = track.rows().into_iter().map(|row| row.to_json(name)).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0]["leg"], "switchboard-vehicle");
        assert_eq!((&rows[0]["worst_ms"], &rows[0]["spikes"]), (&json!(2_000.0), &json!(1)));
        assert_eq!(rows[0]["share_below_ms"]["375"], json!(59.0 / 60.0));
        assert_eq!(rows[0]["clock_error_p50_ms"], Value::Null);
        assert_eq!(rows[2]["clock_error_worst_ms"], json!(20.001));
    }

    #[test]
    fn malformed_lines_are_skipped_and_reported_by_line() {
        let right = "relay-operator,ab,0,100,5,140,0,40,,,,7\n";
        let found = found(&format!("{right}relay-operator,ab\nx\n{right}relay-op"));
        assert_eq!((found.malformed, found.unfinished, found.lost), (2, 1, 14));
        assert_eq!(found.tracks.values().map(|track| track.samples.len()).sum::<usize>(), 2);
        let told = found.judge().unwrap_err().to_string();
        let expected = "malformed lines left out: 2; the first is a.csv:3: it has 2 fields, not 12";
        assert_eq!(told, expected);
        assert_eq!(self::found("").judge().unwrap_err().to_string(), "nothing was measured");
    }

    #[test]
    fn halves_need_the_far_ends_time_and_are_never_negative() {
        let mut found = found(
            "relay-operator,ab,0,100,,140,0,40,,,,0\n\
             operator-vehicle,car,lte-a,100,9,140,0,40,-3,43,20,0\n",
        );
        let rows: Vec<Vec<Row>> = found.tracks.values_mut().map(Track::rows).collect();
        assert_eq!(rows[0].len(), 1);
        let longest = |at: usize| rows[1][at].summary.max.as_micros();
        assert_eq!((longest(0), longest(1), longest(2)), (40, 0, 43));
    }

    #[test]
    fn files_are_found_in_folders_too() {
        let folder = tempfile::tempdir().unwrap();
        let of =
            |file: &Path| Latency { files: vec![file.to_owned()], json: true, histogram: false };
        let told = of(folder.path()).all_files().unwrap_err().to_string();
        assert!(told.ends_with("holds no files of latency"), "{told}");
        for name in ["latency-000010.csv", "latency-000009.csv", "slices.csv"] {
            std::fs::write(folder.path().join(name), format!("{}\n", latency::HEAD)).unwrap();
        }
        let names = of(folder.path()).all_files().unwrap();
        let expected = ["latency-000009.csv", "latency-000010.csv"];
        assert_eq!(names, expected.map(|name| folder.path().join(name)));
        let missing = of(Path::new("/nonexistent")).run().unwrap_err();
        assert!(format!("{missing:#}").starts_with("cannot read /nonexistent: "), "{missing:#}");
    }
}
