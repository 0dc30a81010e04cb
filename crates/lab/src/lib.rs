//! The lab: the tables and figures of the papers, reproduced on this code.
//!
//! An [`Experiment`](experiment::Experiment) produces an [`Outcome`](experiment::Outcome): tables
//! of numbers, plots, and [rows](experiment::Row) that compare measured with published values.
//! [`papers`] lists them all. [`record`] writes an outcome into a folder, and [`report`] renders
//! one page of all records in it. Neither depends on particular experiments.
//!
//! [`sweeps`] go beyond a paper's table: multi-link policies, flows that share a link, encoders,
//! packet sizes, lost slices. [`pictures::clip`] measures the quality of a video sent through the
//! complete system. [`theory`] evaluates the formulas of the streaming code.
//!
//! # To add an experiment
//! It takes its own file and one row of the registry `papers.rs`, below the declaration of the
//! file. docs/papers.md, the page of all results of the papers, names its key in the row of its
//! place. A new paper also needs its key there.
//!
//! 1. Write `papers/<paper>/<name>.rs`: at the top a `pub(crate) const EXPERIMENT: Experiment` with
//!    a key, a title, its place in the paper, its isolation, its mutation and its function, `fn
//!    run(run: &Run<'_>) -> Result<Outcome>`. One that measures time runs [alone](
//!    experiment::Isolation::Alone).
//! 2. Declare the file in `papers.rs`, and add its constant to the list there.
//! 3. Take every random number from `run.seed`, sizes and tolerances from `run.choose(quick,
//!    full)`, and call `run.progress(done, total, "the next part")` regularly in anything that
//!    takes over a second. Use no clock unless the experiment measures time
//!    (`tautline_net::clock`). A long experiment that does not measure time distributes its jobs
//!    over all cores with `workers`; use no other threads.
//! 4. Return all three: `tables` with every number that is plotted, `plots`, and `rows`. A quantity
//!    that the paper prints gets [`published`](experiment::Row::published). If the paper errs, the
//!    right value is the [`reference`](experiment::Row::reference), against which the row is
//!    judged. Every tolerance states the reason for its width with
//!    [`because`](experiment::Row::because): a figure, or that it is set by hand. A requirement
//!    without a theoretical value is [`asked`](experiment::Row::asked), never a reference. A
//!    tolerance admits at most twice or half of the right value, unless the machine's clock
//!    measured it ([`clocked`](experiment::Row::clocked)). A row that cannot be judged has no
//!    tolerance and is only shown. A row whose result is certain is marked as such
//!    ([`by_construction`](experiment::Row::by_construction)).
//! 5. Name a mutation of xtask/mutations.toml that turns a row red, or add one: a constant of the
//!    code under test and its replacement. `make mutate` applies it. An experiment without one
//!    states the reason.
//! 6. A check that fails for a reason other than a differing number, such as a wrong decode, is an
//!    `Err`.
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
#![cfg_attr(not(feature = "x264"), forbid(unsafe_code))]

pub mod experiment;
pub mod machine;
pub mod notation;
pub mod papers;
pub mod pictures;
pub mod plot;
pub mod quality;
#[cfg(feature = "quorum")]
pub mod quorum;
pub mod record;
mod relayed;
pub mod report;
pub mod sweeps;
pub mod theory;
pub mod workers;
