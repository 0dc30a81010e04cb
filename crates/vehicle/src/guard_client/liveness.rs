use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tautline_guard::frame::{Status, Trouble, Troubles};
use tautline_units::Instant;

use crate::camera;
use crate::config::Reaction;
use crate::encode::{ENCODER_COUNT, EncoderControl, Meter};

/// Liveness of camera and encoders, reported to the guard; a component counts as stopped if its
/// counters no longer rise.
#[derive(Debug)]
pub struct Liveness {
    camera: Arc<camera::Counters>,
    meter: Arc<Meter>,
    control: Arc<EncoderControl>,
    pictures: Moving,
    encoders: [Encoder; ENCODER_COUNT],
    /// Configured reactions: to a uniform picture, and to a picture that moves while the machine
    /// stands.
    reactions: [Reaction; 2],
}

/// Progress of one encoder.
#[derive(Clone, Copy, Default, Debug)]
struct Encoder {
    strips: Moving,
    /// Number of pictures begun by the camera when the encoder's count last rose.
    pictures: u64,
}

/// A count, and the instant at which it last changed.
#[derive(Clone, Copy, Default, Debug)]
struct Moving {
    count: u64,
    rose_at: Instant,
}

impl Liveness {
    /// Creates the liveness of a camera and of its encoders; the reactions are to warn until they
    /// are set.
    pub fn new(
        camera: Arc<camera::Counters>,
        meter: Arc<Meter>,
        control: Arc<EncoderControl>,
    ) -> Self {
        let (pictures, encoders) = (Moving::default(), Default::default());
        let reactions = [Reaction::Warn; 2];
        Self { camera, meter, control, pictures, encoders, reactions }
    }

    /// Sets the owner's reactions: whether to stop the machine for a uniform picture, and for a
    /// picture that moves while the machine reports standstill.
    #[must_use]
    pub fn reacting(self, uniform: Reaction, motion: Reaction) -> Self {
        Self { reactions: [uniform, motion], ..self }
    }

    /// Passes the machine's reported speed and steering to the comparison with the pictures.
    pub fn handle_status(&self, status: &Status) {
        let machine = status.machine.map(|(machine, _)| (machine.speed, machine.steering_angle));
        let (speed, steering) = machine.unwrap_or((f32::NAN, f32::NAN));
        self.meter.sight.handle_machine(speed, steering);
    }

    /// Returns what is wrong at `now`: a camera that has stopped, an encoder that has while it gets
    /// pictures and may send, and, if the settings say to stop for them, a uniform picture or one
    /// that moves at standstill.
    pub fn troubles(&mut self, now: Instant) -> Troubles {
        self.pictures.note(self.camera.pictures.load(Ordering::Relaxed), now);
        // Nothing can be sent, so nothing is coded.
        let is_paused = self.control.is_idle(now);
        for (encoder, done) in self.encoders.iter_mut().zip(&self.meter.strips_done) {
            encoder.strips.note(done.load(Ordering::Relaxed), now);
            if is_paused {
                encoder.strips.rose_at = now;
            }
            if encoder.strips.rose_at == now {
                encoder.pictures = self.pictures.count;
            }
        }
        let period = Duration::from_nanos(self.camera.period_nanos.load(Ordering::Relaxed));
        let timeout = (PICTURES_MISSING * period.min(PERIOD_MAX)).max(TIMEOUT_MIN);
        let interval = self.control.picture_interval();
        // If a picture has one strip, one encoder codes them all.
        let has_begun = self.encoders.iter().any(|encoder| encoder.strips.count > 0);
        let hangs = |encoder: &Encoder| {
            // An encoder that waits for the camera, possibly in the middle of a picture, does not
            // hang.
            let is_fed = self.pictures.count - encoder.pictures > u64::from(interval);
            let is_used = encoder.strips.count > 0 || !has_begun;
            is_used && is_fed && now.since(encoder.strips.rose_at) > timeout * interval
        };
        let stops = self.reactions.map(|reaction| reaction == Reaction::Stop);
        Troubles::NONE
            .with_if(Trouble::Camera, now.since(self.pictures.rose_at) > timeout)
            .with_if(Trouble::Encoder, self.encoders.iter().any(hangs))
            .with_if(
                Trouble::Blind,
                stops[0] && self.camera.uniform_since.load(Ordering::Relaxed) != 0,
            )
            .with_if(Trouble::Motion, stops[1] && self.meter.sight.moves())
    }
}

impl Moving {
    fn note(&mut self, count: u64, now: Instant) {
        if count != self.count {
            *self = Self { count, rose_at: now };
        }
    }
}

/// Number of picture intervals without a picture after which a camera counts as stopped, unless
/// [`TIMEOUT_MIN`] is longer. For an encoder the time is multiplied by the picture interval that is
/// coded.
const PICTURES_MISSING: u32 = 4;
/// Greatest picture interval that the timeout is computed from, for slow cameras.
const PERIOD_MAX: Duration = Duration::from_secs(1);
/// Least timeout of camera and encoders, for fast cameras: half the greatest age of a picture.
const TIMEOUT_MIN: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use tautline_units::Bitrate;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_stalled_camera_or_encoder_is_reported() {
        let (camera, meter) = (Arc::<camera::Counters>::default(), Arc::<Meter>::default());
        let control = Arc::new(EncoderControl::new());
        let mut liveness = Liveness::new(camera.clone(), meter.clone(), control.clone());
        control.set_budget(Bitrate::from_mbps(1), at(0));
        let mut now = 0;
        let mut run = |millis, sees: bool, encodes: [bool; ENCODER_COUNT]| {
            let mut troubles = Troubles::NONE;
            for _ in 0..millis / 10 {
                now += 10;
                camera.pictures.fetch_add(sees.into(), Ordering::Relaxed);
                for (done, encodes) in meter.strips_done.iter().zip(encodes) {
                    done.fetch_add(encodes.into(), Ordering::Relaxed);
                }
                troubles = liveness.troubles(at(now));
            }
            troubles
        };
        assert!(run(500, true, [true; 2]).is_empty());
        assert!(run(240, true, [false; 2]).is_empty());
        assert_eq!(run(30, true, [false; 2]), Troubles::of(Trouble::Encoder));
        assert!(run(20, true, [true; 2]).is_empty());
        for one in [[true, false], [false, true]] {
            assert!(run(240, true, one).is_empty());
            assert_eq!(run(30, true, one), Troubles::of(Trouble::Encoder), "one of two");
            assert!(run(20, true, [true; 2]).is_empty());
        }
        assert_eq!(run(300, false, [true; 2]), Troubles::of(Trouble::Camera));
        run(20, true, [true; 2]);
        assert_eq!(
            run(1_000, false, [false; 2]),
            Troubles::of(Trouble::Camera),
            "they wait for it"
        );
        run(20, true, [true; 2]);
        control.set_budget(Bitrate::ZERO, at(2_000));
        assert!(run(1_000, true, [false; 2]).is_empty(), "nothing could be sent");
    }
}
