//! Duration of picture freezes when links of a moving car are cut.
//!
//! The paper's modems fail one at a time and independently. Here some of four links are cut for
//! three seconds every ten, including the two that carry the most; decision 5 describes the
//! countermeasures.

use anyhow::Result;
use tautline_scenario::cuts::{Choice, Measures};
use tautline_scenario::measure::quantile;
use tautline_transport::Config;

use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};
use crate::workers;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-cuts",
    title: "Duration of a frozen picture when links are cut",
    source: "[LTE] III.C",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("delay"),
    run,
};

/// Performs the same runs with each choice of links.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let seeds = run.choose(1, 24);
    let first = run.seed.wrapping_mul(seeds);
    let jobs: Vec<(usize, u64)> = (0..CASES.len())
        .flat_map(|case| (0..seeds).map(move |number| (case, first.wrapping_add(number))))
        .collect();
    let made = workers::each(
        workers::count(),
        &jobs,
        |(case, seed)| Ok((*case, Measures::of(Config::default(), CASES[*case].choice, *seed)?)),
        |done, (case, _)| run.progress(done as u64, jobs.len() as u64, CASES[*case].name),
    )?;
    let mut sums: Vec<Measures> = CASES.iter().map(|_| Measures::default()).collect();
    made.into_iter().for_each(|(case, one)| sums[case].add(one));
    let mut measured: Vec<(&Case, Measures)> = CASES.iter().zip(sums).collect();
    Ok(Outcome::Measured(Findings {
        rows: measured.iter_mut().flat_map(|(case, measures)| case.rows(measures)).collect(),
        tables: vec![table(&mut measured)],
        plots: vec![plot(&mut measured)],
        notes: vec![format!(
            "Four lte-driving links of two carriers, {seeds} seeds, four cuts of 3 s each. Media \
             follows the budget up to 6 Mbit/s, 360 units a second. A gap is the longest time \
             without a delivered unit from a cut's beginning to its end; with no link cut, of the \
             same three seconds."
        )],
    }))
}

/// One choice of links to cut.
struct Case {
    name: &'static str,
    choice: Choice,
}

const CASES: [Case; 5] = [
    Case { name: "none", choice: Choice::None },
    Case { name: "the best", choice: Choice::Best(1) },
    Case { name: "any one", choice: Choice::AnyOne },
    Case { name: "the two best", choice: Choice::Best(2) },
    Case { name: "any two", choice: Choice::AnyTwo },
];

impl Case {
    fn rows(&self, measures: &mut Measures) -> [Row; 2] {
        let gap = quantile(&mut measures.gaps, 0.9);
        [
            Row::new(
                format!("{}: longest time without a unit, 90 % of cuts", self.name),
                "ms",
                gap,
            )
            .asked(FROZEN_MS)
            .at_most(1.0)
            .because("set by hand: a picture that stands still for longer is noticed"),
            Row::new(
                format!("{}: units that come, of the second after", self.name),
                "%",
                measures.share_after() * 100.0,
            )
            .asked(97.0)
            .at_least(1.0)
            .because("set by hand: of a second in which links were cut; what is lost then cannot be sent again"),
        ]
    }
}

fn table(measured: &mut [(&Case, Measures)]) -> Table {
    let columns = [
        "links_cut",
        "cuts",
        "gap_p50_ms",
        "gap_p95_ms",
        "gap_worst_ms",
        "cuts_over_200_ms",
        "came_of_second_after",
        "came",
        "delay_p50_ms",
        "delay_p95_ms",
        "delay_p99_ms",
        "budget_mean_mbps",
        "budget_p5_mbps",
        "granted_mean_mbps",
        "granted_p10_mbps",
    ];
    let mut table = Table::new("cuts", columns).shown("Cut links");
    for (case, measures) in measured {
        let over = measures.gaps.iter().filter(|gap| **gap > FROZEN_MS).count();
        table.push([
            case.name.into(),
            measures.gaps.len().into(),
            quantile(&mut measures.gaps, 0.5).into(),
            quantile(&mut measures.gaps, 0.95).into(),
            quantile(&mut measures.gaps, 1.0).into(),
            over.into(),
            measures.share_after().into(),
            measures.share().into(),
            quantile(&mut measures.delays, 0.5).into(),
            quantile(&mut measures.delays, 0.95).into(),
            quantile(&mut measures.delays, 0.99).into(),
            mean(&measures.budgets).into(),
            quantile(&mut measures.budgets, 0.05).into(),
            mean(&measures.granted).into(),
            quantile(&mut measures.granted, 0.1).into(),
        ]);
    }
    table
}

/// Plots, over the duration of a gap, the share of cuts with a gap of at least that duration.
fn plot(measured: &mut [(&Case, Measures)]) -> Plot {
    let series = measured.iter_mut().map(|(case, measures)| {
        measures.gaps.sort_by(f64::total_cmp);
        let count = measures.gaps.len() as f64;
        let longer = |at: usize| (count - at as f64) / count;
        let points = measures.gaps.iter().enumerate().map(|(at, gap)| (*gap, longer(at)));
        Series::steps(case.name, points.collect())
    });
    let x = Axis::linear("longest time without a unit, ms");
    let y = Axis::linear("share of cuts with that or longer");
    Plot::new("cuts", "The picture when links are cut", x, y)
        .with_all(series)
        .mark_x(FROZEN_MS, "frozen")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Freeze duration above which a viewer notices it.
const FROZEN_MS: f64 = 200.0;
