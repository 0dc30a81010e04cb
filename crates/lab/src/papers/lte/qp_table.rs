//! Fig. 11: the pair of quantizers that yields a desired slice size.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use tautline_units::ByteCount;
use tautline_video::avc::LossRecovery;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Decoder, Layout, Quantizers, Refresh};

use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::pictures::footage::{Footage, Size, clips};
use crate::pictures::qp_table::QpTable;
use crate::plot::{Axis, Plot, Series};
use crate::quality;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-fig-11",
    title: "Quantizers for a desired slice size",
    source: "[LTE] Fig. 11",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("headers"),
    run,
};

/// Computes the table and plots it.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let (footage, none) = footage(run)?;
    let statistics = Statistics::of(run, &footage)?;
    let table = statistics.table()?;
    let mut points = Table::new("qp-table", ["slice_bytes", "qp_intra", "qp_predicted"]);
    for (bytes, quantizers) in table.entries() {
        let Quantizers { intra, predicted } = quantizers;
        points.push([bytes.get().into(), u64::from(intra).into(), u64::from(predicted).into()]);
    }
    let curve = |of: fn(Quantizers) -> u8| {
        table
            .entries()
            .map(|(bytes, qp)| (bytes.get() as f64, f64::from(of(qp))))
            .collect::<Vec<_>>()
    };
    let plot = Plot::new(
        "quantizers",
        "Quantizers for a desired slice size",
        Axis::log("bytes of a slice"),
        Axis::linear("QP"),
    )
    .with(Series::marked("I", curve(|qp| qp.intra)))
    .with(Series::marked("P", curve(|qp| qp.predicted)));
    let shares = statistics.shares(&table);
    let at = |share: f64| crate::pictures::coding::quantile(&shares, share);
    let rows = vec![
        Row::new("a slice over the size looked up, p1", "", at(0.01)).reference(0.05),
        Row::new("a slice over the size looked up, p50", "", at(0.5)),
        Row::new("a slice over the size looked up, p99", "", at(0.99))
            .reference(2.7)
            .within(0.5)
            .because("set by hand: how far single slices stray depends on the footage")
            .note("Why the paper's table is not what the encoder goes by."),
        Row::new("slices within 10 % of the size looked up", "%", 100.0 * within_tenth(&shares)),
        within(run, &shares),
        Row::new("sizes in the table", "", table.entries().count() as f64)
            .asked(8.0)
            .at_least(1.0)
            .because("set by hand: fewer would be no table"),
    ];
    let mut notes = vec![format!(
        "Quantizers are cycled through as in the paper's drive of an hour, over {}: every strip, {} P slices of \
         our encoder at each pair, intra refresh among them as a band. The mean size of a slice is taken over that period; of \
         the pairs that keep a size, the table has the one of the best PSNR. `tautline lab qp-table` \
         makes such a table of any clip. The vehicle has no use for it: its encoder changes the quantizer within \
         the slice.",
        footage.iter().map(|footage| footage.name.as_str()).collect::<Vec<_>>().join(", "),
        PICTURES - 1
    )];
    notes.extend(none);
    Ok(Outcome::Measured(Findings {
        tables: vec![points, statistics.listed()],
        plots: vec![plot],
        rows,
        notes,
    }))
}

/// Returns the share of `shares`, sizes relative to the size looked up, from 0.9 to 1.1.
fn within_tenth(shares: &[f64]) -> f64 {
    let within = shares.iter().filter(|share| (0.9..=1.1).contains(*share)).count();
    within as f64 / shares.len() as f64
}

/// Returns a row with the 90th percentile of the deviation from the size looked up, judged in a
/// full run.
fn within(run: &Run<'_>, shares: &[f64]) -> Row {
    let off = crate::pictures::coding::sorted(shares.iter().map(|share| (share - 1.0).abs()));
    let off = crate::pictures::coding::quantile(&off, 0.9);
    let row = Row::new("off the size looked up, p90 of slices", "%", 100.0 * off).asked(10.0);
    match run.quick {
        true => row.note("Not judged: a slice of a small picture is of few macroblocks."),
        false => row
            .at_most(1.0)
            .because("asked of a table that one would send by: nine in ten within a tenth"),
    }
}

/// Computes the table of one clip, as `tautline lab qp-table` writes it.
///
/// # Errors
/// If the clip cannot be read.
pub fn of_clip(run: &Run<'_>, clip: &std::path::Path, pictures: usize) -> Result<QpTable> {
    let footage = Footage::clip(clip, Size::HD, RATE, pictures)?;
    Statistics::of(run, &[footage])?.table()
}

fn footage(run: &Run<'_>) -> Result<(Vec<Footage>, Option<String>)> {
    let size = run.choose(Size::SMALL, Size::HD);
    let simulated = Footage::simulated(size, RATE, PICTURES, run.seed)?.with_noise(run.seed)?;
    if run.quick {
        return Ok((vec![simulated], None));
    }
    let (clips, none) = clips();
    let clips = clips
        .iter()
        .map(|clip| Footage::clip(clip, Size::HD, RATE, PICTURES)?.with_noise(run.seed));
    let mut all = vec![simulated];
    for clip in clips {
        all.push(clip?);
    }
    Ok((all, none))
}

/// Slice sizes at every pair of quantizers.
struct Statistics {
    pairs: BTreeMap<Quantizers, Sizes>,
}

#[derive(Default)]
struct Sizes {
    bytes: Vec<usize>,
    psnr_sum: f64,
}

impl Sizes {
    fn mean(&self) -> f64 {
        self.bytes.iter().sum::<usize>() as f64 / self.bytes.len() as f64
    }

    fn psnr(&self) -> f64 {
        self.psnr_sum / self.bytes.len() as f64
    }
}

impl Statistics {
    fn of(run: &Run<'_>, footage: &[Footage]) -> Result<Self> {
        let mut pairs = BTreeMap::<Quantizers, Sizes>::new();
        let step = run.choose(4, 3);
        let predicted: Vec<u8> = (FINEST..=Quantizers::MAX).step_by(step).collect();
        for (done, &predicted) in predicted.iter().enumerate() {
            run.progress(done as u64, LENGTH_SHOWN, &format!("QP {predicted}"));
            for difference in DIFFERENCES {
                let intra = predicted.saturating_add_signed(*difference).min(Quantizers::MAX);
                let quantizers = Quantizers { intra, predicted };
                if pairs.contains_key(&quantizers) {
                    continue;
                }
                let sizes = pairs.entry(quantizers).or_default();
                for footage in footage {
                    sizes.take(footage, quantizers)?;
                }
            }
        }
        Ok(Self { pairs })
    }

    /// Returns, by their mean slice sizes, the pairs with a better mean PSNR than every pair of a
    /// smaller mean size.
    fn table(&self) -> Result<QpTable> {
        let mut by_size: Vec<(&Quantizers, &Sizes)> = self.pairs.iter().collect();
        by_size.sort_by(|a, b| a.1.mean().total_cmp(&b.1.mean()));
        let mut best = f64::NEG_INFINITY;
        let mut entries = Vec::new();
        for (quantizers, sizes) in by_size {
            if sizes.psnr() > best {
                best = sizes.psnr();
                entries.push((ByteCount::new(sizes.mean().round() as u64), *quantizers));
            }
        }
        QpTable::new(entries).context("no quantizer was measured")
    }

    /// Returns every slice's size relative to the mean of its pair of quantizers, ascending, for
    /// the pairs in `table`.
    fn shares(&self, table: &QpTable) -> Vec<f64> {
        let of = |quantizers: Quantizers| &self.pairs[&quantizers];
        let shares = table.entries().flat_map(|(_, quantizers)| {
            let mean = of(quantizers).mean();
            of(quantizers).bytes.iter().map(move |bytes| *bytes as f64 / mean)
        });
        crate::pictures::coding::sorted(shares)
    }

    fn listed(&self) -> Table {
        let mut table = Table::new("pairs", ["qp_intra", "qp_predicted", "mean_bytes", "psnr_db"]);
        for (Quantizers { intra, predicted }, sizes) in &self.pairs {
            let (intra, predicted) = (u64::from(*intra).into(), u64::from(*predicted).into());
            table.push([intra, predicted, sizes.mean().into(), sizes.psnr().into()]);
        }
        table
    }
}

impl Sizes {
    /// Codes every strip of the footage and adds the sizes and the PSNR of its P slices.
    fn take(&mut self, footage: &Footage, quantizers: Quantizers) -> Result<()> {
        let layout = Layout::of(footage.pictures[0].width(), footage.pictures[0].height())?;
        for strip in 0..Layout::STRIP_COUNT {
            let rows = layout.strip_rows(strip);
            let mut encoder =
                Backend::Avc(REFRESH).open_at(layout.width(), rows.len(), footage.rate)?;
            let mut decoder = StripDecoder::new()?;
            for (number, picture) in footage.pictures.iter().enumerate() {
                let source = picture.rows(rows.clone())?;
                let coded = encoder.encode_at(&source, quantizers, Refresh::No)?;
                let shown = decoder.decode(&coded.bytes)?.context("a slice gave no rows")?;
                // The first is an IDR, which occurs only once in the paper's stream.
                if number == 0 {
                    continue;
                }
                self.bytes.push(coded.bytes.len());
                self.psnr_sum += quality::psnr(&shown, &source)?.min(PSNR_MAX);
            }
        }
        Ok(())
    }
}

/// Refresh of the paper: every macroblock is intra coded once in 16 pictures.
const REFRESH: LossRecovery = LossRecovery::IntraRefresh { period: 16 };
/// Number of coded pictures: an IDR and one period of refresh.
const PICTURES: usize = 17;
const RATE: u32 = 60;
const FINEST: u8 = 16;
/// Differences of the I quantizer from the P quantizer.
const DIFFERENCES: &[i8] = &[-4, 0, 4];
const LENGTH_SHOWN: u64 = 12;
const PSNR_MAX: f64 = 60.0;
