//! Table 1, as far as it can be measured on this machine now: Tautline's message compared to Rust
//! codecs.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use prost::Message;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use tautline_message::point_cloud::{FieldView, Number, Reader, Record};
use tautline_message::{Builder, PointCloud};
use tautline_net::clock::Clock;
use tautline_units::{ByteCount, Instant};

use super::codecs::{METRICS, published};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::notation::number;
use crate::pictures::coding::{mean, quantile, sorted};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "timing-here",
    title: "Serialization of 10,000 lidar points, measured now",
    source: "[TIMING] Table 1",
    isolation: Isolation::Alone,
    mutation: Mutation::Named("points"),
    run,
};

/// Times encoding and decoding with each codec in turns, and checks the results.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let cloud = Cloud::draw(run.seed);
    let mut subjects = subjects();
    for subject in &mut subjects {
        let bytes = (subject.encode)(&cloud)?;
        ensure!((subject.decode)(&bytes)? == cloud, "{}: another cloud comes back", subject.name);
        subject.bytes = bytes;
    }
    let clock = Clock::start();
    let rounds = run.choose(4, 400);
    for round in 0..rounds {
        run.progress(round, rounds, "a round of every codec");
        for subject in &mut subjects {
            let begun = clock.now();
            black_box((subject.encode)(black_box(&cloud))?);
            let between = clock.now();
            black_box((subject.decode)(black_box(&subject.bytes))?);
            let ended = clock.now();
            subject.times[0].push(micros(between.since(begun)));
            subject.times[1].push(micros(ended.since(between)));
        }
    }
    findings(run, &subjects).map(Outcome::Measured)
}

type Encode = Box<dyn FnMut(&Cloud) -> Result<Vec<u8>>>;
type Decode = Box<dyn FnMut(&[u8]) -> Result<Cloud>>;

/// An encoding of a cloud, and its measurements.
struct Subject {
    /// Name in the committed measurement.
    name: &'static str,
    encode: Encode,
    decode: Decode,
    bytes: Vec<u8>,
    /// Times of all calls in microseconds, of encode and of decode.
    times: [Vec<f64>; 2],
}

impl Subject {
    fn new(
        name: &'static str,
        encode: impl FnMut(&Cloud) -> Result<Vec<u8>> + 'static,
        decode: impl FnMut(&[u8]) -> Result<Cloud> + 'static,
    ) -> Self {
        let (encode, decode) = (Box::new(encode), Box::new(decode));
        Self { name, encode, decode, bytes: Vec::new(), times: Default::default() }
    }

    fn least(&self, metric: usize) -> f64 {
        self.times[metric].iter().copied().fold(f64::INFINITY, f64::min)
    }
}

fn subjects() -> Vec<Subject> {
    let (mut message, mut builder) = (PointCloud::new(Instant::ZERO, FRAME), Builder::new());
    let mut reader = Reader::new();
    vec![
        // Sixteen bytes per point, once in each direction: the lower bound for codecs that copy.
        Subject::new(
            COPY,
            |cloud| {
                let mut bytes = vec![0; cloud.points.len() * size_of::<[u8; 16]>()];
                let (records, _) = bytes.as_chunks_mut();
                for (record, point) in records.iter_mut().zip(&cloud.points) {
                    *record = point.to_bytes();
                }
                Ok(bytes)
            },
            |bytes| {
                let (records, _) = bytes.as_chunks();
                Ok(Cloud { points: records.iter().map(Point::from_bytes).collect() })
            },
        ),
        Subject::new(
            OURS,
            move |cloud| {
                message.captured_at = Instant::ZERO;
                Ok(message.encode_points_into(&cloud.points, &mut builder).to_vec())
            },
            move |bytes| {
                let mut points = Vec::new();
                reader.read(bytes)?.read_points(&mut points);
                Ok(Cloud { points })
            },
        ),
        Subject::new(
            "postcard",
            |cloud| Ok(postcard::to_stdvec(cloud)?),
            |bytes| Ok(postcard::from_bytes(bytes)?),
        ),
        Subject::new(
            "prost",
            |cloud| Ok(WireCloud::of(cloud).encode_to_vec()),
            |bytes| Ok(WireCloud::decode(bytes)?.cloud()),
        ),
        Subject::new(
            "serde_json",
            |cloud| Ok(serde_json::to_vec(cloud)?),
            |bytes| Ok(serde_json::from_slice(bytes)?),
        ),
    ]
}

fn findings(run: &Run<'_>, subjects: &[Subject]) -> Result<Findings> {
    let paper = published()?;
    let mut table = Table::new(
        "times",
        ["codec", "bytes", "metric", "least_us", "mean_us", "sd_us", "p50_us", "p99_us"],
    );
    let mut rows = Vec::new();
    for subject in subjects {
        let theirs = paper.iter().find(|line| line.here == subject.name);
        for (metric, name) in METRICS.iter().take(2).enumerate() {
            let times = sorted(subject.times[metric].iter().copied());
            let (least, mean) = (subject.least(metric), mean(&times));
            let squares = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>();
            let deviation = (squares / (times.len() as f64 - 1.0)).sqrt();
            table.push([
                subject.name.into(),
                subject.bytes.len().into(),
                (*name).into(),
                least.into(),
                mean.into(),
                deviation.into(),
                quantile(&times, 0.5).into(),
                quantile(&times, 0.99).into(),
            ]);
            let row = Row::new(format!("{name}, {}, least", subject.name), "µs", least)
                .note(format!("mean {}, deviation {}", number(mean), number(deviation)))
                .clocked();
            rows.push(match theirs {
                Some(line) => row.published(line.micros[metric]),
                None => row,
            });
        }
    }
    rows.extend(judged(run, subjects)?);
    let x = Axis::categories("codec", subjects.iter().map(|subject| subject.name));
    let mut plot = Plot::new("times", "10,000 points, the least of each", x, Axis::log("µs"));
    for (metric, name) in METRICS.iter().take(2).enumerate() {
        let points = subjects.iter().enumerate().map(|(at, it)| (at as f64, it.least(metric)));
        plot = plot.with(Series::bars(*name, points.collect()));
    }
    Ok(Findings {
        tables: vec![table],
        plots: vec![plot],
        rows,
        notes: vec![
            "Each encode gives a vector of its own, and each decode a vector of points: both cost every codec the \
             same. The times of other languages' codecs are in `timing-table-1`, read from a committed \
             measurement."
                .to_owned(),
        ],
    })
}

/// Returns rows that compare the times of Tautline's message with those of a copy of the points,
/// and with the best of the other codecs; judged unless the run is quick.
fn judged(run: &Run<'_>, subjects: &[Subject]) -> Result<Vec<Row>> {
    let find = |name: &str| subjects.iter().find(|subject| subject.name == name);
    let (ours, copy) = find(OURS).zip(find(COPY)).context("neither is missing")?;
    let others = || subjects.iter().filter(|subject| ![OURS, COPY].contains(&subject.name));
    let mut rows = Vec::new();
    for (metric, name) in METRICS.iter().take(2).enumerate() {
        let best = others().map(|other| other.least(metric)).fold(f64::INFINITY, f64::min);
        let copies = Row::new(
            format!("{name}, Tautline, times a copy"),
            "",
            ours.least(metric) / copy.least(metric),
        );
        let share =
            Row::new(format!("{name}, Tautline, of the best other"), "", ours.least(metric) / best);
        if run.quick {
            // A non-optimized build affects each codec differently.
            rows.extend([copies.clocked(), share.clocked()]);
            continue;
        }
        rows.push(
            copies
                .asked(COPIES[metric])
                .at_most(1.0)
                .because("what the committed measurement is held to, decode with half as much for a busy machine")
                .clocked(),
        );
        rows.push(
            share
                .asked(1.0)
                .at_most(1.0)
                .because("no codec here that evolves may be faster")
                .clocked(),
        );
    }
    Ok(rows)
}

/// A lidar's points in the application's form.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Cloud {
    points: Vec<Point>,
}

/// One lidar return: metres along x, y and z, and its intensity.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Point {
    position: [f32; 3],
    intensity: u8,
}

impl Cloud {
    fn draw(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let points = (0..POINTS).map(|_| Point {
            position: [0; 3].map(|_| random.random_range(-80.0..80.0)),
            intensity: random.random(),
        });
        Self { points: points.collect() }
    }
}

impl Record for Point {
    const FIELDS: &'static [FieldView<'static>] = &[
        field("x", 0, Number::F32),
        field("y", 4, Number::F32),
        field("z", 8, Number::F32),
        field("intensity", 12, Number::U8),
    ];

    fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (to, from) in bytes.chunks_exact_mut(4).zip(self.position) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        bytes[12] = self.intensity;
        bytes
    }

    fn from_bytes(bytes: &[u8; 16]) -> Self {
        let at = |at: usize| {
            f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self { position: [at(0), at(4), at(8)], intensity: bytes[12] }
    }

    fn from_numbers(numbers: &[f64]) -> Self {
        let number = |at: usize| numbers.get(at).copied().unwrap_or(0.0);
        Self { position: [0, 1, 2].map(|at| number(at) as f32), intensity: number(3) as u8 }
    }
}

const fn field(name: &'static str, offset: u64, number: Number) -> FieldView<'static> {
    FieldView { name, offset: ByteCount::new(offset), number }
}

/// A cloud in Protocol Buffers: one message per point, as in the paper.
#[derive(Clone, PartialEq, Message)]
struct WireCloud {
    #[prost(message, repeated, tag = "1")]
    points: Vec<WirePoint>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct WirePoint {
    #[prost(float, tag = "1")]
    x: f32,
    #[prost(float, tag = "2")]
    y: f32,
    #[prost(float, tag = "3")]
    z: f32,
    #[prost(uint32, tag = "4")]
    intensity: u32,
}

impl WireCloud {
    fn of(cloud: &Cloud) -> Self {
        let points = cloud.points.iter().map(|Point { position: [x, y, z], intensity }| {
            WirePoint { x: *x, y: *y, z: *z, intensity: u32::from(*intensity) }
        });
        Self { points: points.collect() }
    }

    fn cloud(&self) -> Cloud {
        let points = self.points.iter().map(|WirePoint { x, y, z, intensity }| Point {
            position: [*x, *y, *z],
            intensity: *intensity as u8,
        });
        Cloud { points: points.collect() }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

const OURS: &str = "Tautline";
const COPY: &str = "a copy";
const POINTS: usize = 10_000;
const FRAME: &str = "lidar";
/// Maximum times of encode and decode, as multiples of a copy's: the targets of the committed
/// measurement, with that of decode raised by half.
const COPIES: [f64; 2] = [2.4, 1.65];
