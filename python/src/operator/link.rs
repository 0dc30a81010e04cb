//! The connection's thread: reads messages, sends commands every 20 ms.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tautline_message::{Description, Telemetry, Values, VideoFeedback};
use tautline_units::Instant;
use tungstenite::{Bytes, Error, Message, WebSocket};

use super::kinds::{from_operator, to_operator};
use super::pictures::Slices;
use super::shared::{Shared, State};
use super::wire::{SliceHead, hello, ping, pong, tagged};

/// Connection of a console.
pub(super) struct Link {
    socket: WebSocket<TcpStream>,
    shared: Arc<Shared>,
    slices: Slices,
    picture_interval: u8,
    heard_at: Instant,
    commanded_at: Instant,
    pinged_at: Instant,
    fed_back_at: Instant,
}

impl Link {
    pub(super) fn new(
        socket: WebSocket<TcpStream>,
        shared: Arc<Shared>,
        slices: Slices,
        picture_interval: u8,
    ) -> std::io::Result<Self> {
        socket.get_ref().set_nonblocking(true)?;
        let now = shared.clock.now();
        let zero = Instant::ZERO;
        Ok(Self {
            socket,
            shared,
            slices,
            picture_interval,
            heard_at: now,
            commanded_at: zero,
            pinged_at: zero,
            fed_back_at: zero,
        })
    }

    /// Serves the connection until it ends or is closed.
    pub(super) fn run(mut self) {
        let why = loop {
            let now = self.shared.clock.now();
            if self.shared.lock().is_closing {
                // The operator's process notices a closed socket too.
                let _ = self.socket.close(None).and_then(|()| self.socket.flush());
                break "it was closed".to_owned();
            }
            if now.since(self.heard_at) >= SILENCE_MAX {
                break "the operator's process is silent".to_owned();
            }
            if let Err(why) = self.send_due(now).and_then(|next| self.receive(next)) {
                break why;
            }
        };
        self.shared.end(why);
    }

    /// Sends what is due at `now`; returns when something is due next.
    fn send_due(&mut self, now: Instant) -> Result<Instant, String> {
        if now.since(self.pinged_at) >= PING_EVERY {
            self.pinged_at = now;
            self.send(ping(self.unix(now)))?;
        }
        if now.since(self.fed_back_at) >= FEEDBACK_EVERY {
            self.fed_back_at = now;
            if self.shared.lock().drives() {
                let keyframe_strips = self.shared.losses.wanted.swap(0, Ordering::Relaxed);
                let picture_interval = self.picture_interval;
                let told =
                    VideoFeedback { keyframe_strips, picture_interval, ..VideoFeedback::default() };
                self.send(tagged(to_operator::VIDEO_FEEDBACK, &told.encode()))?;
            }
        }
        let shared = self.shared.clone();
        while let Some(message) = shared.lock().wants.outgoing.pop_front() {
            self.send(message)?;
        }
        let next = |state: &State, at: Instant| {
            at + if state.wants.is_unsent { COMMAND_GAP } else { COMMAND_EVERY }
        };
        let mut state = shared.lock();
        if next(&state, self.commanded_at) <= now {
            self.commanded_at = now;
            state.wants.is_unsent = false;
            if let Some(command) = state.command(&shared.clock, now) {
                state.counts.commands += 1;
                drop(state);
                self.send(tagged(to_operator::COMMAND, &command.encode()))?;
                state = shared.lock();
            }
        }
        Ok(next(&state, self.commanded_at).min(self.pinged_at + PING_EVERY))
    }

    fn send(&mut self, message: Vec<u8>) -> Result<(), String> {
        match self.socket.send(Message::Binary(message.into())) {
            Ok(()) => Ok(()),
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(Error::WriteBufferFull(_)) => {
                self.shared.lock().counts.not_sent += 1;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Waits for messages and handles them, until `next` or until the program wants something.
    fn receive(&mut self, next: Instant) -> Result<(), String> {
        let shared = self.shared.clone();
        let wait = next.since(shared.clock.now());
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        let mut fds = [
            PollFd::new(self.socket.get_ref(), PollFlags::IN),
            PollFd::new(shared.wake(), PollFlags::IN),
        ];
        match poll(&mut fds, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
        let is_woken = !fds[1].revents().is_empty();
        if is_woken {
            // It only says that something is wanted.
            let _ = rustix::io::read(shared.wake(), &mut [0; 8]);
        }
        loop {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => {
                    self.heard_at = shared.clock.now();
                    if self.handle(&bytes).is_none() {
                        shared.lock().counts.bad_messages += 1;
                    }
                    // Commands are not late because of many messages.
                    if self.heard_at >= next {
                        return Ok(());
                    }
                }
                Ok(Message::Close(frame)) => {
                    let reason = frame.map(|frame| frame.reason.to_string());
                    let reason = reason.filter(|reason| !reason.is_empty());
                    return Err(
                        reason.unwrap_or_else(|| "the operator's process has ended it".to_owned())
                    );
                }
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Handles a message; `None` for one that is invalid.
    fn handle(&mut self, message: &Bytes) -> Option<()> {
        let (kind, body) = message.split_first()?;
        let now = self.shared.clock.now();
        let text = || std::str::from_utf8(body).ok().map(str::to_owned);
        match *kind {
            from_operator::SLICE => {
                self.slices.feed(SliceHead::read(message)?, message.clone());
            }
            from_operator::TELEMETRY => {
                let telemetry = Telemetry::decode(body).ok()?;
                let console = self.shared.console;
                self.shared.change(|state| state.handle_telemetry(telemetry, console, now));
            }
            from_operator::PONG => {
                let (asked, answered) = pong(body)?;
                let arrived = self.unix(now);
                self.shared.change(|state| state.offset.handle(asked, answered, arrived));
            }
            from_operator::HELLO => {
                let (vehicle, format) = hello(body)?;
                // A failed one is noticed by the next message.
                let _ = self.send(vec![to_operator::DECODER, DECODER_PROCESSOR]);
                self.slices.begin(format.clone());
                self.shared.change(|state| {
                    if state.vehicle != vehicle {
                        (state.telemetry, state.description, state.values) = (None, None, None);
                        state.picture = None;
                    }
                    (state.vehicle, state.format) = (vehicle, format);
                });
            }
            from_operator::STANDING => {
                let standing: serde_json::Value = serde_json::from_slice(body).ok()?;
                let (role, text) = (standing["role"].as_str()?.to_owned(), text()?);
                self.shared.change(|state| {
                    let is_refused = role == "refused" && state.role != role;
                    state.refusals += u64::from(is_refused);
                    (state.role, state.standing) = (role, text);
                });
            }
            from_operator::FLEET => {
                let text = text()?;
                self.shared.change(|state| state.fleet = text);
            }
            from_operator::DESCRIPTION => {
                let description = Description::decode(body).ok()?;
                self.shared.change(|state| state.description = Some(description));
            }
            from_operator::VALUES => {
                let values = Values::decode(body).ok()?;
                self.shared.change(|state| state.values = Some(values));
            }
            // A page shows these; a program has no use for them.
            from_operator::STATUS | from_operator::SNAPSHOT | from_operator::TOPICS => {}
            _ => return None,
        }
        Some(())
    }

    fn unix(&self, at: Instant) -> Instant {
        Instant::from_nanos(self.shared.clock.unix_nanos(at))
    }
}

/// Period of commands, as of a page.
const COMMAND_EVERY: Duration = Duration::from_millis(20);
/// Shortest time between two commands; the operator's process takes no more.
const COMMAND_GAP: Duration = Duration::from_millis(5);
/// Number of a decoder that is no hardware.
const DECODER_PROCESSOR: u8 = 1;
const PING_EVERY: Duration = Duration::from_millis(250);
const FEEDBACK_EVERY: Duration = Duration::from_millis(50);
/// Silence after which the operator's process counts as gone; its status comes ten times a second.
const SILENCE_MAX: Duration = Duration::from_secs(3);
