//! The operator's input on its way to the vehicle.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tautline_message::{Command, SessionState, VideoFeedback};
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::driver::Handle;
use tautline_transport::ChannelNumber;
use tautline_units::{ByteCount, Instant};

use crate::console::Hub;
use crate::reception::Shared;

/// Numbers and dates the console's commands and sends them, and beside them tells the vehicle what
/// has come of the video.
///
/// A console that has nothing to say sends no command, and then the vehicle stops by itself. Its
/// lost slices are recovered from all the same: the feedback is this process's own.
#[derive(Debug)]
pub(crate) struct Input {
    hub: Arc<Hub>,
    shared: Arc<Shared>,
    handle: Handle,
    clock: Clock,
    sequence: u64,
    fed_back: Option<(VideoFeedback, Instant)>,
}

impl Input {
    pub(crate) fn new(hub: Arc<Hub>, shared: Arc<Shared>, handle: Handle, clock: Clock) -> Self {
        Self { hub, shared, handle, clock, sequence: 0, fed_back: None }
    }

    /// Sends on what the console commands, unless it was held up on its way here: what came late
    /// from the browser must not look fresh to the vehicle.
    ///
    /// The console dates its commands in Unix time by this machine's clock, 0 for unknown.
    pub(crate) fn handle_command(&mut self, command: Command) {
        let now = self.clock.now();
        let unix = self.clock.unix_nanos(now);
        let age = Duration::from_nanos(unix.saturating_sub(command.sent_at.as_nanos()));
        if age > AGE_MAX {
            self.hub.commands_stale.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.sequence += 1;
        let command = Command { sequence: self.sequence, sent_at: now - age, ..command };
        self.send(channels::COMMAND, command.encode());
    }

    /// Tells the vehicle what has come of the video and what is asked of its encoders, if that is
    /// news, and now and then all the same: what told it may be lost.
    pub(crate) fn feed_back(&mut self) {
        if self.shared.standing().state != SessionState::Established {
            return;
        }
        let now = self.clock.now();
        let strips = self.shared.strips();
        let asked = self.hub.take_feedback();
        let feedback = VideoFeedback {
            strips: strips.reports,
            keyframe_strips: strips.keyframes | asked.keyframe_strips,
            picture_interval: asked.picture_interval,
        };
        let told = |(told, at): &(VideoFeedback, Instant)| {
            *told == feedback && now.since(*at) < FEEDBACK_REPEAT
        };
        if self.fed_back.as_ref().is_some_and(told) {
            return;
        }
        self.fed_back = Some((feedback, now));
        self.send(channels::VIDEO_FEEDBACK, feedback.encode());
    }

    fn send(&self, channel: ChannelNumber, unit: Vec<u8>) {
        // Without a session there is nobody to tell; the loop counts what it cannot take.
        self.shared.note_sent(ByteCount::of(&unit));
        self.handle.send(channel, unit, DEADLINE);
    }
}

/// A command that took longer than this from the browser is not sent on.
const AGE_MAX: Duration = Duration::from_millis(250);
const DEADLINE: Duration = Duration::from_millis(250);
/// Feedback that says the same again is sent so often.
const FEEDBACK_REPEAT: Duration = Duration::from_millis(100);
