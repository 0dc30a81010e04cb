//! Timing of every codec on the same message, in turns.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::aligned::Aligned;
use crate::clock;
use crate::codec::Codec;
use crate::codec::list::Entry;
use crate::normal::Cloud;

/// The paper's metrics, in its order.
pub(crate) const METRICS: [&str; 5] = ["encode", "decode", "sum", "guid", "y"];

/// Conversion steps of codecs with their own structures.
pub(crate) const PHASES: [&str; 4] = ["fill", "write", "parse", "normal"];

/// Duration of a measurement.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Number of turns per codec and metric.
    pub(crate) rounds: usize,
    /// Duration of one turn with hot data; with cold data a turn is one call.
    pub(crate) turn: Duration,
}

/// Location of the data before each call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heat {
    /// In the caches: the same message repeatedly.
    Hot,
    /// In memory: its cache lines are flushed before each call.
    Cold,
}

/// Result of one codec.
pub(crate) struct Timing {
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
    /// Minimum seconds per call, by metric; infinite if not measured.
    pub(crate) seconds: [f64; 5],
}

/// Limits of the machine, measured in the same rounds.
pub(crate) struct Limits {
    /// Seconds to copy the points, 16 bytes each.
    pub(crate) memcpy: f64,
    /// Seconds to copy the points into newly allocated memory, as in decoding.
    pub(crate) fresh: f64,
    /// Seconds to read the same bytes, eight at a time.
    pub(crate) read: f64,
}

struct Contestant {
    name: &'static str,
    codec: Box<dyn Codec>,
    message: Aligned,
    repeats: [u32; 5],
    best: [f64; 5],
}

/// Times all five metrics of each codec for one message, after checking its results.
///
/// # Errors
/// If a codec returns anything else than was written.
pub(crate) fn run(
    entries: &[Entry],
    cloud: &Cloud,
    heat: Heat,
    effort: Effort,
) -> Result<(Vec<Timing>, Limits)> {
    let mut all = Vec::new();
    for entry in entries {
        let mut codec = (entry.make)();
        let message = Aligned::of(codec.encode(cloud));
        if entry.name != NOOP {
            check(entry.name, codec.as_mut(), &message, cloud)?;
        }
        let contestant = Contestant {
            name: entry.name,
            codec,
            message,
            repeats: [1; 5],
            best: [f64::INFINITY; 5],
        };
        all.push(contestant);
    }
    let mut limits = Limits { memcpy: f64::MAX, fresh: f64::MAX, read: f64::MAX };
    let source = vec![1u64; 2 * cloud.points.len()];
    let mut target = vec![0u64; 2 * cloud.points.len()];
    for contestant in &mut all {
        contestant.calibrate(cloud, heat, effort.turn);
    }
    for _ in 0..effort.rounds {
        for contestant in &mut all {
            contestant.turn(cloud, heat);
        }
        limits.turn(&source, &mut target, heat);
    }
    let timings = all
        .into_iter()
        .map(|c| Timing { name: c.name, bytes: c.message.bytes().len(), seconds: c.best })
        .collect();
    Ok((timings, limits))
}

/// Checks that every read method returns what was written.
///
/// # Errors
/// If one fails or returns anything else.
pub(crate) fn check(
    name: &str,
    codec: &mut dyn Codec,
    message: &Aligned,
    cloud: &Cloud,
) -> Result<()> {
    let bytes = message.bytes();
    let fail = |error| anyhow::anyhow!("{name}: {error}");
    ensure!(codec.decode(bytes).map_err(fail)? == *cloud, "{name}: another message comes back");
    ensure!(codec.sum(bytes).map_err(fail)? == cloud.sum(), "{name}: another sum");
    ensure!(codec.guid(bytes).map_err(fail)? == cloud.info.guid, "{name}: another guid");
    ensure!(codec.middle_y(bytes).map_err(fail)? == cloud.middle_y(), "{name}: another y");
    Ok(())
}

impl Contestant {
    /// Sets the number of calls per turn for each metric.
    fn calibrate(&mut self, cloud: &Cloud, heat: Heat, turn: Duration) {
        for metric in 0..5 {
            let mut once = self.time(metric, cloud, heat);
            for _ in 0..3 {
                once = once.min(self.time(metric, cloud, heat));
            }
            self.repeats[metric] = match heat {
                Heat::Hot => (turn.as_secs_f64() / once.max(1e-9)).clamp(1.0, 20_000.0) as u32,
                // Only the first call finds the data cold.
                Heat::Cold => 1,
            };
        }
    }

    fn turn(&mut self, cloud: &Cloud, heat: Heat) {
        for metric in 0..5 {
            let time = self.time(metric, cloud, heat);
            self.best[metric] = self.best[metric].min(time);
        }
    }

    /// Times one turn of a metric and returns the seconds per call; infinite for cold data in
    /// another process.
    fn time(&mut self, metric: usize, cloud: &Cloud, heat: Heat) -> f64 {
        let Self { codec, message, repeats, .. } = self;
        if let Some(seconds) = codec.time_itself(metric, repeats[metric]) {
            // The caches cannot be flushed for another process.
            return if heat == Heat::Cold { f64::INFINITY } else { seconds };
        }
        match heat {
            // Warm up: other codecs have just used the caches.
            Heat::Hot => call(codec.as_mut(), metric, cloud, message.bytes()),
            Heat::Cold if metric == 0 => forget(&cloud.points),
            Heat::Cold => forget(message.bytes()),
        }
        let started = clock::now();
        for _ in 0..repeats[metric] {
            call(codec.as_mut(), metric, cloud, message.bytes());
        }
        started.elapsed().as_secs_f64() / f64::from(repeats[metric])
    }
}

fn call(codec: &mut dyn Codec, metric: usize, cloud: &Cloud, bytes: &[u8]) {
    match metric {
        0 => {
            black_box(codec.encode(black_box(cloud)).len());
        }
        1 => drop(black_box(codec.decode(black_box(bytes)))),
        2 => drop(black_box(codec.sum(black_box(bytes)))),
        3 => drop(black_box(codec.guid(black_box(bytes)))),
        _ => drop(black_box(codec.middle_y(black_box(bytes)))),
    }
}

/// Returns the minimum seconds of each of [`PHASES`], by the names of the codecs that have their
/// own structures; infinite if not measured.
pub(crate) fn phases(
    entries: &[Entry],
    cloud: &Cloud,
    effort: Effort,
) -> Vec<(&'static str, [f64; 4])> {
    let mut all = Vec::new();
    for entry in entries {
        let mut codec = (entry.make)();
        let message = Aligned::of(codec.encode(cloud));
        if codec.staged().is_some() || codec.time_itself(METRICS.len(), 1).is_some() {
            all.push((entry.name, codec, message, [1; 4], [f64::INFINITY; 4]));
        }
    }
    for round in 0..=effort.rounds {
        for (_, codec, message, repeats, best) in &mut all {
            for phase in 0..PHASES.len() {
                let seconds =
                    time_phase(codec.as_mut(), phase, repeats[phase], cloud, message.bytes());
                best[phase] = best[phase].min(seconds);
                if round == 0 {
                    let calls = effort.turn.as_secs_f64() / seconds.max(1e-9);
                    repeats[phase] = calls.clamp(1.0, 20_000.0) as u32;
                }
            }
        }
    }
    all.into_iter().map(|(name, .., best)| (name, best)).collect()
}

/// Times one turn of a step of [`PHASES`] and returns the seconds per call.
fn time_phase(
    codec: &mut dyn Codec,
    phase: usize,
    repeats: u32,
    cloud: &Cloud,
    bytes: &[u8],
) -> f64 {
    if let Some(seconds) = codec.time_itself(METRICS.len() + phase, repeats) {
        return seconds;
    }
    let Some(staged) = codec.staged() else { return f64::INFINITY };
    let started = clock::now();
    for _ in 0..repeats {
        match phase {
            0 => staged.fill(black_box(cloud)),
            1 => {
                black_box(staged.write().len());
            }
            2 => drop(black_box(staged.parse(black_box(bytes)))),
            _ => drop(black_box(staged.normal())),
        }
    }
    started.elapsed().as_secs_f64() / f64::from(repeats)
}

impl Limits {
    fn turn(&mut self, source: &[u64], target: &mut [u64], heat: Heat) {
        let copy = || black_box(&mut *target).copy_from_slice(black_box(source));
        self.memcpy = self.memcpy.min(time_limit(source, heat, copy));
        let fresh = || drop(black_box(black_box(source).to_vec()));
        self.fresh = self.fresh.min(time_limit(source, heat, fresh));
        let read = || {
            black_box(read_all(black_box(source)));
        };
        self.read = self.read.min(time_limit(source, heat, read));
    }
}

/// Returns the seconds of a call, by the same rules as for a codec.
fn time_limit(source: &[u64], heat: Heat, mut call: impl FnMut()) -> f64 {
    let repeats = match heat {
        Heat::Hot => {
            call();
            50
        }
        Heat::Cold => {
            forget(source);
            1
        }
    };
    let started = clock::now();
    for _ in 0..repeats {
        call();
    }
    started.elapsed().as_secs_f64() / f64::from(repeats)
}

/// Returns the XOR of all words, for which every word must be read.
fn read_all(words: &[u64]) -> u64 {
    let (runs, rest) = words.as_chunks::<8>();
    let mut lanes = [0u64; 8];
    for run in runs {
        for (lane, word) in lanes.iter_mut().zip(run) {
            *lane ^= word;
        }
    }
    lanes.iter().chain(rest).fold(0, |all, word| all ^ word)
}

/// Flushes the data from all caches.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "there is no safe way to empty a cache line")]
fn forget<T>(data: &[T]) {
    use std::arch::x86_64::{_mm_clflush, _mm_mfence};
    let start = data.as_ptr().cast::<u8>();
    for offset in (0..size_of_val(data)).step_by(64) {
        // SAFETY: the address lies within `data`; flushing changes no value.
        unsafe { _mm_clflush(start.add(offset)) };
    }
    // SAFETY: a fence has no preconditions.
    unsafe { _mm_mfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn forget<T>(_: &[T]) {}

/// Name of the entry that does nothing.
pub(crate) const NOOP: &str = "no operation";
