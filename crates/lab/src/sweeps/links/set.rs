//! Sets of links for comparisons: recordings, and models that need no data.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_sim::link::{Config, Jitter, Outage, Pair, Retransmission, Swing};
use tautline_sim::preset::{Carrier, Preset};
use tautline_sim::trace::{OPPORTUNITY_BYTES, Trace};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::notation;

/// A named set of links.
#[derive(Clone, Debug)]
pub struct Set {
    /// Name in tables and on the command line.
    pub name: String,
    links: Vec<Source>,
}

/// The source of a link's model.
#[derive(Clone, Debug)]
struct Source {
    name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Recorded(Arc<Trace>),
    Driving(Carrier),
    /// Model with log-normally varying capacity, by its mean rate in Mbit/s.
    Wandering(f64),
}

impl Set {
    /// Returns the sets of models: driving LTE modems of two carriers, and links with varying
    /// capacity.
    pub fn models() -> Vec<Set> {
        let driving = |count: usize| {
            let carriers = [Carrier::A, Carrier::B, Carrier::A, Carrier::B];
            let source = |(at, carrier): (usize, Carrier)| {
                let name = format!("{carrier:?}{}", at + 1).to_lowercase();
                Source { name, kind: Kind::Driving(carrier) }
            };
            carriers.into_iter().enumerate().take(count).map(source).collect()
        };
        let wandering = |count: usize| {
            let rates = [6.0, 5.0, 2.0, 12.0];
            let source = |mbps| Source { name: format!("ou-{mbps}"), kind: Kind::Wandering(mbps) };
            rates.into_iter().take(count).map(source).collect()
        };
        let set = |name: &str, links: Vec<Source>| Set { name: name.to_owned(), links };
        vec![
            set("driving-2", driving(2)),
            set("driving-3", driving(3)),
            set("driving-4", driving(4)),
            set("wandering-2", wandering(2)),
            set("wandering-4", wandering(4)),
        ]
    }

    /// Returns the sets of recordings: two, three and four links, and each four of five.
    ///
    /// # Errors
    /// For a file that is missing in `folder`, or is not a recording.
    pub fn recorded(folder: &Path) -> Result<Vec<Set>> {
        let all: Vec<Source> =
            RECORDINGS.iter().map(|recording| recording.load(folder)).collect::<Result<_>>()?;
        let set = |name: &str, links: &[usize]| Set {
            name: name.to_owned(),
            links: links.iter().map(|at| all[*at].clone()).collect(),
        };
        let mut sets =
            vec![set("two", &[0, 1]), set("three", &[0, 1, 2]), set("four", &[0, 1, 2, 3])];
        // Without the fifth it equals "four".
        for (left_out, source) in all.iter().enumerate().take(4) {
            let links: Vec<usize> = (0..5).filter(|at| *at != left_out).collect();
            sets.push(set(&format!("without-{}", source.name), &links));
        }
        Ok(sets)
    }

    /// Returns every recording alone: the five, and two slower ones.
    ///
    /// # Errors
    /// As [`Set::recorded`].
    pub fn single_recordings(folder: &Path) -> Result<Vec<Set>> {
        let set = |source: Source| Set { name: source.name.clone(), links: vec![source] };
        let all = RECORDINGS.iter().chain(&RECORDINGS_SLOW);
        all.map(|recording| Ok(set(recording.load(folder)?))).collect()
    }

    /// Returns a set of recordings in arbitrary files, each with its own length.
    ///
    /// # Errors
    /// For no files, and for a file that cannot be read or is not a recording.
    pub fn of_files(files: &[impl AsRef<Path>]) -> Result<Set> {
        let read = |file: &Path| Source::read(file, notation::name_of(file), None);
        let links: Vec<Source> =
            files.iter().map(|file| read(file.as_ref())).collect::<Result<_>>()?;
        let name = match links.as_slice() {
            [] => bail!("a set has one recording at least"),
            [only] => only.name.clone(),
            [first, more @ ..] => format!("{}-and-{}-more", first.name, more.len()),
        };
        Ok(Set { name, links })
    }

    /// Returns the capacity of a recorded link between two instants of a run with this seed, IP and
    /// UDP headers included. `None` for a model, or if there is no such link.
    pub fn capacity(
        &self,
        seed: u64,
        link: usize,
        from: Instant,
        to: Instant,
    ) -> Option<ByteCount> {
        let Kind::Recorded(trace) = &self.links.get(link)?.kind else { return None };
        let start = start_ms(trace, seed, link as u64);
        let period = trace.period().as_millis() as u64;
        let chances = |until: Instant| {
            let millis = start + until.as_millis();
            let within = trace.times_ms().partition_point(|at| u64::from(*at) < millis % period);
            millis / period * trace.times_ms().len() as u64 + within as u64
        };
        Some(ByteCount::new((chances(to) - chances(from)) * OPPORTUNITY_BYTES.get()))
    }

    /// Returns the number of links.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns whether the set has no links.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the links' names, in order.
    pub fn link_names(&self) -> impl Iterator<Item = &str> {
        self.links.iter().map(|source| source.name.as_str())
    }

    /// Returns the links of a run with this seed: every recording starts at another offset.
    pub fn pairs(&self, seed: u64) -> Vec<Pair> {
        let pair = |(at, source): (usize, &Source)| source.pair(seed, at as u64);
        self.links.iter().enumerate().map(pair).collect()
    }
}

impl Source {
    /// Reads a recording that repeats after `period`, or after its last line.
    fn read(file: &Path, name: String, period: Option<Duration>) -> Result<Self> {
        let text =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let trace = Trace::parse(&text, period)
            .with_context(|| format!("{} is no recording", file.display()))?;
        Ok(Self { name, kind: Kind::Recorded(Arc::new(trace)) })
    }

    fn pair(&self, seed: u64, at: u64) -> Pair {
        match &self.kind {
            Kind::Recorded(trace) => recorded(trace, seed, at),
            Kind::Driving(carrier) => Preset::LteDriving.pair_of(*carrier, seed * 16 + at),
            Kind::Wandering(mbps) => wandering(*mbps),
        }
    }
}

/// Returns the recorded uplink behind a modem's queue; the return path has ample capacity.
fn recorded(trace: &Arc<Trace>, seed: u64, at: u64) -> Pair {
    let mut up = Config::of_trace(Arc::clone(trace)).with_delay(DELAY);
    up.queue_bytes = QUEUE_BYTES;
    if let Some(rate) = &mut up.trace {
        rate.start_s = start_ms(trace, seed, at) as f64 / 1e3;
    }
    Pair { up, down: roomy() }
}

/// Returns a link's start offset in its recording, in ms.
fn start_ms(trace: &Trace, seed: u64, at: u64) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(START_STREAM + at);
    rng.random_range(0..trace.period().as_millis() as u64)
}

/// Returns a link with log-normally varying capacity around `mbps` and a varying delay; its
/// parameters are those of the reference page.
fn wandering(mbps: f64) -> Pair {
    let up = Config {
        rate_mbps: Some(mbps),
        swing: Some(Swing { sigma: 0.25, tau_ms: 80.0 }),
        jitter: Some(Jitter { sigma_ms: 2.0, tau_ms: 1_000.0 }),
        retransmission: Some(Retransmission { probability: 0.1, delay_ms: 8.0 }),
        outage_holding: Some(Outage { every_s: 20.0, mean_ms: 60.0 }),
        // 300 ms.
        queue_bytes: (mbps * 1e6 / 8.0 * 0.3) as u64,
        ..roomy()
    };
    Pair { up, down: roomy() }
}

fn roomy() -> Config {
    Config::of_rate(Bitrate::from_mbps(10)).with_delay(DELAY)
}

/// A recording of the public Mahimahi collection.
struct Recording {
    name: &'static str,
    period_s: u64,
}

impl Recording {
    fn load(&self, folder: &Path) -> Result<Source> {
        let file = folder.join(self.name).with_extension("pps");
        let period = Duration::from_secs(self.period_s);
        Source::read(&file, self.name.to_owned(), Some(period))
    }
}

/// Recordings in the order in which sets use them; some end inside an outage, hence the periods.
const RECORDINGS: [Recording; 5] = [
    Recording { name: "lte-uplink-6mbps", period_s: 140 },
    Recording { name: "lte-5mbps-outages", period_s: 196 },
    Recording { name: "umts-2mbps", period_s: 232 },
    Recording { name: "lte-15mbps-swinging", period_s: 120 },
    Recording { name: "evdo-uplink-1mbps-outages", period_s: 265 },
];

/// Recordings that are too slow to be in a set with others.
const RECORDINGS_SLOW: [Recording; 2] = [
    Recording { name: "lte-uplink-1mbps", period_s: 196 },
    Recording { name: "evdo-half-mbps-stress", period_s: 265 },
];

/// One-way delay of a link without queueing, taken from the reference page.
const DELAY: Duration = Duration::from_millis(15);
/// Size of a modem's queue in bytes. Modems hold much more than a few hundred milliseconds: 1.3 s
/// at 6 Mbit/s.
const QUEUE_BYTES: u64 = 1_000_000;
const START_STREAM: u64 = 1 << 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_files_loops_each_by_its_own_length() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("written");
            file
        };
        let files = [file("North_A.up", "0\n5\n10\n"), file("south.pps", "0\n1\n700\n")];
        let set = Set::of_files(&files).expect("recordings");
        assert_eq!((set.name.as_str(), set.len()), ("north-a-and-1-more", 2));
        let chances = |link| {
            let (from, to) = (Instant::ZERO, Instant::from_millis(7_000));
            set.capacity(1, link, from, to).expect("a recording").get() / OPPORTUNITY_BYTES.get()
        };
        assert_eq!((chances(0), chances(1)), (2100, 30));
        let broken = Set::of_files(&[file("road.txt", "fast\n")]).expect_err("no recording");
        assert!(format!("{broken:#}").contains("road.txt is no recording: line 1"), "{broken:#}");
    }
}
