//! The encoders: strips in turn, each strip a stream of its own, sized to what the links carry.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use anyhow::ensure;
use tautline_net::clock::Clock;
use tautline_units::{Bitrate, ByteCount, Instant};
use tautline_video::{Backend, Encoder, Layout, Picture, Refresh, Slice, SliceKind};

use crate::camera::Readout;

/// What the transport and the operator ask of the encoders.
#[derive(Debug)]
pub struct Wishes {
    budget_bps: AtomicU64,
    refresh_strips: AtomicU64,
    paused: Arc<AtomicBool>,
    /// When the pause began, nanoseconds of the vehicle's clock.
    paused_at: AtomicU64,
}

impl Wishes {
    /// Nothing granted yet: encoders wait.
    pub fn new() -> Self {
        Self {
            budget_bps: AtomicU64::new(0),
            refresh_strips: AtomicU64::new(ALL_STRIPS),
            paused: Arc::new(AtomicBool::new(true)),
            paused_at: AtomicU64::new(0),
        }
    }

    /// Sets the rate that all slices together may take; zero pauses. After a pause of
    /// [`PAUSE_LONG`] every strip begins anew: the path was gone, and what was on it ([UGV]). A
    /// shorter one needs nothing: no slice was encoded meanwhile that the other end could lack.
    pub fn set_budget(&self, budget: Bitrate, now: Instant) {
        self.budget_bps.store(budget.bps(), Ordering::Relaxed);
        let pause = budget == Bitrate::ZERO;
        match (self.paused.swap(pause, Ordering::Relaxed), pause) {
            (false, true) => self.paused_at.store(now.as_nanos(), Ordering::Relaxed),
            (true, false) => {
                let began = Instant::from_nanos(self.paused_at.load(Ordering::Relaxed));
                if now.since(began) >= PAUSE_LONG {
                    self.refresh(ALL_STRIPS);
                }
            }
            (true, true) | (false, false) => {}
        }
    }

    /// The rate granted at present.
    pub fn budget(&self) -> Bitrate {
        Bitrate::from_bps(self.budget_bps.load(Ordering::Relaxed))
    }

    /// Set while nothing may be sent.
    pub fn paused(&self) -> Arc<AtomicBool> {
        self.paused.clone()
    }

    /// Asks for an IDR of every strip whose bit is set.
    pub fn refresh(&self, strips: u64) {
        self.refresh_strips.fetch_or(strips, Ordering::Relaxed);
    }

    fn take_refresh(&self, strip: usize) -> bool {
        let bit = 1 << strip;
        self.refresh_strips.fetch_and(!bit, Ordering::Relaxed) & bit != 0
    }
}

impl Default for Wishes {
    fn default() -> Self {
        Self::new()
    }
}

/// How long encoding took lately and how much came out.
#[derive(Debug, Default)]
pub struct Meter {
    recent: Mutex<Vec<Duration>>,
    /// Slices handed to the transport.
    pub slices_sent: AtomicU64,
    /// Slices the event loop had no room for.
    pub slices_refused: AtomicU64,
    /// Slices that could not be encoded.
    pub slices_failed: AtomicU64,
}

impl Meter {
    fn record(&self, duration: Duration) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() < RECENT_MAX {
            recent.push(duration);
        }
    }

    /// Takes the median and 99th percentile of the encoding times since the last call.
    pub fn take_percentiles(&self) -> (Duration, Duration) {
        let mut recent = {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *recent)
        };
        recent.sort_unstable();
        let at =
            |share: usize| recent.get((recent.len() * share / 100).min(recent.len().max(1) - 1));
        let or_zero = |duration: Option<&Duration>| duration.copied().unwrap_or_default();
        (or_zero(at(50)), or_zero(at(99)))
    }
}

/// One of the encoders that take strips in turn.
pub struct Turn {
    strips: Vec<StripState>,
    turn_count: usize,
    slices_per_second: f64,
}

/// When a slice was where, between its capture and the end of its encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// The last of its rows had been read.
    pub read_at: Instant,
    /// Its encoder took it up.
    pub begun_at: Instant,
}

struct StripState {
    encoder: Box<dyn Encoder>,
    idr_at: Option<Instant>,
}

impl Turn {
    /// The encoder of strips `index`, `index + turn_count`, and so on, each by `backend`.
    ///
    /// # Errors
    /// When an encoder of that size cannot be made, or for more than 64 strips.
    pub fn new(
        backend: Backend,
        layout: &Layout,
        index: usize,
        turn_count: usize,
        pictures_per_second: f64,
    ) -> anyhow::Result<Self> {
        ensure!(layout.strip_count() <= u64::BITS as usize, "more strips than can be asked for");
        let strips = (index..layout.strip_count())
            .step_by(turn_count)
            .map(|strip| {
                let height = layout.strip_rows(strip).len();
                let rate = pictures_per_second.round() as u32;
                let encoder = backend.open(layout.width(), height, rate)?;
                Ok(StripState { encoder, idr_at: None })
            })
            .collect::<anyhow::Result<_>>()?;
        let slices_per_second = pictures_per_second * layout.strip_count() as f64;
        Ok(Self { strips, turn_count, slices_per_second })
    }

    /// Encodes what comes and gives each slice to `send`, which says whether it was taken, until the
    /// camera ends.
    pub fn run(
        mut self,
        readouts: &Receiver<Readout>,
        give_back: &SyncSender<Picture>,
        wishes: &Wishes,
        meter: &Meter,
        clock: Clock,
        mut send: impl FnMut(Slice, Timing) -> bool,
    ) {
        while let Ok(readout) = readouts.recv() {
            let timing = Timing { read_at: readout.read_at, begun_at: clock.now() };
            match self.encode(&readout, wishes, timing.begun_at, clock) {
                Ok(slice) => {
                    meter.record(slice.encoded_at.since(readout.captured_at));
                    let counter = if send(slice, timing) {
                        &meter.slices_sent
                    } else {
                        &meter.slices_refused
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    tracing::warn!(strip = readout.strip, %error, "a strip was not encoded");
                    meter.slices_failed.fetch_add(1, Ordering::Relaxed);
                    wishes.refresh(1 << readout.strip);
                }
            }
            // A buffer more or less: the camera makes a new one when none comes back.
            let _ = give_back.try_send(readout.rows);
        }
    }

    fn encode(
        &mut self,
        readout: &Readout,
        wishes: &Wishes,
        now: Instant,
        clock: Clock,
    ) -> Result<Slice, tautline_video::Error> {
        let state = &mut self.strips[readout.strip / self.turn_count];
        let wished = wishes.take_refresh(readout.strip);
        let due = state.idr_at.is_none_or(|at| now.since(at) >= IDR_INTERVAL_MIN);
        let refresh = if wished && due { Refresh::Idr } else { Refresh::No };
        let budget = slice_budget(wishes.budget(), self.slices_per_second);
        let encoded = state.encoder.encode(&readout.rows, budget, refresh)?;
        if encoded.kind == SliceKind::Idr {
            state.idr_at = Some(now);
        }
        Ok(Slice {
            picture: readout.picture,
            strip: readout.strip as u8,
            kind: encoded.kind,
            captured_at: readout.captured_at,
            encoded_at: clock.now(),
            bytes: encoded.bytes,
        })
    }
}

fn slice_budget(budget: Bitrate, slices_per_second: f64) -> ByteCount {
    budget * Duration::from_secs_f64(1.0 / slices_per_second)
}

const ALL_STRIPS: u64 = u64::MAX;
/// As long as a link may be without an answer before it counts as silent.
const PAUSE_LONG: Duration = Duration::from_millis(250);
/// The wish for an IDR is repeated until one arrives; this is longer than such a round trip.
const IDR_INTERVAL_MIN: Duration = Duration::from_millis(200);
/// A second of encoding times at 60 pictures of six strips.
const RECENT_MAX: usize = 360;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shared_by_all_slices_of_a_second() {
        assert_eq!(slice_budget(Bitrate::from_kbps(2_880), 360.0), ByteCount::new(1_000));
    }

    #[test]
    fn a_rate_after_a_long_pause_begins_every_strip_anew() {
        let wishes = Wishes::new();
        for strip in 0..Layout::STRIP_COUNT {
            assert!(wishes.take_refresh(strip));
        }
        let at = Instant::from_millis;
        wishes.set_budget(Bitrate::from_mbps(1), at(1_000));
        assert!(wishes.take_refresh(3));
        wishes.set_budget(Bitrate::from_mbps(2), at(2_000));
        assert!(!wishes.take_refresh(3));
        wishes.set_budget(Bitrate::ZERO, at(3_000));
        assert!(wishes.paused().load(Ordering::Relaxed));
        wishes.set_budget(Bitrate::from_mbps(2), at(3_249));
        assert!(!wishes.take_refresh(3));
        wishes.set_budget(Bitrate::ZERO, at(4_000));
        wishes.set_budget(Bitrate::from_mbps(2), at(4_250));
        assert!(wishes.take_refresh(3));
    }
}
