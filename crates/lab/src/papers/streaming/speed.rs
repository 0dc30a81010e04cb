//! IV.B: speed of the streaming code at both ends.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Result, ensure};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tautline_fec::kernel::Kernel;
use tautline_fec::stream::{Config, Decoder, Encoder};
use tautline_net::clock::Clock;
use tautline_units::Instant;

use super::link::{Erasures, RTT_SLOTS};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::machine;
use crate::notation::number;
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "stream-speed",
    title: "Speed of the streaming code, encoder and decoder together",
    source: "[STREAM] IV.B",
    isolation: Isolation::Alone,
    mutation: Mutation::Named("coefficients"),
    run,
};

/// Times a transfer through encoder and decoder on one core, at each loss.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let budget = run.choose(Duration::from_millis(20), Duration::from_millis(1_000));
    let packets = run.choose(2_000, 20_000);
    let mut speeds = Vec::new();
    for (done, case) in CASES.iter().enumerate() {
        let what = format!("{} loss", case.erasure_rate);
        run.progress(done as u64, CASES.len() as u64, &what);
        let transfer = Transfer::new(case, packets, run.seed);
        speeds.push((case, transfer.megabits(budget)?));
    }
    let mut table = Table::new("speed", ["erasure_rate", "sources_a_repair", "mbps"]);
    for (case, speed) in &speeds {
        table.push([case.erasure_rate.into(), case.sources.into(), (*speed).into()]);
    }
    let points = |of: &dyn Fn(f64) -> f64| {
        speeds.iter().map(|(case, speed)| (case.erasure_rate * 100.0, of(*speed))).collect()
    };
    let plot = Plot::new(
        "speed",
        "Encoder and decoder on one core",
        Axis::linear("lost, %").range(0.0, 22.0),
        Axis::log("Mbit/s of delivered packets"),
    )
    .with(Series::marked("published, the least", points(&|_| PUBLISHED)).published())
    .with(Series::marked("here", points(&|speed| speed)));
    Ok(Outcome::Measured(Findings {
        tables: vec![table],
        plots: vec![plot],
        rows: speeds.iter().map(|(case, speed)| case.row(run, *speed)).collect(),
        notes: vec![
            format!(
                "Processor: {}; one core, which encodes, loses, decodes and compares {packets} packets of \
                 {PACKET_BYTES} bytes, the {} kernel, the best of several times. Counted is what was \
                 delivered in order; a loss is reported a round trip of {RTT_SLOTS} packets later.",
                machine::processor(),
                Kernel::best().name()
            ),
            "The paper's server of 2006 sent over sockets too, and says 600 to 800 Mbit/s at losses up \
             to 20 %; no handset is measured here."
                .to_owned(),
        ],
    }))
}

/// A loss rate, and the redundancy against it.
struct Case {
    erasure_rate: f64,
    /// Source packets before every repair packet.
    sources: u64,
}

const CASES: [Case; 3] = [
    Case { erasure_rate: 0.05, sources: 9 },
    Case { erasure_rate: 0.1, sources: 5 },
    Case { erasure_rate: 0.2, sources: 3 },
];

impl Case {
    fn row(&self, run: &Run<'_>, speed: f64) -> Row {
        let name = format!("encoder and decoder, {} loss", self.erasure_rate);
        Row::new(name, "Mbit/s", speed)
            .published(PUBLISHED)
            .at_least(run.choose(QUICK_FACTOR, FACTOR))
            .because(
                "asked of today's processors, set by hand; a thirtieth of it in a quick run, which is not \
                 optimized and may share its core with other tests",
            )
            .clocked()
            .note(format!("{} times the paper", number(speed / PUBLISHED)))
    }
}

/// Packets of a transfer, and their losses.
struct Transfer<'a> {
    case: &'a Case,
    /// Contents of the packets, used in turn.
    contents: Vec<Vec<u8>>,
    /// Erasure flags, one per slot.
    erased: Vec<bool>,
}

impl<'a> Transfer<'a> {
    fn new(case: &'a Case, packets: u64, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut contents = vec![vec![0; PACKET_BYTES]; CONTENTS];
        contents.iter_mut().for_each(|content| random.fill_bytes(content));
        let slots = packets + packets / case.sources;
        let erasures = Erasures::new(case.erasure_rate, 1.0, seed);
        let erased = erasures.take(slots as usize).collect();
        Self { case, contents, erased }
    }

    /// Repeats the transfer until the budget is spent, at least [`RUNS_MIN`] times, and returns the
    /// highest speed in Mbit/s.
    fn megabits(&self, budget: Duration) -> Result<f64> {
        let clock = Clock::start();
        let (mut best, mut delivered) = (Duration::MAX, 0);
        for done in 1.. {
            let started = clock.now();
            // Equal every time, because the losses are.
            delivered = self.send()?;
            let ended = clock.now();
            best = best.min(ended.since(started));
            if done >= RUNS_MIN && ended.since(Instant::ZERO) >= budget {
                break;
            }
        }
        Ok((delivered as usize * PACKET_BYTES * 8) as f64 / best.as_secs_f64() / 1e6)
    }

    /// Sends all packets and returns the number delivered in order.
    fn send(&self) -> Result<u64> {
        let mut encoder = Encoder::new(Config::new(PACKET_BYTES, WINDOW))?;
        let config = Config { repairs_max: REPAIRS, ..Config::new(PACKET_BYTES, 2 * WINDOW) };
        let mut decoder = Decoder::new(config)?;
        let content = |id: u64| &self.contents[id as usize % CONTENTS];
        let mut payload = vec![0; PACKET_BYTES];
        let (mut sent, mut delivered, mut told) = (0, 0, VecDeque::new());
        for (slot, erased) in self.erased.iter().enumerate() {
            if (slot as u64 + 1).is_multiple_of(self.case.sources + 1) {
                let repair = encoder.repair(slot as u16, &mut payload)?;
                if !erased {
                    // A rejected packet is redundant.
                    let _ = decoder.handle_repair(&repair, &payload);
                }
            } else {
                let id = encoder.push(content(sent))?;
                sent += 1;
                if !erased {
                    decoder.handle_source(id, content(id))?;
                }
            }
            while let Some((id, bytes)) = decoder.poll_in_order() {
                ensure!(bytes == content(id).as_slice(), "packet {id} was decoded wrongly");
                delivered = id + 1;
            }
            told.push_back(delivered);
            if told.len() as u64 > RTT_SLOTS {
                encoder.acknowledge(told.pop_front().unwrap_or(0))?;
            }
        }
        // The end of the stream may be incomplete if no repair packet follows.
        ensure!(delivered * 10 > sent * 9, "{delivered} of {sent} packets came");
        Ok(delivered)
    }
}

const PACKET_BYTES: usize = 1500;
/// Number of distinct contents, too many for the L1 cache.
const CONTENTS: usize = 64;
const RUNS_MIN: u32 = 3;
/// Length of the coding window in packets: enough for a round trip and the longest busy time.
const WINDOW: usize = 4_096;
const REPAIRS: usize = 1_024;
/// Lower end of the paper's 600 to 800 Mbit/s.
const PUBLISHED: f64 = 600.0;
/// Required multiple of [`PUBLISHED`] in a full run.
const FACTOR: f64 = 3.0;
const QUICK_FACTOR: f64 = 0.1;
