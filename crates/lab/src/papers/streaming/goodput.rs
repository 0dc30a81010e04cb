//! Theorem 3: the share of a stream that is finally delivered.

use anyhow::Result;
use tautline_fec::theory::Stream;

use super::intervals::Intervals;
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "stream-theorem-3",
    title: "The share of a stream's slots that deliver a source packet, by its length",
    source: "[STREAM] Theorem 3",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("coefficients"),
    run,
};

/// Sends streams of the length that suffices by the theorem, and shorter ones, without feedback.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let mut pairs = Vec::new();
    for (done, (interval, erasure_rate, quick)) in PAIRS.into_iter().enumerate() {
        let what = format!("l = {interval}, {erasure_rate} loss");
        run.progress(done as u64, PAIRS.len() as u64, &what);
        let stream = Stream::new(interval, erasure_rate)?;
        pairs.push(Pair::measure(stream, run.choose(quick, STREAMS), run.seed)?);
    }
    Ok(Outcome::Measured(Findings {
        rows: pairs.iter().flat_map(Pair::rows).collect(),
        tables: vec![table(&pairs)],
        plots: vec![plot(&pairs)],
        notes: vec![
            format!(
                "Streams end abruptly: what is missing then is lost, as the theorem has it. Asked for are \
                 {SHARE} of the code rate but with a probability of {FAILURE}. The length that suffices \
                 is that of the theorem's proof with Chernoff's bound in the place of an approximation by \
                 the normal tail."
            ),
            "Sent by the crate's own encoder over independent losses to its own decoder."
                .to_owned(),
        ],
    }))
}

/// Intervals, erasure rates, and the number of streams in a quick run.
const PAIRS: [(u32, f64, u64); 3] = [(6, 0.1, 200), (8, 0.1, 16), (12, 0.05, 60)];

/// Number of streams in a full run.
const STREAMS: u64 = 1_000;

/// Required goodput as a share of the code rate: R0 of the theorem divided by the code rate.
const SHARE: f64 = 0.95;

/// Permitted probability that a stream's goodput is lower than required: delta of the theorem.
const FAILURE: f64 = 0.05;

/// Stream lengths to examine, relative to the one that suffices.
const LENGTHS: [f64; 6] = [1.0 / 32.0, 1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0, 1.0];

/// Index in [`LENGTHS`] of a stream length, our choice, at which too few streams must reach the
/// required goodput.
const SHORT: usize = 0;
/// Index in [`LENGTHS`] of the stream length that suffices by the theorem.
const ENOUGH: usize = 5;

/// Results of many streams over one link.
struct Pair {
    stream: Stream,
    /// Number of slots of a stream, by [`LENGTHS`].
    slots: [f64; LENGTHS.len()],
    /// Share of the streams that deliver the required goodput, by [`LENGTHS`].
    reached: [f64; LENGTHS.len()],
    /// Mean share of slots that deliver a source packet, by [`LENGTHS`].
    goodput: [f64; LENGTHS.len()],
}

impl Pair {
    fn measure(stream: Stream, streams: u64, seed: u64) -> Result<Self> {
        let l = f64::from(stream.interval());
        let asked = SHARE * stream.code_rate();
        let slots = stream.length_for_goodput(asked, FAILURE)?;
        let intervals = LENGTHS.map(|share| (share * slots / l).ceil().max(1.0) as u64);
        let (mut reached, mut goodput) = ([0_u64; LENGTHS.len()], [0.0; LENGTHS.len()]);
        for number in 0..streams {
            let seed = seed.wrapping_mul(1_000_003).wrapping_add(number);
            let mut sent = Intervals::new(&stream, seed)?;
            let (mut done, mut delivered) = (0, 0);
            for (at, end) in intervals.into_iter().enumerate() {
                while done < end {
                    delivered = sent.next()?.delivered;
                    done += 1;
                }
                let share = delivered as f64 / (end as f64 * l);
                reached[at] += u64::from(share > asked);
                goodput[at] += share / streams as f64;
            }
        }
        let slots = intervals.map(|count| count as f64 * l);
        let reached = reached.map(|count| count as f64 / streams as f64);
        Ok(Self { stream, slots, reached, goodput })
    }

    fn name(&self) -> String {
        format!("l = {}, {} loss", self.stream.interval(), self.stream.erasure_rate())
    }

    fn rows(&self) -> [Row; 3] {
        let streams = |at: usize| {
            format!("streams of {} slots that deliver it, {}", self.slots[at], self.name())
        };
        let capacity = 1.0 - self.stream.erasure_rate();
        [
            Row::new(streams(ENOUGH), "", self.reached[ENOUGH])
                .reference(1.0 - FAILURE)
                .at_least(1.0)
                .because("the theorem bounds it from below"),
            Row::new(streams(SHORT), "", self.reached[SHORT])
                .reference(1.0 - FAILURE)
                .at_most(1.0)
                .because(
                    "a thirty-second of that length must not suffice, or the length told says nothing",
                ),
            Row::new(format!("goodput over the link's capacity, {}", self.name()), "", {
                self.goodput[ENOUGH] / capacity
            })
            .reference(self.stream.code_rate() / capacity)
            .by_construction(
                "where the first row holds, which is judged: streams that deliver it carry the mean",
            ),
        ]
    }
}

fn table(pairs: &[Pair]) -> Table {
    let columns = ["interval_slots", "erasure_rate", "slots", "streams_that_deliver_it", "goodput"];
    let mut table = Table::new("goodput", columns);
    for pair in pairs {
        for (at, slots) in pair.slots.into_iter().enumerate() {
            table.push([
                u64::from(pair.stream.interval()).into(),
                pair.stream.erasure_rate().into(),
                slots.into(),
                pair.reached[at].into(),
                pair.goodput[at].into(),
            ]);
        }
    }
    table
}

fn plot(pairs: &[Pair]) -> Plot {
    let series = pairs.iter().map(|pair| {
        let points = LENGTHS.iter().zip(pair.reached);
        Series::marked(pair.name(), points.map(|(length, share)| (*length, share)).collect())
    });
    Plot::new(
        "theorem-3",
        "Streams that deliver 95 % of the code rate",
        Axis::log("length over the one that suffices by Theorem 3"),
        Axis::linear("share of the streams").range(0.0, 1.05),
    )
    .with_all(series)
    .mark_y(1.0 - FAILURE, "asked for")
}
