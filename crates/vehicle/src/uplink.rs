//! The vehicle's end of the session: slices and telemetry go up, commands and feedback come down.

use std::sync::{Arc, Mutex, PoisonError};

use tautline_message::{Command, LinkStatus, ProbeQuestion, VideoFeedback};
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::driver::Output;
use tautline_net::stats::{self, Latest, Way};
use tautline_transport::{ChannelNumber, Event, Session};

use crate::actuators::Actuators;
use crate::convert;
use crate::encode::Wishes;
use crate::probe::Probe;
use crate::telemetry::Reporter;

/// What the event loop tells goes through here to the failsafe and the encoders.
pub struct Uplink {
    actuators: Arc<Actuators>,
    wishes: Arc<Wishes>,
    probe: Arc<Probe>,
    clock: Clock,
    shared: Arc<Mutex<Seen>>,
    latest: Latest,
}

/// What was last seen of the session.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Every link, from the sending side.
    pub links: Vec<LinkStatus>,
    /// Every drop that has a name, the transport's and the event loop's.
    pub drops: Vec<(&'static str, u64)>,
    /// Units of all channels but video's that the transport has refused.
    pub control_refused: u64,
    /// Commands that were no commands.
    pub commands_malformed: u64,
    /// Units of other channels that were no messages of theirs.
    pub others_malformed: u64,
}

impl Uplink {
    /// An uplink to the reporter's actuators and encoders; what it sees stands in the reporter.
    pub fn new(reporter: &Reporter, clock: Clock) -> Self {
        Self {
            actuators: reporter.actuators.clone(),
            wishes: reporter.wishes.clone(),
            probe: reporter.probe.clone(),
            clock,
            shared: reporter.seen.clone(),
            latest: reporter.latest.clone(),
        }
    }

    /// Takes what the event loop tells.
    pub fn handle(&self, output: Output<'_>) {
        match output {
            Output::Event(event, session) => self.handle_event(event, session),
            Output::Tick(session, drops) => {
                let name = |view: &tautline_transport::link::View| view.route.remote.to_string();
                self.latest.take(session, drops, name, self.clock.now());
                let mut seen = lock(&self.shared);
                let links = session.links();
                seen.links =
                    links.map(|view| stats::status(&view, name(&view), Way::Out)).collect();
                let others = session.channels().filter(|channel| *channel != channels::VIDEO);
                seen.control_refused = others.map(|channel| session.units(channel).refused()).sum();
                seen.drops = session.counters().drops().chain(drops.iter()).collect();
            }
        }
    }

    fn handle_event(&self, event: Event, session: &Session) {
        match event {
            Event::Established => {
                self.actuators.failsafe().handle_new_session();
                self.probe.handle_new_session();
                self.wishes.handle_new_session();
            }
            Event::Unit { channel, bytes, .. } => self.handle_unit(channel, &bytes, session),
            Event::Budget { media } => self.wishes.set_budget(media, self.clock.now()),
            // What was lost is followed by the next.
            Event::UnitLost { .. } => {}
            Event::Link { link, state } => tracing::debug!(?link, ?state, "link"),
            Event::Refused { mismatch } => {
                tracing::warn!("no session: {}", mismatch.told("the operator"));
            }
            Event::Announced { channel, descriptor } => {
                tracing::info!(?channel, topic = descriptor.topic, "announced");
            }
        }
    }

    fn handle_unit(&self, channel: ChannelNumber, bytes: &[u8], session: &Session) {
        let malformed = match channel {
            channels::COMMAND => return self.handle_command(bytes, session),
            channels::VIDEO_FEEDBACK => VideoFeedback::decode(bytes)
                .map(|feedback| self.wishes.handle_feedback(&feedback))
                .err(),
            channels::PROBE_QUESTION => ProbeQuestion::decode(bytes)
                .map(|question| self.probe.handle_question(&question, self.clock.now()))
                .err(),
            // An operator sends nothing else of ours.
            _ => return,
        };
        if let Some(error) = malformed {
            tracing::debug!(%error, ?channel, "a malformed unit");
            lock(&self.shared).others_malformed += 1;
        }
    }

    fn handle_command(&self, bytes: &[u8], session: &Session) {
        match Command::decode(bytes) {
            Ok(command) => {
                // The command's own date counts from the operator's hand, not from the transport.
                let sent_at = session.clock().map(|clock| clock.to_local(command.sent_at));
                self.actuators.handle_command(convert::demand(&command), sent_at, self.clock.now());
            }
            Err(error) => {
                tracing::debug!(%error, "a malformed command");
                lock(&self.shared).commands_malformed += 1;
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
