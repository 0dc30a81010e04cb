//! Fig. 9: the intra coded macroblocks of P slices, picture by picture, and the visible duration of
//! a lost slice.

use anyhow::{Context, Result};
use strum::VariantArray;
use tautline_video::avc::LossRecovery;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Concealer, Decoder, Layout, Picture, Quantizers, Refresh};

use super::recovery::{self, Recovery, Shown};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::pictures::footage::{Footage, Size};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-fig-9",
    title: "Intra macroblocks of P slices, picture by picture",
    source: "[LTE] Fig. 9",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("refresh"),
    run,
};

/// Detects the intra columns of a coded stream externally: their output does not depend on the
/// decoder's previous picture.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let size = run.choose(Size::SMALL, Size::HD);
    let footage = Footage::simulated(size, 60, SOURCES, run.seed)?.with_noise(run.seed)?;
    let layout = Layout::of(size.width, size.height)?;
    let rows = layout.strip_rows(MIDDLE_STRIP);
    let sources = footage.pictures.iter().map(|picture| picture.rows(rows.clone()));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let mut table = Table::new("columns", ["mode", "picture", "column"]);
    let mut recoveries =
        Table::new("recovery", ["mode", "decoder", "lost_picture", "seen", "differing"]);
    let (mut plots, mut found, mut recovered) = (Vec::new(), Vec::new(), Vec::new());
    let (decoders, missing): (Vec<Shown>, Vec<Shown>) =
        Shown::VARIANTS.iter().partition(|decoder| decoder.is_there());
    let losses = run.choose(&LOSSES[..3], &LOSSES);
    for (done, mode) in MODES.iter().enumerate() {
        let Mode { name, way, .. } = mode;
        run.progress(done as u64, MODES.len() as u64, name);
        for (decoder, of_decoder) in recovery::of(&sources, *way, QP, losses, &decoders)? {
            for Recovery { lost, seen, differing } in &of_decoder {
                let cells = [(*lost).into(), (*seen).into(), (*differing).into()];
                let [lost, seen, differing] = cells;
                recoveries.push([(*name).into(), decoder.name().into(), lost, seen, differing]);
            }
            recovered.extend(mode.recovered(decoder, &of_decoder));
        }
        let columns = columns(&sources[..=PICTURES], Backend::Avc(*way))?;
        let points = columns.iter().enumerate().flat_map(|(picture, columns)| {
            columns.iter().map(move |column| (*column as f64, picture as f64 + 1.0))
        });
        let points: Vec<(f64, f64)> = points.collect();
        for (column, picture) in &points {
            table.push([(*name).into(), (*picture).into(), (*column).into()]);
        }
        let title = format!("Intra columns of P slices: {name}");
        let axes = (Axis::linear("column of macroblocks"), Axis::linear("picture"));
        plots.push(Plot::new(name, &title, axes.0, axes.1).with(Series::points("intra", points)));
        found.push(columns);
    }
    let mut rows = rows_of(&found, size.width / 16);
    rows.extend(recovered);
    let mut notes = vec![
        "Each P slice is decoded twice, after its own pictures and after another one: columns that \
         come out alike are intra. Single intra macroblocks that the encoder chose are not counted."
            .to_owned(),
        format!(
            "Recovery: one slice lost in {} places, a skip slice in its stead, each stream through the decoder \
             next to the same without a loss. Visible means below {} dB of luma between the two.",
            losses.len(),
            recovery::RECOVERED_DB
        ),
    ];
    notes.extend(
        missing
            .iter()
            .map(|decoder| format!("Left out: {}, which is not installed.", decoder.name())),
    );
    Ok(Outcome::Measured(Findings { tables: vec![table, recoveries], plots, rows, notes }))
}

/// Returns rows about `found`, the intra columns by mode and picture, in strips of `whole` columns.
fn rows_of(found: &[Vec<Vec<usize>>], whole: usize) -> Vec<Row> {
    let refreshed = |columns: &[Vec<usize>]| {
        let mut distinct: Vec<usize> = columns.iter().flatten().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        distinct.len() as f64
    };
    let mut rows = Vec::new();
    for (mode, found) in MODES.iter().zip(found) {
        let place = |picture: usize, number: usize| {
            found[picture].get(number).map_or(f64::NAN, |column| *column as f64)
        };
        let counted = "counted: any other number is another pattern";
        if let LossRecovery::IntraColumns { spacing } = mode.way {
            let apart = format!("columns from one intra column to the next, {}", mode.name);
            let apart = Row::new(apart, "", place(0, 1) - place(0, 0)).published(spacing.into());
            rows.push(apart.within(0.01).because(counted));
            let moved = format!("columns that they move in a picture, {}", mode.name);
            let moved = Row::new(moved, "", place(2, 0) - place(1, 0)).published(1.0);
            rows.push(moved.within(0.01).because(counted));
        }
        let all = format!("columns refreshed in {} pictures, {}", mode.pictures, mode.name);
        let all = Row::new(all, "", refreshed(&found[..mode.pictures])).reference(whole as f64);
        rows.push(all.at_least(1.0).because("every column, or a loss stays"));
    }
    rows
}

/// Returns, for every picture after the first, the columns of macroblocks that do not depend on
/// earlier pictures: their luma is the same if another picture is decoded before.
fn columns(sources: &[Picture], backend: Backend) -> Result<Vec<Vec<usize>>> {
    let (width, height) = (sources[0].width(), sources[0].height());
    let mut encoder = backend.open_at(width, height, 60)?;
    let mut decoder = StripDecoder::new()?;
    let other = another(width, height, backend)?;
    let mut found = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let coded = encoder.encode_at(source, Quantizers::both(QP), Refresh::No)?.bytes;
        let shown = decoder.decode(&coded)?.context("a slice gave no rows")?;
        if number == 0 {
            continue;
        }
        let mut concealer = Concealer::new();
        let mut elsewhere = StripDecoder::new()?;
        let begun = concealer.pass(&other)?.context("an IDR begins")?;
        elsewhere.decode(&begun)?;
        let passed = concealer.pass(&coded)?.context("after an IDR")?;
        let apart = elsewhere.decode(&passed)?.context("a slice gave no rows")?;
        let alike = |column: &usize| {
            let left = column * 16;
            let mut rows = shown.luma().chunks_exact(width).zip(apart.luma().chunks_exact(width));
            rows.all(|(a, b)| a[left..left + 16] == b[left..left + 16])
        };
        found.push((0..width / 16).filter(alike).collect());
    }
    Ok(found)
}

/// Returns an IDR unlike any camera picture.
fn another(width: usize, height: usize, backend: Backend) -> Result<Vec<u8>> {
    let mut picture = Picture::new(width, height)?;
    for (at, value) in picture.planes_mut().0.iter_mut().enumerate() {
        *value = (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0];
    }
    let mut encoder = backend.open_at(width, height, 60)?;
    Ok(encoder.encode_at(&picture, Quantizers::both(QP), Refresh::Idr)?.bytes.to_vec())
}

/// A method of intra refresh, and the number of pictures for a complete refresh.
struct Mode {
    name: &'static str,
    way: LossRecovery,
    pictures: usize,
}

impl Mode {
    /// Returns rows with the longest visible duration of a loss, and with the longest duration of
    /// any difference, in pictures.
    fn recovered(&self, decoder: Shown, recoveries: &[Recovery]) -> [Row; 2] {
        let worst =
            |of: fn(&Recovery) -> usize| recoveries.iter().map(of).max().unwrap_or(0) as f64;
        let named =
            |what: &str| format!("pictures in which {what}, {}, {}", self.name, decoder.name());
        let seen = Row::new(named("a lost slice is seen, the worst"), "", worst(|of| of.seen));
        let differing = worst(|of| of.differing);
        [
            seen.published(self.pictures as f64)
                .at_most(1.0)
                .because("a promise: recovery within that number of pictures"),
            Row::new(named("any pixel differs, the worst"), "", differing),
        ]
    }
}

/// The paper's two spacings, and bands with the same duration.
const MODES: &[Mode] = &[
    Mode { name: "columns", way: LossRecovery::IntraColumns { spacing: 16 }, pictures: 16 },
    Mode { name: "columns-8", way: LossRecovery::IntraColumns { spacing: 8 }, pictures: 8 },
    Mode { name: "band", way: LossRecovery::IntraRefresh { period: 16 }, pictures: 16 },
    Mode { name: "band-8", way: LossRecovery::IntraRefresh { period: 8 }, pictures: 8 },
];
/// Pictures decoded after the first: the longest period.
const PICTURES: usize = 16;
/// Numbers of the lost pictures, each in a separate stream, at different phases of a refresh.
const LOSSES: [usize; 6] = [17, 22, 27, 20, 24, 30];
/// Number of coded pictures: after the last loss, two of the longest periods are left.
const SOURCES: usize = 30 + 2 * PICTURES + 1;
const MIDDLE_STRIP: usize = 2;
const QP: u8 = 28;
