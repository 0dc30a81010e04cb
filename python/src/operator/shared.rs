//! State that the console's threads and the program share.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_guard::act::Outcome;
use tautline_guard::frame::DeadMan;
use tautline_message::{Act, Command, Deed, Description, Telemetry, Values};
use tautline_net::clock::Clock;
use tautline_units::Instant;

use super::clock::Offset;
use super::pictures::{Losses, Whole};
use super::wire::Format;

/// State of a console, its change, and the event that wakes its connection.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    wake: OwnedFd,
    pub(super) clock: Clock,
    /// Number of this console at the guard.
    pub(super) console: u64,
    pub(super) losses: Arc<Losses>,
}

/// State of a console.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Count of changes.
    pub(super) version: u64,
    /// Why the connection has ended; `None` while it is open.
    pub(super) ended: Option<String>,
    pub(super) is_closing: bool,
    pub(super) vehicle: String,
    pub(super) format: Option<Format>,
    /// Role of this console; empty before the operator's process has told it.
    pub(super) role: String,
    /// Count of refusals of the driving console.
    pub(super) refusals: u64,
    /// Standing and fleet as JSON; empty before the first.
    pub(super) standing: String,
    pub(super) fleet: String,
    /// Newest telemetry and its arrival.
    pub(super) telemetry: Option<(Telemetry, Instant)>,
    pub(super) description: Option<Description>,
    pub(super) values: Option<Values>,
    /// Newest whole picture that the program has not taken.
    pub(super) picture: Option<Arc<Whole>>,
    pub(super) offset: Offset,
    pub(super) counts: Counts,
    pub(super) wants: Wants,
}

/// Counts of what was left out.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    pub(super) pictures: u64,
    pub(super) superseded: u64,
    pub(super) bad_messages: u64,
    pub(super) not_sent: u64,
    pub(super) commands: u64,
}

/// Commands and messages that the program wants to send.
#[derive(Debug)]
pub(super) struct Wants {
    /// Newest driving command and its time; `None` before the first.
    pub(super) drive: Option<(Command, Instant)>,
    /// True until the newest command was sent once.
    pub(super) is_unsent: bool,
    /// Act that the guard has not answered yet.
    pub(super) act: Option<Act>,
    /// Outcome of the act.
    pub(super) outcome: Option<Outcome>,
    pub(super) act_count: u32,
    /// Emergency stop that the guard has not acknowledged yet.
    pub(super) stop: Option<u32>,
    pub(super) stop_number: u32,
    /// Tick of the picture that the program cited last; 0 for none.
    pub(super) cited: u32,
    pub(super) dead_man: DeadMan,
    /// Messages other than commands.
    pub(super) outgoing: VecDeque<Vec<u8>>,
}

impl Default for Wants {
    fn default() -> Self {
        Self {
            drive: None,
            is_unsent: false,
            act: None,
            outcome: None,
            act_count: 0,
            stop: None,
            stop_number: 0,
            cited: 0,
            dead_man: DeadMan::Absent,
            outgoing: VecDeque::new(),
        }
    }
}

impl Shared {
    pub(super) fn new(console: u64, clock: Clock) -> std::io::Result<Self> {
        let flags = rustix::event::EventfdFlags::NONBLOCK | rustix::event::EventfdFlags::CLOEXEC;
        let mut state = State::default();
        // Any number that an earlier console of this guard did not use.
        state.wants.stop_number = (console >> 32) as u32;
        Ok(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            wake: rustix::event::eventfd(0, flags)?,
            clock,
            console,
            losses: Arc::default(),
        })
    }

    /// Returns the state, also after another thread has panicked.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the threads that wait for that.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state);
        state.version += 1;
        drop(state);
        self.changed.notify_all();
        changed
    }

    /// Changes what the program wants, and wakes the connection.
    pub(super) fn want<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        // A full counter has woken it already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        changed
    }

    /// Waits until `look` returns a value, at most for `wait`.
    pub(super) fn wait<T>(
        &self,
        wait: Duration,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let deadline = self.clock.now() + wait;
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return Some(found);
            }
            let left = deadline.since(self.clock.now());
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn wake(&self) -> &OwnedFd {
        &self.wake
    }

    pub(super) fn end(&self, why: String) {
        self.change(|state| state.ended.get_or_insert(why).clone());
    }

    /// Returns the names and counts of what was left out.
    pub(super) fn drops(&self) -> [(&'static str, u64); 7] {
        let counts = self.lock().counts;
        let losses = &self.losses;
        [
            ("picture superseded", counts.superseded),
            ("slice awaiting IDR", losses.awaiting_idr.load(Ordering::Relaxed)),
            ("slice, decoder behind", losses.behind.load(Ordering::Relaxed)),
            ("slice, decoder error", losses.failed.load(Ordering::Relaxed)),
            ("slice of an unknown strip", losses.unknown_strip.load(Ordering::Relaxed)),
            ("bad message", counts.bad_messages),
            ("message not sent", counts.not_sent),
        ]
    }
}

impl State {
    /// Returns whether the operator's process takes this console's driving commands.
    pub(super) fn drives(&self) -> bool {
        self.role == "drives" || self.role == "succeeds"
    }

    /// Handles newer telemetry: ends the act and the emergency stop that the guard answers.
    pub(super) fn handle_telemetry(&mut self, telemetry: Telemetry, console: u64, now: Instant) {
        if let Some(status) = telemetry.status() {
            let wants = &mut self.wants;
            let act = wants.act.as_ref().map(|act| act.number);
            let answer = status
                .answer
                .filter(|it| it.console.get() == console && Some(it.number.get()) == act);
            if let Some(answer) = answer {
                (wants.act, wants.outcome) = (None, Some(answer.outcome));
            }
            let stopped = status.emergency_stop.map(|number| number.get());
            wants.stop.take_if(|number| Some(*number) == stopped);
        }
        self.telemetry = Some((telemetry, now));
    }

    /// Returns the command to send at `now`; `None` if the program wants none. Commands are dated
    /// by the operator's clock once that is known.
    pub(super) fn command(&self, clock: &Clock, now: Instant) -> Option<Command> {
        let wants = &self.wants;
        let dated = |at: Instant| match self.offset.nanos() {
            Some(nanos) => Instant::from_nanos(clock.unix_nanos(at)).offset_by_nanos(nanos),
            None => Instant::ZERO,
        };
        let still = Command {
            sent_at: dated(now),
            brake: 1.0,
            cited: wants.cited,
            dead_man: wants.dead_man,
            ..Command::default()
        };
        if let Some(number) = wants.stop {
            let emergency_stop_number = number;
            return Some(Command { emergency_stop: true, emergency_stop_number, ..still });
        }
        if !self.drives() {
            return None;
        }
        let fresh = wants.drive.filter(|(_, at)| now.since(*at) <= REPEAT_FOR);
        // A repetition keeps the date of the program's call.
        let driven = fresh.map(|(command, at)| Command { sent_at: dated(at), ..command });
        match (driven, wants.act) {
            (Some(command), act) => Some(Command { act, ..command }),
            (None, Some(act)) => Some(Command { act: Some(act), ..still }),
            (None, None) => None,
        }
    }
}

impl Wants {
    /// Begins an act; returns its number.
    pub(super) fn begin(&mut self, deed: Deed, argument: u32) -> u32 {
        self.act_count += 1;
        (self.act, self.outcome) =
            (Some(Act { number: self.act_count, stop: argument, deed }), None);
        self.act_count
    }

    /// Requests an emergency stop. One that is not acknowledged yet keeps its number.
    pub(super) fn stop(&mut self) {
        if self.stop.is_none() {
            self.stop_number = self.stop_number.wrapping_add(1).max(1);
            self.stop = Some(self.stop_number);
        }
        (self.act, self.drive) = (None, None);
    }

    /// Queues a message; returns false if too many wait.
    pub(super) fn say(&mut self, message: Vec<u8>) -> bool {
        let has_room = self.outgoing.len() < OUTGOING_MAX;
        if has_room {
            self.outgoing.push_back(message);
        }
        has_room
    }
}

/// Time for which a driving command is repeated: a lost one is replaced, and a program that calls
/// no more stops driving.
const REPEAT_FOR: Duration = Duration::from_millis(100);
const OUTGOING_MAX: usize = 16;
