//! The lab: the tables and figures of the papers, measured again on this code.
//!
//! [`experiment::all`] lists them. Each gives an [`Outcome`](outcome::Outcome): tables of numbers,
//! plots, and [rows](row::Row) that hold what was measured against what the paper published.
//! [`record`] writes that into a folder, [`report`] makes one page of everything found there.
//! [`comparison`] sets encoders side by side on any footage.
//! [`clip`] is another thing: how a video came through the whole system. [`packet_size`] judges
//! sizes by delay, for sweeps over models and over live sessions alike.
//!
//! # To add an experiment
//! 1. Find its paper's file, `remote_driving.rs` for `[LTE]`. A new paper gets a file of its own
//!    with a `pub(crate) const EXPERIMENTS: &[Experiment]`, a line in `experiment.rs`, PAPERS, and
//!    a key in docs/papers.md.
//! 2. Write one function `fn name(run: &Run<'_>) -> anyhow::Result<Outcome>` and list it in
//!    `EXPERIMENTS` with a key, a title and its place in the paper.
//! 3. Take every random number from `run.seed`, sizes and tolerances from
//!    `run.choose(quick, full)`, and call `run.progress(done, total, "what comes next")` now and
//!    then in anything that lasts over a second. No clock, unless time is what is measured
//!    (`tautline_net::clock`). What is long and measures no time does its jobs on all cores, by
//!    `workers`; no other threads.
//! 4. Give all three: `tables` with every number that is drawn, `plots`, and `rows`. A quantity
//!    that the paper prints gets [`published`](row::Row::published); where the paper errs, the right
//!    value goes beside it as [`reference`](row::Row::reference) and is what the row is judged by.
//!    What cannot be judged is left without a tolerance and shown.
//! 5. A check that fails for another reason than a differing number (a wrong decode) is an `Err`.
//!
//! ```
//! use tautline_lab::experiment::Run;
//! use tautline_lab::outcome::{Outcome, Table};
//! use tautline_lab::plot::{Axis, Plot, Series};
//! use tautline_lab::row::Row;
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
//!     Ok(Outcome { tables: vec![table], plots: vec![plot], rows: vec![row], notes: vec![] })
//! }
//! let outcome = squares(&Run::silent(true, 1))?;
//! assert_eq!(outcome.rows[0].verdict(), tautline_lab::row::Verdict::Within);
//! # Ok::<(), anyhow::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod clip;
mod coding;
pub mod comparison;
pub mod experiment;
mod footage;
mod ground_vehicles;
pub mod links;
pub mod loss;
pub mod machine;
pub mod outcome;
pub mod packet_size;
pub mod plot;
pub mod record;
mod relayed;
mod remote_driving;
pub mod report;
pub mod row;
mod serialization;
mod streaming;
mod vmaf;
mod workers;

pub use remote_driving::qp_table::of_clip as qp_table;
