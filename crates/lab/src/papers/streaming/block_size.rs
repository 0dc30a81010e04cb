//! Figs. 2 and 9: the delay over the block size.

use anyhow::{Context, Result};

use super::block::Repairs;
use super::link::Transfer;
use super::rows::{delay_rows, link_note, sessions_note};
use super::trial::{Protection, Trial};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};
use crate::workers;

/// Source packets of a block.
const SIZES: [u64; 8] = [2, 4, 8, 16, 32, 64, 128, 256];

/// Mean delay in ms over the block size, and that of a scheme without blocks.
struct Curve {
    erasure_rate: f64,
    /// Repair packets per source packet.
    share: f64,
    /// Label of `other`, retransmission or the streaming code, with its loss or redundancy.
    other_name: &'static str,
    /// Label of the block code, with its loss or redundancy.
    name: &'static str,
    /// Protection of the scheme without blocks: retransmission or the streaming code.
    other: Protection,
    /// Mean delay of the block code in ms in the reference simulation, by [`SIZES`].
    blocks_reference: [f64; 8],
}

pub(crate) const AGAINST_RETRANSMISSION: Experiment = Experiment {
    key: "stream-fig-2",
    title: "Delay over the size of a block",
    source: "[STREAM] Fig. 2",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("coefficients"),
    run: against_retransmission,
};

/// Measures Fig. 2: retransmission alone, and with a block code whose code rate is one minus the
/// loss rate.
fn against_retransmission(run: &Run<'_>) -> Result<Outcome> {
    let curve = |erasure_rate: f64, name, other_name, blocks_reference| Curve {
        erasure_rate,
        share: erasure_rate / (1.0 - erasure_rate),
        other: Protection::Arq,
        name,
        other_name,
        blocks_reference,
    };
    let low = [60.1, 58.7, 55.7, 48.5, 44.8, 44.7, 54.8, 88.4];
    let high = [129.0, 114.0, 105.0, 96.5, 89.8, 91.3, 104.0, 146.0];
    let curves = [
        curve(0.05, "block code, 5 % loss", "retransmission, 5 % loss", low),
        curve(0.2, "block code, 20 % loss", "retransmission, 20 % loss", high),
    ];
    let measured = measure(run, &curves)?;
    let mut rows = Vec::new();
    for ((curve, given), mean) in curves.iter().zip(&measured).zip([62.2, 149.5]) {
        rows.extend(block_rows(run, curve, given));
        rows.push(
            Row::new(format!("{}: mean delay", curve.other_name), "ms", given.other.mean_ms())
                .reference(mean)
                .within(run.choose(0.04, 0.03))
                .because("set by hand: what the mean delays of files of 25 MB differ by"),
        );
        rows.push(best_row(curve, given));
    }
    Ok(Outcome::Measured(Findings {
        tables: vec![table(&curves, &measured)],
        plots: vec![plot(
            "fig-2",
            "In-order delay over the size of a block",
            30.0,
            &curves,
            &measured,
        )],
        rows,
        notes: vec![
            link_note(),
            sessions_note(),
            files_note(run),
            format!("{} files by sessions.", sessions_count(run)),
            "Repair packets make the code rate one less the loss rate on average: where their \
             number is not whole, some blocks have one more."
                .to_owned(),
            "The paper says that the block code is strictly faster than retransmission. At 5 % \
             loss blocks of 256 packets are not: they wait for their own end longer than for a \
             round trip."
                .to_owned(),
        ],
    }))
}

pub(crate) const AGAINST_STREAMING: Experiment = Experiment {
    key: "stream-fig-9",
    title: "The streaming code against blocks of every size",
    source: "[STREAM] Fig. 9",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("coefficients"),
    run: against_streaming,
};

/// Measures Fig. 9: the streaming code and block codes of the same redundancy, 15 %, at 10 % loss.
///
/// The paper does not state whether 15 % refers to the source packets or to all packets.
fn against_streaming(run: &Run<'_>) -> Result<Outcome> {
    let curve = |share: f64, name, other_name, blocks_reference| Curve {
        erasure_rate: 0.1,
        share,
        other: Protection::Stream(share),
        name,
        other_name,
        blocks_reference,
    };
    let of_sources = [81.5, 74.3, 62.0, 49.5, 37.9, 33.0, 41.3, 73.5];
    let of_all = [79.1, 69.7, 56.3, 38.8, 25.6, 21.7, 34.7, 70.4];
    let curves = [
        curve(0.15, "block, 15 % of source", "streaming, 15 % of source", of_sources),
        curve(0.15 / 0.85, "block, 15 % of all", "streaming, 15 % of all", of_all),
    ];
    let measured = measure(run, &curves)?;
    let streaming = [[13.5, 1.9, 67.0, 115.0], [6.05, 0.48, 32.0, 70.0]];
    let mut rows = Vec::new();
    for ((curve, given), streaming) in curves.iter().zip(&measured).zip(streaming) {
        rows.extend(delay_rows(curve.other_name, &given.other, streaming, run.choose(0.15, 0.1)));
        rows.extend(block_rows(run, curve, given));
        rows.push(best_row(curve, given));
        let best = given.blocks.iter().map(Transfer::mean_ms).fold(f64::INFINITY, f64::min);
        let half = |name: &str, given: &Transfer| {
            Row::new(format!("{name} : best block, mean delay"), "", given.mean_ms() / best)
                .published(0.5)
                .at_most(1.0)
                .because("the claim's own edge")
                .note("The paper: about half.")
        };
        rows.push(half(curve.other_name, &given.other));
        let by_sessions = format!("{}, by sessions", curve.other_name);
        rows.extend(given.by_sessions.iter().map(|given| half(&by_sessions, given)));
    }
    let title = "The streaming code against blocks, 10 % loss, redundancy of 15 %";
    Ok(Outcome::Measured(Findings {
        tables: vec![table(&curves, &measured)],
        plots: vec![plot("fig-9", title, 4.0, &curves, &measured)],
        rows,
        notes: vec![
            link_note(),
            sessions_note(),
            files_note(run),
            format!("{} files by sessions.", sessions_count(run)),
            "The paper does not say whether 15 % are of the source packets or of all packets; both \
             are shown."
                .to_owned(),
        ],
    }))
}

/// Measurements of a [`Curve`].
struct Measured {
    blocks: Vec<Transfer>,
    other: Transfer,
    /// Transfer of the streaming code by sessions of the transport; `None` if the scheme without
    /// blocks is another.
    by_sessions: Option<Transfer>,
}

fn measure(run: &Run<'_>, curves: &[Curve]) -> Result<Vec<Measured>> {
    let mut jobs = Vec::new();
    for curve in curves {
        let of = |protection| Trial { protection, erasure_rate: curve.erasure_rate, burst: 1.0 };
        jobs.push((of(curve.other), false));
        let block = |size| Protection::Block(size, Repairs::Share(curve.share));
        jobs.extend(SIZES.map(|size| (of(block(size)), false)));
        if matches!(curve.other, Protection::Stream(_)) {
            jobs.push((of(curve.other), true));
        }
    }
    let (seed, count, by_sessions) = (run.seed, files_count(run), sessions_count(run));
    let send = |(trial, is_by_sessions): &(Trial, bool)| match is_by_sessions {
        true => trial.files_by_sessions(seed, by_sessions),
        false => trial.files(seed, count),
    };
    let told = |done: usize, _: &Transfer| run.progress(done as u64, jobs.len() as u64, "files");
    let mut sent = workers::each(workers::count(), &jobs, send, told)?.into_iter();
    let mut measured = Vec::new();
    for curve in curves {
        let other = sent.next().context("a curve without a level")?;
        let blocks = sent.by_ref().take(SIZES.len()).collect();
        let by_sessions = matches!(curve.other, Protection::Stream(_)).then(|| sent.next());
        measured.push(Measured { blocks, other, by_sessions: by_sessions.flatten() });
    }
    Ok(measured)
}

fn sessions_count(run: &Run<'_>) -> u64 {
    run.choose(1, 16)
}

fn files_count(run: &Run<'_>) -> u64 {
    run.choose(10, 200)
}

fn files_note(run: &Run<'_>) -> String {
    format!("{} files of 25 MB a point.", files_count(run))
}

fn block_rows(run: &Run<'_>, curve: &Curve, given: &Measured) -> Vec<Row> {
    let points = SIZES.iter().zip(&given.blocks).zip(curve.blocks_reference);
    let row = |((size, transfer), reference): ((&u64, &Transfer), f64)| {
        Row::new(format!("{}, k = {size}: mean delay", curve.name), "ms", transfer.mean_ms())
            .reference(reference)
            .within(run.choose(0.08, 0.06))
            .because("set by hand: what the mean delays of files of 25 MB differ by")
    };
    points.map(row).collect()
}

/// Returns a row with the block size of the least mean delay, judged by the paper's 32 to 64.
fn best_row(curve: &Curve, given: &Measured) -> Row {
    let means = SIZES.iter().zip(&given.blocks);
    let best = means.min_by(|a, b| a.1.mean_ms().total_cmp(&b.1.mean_ms()));
    let size = best.map_or(f64::NAN, |(size, _)| *size as f64);
    Row::new(format!("{}: block size of the least mean delay", curve.name), "packets", size)
        .reference(48.0)
        .within_absolute(16.0)
        .because("either of the two sizes that the paper names")
        .note("A clear minimum, at 32 to 64.")
}

fn table(curves: &[Curve], measured: &[Measured]) -> Table {
    let columns = ["scheme", "k", "erasure_rate", "effective_code_rate", "mean_ms", "p95_ms"];
    let mut table = Table::new("delay", columns);
    for (curve, given) in curves.iter().zip(measured) {
        let by_sessions = format!("{}, by sessions", curve.other_name);
        let by_sessions = given.by_sessions.iter().map(|given| (by_sessions.clone(), 0, given));
        let others =
            std::iter::once((curve.other_name.to_owned(), 0, &given.other)).chain(by_sessions);
        let blocks = SIZES.iter().zip(&given.blocks);
        let blocks = blocks.map(|(size, given)| (curve.name.to_owned(), *size, given));
        for (name, size, given) in others.chain(blocks) {
            table.push([
                name.into(),
                size.into(),
                curve.erasure_rate.into(),
                given.effective_rate().into(),
                given.mean_ms().into(),
                given.percentile_ms(0.95).into(),
            ]);
        }
    }
    table
}

/// Plots the delays; `low` is the lower end of the axis in ms.
fn plot(name: &str, title: &str, low: f64, curves: &[Curve], measured: &[Measured]) -> Plot {
    let x = Axis::log("source packets of a block, k").range(1.7, 300.0);
    let x = x.ticks(SIZES.map(|size| size as f64));
    let y = Axis::log("mean in-order delay, ms").range(low, 200.0);
    let y = y.ticks([5.0, 10.0, 20.0, 50.0, 100.0, 200.0].into_iter().filter(|tick| *tick >= low));
    let mut plot = Plot::new(name, title, x, y);
    for (colour, (curve, given)) in curves.iter().zip(measured).enumerate() {
        let blocks = SIZES.iter().zip(&given.blocks);
        let points = blocks.map(|(size, given)| (*size as f64, given.mean_ms())).collect();
        let ends = [SIZES[0], SIZES[SIZES.len() - 1]];
        let level = |given: &Transfer| ends.map(|size| (size as f64, given.mean_ms())).to_vec();
        let by_sessions = format!("{}, by sessions", curve.other_name);
        let by_sessions = given
            .by_sessions
            .iter()
            .map(|given| Series::marked(by_sessions.as_str(), level(given)).colour(colour));
        plot = plot
            .with(Series::line(curve.other_name, level(&given.other)).colour(colour))
            .with_all(by_sessions)
            .with(Series::marked(curve.name, points).dashed().colour(colour));
    }
    plot
}
