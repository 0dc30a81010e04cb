//! The lab: the tables and figures of the papers, measured again on this code.
//!
//! An [`Experiment`](experiment::Experiment) gives an [`Outcome`](experiment::Outcome): tables of
//! numbers, plots, and [rows](experiment::Row) that hold what was measured against what the paper
//! published. [`papers`] lists them all. [`record`] writes an outcome into a folder, [`report`] makes
//! one page of everything found there; neither knows an experiment by name.
//!
//! [`sweeps`] are wider than a paper's table: ways of sending over several links, flows that share one,
//! encoders, packet sizes, lost slices. [`pictures::clip`] tells how a video came through the whole system, [`theory`]
//! what the streaming code does by its formulas.
//!
//! # To add an experiment
//! Four files: its own, the registry, `papers.rs`, docs/papers.md, which lists everything that the papers
//! show, and xtask/mutations.toml, which lists what would turn it red; a new paper also needs its key in
//! docs/papers.md.
//!
//! 1. Write `papers/<paper>/<name>.rs`: on top a `pub(crate) const EXPERIMENT: Experiment` with a key,
//!    a title, its place in the paper and its function, `fn run(run: &Run<'_>) -> Result<Outcome>`.
//! 2. Name the file and list its constant in `papers.rs`, and its key among those that measure time if it
//!    does: it then has the machine to itself. Name its key in docs/papers.md, in the row of its place.
//! 3. Take every random number from `run.seed`, sizes and tolerances from
//!    `run.choose(quick, full)`, and call `run.progress(done, total, "what comes next")` now and
//!    then in anything that lasts over a second. No clock, unless time is what is measured
//!    (`tautline_net::clock`). What is long and measures no time does its jobs on all cores, by
//!    `workers`; no other threads.
//! 4. Give all three: `tables` with every number that is drawn, `plots`, and `rows`. A quantity
//!    that the paper prints gets [`published`](experiment::Row::published); where the paper errs, the
//!    right value goes beside it as [`reference`](experiment::Row::reference) and is what the row is
//!    judged by. Every tolerance says why it is that wide, by [`because`](experiment::Row::because), with
//!    its figure or as set by hand. A bar that is asked for where no theory gives a number goes in as
//!    [`asked`](experiment::Row::asked), never as a reference. A tolerance
//!    admits at most twice or half of what is right, unless the machine's clock measured it
//!    ([`clocked`](experiment::Row::clocked)). What cannot be judged is left without a tolerance and shown;
//!    what could not come out otherwise says so
//!    ([`by_construction`](experiment::Row::by_construction)).
//! 5. Name in xtask/mutations.toml a constant of the code under test, and a change of it that turns a row
//!    red: `make mutate` makes it. What cannot be turned red says why.
//! 6. A check that fails for another reason than a differing number (a wrong decode) is an `Err`.
//!
//! `cargo test -p tautline-lab` runs it quickly with all others; it needs no test of its own.
//!
//! ```
//! use tautline_lab::experiment::{Findings, Outcome, Row, Run, Table, Verdict};
//! use tautline_lab::plot::{Axis, Plot, Series};
//!
//! fn squares(run: &Run<'_>) -> anyhow::Result<Outcome> {
//!     let count = run.choose(4, 10);
//!     let points: Vec<(f64, f64)> = (0..count).map(|x| (x as f64, (x * x) as f64)).collect();
//!     let mut table = Table::new("squares", ["side_m", "area_m2"]);
//!     for (side, area) in &points {
//!         table.push([(*side).into(), (*area).into()]);
//!     }
//!     let plot = Plot::new("squares", "Squares", Axis::linear("side, m"), Axis::linear("area, m²"))
//!         .with(Series::marked("squares", points.clone()));
//!     let row = Row::new("area of side 3", "m²", points[3].1).published(9.0).within(0.01);
//!     let row = row.because("squares are exact");
//!     let (tables, plots, rows) = (vec![table], vec![plot], vec![row]);
//!     Ok(Outcome::Measured(Findings { tables, plots, rows, notes: vec![] }))
//! }
//! let Outcome::Measured(found) = squares(&Run::silent(true, 1))? else { unreachable!() };
//! assert_eq!(found.rows[0].verdict(), Verdict::Within);
//! # Ok::<(), anyhow::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod experiment;
pub mod machine;
pub mod notation;
pub mod papers;
pub mod pictures;
pub mod plot;
pub mod record;
mod relayed;
pub mod report;
pub mod sweeps;
pub mod theory;
pub mod workers;
