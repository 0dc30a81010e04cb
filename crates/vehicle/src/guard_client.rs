//! The vehicle's side of the guard interface: proposals every 10 ms, and the guard's status.

mod liveness;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tautline_guard::act::{Act, Blocker};
use tautline_guard::frame::{Budget, Command, Fact, Proposal, Status, Troubles};
use tautline_guard::identity::{ActNumber, Console, Session, Tick};
use tautline_guard::{Extra, MachineState, Mode, PERIOD};
use tautline_message::{self as message, StatusFrame};
use tautline_net::clock::Clock;
use tautline_net::datagram::Address;
use tautline_net::{LogLimit, random, realtime};
use tautline_port::Proposer;
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use crate::convert;
use crate::described::Declared;
use crate::steering::Steering;
use crate::ticks::Ticks;

pub use liveness::Liveness;

/// Callback that receives the machine's state and returns the vehicle's named values.
pub type Follow = Box<dyn FnMut(&MachineState) -> Vec<Extra> + Send>;

/// The vehicle's end of the connection to its guard, which alone moves the machine.
///
/// A dedicated thread proposes the operator's latest command. Other threads set the command and
/// read the guard's status; none of them can block the dedicated thread.
#[derive(Debug)]
pub struct GuardClient {
    proposed: Mutex<Proposed>,
    heard: Mutex<Option<Heard>>,
    ticks: Arc<Ticks>,
    steering: Steering,
    /// Latency budget in the guard's newest status; `None` before the first.
    budget: Mutex<Option<Budget>>,
    /// Name of the supervisor who ended the drive, until the next session; `None` if none has.
    ended_by: Mutex<Option<String>>,
    /// Newest record for the guard's black box; it replaces one that the thread has not taken yet.
    fact: Mutex<Option<Fact>>,
    /// Guard's limit of a picture's age in milliseconds; `u32::MAX` before its first status.
    picture_age_max_ms: AtomicU32,
    /// True if this process was asked to end: no session counts any more.
    is_ending: AtomicBool,
    /// Last sign of life of the rest of the process, in nanoseconds of the vehicle's clock; 0
    /// before the first.
    alive_at: AtomicU64,
    /// Time of the machine's latest state that the guard passed on, in nanoseconds of the vehicle's
    /// clock; 0 before the first.
    machine_heard_at: AtomicU64,
    /// Queue of the machine's declarations and readings; the proposing thread never waits for room.
    declared: SyncSender<Declared>,
    declarations: Mutex<Receiver<Declared>>,
    /// Number of declarations and readings for which the queue had no room.
    declared_dropped: AtomicU64,
    unsent: AtomicU64,
    refused: AtomicU64,
    skipped: AtomicU64,
    /// Commands superseded by newer ones before they were proposed.
    overtaken: AtomicU64,
    /// Number of commands dated ahead of this clock by more than the clocks' error.
    ahead: AtomicU64,
    ahead_logged: Mutex<LogLimit>,
}

/// Latest input for the guard.
#[derive(Clone, Copy, Debug)]
struct Proposed {
    session: Option<Session>,
    /// Operator of the session.
    operator: Option<PublicKey>,
    /// Number that the next session will get.
    session_next: Session,
    command: Option<Dated<Command>>,
    act: Option<Dated<Act>>,
    emergency_stop: Option<ActNumber>,
    /// True if the proposing thread has read the newest command; a new command clears it.
    is_read: bool,
    /// True if the command handled last asked for an emergency stop. Of consecutive ones that ask
    /// without a number, only the first is given a number.
    is_pressed: bool,
    /// True if a supervisor has ended the drive: until the next session nothing of a command counts
    /// but an emergency stop.
    is_ended: bool,
}

/// Input of the operator, with the time it was sent.
#[derive(Clone, Copy, Debug)]
struct Dated<T> {
    what: T,
    /// Send time by this clock, and the error of the clocks' estimated offset; `None` if the offset
    /// is unknown or the time lies in the future.
    sent_at: Option<(Instant, Duration)>,
}

/// Latest message of the guard.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Status in the message, with its bytes.
    pub frame: StatusFrame,
    /// Time of the message's arrival.
    pub at: Instant,
    /// Named values that the vehicle adds.
    pub extras: Vec<Extra>,
}

impl Heard {
    /// Returns the status in the message.
    pub fn status(&self) -> &Status {
        self.frame.status()
    }
}

impl GuardClient {
    /// Creates an end without a session, which has proposed nothing yet.
    ///
    /// # Errors
    /// Fails if the system provides no randomness. Session numbers start at a random value, so that
    /// sessions of an earlier process are not mistaken for those of this one.
    pub fn new() -> anyhow::Result<Self> {
        let [a, b, c, d, ..] = random::seed()?;
        let number = u32::from_be_bytes([a, b, c, d]) >> 1;
        Ok(Self::with(number))
    }

    /// Sets the state of the steering check, which records it.
    #[must_use]
    pub(crate) fn with_steering(self, steering: Steering) -> Self {
        Self { steering, ..self }
    }

    /// Returns the state of the steering check.
    pub(crate) fn steering(&self) -> &Steering {
        &self.steering
    }

    fn with(number: u32) -> Self {
        let session_next = Session::new(number.max(1)).expect("at least 1");
        let proposed = Proposed {
            session: None,
            operator: None,
            session_next,
            command: None,
            act: None,
            emergency_stop: None,
            is_read: true,
            is_pressed: false,
            is_ended: false,
        };
        let (declared, declarations) = sync_channel(DECLARED_MAX);
        Self {
            proposed: Mutex::new(proposed),
            heard: Mutex::default(),
            ticks: Arc::default(),
            steering: Steering::default(),
            budget: Mutex::default(),
            ended_by: Mutex::default(),
            fact: Mutex::default(),
            picture_age_max_ms: AtomicU32::new(u32::MAX),
            is_ending: AtomicBool::new(false),
            alive_at: AtomicU64::new(0),
            machine_heard_at: AtomicU64::new(0),
            declared,
            declarations: Mutex::new(declarations),
            declared_dropped: AtomicU64::new(0),
            unsent: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            overtaken: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
            ahead_logged: Mutex::default(),
        }
    }

    /// Proposes to the guard at `address` every 10 ms until `stop` is set, but nothing while the
    /// rest of the process gives no sign of life; `follow` receives each state of the machine.
    pub fn run(
        &self,
        address: &Address,
        mut liveness: Liveness,
        mut follow: Follow,
        clock: Clock,
        stop: &AtomicBool,
    ) {
        realtime::raise_thread("the proposals to the guard", realtime::Urgency::Safety);
        let mut proposer = Proposer::new(address);
        let mut proposed = *lock(&self.proposed);
        let mut due = clock.now();
        while !stop.load(Ordering::Relaxed) {
            let now = clock.now();
            let came = proposer.receive();
            let entries = came.entries.into_iter().map(Declared::Entry);
            let values = came.values.into_iter().map(Declared::Value);
            entries.chain(values).for_each(|declared| self.hear_declared(declared));
            if let Some(frame) = came.status.and_then(|bytes| StatusFrame::read(&bytes).ok()) {
                liveness.handle_status(frame.status());
                self.hear(frame, &mut follow, now);
            }
            // Never block on this lock; the next turn reads the update.
            if let Some(mut newest) = try_lock(&self.proposed) {
                newest.is_read = true;
                proposed = *newest;
            }
            let troubles = liveness.troubles(now);
            if !self.hangs(now) {
                proposer.propose(&self.proposal(&proposed, troubles, now));
            }
            if let Some(fact) = try_lock(&self.fact).and_then(|mut fact| fact.take()) {
                proposer.tell(&fact);
            }
            self.unsent.store(proposer.unsent_count(), Ordering::Relaxed);
            self.refused.store(proposer.refused_count(), Ordering::Relaxed);
            self.skipped.store(proposer.skipped_count(), Ordering::Relaxed);
            due += PERIOD;
            let now = clock.now();
            if now.since(due) > PERIOD {
                due = now;
            }
            clock.sleep_until(due);
        }
    }

    /// Handles the bytes of an authentic command that arrives at `now`. `here` converts the
    /// operator's send time to this clock, with the error; `None` while the clocks' offset is
    /// unknown.
    ///
    /// A send time that lies in the future by more than the error counts as unknown: the command
    /// stays stale forever.
    ///
    /// # Errors
    /// Fails if the bytes are no command; then nothing changes.
    pub fn handle_bytes(
        &self,
        bytes: &[u8],
        here: impl FnOnce(Instant) -> Option<(Instant, Duration)>,
        now: Instant,
    ) -> Result<(), message::Error> {
        let command = message::Command::decode(bytes)?;
        let dated = here(command.sent_at);
        let sent_at = dated.filter(|(sent_at, error)| now.age(*sent_at, *error).is_some());
        if dated.is_some() && sent_at.is_none() {
            self.handle_ahead(now);
        }
        self.handle_command(&command, sent_at);
        Ok(())
    }

    /// Counts a command dated in the future, and logs at a limited rate that the clocks contradict
    /// each other.
    fn handle_ahead(&self, now: Instant) {
        self.ahead.fetch_add(1, Ordering::Relaxed);
        if let Some(left_out) = lock(&self.ahead_logged).take(now) {
            tracing::warn!(
                left_out,
                "a command is dated ahead of this clock by more than the clock error: the \
                 operator's clock is wrong, and its commands count as stale"
            );
        }
    }

    /// Handles an authentic command, sent at `sent_at` by this clock with the error of the offset;
    /// `None` counts as stale. Its emergency stop counts at any age, the rest only if the command
    /// is newer than the last and no supervisor has ended the drive. Of a successor's command
    /// before the handover only the act counts.
    fn handle_command(&self, command: &message::Command, sent_at: Option<(Instant, Duration)>) {
        let mut proposed = lock(&self.proposed);
        let asked = convert::proposed(command);
        // An emergency stop counts at any age, and also if a later command overtook it.
        match asked.emergency_stop {
            Some(number) => proposed.emergency_stop = Some(number),
            None if command.emergency_stop && !proposed.is_pressed => {
                let last = proposed.emergency_stop.map_or(0, ActNumber::get);
                proposed.emergency_stop = ActNumber::new(last.wrapping_add(1).max(1));
            }
            None => {}
        }
        proposed.is_pressed = command.emergency_stop;
        if proposed.is_ended {
            return;
        }
        let newest = proposed.command.map(|dated| dated.what.sequence);
        if newest.is_none_or(|newest| command.sequence > newest) {
            if !self.awaits_handover(command) {
                // Only the newest command counts, at any arrival rate; acts and stops are kept
                // separately.
                let is_unread = !std::mem::replace(&mut proposed.is_read, false);
                self.overtaken.fetch_add(u64::from(is_unread), Ordering::Relaxed);
                proposed.command = asked.command.map(|asked| {
                    let cited = Tick::new(self.ticks.citable(command.cited));
                    Dated { what: Command { cited, ..asked }, sent_at }
                });
            }
            if let Some(what) = asked.act {
                proposed.act = Some(Dated { what, sent_at });
            }
        }
    }

    /// Returns whether the command comes from the named successor while the guard still lets
    /// another console drive. The latter's commands count until then.
    fn awaits_handover(&self, command: &message::Command) -> bool {
        let holder = lock(&self.heard).as_ref().and_then(|heard| heard.status().holder);
        let is_successor = command.successor != 0 && command.successor == command.console;
        is_successor && holder.is_some_and(|holder| holder.get() != command.console)
    }

    /// Starts a new session with this operator: commands, acts and a supervisor's order of the
    /// previous session no longer count. The number of its emergency stop is kept.
    pub fn handle_new_session(&self, operator: Option<PublicKey>) {
        self.ticks.handle_new_session();
        let mut proposed = lock(&self.proposed);
        proposed.operator = operator;
        let session = proposed.session_next;
        proposed.session = Some(session);
        proposed.session_next =
            Session::new(session.get().wrapping_add(1).max(1)).expect("at least 1");
        (proposed.command, proposed.act, proposed.is_pressed) = (None, None, false);
        proposed.is_ended = false;
        *lock(&self.ended_by) = None;
    }

    /// Ends the drive by a supervisor's order: this session and its commands are no longer
    /// proposed, so the guard stops the machine. An emergency stop still counts.
    pub fn end_drive(&self, supervisor: &str) {
        let mut proposed = lock(&self.proposed);
        (proposed.session, proposed.command, proposed.act) = (None, None, None);
        proposed.is_ended = true;
        *lock(&self.ended_by) = Some(supervisor.to_owned());
    }

    /// Returns the supervisor who ended the drive; `None` if none has since the session began.
    pub fn ended_by(&self) -> Option<String> {
        lock(&self.ended_by).clone()
    }

    /// Sets the record to send with the next proposal to the guard's black box, in place of an
    /// unsent one.
    pub fn tell(&self, fact: Fact) {
        *lock(&self.fact) = Some(fact);
    }

    /// Returns the session, its operator, and the console of its newest command; `None` for each
    /// that there is not.
    pub fn who(&self) -> (Option<Session>, Option<PublicKey>, Option<Console>) {
        let proposed = lock(&self.proposed);
        let console = proposed.command.map(|dated| dated.what.console);
        (proposed.session, proposed.operator, console)
    }

    /// Records a sign of life of the rest of the process, which reports the machine's state to the
    /// operator and receives requests to end. Without one for 1 s, proposals stop.
    pub fn handle_life(&self, now: Instant) {
        self.alive_at.store(now.as_nanos().max(1), Ordering::Relaxed);
    }

    /// Stops proposing a session because this process ends, so the guard stops the machine for
    /// good.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Returns whether this process was asked to end.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Returns whether the machine stands at `now`, by a state that the guard trusts; false if that
    /// state or the guard's status is 500 ms old or older.
    pub fn stands(&self, now: Instant) -> bool {
        self.heard(now).is_some_and(|heard| {
            let status = heard.status();
            // The guard may distrust the machine's state.
            let is_doubted = status.blockers.contains(Blocker::Moving);
            !is_doubted
                && status.machine.is_some_and(|(machine, age)| {
                    age < STATUS_AGE_MAX && machine.fastest() < STANDING_SPEED
                })
        })
    }

    /// Returns whether the machine stands at `now` and the guard holds it.
    pub fn is_held(&self, now: Instant) -> bool {
        let is_held = |heard: Heard| heard.status().mode == Mode::Held;
        self.stands(now) && self.heard(now).is_some_and(is_held)
    }

    /// Returns whether the machine or its guard has been silent for 30 s at `now`. By then the
    /// machine has stopped by itself, or cannot be stopped from here. Also true before the first
    /// state of the machine: this process has never driven it.
    pub fn is_out_of_reach(&self, now: Instant) -> bool {
        match self.machine_heard_at.load(Ordering::Relaxed) {
            0 => true,
            heard_at => now.since(Instant::from_nanos(heard_at)) >= MACHINE_SILENCE_MAX,
        }
    }

    /// Returns the guard's latest status; `None` if none came in the 500 ms before `now`.
    pub fn heard(&self, now: Instant) -> Option<Heard> {
        lock(&self.heard).clone().filter(|heard| now.since(heard.at) < STATUS_AGE_MAX)
    }

    /// Returns the ticks that pictures carry and commands may cite.
    pub fn ticks(&self) -> Arc<Ticks> {
        self.ticks.clone()
    }

    /// Returns the deadline of pictures: `set`, but at most the picture age that the guard allows.
    pub fn media_deadline(&self, set: Duration) -> Duration {
        let told = self.picture_age_max_ms.load(Ordering::Relaxed);
        set.min(Duration::from_millis(told.into()))
    }

    /// Returns a sentence that names the media or command deadline if it exceeds the age of a
    /// picture or command that the guard allows; `None` if neither does, or before the guard's
    /// first status.
    pub fn contradiction(&self, transport: &tautline_transport::Config) -> Option<String> {
        let budget = (*lock(&self.budget))?;
        let limits = [
            (
                "media_deadline_ms",
                transport.media_deadline,
                "picture_age_max_ms",
                budget.picture_age_max,
            ),
            (
                "command_deadline_ms",
                transport.command_deadline,
                "command_age_max_ms",
                budget.command_age_max,
            ),
        ];
        let (set, limit, guards, most, ..) =
            limits.into_iter().find(|(_, set, _, most)| set > most)?;
        let (limit, most) = (limit.as_millis(), most.as_millis());
        Some(format!(
            "transport.{set} = {limit} exceeds {most}, the guard's latency.{guards}: data that \
             arrives so late no longer counts"
        ))
    }

    /// Returns three counts: proposals that could not be sent, malformed frames of the guard, and
    /// frames with a skipped tail because this build knows fewer fields.
    pub fn counts(&self) -> [u64; 3] {
        [&self.unsent, &self.refused, &self.skipped].map(|count| count.load(Ordering::Relaxed))
    }

    /// Returns how many commands were dated ahead of this clock by more than the error of the
    /// comparison.
    pub fn ahead_count(&self) -> u64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Returns how many commands were superseded by newer ones between two proposals.
    pub fn overtaken_count(&self) -> u64 {
        self.overtaken.load(Ordering::Relaxed)
    }

    /// Stores the guard's newest status, and passes its tick, the steering check and the machine's
    /// state on; `follow` gets that state and returns its extras. Never waits: what another thread
    /// holds locked stays as it is.
    pub(crate) fn hear(&self, frame: StatusFrame, follow: &mut Follow, at: Instant) {
        let status = frame.status();
        let speed = status.machine.map_or(f32::NAN, |(machine, _)| machine.fastest());
        self.ticks.handle_tick(status.tick.get(), speed);
        let millis = status.budget.picture_age_max.as_millis() as u32;
        self.picture_age_max_ms.store(millis, Ordering::Relaxed);
        if let Some(mut budget) = try_lock(&self.budget) {
            *budget = Some(status.budget);
        }
        if let Some((_, age)) = status.machine {
            // A guard that restarted without a machine state must not move this back.
            self.machine_heard_at.fetch_max((at - age).as_nanos(), Ordering::Relaxed);
        }
        if let Some(proposed) = try_lock(&self.proposed) {
            self.steering.handle(status, proposed.act.as_ref().map(|act| &act.what));
        }
        let extras = status.machine.map(|(machine, _)| follow(&machine)).unwrap_or_default();
        if let Some(mut heard) = try_lock(&self.heard) {
            *heard = Some(Heard { frame, at, extras });
        }
    }

    /// Queues an entry of the machine's description or a reading of its values; counts it if there
    /// is no room.
    pub(crate) fn hear_declared(&self, declared: Declared) {
        let is_full = self.declared.try_send(declared).is_err();
        self.declared_dropped.fetch_add(u64::from(is_full), Ordering::Relaxed);
    }

    /// Removes and returns the machine's declarations and readings since the last call, in order.
    pub(crate) fn take_declared(&self) -> Vec<Declared> {
        lock(&self.declarations).try_iter().collect()
    }

    /// Returns how many declarations and readings of the machine were dropped, because this process
    /// did not take them in time.
    pub fn declared_dropped(&self) -> u64 {
        self.declared_dropped.load(Ordering::Relaxed)
    }

    /// Returns whether the rest of the process has been lifeless for 1 s: nothing is proposed then.
    /// False before the first sign of life.
    fn hangs(&self, now: Instant) -> bool {
        let alive_at = self.alive_at.load(Ordering::Relaxed);
        alive_at > 0 && now.since(Instant::from_nanos(alive_at)) > HANG_MAX
    }

    fn proposal(&self, proposed: &Proposed, troubles: Troubles, now: Instant) -> Proposal {
        if self.is_ending() {
            let emergency_stop = proposed.emergency_stop;
            return Proposal { source: now, troubles, emergency_stop, ..Proposal::default() };
        }
        let age = |sent_at: Option<(Instant, Duration)>| {
            sent_at.map(|(sent_at, error)| now.since(sent_at) + error)
        };
        let command = proposed.command;
        let act = proposed.act;
        Proposal {
            source: now,
            session: proposed.session,
            troubles,
            command: command.map(|it| Command { age: age(it.sent_at), ..it.what }),
            emergency_stop: proposed.emergency_stop,
            act: act.map(|it| Act { age: age(it.sent_at), ..it.what }),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the mutex without waiting, even if a holder panicked; `None` if it is held.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(left)) => Some(left.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Time without a sign of life from the rest of the process after which no proposals are sent to
/// the guard: 20 missed reports. Acts are not acknowledged meanwhile, but pictures and commands
/// continue: this is less urgent than they are.
const HANG_MAX: Duration = Duration::from_secs(1);
/// Length of the queue of declarations and readings, those of 0.3 s; further ones are dropped and
/// counted.
const DECLARED_MAX: usize = 256;
/// Age from which the status of guard or machine no longer counts.
const STATUS_AGE_MAX: Duration = Duration::from_millis(500);
/// Silence after which the machine is out of reach. Without its guard it stands within less, from
/// any speed of a road vehicle at 2 m/s^2; its side has given the guard up by then too.
const MACHINE_SILENCE_MAX: Duration = Duration::from_secs(30);
/// Speed in m/s below which the machine counts as standing.
const STANDING_SPEED: f32 = 0.05;

#[cfg(test)]
mod bytes;
#[cfg(test)]
mod claims;

#[cfg(test)]
mod tests;
