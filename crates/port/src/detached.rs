//! A machine whose calls run on another thread, where they may be late, fail, or never return.
//!
//! The thread of the frames never waits for the other one: it posts the newest controls, takes the
//! newest state, and judges. A call that takes [`LIMIT`] or fails makes the machine *unsafe*: each
//! turn sends the bytes declared as safe, and reports a fault without a speed, until a later call
//! has ended in time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tautline_guard::description::{Item, Reading};
use tautline_guard::{Controls, Fault, Machine, MachineState, Mode, PERIOD};
use tautline_units::Instant;

use crate::safe::Safe;
use crate::watchdog::Watchdog;

/// The end for [`serve`](crate::serve()): a machine for the thread of the frames.
#[derive(Debug)]
pub struct Detached {
    shared: Arc<Shared>,
    items: Vec<Item>,
    safe: Vec<Safe>,
    watchdog: Option<Watchdog>,
    mode: Option<Mode>,
    judge: Judge,
    readings: Readings,
    /// Newest request that the machine has not answered; `None` without one.
    asked: Option<Asked>,
    asked_count: u64,
}

/// The end that calls the machine, on a thread of its own.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    /// Number of the newest turn taken; 0 before the first.
    at_work: u64,
    /// Number of the request that came with the turn in work; `None` without one.
    asked: Option<u64>,
}

/// One turn of the machine: controls to apply, after which the state is read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Turn {
    number: u64,
    /// Controls to apply.
    pub controls: Controls,
    /// Mode of the guard; `None` while the machine's side brakes by itself.
    pub mode: Option<Mode>,
    /// Number of a declared action that a person asks for once; `None` without a request.
    pub request: Option<u8>,
}

/// Result of a turn.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Done {
    /// State of the machine after it.
    pub state: MachineState,
    /// Present readings of the declared values, each with its number.
    pub readings: Vec<(u8, Reading)>,
    /// True if the machine does the action of the turn's [request](Turn::request).
    pub is_accepted: bool,
}

/// Work of a [`Worker`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Next {
    /// A turn to take; [`Worker::finish`] follows.
    Turn(Turn),
    /// No turn yet.
    Nothing,
    /// The end: the frames are served no longer.
    Over,
}

/// The end of one turn.
#[derive(Clone, PartialEq, Debug)]
struct Outcome {
    number: u64,
    /// Result; `None` if a call failed.
    done: Option<Done>,
    /// Number of the request that came with the turn; `None` without one.
    asked: Option<u64>,
}

/// A request that waits for the machine's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Asked {
    number: u64,
    action: u8,
    /// Time of the turn in which the guard asked last.
    asked_at: Instant,
    is_posted: bool,
    /// Answer of the machine; `None` before it.
    is_accepted: Option<bool>,
}

#[derive(Debug, Default)]
struct Shared {
    exchange: Mutex<Exchange>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Exchange {
    posted: Option<Turn>,
    /// Number and action of a request that was not taken yet.
    request: Option<(u64, u8)>,
    outcome: Option<Outcome>,
    is_over: bool,
}

/// Creates both ends of a machine with these axes, actions and values, whose safe bytes are `safe`.
/// The watchdog, if there is one, gets a beat each turn.
pub fn detached(
    items: Vec<Item>,
    safe: Vec<Safe>,
    watchdog: Option<Watchdog>,
) -> (Detached, Worker) {
    let shared = Arc::new(Shared::default());
    let worker = Worker { shared: shared.clone(), at_work: 0, asked: None };
    let machine = Detached {
        shared,
        items,
        safe,
        watchdog,
        mode: None,
        judge: Judge::default(),
        readings: Readings::default(),
        asked: None,
        asked_count: 0,
    };
    (machine, worker)
}

impl Worker {
    /// Returns the newest turn that was not taken, after waiting for one for at most `longest`.
    pub fn next(&mut self, longest: Duration) -> Next {
        let exchange = self.shared.lock();
        let is_idle = |exchange: &mut Exchange| exchange.posted.is_none() && !exchange.is_over;
        let waited = self.shared.changed.wait_timeout_while(exchange, longest, is_idle);
        let (mut exchange, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match exchange.posted.take() {
            Some(turn) => {
                self.at_work = turn.number;
                let request = exchange.request.take();
                self.asked = request.map(|(number, _)| number);
                Next::Turn(Turn { request: request.map(|(_, action)| action), ..turn })
            }
            None if exchange.is_over => Next::Over,
            None => Next::Nothing,
        }
    }

    /// Ends the turn with its result, or `None` if a call failed.
    pub fn finish(&mut self, done: Option<Done>) {
        let outcome = Outcome { number: self.at_work, done, asked: self.asked.take() };
        self.shared.lock().outcome = Some(outcome);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Detached {
    fn follow(&mut self, controls: &Controls, mode: Option<Mode>, now: Instant) {
        let number = self.judge.posted + 1;
        let turn = Turn { number, controls: *controls, mode, request: None };
        // A request that the guard has given up must not begin late.
        self.asked = self.asked.filter(|asked| asked.asked_at == now);
        // Never waits: the other thread may be interrupted while it holds the lock.
        let exchange = match self.shared.exchange.try_lock() {
            Ok(exchange) => Some(exchange),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let outcome = exchange.map(|mut exchange| {
            exchange.posted = Some(turn);
            match &mut self.asked {
                Some(asked) if !asked.is_posted => {
                    asked.is_posted = true;
                    exchange.request = Some((asked.number, asked.action));
                }
                Some(_) => {}
                None => exchange.request = None,
            }
            exchange.outcome.take()
        });
        let is_posted = outcome.is_some();
        if is_posted {
            self.shared.changed.notify_all();
        }
        let outcome = outcome.flatten();
        if let Some(outcome) = &outcome {
            self.take(outcome);
        }
        self.judge.turn(outcome.as_ref(), now);
        if is_posted {
            self.judge.posted = number;
        }
        let has_watchdog_sent = self.watchdog.as_mut().is_some_and(Watchdog::beat);
        if has_watchdog_sent {
            tracing::warn!("this process stood: its watchdog has sent the safe bytes");
            self.judge.fail(Fault::Unreachable, self.judge.posted);
        }
        if self.judge.trouble.is_some() {
            self.send_safe();
        }
    }

    /// Takes readings, and the answer to a request, from the end of a turn; a request whose turn
    /// failed is refused.
    fn take(&mut self, outcome: &Outcome) {
        let Outcome { done, asked, .. } = outcome;
        if let Some(done) = done {
            self.readings.take(&done.readings);
        }
        if let Some(waiting) = self.asked.as_mut().filter(|it| *asked == Some(it.number)) {
            waiting.is_accepted = Some(done.as_ref().is_some_and(|done| done.is_accepted));
        }
    }

    fn send_safe(&mut self) {
        for safe in &self.safe {
            if !safe.send() && !self.judge.is_refused {
                self.judge.is_refused = true;
                tracing::warn!(to = %safe, "the safe bytes were not accepted; repeated every 10 ms");
            }
        }
    }
}

impl Machine for Detached {
    fn period(&self) -> Duration {
        PERIOD
    }

    fn state(&mut self, now: Instant) -> MachineState {
        self.judge.state(now)
    }

    fn description(&self) -> &[Item] {
        &self.items
    }

    fn request(&mut self, action: u8, now: Instant) -> Option<bool> {
        match self.asked.filter(|asked| asked.action == action) {
            Some(Asked { is_accepted: Some(answer), .. }) => {
                self.asked = None;
                Some(answer)
            }
            Some(asked) => {
                self.asked = Some(Asked { asked_at: now, ..asked });
                None
            }
            None => {
                self.asked_count += 1;
                let (number, is_posted, is_accepted) = (self.asked_count, false, None);
                self.asked = Some(Asked { number, action, asked_at: now, is_posted, is_accepted });
                None
            }
        }
    }

    fn reading(&mut self, now: Instant) -> Option<(u8, Reading)> {
        self.readings.next(now)
    }

    fn mode(&mut self, mode: Mode) {
        self.mode = Some(mode);
    }

    fn apply(&mut self, controls: &Controls, now: Instant) -> Result<(), Fault> {
        self.follow(controls, self.mode, now);
        Ok(())
    }

    fn apply_alone(&mut self, controls: &Controls, now: Instant) -> Result<(), Fault> {
        self.follow(controls, None, now);
        Ok(())
    }
}

impl Drop for Detached {
    /// Waits for the last turn, at most [`LIMIT`]; if it has not ended well then, sends the safe
    /// bytes.
    fn drop(&mut self) {
        let last = self.judge.posted;
        let mut exchange = self.shared.lock();
        let is_open = |exchange: &mut Exchange| {
            exchange.outcome.as_ref().is_none_or(|outcome| outcome.number < last)
        };
        if last > 0 {
            let waited = self.shared.changed.wait_timeout_while(exchange, LIMIT, is_open);
            (exchange, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let outcome = exchange.outcome.take();
        let is_done = outcome.is_some_and(|it| it.number == last && it.done.is_some());
        exchange.is_over = true;
        drop(exchange);
        self.shared.changed.notify_all();
        if !is_done {
            self.send_safe();
        }
    }
}

/// Judge of the turns, on the thread of the frames.
#[derive(Debug)]
struct Judge {
    /// Number of the newest turn posted; 0 before the first.
    posted: u64,
    /// Number of the newest turn that has ended.
    ended: u64,
    /// Time for which a turn has been open since the last one ended, without this computer's own
    /// pauses.
    open_for: Duration,
    turned_at: Option<Instant>,
    known: MachineState,
    trouble: Option<Trouble>,
    /// True once a place has refused the safe bytes.
    is_refused: bool,
}

/// Reason for which the machine is unsafe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Trouble {
    fault: Fault,
    /// Number of a turn; a later one that ends well ends the trouble.
    until_after: u64,
}

impl Default for Judge {
    fn default() -> Self {
        let known =
            MachineState { faults: [Fault::Unreachable].into_iter().collect(), ..unknown() };
        Self {
            posted: 0,
            ended: 0,
            open_for: Duration::ZERO,
            turned_at: None,
            known,
            trouble: None,
            is_refused: false,
        }
    }
}

impl Judge {
    /// Updates the machine's state and its trouble by the turn that has ended since the last call.
    /// Without one, the machine becomes unsafe once a turn has been open for [`LIMIT`]. Called
    /// before the next turn is posted.
    fn turn(&mut self, outcome: Option<&Outcome>, now: Instant) {
        let passed = self.turned_at.replace(now).map_or(Duration::ZERO, |at| now.since(at));
        let Some(&Outcome { number, ref done, .. }) = outcome else {
            let is_open = self.ended < self.posted;
            // Of a pause of the whole computer, one turn counts.
            self.open_for += if is_open { passed.min(PERIOD) } else { Duration::ZERO };
            if self.open_for + JITTER >= LIMIT {
                self.fail(Fault::Unreachable, self.posted);
            }
            return;
        };
        self.ended = number;
        self.open_for = Duration::ZERO;
        match done {
            Some(done) => {
                self.known = done.state;
                if self.trouble.is_some_and(|trouble| number > trouble.until_after) {
                    self.trouble = None;
                    tracing::info!("the machine's calls end in time again");
                }
            }
            None => self.fail(Fault::Other, number),
        }
    }

    fn fail(&mut self, fault: Fault, until_after: u64) {
        let before = self.trouble;
        if before.is_none_or(|before| before.fault != fault || fault == Fault::Other) {
            self.trouble = Some(Trouble { fault, until_after });
        }
        if before.is_none() && fault == Fault::Unreachable {
            tracing::warn!(
                limit_ms = LIMIT.as_millis(),
                "a call of the machine has not returned in time: its safe bytes are sent"
            );
        }
    }

    fn state(&self, now: Instant) -> MachineState {
        match self.trouble {
            // Its age is below the limit.
            None => MachineState { measured_at: now, ..self.known },
            Some(Trouble { fault, .. }) => MachineState {
                measured_at: now,
                faults: self.known.faults.with(fault),
                notices: self.known.notices,
                ..unknown()
            },
        }
    }
}

/// Readings of the machine's values, and which of them were reported.
#[derive(Debug, Default)]
struct Readings {
    /// Values by their numbers.
    values: Vec<Value>,
    /// Number of the value that is looked at first.
    first: usize,
}

/// A value of the machine.
#[derive(Clone, Copy, Default, Debug)]
struct Value {
    /// Newest reading; `None` before the first.
    newest: Option<Reading>,
    /// Reading that was reported last, with its time; `None` before the first.
    told: Option<(Reading, Instant)>,
}

impl Readings {
    fn take(&mut self, readings: &[(u8, Reading)]) {
        for (number, reading) in readings {
            let at = usize::from(*number);
            if self.values.len() <= at {
                self.values.resize(at + 1, Value::default());
            }
            self.values[at].newest = Some(*reading);
        }
    }

    /// Returns the next reading to report: one that has changed, or was reported a second ago and
    /// may have been lost.
    fn next(&mut self, now: Instant) -> Option<(u8, Reading)> {
        let count = self.values.len();
        let at = (0..count).map(|step| (self.first + step) % count).find(|at| {
            let Value { newest, told } = &self.values[*at];
            newest.is_some_and(|newest| match told {
                None => true,
                Some((told, at)) => !is_same(told, &newest) || now.since(*at) >= REPEATED_AFTER,
            })
        })?;
        self.first = at + 1;
        let reading = self.values[at].newest?;
        self.values[at].told = Some((reading, now));
        Some((at as u8, reading))
    }
}

/// Returns whether two readings are the same, unknown numbers included.
fn is_same(a: &Reading, b: &Reading) -> bool {
    match (a, b) {
        (Reading::Number(a), Reading::Number(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

/// Returns a state of which nothing is known.
fn unknown() -> MachineState {
    let unknown = f32::NAN;
    MachineState {
        speed: unknown,
        sideways_speed: unknown,
        yaw_rate: unknown,
        steering_angle: unknown,
        ..MachineState::default()
    }
}

/// Time in which the calls of a turn must have ended, or the machine is unsafe: three turns.
const LIMIT: Duration = Duration::from_millis(30);
/// Time by which three turns may be shorter than that.
const JITTER: Duration = Duration::from_millis(2);
/// Time after which an unchanged reading is reported again.
const REPEATED_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use tautline_guard::Notice;

    use super::*;
    use crate::safe::To;

    /// Both ends, and the actuator that receives the safe bytes.
    struct Rig {
        machine: Option<Detached>,
        worker: Worker,
        actuator: UdpSocket,
        now: Instant,
    }

    impl Rig {
        fn new() -> Self {
            let actuator = UdpSocket::bind("127.0.0.1:0").unwrap();
            actuator.set_nonblocking(true).unwrap();
            let to = To::Udp(actuator.local_addr().unwrap());
            let safe = vec![Safe::open(to, b"stop".to_vec()).unwrap()];
            let (machine, worker) = detached(Vec::new(), safe, None);
            Self { machine: Some(machine), worker, actuator, now: Instant::ZERO }
        }

        /// Takes a turn of the frames, `gap` ms after the last; returns the state then reported.
        fn turn(&mut self, gap: u64, throttle: f32) -> MachineState {
            self.now += Duration::from_millis(gap);
            let machine = self.machine.as_mut().unwrap();
            let state = machine.state(self.now);
            machine.mode(Mode::Driving);
            let controls = Controls { throttle, ..Controls::default() };
            machine.apply(&controls, self.now).unwrap();
            state
        }

        /// Takes a turn in which the guard asks for an action; returns the answer.
        fn asked(&mut self, action: u8) -> Option<bool> {
            self.now += PERIOD;
            let machine = self.machine.as_mut().unwrap();
            let answer = machine.request(action, self.now);
            machine.apply(&Controls::default(), self.now).unwrap();
            answer
        }

        fn take(&mut self) -> Turn {
            match self.worker.next(Duration::ZERO) {
                Next::Turn(turn) => turn,
                other => panic!("{other:?}"),
            }
        }

        /// Takes a turn of the frames and answers it with a speed.
        fn answered(&mut self, speed: f32) -> MachineState {
            let state = self.turn(10, 0.5);
            self.take();
            self.worker.finish(of(MachineState { speed, ..MachineState::default() }));
            state
        }

        /// Returns the number of times that the safe bytes have arrived since the last call.
        fn sent(&self) -> usize {
            let mut buffer = [0; 8];
            std::iter::from_fn(|| self.actuator.recv(&mut buffer).ok()).count()
        }
    }

    fn of(state: MachineState) -> Option<Done> {
        Some(Done { state, ..Done::default() })
    }

    #[test]
    fn a_request_is_taken_once_and_its_answer_comes_back() {
        let mut rig = Rig::new();
        rig.answered(0.0);
        for (action, is_accepted) in [(3, true), (3, false), (4, true)] {
            assert_eq!(rig.asked(action), None);
            assert_eq!((rig.asked(action), rig.take().request), (None, Some(action)));
            rig.worker.finish(Some(Done { is_accepted, ..Done::default() }));
            assert_eq!((rig.asked(action), rig.asked(action)), (None, Some(is_accepted)));
            assert_eq!(rig.take().request, None);
            rig.worker.finish(Some(Done::default()));
            rig.turn(10, 0.0);
        }
        assert_eq!(rig.asked(1), None);
        assert_eq!(rig.take().request, Some(1));
        rig.worker.finish(None);
        assert_eq!((rig.asked(1), rig.asked(1)), (None, Some(false)), "it failed");
    }

    #[test]
    fn a_request_that_the_guard_has_given_up_does_not_begin() {
        let mut rig = Rig::new();
        rig.answered(0.0);
        rig.turn(10, 0.0);
        rig.take();
        for _ in 0..100 {
            assert_eq!(rig.asked(2), None, "a call hangs");
        }
        rig.turn(10, 0.0);
        rig.worker.finish(Some(Done::default()));
        assert_eq!(rig.take().request, None);
        rig.worker.finish(Some(Done::default()));
        assert_eq!((rig.asked(2), rig.take().request), (None, Some(2)), "it is asked anew");
    }

    #[test]
    fn readings_are_reported_when_they_change_and_each_second() {
        let mut readings = Readings::default();
        let at = Instant::from_millis;
        assert_eq!(readings.next(at(0)), None);
        let (volts, unknown) = (Reading::Number(24.0), Reading::Number(f32::NAN));
        readings.take(&[(0, volts), (2, unknown)]);
        assert_eq!(readings.next(at(10)), Some((0, volts)));
        assert!(matches!(readings.next(at(10)), Some((2, Reading::Number(it))) if it.is_nan()));
        readings.take(&[(0, volts), (2, unknown)]);
        assert_eq!(readings.next(at(20)), None);
        readings.take(&[(2, volts)]);
        assert_eq!(readings.next(at(30)), Some((2, volts)));
        assert_eq!((readings.next(at(1_009)), readings.next(at(1_010))), (None, Some((0, volts))));
    }

    #[test]
    fn turns_go_to_the_worker_and_their_state_comes_back() {
        let mut rig = Rig::new();
        let first = rig.turn(10, 0.1);
        assert!(first.speed.is_nan() && first.faults.contains(Fault::Unreachable), "nothing known");
        rig.turn(10, 0.2);
        let turn = rig.take();
        assert_eq!((turn.controls.throttle, turn.mode), (0.2, Some(Mode::Driving)), "the newest");
        assert_eq!(rig.worker.next(Duration::ZERO), Next::Nothing);
        rig.worker.finish(of(MachineState { speed: 3.0, ..MachineState::default() }));
        rig.turn(10, 0.2);
        assert_eq!(rig.turn(10, 0.2).speed, 3.0);
        rig.machine.as_mut().unwrap().apply_alone(&Controls::default(), rig.now).unwrap();
        assert_eq!(rig.take().mode, None);
        assert_eq!(rig.sent(), 0);
    }

    #[test]
    fn a_call_of_30_ms_is_unsafe_until_a_later_one_ends() {
        let mut rig = Rig::new();
        rig.answered(3.0);
        rig.turn(10, 0.5);
        let hung = rig.take();
        for _ in 0..2 {
            rig.turn(10, 0.5);
        }
        assert_eq!((rig.sent(), rig.turn(0, 0.5).speed), (0, 3.0), "20 ms");
        rig.turn(10, 0.5);
        assert_eq!(rig.sent(), 1, "30 ms");
        let state = rig.turn(10, 0.5);
        assert!(state.speed.is_nan() && state.yaw_rate.is_nan());
        assert!(state.faults.contains(Fault::Unreachable) && state.measured_at == rig.now);
        for _ in 0..100 {
            rig.turn(10, 0.5);
        }
        assert_eq!(rig.sent(), 101, "every turn");
        rig.worker.finish(Some(Done::default()));
        rig.turn(10, 0.5);
        rig.turn(10, 0.5);
        assert!(rig.turn(10, 0.5).faults.contains(Fault::Unreachable), "the hung call alone ended");
        let next = rig.take();
        assert!(next.number > hung.number + 100, "old controls are not applied late");
        rig.worker.finish(of(MachineState { speed: 1.0, ..MachineState::default() }));
        rig.turn(10, 0.5);
        rig.sent();
        let state = rig.turn(10, 0.5);
        assert!((state.speed, state.faults.is_empty(), rig.sent()) == (1.0, true, 0), "{state:?}");
    }

    #[test]
    fn a_worker_that_takes_no_turn_is_late_too() {
        let mut rig = Rig::new();
        rig.answered(3.0);
        for _ in 0..3 {
            rig.turn(10, 0.5);
        }
        assert_eq!(rig.sent(), 0);
        rig.turn(10, 0.5);
        assert_eq!(rig.sent(), 1);
    }

    #[test]
    fn of_a_pause_of_the_computer_one_turn_counts() {
        let mut rig = Rig::new();
        rig.answered(3.0);
        rig.turn(10, 0.5);
        rig.turn(80, 0.5);
        rig.turn(0, 0.5);
        assert_eq!(rig.sent(), 0);
        rig.take();
        rig.worker.finish(Some(Done::default()));
        assert!(rig.turn(10, 0.5).faults.is_empty());
    }

    #[test]
    fn a_call_that_fails_is_unsafe_until_the_next_ends_well() {
        let mut rig = Rig::new();
        rig.answered(3.0);
        for _ in 0..5 {
            rig.turn(10, 0.5);
            rig.take();
            rig.worker.finish(None);
        }
        assert_eq!(rig.sent(), 4);
        let state = rig.answered(2.0);
        assert!(state.speed.is_nan() && state.faults.contains(Fault::Other));
        assert_eq!(rig.sent(), 1, "the last failure");
        rig.answered(2.0);
        assert_eq!((rig.answered(2.0).speed, rig.sent()), (2.0, 0));
    }

    #[test]
    fn a_stop_input_stays_reported_while_calls_hang() {
        let mut rig = Rig::new();
        rig.turn(10, 0.5);
        rig.take();
        let notices = [Notice::LocalStop].into_iter().collect();
        rig.worker.finish(of(MachineState { notices, ..MachineState::default() }));
        for _ in 0..9 {
            rig.turn(10, 0.5);
        }
        let state = rig.turn(10, 0.5);
        assert!(state.speed.is_nan() && state.notices.contains(Notice::LocalStop));
    }

    #[test]
    fn the_end_waits_for_the_last_turn_or_sends_the_safe_bytes() {
        for is_answered in [true, false] {
            let mut rig = Rig::new();
            rig.answered(0.0);
            rig.turn(10, 0.0);
            let machine = rig.machine.take();
            let ending = std::thread::spawn(move || drop(machine));
            rig.take();
            if is_answered {
                rig.worker.finish(Some(Done::default()));
            }
            ending.join().unwrap();
            assert_eq!(rig.worker.next(Duration::ZERO), Next::Over);
            assert_eq!(rig.sent(), usize::from(!is_answered));
        }
    }
}
