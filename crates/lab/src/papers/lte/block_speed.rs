//! Table II: encoding and decoding speed of the block code.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_fec::block::{Code, Scheme};
use tautline_fec::kernel::{Kernel, Scalar};
use tautline_net::clock::Clock;

use crate::experiment::{
    Cell, Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table,
};
use crate::machine;
use crate::notation::number;
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-table-2",
    title: "Speed of the block code, 100 packets of 1296 bytes",
    source: "[LTE] Table II",
    isolation: Isolation::Alone,
    mutation: Mutation::Named("scalar"),
    run,
};

/// Times both block codes of this crate in every shape of the table, on every kernel of this CPU.
///
/// The decoder loses as many source packets as there are repair packets, spread over the block. A
/// time is the minimum of many; every output is verified.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let kernels: Vec<Kernel> = Kernel::all().collect();
    let total = kernels.len() * SCHEMES.len() * PUBLISHED.len();
    let mut speeds = Vec::new();
    for &kernel in &kernels {
        for &scheme in SCHEMES {
            for shape in PUBLISHED {
                let what = format!("{} kernel, M = {}", kernel.name(), shape.repairs);
                run.progress(speeds.len() as u64, total as u64, &what);
                speeds.push(Speed::measure(run, scheme, kernel, shape)?);
            }
        }
    }
    let best = Kernel::best();
    Ok(Outcome::Measured(Findings {
        tables: vec![table(&speeds)],
        plots: vec![
            plot("encode", "Encoder, 100 packets of 1296 bytes", &speeds, encode),
            plot("decode", "Decoder, M of 100 packets lost", &speeds, decode),
        ],
        rows: rows(run, best, &speeds),
        notes: notes(best),
    }))
}

/// One line of the paper's table.
struct Shape {
    /// M: repair packets, and lost source packets.
    repairs: usize,
    published: Rates,
}

/// Speeds in Mbit/s of source packets.
#[derive(Clone, Copy)]
struct Rates {
    encode: f64,
    decode: f64,
}

/// Speed of one code on one kernel in one shape.
struct Speed<'a> {
    scheme: Scheme,
    kernel: Kernel,
    shape: &'a Shape,
    measured: Rates,
}

impl<'a> Speed<'a> {
    fn measure(run: &Run<'_>, scheme: Scheme, kernel: Kernel, shape: &'a Shape) -> Result<Self> {
        let block = Block::new(run.seed, scheme, kernel, shape.repairs)?;
        let budget = run.choose(Duration::from_millis(2), Duration::from_millis(300));
        let encode = megabits(block.time_encode(budget)?);
        let decode = megabits(block.time_decode(budget)?);
        Ok(Self { scheme, kernel, shape, measured: Rates { encode, decode } })
    }
}

/// A block with arbitrary source packets and their repair packets.
struct Block {
    code: Code,
    /// All packets, source packets first.
    packets: Vec<Vec<u8>>,
    lost: Vec<usize>,
}

impl Block {
    fn new(seed: u64, scheme: Scheme, kernel: Kernel, repairs: usize) -> Result<Self> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let code = Code::with_scheme(scheme, SOURCES, SOURCES + repairs)?;
        let mut packets = vec![vec![0; PACKET_BYTES]; SOURCES + repairs];
        for source in &mut packets[..SOURCES] {
            random.fill_bytes(source);
        }
        // The reference results come from the scalar kernel.
        let (sources, outputs) = packets.split_at_mut(SOURCES);
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut outputs: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        code.on(Kernel::Scalar(Scalar)).encode(&sources, &mut outputs)?;
        let lost = (0..repairs).map(|position| position * SOURCES / repairs).collect();
        Ok(Self { code: code.on(kernel), packets, lost })
    }

    fn time_encode(&self, budget: Duration) -> Result<Duration> {
        let sources: Vec<&[u8]> = self.packets[..SOURCES].iter().map(Vec::as_slice).collect();
        let mut repairs = vec![vec![0; PACKET_BYTES]; self.code.repair_count()];
        let mut outputs: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
        let time = best_time(budget, || {
            Ok(self.code.encode(black_box(&sources), black_box(&mut outputs))?)
        })?;
        ensure!(repairs == self.packets[SOURCES..], "{}: wrong repair packets", self.name());
        Ok(time)
    }

    fn time_decode(&self, budget: Duration) -> Result<Duration> {
        let arrived = |(index, _): &(usize, &[u8])| !self.lost.contains(index);
        let packets = self.packets.iter().map(Vec::as_slice).enumerate();
        let received: Vec<(usize, &[u8])> = packets.filter(arrived).collect();
        let mut recovered = vec![vec![0; PACKET_BYTES]; self.lost.len()];
        let outputs = recovered.iter_mut().map(Vec::as_mut_slice);
        let mut missing: Vec<(usize, &mut [u8])> = self.lost.iter().copied().zip(outputs).collect();
        let time = best_time(budget, || {
            Ok(self.code.recover(black_box(&received), black_box(&mut missing))?)
        })?;
        let right =
            self.lost.iter().zip(&recovered).all(|(&at, packet)| *packet == self.packets[at]);
        ensure!(right, "{}: wrong packets recovered", self.name());
        Ok(time)
    }

    fn name(&self) -> String {
        let Self { code, .. } = self;
        format!("{}, {}, M = {}", name(code.scheme()), code.kernel().name(), code.repair_count())
    }
}

/// Runs `work` until the budget is spent, and at least [`RUNS_MIN`] times. Returns the minimum time
/// of a run: a single one may be interrupted by another process.
fn best_time(budget: Duration, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let clock = Clock::start();
    let mut best = Duration::MAX;
    for done in 1.. {
        let started = clock.now();
        work()?;
        let ended = clock.now();
        best = best.min(ended.since(started));
        if done >= RUNS_MIN && ended.since(tautline_units::Instant::ZERO) >= budget {
            break;
        }
    }
    Ok(best)
}

fn megabits(time: Duration) -> f64 {
    (SOURCES * PACKET_BYTES * 8) as f64 / time.as_secs_f64() / 1e6
}

fn table(speeds: &[Speed<'_>]) -> Table {
    let columns = ["code", "kernel", "k", "m", "packet_bytes", "encode_mbps", "decode_mbps"];
    let mut table = Table::new("speed", columns);
    let mut push = |code: &str, kernel: &str, repairs: usize, rates: Rates| {
        let [k, m, bytes] = [SOURCES, repairs, PACKET_BYTES].map(Cell::from);
        let rates = [rates.encode, rates.decode].map(Cell::from);
        let [encode, decode] = rates;
        table.push([code.into(), kernel.into(), k, m, bytes, encode, decode]);
    };
    for shape in PUBLISHED {
        push("published", "SSE", shape.repairs, shape.published);
    }
    for speed in speeds {
        push(name(speed.scheme), speed.kernel.name(), speed.shape.repairs, speed.measured);
    }
    table
}

/// Plots one of the two directions: the Cauchy code on every kernel, the FFT code on the best.
fn plot(file: &str, title: &str, speeds: &[Speed<'_>], of: fn(Rates) -> f64) -> Plot {
    let curve = |scheme: Scheme, kernel: Kernel| -> Vec<(f64, f64)> {
        let wanted = |speed: &&Speed<'_>| speed.scheme == scheme && speed.kernel == kernel;
        let point = |speed: &Speed<'_>| (speed.shape.repairs as f64, of(speed.measured));
        speeds.iter().filter(wanted).map(point).collect()
    };
    let published = PUBLISHED.iter().map(|shape| (shape.repairs as f64, of(shape.published)));
    let ticks = PUBLISHED.iter().map(|shape| shape.repairs as f64);
    let x = Axis::linear("M: repair packets, and packets lost").range(0.0, 51.0).ticks(ticks);
    let best = Kernel::best();
    let mut kernels: Vec<Kernel> = Kernel::all().filter(|kernel| *kernel != best).collect();
    kernels.push(best);
    let cauchy = kernels.iter().rev().enumerate().map(|(place, kernel)| {
        let label = format!("Cauchy, {}", kernel.name());
        Series::marked(label, curve(Scheme::Cauchy, *kernel)).colour(place)
    });
    let fft = Series::marked(format!("FFT, {}", best.name()), curve(Scheme::Fft, best));
    Plot::new(file, title, x, Axis::log("Mbit/s of source packets"))
        .with(Series::marked("published", published.collect()).published())
        .with(fft.dashed().colour(0))
        .with_all(cauchy)
}

fn rows(run: &Run<'_>, best: Kernel, speeds: &[Speed<'_>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (direction, of) in [("encode", encode as fn(Rates) -> f64), ("decode", decode)] {
        for speed in speeds.iter().filter(|speed| speed.kernel == best) {
            let (published, measured) = (of(speed.shape.published), of(speed.measured));
            let quantity =
                format!("{direction}, M = {}, {}", speed.shape.repairs, name(speed.scheme));
            let row = Row::new(quantity, "Mbit/s", measured).published(published).clocked();
            let row = row.note(format!("{} times the paper", number(measured / published)));
            // One repair packet is a sum without coefficients, which needs no FFT.
            let has_work = speed.scheme == Scheme::Cauchy || speed.shape.repairs > 1;
            rows.push(match has_work && is_gfni(best) {
                true => row.at_least(run.choose(QUICK_FACTOR, FACTOR)).because(WHY),
                false => row,
            });
        }
    }
    rows
}

fn notes(best: Kernel) -> Vec<String> {
    vec![
        format!("Processor: {}; one core, the block in its caches.", machine::processor()),
        format!(
            "Judged is the fastest kernel here, {}; speed.csv has the others. Mbit/s are of source \
             packets, the best of many repetitions; the outputs are compared with the expected \
             bytes.",
            best.name()
        ),
        "The paper ran another Cauchy code, cm256 with SSE, on a processor that it does not name: \
         the rows say how many times as fast this code here is as that code there, not why."
            .to_owned(),
        match is_gfni(best) {
            true => {
                format!("Judged by {FACTOR} times the paper's figures: what kernels for GFNI do.")
            }
            false => format!(
                "Not judged: {FACTOR} times the paper's figures are asked of kernels for GFNI, and this \
                 processor's best is {}.",
                best.name()
            ),
        },
    ]
}

/// Returns whether the kernel uses GFNI: rows require [`FACTOR`] only of such a kernel.
fn is_gfni(kernel: Kernel) -> bool {
    #[cfg(target_arch = "x86_64")]
    return matches!(kernel, Kernel::Gfni256(_) | Kernel::Gfni512(_));
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

fn encode(rates: Rates) -> f64 {
    rates.encode
}

fn decode(rates: Rates) -> f64 {
    rates.decode
}

fn name(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Cauchy => "Cauchy",
        Scheme::Fft => "FFT",
    }
}

const fn shape(repairs: usize, encode: f64, decode: f64) -> Shape {
    Shape { repairs, published: Rates { encode, decode } }
}

/// Required multiple of the paper's speed for a kernel with GFNI: the speed of this code on such a
/// processor, rounded down.
const FACTOR: f64 = 30.0;
/// Required multiple of the paper's speed in a quick run, whose build may not be optimized and
/// whose machine may be busy.
const QUICK_FACTOR: f64 = 3.0;
const WHY: &str = "asked of kernels for GFNI, over the paper's laptop; a tenth of it in a quick run, which hardly \
                   warms up and may share its core with other tests";
const RUNS_MIN: u32 = 5;
/// Number of source packets: K of the table.
const SOURCES: usize = 100;
const PACKET_BYTES: usize = 1296;

const SCHEMES: &[Scheme] = &[Scheme::Cauchy, Scheme::Fft];

const PUBLISHED: &[Shape] = &[
    shape(1, 23314.0, 19259.0),
    shape(10, 1171.0, 1181.0),
    shape(20, 579.0, 618.0),
    shape(30, 347.0, 401.0),
    shape(40, 274.0, 298.0),
    shape(50, 218.0, 237.0),
];
