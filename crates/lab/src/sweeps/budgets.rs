//! The vehicle's encoders over a low-rate uplink, in virtual time: refused slices, complete
//! pictures, latency.

mod operator;
mod scene;
mod vehicle;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use anyhow::Result;
use rand_chacha::ChaCha20Rng;
use tautline_net::channels;
use tautline_scenario::endpoint::{Application, Moment};
use tautline_scenario::run::{Run, Setup};
use tautline_scenario::script;
use tautline_sim::link::{Config, Counters, Pair};
use tautline_sim::world::Direction;
use tautline_transport::{Event, Session};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use self::operator::Operator;
pub use self::scene::Scene;
use self::vehicle::Vehicle;
use crate::pictures::coding::{mean, quantile, sorted};

/// One drive over low-rate links.
#[derive(Clone, Debug)]
pub struct Drive {
    /// The links; media goes up.
    pub links: Vec<Pair>,
    /// Duration of the drive.
    pub length: Duration,
    /// Media deadline: time after its sending from which a slice is too old to be delivered.
    pub deadline: Duration,
    /// True if received pictures are decoded and compared.
    pub decodes: bool,
    /// Seed of links and sessions.
    pub seed: u64,
}

/// Results of a drive.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Slices encoded.
    pub encoded: u64,
    /// Slices that the session refused, of the [`encoded`](Self::encoded) ones.
    pub refused: u64,
    /// IDRs among the [`encoded`](Self::encoded) slices.
    pub idrs: u64,
    /// Pictures per second with at least one encoded slice, after the first 3 s.
    pub picture_rate: f64,
    /// Share of the pictures counted in [`picture_rate`](Self::picture_rate) that were shown
    /// complete and clean.
    pub whole: f64,
    /// Time from the start of a picture's readout to the display of its last strip, ms, ascending;
    /// only complete pictures.
    pub picture_ms: Vec<f64>,
    /// Time from the start of a slice's readout to its display, ms, ascending; only slices shown
    /// clean.
    pub slice_ms: Vec<f64>,
    /// Time from the start of the drive to the display of the first complete picture; `None` if
    /// there was none.
    pub first_at: Option<Duration>,
    /// Longest time between the displays of two consecutive complete pictures; the whole measured
    /// time if there were no two.
    pub freeze: Duration,
    /// Share of the links' capacity in use, headers included, after the first 3 s.
    pub used: f64,
    /// Share of the links' capacity used by the H.264 bytes of complete pictures.
    pub goodput: f64,
    /// Luma PSNR of complete pictures at the source's size, dB, ascending; empty unless requested.
    pub psnr: Vec<f64>,
    /// Times since the start at which the picture size changed, and the new reduction factor.
    pub reductions: Vec<(Duration, usize)>,
}

impl Drive {
    /// Returns a drive of 12 s over `count` links with a total rate of `rate`, with a deadline of
    /// 200 ms, that decodes nothing.
    pub fn over(rate: Bitrate, count: u64, seed: u64) -> Self {
        let each = Bitrate::from_bps(rate.bps() / count);
        let queue = (each * QUEUE).get().max(3_000);
        let up = Config { queue_bytes: queue, ..Config::of_rate(each).with_delay(ONE_WAY) };
        let down = Config::of_rate(each.scale(DOWN_FACTOR)).with_delay(ONE_WAY);
        Self {
            links: vec![Pair { up, down }; count as usize],
            length: Duration::from_secs(12),
            deadline: Duration::from_millis(200),
            decodes: false,
            seed,
        }
    }

    /// Performs the drive.
    ///
    /// # Errors
    /// For an invalid link or encoder configuration.
    pub fn run(&self, scene: &Scene) -> Result<Figures> {
        let setup = Setup::new(self.seed, self.links.clone());
        let vehicle = Vehicle::new(scene, self.deadline)?;
        let operator = Operator::new(scene, self.deadline, self.decodes)?;
        let mut run =
            setup.start(Side::Vehicle(Box::new(vehicle)), Side::Operator(Box::new(operator)))?;
        for side in [script::Side::Vehicle, script::Side::Operator] {
            let node = run.node(side);
            run.world.act(node, |endpoint, _| channels::open(&mut endpoint.session))?;
        }
        let settled = Instant::ZERO + SETTLING;
        run.until(settled);
        let before = carried(&run);
        run.until(Instant::ZERO + self.length);
        let bytes = carried(&run) - before;
        let rate: u64 =
            self.links.iter().filter_map(|pair| pair.up.bitrate_mean()).map(Bitrate::bps).sum();
        let span = self.length.saturating_sub(SETTLING);
        let capacity = (Bitrate::from_bps(rate) * span).get() as f64;
        let (Side::Vehicle(vehicle), Side::Operator(operator)) =
            (&run.vehicle().application, &run.operator().application)
        else {
            unreachable!("as they were put in");
        };
        figures(
            vehicle,
            operator,
            settled..Instant::ZERO + self.length,
            bytes.get() as f64,
            capacity,
        )
    }
}

fn carried(run: &Run<Side<'_>>) -> ByteCount {
    let up = |link| run.world.counters(link, Direction::Up);
    let bytes = |up: &Counters| up.delivered_bytes + ByteCount::new(up.delivered * HEADERS_BYTES);
    run.links().iter().map(|link| bytes(up(*link))).sum()
}

fn figures(
    vehicle: &Vehicle<'_>,
    operator: &Operator<'_>,
    time: Range<Instant>,
    bytes: f64,
    capacity: f64,
) -> Result<Figures> {
    let strips = vehicle.scene.layout.strip_count();
    let seconds = time.end.since(time.start).as_secs_f64();
    let is_whole =
        |picture: &u32| operator.shown.get(picture).filter(|shown| shown.len() == strips);
    // The last pictures are still in transit.
    let until = time.end - Duration::from_millis(500);
    let begun = vehicle.begun.iter().filter(|(_, at)| (time.start..until).contains(at));
    let begun: Vec<_> = begun.collect();
    let whole: Vec<_> =
        begun.iter().filter_map(|(picture, at)| Some((at, is_whole(picture)?))).collect();
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let last = |shown: &BTreeMap<u8, (Instant, usize)>| shown.values().map(|(at, _)| *at).max();
    let picture_ms =
        sorted(whole.iter().filter_map(|(at, shown)| Some(ms(last(shown)?.since(**at)))));
    let first = vehicle.begun.iter().filter_map(|(picture, _)| last(is_whole(picture)?)).min();
    let mut moments: Vec<_> =
        vehicle.begun.iter().filter_map(|(picture, _)| last(is_whole(picture)?)).collect();
    moments.sort_unstable();
    let freeze = moments.windows(2).map(|pair| pair[1].since(pair[0])).max();
    let shown_bytes: usize =
        whole.iter().flat_map(|(_, shown)| shown.values()).map(|(_, bytes)| bytes).sum();
    Ok(Figures {
        encoded: vehicle.encoded,
        refused: vehicle.refused,
        idrs: vehicle.idrs,
        picture_rate: begun.len() as f64 / (seconds - 0.5),
        whole: whole.len() as f64 / begun.len().max(1) as f64,
        picture_ms,
        slice_ms: sorted(operator.slice_ms.iter().copied()),
        first_at: first.map(|at| at.since(Instant::ZERO)),
        freeze: freeze.unwrap_or(time.end.since(time.start)),
        used: bytes / capacity,
        goodput: shown_bytes as f64 / capacity,
        psnr: sorted(operator.psnr.iter().copied()),
        reductions: vehicle.reductions.clone(),
    })
}

impl Figures {
    /// Returns the share of the encoded slices that the session refused.
    pub fn refused_share(&self) -> f64 {
        self.refused as f64 / self.encoded.max(1) as f64
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1}/s, {:.1} % whole, refused {} of {} ({:.1} %), picture p50 {:.0} p99 {:.0} ms, first {:.2} s, freeze {:.2} s, used {:.0} %, H.264 {:.0} %",
            self.picture_rate,
            self.whole * 100.0,
            self.refused,
            self.encoded,
            100.0 * self.refused_share(),
            quantile(&self.picture_ms, 0.5),
            quantile(&self.picture_ms, 0.99),
            self.first_at.map_or(f64::NAN, |at| at.as_secs_f64()),
            self.freeze.as_secs_f64(),
            self.used * 100.0,
            self.goodput * 100.0,
        )?;
        if !self.psnr.is_empty() {
            write!(f, ", PSNR {:.1} dB", mean(&self.psnr))?;
        }
        for (at, reduction) in &self.reductions {
            write!(f, ", 1/{reduction} from {:.1} s", at.as_secs_f64())?;
        }
        Ok(())
    }
}

enum Side<'a> {
    Vehicle(Box<Vehicle<'a>>),
    Operator(Box<Operator<'a>>),
}

impl Application for Side<'_> {
    fn next_at(&self) -> Option<Instant> {
        match self {
            Self::Vehicle(vehicle) => vehicle.next_at(),
            Self::Operator(operator) => operator.next_at(),
        }
    }

    fn produce(&mut self, session: &mut Session, rng: &mut ChaCha20Rng, at: Moment) {
        match self {
            Self::Vehicle(vehicle) => vehicle.produce(session, rng, at),
            Self::Operator(operator) => operator.produce(session, rng, at),
        }
    }

    fn handle_event(&mut self, session: &Session, event: Event, at: Moment) {
        match self {
            Self::Vehicle(vehicle) => vehicle.handle_event(session, event, at),
            Self::Operator(operator) => operator.handle_event(session, event, at),
        }
    }

    fn begin(&mut self, start: Instant) {
        match self {
            Self::Vehicle(vehicle) => vehicle.begin(start),
            Self::Operator(operator) => operator.begin(start),
        }
    }
}

/// Bytes of the IP and UDP headers of a datagram.
const HEADERS_BYTES: u64 = 28;
const SETTLING: Duration = Duration::from_secs(3);
const ONE_WAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_secs(1);
/// Rate of a downlink over that of its uplink: in mobile networks the downlink is faster.
const DOWN_FACTOR: f64 = 4.0;
