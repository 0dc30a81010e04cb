//! What the vehicle tells of itself: to the operator, and on its metrics page.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tautline_message::{Mode, Telemetry};
use tautline_net::metrics::Page;
use tautline_net::survey::Latest;
use tautline_units::Instant;

use crate::actuators::Actuators;
use crate::camera;
use crate::convert;
use crate::encode::{Meter, Wishes};
use crate::probe::{Health, Probe};
use crate::uplink::Seen;

/// Everything that telemetry tells of.
#[derive(Clone)]
pub struct Reporter {
    /// The machine behind its failsafe.
    pub actuators: Arc<Actuators>,
    /// What is asked of the encoders.
    pub wishes: Arc<Wishes>,
    /// What the encoders did.
    pub meter: Arc<Meter>,
    /// What the camera did.
    pub camera: Arc<camera::Counters>,
    /// What the session looks like.
    pub seen: Arc<Mutex<Seen>>,
    /// What the session's links and classes look like.
    pub latest: Latest,
    /// What an operator tries out.
    pub probe: Arc<Probe>,
}

/// Values that are measured over the time between two reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lately {
    sequence: u64,
    pictures: u64,
    at: Instant,
    picture_rate: f32,
    encode: (Duration, Duration),
}

impl Lately {
    /// Measures anew if a second has passed.
    pub fn advance(&mut self, reporter: &Reporter, now: Instant) {
        self.sequence += 1;
        let elapsed = now.since(self.at);
        if elapsed < SPAN {
            return;
        }
        let pictures = reporter.pictures_read();
        self.picture_rate = (pictures - self.pictures) as f32 / elapsed.as_secs_f32();
        self.pictures = pictures;
        self.encode = reporter.meter.take_percentiles();
        self.at = now;
    }
}

impl Reporter {
    /// The report for the operator.
    pub fn telemetry(&self, lately: &Lately, now: Instant) -> Telemetry {
        let motion = self.actuators.motion();
        let (speed, steering_angle) = convert::motion(&motion.state);
        let (mode, mode_reason, command_age) = self.mode(now);
        let seen = self.seen();
        let drops = self.drops(&seen).into_iter().filter(|(_, count)| *count > 0);
        let drops = drops.map(|(name, count)| (name.to_owned(), count)).collect();
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let millis = |duration: Duration| duration.as_secs_f32() * 1e3;
        Telemetry {
            sequence: lately.sequence,
            sent_at: now,
            speed,
            steering_angle,
            throttle: motion.controls.throttle,
            brake: motion.controls.brake,
            gear: convert::gear(motion.state.gear),
            position: convert::position(&motion.state),
            faults: convert::faults(&motion.state),
            mode,
            mode_reason,
            command_age_ms: command_age.map(millis),
            picture_rate: lately.picture_rate,
            video_budget: self.wishes.budget(),
            pictures_captured: count(&self.camera.pictures),
            pictures_dropped: count(&self.camera.pictures_skipped),
            slices_sent: count(&self.meter.slices_sent),
            slices_dropped: self.slices_dropped(),
            encode_ms_p50: millis(lately.encode.0),
            encode_ms_p99: millis(lately.encode.1),
            links: seen.links,
            extras: convert::extras(&motion.extras),
            drops,
        }
    }

    /// How commands and telemetry fare, for the probe.
    pub fn health(&self, now: Instant) -> Health {
        let (mode, _, command_age) = self.mode(now);
        let control_refused = self.seen().control_refused;
        Health { command_age: command_age.filter(|_| mode == Mode::Driving), control_refused }
    }

    /// The metrics page.
    pub fn metrics(&self, now: Instant) -> String {
        let motion = self.actuators.motion();
        let (mode, _, command_age) = self.mode(now);
        let mut page = Page::new("tautline_vehicle");
        page.gauge("speed_metres_per_second", "Speed over ground", motion.state.speed.into());
        page.gauge("throttle", "Throttle as applied, 0 to 1", motion.controls.throttle.into());
        page.gauge("brake", "Brake as applied, 0 to 1", motion.controls.brake.into());
        page.gauge(
            "driving",
            "1 while commands reach the actuators",
            f64::from(mode == Mode::Driving),
        );
        if let Some(age) = command_age {
            page.gauge("command_age_seconds", "Age of the newest command", age.as_secs_f64());
        }
        page.gauge("budget_bits_per_second", "Granted to video", self.wishes.budget().as_f64());
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        page.counter("pictures_total", "Pictures begun", count(&self.camera.pictures));
        page.counter("slices_total", "Slices sent", count(&self.meter.slices_sent));
        let seen = self.seen();
        page.counters("drops_total", "Drops by name", "name", self.drops(&seen));
        let links = || seen.links.iter().map(|link| link.name.as_str());
        let rates = seen.links.iter().map(|link| link.send_rate.as_f64());
        page.gauges(
            "link_granted_bits_per_second",
            "Granted by rate control",
            "link",
            links().zip(rates),
        );
        if let Some(survey) = self.latest.get() {
            survey.add_to(&mut page);
        }
        page.finish()
    }

    /// Every drop of the vehicle's that has a name.
    fn drops(&self, seen: &Seen) -> Vec<(&'static str, u64)> {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let mut drops = vec![
            ("camera: picture skipped", count(&self.camera.pictures_skipped)),
            (
                "camera: picture passed over for the screen",
                count(&self.camera.pictures_passed_over),
            ),
            ("camera: strip not encoded in time", count(&self.camera.strips_dropped)),
            ("camera: strip paused, no rate", count(&self.camera.strips_paused)),
            ("encoder: slice failed", count(&self.meter.slices_failed)),
            ("encoder: slice refused by the event loop", count(&self.meter.slices_refused)),
            ("failsafe: command stale", self.actuators.failsafe().stale_count()),
            (
                "actuators: controls refused by the machine",
                self.actuators.motion().controls_refused,
            ),
            ("uplink: command malformed", seen.commands_malformed),
            ("uplink: message malformed", seen.others_malformed),
        ];
        drops.extend(seen.drops.iter().copied());
        drops
    }

    fn mode(&self, now: Instant) -> (Mode, String, Option<Duration>) {
        let failsafe = self.actuators.failsafe();
        let (mode, why) = convert::mode(failsafe.mode(), failsafe.config());
        (mode, why, failsafe.command_age(now))
    }

    fn pictures_read(&self) -> u64 {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let unread =
            count(&self.camera.pictures_skipped) + count(&self.camera.pictures_passed_over);
        count(&self.camera.pictures).saturating_sub(unread)
    }

    fn slices_dropped(&self) -> u64 {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        count(&self.camera.strips_dropped)
            + count(&self.meter.slices_failed)
            + count(&self.meter.slices_refused)
    }

    /// A copy, so that nothing is locked while the rest is gathered.
    fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

const SPAN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tautline_guard::failsafe::Config;
    use tautline_message::survey::End;
    use tautline_units::ByteCount;

    use super::*;

    fn reporter() -> Reporter {
        Reporter {
            actuators: Arc::new(Actuators::new(Config::default())),
            wishes: Arc::default(),
            meter: Arc::default(),
            camera: Arc::default(),
            seen: Arc::default(),
            latest: Latest::of(End::Vehicle),
            probe: Arc::new(Probe::new(ByteCount::new(1_200), Duration::from_millis(300))),
        }
    }

    #[test]
    fn telemetry_tells_the_drops_that_have_happened() {
        let reporter = reporter();
        reporter.camera.strips_dropped.store(7, Ordering::Relaxed);
        let telemetry = reporter.telemetry(&Lately::default(), Instant::from_millis(5));
        assert_eq!(telemetry.drops, [("camera: strip not encoded in time".to_owned(), 7)]);
        assert_eq!(telemetry.mode, Mode::AwaitingOperator);
        let read = Telemetry::decode(&telemetry.encode()).unwrap();
        assert_eq!(read, telemetry);
    }

    #[test]
    fn every_drop_has_a_line_on_the_metrics_page() {
        let page = reporter().metrics(Instant::from_millis(5));
        assert!(page.contains("tautline_vehicle_speed_metres_per_second 0\n"), "{page}");
        let drop = "tautline_vehicle_drops_total{name=\"failsafe: command stale\"} 0\n";
        assert!(page.contains(drop), "{page}");
    }

    #[test]
    fn the_picture_rate_is_of_the_pictures_read() {
        let (reporter, mut lately) = (reporter(), Lately::default());
        reporter.camera.pictures.store(120, Ordering::Relaxed);
        reporter.camera.pictures_skipped.store(15, Ordering::Relaxed);
        reporter.camera.pictures_passed_over.store(5, Ordering::Relaxed);
        lately.advance(&reporter, Instant::from_millis(2_000));
        let telemetry = reporter.telemetry(&lately, Instant::from_millis(2_000));
        assert_eq!(telemetry.picture_rate, 50.0);
    }
}
