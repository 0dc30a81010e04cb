//! Reports of the vehicle about itself: to the operator, and on its metrics page.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tautline_guard::config::Latency;
use tautline_guard::{Fault, Faults, MachineState, Mode};
use tautline_message::snapshot::{ProcessStats, Value};
use tautline_message::{Sight, Sights, Telemetry};
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::metrics::{Labels, Page, Unit};
use tautline_net::stats::{self, History, Latest};
use tautline_net::topics;
use tautline_units::{Bitrate, Instant};
use tautline_video::Origin;

use crate::camera;
use crate::convert;
use crate::delivery::Delivery;
use crate::encode::{EncoderControl, Meter};
use crate::guard_client::{GuardClient, Heard};
use crate::orders;
use crate::parts::Parts;
use crate::probe::{Health, Probe};
use crate::readiness::{Met, Requirement};
use crate::uplink::{self, Uplink};

/// Sources of all telemetry.
#[derive(Clone)]
pub struct Reporter {
    /// Connection to the guard, which moves the machine.
    pub guard_client: Arc<GuardClient>,
    /// Encoder control.
    pub control: Arc<EncoderControl>,
    /// Counters of the encoders.
    pub meter: Arc<Meter>,
    /// Counters of the camera.
    pub camera: Arc<camera::Counters>,
    /// Counters of malformed units from the operator.
    pub uplink: Arc<uplink::Counters>,
    /// Counters of other programs' topics.
    pub topics: Arc<topics::Counters>,
    /// Receivers of the operator's topics.
    pub(crate) delivery: Arc<Delivery>,
    /// Newest snapshot of this end.
    pub latest: Latest,
    /// Follower of a packet-size probe that an operator runs.
    pub probe: Arc<Probe>,
    /// Failure counts of this process's tasks.
    pub parts: Arc<Parts>,
    /// Progress towards a session with an operator.
    pub met: Arc<Met>,
    /// Counters of the supervisors' orders.
    pub orders: Arc<orders::Counters>,
}

/// Values measured about once per second, over the second before, and the number of reports.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    sequence: u64,
    /// Earlier totals of pictures read, skipped for lack of time, and delayed.
    pictures: History<[u64; 3]>,
    picture_rate: f32,
    /// Pictures per second that were skipped for lack of time.
    left_out_rate: f32,
    /// Pictures per second that were late, and taken nevertheless.
    delayed_rate: f32,
    is_overloaded: bool,
    /// Median and 99th percentile of the encoding times of the last second.
    encode: (Duration, Duration),
    measured_at: Instant,
}

impl Recent {
    /// Counts a report; if a second has passed since the last measurement, measures the rates of
    /// pictures and the overload again.
    pub fn advance(&mut self, reporter: &Reporter, now: Instant) {
        self.sequence += 1;
        if now.since(self.measured_at) < SPAN {
            return;
        }
        let delayed = count(&reporter.camera.pictures_delayed);
        let pictures = [reporter.pictures_read(), reporter.pictures_left_out(), delayed];
        let (before, elapsed) = match self.pictures.before(SPAN, now) {
            Some((before, elapsed)) => (*before, elapsed),
            None => ([0; 3], now.since(Instant::ZERO)),
        };
        let rate = |which: usize| {
            pictures[which].saturating_sub(before[which]) as f32 / elapsed.as_secs_f32()
        };
        (self.picture_rate, self.left_out_rate, self.delayed_rate) = (rate(0), rate(1), rate(2));
        let share = if self.is_overloaded { OVERLOAD_END } else { OVERLOAD_BEGIN };
        let lacking = self.left_out_rate + self.delayed_rate;
        let all = self.picture_rate + self.left_out_rate;
        // Without a source, the overload state stays as it is.
        if all > 0.0 {
            self.is_overloaded = lacking > share * all;
        }
        self.pictures.push(pictures, now);
        self.encode = reporter.meter.take_percentiles();
        self.measured_at = now;
    }

    /// Returns whether this computer is too slow: more than a tenth of its pictures are skipped or
    /// delayed for lack of time, until fewer than 2% are.
    pub fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }

    /// Logs that an overload has begun or ended.
    pub fn say_overload(&self) {
        let (coded, left_out, delayed) = (self.picture_rate, self.left_out_rate, self.delayed_rate);
        match self.is_overloaded {
            true => tracing::warn!(
                event = "overload",
                coded,
                left_out,
                delayed,
                "this computer is too slow to read and encode every picture, so it sends fewer; \
                 use a smaller size or rate of the source"
            ),
            false => {
                tracing::warn!(event = "overload over", coded, "every picture is encoded again")
            }
        }
    }
}

impl Reporter {
    /// Returns the report for the operator.
    pub fn telemetry(&self, recent: &Recent, now: Instant) -> Telemetry {
        let heard = self.guard_client.heard(now);
        let mode = heard.as_ref().map(|heard| heard.status().mode);
        let is_driven = mode.is_some_and(|mode| mode == Mode::Armed || mode.is_driving());
        Telemetry {
            sequence: recent.sequence,
            sent_at: now,
            status: heard.map(|heard| heard.frame),
            mode_reason: self.mode_reason(),
            source_trouble: self.source_trouble(is_driven),
            sight: self.sight(),
        }
    }

    /// Returns why the pictures are missing or faulty or, unless the machine is armed or driven,
    /// how and why they are reduced for the operator's screen; `None` without either. At most
    /// [`Telemetry::TEXT_BYTES_MAX`] bytes; the rest is cut off.
    fn source_trouble(&self, is_driven: bool) -> Option<String> {
        let lost = || self.parts.source.reason().map(|reason| format!("no pictures: {reason}"));
        let smaller = || self.control.screen_words().filter(|_| !is_driven);
        let words = lost().or_else(|| self.camera.trouble()).or_else(smaller)?;
        let mut ends = (0..=words.len().min(Telemetry::TEXT_BYTES_MAX)).rev();
        let end = ends.find(|end| words.is_char_boundary(*end)).unwrap_or_default();
        Some(words[..end].to_owned())
    }

    /// Returns an uplink to this reporter's guard and encoders, with its counters.
    pub fn uplink(&self, clock: Clock) -> Uplink {
        Uplink {
            guard_client: self.guard_client.clone(),
            control: self.control.clone(),
            probe: self.probe.clone(),
            clock,
            counters: self.uplink.clone(),
            latest: self.latest.clone(),
            met: self.met.clone(),
            topics: self.topics.clone(),
            delivery: self.delivery.clone(),
        }
    }

    /// Returns the properties of the pictures that a person must know about.
    fn sight(&self) -> Sights {
        let (camera, meter) = (&self.camera, &self.meter);
        let origin = camera.origin.load(Ordering::Relaxed);
        Sights::NONE
            .with_if(Sight::Drawn, origin == Origin::Drawn as u8)
            .with_if(Sight::Recorded, origin == Origin::Recorded as u8)
            .with_if(Sight::Repeats, count(&camera.repeats_since) != 0)
            .with_if(Sight::Uniform, count(&camera.uniform_since) != 0)
            .with_if(Sight::Moves, meter.sight.moves())
            .with_if(Sight::Contradicts, meter.sight.contradicts())
            .with_if(Sight::Unchecked, self.guard_client.steering().is_due())
    }

    /// Returns the report for an operator that waits for another one to stop, with that as the
    /// reason why nobody drives.
    pub fn telemetry_waiting(&self, recent: &Recent, now: Instant) -> Telemetry {
        let mode_reason = Some("the vehicle drives under another operator".to_owned());
        Telemetry { mode_reason, ..self.telemetry(recent, now) }
    }

    /// Returns the age of commands, unknown unless somebody drives, and the count of refused units
    /// except for video, for the probe.
    pub fn health(&self, now: Instant) -> Health {
        let heard = self.guard_client.heard(now);
        let status = heard.as_ref().map(Heard::status);
        let driven = status.filter(|status| status.mode.is_driving());
        let command_age = driven.and_then(|status| status.command_age);
        // A guard of an older build does not send its timeout.
        let command_timeout = status.and_then(|status| status.budget.command_timeout);
        let command_timeout = command_timeout.unwrap_or(Latency::default().command_timeout);
        let snapshot = self.latest.snapshot();
        let video = channels::VIDEO.get();
        let others = snapshot.channels().iter().filter(|channel| channel.channel != video);
        let control_refused = others.map(|channel| channel.units.refused()).sum();
        Health { command_age, command_timeout, control_refused }
    }

    /// Returns the values and drop counters of the vehicle's process, for the snapshot.
    pub fn process(&self, recent: &Recent, now: Instant) -> ProcessStats {
        ProcessStats { values: self.values(recent, now), drops: self.drops(now) }
    }

    /// Returns every displayed value, in reading order.
    ///
    /// The page, the metrics and `tautline status` show each under its name, so a new value needs
    /// only a line here. Values of the machine come from the guard's list, and extras from the
    /// callback that follows the machine.
    fn values(&self, recent: &Recent, now: Instant) -> Vec<Value> {
        let heard = self.guard_client.heard(now);
        let status = heard.as_ref().map(Heard::status);
        let seconds = |name, time: Option<Duration>| {
            time.map(|time| Value::of(name, time.as_secs_f64(), "s"))
        };
        let mut values = Vec::new();
        values.extend(seconds("command age", status.and_then(|status| status.command_age)));
        values.extend(seconds("loop age", status.and_then(|status| status.loop_age)));
        values.extend([
            Value::of("picture rate", recent.picture_rate.into(), "/s"),
            Value::of("overload: pictures left out", recent.left_out_rate.into(), "/s"),
            Value::of("overload: pictures delayed", recent.delayed_rate.into(), "/s"),
            Value::of("picture rate asked for", self.control.picture_rate(), "/s"),
            Value::of(
                "picture size asked for",
                (100.0 / self.control.reduction() as f64).round(),
                "%",
            ),
            Value::of("picture at full quality", self.control.need().get() as f64, "B"),
            Value::of("video budget", self.control.budget().as_f64(), "bit/s"),
            Value::of("encode p50", recent.encode.0.as_secs_f64(), "s"),
            Value::of("encode p99", recent.encode.1.as_secs_f64(), "s"),
            Value::total("pictures captured", count(&self.camera.pictures)),
            Value::total(
                "pictures misdated by their camera",
                count(&self.camera.pictures_misdated),
            ),
            Value::total("slices sent", count(&self.meter.slices_sent)),
            Value::total("orders obeyed", self.orders.obeyed()),
        ]);
        values.extend(seconds("source lost", self.parts.source.lost_for(now)));
        let lasts = |since: &AtomicU64| {
            let since = Instant::from_nanos(count(since).checked_sub(1)?);
            Some(now.since(since))
        };
        values.extend(seconds("picture repeats", lasts(&self.camera.repeats_since)));
        values.extend(seconds("picture uniform", lasts(&self.camera.uniform_since)));
        values.extend(self.parts.values());
        values.extend(convert::told(&machine(heard.as_ref()).told));
        values.extend(convert::extras(heard.as_ref().map_or(&[], |heard| &heard.extras)));
        values
    }

    /// Returns the drop counters of the vehicle's process. Those of the session are in the
    /// session's statistics.
    fn drops(&self, now: Instant) -> Vec<(String, u64)> {
        let heard = self.guard_client.heard(now);
        let counts = heard.map(|heard| heard.status().counts).unwrap_or_default();
        let [unsent, refused, skipped] = self.guard_client.counts();
        let [uncarried, repeated] = self.guard_client.ticks().refused();
        let drops = [
            ("camera: picture damaged", count(&self.camera.pictures_damaged)),
            ("camera: picture lost by its driver", count(&self.camera.pictures_missed)),
            (
                "camera: picture superseded before it was read",
                count(&self.camera.pictures_superseded),
            ),
            ("camera: picture skipped", count(&self.camera.pictures_skipped)),
            ("camera: picture not begun, encoders busy", count(&self.camera.pictures_unencoded)),
            ("camera: picture decimated for the screen", count(&self.camera.pictures_decimated)),
            ("camera: picture decimated for the links", count(&self.camera.pictures_thinned)),
            ("camera: picture held, links busy", count(&self.camera.pictures_held)),
            ("camera: strip not encoded in time", count(&self.camera.strips_dropped)),
            ("camera: picture paused, no rate", count(&self.camera.pictures_paused)),
            ("encoder: strip held, links busy", count(&self.meter.strips_held)),
            ("encoder: slice failed", count(&self.meter.slices_failed)),
            ("encoder: slice refused by the event loop", count(&self.meter.slices_refused)),
            ("camera: capture repeated", count(&self.camera.pictures_repeated)),
            ("guard: command stale", counts.commands_stale.into()),
            ("guard: tick of a picture refused", counts.ticks_refused.into()),
            ("command: tick on no picture that was sent", uncarried),
            ("command: tick of a repeated picture", repeated),
            ("guard: act refused", counts.acts_refused.into()),
            ("guard: proposal not sent", unsent),
            ("guard: status not sound", refused),
            ("guard: end of a status not known", skipped),
            ("uplink: command overtaken by the next", self.guard_client.overtaken_count()),
            ("uplink: command dated ahead", self.guard_client.ahead_count()),
            ("guard: declaration of the machine dropped", self.guard_client.declared_dropped()),
            ("uplink: command malformed", count(&self.uplink.commands_malformed)),
            ("uplink: message malformed", count(&self.uplink.others_malformed)),
        ];
        let drops = drops.into_iter().chain(self.topics.iter()).chain(self.delivery.drops());
        let drops = drops.chain(self.orders.refused());
        drops.map(|(name, count)| (name.to_owned(), count)).collect()
    }

    /// Returns whether driving is impossible because this prerequisite is missing.
    pub(crate) fn lacks(&self, awaited: Requirement, now: Instant) -> bool {
        let sees = self.parts.source.lost_for(now).is_none();
        self.met.lacks(awaited, [self.guard_client.heard(now).is_some(), sees], now)
    }

    /// Returns the metrics page.
    pub fn metrics(&self, now: Instant) -> String {
        let heard = self.guard_client.heard(now);
        let status = heard.as_ref().map(Heard::status);
        let applied = status.map(|status| status.applied).unwrap_or_default();
        let mode = status.map(|status| status.mode).unwrap_or_default();
        let mut page = Page::new("tautline_vehicle");
        let metres_per_second = Some(Unit::Other("metres_per_second".to_owned()));
        page.gauge(
            "speed",
            metres_per_second,
            "Speed over ground",
            machine(heard.as_ref()).speed.into(),
        );
        let ratio = || Some(Unit::Other("ratio".to_owned()));
        page.gauge("throttle", ratio(), "Applied throttle", applied.throttle.into());
        page.gauge("brake", ratio(), "Applied brake", applied.brake.into());
        let driving = f64::from(mode.is_driving());
        page.gauge("driving", None, "1 while commands reach the machine", driving);
        let stopping = f64::from(mode == Mode::Manoeuvre);
        page.gauge(
            "stopping",
            None,
            "1 while the guard brings the machine to a standstill",
            stopping,
        );
        let held = f64::from(status.is_some() && mode == Mode::Held);
        page.gauge("held", None, "1 while the guard holds the machine", held);
        let missing = Requirement::ALL.map(|awaited| {
            let is_missing = f64::from(self.lacks(awaited, now));
            (Labels::of("what", awaited.name()), is_missing)
        });
        page.gauges("waiting_for", None, "1 while this is missing and nobody can drive", missing);
        let trouble = self.source_trouble(false);
        let trouble = trouble.map(|words| (Labels::of("words", &words), 1.0));
        page.gauges("source_trouble", None, "1 while the picture source has this fault", trouble);
        stats::add_to(&mut page, &self.latest.snapshot());
        page.finish()
    }

    /// Returns why nobody drives, where the guard's status does not say it: this process ends, or a
    /// supervisor has ended the drive. `None` otherwise.
    fn mode_reason(&self) -> Option<String> {
        match (self.guard_client.is_ending(), self.guard_client.ended_by()) {
            (true, _) => Some("the vehicle's process was asked to end".to_owned()),
            (false, Some(name)) => Some(format!("supervisor {name} has ended the drive")),
            (false, None) => None,
        }
    }

    fn pictures_read(&self) -> u64 {
        let camera = &self.camera;
        let unsent = [
            &camera.pictures_decimated,
            &camera.pictures_thinned,
            &camera.pictures_held,
            &camera.pictures_paused,
        ];
        let unread = unsent.into_iter().map(count).sum::<u64>() + self.pictures_left_out();
        count(&camera.pictures).saturating_sub(unread)
    }

    fn pictures_left_out(&self) -> u64 {
        count(&self.camera.pictures_skipped) + count(&self.camera.pictures_unencoded)
    }
}

/// Returns how many turns, of 50 ms, there are per telemetry report: 1, or 2 with a video budget
/// below 600 kbit/s, because telemetry takes rate from the pictures.
pub fn turns(budget: Bitrate) -> u64 {
    if budget < THIN { 2 } else { 1 }
}

/// Returns how many turns, of 50 ms, there are per snapshot: 10, or 40 with a video budget below
/// 600 kbit/s.
pub fn snapshot_turns(budget: Bitrate) -> u64 {
    if budget < THIN { 40 } else { 10 }
}

/// Returns the machine's latest state; without one, a state of unknown speed (NaN) with the fault
/// that the machine is unreachable.
fn machine(heard: Option<&Heard>) -> MachineState {
    let silent = MachineState {
        speed: f32::NAN,
        faults: Faults::of(Fault::Unreachable),
        ..MachineState::default()
    };
    heard.and_then(|heard| heard.status().machine).map_or(silent, |(machine, _)| machine)
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

const SPAN: Duration = Duration::from_secs(1);
/// Share of skipped and delayed pictures above which a computer counts as overloaded; below
/// [`OVERLOAD_END`] it no longer does.
const OVERLOAD_BEGIN: f32 = 0.1;
const OVERLOAD_END: f32 = 0.02;
/// Video budget below which telemetry and snapshots are sent less often: they would take more than
/// a tenth of it.
const THIN: Bitrate = Bitrate::from_kbps(600);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use tautline_guard::identity::Tick;

    use tautline_guard::{Config, Guard, Input};
    use tautline_message::snapshot::End;
    use tautline_message::{Snapshot, StatusFrame};
    use tautline_units::ByteCount;

    use super::*;
    use crate::guard_client::Follow;

    fn reporter() -> Reporter {
        Reporter {
            guard_client: Arc::new(GuardClient::new().unwrap()),
            control: Arc::default(),
            meter: Arc::default(),
            camera: Arc::default(),
            uplink: Arc::default(),
            topics: Arc::default(),
            delivery: Arc::new(Delivery::new(&BTreeMap::new())),
            latest: Latest::of(End::Vehicle),
            probe: Arc::new(Probe::new(ByteCount::new(1_200))),
            parts: Arc::default(),
            met: Arc::default(),
            orders: Arc::default(),
        }
    }

    /// Returns whether decoding gives the encoded report; trailing values that the machine does not
    /// report are left out.
    fn comes_back(telemetry: &Telemetry) -> bool {
        let bytes = telemetry.encode();
        Telemetry::decode(&bytes).is_ok_and(|read| read.encode() == bytes)
    }

    #[test]
    fn telemetry_contains_the_guards_status_byte_for_byte() {
        let telemetry = reporter().telemetry(&Recent::default(), Instant::from_millis(5));
        assert_eq!((telemetry.status.as_ref(), telemetry.mode_reason.as_ref()), (None, None));
        assert!(comes_back(&telemetry), "{telemetry:?}");
        let reporter = reporter();
        let mut guard = Guard::new(Config::car(), Tick::new(70).unwrap());
        let now = Instant::from_millis(9);
        let frame = StatusFrame::of(&guard.step(&Input::default(), now).status);
        let mut follow: Follow = Box::new(|_| Vec::new());
        reporter.guard_client.hear(frame.clone(), &mut follow, now);
        let telemetry = reporter.telemetry(&Recent::default(), now);
        assert_eq!(telemetry.status, Some(frame), "byte for byte");
        assert!(comes_back(&telemetry), "{telemetry:?}");
    }

    #[test]
    fn a_probe_follows_the_guards_own_command_timeout() {
        let reporter = reporter();
        let now = Instant::from_millis(9);
        let timeout = |reporter: &Reporter| reporter.health(now).command_timeout;
        assert_eq!(timeout(&reporter), Latency::default().command_timeout, "nothing is heard");
        let latency = Latency {
            command_age_max: Duration::from_millis(100),
            command_timeout: Duration::from_millis(120),
            ..Latency::default()
        };
        let config = Config { latency, ..Config::car() };
        let mut guard = Guard::new(config, Tick::new(70).unwrap());
        let frame = StatusFrame::of(&guard.step(&Input::default(), now).status);
        let mut follow: Follow = Box::new(|_| Vec::new());
        reporter.guard_client.hear(frame, &mut follow, now);
        assert_eq!(timeout(&reporter), Duration::from_millis(120));
    }

    #[test]
    fn a_waiting_operator_gets_the_reason() {
        let reporter = reporter();
        let now = Instant::from_millis(5);
        let telemetry = reporter.telemetry_waiting(&Recent::default(), now);
        let reason = telemetry.mode_reason.as_deref();
        assert_eq!(reason, Some("the vehicle drives under another operator"));
        assert!(comes_back(&telemetry), "{telemetry:?}");
        reporter.guard_client.end();
        let reason = reporter.telemetry(&Recent::default(), now).mode_reason;
        assert_eq!(reason.as_deref(), Some("the vehicle's process was asked to end"));
    }

    #[test]
    fn a_failed_part_is_reported_by_name() {
        let reporter = reporter();
        reporter.parts.video_uplink.store(1, Ordering::Relaxed);
        let values = reporter.values(&Recent::default(), Instant::from_millis(5));
        assert!(values.contains(&Value::total("camera or encoder failures", 1)), "{values:?}");
    }

    #[test]
    fn every_drop_and_value_has_a_line_on_the_metrics_page() {
        let reporter = reporter();
        let now = Instant::from_millis(5);
        reporter.latest.set_process(reporter.process(&Recent::default(), now), now);
        let page = reporter.metrics(now);
        assert!(page.contains("tautline_vehicle_speed_metres_per_second NaN\n"), "{page}");
        let drop = "tautline_vehicle_drops_total{name=\"guard: command stale\"} 0\n";
        assert!(page.contains(drop), "{page}");
        assert!(page.contains("tautline_vehicle_slices_sent_total 0\n"), "{page}");
        assert!(page.contains("tautline_vehicle_video_budget_bits_per_second "), "{page}");
        let waiting = "tautline_vehicle_waiting_for{what=\"switchboard\"} 1.0\n";
        assert!(page.contains(waiting), "{page}");
    }

    #[test]
    fn every_value_has_a_name_of_its_own_and_fits_a_message() {
        let reporter = reporter();
        let now = Instant::from_millis(5);
        let process = Some(reporter.process(&Recent::default(), now));
        let mut told = Snapshot { process, ..Snapshot::empty(End::Vehicle) };
        let read = Snapshot::decode(&told.encode()).unwrap();
        // Counters at zero are not reported.
        told.process.as_mut().unwrap().drops.retain(|(_, count)| *count > 0);
        assert_eq!(read, told);
        let names: std::collections::BTreeSet<_> = read.values().iter().map(|v| &v.name).collect();
        assert_eq!(names.len(), read.values().len());
    }

    #[test]
    fn the_picture_rate_is_of_the_pictures_read() {
        let (reporter, mut recent) = (reporter(), Recent::default());
        reporter.camera.pictures.store(120, Ordering::Relaxed);
        reporter.camera.pictures_skipped.store(15, Ordering::Relaxed);
        reporter.camera.pictures_decimated.store(5, Ordering::Relaxed);
        recent.advance(&reporter, Instant::from_millis(2_000));
        let values = reporter.values(&recent, Instant::from_millis(2_000));
        assert!(values.contains(&Value::of("picture rate", 50.0, "/s")), "{values:?}");
        let left_out = Value::of("overload: pictures left out", 7.5, "/s");
        assert!(values.contains(&left_out) && recent.is_overloaded(), "{values:?}");
        for (pictures, skipped, delayed, is_overloaded) in
            [(220, 3, 0, true), (320, 0, 0, false), (420, 0, 90, true), (520, 0, 0, false)]
        {
            reporter.camera.pictures.store(pictures, Ordering::Relaxed);
            reporter.camera.pictures_skipped.fetch_add(skipped, Ordering::Relaxed);
            reporter.camera.pictures_delayed.fetch_add(delayed, Ordering::Relaxed);
            recent.advance(&reporter, Instant::from_millis(pictures * 1_000));
            assert_eq!(recent.is_overloaded(), is_overloaded);
        }
    }

    #[test]
    fn a_lost_source_is_reported_by_name() {
        let reporter = reporter();
        let now = Instant::from_millis(5);
        reporter.parts.source.handle_lost(&anyhow::anyhow!("unplugged"), now);
        let later = Instant::from_millis(1_505);
        let values = reporter.values(&Recent::default(), later);
        assert!(values.contains(&Value::of("source lost", 1.5, "s")), "{values:?}");
        assert!(values.contains(&Value::total("source losses", 1)), "{values:?}");
        let page = reporter.metrics(later);
        assert!(page.contains("waiting_for{what=\"pictures\"} 1.0\n"), "{page}");
    }
}
