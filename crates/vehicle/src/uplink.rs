//! The vehicle's end of the session: sends slices and telemetry, receives commands and feedback.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tautline_message::{ProbeQuestion, VideoFeedback};
use tautline_net::Destination;
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::driver::Output;
use tautline_net::stats::Latest;
use tautline_net::topics;
use tautline_transport::{ChannelNumber, Event, Session};
use tautline_units::ByteCount;
use tautline_video::Slice;

use crate::delivery::Delivery;
use crate::encode::EncoderControl;
use crate::guard_client::GuardClient;
use crate::probe::Probe;
use crate::readiness::Met;

/// Dispatcher of the event loop's output to the guard and the encoders.
pub struct Uplink {
    pub(crate) guard_client: Arc<GuardClient>,
    pub(crate) control: Arc<EncoderControl>,
    pub(crate) probe: Arc<Probe>,
    pub(crate) clock: Clock,
    pub(crate) counters: Arc<Counters>,
    pub(crate) latest: Latest,
    pub(crate) met: Arc<Met>,
    pub(crate) topics: Arc<topics::Counters>,
    pub(crate) delivery: Arc<Delivery>,
}

/// Counters of malformed units.
#[derive(Debug, Default)]
pub struct Counters {
    /// Malformed units of the command channel.
    pub commands_malformed: AtomicU64,
    /// Malformed units of other channels.
    pub others_malformed: AtomicU64,
}

impl Uplink {
    /// Handles one output of the event loop: passes commands to the guard, feedback and the link
    /// budget to the encoders, a probe's questions to the probe, refused units to encoders or
    /// counters, and the session's state to the snapshot.
    pub fn handle(&self, output: Output<'_>) {
        match output {
            Output::Event(event, session) => self.handle_event(event, session),
            Output::Refused(channels::VIDEO, unit, _) => {
                if let Ok(slice) = Slice::parse(unit.to_vec()) {
                    self.control.handle_refused(slice.strip, slice.picture, slice.kind);
                }
            }
            // The next unit of a built-in channel supersedes it.
            Output::Refused(channel, unit, why) => {
                self.topics.handle_refused(channel, ByteCount::of(unit), why, self.clock.now());
            }
            Output::Tick(session, pairs, drops) => {
                self.met.set_heard_at(session.heard_at());
                let name =
                    |view: &tautline_transport::link::View| Destination::of(view.route).to_string();
                self.latest.take(session, pairs, drops, name, self.clock.now());
            }
        }
    }

    fn handle_event(&self, event: Event, session: &Session) {
        match event {
            Event::Established => {
                self.guard_client.handle_new_session(Some(*session.peer()));
                self.probe.handle_new_session();
                self.control.handle_new_session();
                self.delivery.handle_new_session();
            }
            Event::Unit { channel, bytes, .. } => self.handle_unit(channel, &bytes, session),
            Event::Budget { media, shown } => {
                self.control.note_shown(shown);
                self.control.set_budget(media, self.clock.now());
            }
            // The next unit supersedes the lost one.
            Event::UnitLost { .. } => {}
            Event::Link { link, state } => tracing::debug!(?link, ?state, "link"),
            Event::Refused { mismatch } => {
                tracing::warn!("no session: {}", mismatch.told("the operator"));
            }
            Event::Announced { channel, descriptor } => {
                tracing::info!(?channel, topic = descriptor.topic, "announced");
                self.delivery.handle_described(channel, descriptor.topic);
            }
        }
    }

    fn handle_unit(&self, channel: ChannelNumber, bytes: &[u8], session: &Session) {
        let malformed = match channel {
            channels::COMMAND => return self.handle_command(bytes, session),
            channels::VIDEO_FEEDBACK => VideoFeedback::decode(bytes)
                .map(|feedback| self.control.handle_feedback(&feedback))
                .err(),
            channels::PROBE_QUESTION => ProbeQuestion::decode(bytes)
                .map(|question| self.probe.handle_question(&question, self.clock.now()))
                .err(),
            // An operator sends on no other built-in channel.
            _ => return self.delivery.handle_unit(channel, bytes),
        };
        if let Some(error) = malformed {
            tracing::debug!(%error, ?channel, "a malformed unit");
            self.counters.others_malformed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn handle_command(&self, bytes: &[u8], session: &Session) {
        // A command's age counts from the operator's input, not from transmission.
        let here = |sent_at| session.clock().map(|clock| (clock.to_local(sent_at), clock.error()));
        if let Err(error) = self.guard_client.handle_bytes(bytes, here, self.clock.now()) {
            tracing::debug!(%error, "a malformed command");
            self.counters.commands_malformed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
