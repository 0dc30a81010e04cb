//! The operator's end of the session: received units go to the console and the recorder.

mod described;
mod shared;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tautline_guard::frame::Status;
use tautline_guard::identity::Console;
use tautline_guard::{Fault, Mode};
use tautline_message::snapshot::{End, ProcessStats, Value};
use tautline_message::{
    ClockOffset, Description, OperatorStatus, ProbeAnswer, SessionState, Snapshot, Telemetry,
    Values,
};
use tautline_net::Destination;
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::driver::{Drops, Output};
use tautline_net::metrics::{Labels, Page};
use tautline_net::stats::{self, Latest};
use tautline_net::topics;
use tautline_transport::channel::Descriptor;
use tautline_transport::relay::LegView;
use tautline_transport::{ChannelNumber, Event, Session, link};
use tautline_units::{ByteCount, Instant};

use crate::canvas::Canvas;
use crate::config::Config;
use crate::console::{Decoder, Hub, SliceHead};
use crate::downlink::{Downlink, Shown};
use crate::recorder::{self, Entry, Recorder, Trouble};
use crate::round_trip_log::RoundTripLog;
use crate::standing::Standing;
use crate::topics::Topics;
use crate::watch::Watch;

pub(crate) use described::DescribedMachine;
use shared::lock;
pub(crate) use shared::{PICK, Shared, Strips};

/// Dispatcher of the event loop's output, on the loop's thread.
pub(crate) struct Reception {
    downlink: Downlink,
    /// Age from which a slice is too old to be shown.
    media_deadline: Duration,
    canvas: Canvas,
    topics: Topics,
    /// Counters of the topics of this machine's programs.
    sent: Arc<topics::Counters>,
    recorder: Option<Recorder>,
    trips: Option<RoundTripLog>,
    hub: Arc<Hub>,
    shared: Arc<Shared>,
    latest: Latest,
    clock: Clock,
    telemetry_malformed: u64,
    /// Slices shown whose age is unknown: captured in the future, or received before the clocks
    /// were compared.
    slices_undated: u64,
    /// Malformed units of channels other than video and telemetry.
    others_malformed: u64,
    /// Time at which this end's latest snapshot was sent to the consoles; zero before the first.
    snapshot_at: Instant,
    /// Total bytes of all units received from the vehicle.
    units_bytes: u64,
}

impl Reception {
    /// Creates a reception that has received nothing; without a recorder or log, it records
    /// nothing.
    pub(crate) fn new(
        config: &Config,
        (recorder, trips): (Option<Recorder>, Option<RoundTripLog>),
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
            sent: Arc::default(),
            recorder,
            trips,
            hub,
            shared,
            latest,
            clock,
            telemetry_malformed: 0,
            slices_undated: 0,
            others_malformed: 0,
            snapshot_at: Instant::ZERO,
            units_bytes: 0,
        }
    }

    /// Returns the counters of the topics of this machine's programs.
    pub(crate) fn sent(&self) -> Arc<topics::Counters> {
        self.sent.clone()
    }

    /// Handles one output of the event loop, and then publishes the strips' reports and keyframe
    /// requests. Ignores output of a session whose lease is not the expected one.
    pub(crate) fn handle(&mut self, output: Output<'_>) {
        let shared = self.shared.clone();
        let mut expected = lock(&shared.expected);
        let lease = match &output {
            Output::Event(_, session) | Output::Tick(session, ..) => Some(session.lease()),
            Output::Refused(..) => None,
        };
        if lease.is_some_and(|lease| !expected.admits(lease)) {
            return;
        }
        match output {
            Output::Event(event, session) => self.handle_event(event, session),
            // The next unit of a built-in channel supersedes it.
            Output::Refused(channel, unit, why) => {
                self.sent.handle_refused(channel, ByteCount::of(unit), why, self.clock.now());
            }
            Output::Tick(session, legs, drops) => {
                self.show_due(session);
                self.judge(session);
                self.record_trips(session);
                self.report(session, legs, drops);
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
                match self.shared.vehicle_key() {
                    Some(_) => self.canvas.handle_new_session(),
                    None => self.canvas.handle_new_vehicle(),
                }
                self.topics.handle_new_session();
                if let Some(trips) = &mut self.trips {
                    trips.handle_new_session(&self.shared.vehicle_name());
                }
                self.shared.set_standing(Standing::new(SessionState::Established, ""));
                *lock(&self.shared.vehicle_key) = Some(*session.peer());
                *lock(&self.shared.vehicle) = Snapshot::empty(End::Vehicle);
                *lock(&self.shared.machine) = DescribedMachine::default();
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
                self.handle_unit(channel, sent_at, &bytes);
                self.keep(channel, sent_at, bytes);
            }
            Event::UnitLost { channel: channels::VIDEO, number, .. } => {
                self.watched(|watch| watch.handle_lost(number));
            }
            Event::Link { link, state } => tracing::info!(?link, ?state, "link"),
            Event::Refused { mismatch } => {
                let why = mismatch.told("the vehicle");
                tracing::warn!("no session: {why}");
                // An established session continues.
                self.shared.set_standing_unless_heard(SessionState::Connecting, &why);
            }
            Event::Announced { channel, descriptor } => {
                tracing::info!(?channel, topic = descriptor.topic, "announced");
                self.topics.handle_described(channel, descriptor);
            }
            // The next unit supersedes a lost one; an operator sends no media.
            Event::UnitLost { .. } | Event::Budget { .. } => {}
        }
    }

    /// Sets the session's state by whether packets of the vehicle still arrive: an established one
    /// becomes lost after 1 s without any, and any other established otherwise. Does nothing before
    /// the first packet.
    fn judge(&self, session: &Session) {
        let Some(heard_at) = session.heard_at() else { return };
        let is_silent = self.clock.now().since(heard_at) >= HEARD_AGE_MAX;
        let mut standing = lock(&self.shared.standing);
        if is_silent && standing.state == SessionState::Established {
            tracing::warn!("no data arrives from the vehicle");
            *standing = Standing::new(SessionState::Lost, "no data arrives from the vehicle");
        } else if !is_silent && standing.state != SessionState::Established {
            tracing::info!("data arrives from the vehicle again");
            *standing = Standing::new(SessionState::Established, "");
        }
    }

    /// Decodes a telemetry, snapshot, description, values or probe answer, and passes it to the
    /// consoles or to the running probe; a malformed one is counted and dropped, because a browser
    /// has no verifier. Telemetry also sets the maximum age of commands and whether the vehicle may
    /// be released; the guard's status in it is recorded.
    fn handle_unit(&mut self, channel: ChannelNumber, sent_at: Option<Instant>, bytes: &[u8]) {
        match channel {
            channels::TELEMETRY => match Telemetry::decode(bytes) {
                Ok(telemetry) => {
                    let status = telemetry.status();
                    let stands_still = status.is_some_and(stands_still);
                    self.shared.note_budget(status.map(|status| status.budget));
                    // While the guard is silent, nothing can move the machine.
                    let rests =
                        status.is_none_or(|status| stands_still && status.mode == Mode::Held);
                    *lock(&self.shared.rests_at) = rests.then(|| self.clock.now());
                    let holder = Console::to_wire(status.and_then(|status| status.holder));
                    self.hub.show_telemetry(bytes, stands_still, holder);
                    if self.recorder.is_some()
                        && let Some(message) = recorder::status::message(&telemetry)
                    {
                        self.record_unit(recorder::status::DESCRIPTOR.clone(), sent_at, message);
                    }
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
            channels::DESCRIPTION => match Description::decode(bytes) {
                Ok(description) => {
                    self.hub.show_description(bytes);
                    lock(&self.shared.machine).handle_description(description);
                }
                Err(_) => self.others_malformed += 1,
            },
            channels::VALUES => match Values::decode(bytes) {
                Ok(values) => {
                    self.hub.show_values(bytes);
                    lock(&self.shared.machine).handle_values(values);
                }
                Err(_) => self.others_malformed += 1,
            },
            // A vehicle sends on no other built-in channel.
            _ => {}
        }
    }

    /// Passes a unit of another program's channel to the program configured for its topic. Records
    /// a unit of any channel but video, unless that is one that the vehicle has not announced.
    fn keep(&mut self, channel: ChannelNumber, sent_at: Option<Instant>, bytes: Vec<u8>) {
        let descriptor = self.topics.handle_unit(channel, &bytes, self.clock.now());
        if let Some(descriptor) = descriptor {
            self.record_unit(descriptor, sent_at, bytes);
        }
    }

    fn record_unit(
        &mut self,
        descriptor: Arc<Descriptor>,
        sent_at: Option<Instant>,
        bytes: Vec<u8>,
    ) {
        let Some(recorder) = &mut self.recorder else { return };
        let now = self.clock.now();
        let sent_at = self.clock.unix_nanos(sent_at.map_or(now, |at| at.min(now)));
        let came_at = self.clock.unix_nanos(now);
        recorder.record_unit(recorder::Unit { descriptor, sent_at, came_at, bytes });
    }

    /// Passes an observation to the running probe; does nothing without one.
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
        // Before the clocks are compared, or if the vehicle dates its pictures ahead, the age is
        // unknown; the slice then does not count as fresh.
        let dated = session.clock().and_then(|clock| now.age(captured_at, clock.error()));
        self.slices_undated += u64::from(dated.is_none());
        let handed_on_after = dated.unwrap_or_default();
        let head = SliceHead {
            strip: slice.strip,
            kind: slice.kind,
            picture: slice.picture,
            history: slice.history,
            is_corrupt: !is_clean,
            captured_unix_micros: dated.map_or(0, |age| self.clock.unix_nanos(now - age) / 1_000),
            encoded_after: slice.encoded_at.since(slice.captured_at),
            handed_on_after,
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
                bytes: message.slice(SliceHead::BYTES..),
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

    fn report(&mut self, session: &Session, legs: &[LegView], loop_drops: &Drops) {
        let now = self.clock.now();
        *lock(&self.shared.told_at) = Some(now);
        let clock = session.clock().map(|clock| ClockOffset {
            offset_ns: clock.offset_nanos(),
            error_ns: u64::try_from(clock.error().as_nanos()).unwrap_or(u64::MAX),
        });
        let status = self.shared.status(self.clock.unix_nanos(now), clock);
        self.latest.take(session, legs, loop_drops, |view| self.link_name(view), now);
        self.latest.set_process(self.process(), now);
        let snapshot = self.latest.snapshot();
        let decoder = self.hub.decoder();
        let machine = self.shared.machine();
        let page = metrics(&status, decoder, &snapshot, &self.shared.vehicle(), &machine);
        self.hub.set_metrics(page);
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

    /// Returns the emulator's name of a link or, without one, the link's destination.
    fn link_name(&self, view: &link::View) -> String {
        let emulated = lock(&self.shared.emulated_links);
        let name = emulated.get(usize::from(view.number.get())).map(|link| link.name.clone());
        name.unwrap_or_else(|| Destination::of(view.route).to_string())
    }

    /// Returns the values and drop counters of the operator's process, for the snapshot.
    fn process(&self) -> ProcessStats {
        let shown = self.downlink.counters();
        let mut values = vec![
            Value::total("slices shown", shown.shown),
            Value::total("slices skipped", shown.skipped),
        ];
        // The page shows this value to the person; consoles know the names.
        let trouble = self.recorder.as_ref().and_then(Recorder::trouble);
        values.extend(trouble.map(|trouble| {
            Value::of(&format!("recording stands still: {}", trouble.words()), 1.0, "")
        }));
        ProcessStats { values, drops: self.drops() }
    }

    /// Returns all drop counters of the operator; those of the session are in its stats.
    fn drops(&self) -> Vec<(String, u64)> {
        let shown = self.downlink.counters();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let recorded = self.recorder.as_ref().map(Recorder::dropped).unwrap_or_default();
        let recorder::Dropped { slices, units } = recorded;
        let drops = [
            ("downlink: slice overtaken", shown.overtaken),
            ("downlink: slice unusable", shown.unusable),
            ("downlink: slice malformed", shown.malformed),
            ("downlink: age of a slice not known", self.slices_undated),
            ("downlink: telemetry malformed", self.telemetry_malformed),
            ("downlink: message malformed", self.others_malformed),
            ("console: slice dropped, browser too slow", count(&self.hub.slices_dropped)),
            ("console: slice dropped, size of the picture not known", self.canvas.dropped()),
            ("console: message malformed", count(&self.hub.messages_malformed)),
            ("console: message dropped", count(&self.hub.requests_dropped)),
            ("console: message of one that does not drive", count(&self.hub.requests_refused)),
            ("console: command of a flood", count(&self.hub.commands_flooded)),
            ("console: command dated ahead", count(&self.hub.commands_ahead)),
            ("console: command stale", count(&self.hub.commands_stale)),
            ("recorder: slice dropped, disk too slow", slices[Trouble::Slow as usize]),
            ("recorder: slice dropped, disk full", slices[Trouble::Full as usize]),
            ("recorder: slice dropped, disk refuses", slices[Trouble::Refuses as usize]),
            ("recorder: unit dropped, disk too slow", units[Trouble::Slow as usize]),
            ("recorder: unit dropped, disk full", units[Trouble::Full as usize]),
            ("recorder: unit dropped, disk refuses", units[Trouble::Refuses as usize]),
            (
                "recorder: round trip dropped, disk too slow",
                self.trips.as_ref().map_or(0, RoundTripLog::dropped),
            ),
        ];
        let drops = drops.into_iter().chain(self.topics.drops()).chain(self.sent.iter());
        drops.map(|(name, count)| (name.to_owned(), count)).collect()
    }
}

/// Returns whether the machine's own recent report has a speed below 0.05 m/s; false if the speed
/// is unknown.
fn stands_still(status: &Status) -> bool {
    // A speed that is not known is no number, which is below nothing.
    status.fresh_machine().is_some_and(|machine| {
        let is_known = ![Fault::Speed, Fault::Unreachable]
            .into_iter()
            .any(|fault| machine.faults.contains(fault));
        is_known && machine.fastest() < STANDSTILL_SPEED_MAX
    })
}

/// Returns the metrics page: the state of the session, the missing prerequisite of a drive, the
/// page's decoder, this end's latest values, the vehicle's drop counts, and the machine's values.
pub(crate) fn metrics(
    status: &OperatorStatus,
    decoder: Option<Decoder>,
    own: &Snapshot,
    vehicle: &Snapshot,
    machine: &DescribedMachine,
) -> String {
    let mut page = Page::new("tautline_operator");
    let established = f64::from(status.session_state == SessionState::Established);
    page.gauge("established", None, "1 while the session is established", established);
    let awaited = awaited(status);
    let waiting = ["switchboard", "choice", "vehicle", "session"]
        .map(|what| (Labels::of("what", what), f64::from(awaited == Some(what))));
    page.gauges("waiting_for", None, "1 while this is missing and nobody can drive", waiting);
    let told = decoder
        .map(|told| Decoder::ALL.map(|by| (Labels::of("by", by.name()), f64::from(by == told))));
    let help = "1 for the decoder that the last page reports";
    page.gauges("page_decoder", None, help, told.into_iter().flatten());
    stats::add_to(&mut page, own);
    let drops = vehicle.drops().map(|(name, count)| (Labels::of("name", name), count));
    page.counters("vehicle_drops", None, "Drops by name, as last reported by the vehicle", drops);
    machine.add_to(&mut page);
    page.finish()
}

/// Returns the prerequisite of a drive that an operator waits for, by its name in metrics; `None`
/// while a session is established.
fn awaited(status: &OperatorStatus) -> Option<&'static str> {
    match status.session_state {
        SessionState::Registering => Some("switchboard"),
        SessionState::Waiting if status.vehicle_name.is_empty() => Some("choice"),
        SessionState::Waiting => Some("vehicle"),
        SessionState::Connecting | SessionState::Lost => Some("session"),
        SessionState::Established => None,
    }
}

/// Speed in m/s below which a machine counts as standing, because the sensor of a standing machine
/// may report that much.
const STANDSTILL_SPEED_MAX: f32 = 0.05;
/// Silence after which the vehicle counts as lost. An outage of all links is often shorter; the
/// session continues after it.
const HEARD_AGE_MAX: Duration = Duration::from_secs(1);
/// Interval of snapshots to the consoles: people read the counters, so twice per second suffices.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use tautline_guard::identity::Tick;
    use tautline_guard::{Config, Guard, Input, MachineState};

    use super::*;

    #[test]
    fn idle_metrics_report_waiting_reason_and_decoder() {
        let shared = Shared::new("");
        let empty = Snapshot::empty(End::Operator);
        let page = |shared: &Shared, decoder| {
            let status = shared.idle_status(1, Instant::from_millis(1)).expect("no session tells");
            metrics(&status, decoder, &empty, &empty, &DescribedMachine::default())
        };
        let waits = |page: &str, what: &str| {
            page.contains(&format!("tautline_operator_waiting_for{{what=\"{what}\"}} 1.0\n"))
        };
        let first = page(&shared, None);
        assert!(waits(&first, "switchboard") && !first.contains("page_decoder"), "{first}");
        shared.set_waiting(SessionState::Waiting, PICK);
        assert!(waits(&page(&shared, None), "choice"));
        shared.set_vehicle("car-1");
        let last = page(&shared, Some(Decoder::Processor));
        assert!(waits(&last, "vehicle"), "{last}");
        assert!(last.contains("tautline_operator_page_decoder{by=\"processor\"} 1.0\n"), "{last}");
        assert!(last.contains("tautline_operator_page_decoder{by=\"hardware\"} 0.0\n"), "{last}");
    }

    #[test]
    fn a_machine_whose_speed_is_not_known_does_not_stand() {
        let mut guard = Guard::new(Config::car(), Tick::new(70).unwrap());
        let silent = guard.step(&Input::default(), Instant::ZERO).status;
        let with = |speed: f32, faults: &[Fault], age_ms| {
            let faults = faults.iter().copied().collect();
            let machine = MachineState { speed, faults, ..MachineState::default() };
            Status { machine: Some((machine, Duration::from_millis(age_ms))), ..silent }
        };
        assert!(stands_still(&with(0.0, &[], 10)));
        assert!(stands_still(&with(0.0, &[Fault::Drive], 10)));
        assert!(!stands_still(&with(0.0, &[], 300)), "frozen");
        assert!(!stands_still(&silent), "the machine says nothing");
        assert!(!stands_still(&with(0.0, &[Fault::Unreachable], 10)));
        assert!(!stands_still(&with(0.0, &[Fault::Speed], 10)));
        assert!(!stands_still(&with(f32::NAN, &[], 10)));
        assert!(!stands_still(&with(-0.1, &[], 10)));
    }
}
