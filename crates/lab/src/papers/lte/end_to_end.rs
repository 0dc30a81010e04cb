//! Fig. 14: from an event before the camera to its picture, by the paper's measure and by the stamp.

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_units::{Bitrate, Duration, Instant};
use tautline_video::Layout;

use super::rig::{self, Behind, Passage, Rig};
use super::slices::{Stream, model_note, modem};
use crate::experiment::{Experiment, Findings, Outcome, Row, Run, Table};
use crate::pictures::coding::{quantile, sorted};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-fig-14",
    title: "From an event to its picture, by counting pictures and by the stamp",
    source: "[LTE] Fig. 14",
    run,
};

/// Carries the slices of a real run over links that are modelled to a screen, and measures twice.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let footage = rig::footage(run)?;
    let pictures = run.choose(30, 600);
    let bitrate = run.choose(Bitrate::from_kbps(1_000), Bitrate::from_mbps(8));
    let rig = Rig {
        backend: rig::BACKEND,
        workers: 2,
        strips: Layout::STRIP_COUNT,
        bitrate,
        pictures,
        behind: Behind::Nothing,
    };
    let passages = rig.watch(&footage)?.passages;
    let shown = shown(run, &passages)?;
    let by_stamp = sorted(shown.iter().map(|shown| ms(shown.at.since(shown.captured_at))));
    let by_counting = sorted(count_pictures(run.seed, &shown).into_iter());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (stamp, counting) = (mean(&by_stamp), mean(&by_counting));
    let mut table = Table::new("latencies", ["measure", "latency_ms"]);
    for (measure, values) in [("stamp", &by_stamp), ("counting", &by_counting)] {
        values.iter().for_each(|value| table.push([measure.into(), (*value).into()]));
    }
    let slower = run.choose(10.0, 1.0);
    let over = Row::new("counting over stamp, mean", "ms", counting - stamp)
        .reference(PICTURE_MS)
        .clocked();
    let rows = vec![
        Row::new("by counting pictures, mean", "ms", counting)
            .published(90.0)
            .at_most(slower)
            .because(rig::SLOWER)
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
                .note("Half a picture until the row is read, half until the screen shows it."),
        },
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
    Ok(Outcome::Measured(Findings {
        tables: vec![table],
        plots: vec![plot],
        rows,
        notes: vec![
            "By counting: a camera of 60 pictures a second sees the event and the screen; the pictures \
             between the two are counted, as in the paper. The screen refreshes 60 times a second. By \
             the stamp: from the first row read to the rows decoded, without a screen."
                .to_owned(),
            format!(
                "Camera, encoders and decoders are run in real time; the network is a model in which \
                 the median slice takes some 20 ms, as the paper's took 23 one way. {}",
                model_note()
            ),
        ],
    }))
}

/// A slice that has come to the screen.
struct Shown {
    captured_at: Instant,
    /// Its rows are decoded.
    at: Instant,
    strip: usize,
}

fn shown(run: &Run<'_>, passages: &[Passage]) -> Result<Vec<Shown>> {
    let decoding = rig::decode(passages)?;
    let seconds = passages.len() as u64 / super::slices::PER_SECOND + 1;
    let links = vec![modem(0.7e6, true); 4];
    let network = Stream::of_paper(links, 8, seconds).send(run.seed)?.latencies;
    let skipped = passages.len() - rig::settled(passages).len();
    let rest = passages.iter().zip(decoding).zip(network).skip(skipped);
    Ok(rest
        .map(|((passage, decoding), network)| Shown {
            captured_at: passage.captured_at,
            at: passage.encoded_at + Duration::from_secs_f64(network / 1e3) + decoding,
            strip: passage.strip,
        })
        .collect())
}

/// Returns what the paper's way gives, in ms, for events at arbitrary times in the middle of the
/// picture.
fn count_pictures(seed: u64, shown: &[Shown]) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let middle: Vec<&Shown> = shown.iter().filter(|shown| shown.strip == MIDDLE_STRIP).collect();
    let (Some(first), Some(last)) = (middle.first(), middle.last()) else { return Vec::new() };
    let start = ms(first.captured_at.since(Instant::ZERO));
    let span = ms(last.captured_at.since(first.captured_at)) - PICTURE_MS;
    let next = |at: f64, phase: f64| ((at - phase) / PICTURE_MS).ceil() * PICTURE_MS + phase;
    let mut measured = Vec::new();
    for _ in 0..EVENTS {
        let event = start + random.random_range(0.0..span.max(1.0));
        let (screen, camera) =
            (random.random_range(0.0..PICTURE_MS), random.random_range(0.0..PICTURE_MS));
        let seen =
            middle.partition_point(|shown| ms(shown.captured_at.since(Instant::ZERO)) < event);
        let Some(picture) = middle.get(seen) else { continue };
        let on_screen = next(ms(picture.at.since(Instant::ZERO)), screen);
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
