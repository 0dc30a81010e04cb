//! System Configuration 2: the contribution of key pictures to the spikes that remain with the
//! gate.

use anyhow::Result;
use tautline_scenario::traffic::Media;
use tautline_sim::link::{Config, Pair};
use tautline_units::{Duration, Instant};

use super::gate::{gate_alone, modem};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};
use crate::relayed::{Carriage, MESSAGE_BYTES, Sent, Setup, camera_of_2011};
use crate::workers;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "ugv-key-frames",
    title: "Spikes that key pictures make, over links that hold nothing",
    source: "[UGV] System Configuration 2",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("delay"),
    run,
};

/// Sends pictures at a constant rate with key pictures of several sizes, and locates the latency
/// excursions.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let cases: Vec<Case> =
        WAYS.iter().flat_map(|way| FACTORS.map(|factor| Case { way, factor })).collect();
    let runs = run.choose(1, 8);
    let seed = run.seed;
    let measure = |case: &Case| case.measure(runs, seed);
    let told = |done: usize, _: &Measured| {
        run.progress(done as u64, cases.len() as u64, "key pictures");
    };
    let measured = workers::each(workers::count(), &cases, measure, told)?;
    let all: Vec<(&Case, &Measured)> = cases.iter().zip(&measured).collect();
    Ok(Outcome::Measured(Findings {
        rows: rows(&all),
        tables: vec![table(&all)],
        plots: vec![plot(&all)],
        notes: vec![format!(
            "Modelled: the modems of Figs. 4 and 5 without their outages; 480 kbit/s of video, 15 pictures a second, \
             every thirtieth a key picture, larger than others by the factor in the table, {runs} runs of {} s. A rise is a \
             message of {RISE_MS} ms and more after one of less, where the paper's spikes with the gate begin. The \
             paper does not say how large or how frequent its key frames are; a spike in 67 messages or in 99 is one in 9 \
             or 13 s at the rate of its messages.",
            LENGTH.as_secs()
        )],
    }))
}

/// A named way to send.
struct Way {
    name: &'static str,
    carriage: fn() -> Carriage,
    adapts: bool,
}

const WAYS: [Way; 2] = [
    Way {
        name: "gate alone",
        carriage: || Carriage::Session(Box::new(gate_alone())),
        adapts: false,
    },
    Way { name: "Tautline as it is", carriage: || Carriage::Session(Box::default()), adapts: true },
];

/// Size factors of key pictures: none, as in the camera of Figs. 4 and 5, and up to those plausible
/// in 2011.
const FACTORS: [f64; 4] = [1.0, 3.0, 10.0, 15.0];

struct Case {
    way: &'static Way,
    factor: f64,
}

/// Results of one case, over all its runs.
struct Measured {
    /// Latency of every message, in ms.
    latencies: Vec<f64>,
    /// Number of rises of the latency above [`RISE_MS`].
    rises: usize,
    /// Number of rises of the latency that began within [`AFTER_KEY`] of a key picture.
    with_key: usize,
    /// Number of key pictures.
    keys: usize,
    /// Of the first run, sending time in s and latency in ms of each message.
    first: Vec<(f64, f64)>,
}

impl Case {
    fn measure(&self, runs: u64, seed: u64) -> Result<Measured> {
        let mut measured =
            Measured { latencies: vec![], rises: 0, with_key: 0, keys: 0, first: vec![] };
        for number in 0..runs {
            let still = |config: Config| Config { outage_holding: None, ..config };
            let Pair { up, down } = modem();
            let link = Pair { up: still(up), down: still(down) };
            let carriage = (self.way.carriage)();
            let setup = Setup {
                vehicle_link: link.clone(),
                operator_link: link,
                vehicle: carriage.clone(),
                operator: carriage,
                media: Media {
                    large_factor: self.factor,
                    adapts: self.way.adapts,
                    ..camera_of_2011()
                },
                message_bytes: MESSAGE_BYTES,
                message_interval: MESSAGE_INTERVAL,
                length: LENGTH,
                seed: seed.wrapping_mul(1000) + number,
            };
            let observed = setup.run()?;
            measured.add(&observed.reports, &key_pictures(&observed.media, self.factor));
        }
        Ok(measured)
    }

    fn name(&self) -> String {
        match self.factor {
            1.0 => format!("{}, no key pictures", self.way.name),
            factor => format!("{}, key pictures of {factor} times", self.way.name),
        }
    }
}

impl Measured {
    fn add(&mut self, messages: &[Sent], keys: &[Instant]) {
        let mut was_high = false;
        let is_first = self.latencies.is_empty();
        for message in messages {
            let Some(delay) = message.delay() else { continue };
            let latency = delay.as_secs_f64() * 1e3;
            let is_high = latency >= RISE_MS;
            if is_high && !was_high {
                self.rises += 1;
                let follows =
                    |key: &Instant| message.at >= *key && message.at.since(*key) < AFTER_KEY;
                self.with_key += usize::from(keys.iter().any(follows));
            }
            was_high = is_high;
            self.latencies.push(latency);
            if is_first {
                self.first.push((message.at.as_nanos() as f64 / 1e9, latency));
            }
        }
        self.keys += keys.len();
    }

    fn mean(&self) -> f64 {
        self.latencies.iter().sum::<f64>() / self.latencies.len() as f64
    }

    fn largest(&self) -> f64 {
        self.latencies.iter().copied().fold(0.0, f64::max)
    }
}

/// Returns the sending times of the pictures that exceed half the key picture's factor times the
/// median size; none if the factor is 1 or less.
fn key_pictures(pictures: &[Sent], factor: f64) -> Vec<Instant> {
    let mut sizes: Vec<u64> = pictures.iter().map(|picture| picture.bytes.get()).collect();
    sizes.sort_unstable();
    let usual = sizes.get(sizes.len() / 2).copied().unwrap_or(0) as f64;
    let is_key =
        |picture: &&Sent| factor > 1.0 && picture.bytes.get() as f64 > usual * factor / 2.0;
    pictures.iter().filter(is_key).map(|picture| picture.at).collect()
}

fn rows(all: &[(&Case, &Measured)]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (case, measured) in all {
        let name = |what: &str| format!("{}: {what}", case.name());
        let rises = Row::new(name("rises above 400 ms"), "", measured.rises as f64);
        let is_paced = case.way.adapts;
        rows.push(match case.factor {
            1.0 | 3.0 => rises
                .reference(0.0)
                .within_absolute(0.0)
                .because("no outage holds, and no picture fills the link for so long"),
            _ if is_paced => rises
                .reference(0.0)
                .within_absolute(0.0)
                .because("a message goes ahead of what waits of a picture, which is paced"),
            _ => rises.note(format!(
                "Of {} messages, {} key pictures.",
                measured.latencies.len(),
                measured.keys
            )),
        });
        if case.factor > 3.0 && !is_paced {
            let share = measured.with_key as f64 / measured.rises as f64;
            rows.push(
                Row::new(name("share of the rises that begin with a key picture"), "", share)
                    .asked(0.95)
                    .at_least(1.0)
                    .because("set by hand: what else makes one in twenty is not looked for")
                    .note("The paper: most likely the result of the key frames."),
            );
            let per_key = measured.rises as f64 / measured.keys as f64;
            rows.push(Row::new(name("rises for each key picture"), "", per_key));
            let per_rise = measured.latencies.len() as f64 / measured.rises as f64;
            rows.push(Row::new(name("messages for each rise"), "", per_rise).published(67.0));
        }
        rows.push(Row::new(name("mean latency"), "ms", measured.mean()));
        rows.push(Row::new(name("largest latency"), "ms", measured.largest()));
    }
    rows
}

fn table(all: &[(&Case, &Measured)]) -> Table {
    let columns = [
        "way",
        "key_picture_factor",
        "mean_ms",
        "largest_ms",
        "rises",
        "rises_with_a_key_picture",
        "key_pictures",
        "messages",
    ];
    let mut table = Table::new("key-pictures", columns);
    for (case, measured) in all {
        table.push([
            case.way.name.into(),
            case.factor.into(),
            measured.mean().into(),
            measured.largest().into(),
            measured.rises.into(),
            measured.with_key.into(),
            measured.keys.into(),
            measured.latencies.len().into(),
        ]);
    }
    table
}

/// Plots the message latencies of the first run of each case without key pictures, or with ones ten
/// times as large as other pictures.
fn plot(all: &[(&Case, &Measured)]) -> Plot {
    let series = all.iter().filter(|(case, _)| case.factor == 1.0 || case.factor == 10.0);
    let series = series.map(|(case, measured)| Series::line(case.name(), measured.first.clone()));
    let title = "Message latency with and without key pictures, no outages";
    Plot::new("key-pictures", title, Axis::linear("s"), Axis::linear("latency, ms"))
        .with_all(series)
}

/// Latency in ms from which a message counts as part of a rise: the threshold of the paper's spikes
/// with the gate.
const RISE_MS: f64 = 400.0;
/// Time after a key picture in which a rise counts as its effect: a key picture of factor 15
/// occupies the link for half a second, and delays what follows it.
const AFTER_KEY: Duration = Duration::from_millis(750);
const LENGTH: Duration = Duration::from_secs(60);
/// Interval of messages, as in Figs. 4 and 5.
const MESSAGE_INTERVAL: Duration = Duration::from_micros(132_353);
