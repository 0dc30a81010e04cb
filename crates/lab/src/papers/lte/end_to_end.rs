//! Fig. 14: delay from an event in front of the camera to its picture, by the paper's method and by
//! the stamp.

use std::time::Duration;

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::system;
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::pictures::clip::Passage;
use crate::pictures::coding::{quantile, sorted};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-fig-14",
    title: "From an event to its picture, by counting pictures and by the stamp",
    source: "[LTE] Fig. 14",
    isolation: Isolation::Processes,
    mutation: Mutation::Named("delay"),
    run,
};

/// Measures the delay of the slices carried by the complete system, by counting pictures and by the
/// stamp. Skipped if the system cannot run here.
fn run(run: &Run<'_>) -> Result<Outcome> {
    Ok(match system::driven(run)? {
        Ok(came) => Outcome::Measured(findings(run, &came.passages)),
        Err(missing) => missing,
    })
}

fn findings(run: &Run<'_>, shown: &[Passage]) -> Findings {
    let by_stamp = sorted(shown.iter().map(|shown| ms(shown.latency + shown.decoding)));
    let by_counting = sorted(count_pictures(run.seed, shown).into_iter());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (stamp, counting) = (mean(&by_stamp), mean(&by_counting));
    let mut table = Table::new("latencies", ["measure", "latency_ms"]);
    for (measure, values) in [("stamp", &by_stamp), ("counting", &by_counting)] {
        values.iter().for_each(|value| table.push([measure.into(), (*value).into()]));
    }
    let slower = run.choose(2.0, 1.0);
    let gaps = added_by_gaps(shown, stamp);
    let over = Row::new("counting over stamp, mean", "ms", counting - stamp)
        .reference(PICTURE_MS + gaps)
        .clocked();
    let rows = vec![
        Row::new("by counting pictures, mean", "ms", counting)
            .published(90.0)
            .at_most(slower)
            .because("the paper's own mean, twice that in a quick run")
            .clocked(),
        Row::new("by counting pictures, p95", "ms", quantile(&by_counting, 0.95)),
        Row::new("by the stamp, mean", "ms", stamp),
        Row::new("by the stamp, p95", "ms", quantile(&by_stamp, 0.95)),
        match run.quick {
            true => over.note("Not judged: a machine that is busy with other tests decides it."),
            false => over
                .within_absolute(3.0)
                .because(
                    "set by hand: events at random times, over the slices of a run in real time",
                )
                .note(
                    "Half a picture until the row is read, half until the screen shows it, and what gaps add.",
                ),
        },
        Row::new("of that what gaps between the slices shown add", "ms", gaps)
            .note("The longer one is, the more events fall into it, and wait for its end."),
    ];
    let steps = |label: &str, values: &[f64]| {
        let share = |place: usize| (place + 1) as f64 / values.len() as f64;
        let points = values.iter().enumerate().map(|(place, value)| (*value, share(place)));
        Series::steps(label, points.collect())
    };
    let plot = Plot::new(
        "latency",
        "From an event to its picture",
        Axis::linear("ms"),
        Axis::linear("share of events").range(0.0, 1.0),
    )
    .with(steps("by counting pictures", &by_counting))
    .with(steps("by the stamp", &by_stamp))
    .mark_x(90.0, "published mean");
    Findings {
        tables: vec![table],
        plots: vec![plot],
        rows,
        notes: [
            system::notes(),
            vec![
                "By counting: a camera of 60 pictures a second sees the event and the screen; the pictures \
                 between the two are counted, as in the paper. The screen refreshes 60 times a second, and is a model. \
                 By the stamp: from the first row read to the rows decoded, without a screen."
                    .to_owned(),
            ],
        ]
        .concat(),
    }
}

/// Returns the mean extra delay in ms due to late or lost slices: the wait of events for the middle
/// slice that shows them, plus that slice's delay, minus half a picture interval and `stamp`, the
/// mean delay measured by the stamp.
fn added_by_gaps(shown: &[Passage], stamp: f64) -> f64 {
    let middle: Vec<&Passage> = shown.iter().filter(|shown| shown.strip == MIDDLE_STRIP).collect();
    let gap = |pair: &[&Passage]| ms(pair[1].captured_at.saturating_sub(pair[0].captured_at));
    let (all, waits) = middle.windows(2).fold((0.0, 0.0), |(all, waits), pair| {
        let (gap, way) = (gap(pair), ms(pair[1].latency + pair[1].decoding));
        (all + gap, waits + gap * (gap / 2.0 + way))
    });
    waits / all - PICTURE_MS / 2.0 - stamp
}

/// Returns the results of the paper's method, in ms, for events at random times in the middle of
/// the picture; empty without a passage of the middle strip.
fn count_pictures(seed: u64, shown: &[Passage]) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let middle: Vec<&Passage> = shown.iter().filter(|shown| shown.strip == MIDDLE_STRIP).collect();
    let (Some(first), Some(last)) = (middle.first(), middle.last()) else { return Vec::new() };
    let start = ms(first.captured_at);
    let span = ms(last.captured_at.saturating_sub(first.captured_at)) - PICTURE_MS;
    let next = |at: f64, phase: f64| ((at - phase) / PICTURE_MS).ceil() * PICTURE_MS + phase;
    let mut measured = Vec::new();
    for _ in 0..EVENTS {
        let event = start + random.random_range(0.0..span.max(1.0));
        let (screen, camera) =
            (random.random_range(0.0..PICTURE_MS), random.random_range(0.0..PICTURE_MS));
        let seen = middle.partition_point(|shown| ms(shown.captured_at) < event);
        let Some(picture) = middle.get(seen) else { continue };
        let at = picture.captured_at + picture.latency + picture.decoding;
        let on_screen = next(ms(at), screen);
        let count = (next(on_screen, camera) - next(event, camera)) / PICTURE_MS;
        measured.push(count.round() * PICTURE_MS);
    }
    measured
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

const MIDDLE_STRIP: usize = 2;
const PICTURE_MS: f64 = 1e3 / 60.0;
const EVENTS: usize = 2_000;
