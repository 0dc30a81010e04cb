//! Effect of a sudden change of the budget on the slices around it.

use anyhow::Result;
use tautline_units::{Bitrate, ByteCount};
use tautline_vehicle::encode::Plan;
use tautline_video::{Backend, Layout, Refresh};

use super::rig::{self, RATE};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::pictures::coding::{self, Coder, mean, quantile, sorted};
use crate::pictures::footage::{Footage, Size, clips};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-budget-steps",
    title: "Slices around steps of the budget",
    source: "[LTE] IV",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("ceiling"),
    run,
};

/// Steps the budget down to a tenth, or a third in a quick run, and up again, in the middle of a
/// picture, and examines each slice.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let levels = run.choose(
        [1_500, 500, 1_500, 500, 1_500].map(Bitrate::from_kbps),
        [10, 1, 10, 1, 10].map(Bitrate::from_mbps),
    );
    let each = run.choose(12, 24);
    let mut findings = Findings { tables: vec![table(), around()], ..Findings::default() };
    for footage in footages(run, each * levels.len(), &mut findings.notes)? {
        let mut curves = Vec::new();
        for (done, backend) in coding::backends().into_iter().enumerate() {
            run.progress(done as u64, 3, &format!("{}, {backend}", footage.name));
            let slices = code(&footage, backend, &levels, each)?;
            for slice in &slices {
                slice.list(&footage, backend, &mut findings.tables[0]);
            }
            // A skip slice of a small picture may exceed the minimum share.
            let most = run.choose(1.05, 1.0);
            findings.rows.extend(rows(&footage, backend, &slices, most, &mut findings.tables[1]));
            let points = slices.iter().filter(|slice| slice.is_predicted());
            let points = points.map(|slice| (slice.at_picture(), slice.share())).collect();
            curves.push(Series::line(backend.to_string(), points));
        }
        let name = format!("steps-{}", footage.name);
        let [most, least] = [levels[0], levels[1]].map(|level| level.as_f64() / 1e6);
        let title = format!("Budget {most} to {least} Mbit/s and back: {}", footage.name);
        let mut plot = Plot::new(
            &name,
            &title,
            Axis::linear("picture"),
            Axis::linear("size of a slice over its budget"),
        )
        .with_all(curves)
        .mark_y(1.0, "");
        for step in 1..levels.len() {
            plot = plot.mark_x((step * each) as f64 + 0.5, "");
        }
        findings.plots.push(plot);
    }
    findings.notes.push(format!(
        "Each level lasts {each} pictures; it changes between the third slice of a picture and the \
         fourth. Our own has its share of each picture by need, others equal shares. Sizes are over \
         the budget that holds when the slice begins. A slice after a step up cannot use all of it at once where the quantizer moves \
         by bounded steps: the table shows how much it does."
    ));
    Ok(Outcome::Measured(findings))
}

fn footages(run: &Run<'_>, count: usize, notes: &mut Vec<String>) -> Result<Vec<Footage>> {
    let size = run.choose(Size::SMALL, Size::HD);
    let mut footages = vec![Footage::simulated(size, RATE, count, run.seed)?.with_noise(run.seed)?];
    if !run.quick {
        let (clips, none) = clips();
        notes.extend(none);
        for clip in clips.iter().take(1) {
            footages.push(Footage::clip(clip, Size::HD, RATE, count)?.with_noise(run.seed)?);
        }
    }
    Ok(footages)
}

/// One slice with its budget.
struct Slice {
    picture: usize,
    strip: usize,
    budget: ByteCount,
    bytes: usize,
    /// Index of its budget in the list of levels.
    level: usize,
    /// Number of earlier slices of its strip since the level began.
    after: usize,
    /// True if the bitrate of its level is below that of the previous level in the list; the same
    /// for all slices of a level, and false for the first level.
    is_lower: bool,
}

impl Slice {
    fn share(&self) -> f64 {
        self.bytes as f64 / self.budget.get() as f64
    }

    fn at_picture(&self) -> f64 {
        self.picture as f64 + self.strip as f64 / Layout::STRIP_COUNT as f64
    }

    /// Returns whether a slice is not its strip's first, which is an IDR.
    fn is_predicted(&self) -> bool {
        self.picture > 0
    }

    fn list(&self, footage: &Footage, backend: Backend, table: &mut Table) {
        table.push([
            footage.name.as_str().into(),
            backend.to_string().into(),
            self.picture.into(),
            self.strip.into(),
            self.level.into(),
            self.budget.get().into(),
            self.bytes.into(),
            self.share().into(),
        ]);
    }
}

fn code(
    footage: &Footage,
    backend: Backend,
    levels: &[Bitrate],
    each: usize,
) -> Result<Vec<Slice>> {
    let first = &footage.pictures[0];
    let layout = Layout::of(first.width(), first.height())?;
    let open = |strip: usize| {
        Coder::open(backend, layout.width(), layout.strip_rows(strip).len(), footage.rate)
    };
    let mut coders = (0..layout.strip_count()).map(open).collect::<Result<Vec<_>>>()?;
    let period = std::time::Duration::from_secs_f64(1.0 / f64::from(footage.rate));
    let plan = Plan::new(layout.strip_count());
    let mut slices: Vec<Slice> = Vec::new();
    for (picture, whole) in footage.pictures.iter().enumerate() {
        for (strip, coder) in coders.iter_mut().enumerate() {
            let into = picture.checked_sub(usize::from(strip < layout.strip_count() / 2));
            let level = (into.unwrap_or(0) / each).min(levels.len() - 1);
            let budget = coder.share(&plan, picture, strip, levels[level] * period);
            let rows = whole.rows(layout.strip_rows(strip))?;
            let coded = coder.encode(&rows, coding::Size::Budget(budget), Refresh::No)?;
            coder.tell(&plan, picture, strip, [budget, ByteCount::of(&coded.bytes)]);
            slices.push(Slice {
                picture,
                strip,
                budget,
                bytes: coded.bytes.len(),
                level,
                after: into.unwrap_or(0) % each,
                is_lower: level > 0 && levels[level] < levels[level - 1],
            });
        }
    }
    Ok(slices)
}

/// Returns rows about the slices after the steps, judged for the own encoder alone. It adds to
/// `around` a line for each direction and each of the first [`LISTED`] positions after a step.
fn rows(
    footage: &Footage,
    backend: Backend,
    slices: &[Slice],
    most: f64,
    around: &mut Table,
) -> Vec<Row> {
    let shares = |is_lower: bool, after: &dyn Fn(usize) -> bool| {
        let of = slices.iter().filter(|slice| slice.is_predicted() && slice.level > 0);
        let of = of.filter(|slice| slice.is_lower == is_lower && after(slice.after));
        sorted(of.map(Slice::share))
    };
    for (way, is_lower) in [("down", true), ("up", false)] {
        for place in 0..LISTED {
            let of_place = shares(is_lower, &|after| after == place);
            around.push([
                footage.name.as_str().into(),
                backend.to_string().into(),
                way.into(),
                place.into(),
                mean(&of_place).into(),
                quantile(&of_place, 0.0).into(),
                quantile(&of_place, 1.0).into(),
            ]);
        }
    }
    let of = format!("{backend}, {}", footage.name);
    let is_own = backend == rig::BACKEND;
    let judge = |row: Row| match is_own {
        true => row
            .asked(1.05)
            .at_most(most)
            .because("asked of this encoder: a twentieth over is made up for by the next slice"),
        false => row,
    };
    let (down, up) = (shares(true, &|after| after == 0), shares(false, &|after| after == 0));
    let (later_down, later_up) =
        (shares(true, &|after| after > 0), shares(false, &|after| after > 0));
    let worst = |shares: &[f64]| quantile(shares, 1.0);
    let row = |what: &str, measured: f64| Row::new(format!("{what}, {of}"), "", measured);
    vec![
        judge(row("first slice after a step down over its budget, worst", worst(&down))),
        row("first slice after a step down over its budget, mean", mean(&down)),
        judge(row("later slices below over their budget, p99", quantile(&later_down, 0.99))),
        row("later slices below over their budget, mean", mean(&later_down)),
        judge(row("first slice after a step up over its budget, worst", worst(&up))),
        row("first slice after a step up over its budget, mean", mean(&up)),
        judge(row("later slices above over their budget, p99", quantile(&later_up, 0.99))),
        row("later slices above over their budget, mean", mean(&later_up)),
    ]
}

fn table() -> Table {
    let columns = [
        "footage",
        "encoder",
        "picture",
        "strip",
        "level",
        "budget_bytes",
        "bytes",
        "size_over_budget",
    ];
    Table::new("slices", columns)
}

fn around() -> Table {
    let columns = [
        "footage",
        "encoder",
        "step",
        "slices_of_the_strip_since",
        "size_over_budget_mean",
        "size_over_budget_least",
        "size_over_budget_most",
    ];
    Table::new("after-steps", columns)
}

/// Number of slices of each strip that are listed after a step.
const LISTED: usize = 6;
