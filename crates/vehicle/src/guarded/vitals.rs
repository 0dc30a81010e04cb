use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tautline_guard::frame::{Trouble, Troubles};
use tautline_units::Instant;

use crate::camera;
use crate::encode::{EncoderControl, Meter};

/// Whether camera and encoders still give something, for the guard: a thread that hangs says nothing.
#[derive(Debug)]
pub struct Vitals {
    camera: Arc<camera::Counters>,
    meter: Arc<Meter>,
    control: Arc<EncoderControl>,
    /// Between two pictures.
    period: Duration,
    pictures: Moving,
    slices: Moving,
}

/// A count that has to rise.
#[derive(Clone, Copy, Default, Debug)]
struct Moving {
    count: u64,
    rose_at: Instant,
}

impl Vitals {
    /// Returns the vitals of a camera of so many pictures a second and of its encoders.
    pub fn new(
        camera: Arc<camera::Counters>,
        meter: Arc<Meter>,
        control: Arc<EncoderControl>,
        pictures_per_second: f64,
    ) -> Self {
        let period = Duration::from_secs_f64(1.0 / pictures_per_second.max(1.0));
        let (pictures, slices) = (Moving::default(), Moving::default());
        Self { camera, meter, control, period, pictures, slices }
    }

    /// Returns what has stopped, at `now`.
    pub fn troubles(&mut self, now: Instant) -> Troubles {
        let meter = &self.meter;
        let slices = [&meter.slices_sent, &meter.slices_refused, &meter.slices_failed];
        let slices = slices.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        self.pictures.note(self.camera.pictures.load(Ordering::Relaxed), now);
        self.slices.note(slices, now);
        let timeout = (PICTURES_MISSING * self.period).max(TIMEOUT_MIN);
        if self.control.is_paused() {
            // Nothing can be sent, so that nothing is coded.
            self.slices.rose_at = now;
        }
        let interval = self.control.picture_interval();
        Troubles::NONE
            .with_if(Trouble::Camera, now.since(self.pictures.rose_at) > timeout)
            .with_if(Trouble::Encoder, now.since(self.slices.rose_at) > timeout * interval)
    }
}

impl Moving {
    fn note(&mut self, count: u64, now: Instant) {
        if count != self.count {
            *self = Self { count, rose_at: now };
        }
    }
}

/// Pictures in a row that a camera may be late.
const PICTURES_MISSING: u32 = 4;
/// However fast the camera is: half of what the oldest picture may age.
const TIMEOUT_MIN: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use tautline_units::Bitrate;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_camera_and_encoders_that_stand_still_are_told() {
        let (camera, meter) = (Arc::<camera::Counters>::default(), Arc::<Meter>::default());
        let control = Arc::new(EncoderControl::new());
        let mut vitals = Vitals::new(camera.clone(), meter.clone(), control.clone(), 30.0);
        control.set_budget(Bitrate::from_mbps(1), at(0));
        let mut now = 0;
        let mut run = |millis, sees: bool, encodes: bool| {
            let mut troubles = Troubles::NONE;
            for _ in 0..millis / 10 {
                now += 10;
                camera.pictures.fetch_add(sees.into(), Ordering::Relaxed);
                meter.slices_sent.fetch_add(encodes.into(), Ordering::Relaxed);
                troubles = vitals.troubles(at(now));
            }
            troubles
        };
        assert!(run(500, true, true).is_empty());
        assert!(run(240, true, false).is_empty());
        assert_eq!(run(30, true, false), Troubles::of(Trouble::Encoder));
        assert!(run(20, true, true).is_empty());
        assert_eq!(run(300, false, true), Troubles::of(Trouble::Camera));
        run(20, true, true);
        control.set_budget(Bitrate::ZERO, at(2_000));
        assert!(run(1_000, true, false).is_empty(), "nothing could be sent");
    }
}
