//! Figs. 8 and 10: the delay over the code rate, with feedback.

use anyhow::Result;

use super::block::Repairs;
use super::link::Transfer;
use super::rows::{burst_name, link_note, sessions_note};
use super::trial::{Protection, Trial};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};
use crate::workers;

const ERASURE_RATE: f64 = 0.1;

pub(crate) const BURSTS: Experiment = Experiment {
    key: "stream-fig-8",
    title: "Delay over the code rate with feedback, losses in bursts",
    source: "[STREAM] Fig. 8",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("coefficients"),
    run: bursts,
};

/// Measures Fig. 8: the streaming code and blocks of 32 and 64 packets, with losses in bursts.
fn bursts(run: &Run<'_>) -> Result<Outcome> {
    let reference =
        [(1.0, [7.8, 29.8, 25.2]), (2.0, [15.5, 41.9, 36.0]), (4.0, [18.9, 45.5, 39.8])];
    let shares = run.choose(vec![0.1, SIXTH, 0.3], SHARES.to_vec());
    let mut tables = Table::new("delay", COLUMNS);
    let (mut plots, mut rows) = (Vec::new(), Vec::new());
    for (number, (burst, means)) in reference.into_iter().enumerate() {
        let sweep = Sweep::measure(run, burst, &[32, 64], &shares, (number, reference.len()))?;
        let named = sweep.curves.iter().skip(1).zip(means);
        for (curve, mean) in named {
            let given = curve.at(SIXTH);
            let burst = burst_name(burst);
            let quantity = format!("{}, {burst}, 1/6 repair: mean delay", curve.name);
            let row = Row::new(quantity, "ms", given.mean_ms());
            let row = row.reference(mean).within(run.choose(0.2, 0.08));
            rows.push(row.because(SPREAD));
        }
        rows.extend(sweep.advantage_rows(&format!("{}: ", burst_name(burst))));
        sweep.fill(&mut tables);
        let title = format!("10 % loss, {}, with feedback", burst_name(burst));
        plots.push(sweep.plot(&format!("fig-8-bursts-{burst}"), &title));
    }
    Ok(Outcome::Measured(Findings {
        tables: vec![tables],
        plots,
        rows,
        notes: vec![
            link_note(),
            sessions_note(),
            "The code rate counts all packets: source packets over packets sent. Along a curve the \
             repair packets that are sent anyway grow, from 2 % of the source packets to 60 %."
                .to_owned(),
            "The paper's curve of the blocks turns back on itself at bursts of 4. Here it does not: \
             exactly what is missing is sent again, so that more repair packets sent in advance \
             always mean a lower code rate."
                .to_owned(),
        ],
    }))
}

pub(crate) const RATES: Experiment = Experiment {
    key: "stream-fig-10",
    title: "Delay over the effective code rate",
    source: "[STREAM] Fig. 10",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("coefficients"),
    run: rates,
};

/// Measures Fig. 10: the trade-off between delay and rate, for the streaming code and blocks of
/// many sizes.
fn rates(run: &Run<'_>) -> Result<Outcome> {
    let sizes = run.choose(vec![32, 64], vec![8, 16, 32, 64, 128]);
    let shares = run.choose(RATES_REFERENCE.map(|(share, _)| share).to_vec(), SHARES.to_vec());
    let sweep = Sweep::measure(run, 1.0, &sizes, &shares, (0, 1))?;
    let mut rows = Vec::new();
    for (share, points) in RATES_REFERENCE {
        let named = [SLOT_BY_SLOT, "block, k = 32", "block, k = 64"];
        for (name, (rate, mean)) in named.into_iter().zip(points) {
            let given = sweep.curve(name).at(share);
            let what = format!("{name}, {share:.4} repair");
            let row = Row::new(format!("{what}: effective code rate"), "", given.effective_rate());
            let row = row.reference(rate).within_absolute(0.004);
            rows.push(row.because(
                "set by hand: a reference of few digits, and some repair packets of a file",
            ));
            let row = Row::new(format!("{what}: mean delay"), "ms", given.mean_ms());
            let row = row.reference(mean).within(run.choose(0.2, 0.08));
            rows.push(row.because(SPREAD));
        }
    }
    rows.extend(sweep.advantage_rows(""));
    let mut table = Table::new("delay", COLUMNS);
    sweep.fill(&mut table);
    let title = "Delay over effective code rate, 10 % loss, with feedback";
    Ok(Outcome::Measured(Findings {
        tables: vec![table],
        plots: vec![sweep.plot("fig-10", title)],
        rows,
        notes: vec![
            link_note(),
            sessions_note(),
            "The effective code rate counts all packets: source packets over packets sent. The \
             least delay of blocks is where the paper has it, at k = 32 to 64, for code rates from \
             .77 up; below, smaller blocks are faster."
                .to_owned(),
        ],
    }))
}

/// Reason for the width of the delay tolerances.
const SPREAD: &str = "set by hand: what the mean delays of files of 25 MB differ by";

/// One repair packet after every six source packets.
const SIXTH: f64 = 1.0 / 6.0;

/// Repair packets per source packet.
const SHARES: [f64; 10] = [0.02, 0.06, 0.1, 0.125, SIXTH, 0.2, 0.25, 0.35, 0.45, 0.6];

/// By repair packets per source packet: effective code rate and mean delay in ms of the streaming
/// code, of blocks of 32 packets, and of blocks of 64.
const RATES_REFERENCE: [(f64, [(f64, f64); 3]); 4] = [
    (0.1, [(0.880, 26.3), (0.885, 66.9), (0.890, 70.1)]),
    (SIXTH, [(0.857, 8.3), (0.851, 29.8), (0.855, 24.9)]),
    (0.25, [(0.800, 1.25), (0.7995, 8.7), (0.800, 14.8)]),
    (0.35, [(0.741, 0.46), (0.741, 6.0), (0.741, 14.5)]),
];

const COLUMNS: [&str; 6] =
    ["scheme", "burst_packets", "repair_per_source", "effective_code_rate", "mean_ms", "p99_ms"];

/// Label of the streaming code by two sessions of the transport.
const BY_SESSIONS: &str = "streaming, by sessions";
/// Label of the streaming code by its coders alone, with the paper's rule.
const SLOT_BY_SLOT: &str = "streaming, slot by slot";

/// Delay and rate of several schemes over the share of unconditional repair packets.
struct Sweep {
    /// Mean length of a burst of losses, in packets.
    burst: f64,
    /// The sessions first, then the streaming code slot by slot, then the blocks.
    curves: Vec<Curve>,
}

struct Curve {
    name: String,
    /// Results by repair packets per source packet.
    points: Vec<(f64, Transfer)>,
}

impl Sweep {
    /// Measures every scheme at each share of repair packets in `shares`, under bursts of `burst`
    /// packets; `part` is the index of this part of the experiment and the number of parts, for the
    /// progress.
    fn measure(
        run: &Run<'_>,
        burst: f64,
        sizes: &[u64],
        shares: &[f64],
        (part, parts): (usize, usize),
    ) -> Result<Sweep> {
        let of_size = |size: &u64| (format!("block, k = {size}"), Some(*size));
        let mut names = vec![(BY_SESSIONS.to_owned(), None), (SLOT_BY_SLOT.to_owned(), None)];
        names.extend(sizes.iter().map(of_size));
        let of_name = |named: &(String, Option<u64>)| {
            let (name, size) = named.clone();
            shares.iter().map(move |share| (name.clone(), size, *share)).collect::<Vec<_>>()
        };
        let jobs: Vec<(String, Option<u64>, f64)> = names.iter().flat_map(of_name).collect();
        let (files, by_sessions) = (run.choose(6, 80), run.choose(1, 6));
        let seed = run.seed;
        let send = |(name, size, share): &(String, Option<u64>, f64)| {
            let protection = match size {
                None => Protection::Stream(*share),
                Some(size) => Protection::Block(*size, Repairs::Share(*share)),
            };
            let trial = Trial { protection, erasure_rate: ERASURE_RATE, burst };
            let sent = match name == BY_SESSIONS {
                true => trial.files_by_sessions(seed, by_sessions)?,
                false => trial.files(seed, files)?,
            };
            Ok((*share, sent))
        };
        let told = |done: usize, _: &(f64, Transfer)| {
            let (each, total) = (jobs.len() * part, jobs.len() * parts);
            run.progress((each + done) as u64, total as u64, &burst_name(burst));
        };
        let mut points = workers::each(workers::count(), &jobs, send, told)?.into_iter();
        let curves = names.into_iter().map(|(name, _)| {
            let points = points.by_ref().take(shares.len()).collect();
            Curve { name, points }
        });
        Ok(Sweep { burst, curves: curves.collect() })
    }

    fn curve(&self, name: &str) -> &Curve {
        self.curves.iter().find(|curve| curve.name == name).expect("a scheme of the sweep")
    }

    /// Returns rows that judge the paper's claim: the streaming code is faster than the best block
    /// code at any code rate; by sessions, it is judged from one repair packet per six source
    /// packets on. A further row judges the packets that the sessions lost, and two rows are only
    /// shown.
    fn advantage_rows(&self, prefix: &str) -> Vec<Row> {
        let (streaming, blocks) = self.curves.split_at(2);
        let [by_sessions, slot_by_slot] = streaming else { unreachable!("split so") };
        let over_blocks = |curve: &Curve, least_share: f64| {
            let points = curve.points.iter().filter(|(share, _)| *share >= least_share);
            let ratios = points.filter_map(|(_, given)| {
                let at = |curve: &Curve| curve.mean_ms_at(given.effective_rate());
                let best = blocks.iter().filter_map(at).min_by(f64::total_cmp)?;
                Some(given.mean_ms() / best)
            });
            ratios.max_by(f64::total_cmp).unwrap_or(f64::NAN)
        };
        let row = |curve: &Curve, from: &str, worst: f64| {
            let what = "best block at equal code rate, at worst";
            let row = Row::new(format!("{prefix}{} : {what}{from}", curve.name), "", worst);
            row.published(1.0).note("The paper: faster over all code rates. Below 1 is faster.")
        };
        let judged = |row: Row| row.at_most(1.0).because("the claim's own edge");
        let ratios = by_sessions.points.iter().filter_map(|(_, given)| {
            Some(given.mean_ms() / slot_by_slot.mean_ms_at(given.effective_rate())?)
        });
        let worst = ratios.max_by(f64::total_cmp).unwrap_or(f64::NAN);
        let name = format!("{prefix}by sessions : slot by slot at equal code rate, at worst");
        vec![
            judged(row(slot_by_slot, "", over_blocks(slot_by_slot, 0.0))),
            judged(row(by_sessions, ", from 1/6 repair on", over_blocks(by_sessions, SIXTH))),
            row(by_sessions, "", over_blocks(by_sessions, 0.0)),
            Row::new(name, "", worst).note("Other rules, and reports every 5 ms."),
            never_came(prefix, by_sessions),
        ]
    }

    fn fill(&self, table: &mut Table) {
        for curve in &self.curves {
            for (share, given) in &curve.points {
                table.push([
                    curve.name.as_str().into(),
                    self.burst.into(),
                    (*share).into(),
                    given.effective_rate().into(),
                    given.mean_ms().into(),
                    given.percentile_ms(0.99).into(),
                ]);
            }
        }
    }

    fn plot(&self, name: &str, title: &str) -> Plot {
        let x =
            Axis::linear("effective code rate: source packets per packet sent").range(0.6, 0.92);
        let series = self.curves.iter().map(|curve| {
            let point = |(_, given): &(f64, Transfer)| (given.effective_rate(), given.mean_ms());
            Series::marked(curve.name.as_str(), curve.points.iter().map(point).collect())
        });
        Plot::new(name, title, x, Axis::log("mean in-order delay, ms")).with_all(series)
    }
}

/// Returns a row with the number of source packets in a million that the sessions lost.
fn never_came(prefix: &str, by_sessions: &Curve) -> Row {
    let of_all = |of: fn(&Transfer) -> u64| -> u64 {
        by_sessions.points.iter().map(|(_, given)| of(given)).sum()
    };
    let (lost, came) = (of_all(|given| given.lost), of_all(|given| given.delays.count()));
    let name = format!("{prefix}source packets that sessions never brought, of a million");
    Row::new(name, "", 1e6 * lost as f64 / (lost + came) as f64)
        .asked(1.0)
        .at_most(1.0)
        .because("set by hand: a coding window holds 512 packets, a quarter of a second here, and then begins anew")
}

impl Curve {
    fn at(&self, share: f64) -> &Transfer {
        let point = self.points.iter().find(|(at, _)| *at == share);
        &point.expect("a share of the sweep").1
    }

    /// Returns the minimum mean delay at which the curve crosses this code rate; `None` if it does
    /// not. Between neighbouring points the logarithm of the delay is interpolated linearly.
    fn mean_ms_at(&self, rate: f64) -> Option<f64> {
        let crossings = self.points.windows(2).filter_map(|pair| {
            let [a, b] = [&pair[0].1, &pair[1].1];
            let (from, to) = (a.effective_rate(), b.effective_rate());
            let part = (rate - from) / (to - from);
            let logarithm = a.mean_ms().ln() * (1.0 - part) + b.mean_ms().ln() * part;
            (0.0..=1.0).contains(&part).then(|| logarithm.exp())
        });
        crossings.min_by(f64::total_cmp)
    }
}
