//! Table II: how fast the block code encodes and decodes.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_fec::block::Code;
use tautline_fec::kernel::Kernel;
use tautline_net::clock::Clock;

use crate::experiment::Run;
use crate::machine;
use crate::outcome::{Outcome, Table};
use crate::plot::{Axis, Plot, Series};
use crate::row::Row;

/// Times the block code of this crate in every shape of the table, on every kernel of this CPU.
///
/// The decoder loses as many source packets as there are repair packets, spread over the block. A
/// time is the best of many; every output is compared with what it must be.
pub(super) fn run(run: &Run<'_>) -> Result<Outcome> {
    let kernels: Vec<Kernel> = Kernel::all().collect();
    let total = (kernels.len() * PUBLISHED.len()) as u64;
    let mut speeds = Vec::new();
    for (number, kernel) in kernels.iter().enumerate() {
        for (position, shape) in PUBLISHED.iter().enumerate() {
            let done = number * PUBLISHED.len() + position;
            run.progress(done as u64, total, &format!("{}, M = {}", kernel.name(), shape.repairs));
            speeds.push(Speed::measure(run, *kernel, shape)?);
        }
    }
    run.progress(total, total, "");
    let best = Kernel::best();
    Ok(Outcome {
        tables: vec![table(&speeds)],
        plots: vec![
            plot("encode", "Encoder: 100 source packets of 1296 bytes", &speeds, |s| s.encode),
            plot("decode", "Decoder: as many packets lost as were added", &speeds, |s| s.decode),
        ],
        rows: rows(run, best, &speeds),
        notes: vec![
            format!("Processor: {}; one core, data in its caches.", machine::processor()),
            format!(
                "The fastest kernel here, {}, is judged; the others are shown. Mbit/s are of \
                 source packets, the best of many repetitions, each output compared with the \
                 expected bytes.",
                best.name()
            ),
            "The paper ran another code, cm256, with SSE on a laptop that it does not name: the \
             rows say by how much this code on this processor is not slower, nothing about the \
             processors."
                .to_owned(),
        ],
    })
}

/// Is one line of the paper's table.
struct Shape {
    /// M: repair packets, and lost source packets.
    repairs: usize,
    encode_mbps: f64,
    decode_mbps: f64,
}

/// Is what one kernel does in one shape, in Mbit/s of source packets.
struct Speed<'a> {
    kernel: Kernel,
    shape: &'a Shape,
    encode: f64,
    decode: f64,
}

impl<'a> Speed<'a> {
    fn measure(run: &Run<'_>, kernel: Kernel, shape: &'a Shape) -> Result<Self> {
        let block = Block::new(run.seed, kernel, shape.repairs)?;
        let budget = run.choose(Duration::from_millis(2), Duration::from_millis(600));
        let encode = block.time_encode(budget)?;
        let decode = block.time_decode(budget)?;
        Ok(Self { kernel, shape, encode: megabits(encode), decode: megabits(decode) })
    }
}

/// Is a block with arbitrary source packets and their repair packets.
struct Block {
    code: Code,
    /// All packets, source packets first.
    packets: Vec<Vec<u8>>,
    lost: Vec<usize>,
}

impl Block {
    fn new(seed: u64, kernel: Kernel, repairs: usize) -> Result<Self> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let code = Code::with_kernel(SOURCES, SOURCES + repairs, kernel)?;
        let mut packets = vec![vec![0; PACKET_BYTES]; SOURCES + repairs];
        for source in &mut packets[..SOURCES] {
            random.fill_bytes(source);
        }
        // What the timed runs are held against comes from the readable kernel.
        let (sources, outputs) = packets.split_at_mut(SOURCES);
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut outputs: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let scalar = Kernel::all().next().unwrap_or(kernel);
        Code::with_kernel(SOURCES, SOURCES + repairs, scalar)?.encode(&sources, &mut outputs)?;
        let lost = (0..repairs).map(|position| position * SOURCES / repairs).collect();
        Ok(Self { code, packets, lost })
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
        format!("{}, M = {}", self.code.kernel().name(), self.code.repair_count())
    }
}

/// Returns the least time that `work` took within the budget, once at least.
fn best_time(budget: Duration, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let clock = Clock::start();
    let mut best = Duration::MAX;
    loop {
        let started = clock.now();
        work()?;
        let ended = clock.now();
        best = best.min(ended.since(started));
        if ended.since(tautline_units::Instant::ZERO) >= budget {
            return Ok(best);
        }
    }
}

fn megabits(time: Duration) -> f64 {
    (SOURCES * PACKET_BYTES * 8) as f64 / time.as_secs_f64() / 1e6
}

fn table(speeds: &[Speed<'_>]) -> Table {
    let columns = ["kernel", "k", "m", "packet_bytes", "encode_mbps", "decode_mbps"];
    let mut table = Table::new("speed", columns);
    let mut push = |kernel: &str, repairs: usize, encode: f64, decode: f64| {
        let shape = [SOURCES.into(), repairs.into(), PACKET_BYTES.into()];
        let [k, m, bytes] = shape;
        table.push([kernel.into(), k, m, bytes, encode.into(), decode.into()]);
    };
    for shape in PUBLISHED {
        push("published", shape.repairs, shape.encode_mbps, shape.decode_mbps);
    }
    for speed in speeds {
        push(speed.kernel.name(), speed.shape.repairs, speed.encode, speed.decode);
    }
    table
}

fn plot(name: &str, title: &str, speeds: &[Speed<'_>], of: fn(&Speed<'_>) -> f64) -> Plot {
    let encoder = name == "encode";
    let published = PUBLISHED.iter().map(|shape| {
        (shape.repairs as f64, if encoder { shape.encode_mbps } else { shape.decode_mbps })
    });
    let mut kernels: Vec<Kernel> = Vec::new();
    for speed in speeds {
        if !kernels.contains(&speed.kernel) {
            kernels.push(speed.kernel);
        }
    }
    let measured = kernels.iter().rev().map(|kernel| {
        let of_kernel = speeds.iter().filter(|speed| speed.kernel == *kernel);
        let points = of_kernel.map(|speed| (speed.shape.repairs as f64, of(speed))).collect();
        Series::marked(format!("{} kernel", kernel.name()), points)
    });
    let x = Axis::linear("M: repair packets, and packets lost")
        .range(0.0, 51.5)
        .ticks(PUBLISHED.iter().map(|shape| shape.repairs as f64));
    Plot::new(name, title, x, Axis::log("Mbit/s of source packets"))
        .with(Series::marked("published", published.collect()).published())
        .with_all(measured)
}

fn rows(run: &Run<'_>, best: Kernel, speeds: &[Speed<'_>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for speed in speeds.iter().filter(|speed| speed.kernel == best) {
        let published = [speed.shape.encode_mbps, speed.shape.decode_mbps];
        let measured = [("encoder", speed.encode), ("decoder", speed.decode)];
        for ((name, measured), published) in measured.into_iter().zip(published) {
            rows.push(
                Row::new(format!("{name}, M = {}", speed.shape.repairs), "Mbit/s", measured)
                    .published(published)
                    // A quick run hardly warms up, and may share its core with other tests.
                    .at_least(run.choose(0.1, 1.0))
                    .note(format!("{:.0} times the paper", measured / published)),
            );
        }
    }
    rows
}

/// K.
const SOURCES: usize = 100;
const PACKET_BYTES: usize = 1296;

const PUBLISHED: &[Shape] = &[
    Shape { repairs: 1, encode_mbps: 23314.0, decode_mbps: 19259.0 },
    Shape { repairs: 10, encode_mbps: 1171.0, decode_mbps: 1181.0 },
    Shape { repairs: 20, encode_mbps: 579.0, decode_mbps: 618.0 },
    Shape { repairs: 30, encode_mbps: 347.0, decode_mbps: 401.0 },
    Shape { repairs: 40, encode_mbps: 274.0, decode_mbps: 298.0 },
    Shape { repairs: 50, encode_mbps: 218.0, decode_mbps: 237.0 },
];
