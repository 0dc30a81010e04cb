//! The vehicle's encoders over a thin link, in virtual time: what is refused, what comes whole, how late.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use anyhow::{Context, Result};
use rand_chacha::ChaCha20Rng;
use tautline_message::snapshot::End;
use tautline_message::{StripReport, VideoFeedback};
use tautline_net::channels;
use tautline_net::driver::Drops;
use tautline_net::stats::Latest;
use tautline_operator::downlink::{Downlink, Shown};
use tautline_scenario::endpoint::{Application, Moment};
use tautline_scenario::run::{Run, Setup};
use tautline_scenario::script;
use tautline_sim::link::{Config, Counters, Pair};
use tautline_sim::world::Direction;
use tautline_transport::{Event, Session};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};
use tautline_vehicle::encode::{Due, EncoderControl, Taking, Turn};
use tautline_vehicle::telemetry;
use tautline_video::avc::LossRecovery;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Decoder, Layout, Picture, Reduction, Slice, SliceKind, quality};

use crate::pictures::coding::{mean, quantile, sorted};
use crate::pictures::footage::{Footage, Size};

/// One drive over thin links.
#[derive(Clone, Debug)]
pub struct Drive {
    /// The links, media going up.
    pub links: Vec<Pair>,
    /// How long it lasts.
    pub length: Duration,
    /// From a slice's hand-over until it is too old.
    pub deadline: Duration,
    /// Whether what comes is decoded and compared.
    pub decodes: bool,
    /// Of links, sessions.
    pub seed: u64,
}

/// The pictures of a drive, there and back again.
pub struct Scene {
    footage: Footage,
    layout: Layout,
    gives_rows: bool,
}

/// What came of a drive.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Slices that were encoded, and those of them that the session refused.
    pub encoded: u64,
    /// See [`encoded`](Self::encoded).
    pub refused: u64,
    /// IDRs among them.
    pub idrs: u64,
    /// Pictures of which a slice was encoded, a second, after the settling.
    pub picture_rate: f64,
    /// Of these, the share that was shown whole and clean.
    pub whole: f64,
    /// From the start of a picture's readout until the last of its strips was shown, ms, ascending.
    pub picture_ms: Vec<f64>,
    /// The same of each slice.
    pub slice_ms: Vec<f64>,
    /// When the first whole picture was shown, after the start.
    pub first_at: Option<Duration>,
    /// The longest time between two whole pictures after that.
    pub freeze: Duration,
    /// The share of the links' capacity that was used, headers included, after the settling.
    pub used: f64,
    /// The share of the links' capacity that was H.264 of slices shown.
    pub goodput: f64,
    /// Luma PSNR of whole pictures, dB, ascending, each as large as the source's; empty unless it was asked for.
    pub psnr: Vec<f64>,
    /// When pictures got another size, since the start, and how many times smaller than the source's they were then.
    pub reductions: Vec<(Duration, usize)>,
}

impl Drive {
    /// Returns a drive over `count` links that carry `rate` together.
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

    /// Drives.
    ///
    /// # Errors
    /// For links or encoders that cannot be had.
    pub fn run(&self, scene: &Scene) -> Result<Figures> {
        let setup = Setup::new(self.seed, self.links.clone());
        let (vehicle, operator) = (Vehicle::new(scene, self)?, Operator::new(scene, self)?);
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
    // The last ones are still under way.
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
    /// Returns the share of the slices encoded that the session refused.
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

impl Scene {
    /// Returns what the simulated camera sees.
    ///
    /// # Errors
    /// When it cannot be drawn.
    pub fn simulated(is_small: bool, rate: u32, count: usize, seed: u64) -> Result<Self> {
        let size = if is_small { Size::SMALL } else { Size::HD };
        Self::of(Footage::simulated(size, rate, count, seed)?.with_noise(seed)?, true)
    }

    /// Returns a clip.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn clip(path: &std::path::Path, rate: u32, count: usize) -> Result<Self> {
        Self::of(Footage::clip(path, Size::HD, rate, count)?, true)
    }

    fn of(footage: Footage, gives_rows: bool) -> Result<Self> {
        let first = footage.pictures.first().context("no pictures")?;
        let layout = Layout::of(first.width(), first.height())?;
        Ok(Self { footage, layout, gives_rows })
    }

    fn picture(&self, number: u32) -> &Picture {
        let last = self.footage.pictures.len() - 1;
        let turn = number as usize % (2 * last).max(1);
        &self.footage.pictures[turn.min(2 * last - turn)]
    }

    fn period(&self) -> Duration {
        Duration::from_secs(1) / self.footage.rate
    }
}

enum Side<'a> {
    Vehicle(Box<Vehicle<'a>>),
    Operator(Box<Operator<'a>>),
}

/// A picture that is coded smaller, and the source's strips that it is made of.
struct Reduced {
    reduction: Reduction,
    strips: Vec<Picture>,
}

struct Vehicle<'a> {
    scene: &'a Scene,
    deadline: Duration,
    turn: Turn,
    control: EncoderControl,
    latest: Latest,
    start: Instant,
    /// The strip that is read next, whether its picture is coded, and how much smaller.
    next: (u32, usize),
    takes: bool,
    reduced: Option<Reduced>,
    reductions: Vec<(Duration, usize)>,
    telemetry_at: Instant,
    telemetry_turn: u64,
    begun: Vec<(u32, Instant)>,
    encoded: u64,
    refused: u64,
    idrs: u64,
}

impl<'a> Vehicle<'a> {
    fn new(scene: &'a Scene, drive: &Drive) -> Result<Self> {
        let backend = Backend::Avc(LossRecovery::ReferencesByLoss { references: 16 });
        let rate = f64::from(scene.footage.rate);
        let control = EncoderControl::new().governed();
        control.set_source(rate, scene.gives_rows, &scene.layout);
        let turn = Turn::all(backend, &scene.layout, 1, rate)?.pop().context("no encoder")?;
        Ok(Self {
            scene,
            deadline: drive.deadline,
            turn,
            control,
            latest: Latest::of(End::Vehicle),
            start: Instant::ZERO,
            next: (0, 0),
            takes: false,
            reduced: None,
            reductions: Vec::new(),
            telemetry_at: Instant::ZERO,
            telemetry_turn: 0,
            begun: Vec::new(),
            encoded: 0,
            refused: 0,
            idrs: 0,
        })
    }

    /// Returns when the rows of a strip begin and end to be read.
    fn read_at(&self, (picture, strip): (u32, usize)) -> Range<Instant> {
        let begun = self.start + self.scene.period() * picture;
        let strips = match &self.reduced {
            Some(reduced) => reduced.reduction.strips(strip),
            None => strip..strip + 1,
        };
        let slot = if self.scene.gives_rows { self.scene.period() / 6 } else { Duration::ZERO };
        begun + slot * strips.start as u32..begun + slot * strips.end as u32
    }

    fn due_at(&self) -> Instant {
        self.read_at(self.next).end + ENCODING
    }

    /// Begins a picture, if it is taken.
    fn begin(&mut self, picture: u32, now: Instant) {
        self.takes = self.control.take(picture, now) == Taking::Taken;
        if !self.takes {
            return;
        }
        let factor = self.control.reduction();
        let before = self.reductions.last().map_or(1, |(_, before)| *before);
        if factor != before {
            self.reductions.push((now.since(self.start), factor));
        }
        self.reduced = (factor > 1).then(|| {
            let source = self.scene.picture(picture);
            let rows = |strip| source.rows(self.scene.layout.strip_rows(strip));
            let strips = (0..self.scene.layout.strip_count()).map(rows);
            let reduction = Reduction::new(&self.scene.layout, factor);
            Reduced {
                reduction: reduction.expect("the control knows the layout"),
                strips: strips.collect::<Result<_, _>>().expect("the layout is of these pictures"),
            }
        });
    }

    fn layout(&self) -> Layout {
        self.reduced.as_ref().map_or(self.scene.layout, |reduced| *reduced.reduction.layout())
    }

    fn rows(&self, picture: u32, strip: usize) -> Picture {
        let layout = self.layout();
        let range = layout.strip_rows(strip);
        match &self.reduced {
            Some(Reduced { reduction, strips }) => {
                let mut rows = Picture::new(layout.width(), range.len()).expect("of a layout");
                reduction.draw(strips, strip, &mut rows);
                rows
            }
            None => {
                self.scene.picture(picture).rows(range).expect("the layout is of these pictures")
            }
        }
    }

    fn see(&mut self, session: &mut Session, at: Moment) {
        let now = at.local();
        let (picture, strip) = self.next;
        if strip == 0 {
            self.begin(picture, now);
        }
        let captured_at = self.read_at(self.next).start;
        self.next = if strip + 1 < self.scene.layout.strip_count() {
            (picture, strip + 1)
        } else {
            (picture + 1, 0)
        };
        if !self.takes {
            return;
        }
        let (rows, layout) = (self.rows(picture, strip), self.layout());
        let due = Due { picture, strip, layout, captured_at, tick: 0 };
        let slice = self.turn.encode(&due, &mut &rows, &self.control, || now);
        let slice = slice.expect("it is a picture of the layout's");
        self.turn.finish(strip);
        let Some(slice) = slice else { return };
        if self.begun.last().is_none_or(|(last, _)| *last != picture) {
            self.begun.push((picture, captured_at));
        }
        self.encoded += 1;
        let (strip, picture, kind) = (slice.strip, slice.picture, slice.kind);
        self.idrs += u64::from(kind == SliceKind::Idr);
        if session.send(channels::VIDEO, &slice.into_unit(), self.deadline, now).is_err() {
            self.control.handle_refused(strip, picture, kind);
            self.refused += 1;
        }
    }

    fn tell(&mut self, session: &mut Session, at: Moment) {
        let now = at.local();
        self.telemetry_at = now + TELEMETRY_INTERVAL;
        let mut send = |channel, unit: &[u8]| {
            let _ = session.send(channel, unit, DEADLINE, now);
        };
        let budget = self.control.budget();
        if self.telemetry_turn.is_multiple_of(telemetry::turns(budget)) {
            send(channels::TELEMETRY, &[0; TELEMETRY_BYTES]);
        }
        if self.telemetry_turn.is_multiple_of(telemetry::snapshot_turns(budget)) {
            for part in self.latest.snapshot().parts() {
                send(channels::SNAPSHOT, &part.encode());
            }
            self.latest.take(session, &[], &Drops::default(), |_| "a link".to_owned(), now);
        }
        self.telemetry_turn += 1;
    }
}

struct Operator<'a> {
    scene: &'a Scene,
    media_deadline: Duration,
    downlink: Downlink,
    decoders: Vec<StripDecoder>,
    decodes: bool,
    command_at: Instant,
    fed_back: Option<(VideoFeedback, Instant)>,
    /// Strips shown clean, of each picture, with their bytes.
    shown: BTreeMap<u32, BTreeMap<u8, (Instant, usize)>>,
    /// Strips decoded clean, of pictures that are not whole yet.
    decoded: BTreeMap<u32, BTreeMap<u8, Picture>>,
    psnr: Vec<f64>,
    slice_ms: Vec<f64>,
}

impl<'a> Operator<'a> {
    fn new(scene: &'a Scene, drive: &Drive) -> Result<Self> {
        let decoders = (0..scene.layout.strip_count()).map(|_| StripDecoder::new());
        Ok(Self {
            scene,
            media_deadline: drive.deadline,
            downlink: Downlink::new(Duration::from_millis(40)),
            decoders: decoders.collect::<Result<_, _>>()?,
            decodes: drive.decodes,
            command_at: Instant::ZERO,
            fed_back: None,
            shown: BTreeMap::new(),
            decoded: BTreeMap::new(),
            psnr: Vec::new(),
            slice_ms: Vec::new(),
        })
    }

    fn show(&mut self, due: Vec<Shown>, now: Instant) {
        for Shown { slice, is_clean } in due {
            let decoded = self.decodes.then(|| self.decode(&slice)).flatten();
            if !is_clean {
                continue;
            }
            self.slice_ms.push(now.since(slice.captured_at).as_secs_f64() * 1e3);
            let strips = self.shown.entry(slice.picture).or_default();
            strips.insert(slice.strip, (now, slice.bytes.len()));
            if let Some(decoded) = decoded {
                let strips = self.decoded.entry(slice.picture).or_default();
                strips.insert(slice.strip, decoded);
                if strips.len() == self.scene.layout.strip_count() {
                    self.compare(slice.picture);
                }
            }
        }
    }

    fn decode(&mut self, slice: &Slice) -> Option<Picture> {
        let decoder = &mut self.decoders[usize::from(slice.strip)];
        // It may be of another size.
        if slice.kind == SliceKind::Idr {
            *decoder = StripDecoder::new().expect("there was one before");
        }
        decoder.decode(&slice.bytes).ok().flatten()
    }

    /// Compares a whole picture, as large as it is shown, with the source's.
    fn compare(&mut self, picture: u32) {
        let Some(strips) = self.decoded.remove(&picture) else { return };
        self.decoded.retain(|other, _| *other > picture);
        let source = self.scene.picture(picture);
        let height = strips.values().map(Picture::height).sum();
        let width = strips[&0].width();
        // Strips of two sizes are none of one picture.
        let Ok(mut joined) = Picture::new(width, height) else { return };
        let mut row = 0;
        for strip in strips.values() {
            if joined.place(row, strip).is_err() {
                return;
            }
            row += strip.height();
        }
        let shown = enlarged(&joined, source.width(), source.height());
        self.psnr.push(quality::psnr(&shown, source).expect("of one size"));
    }

    fn feed_back(&mut self, session: &mut Session, now: Instant) {
        let strips: [Option<StripReport>; VideoFeedback::STRIPS_MAX] = self.downlink.reports(now);
        let keyframe_strips = self.downlink.keyframe_strips();
        let feedback = VideoFeedback { strips, keyframe_strips, picture_interval: 1 };
        let told = |(told, at): &(VideoFeedback, Instant)| {
            *told == feedback && now.since(*at) < FEEDBACK_REPEAT
        };
        if self.fed_back.as_ref().is_some_and(told) {
            return;
        }
        self.fed_back = Some((feedback, now));
        let _ = session.send(channels::VIDEO_FEEDBACK, &feedback.encode(), DEADLINE, now);
    }
}

/// Returns a picture's luma in another size, as a page shows it: each pixel from the four around it.
fn enlarged(picture: &Picture, width: usize, height: usize) -> Picture {
    if (picture.width(), picture.height()) == (width, height) {
        return picture.clone();
    }
    // What is coded beyond the whole factor is not shown.
    let factor = (width as f64 / picture.width() as f64).ceil();
    let place = |at: usize, most: usize| {
        let place = ((at as f64 + 0.5) / factor - 0.5).clamp(0.0, most as f64 - 1.0);
        (place as usize, place.fract())
    };
    let mut shown = Picture::new(width, height).expect("the source's own size");
    let rows: Vec<_> = (0..height).map(|row| place(row, picture.height())).collect();
    let columns: Vec<_> = (0..width).map(|column| place(column, picture.width())).collect();
    let pixel = |row: usize, column: usize| {
        let (row, column) = (row.min(picture.height() - 1), column.min(picture.width() - 1));
        f64::from(picture.luma()[row * picture.width() + column])
    };
    let luma = shown.planes_mut().0;
    for (target, (row, down)) in luma.chunks_exact_mut(width).zip(rows) {
        for (target, (column, right)) in target.iter_mut().zip(&columns) {
            let across = |row| pixel(row, *column) * (1.0 - right) + pixel(row, column + 1) * right;
            *target = (across(row) * (1.0 - down) + across(row + 1) * down).round() as u8;
        }
    }
    shown
}

impl Application for Side<'_> {
    fn next_at(&self) -> Option<Instant> {
        Some(match self {
            Self::Vehicle(vehicle) => vehicle.due_at().min(vehicle.telemetry_at),
            Self::Operator(operator) => operator
                .downlink
                .poll_timeout()
                .unwrap_or(Instant::from_nanos(u64::MAX))
                .min(operator.command_at),
        })
    }

    fn produce(&mut self, session: &mut Session, _rng: &mut ChaCha20Rng, at: Moment) {
        let now = at.local();
        match self {
            Self::Vehicle(vehicle) => {
                while now >= vehicle.due_at() {
                    vehicle.see(session, at);
                }
                if now >= vehicle.telemetry_at {
                    vehicle.tell(session, at);
                }
            }
            Self::Operator(operator) => {
                let mut due = Vec::new();
                operator.downlink.handle_timeout(now, |shown| due.push(shown));
                operator.show(due, now);
                if now >= operator.command_at {
                    operator.command_at = now + COMMAND_INTERVAL;
                    let _ = session.send(channels::COMMAND, &[0; COMMAND_BYTES], DEADLINE, now);
                    operator.feed_back(session, now);
                }
            }
        }
    }

    fn handle_event(&mut self, _session: &Session, event: Event, at: Moment) {
        let now = at.local();
        match (self, event) {
            (Self::Vehicle(vehicle), Event::Established) => vehicle.control.handle_new_session(),
            (Self::Vehicle(vehicle), Event::Budget { media, shown }) => {
                vehicle.control.note_shown(shown);
                vehicle.control.set_budget(media, now);
            }
            (
                Self::Vehicle(vehicle),
                Event::Unit { channel: channels::VIDEO_FEEDBACK, bytes, .. },
            ) => {
                if let Ok(feedback) = VideoFeedback::decode(&bytes) {
                    vehicle.control.handle_feedback(&feedback);
                }
            }
            (
                Self::Operator(operator),
                Event::Unit { channel: channels::VIDEO, bytes, sent_at, .. },
            ) => {
                let Some(slice) = operator.downlink.parse(bytes) else { return };
                let worthless_at = sent_at.map_or(now, |at| at.min(now) + operator.media_deadline);
                let mut due = Vec::new();
                operator.downlink.handle_slice(slice, worthless_at, now, |shown| due.push(shown));
                operator.show(due, now);
            }
            (Self::Vehicle(_) | Self::Operator(_), _) => {}
        }
    }

    fn begin(&mut self, start: Instant) {
        match self {
            Self::Vehicle(vehicle) => (vehicle.start, vehicle.telemetry_at) = (start, start),
            Self::Operator(operator) => operator.command_at = start,
        }
    }
}

/// Of IP and UDP.
const HEADERS_BYTES: u64 = 28;
const SETTLING: Duration = Duration::from_secs(3);
const ONE_WAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_secs(1);
/// A mobile link carries more towards it than from it.
const DOWN_FACTOR: f64 = 4.0;
const ENCODING: Duration = Duration::from_millis(1);
const TELEMETRY_INTERVAL: Duration = Duration::from_millis(50);
const TELEMETRY_BYTES: usize = 300;
const COMMAND_INTERVAL: Duration = Duration::from_millis(20);
const COMMAND_BYTES: usize = 100;
const DEADLINE: Duration = Duration::from_millis(250);
const FEEDBACK_REPEAT: Duration = Duration::from_millis(100);
