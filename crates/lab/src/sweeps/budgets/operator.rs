//! The operator's end: completeness, cleanness, latency and quality of each received picture.

use std::collections::BTreeMap;

use anyhow::Result;
use rand_chacha::ChaCha20Rng;
use tautline_message::{StripReport, VideoFeedback};
use tautline_net::channels;
use tautline_operator::downlink::{Downlink, Shown};
use tautline_scenario::endpoint::{Application, Moment};
use tautline_transport::{Event, Session};
use tautline_units::{Duration, Instant};
use tautline_video::openh264::StripDecoder;
use tautline_video::{Decoder, Picture, Slice, SliceKind};

use super::scene::Scene;
use crate::quality;

/// The operator's end, and the pictures that it displayed.
pub(super) struct Operator<'a> {
    scene: &'a Scene,
    media_deadline: Duration,
    downlink: Downlink,
    decoders: Vec<StripDecoder>,
    decodes: bool,
    command_at: Instant,
    fed_back: Option<(VideoFeedback, Instant)>,
    /// For each picture, its strips shown clean, with their display times and bytes.
    pub(super) shown: BTreeMap<u32, BTreeMap<u8, (Instant, usize)>>,
    /// Strips decoded clean, of incomplete pictures.
    decoded: BTreeMap<u32, BTreeMap<u8, Picture>>,
    pub(super) psnr: Vec<f64>,
    pub(super) slice_ms: Vec<f64>,
}

impl<'a> Operator<'a> {
    pub(super) fn new(scene: &'a Scene, media_deadline: Duration, decodes: bool) -> Result<Self> {
        let decoders = (0..scene.layout.strip_count()).map(|_| StripDecoder::new());
        Ok(Self {
            scene,
            media_deadline,
            downlink: Downlink::new(Duration::from_millis(40)),
            decoders: decoders.collect::<Result<_, _>>()?,
            decodes,
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
        // Its size may differ.
        if slice.kind == SliceKind::Idr {
            *decoder = StripDecoder::new().expect("there was one before");
        }
        decoder.decode(&slice.bytes).ok().flatten()
    }

    /// Adds the PSNR of a complete picture, at its displayed size, against the source's, and
    /// forgets its strips and those of earlier pictures. Adds nothing if its strips have different
    /// sizes.
    fn compare(&mut self, picture: u32) {
        let Some(strips) = self.decoded.remove(&picture) else { return };
        self.decoded.retain(|other, _| *other > picture);
        let source = self.scene.picture(picture);
        let height = strips.values().map(Picture::height).sum();
        let width = strips[&0].width();
        // Strips of two sizes do not belong to one picture.
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
        let feedback = VideoFeedback { strips, keyframe_strips, ..VideoFeedback::default() };
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

/// Returns a picture of this size with the picture's luma scaled as on a page: each pixel is
/// interpolated from the four around it. Chroma is left out, unless the picture has this size
/// already.
fn enlarged(picture: &Picture, width: usize, height: usize) -> Picture {
    if (picture.width(), picture.height()) == (width, height) {
        return picture.clone();
    }
    // Pixels coded beyond the integer factor are not shown.
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

impl Application for Operator<'_> {
    fn next_at(&self) -> Option<Instant> {
        let never = Instant::from_nanos(u64::MAX);
        Some(self.downlink.poll_timeout().unwrap_or(never).min(self.command_at))
    }

    fn produce(&mut self, session: &mut Session, _rng: &mut ChaCha20Rng, at: Moment) {
        let now = at.local();
        let mut due = Vec::new();
        self.downlink.handle_timeout(now, |shown| due.push(shown));
        self.show(due, now);
        if now >= self.command_at {
            self.command_at = now + COMMAND_INTERVAL;
            let _ = session.send(channels::COMMAND, &[0; COMMAND_BYTES], DEADLINE, now);
            self.feed_back(session, now);
        }
    }

    fn handle_event(&mut self, _session: &Session, event: Event, at: Moment) {
        let now = at.local();
        let Event::Unit { channel: channels::VIDEO, bytes, sent_at, .. } = event else { return };
        let Some(slice) = self.downlink.parse(bytes) else { return };
        let worthless_at = sent_at.map_or(now, |at| at.min(now) + self.media_deadline);
        let mut due = Vec::new();
        self.downlink.handle_slice(slice, worthless_at, now, |shown| due.push(shown));
        self.show(due, now);
    }

    fn begin(&mut self, start: Instant) {
        self.command_at = start;
    }
}

const COMMAND_INTERVAL: Duration = Duration::from_millis(20);
const COMMAND_BYTES: usize = 100;
const FEEDBACK_REPEAT: Duration = Duration::from_millis(100);
/// Deadline of commands and of video feedback.
const DEADLINE: Duration = Duration::from_millis(250);
