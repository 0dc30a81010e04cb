//! The encoders: they take strips in turn. Each strip is a stream of its own, sized to the link
//! budget.

mod control;
mod governor;
mod meter;
mod plan;
mod strip;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};

use anyhow::ensure;
use tautline_net::clock::Clock;
use tautline_units::{ByteCount, Instant};
use tautline_video::{Backend, Flow, Layout, Picture, Rows, Slice, SliceKind};

pub use control::EncoderControl;
use control::Fate;
pub use governor::{Governor, QUANTIZER_ACCEPTABLE, Taking};
pub use meter::{ENCODER_COUNT, Meter};
pub use plan::Plan;
pub use strip::{Request, StripCoder};

use crate::readout::Readout;

/// One of the encoders that take strips in turn.
pub struct Turn {
    index: usize,
    strips: Vec<(Layout, StripCoder)>,
    turn_count: usize,
    plan: Arc<Plan>,
    backend: Backend,
    /// Rate of the source in pictures per second, rounded.
    rate: u32,
    /// Motion of the two halves of the strip coded last.
    flow: Flow,
}

/// Strip of a picture that is to be coded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// Number of the picture, from 0.
    pub picture: u32,
    /// Number of the strip within its picture, counted from the top from 0.
    pub strip: usize,
    /// Layout of the picture; a change restarts the streams of its strips.
    pub layout: Layout,
    /// Instant at which reading of the strip's first row began.
    pub captured_at: Instant,
    /// Newest guard tick when the picture was begun; 0 if none was known.
    pub tick: u32,
}

/// Times of a slice between capture and the end of encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Instant at which the last row of the strip had been read.
    pub read_at: Instant,
    /// Instant at which the encoder had the first rows it needs; for an encoder of complete strips,
    /// the last rows.
    pub begun_at: Instant,
}

impl Turn {
    /// Returns all `count` encoders for `backend`: the one at `index` codes every `count`th strip,
    /// from strip `index` on.
    ///
    /// # Errors
    /// Fails if an encoder of that size cannot be created, or for more than 64 strips.
    pub fn all(
        backend: Backend,
        layout: &Layout,
        count: usize,
        pictures_per_second: f64,
    ) -> anyhow::Result<Vec<Self>> {
        ensure!(layout.strip_count() <= u64::BITS as usize, "more strips than a request can name");
        let plan = Arc::new(Plan::new(layout.strip_count()));
        let rate = pictures_per_second.round() as u32;
        let turn = |index: usize| {
            let strips = (index..layout.strip_count()).step_by(count);
            let coder = |strip| Ok((*layout, StripCoder::new(backend, layout, strip, rate)?));
            let strips = strips.map(coder).collect::<anyhow::Result<_>>()?;
            let (plan, flow) = (plan.clone(), Flow::default());
            Ok(Self { index, strips, turn_count: count, plan, backend, rate, flow })
        };
        (0..count).map(turn).collect()
    }

    /// Encodes readouts until the camera ends. Passes each slice to `send`, which returns whether
    /// it was accepted (if not, its strip recovers), and returns each buffer to `give_back`. A
    /// strip that the end of the camera cuts off is discarded; one that cannot be encoded is
    /// logged, and its stream begins again with an IDR.
    pub fn run(
        mut self,
        readouts: &Receiver<Readout>,
        give_back: &SyncSender<Picture>,
        control: &EncoderControl,
        meter: &Meter,
        clock: Clock,
        mut send: impl FnMut(Slice, Timing) -> bool,
    ) {
        while let Ok(mut readout) = readouts.recv() {
            let strip = readout.strip;
            let Readout { picture, layout, captured_at, tick, .. } = readout;
            let due = Due { picture, strip, layout, captured_at, tick };
            let encoded = self.encode(&due, &mut readout, control, || clock.now());
            let timing = Timing {
                read_at: readout.read_at(),
                begun_at: readout.begun_at().unwrap_or(readout.captured_at),
            };
            match encoded {
                // The camera ended in the middle of this strip, which is discarded.
                Ok(_) if readout.is_cut() => {}
                // The strip is not encoded: it would be late.
                Ok(None) => {
                    meter.strips_held.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Some(slice)) => {
                    meter.record(slice.encoded_at.since(readout.captured_at));
                    let kind = slice.kind;
                    if kind == SliceKind::Predicted {
                        meter.sight.handle_flow(strip, self.flow, slice.captured_at);
                    }
                    let counter = if send(slice, timing) {
                        &meter.slices_sent
                    } else {
                        control.handle_refused(strip as u8, picture, kind);
                        &meter.slices_refused
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    tracing::warn!(strip, %error, "a strip was not encoded");
                    meter.slices_failed.fetch_add(1, Ordering::Relaxed);
                    control.request_keyframes(1 << strip);
                }
            }
            if let Some(done) = meter.strips_done.get(self.index) {
                done.fetch_add(1, Ordering::Relaxed);
            }
            self.finish(strip);
            // A lost buffer does no harm: the camera allocates a new one if none is returned.
            if let Some(rows) = readout.into_rows() {
                let _ = give_back.try_send(rows);
            }
        }
    }

    /// Encodes one strip, whose rows arrive as they are read; `now` reads the clock before and
    /// after. Returns `None`, and codes nothing, if nothing may be sent or the links cannot send
    /// the strip in time.
    ///
    /// # Errors
    /// Returns the encoder's error.
    ///
    /// # Panics
    /// If the strip does not belong to this encoder.
    pub fn encode(
        &mut self,
        due: &Due,
        rows: &mut dyn Rows,
        control: &EncoderControl,
        now: impl Fn() -> Instant,
    ) -> Result<Option<Slice>, tautline_video::Error> {
        let Due { picture, strip, layout, captured_at, tick } = *due;
        let (of, strip_coder) = &mut self.strips[strip / self.turn_count];
        if *of != layout {
            *strip_coder = StripCoder::new(self.backend, &layout, strip, self.rate)?;
            *of = layout;
        }
        let Fate { report, refused } = control.fate(strip);
        if let Some(report) = report {
            strip_coder.handle_report(&report);
        }
        if let Some(refused) = refused {
            strip_coder.handle_refused(refused);
        }
        let Some(budget) = control.size(now()) else { return Ok(None) };
        let requested = control.take_request(strip);
        let encoded = strip_coder.encode(rows, picture, budget, &self.plan, requested, now())?;
        self.flow = encoded.flow;
        let need = strip_coder.is_own().then(|| self.plan.bytes_at(QUANTIZER_ACCEPTABLE));
        let need = need.filter(|_| encoded.kind == SliceKind::Predicted);
        control.note_slice(ByteCount::of(&encoded.bytes), need, now());
        Ok(Some(Slice {
            picture,
            strip: strip as u8,
            kind: encoded.kind,
            history: encoded.history,
            motion: encoded.motion,
            captured_at,
            encoded_at: now(),
            tick,
            bytes: encoded.bytes,
        }))
    }

    /// Completes the reconstruction of a strip, which its next picture needs and its last slice did
    /// not.
    pub fn finish(&mut self, strip: usize) {
        self.strips[strip / self.turn_count].1.finish_reconstruction();
    }
}
