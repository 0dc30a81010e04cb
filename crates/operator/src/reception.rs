//! The operator's end of the session: what arrives goes to the console and the recorder.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_message::snapshot::{End, ProcessStats, Value};
use tautline_message::{
    Budget, ClockOffset, EmulatedLink, Fault, OperatorStatus, ProbeAnswer, SessionState, Snapshot,
    StripReport, Telemetry, VideoFeedback,
};
use tautline_net::Destination;
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::driver::{Drops, Output};
use tautline_net::metrics::{Labels, Page};
use tautline_net::stats::{self, Latest};
use tautline_transport::crypto::PublicKey;
use tautline_transport::relay::Way;
use tautline_transport::{ChannelNumber, Event, Session, link};
use tautline_units::{ByteCount, Instant};
use tautline_video::AccessUnit;
use tokio::sync::Notify;

use crate::canvas::Canvas;
use crate::config::Config;
use crate::console::{Hub, SliceHead};
use crate::downlink::{Downlink, Shown};
use crate::probe::watch::Watch;
use crate::recorder::{self, Entry, Recorder};
use crate::rendezvous::Standing;
use crate::topics::Topics;
use crate::trips::Trips;

/// What the event loop tells goes through here, on the loop's thread.
pub(crate) struct Reception {
    downlink: Downlink,
    /// How old a slice may be when it comes.
    media_deadline: Duration,
    canvas: Canvas,
    topics: Topics,
    recorder: Option<Recorder>,
    trips: Option<Trips>,
    hub: Arc<Hub>,
    shared: Arc<Shared>,
    latest: Latest,
    clock: Clock,
    telemetry_malformed: u64,
    /// Units of other channels that were no messages of theirs.
    others_malformed: u64,
    /// When the console was last told the operator's snapshot.
    snapshot_at: Instant,
    /// Bytes of all units that came.
    units_bytes: u64,
}

/// What other threads put in and take out.
#[derive(Debug)]
pub(crate) struct Shared {
    strips: Mutex<Strips>,
    /// Woken when a strip has lost something: its encoder is to hear of that at once.
    lost: Notify,
    standing: Mutex<Standing>,
    vehicle_key: Mutex<Option<PublicKey>>,
    emulated_links: Mutex<Vec<EmulatedLink>>,
    /// What the vehicle told last of its side.
    vehicle: Mutex<Snapshot>,
    /// What a probe notes, while one runs.
    watch: Mutex<Option<Watch>>,
    /// Bytes of all units that were handed over.
    sent_bytes: AtomicU64,
    /// How old a command may be, as the guard says, ms.
    command_age_max_ms: AtomicU64,
    vehicle_name: String,
}

/// What the vehicle is to know of the strips.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Strips {
    /// Those that need an IDR, as bits.
    pub(crate) keyframes: u8,
    /// What has come of each.
    pub(crate) reports: [Option<StripReport>; VideoFeedback::STRIPS_MAX],
}

impl Shared {
    /// Returns what is known before the session with `vehicle`: nothing.
    pub(crate) fn new(vehicle: &str) -> Self {
        Self {
            strips: Mutex::default(),
            lost: Notify::new(),
            standing: Mutex::new(Standing::new(
                SessionState::Registering,
                "waiting for the switchboard",
            )),
            vehicle_key: Mutex::new(None),
            emulated_links: Mutex::new(Vec::new()),
            vehicle: Mutex::new(Snapshot::empty(End::Vehicle)),
            watch: Mutex::new(None),
            sent_bytes: AtomicU64::new(0),
            command_age_max_ms: AtomicU64::new(COMMAND_AGE_MAX_MS),
            vehicle_name: vehicle.to_owned(),
        }
    }

    /// Takes the guard's latency budget, if it was told.
    fn note_budget(&self, budget: Option<Budget>) {
        if let Some(Budget { command_age_max, .. }) = budget {
            // A deadline of nothing would be refused.
            let millis = (command_age_max.as_millis() as u64).max(1);
            self.command_age_max_ms.store(millis, Ordering::Relaxed);
        }
    }

    /// Returns how old a command may be: as the vehicle's guard says, once it has.
    pub(crate) fn command_age_max(&self) -> Duration {
        Duration::from_millis(self.command_age_max_ms.load(Ordering::Relaxed))
    }

    /// Returns what has come of the strips, and which need an IDR.
    pub(crate) fn strips(&self) -> Strips {
        *lock(&self.strips)
    }

    /// Resolves when a strip has lost something since it last did.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }

    fn set_strips(&self, strips: Strips) {
        let before = std::mem::replace(&mut *lock(&self.strips), strips);
        let lost = |report: &Option<StripReport>| {
            let report = report.filter(StripReport::is_corrupt)?;
            Some(report.newest.wrapping_sub(report.lost_before?.into()))
        };
        let mut both = strips.reports.iter().zip(&before.reports);
        if both.any(|(now, before)| lost(now).is_some() && lost(now) != lost(before)) {
            self.lost.notify_one();
        }
    }

    /// Sets where the session stands.
    pub(crate) fn set_standing(&self, standing: Standing) {
        *lock(&self.standing) = standing;
    }

    /// Sets where the session stands, unless the vehicle is heard: its own traffic is the better
    /// witness.
    pub(crate) fn set_standing_unless_heard(&self, state: SessionState, reason: &str) {
        let mut standing = lock(&self.standing);
        if standing.state != SessionState::Established {
            *standing = Standing::new(state, reason);
        }
    }

    /// Says why a vehicle that was introduced is not heard; false if it has been heard since.
    pub(crate) fn set_unheard(&self, reason: &str) -> bool {
        let mut standing = lock(&self.standing);
        let is_unheard = standing.state == SessionState::Connecting;
        if is_unheard {
            *standing = Standing::new(SessionState::Connecting, reason);
        }
        is_unheard
    }

    /// Returns the key of the vehicle that this process has had a session with.
    pub(crate) fn vehicle_key(&self) -> Option<PublicKey> {
        *lock(&self.vehicle_key)
    }

    /// Returns where the session stands.
    pub(crate) fn standing(&self) -> Standing {
        lock(&self.standing).clone()
    }

    /// Returns what the vehicle told last of its side of the session.
    pub(crate) fn vehicle(&self) -> Snapshot {
        lock(&self.vehicle).clone()
    }

    /// Returns whether a probe notes what comes.
    pub(crate) fn is_watched(&self) -> bool {
        lock(&self.watch).is_some()
    }

    /// Returns what a probe notes, while one runs.
    pub(crate) fn watch(&self) -> &Mutex<Option<Watch>> {
        &self.watch
    }

    /// Notes that a unit of `bytes` is handed over.
    pub(crate) fn note_sent(&self, bytes: ByteCount) {
        self.sent_bytes.fetch_add(bytes.get(), Ordering::Relaxed);
    }

    /// Sets what the emulator says of its links.
    pub(crate) fn set_emulated_links(&self, links: Vec<EmulatedLink>) {
        *lock(&self.emulated_links) = links;
    }
}

impl Reception {
    /// Returns a reception that has seen nothing yet.
    pub(crate) fn new(
        config: &Config,
        (recorder, trips): (Option<Recorder>, Option<Trips>),
        hub: Arc<Hub>,
        shared: Arc<Shared>,
        latest: Latest,
        clock: Clock,
    ) -> Self {
        Self {
            downlink: Downlink::new(Duration::from_millis(config.reorder_ms)),
            media_deadline: config.transport.media_deadline,
            canvas: Canvas::default(),
            topics: Topics::new(&config.deliver),
            recorder,
            trips,
            hub,
            shared,
            latest,
            clock,
            telemetry_malformed: 0,
            others_malformed: 0,
            snapshot_at: Instant::ZERO,
            units_bytes: 0,
        }
    }

    /// Takes what the event loop tells.
    pub(crate) fn handle(&mut self, output: Output<'_>) {
        match output {
            Output::Event(event, session) => self.handle_event(event, session),
            // The next says more.
            Output::Refused(..) => {}
            Output::Tick(session, ways, drops) => {
                self.show_due(session);
                self.judge(session);
                self.record_trips(session);
                self.report(session, ways, drops);
            }
        }
        let now = self.clock.now();
        let (keyframes, reports) = (self.downlink.keyframe_strips(), self.downlink.reports(now));
        self.shared.set_strips(Strips { keyframes, reports });
    }

    fn handle_event(&mut self, event: Event, session: &Session) {
        match event {
            Event::Established => {
                self.downlink.reset();
                self.canvas.handle_new_session();
                self.topics.handle_new_session();
                if let Some(trips) = &mut self.trips {
                    trips.handle_new_session();
                }
                self.shared.set_standing(Standing::new(SessionState::Established, ""));
                *lock(&self.shared.vehicle_key) = Some(*session.peer());
                *lock(&self.shared.vehicle) = Snapshot::empty(End::Vehicle);
                self.watched(Watch::handle_new_session);
            }
            Event::Unit { channel: channels::VIDEO, number, sent_at, bytes, .. } => {
                let now = self.clock.now();
                self.units_bytes += bytes.len() as u64;
                let slice = self.downlink.parse(bytes);
                let captured_at = slice.as_ref().map(|slice| slice.captured_at);
                self.watched(|watch| watch.handle_unit(number, sent_at, captured_at, now));
                let mut due = Vec::new();
                if let Some(slice) = slice {
                    let deadline = self.media_deadline;
                    let favour = session.clock().map(|clock| clock.favour(deadline));
                    let worth = deadline + favour.unwrap_or_default();
                    let worthless_at = sent_at.map_or(now, |at| at.min(now) + worth);
                    self.downlink.handle_slice(slice, worthless_at, now, |shown| due.push(shown));
                }
                for shown in due {
                    self.show(shown, session, now);
                }
                self.show_due(session);
            }
            Event::Unit { channel, sent_at, bytes, .. } => {
                self.units_bytes += bytes.len() as u64;
                self.handle_unit(channel, &bytes);
                self.keep(channel, sent_at, bytes);
            }
            Event::UnitLost { channel: channels::VIDEO, number, .. } => {
                self.watched(|watch| watch.handle_lost(number));
            }
            Event::Link { link, state } => tracing::info!(?link, ?state, "link"),
            Event::Refused { mismatch } => {
                let why = mismatch.told("the vehicle");
                tracing::warn!("no session: {why}");
                // A session that stands goes on.
                self.shared.set_standing_unless_heard(SessionState::Connecting, &why);
            }
            Event::Announced { channel, descriptor } => {
                tracing::info!(?channel, topic = descriptor.topic, "announced");
                self.topics.handle_described(channel, descriptor);
            }
            // What was lost is followed by the next; an operator sends no media.
            Event::UnitLost { .. } | Event::Budget { .. } => {}
        }
    }

    /// Says whether the vehicle is still heard.
    fn judge(&self, session: &Session) {
        let Some(heard_at) = session.heard_at() else { return };
        let is_silent = self.clock.now().since(heard_at) >= HEARD_AGE_MAX;
        let mut standing = lock(&self.shared.standing);
        if is_silent && standing.state == SessionState::Established {
            tracing::warn!("nothing comes from the vehicle");
            *standing = Standing::new(SessionState::Lost, "nothing comes from the vehicle");
        } else if !is_silent && standing.state != SessionState::Established {
            tracing::info!("the vehicle is heard again");
            *standing = Standing::new(SessionState::Established, "");
        }
    }

    /// Passes on what was verified here: a browser has no verifier.
    fn handle_unit(&mut self, channel: ChannelNumber, bytes: &[u8]) {
        match channel {
            channels::TELEMETRY => match Telemetry::decode(bytes) {
                Ok(telemetry) => {
                    let stands_still = stands_still(&telemetry);
                    let guard = telemetry.guard.as_ref();
                    self.shared.note_budget(guard.and_then(|guard| guard.budget));
                    let holder = guard.map_or(0, |guard| guard.holder);
                    self.hub.show_telemetry(bytes, stands_still, holder);
                }
                Err(_) => self.telemetry_malformed += 1,
            },
            channels::SNAPSHOT => match Snapshot::decode(bytes) {
                Ok(snapshot) if snapshot.end == End::Vehicle => {
                    let mut vehicle = lock(&self.shared.vehicle);
                    vehicle.update(snapshot);
                    self.hub.show_snapshot(&vehicle.encode());
                }
                Ok(_) | Err(_) => self.others_malformed += 1,
            },
            channels::PROBE_ANSWER => match ProbeAnswer::decode(bytes) {
                Ok(answer) => self.watched(|watch| watch.handle_answer(answer)),
                Err(_) => self.others_malformed += 1,
            },
            // A vehicle sends nothing else of ours.
            _ => {}
        }
    }

    /// Keeps what came of any channel, by what the vehicle says that it carries.
    fn keep(&mut self, channel: ChannelNumber, sent_at: Option<Instant>, bytes: Vec<u8>) {
        let now = self.clock.now();
        let Some(descriptor) = self.topics.handle_unit(channel, &bytes, now) else { return };
        if let Some(recorder) = &mut self.recorder {
            let sent_at = self.clock.unix_nanos(sent_at.map_or(now, |at| at.min(now)));
            let came_at = self.clock.unix_nanos(now);
            recorder.record_unit(recorder::Unit { descriptor, sent_at, came_at, bytes });
        }
    }

    /// Lets a probe note something, if one runs.
    fn watched(&self, note: impl FnOnce(&mut Watch)) {
        if let Some(watch) = lock(&self.shared.watch).as_mut() {
            note(watch);
        }
    }

    fn show_due(&mut self, session: &Session) {
        let now = self.clock.now();
        let mut due = Vec::new();
        self.downlink.handle_timeout(now, |shown| due.push(shown));
        for shown in due {
            self.show(shown, session, now);
        }
    }

    fn show(&mut self, Shown { slice, is_clean }: Shown, session: &Session, now: Instant) {
        let local = |at| session.clock().map_or(now, |clock| clock.to_local(at));
        let captured_at = local(slice.captured_at);
        let head = SliceHead {
            strip: slice.strip,
            kind: slice.kind,
            picture: slice.picture,
            history: slice.history,
            is_corrupt: !is_clean,
            captured_unix_micros: self.clock.unix_nanos(captured_at) / 1_000,
            encoded_after: slice.encoded_at.since(slice.captured_at),
            handed_on_after: now.since(captured_at),
            tick: slice.tick,
        };
        let message = head.message(slice.bytes);
        self.canvas.show(head, message.clone(), &self.downlink, &self.hub);
        if let Some(recorder) = &mut self.recorder {
            recorder.record(Entry {
                picture: slice.picture,
                strip: slice.strip,
                kind: slice.kind,
                captured_at,
                encoded_at: local(slice.encoded_at),
                shown_at: now,
                is_clean,
                bytes: message.slice(AccessUnit::ROOM..),
            });
        }
    }

    fn record_trips(&mut self, session: &Session) {
        let Some(mut trips) = self.trips.take() else { return };
        let name = |view: link::View| (view.number, self.link_name(&view).into());
        let links: Vec<_> = session.links().map(name).collect();
        trips.record(session.round_trips(), &links);
        self.trips = Some(trips);
    }

    fn report(&mut self, session: &Session, ways: &[Way], loop_drops: &Drops) {
        let now = self.clock.now();
        let status = self.status(session);
        self.latest.take(session, ways, loop_drops, |view| self.link_name(view), now);
        self.latest.set_process(self.process(), now);
        let snapshot = self.latest.snapshot();
        self.hub.set_metrics(metrics(&status, &snapshot, &self.shared.vehicle()));
        self.hub.show_status(&status.encode());
        if now.since(self.snapshot_at) >= SNAPSHOT_INTERVAL {
            self.snapshot_at = now;
            self.hub.show_snapshot(&snapshot.encode());
            if let Some(topics) = self.topics.told(now) {
                self.hub.show_topics(topics.as_bytes());
            }
        }
        let sent = self.shared.sent_bytes.load(Ordering::Relaxed);
        let payload = ByteCount::new(self.units_bytes + sent);
        self.watched(|watch| watch.handle_tick(session, payload, now));
    }

    fn status(&self, session: &Session) -> OperatorStatus {
        let standing = self.shared.standing();
        let emulated_links = lock(&self.shared.emulated_links).clone();
        OperatorStatus {
            unix_ns: self.clock.unix_nanos(self.clock.now()),
            vehicle_name: self.shared.vehicle_name.clone(),
            session_state: standing.state,
            session_reason: standing.reason,
            clock: session.clock().map(|clock| ClockOffset {
                offset_ns: clock.offset_nanos(),
                error_ns: u64::try_from(clock.error().as_nanos()).unwrap_or(u64::MAX),
            }),
            emulated_links,
        }
    }

    /// Returns the emulator's name of a link, or where it leads.
    fn link_name(&self, view: &link::View) -> String {
        let emulated = lock(&self.shared.emulated_links);
        let name = emulated.get(usize::from(view.number.get())).map(|link| link.name.clone());
        name.unwrap_or_else(|| Destination::of(view.route).to_string())
    }

    /// Returns what the operator observes of itself.
    fn process(&self) -> ProcessStats {
        let shown = self.downlink.counters();
        let values = vec![
            Value::total("slices shown", shown.shown),
            Value::total("slices skipped", shown.skipped),
        ];
        ProcessStats { values, drops: self.drops() }
    }

    /// Returns every drop of the operator's own that has a name; the session's stand in its stats.
    fn drops(&self) -> Vec<(String, u64)> {
        let shown = self.downlink.counters();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let drops = [
            ("downlink: slice overtaken", shown.overtaken),
            ("downlink: slice unusable", shown.unusable),
            ("downlink: slice malformed", shown.malformed),
            ("downlink: telemetry malformed", self.telemetry_malformed),
            ("downlink: message malformed", self.others_malformed),
            ("console: slice dropped, browser too slow", count(&self.hub.slices_dropped)),
            ("console: slice dropped, size of the picture not known", self.canvas.dropped()),
            ("console: message malformed", count(&self.hub.messages_malformed)),
            ("console: message dropped", count(&self.hub.requests_dropped)),
            ("console: message of one that does not drive", count(&self.hub.requests_refused)),
            ("console: command stale", count(&self.hub.commands_stale)),
            (
                "recorder: slice dropped, disk too slow",
                self.recorder.as_ref().map_or(0, Recorder::dropped),
            ),
            (
                "recorder: unit dropped, disk too slow",
                self.recorder.as_ref().map_or(0, Recorder::units_dropped),
            ),
            (
                "recorder: round trip dropped, disk too slow",
                self.trips.as_ref().map_or(0, Trips::dropped),
            ),
        ];
        let drops = drops.into_iter().chain(self.topics.drops());
        drops.map(|(name, count)| (name.to_owned(), count)).collect()
    }
}

/// Returns whether the machine stands, by what it said itself a moment ago.
fn stands_still(telemetry: &Telemetry) -> bool {
    let age = telemetry.guard.as_ref().and_then(|guard| guard.machine_age);
    let unknown = [Fault::Speed, Fault::Unreachable];
    let is_known = age.is_some_and(|age| age < MACHINE_AGE_MAX)
        && !telemetry.faults.iter().any(|fault| unknown.contains(fault));
    is_known && telemetry.speed.abs() < STANDSTILL_SPEED_MAX
}

fn metrics(status: &OperatorStatus, own: &Snapshot, vehicle: &Snapshot) -> String {
    let mut page = Page::new("tautline_operator");
    let established = f64::from(status.session_state == SessionState::Established);
    page.gauge("established", None, "1 while the session stands", established);
    stats::add_to(&mut page, own);
    let drops = vehicle.drops().map(|(name, count)| (Labels::of("name", name), count));
    page.counters("vehicle_drops", None, "Drops by name, as the vehicle last told", drops);
    page.finish()
}

/// Metres per second: what a standing machine's sensor says all the same.
const STANDSTILL_SPEED_MAX: f32 = 0.05;
/// A machine says every 10 ms how fast it is.
const MACHINE_AGE_MAX: Duration = Duration::from_millis(300);
/// An outage of all links is often shorter; after it the session goes on as if nothing was.
const HEARD_AGE_MAX: Duration = Duration::from_secs(1);
/// Until the guard has told its own: its default.
const COMMAND_AGE_MAX_MS: u64 = 250;
/// Counters are read by eye.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(500);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tautline_message::GuardState;

    use super::*;

    #[test]
    fn a_machine_whose_speed_is_not_known_does_not_stand() {
        let guard = |age_ms: Option<u64>| GuardState {
            machine_age: age_ms.map(Duration::from_millis),
            ..GuardState::default()
        };
        let telemetry = |guard, faults: &[Fault]| Telemetry {
            guard,
            faults: faults.to_vec(),
            ..Telemetry::default()
        };
        assert!(stands_still(&telemetry(Some(guard(Some(10))), &[])));
        assert!(stands_still(&telemetry(Some(guard(Some(10))), &[Fault::Drive])));
        assert!(!stands_still(&telemetry(Some(guard(Some(300))), &[])), "frozen");
        assert!(!stands_still(&telemetry(Some(guard(None)), &[])));
        assert!(!stands_still(&telemetry(None, &[])), "the guard says nothing");
        assert!(!stands_still(&telemetry(Some(guard(Some(10))), &[Fault::Speed])));
        let moving = Telemetry { speed: -0.1, ..telemetry(Some(guard(Some(10))), &[]) };
        assert!(!stands_still(&moving));
    }
}
