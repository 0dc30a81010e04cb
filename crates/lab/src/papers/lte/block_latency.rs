//! Fig. 2: completion time of a block if each packet's delay is Gaussian and independent.

use anyhow::{Context, Result};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use tautline_fec::theory::{Gaussian, OrderStatistic};

use super::block::Block;
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-fig-2",
    title: "Latency of a block with and without a code, Gaussian delays",
    source: "[LTE] Fig. 2",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("gaussian"),
    run,
};

/// Compares the latest of 6 packets with the 6th of 8: in closed form, and with this crate's block
/// code as packets arrive one by one.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let uncoded = Curve { place: K, count: K, name: "6 of 6, uncoded", simulated: Vec::new() };
    let coded = Curve { place: K, count: N, name: "6 of 8, coded", simulated: Vec::new() };
    let mut curves = [uncoded, coded];
    simulate(run, &mut curves)?;
    Ok(Outcome::Measured(Findings {
        tables: vec![table(&curves)?],
        plots: vec![plot(&curves)?],
        rows: rows(run, &curves)?,
        notes: vec![
            format!(
                "Each packet's delay is Gaussian with mean {DELAY_MEAN} ms and standard deviation \
                 {DELAY_DEVIATION} ms, independent of all others, and no less so with two packets \
                 more: the paper's assumptions, which a real link does not keep (its Fig. 3)."
            ),
            format!(
                "Simulated: {} blocks, packet after packet given to the decoder until it has all.",
                curves[0].simulated.len()
            ),
            "The text splits a block into 10 packets and then takes the latest of 6; its figure is \
             that of 6. With 10 and the same code rate the gain is larger."
                .to_owned(),
        ],
    }))
}

/// K of the figure: source packets of a block.
const K: u32 = 6;
/// N of the figure: packets of a coded block.
const N: u32 = 8;
const DELAY_MEAN: f64 = 20.0;
const DELAY_DEVIATION: f64 = 5.0;
/// Probability at which the paper reads the gain of the code from its figure.
const LEVEL: f64 = 0.95;
/// Size of a simulated packet; the delays do not depend on it.
const PACKET_BYTES: usize = 8;

/// One way to send a block, which is complete when `place` of its `count` packets have arrived.
struct Curve {
    place: u32,
    count: u32,
    name: &'static str,
    /// Latencies of the simulated blocks in ms, ascending.
    simulated: Vec<f64>,
}

impl Curve {
    fn quantile(&self, probability: f64) -> Result<f64> {
        quantile(self.place, self.count, probability)
    }

    fn simulated_quantile(&self, probability: f64) -> f64 {
        let rank = (probability * self.simulated.len() as f64) as usize;
        self.simulated[rank.min(self.simulated.len() - 1)]
    }

    fn simulated_mean(&self) -> f64 {
        self.simulated.iter().sum::<f64>() / self.simulated.len() as f64
    }
}

fn quantile(place: u32, count: u32, probability: f64) -> Result<f64> {
    let delay = Gaussian::new(DELAY_MEAN, DELAY_DEVIATION)?;
    Ok(OrderStatistic::new(place, count)?.gaussian_quantile(&delay, probability)?)
}

/// Adds to both curves the latencies of simulated blocks, with the same delays for the source
/// packets of a block with and without repair packets; sorts them at the end.
fn simulate(run: &Run<'_>, curves: &mut [Curve; 2]) -> Result<()> {
    let blocks = run.choose(20_000, 2_000_000);
    let mut random = ChaCha8Rng::seed_from_u64(run.seed);
    let delay = Normal::new(DELAY_MEAN, DELAY_DEVIATION)?;
    let mut block = Block::new(K as usize, N as usize, PACKET_BYTES, &mut random)?;
    for number in 0..blocks {
        if number % 100_000 == 0 {
            run.progress(number, blocks, "blocks");
        }
        let delays: [f64; N as usize] = std::array::from_fn(|_| delay.sample(&mut random));
        let latest = delays[..K as usize].iter().copied().fold(f64::MIN, f64::max);
        curves[0].simulated.push(latest);
        let complete = block.complete_after(&delays)?.context("a block never came")?;
        curves[1].simulated.push(complete);
    }
    for curve in curves {
        curve.simulated.sort_unstable_by(f64::total_cmp);
    }
    Ok(())
}

fn rows(run: &Run<'_>, [uncoded, coded]: &[Curve; 2]) -> Result<Vec<Row>> {
    let gain = uncoded.quantile(LEVEL)? - coded.quantile(LEVEL)?;
    let simulated = uncoded.simulated_quantile(LEVEL) - coded.simulated_quantile(LEVEL);
    let ten = quantile(10, 10, LEVEL)? - quantile(10, 13, LEVEL)?;
    let mut rows = vec![
        Row::new("gain at 0.95, closed form", "ms", gain)
            .published(6.0)
            .reference(5.827_689)
            .within(1e-6)
            .because("the digits that the reference has")
            .note("The paper rounds."),
        Row::new("gain at 0.95, simulated", "ms", simulated)
            .published(6.0)
            .reference(5.827_689)
            .within(run.choose(0.03, 0.005))
            .because("a standard error is 1.2 % in a quick run, .12 % in a full one, at most"),
        Row::new("gain at 0.95 with 10 packets, 10 of 13", "ms", ten)
            .reference(6.78)
            .within(0.001)
            .because("the digits that the reference has")
            .note("The result for the text's 10 packets."),
    ];
    for (curve, p95, mean) in [(uncoded, 31.930_849, 26.336_032), (coded, 26.103_160, 22.364_112)] {
        let name = |what: &str| format!("{}: {what}", curve.name);
        rows.extend([
            Row::new(name("95 %, closed form"), "ms", curve.quantile(LEVEL)?)
                .reference(p95)
                .within(1e-7)
                .because("the digits that the reference has"),
            Row::new(name("95 %, simulated"), "ms", curve.simulated_quantile(LEVEL))
                .reference(p95)
                .within(run.choose(0.005, 0.001))
                .because("a standard error is .18 % in a quick run, .018 % in a full one, at most"),
            Row::new(name("mean, simulated"), "ms", curve.simulated_mean())
                .reference(mean)
                .within(run.choose(0.005, 0.001))
                .because("a standard error is .09 % in a quick run, .009 % in a full one, at most"),
        ]);
    }
    Ok(rows)
}

/// Returns the probabilities at which latencies are tabulated and plotted: 0.001 to 0.999, in steps
/// of 0.001.
fn levels() -> impl Iterator<Item = f64> {
    (1..1000).map(|thousandth| f64::from(thousandth) / 1000.0)
}

fn table([uncoded, coded]: &[Curve; 2]) -> Result<Table> {
    let columns =
        ["probability", "uncoded_ms", "coded_ms", "uncoded_simulated_ms", "coded_simulated_ms"];
    let mut table = Table::new("latency", columns);
    for level in levels() {
        table.push([
            level.into(),
            uncoded.quantile(level)?.into(),
            coded.quantile(level)?.into(),
            uncoded.simulated_quantile(level).into(),
            coded.simulated_quantile(level).into(),
        ]);
    }
    Ok(table)
}

fn plot(curves: &[Curve; 2]) -> Result<Plot> {
    let x = Axis::linear("latency of a block, ms").range(10.0, 40.0);
    let y = Axis::linear("share of blocks complete").range(0.0, 1.0);
    let mut plot =
        Plot::new("fig-2", "Latency of a block, Gaussian delays", x, y).mark_y(LEVEL, "0.95");
    for (colour, curve) in curves.iter().enumerate() {
        let exact: Result<Vec<(f64, f64)>> =
            levels().map(|level| Ok((curve.quantile(level)?, level))).collect();
        let simulated = levels().skip(49).step_by(50);
        let simulated = simulated.map(|level| (curve.simulated_quantile(level), level)).collect();
        plot = plot
            .with(Series::line(curve.name, exact?).colour(colour))
            .with(Series::points(format!("{}, simulated", curve.name), simulated).colour(colour));
    }
    Ok(plot)
}
