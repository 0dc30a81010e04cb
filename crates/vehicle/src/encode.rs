//! The encoders: strips in turn, each strip a stream of its own, sized to what the links carry.

mod control;
mod meter;
mod plan;
mod strip;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use anyhow::ensure;
use tautline_net::clock::Clock;
use tautline_units::{Bitrate, ByteCount, Instant};
use tautline_video::{Backend, Layout, Picture, Slice};

pub use control::EncoderControl;
pub use meter::{ENCODER_COUNT, Meter};
pub use plan::Plan;
pub use strip::StripCoder;

use crate::readout::Readout;

/// One of the encoders that take strips in turn.
pub struct Turn {
    index: usize,
    strips: Vec<StripCoder>,
    turn_count: usize,
    plan: Arc<Plan>,
    pictures_per_second: f64,
}

/// The times of a slice between its capture and the end of its encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// The last of its rows had been read.
    pub read_at: Instant,
    /// Its encoder had the first rows that it waited for: of one that codes whole strips, the last.
    pub begun_at: Instant,
}

impl Turn {
    /// Returns all `count` that take turns, by `backend`: the one at `index` codes strips `index`,
    /// `index + count`, and so on.
    ///
    /// # Errors
    /// When an encoder of that size cannot be made, or for more than 64 strips.
    pub fn all(
        backend: Backend,
        layout: &Layout,
        count: usize,
        pictures_per_second: f64,
    ) -> anyhow::Result<Vec<Self>> {
        ensure!(layout.strip_count() <= u64::BITS as usize, "more strips than can be asked for");
        let plan = Arc::new(Plan::new(layout.strip_count()));
        let rate = pictures_per_second.round() as u32;
        let turn = |index: usize| {
            let strips = (index..layout.strip_count()).step_by(count);
            let strips = strips.map(|strip| StripCoder::new(backend, layout, strip, rate));
            let strips = strips.collect::<anyhow::Result<_>>()?;
            Ok(Self { index, strips, turn_count: count, plan: plan.clone(), pictures_per_second })
        };
        (0..count).map(turn).collect()
    }

    /// Encodes what comes and gives each slice to `send`, which says whether it was taken, until the
    /// camera ends.
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
            let encoded = self.encode(&mut readout, control, clock);
            let timing = Timing {
                read_at: readout.read_at(),
                begun_at: readout.begun_at().unwrap_or(readout.captured_at),
            };
            match encoded {
                // The camera ended amid the strip.
                Ok(_) if readout.is_cut() => {}
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
                    tracing::warn!(strip, %error, "a strip was not encoded");
                    meter.slices_failed.fetch_add(1, Ordering::Relaxed);
                    control.request_keyframes(1 << strip);
                }
            }
            if let Some(done) = meter.strips_done.get(self.index) {
                done.fetch_add(1, Ordering::Relaxed);
            }
            self.strips[strip / self.turn_count].finish_reconstruction();
            // A buffer more or less: the camera makes a new one when none comes back.
            if let Some(rows) = readout.into_rows() {
                let _ = give_back.try_send(rows);
            }
        }
    }

    fn encode(
        &mut self,
        readout: &mut Readout,
        control: &EncoderControl,
        clock: Clock,
    ) -> Result<Slice, tautline_video::Error> {
        let (picture, strip, captured_at) = (readout.picture, readout.strip, readout.captured_at);
        let strip_coder = &mut self.strips[strip / self.turn_count];
        if let Some(report) = control.report(strip) {
            strip_coder.handle_report(&report);
        }
        let requested = control.take_refresh(strip);
        let rate = self.pictures_per_second / f64::from(control.picture_interval());
        let budget = picture_budget(control.budget(), rate);
        let encoded =
            strip_coder.encode(readout, picture, budget, &self.plan, requested, clock.now())?;
        Ok(Slice {
            picture,
            strip: strip as u8,
            kind: encoded.kind,
            history: encoded.history,
            captured_at,
            encoded_at: clock.now(),
            tick: readout.tick,
            bytes: encoded.bytes,
        })
    }
}

fn picture_budget(budget: Bitrate, pictures_per_second: f64) -> ByteCount {
    budget * Duration::from_secs_f64(1.0 / pictures_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shared_by_all_pictures_of_a_second() {
        assert_eq!(picture_budget(Bitrate::from_kbps(2_880), 60.0), ByteCount::new(6_000));
    }
}
