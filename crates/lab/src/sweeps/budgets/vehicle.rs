//! The vehicle's end: the simulated camera's strips, the vehicle's encoders, and its telemetry.

use std::ops::Range;

use anyhow::{Context, Result};
use rand_chacha::ChaCha20Rng;
use tautline_message::VideoFeedback;
use tautline_message::snapshot::End;
use tautline_net::channels;
use tautline_net::driver::Drops;
use tautline_net::stats::Latest;
use tautline_scenario::endpoint::{Application, Moment};
use tautline_transport::{Event, Session};
use tautline_units::{Duration, Instant};
use tautline_vehicle::encode::{Due, EncoderControl, Taking, Turn};
use tautline_vehicle::telemetry;
use tautline_video::avc::LossRecovery;
use tautline_video::{Backend, Layout, Picture, Reduction, SliceKind};

use super::scene::Scene;

/// The vehicle's end, and the outcome of its pictures.
pub(super) struct Vehicle<'a> {
    pub(super) scene: &'a Scene,
    deadline: Duration,
    turn: Turn,
    control: EncoderControl,
    latest: Latest,
    start: Instant,
    /// The next picture and strip to read.
    next: (u32, usize),
    /// True if the current picture is coded.
    takes: bool,
    /// Reduction of the current picture; `None` at its full size.
    reduced: Option<Reduced>,
    pub(super) reductions: Vec<(Duration, usize)>,
    telemetry_at: Instant,
    telemetry_turn: u64,
    pub(super) begun: Vec<(u32, Instant)>,
    pub(super) encoded: u64,
    pub(super) refused: u64,
    pub(super) idrs: u64,
}

impl<'a> Vehicle<'a> {
    pub(super) fn new(scene: &'a Scene, deadline: Duration) -> Result<Self> {
        let backend = Backend::Avc(LossRecovery::ReferencesByLoss { references: 16 });
        let rate = scene.rate();
        let control = EncoderControl::new().governed();
        control.set_source(rate, true, &scene.layout);
        let turn = Turn::all(backend, &scene.layout, 1, rate)?.pop().context("no encoder")?;
        Ok(Self {
            scene,
            deadline,
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

    /// Returns the start and the end of a strip's readout: at a reduced size, of all source strips
    /// of which it consists.
    fn read_at(&self, (picture, strip): (u32, usize)) -> Range<Instant> {
        let begun = self.start + self.scene.period() * picture;
        let strips = match &self.reduced {
            Some(reduced) => reduced.reduction.strips(strip),
            None => strip..strip + 1,
        };
        let slot = self.scene.period() / self.scene.layout.strip_count() as u32;
        begun + slot * strips.start as u32..begun + slot * strips.end as u32
    }

    fn due_at(&self) -> Instant {
        self.read_at(self.next).end + ENCODING
    }

    /// Asks the encoder control whether a picture is coded and at which size, records a change of
    /// the size, and splits the source if the size is reduced.
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

/// A picture coded at a reduced size, and the source strips that it consists of.
struct Reduced {
    reduction: Reduction,
    strips: Vec<Picture>,
}

impl Application for Vehicle<'_> {
    fn next_at(&self) -> Option<Instant> {
        Some(self.due_at().min(self.telemetry_at))
    }

    fn produce(&mut self, session: &mut Session, _rng: &mut ChaCha20Rng, at: Moment) {
        let now = at.local();
        while now >= self.due_at() {
            self.see(session, at);
        }
        if now >= self.telemetry_at {
            self.tell(session, at);
        }
    }

    fn handle_event(&mut self, _session: &Session, event: Event, at: Moment) {
        match event {
            Event::Established => self.control.handle_new_session(),
            Event::Budget { media, shown } => {
                self.control.note_shown(shown);
                self.control.set_budget(media, at.local());
            }
            Event::Unit { channel: channels::VIDEO_FEEDBACK, bytes, .. } => {
                if let Ok(feedback) = VideoFeedback::decode(&bytes) {
                    self.control.handle_feedback(&feedback);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, start: Instant) {
        (self.start, self.telemetry_at) = (start, start);
    }
}

const ENCODING: Duration = Duration::from_millis(1);
const TELEMETRY_INTERVAL: Duration = Duration::from_millis(50);
const TELEMETRY_BYTES: usize = 300;
/// Deadline of everything but video.
const DEADLINE: Duration = Duration::from_millis(250);
