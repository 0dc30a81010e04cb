//! `tautline lab links`: rate control, scheduler and code on many links.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use tautline_lab::experiment::Verdict;
use tautline_lab::notation::number;
use tautline_lab::record;
use tautline_lab::sweeps::links::case::Case;
use tautline_lab::sweeps::links::combo::{self, Combo};
use tautline_lab::sweeps::links::scenarios;
use tautline_lab::sweeps::links::set::Set;
use tautline_lab::sweeps::links::summary::{self, Summary};
use tautline_lab::sweeps::links::sweep::Sweep;
use tautline_net::clock::Clock;
use tautline_units::{Bitrate, Duration, Instant};

use super::progress::Line;
use super::table;

/// Compare methods of sending over many links: on-time goodput, units missed, overhead
///
/// Two sessions run in virtual time, over recorded or modelled links; the media source always fills
/// its budget. Writes every run and a summary as CSV, and plots, into a folder.
#[derive(Debug, Args)]
pub(crate) struct Links {
    /// Folder with the Mahimahi recordings, named as in docs/lab.md; without it, only models
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// Number of seeds, counted from the first; each starts at another point of every recording
    /// [default: 20, with --quick 4, with --scenario as many as each requires]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// First seed; evaluate on other seeds than those used for tuning
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    first_seed: u64,
    /// Length of each run in virtual seconds, including the warm-up of 2 s
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        default_value_if("quick", "true", "20"),
        value_parser = clap::value_parser!(u64).range(4..)
    )]
    seconds: u64,
    /// One-way deadlines in ms
    #[arg(
        long,
        value_name = "MS",
        value_delimiter = ',',
        default_value = "50,65,100",
        default_value_if("quick", "true", "65")
    )]
    deadline_ms: Vec<u64>,
    /// Media units per second: 360 are six slices of 60 pictures
    #[arg(long, value_name = "COUNT", default_value_t = 360)]
    units: u64,
    /// Maximum rate of the source in Mbit/s
    #[arg(long, value_name = "MBPS", default_value_t = 80)]
    most: u64,
    /// Only combinations whose names contain one of these words
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    combo: Vec<String>,
    /// Only these sets; or files: recordings of any name and length, which form one set of links
    #[arg(long, value_name = "NAMES|FILES", value_delimiter = ',')]
    set: Vec<String>,
    /// Only these cases of impairment: plain (none), blackout, swing, carriers
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value_if("quick", "true", "plain")
    )]
    case: Vec<String>,
    /// Evaluate these named scenarios, or `all`, instead of comparing: with the default
    /// configuration, or with each of the combinations named
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    scenario: Vec<String>,
    /// Use 4 seeds of 20 s, one deadline of 65 ms and no disturbance, unless set otherwise
    #[arg(long)]
    quick: bool,
    /// Number of parallel runs
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    threads: usize,
    /// Folder for the results
    #[arg(long, value_name = "FOLDER", default_value = "lab/links")]
    out: PathBuf,
}

impl Links {
    /// Runs all combinations over all sets of links, or the scenarios; writes the results and
    /// prints them.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if !self.scenario.is_empty() {
            return self.judge();
        }
        let sweep = self.sweep()?;
        record::create(&self.out)?;
        let (clock, line) = (Clock::start(), Line::new("links"));
        let found = sweep.run(&|progress| line.show(progress))?;
        line.clear();
        let real = clock.now().since(Instant::ZERO).as_secs_f64();
        let lines = summary::of(&found);
        record::write_tables(
            &self.out,
            &[summary::runs_table(&found), summary::summary_table(&lines)],
        )?;
        record::write_plots(&self.out, &summary::plots(&lines))?;
        let same =
            |a: &Summary, b: &Summary| (&a.set, a.case, a.deadline) == (&b.set, b.case, b.deadline);
        for place in lines.chunk_by(same) {
            print(place)?;
        }
        let virtual_seconds = (found.len() as u64 * self.seconds) as f64;
        tell!(
            "{} runs, {virtual_seconds:.0} virtual seconds in {real:.0} s: {:.0} times real time\n{}",
            found.len(),
            virtual_seconds / real,
            self.out.display(),
        );
        Ok(())
    }

    /// Runs the chosen scenarios and prints their rows; fails if one is out of tolerance.
    fn judge(&self) -> anyhow::Result<()> {
        let names: &[String] = if self.scenario == ["all"] { &[] } else { &self.scenario };
        let scenarios = chosen("scenario", scenarios::all(), names, |s| s.name)?;
        let configs: Vec<(String, tautline_transport::Config)> = match self.combo.as_slice() {
            [] => vec![("default".to_owned(), tautline_transport::Config::default())],
            words => combos(words)?.iter().map(|c| (c.name.clone(), c.transport())).collect(),
        };
        let heads =
            ["scenario", "combo", "quantity", "unit", "measured", "bar", "may be", "verdict"];
        let (mut lines, mut out) = (Vec::new(), Vec::new());
        for scenario in &scenarios {
            tell!("{}: {}", scenario.name, scenario.title);
            for (combo, config) in &configs {
                for row in scenario.run(config, self.first_seed, self.seeds, self.quick)? {
                    if row.verdict() == Verdict::Out {
                        out.push(format!("{} ({combo})", scenario.name));
                    }
                    lines.push([
                        scenario.name.to_owned(),
                        combo.clone(),
                        row.quantity.clone(),
                        row.unit.clone(),
                        number(row.measured),
                        row.reference.map_or_else(|| "-".to_owned(), number),
                        row.tolerance.to_string(),
                        row.verdict().name().to_owned(),
                    ]);
                }
            }
        }
        tell!();
        table::print(&heads, lines, &[4, 5])?;
        if !out.is_empty() {
            bail!("out of tolerance: {}", out.join("; "));
        }
        Ok(())
    }

    fn sweep(&self) -> anyhow::Result<Sweep> {
        let of_files = self.set.iter().any(|name| is_file(name));
        let sets = match &self.traces {
            _ if of_files => vec![Set::of_files(&self.set)?],
            Some(folder) => chosen("set", Set::recorded(folder)?, &self.set, |set| &set.name)?,
            None => chosen("set", Set::models(), &self.set, |set| &set.name)?,
        };
        Ok(Sweep {
            combos: combos(&self.combo)?,
            sets,
            cases: chosen("case", Case::ALL.to_vec(), &self.case, |case| case.name())?,
            deadlines: self.deadline_ms.iter().map(|ms| Duration::from_millis(*ms)).collect(),
            first_seed: self.first_seed,
            seeds: self.seeds.unwrap_or(if self.quick { 4 } else { 20 }),
            length: Duration::from_secs(self.seconds),
            units_per_second: self.units,
            rate_max: Bitrate::from_mbps(self.most),
            threads: self.threads,
        })
    }
}

/// Returns whether a name is a recording's file: names of sets contain neither a dot nor a slash.
fn is_file(name: &str) -> bool {
    name.contains(['.', '/'])
}

fn combos(words: &[String]) -> anyhow::Result<Vec<Combo>> {
    let all = combo::all();
    let wanted = |combo: &&Combo| words.is_empty() || words.iter().any(|w| combo.name.contains(w));
    let combos: Vec<Combo> = all.iter().filter(wanted).cloned().collect();
    if combos.is_empty() {
        let names: Vec<&str> = all.iter().map(|combo| combo.name.as_str()).collect();
        bail!("no combo's name contains {}; there are {}", words.join(" or "), names.join(", "));
    }
    Ok(combos)
}

/// Returns the items of `all` with these names, or all of them if `names` is empty. Fails for an
/// unknown name; `what` says in the error what it names.
pub(super) fn chosen<T>(
    what: &str,
    all: Vec<T>,
    names: &[String],
    name: impl Fn(&T) -> &str,
) -> anyhow::Result<Vec<T>> {
    if let Some(unknown) = names.iter().find(|n| !all.iter().any(|one| name(one) == n.as_str())) {
        let known: Vec<&str> = all.iter().map(&name).collect();
        bail!("there is no {what} {unknown}; there are {}", known.join(", "));
    }
    let wanted = |one: &T| names.is_empty() || names.iter().any(|n| n == name(one));
    Ok(all.into_iter().filter(wanted).collect())
}

fn print(place: &[Summary]) -> anyhow::Result<()> {
    let Summary { set, case, deadline, runs, .. } = &place[0];
    tell!("{set}, {case}, deadline {} ms, {runs} runs", deadline.as_millis());
    let heads = [
        "combo",
        "Mbit/s",
        "p5",
        "missed %",
        "overhead",
        "p99 ms",
        "gap ms",
        "paused %",
        "x 4-of-9",
        "x best link",
        "notice ms",
        "recover ms",
        "beyond",
    ];
    let optional = |value: f64| if value.is_nan() { "-".to_owned() } else { format!("{value:.2}") };
    let millis = |value: f64| if value.is_nan() { "-".to_owned() } else { format!("{value:.0}") };
    let cells = |line: &Summary| {
        [
            line.label(),
            format!("{:.2}", line.goodput_mbps),
            format!("{:.2}", line.goodput_p5_mbps),
            format!("{:.3}", line.missed * 100.0),
            format!("{:.2}", line.overhead),
            format!("{:.1}", line.delay_p99_ms),
            format!("{:.0}", line.gap_ms),
            format!("{:.1}", line.paused * 100.0),
            optional(line.ratio),
            optional(line.over_best_link),
            millis(line.notice_ms),
            millis(line.recover_ms),
            line.missed_beyond.map_or("-".to_owned(), |count| count.to_string()),
        ]
    };
    let right: Vec<usize> = (1..heads.len()).collect();
    table::print(&heads, place.iter().map(cells).collect(), &right)?;
    tell!();
    Ok(())
}
