//! The machine's side of the connection to the guard, for any machine.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tautline_guard::description::Item;
use tautline_guard::frame::{Control, Frame, Receiver, Sender};
use tautline_guard::{
    Answered, Axes, Controls, LateFrames, Machine, MachineState, Mode, Notice, PERIOD, Pauses,
    Request, Twist, left_alone,
};
use tautline_net::clock::Clock;
use tautline_net::datagram::{Address, Client};
use tautline_net::realtime;
use tautline_units::Instant;

use crate::describer::Describer;

/// Settings of the brake that a machine's side applies without a guard.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// Age of the newest control frame above which the machine brakes; default 30 ms.
    pub control_timeout: Duration,
    /// Share of the service brake that an Ackermann machine applies while it moves, 0 to 1; default
    /// 0.5.
    pub brake: f32,
    /// Deceleration along its way of any machine that is not an Ackermann machine, m/s²; default 1.
    pub deceleration: f32,
    /// Deceleration of the turn of any machine that is not an Ackermann machine, rad/s²; default 2.
    pub yaw_deceleration: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            control_timeout: Duration::from_millis(30),
            brake: 0.5,
            deceleration: 1.0,
            yaw_deceleration: 2.0,
        }
    }
}

/// Serves `machine` to the guard at `guard`, at the machine's own rate, until `stop` is set and the
/// machine is stationary.
///
/// The machine applies the last controls until their age exceeds
/// [`control_timeout`](Settings::control_timeout). The age counts from their sending, without this
/// thread's own pauses ([`Pauses`]). Then the machine brakes by itself along its current arc,
/// switches its hazard lights on, and holds with both brakes. It reports this, and follows the
/// guard again after the next control frame.
///
/// Once `stop` is set, it ignores the guard and brakes in the same way. A machine that still moves
/// after 30 s is left with its full brake applied.
///
/// # Panics
/// When a call of the machine panics; its full brake is applied first. At once if the machine's
/// description has a [`Flaw`](tautline_guard::description::Flaw), naming the item.
pub fn serve(
    machine: impl Machine,
    guard: &Address,
    settings: Settings,
    clock: Clock,
    stop: &AtomicBool,
) {
    realtime::raise_thread("the machine", realtime::Urgency::Safety);
    let mut served = Served::new(machine, guard, settings, clock.now());
    let ended = catch_unwind(AssertUnwindSafe(|| served.follow(&clock, stop)));
    served.leave(clock.now());
    if let Err(panic) = ended {
        resume_unwind(panic);
    }
}

/// A machine and its connection to the guard.
struct Served<M> {
    machine: M,
    client: Client,
    sender: Sender,
    follower: Follower,
    describer: Describer,
    /// Answer to the newest request; `None` before the first.
    answered: Option<Answered>,
    tell_at: Instant,
}

impl<M: Machine> Served<M> {
    fn new(machine: M, guard: &Address, settings: Settings, now: Instant) -> Self {
        let items = machine.description().to_vec();
        let describer = Describer::new(&items);
        Self {
            machine,
            client: Client::new(guard),
            sender: Sender::default(),
            follower: Follower::new(settings, items, now),
            describer,
            answered: None,
            tell_at: now,
        }
    }

    /// Calls [`turn`](Self::turn) at the machine's period, 1 to 10 ms, until `stop` is set and the
    /// machine may be left.
    fn follow(&mut self, clock: &Clock, stop: &AtomicBool) {
        let period = self.machine.period().clamp(PERIOD_MIN, PERIOD);
        let mut due = clock.now();
        loop {
            let now = clock.now();
            if stop.load(Ordering::Relaxed) {
                self.follower.end(now);
            }
            if self.turn(|| clock.now()) {
                return;
            }
            due += period;
            let now = clock.now();
            if now.since(due) > PERIOD {
                due = now;
            }
            clock.sleep_until(due);
        }
    }

    /// Receives the newest control and applies controls. Reports the state if a report is due,
    /// every [`PERIOD`], or if the machine may be left; returns whether it may.
    fn turn(&mut self, clock: impl Fn() -> Instant) -> bool {
        let now = self.follower.receive(&mut self.client, clock);
        let state = self.machine.state(now);
        let controls = self.follower.controls(&state, now);
        let applied = match self.follower.follows(now) {
            true => {
                self.answer(now);
                self.machine.mode(self.follower.mode);
                self.machine.apply(&controls, now)
            }
            false => self.machine.apply_alone(&controls, now),
        };
        let fault = applied.err();
        let is_last = self.follower.may_leave(&state, now);
        if now >= self.tell_at || is_last {
            self.tell_at = (self.tell_at + PERIOD).max(now);
            let mut told = self.follower.told(state, now);
            if let Some(fault) = fault {
                told.faults = told.faults.with(fault);
            }
            told.answered = self.answered;
            told.description = self.describer.revision();
            // Without a guard the send fails; the next turn sends again.
            self.client.send(&self.sender.encode(&told));
            self.describer.send(&mut self.machine, &mut self.client, now);
        }
        is_last
    }

    /// Passes a new request to the machine until it is answered, and keeps the answer.
    fn answer(&mut self, now: Instant) {
        let Some(Request { number, action }) = self.follower.request else { return };
        if self.answered.is_none_or(|answered| answered.number != number)
            && let Some(is_accepted) = self.machine.request(action, now)
        {
            self.answered = Some(Answered { number, is_accepted });
        }
    }

    /// Applies the last controls before the process ends: the full brake, no throttle, axes and
    /// actions as after a stop.
    fn leave(&mut self, now: Instant) {
        let controls = Controls {
            throttle: 0.0,
            brake: 1.0,
            twist: Twist::ZERO,
            ..self.follower.stopped(&self.follower.applied, &Axes::NONE, f32::INFINITY)
        };
        // Nobody remains to receive a report of the fault.
        let _ = self.machine.apply_alone(&controls, now);
    }
}

/// State machine that follows the guard, or brakes without it.
#[derive(Debug)]
struct Follower {
    settings: Settings,
    items: Vec<Item>,
    receiver: Receiver<Control>,
    late: LateFrames,
    /// Newest controls of the guard.
    controls: Controls,
    /// Newest request of the guard; `None` without one.
    request: Option<Request>,
    /// Mode of the guard in the newest control frame.
    mode: Mode,
    /// Controls of the last turn, the guard's or its own, and the time of that turn.
    applied: Controls,
    applied_at: Instant,
    /// Time at which the newest control was sent, by this clock; `None` before the first.
    heard_at: Option<Instant>,
    pauses: Pauses,
    turned_at: Option<Instant>,
    /// Time at which the machine last braked by itself after a first control frame; `None` before
    /// that.
    silent_at: Option<Instant>,
    /// Time since which the machine brakes by itself, and the twist that it then had; `None` while
    /// it follows the guard.
    alone: Option<(Instant, Twist)>,
    /// Time since which the machine ignores the guard in order to end; `None` before.
    ends_since: Option<Instant>,
}

impl Follower {
    fn new(settings: Settings, items: Vec<Item>, now: Instant) -> Self {
        let controls = Controls { brake: 1.0, ..Controls::default() };
        Self {
            settings,
            items,
            receiver: Receiver::default(),
            late: LateFrames::default(),
            controls,
            request: None,
            mode: Mode::Held,
            applied: controls,
            applied_at: now,
            heard_at: None,
            pauses: Pauses::default(),
            turned_at: None,
            silent_at: None,
            alone: None,
            ends_since: None,
        }
    }

    /// Starts the end: from now on the guard is ignored.
    fn end(&mut self, now: Instant) {
        self.ends_since.get_or_insert(now);
    }

    /// Returns whether the machine may be left: its end has begun, and it is stationary or
    /// [`END_MAX`] has passed since.
    fn may_leave(&self, state: &MachineState, now: Instant) -> bool {
        self.ends_since.is_some_and(|since| stands(state) || now.since(since) >= END_MAX)
    }

    /// Receives the newest control; frames that waited during a pause of this thread are discarded
    /// as old. Returns the time of the turn, which is read after receiving so that no frame is
    /// newer.
    fn receive(&mut self, client: &mut Client, clock: impl Fn() -> Instant) -> Instant {
        let mut buffer = [0; Control::BYTES + 1];
        let mut newest = None;
        for _ in 0..DATAGRAMS_MAX {
            let Some(length) = client.receive(&mut buffer) else { break };
            newest = self.receiver.receive(&buffer[..length]).ok().or(newest);
        }
        let now = clock();
        self.take(newest, now);
        now
    }

    /// Takes the newest control of a turn, if one arrived; it is discarded after a pause of this
    /// thread of `control_timeout` or longer.
    fn take(&mut self, newest: Option<Control>, now: Instant) {
        let stood = self.turned_at.replace(now).map_or(Duration::ZERO, |at| now.since(at));
        self.pauses.turn(stood);
        if let Some(control) = newest.filter(|_| stood < self.settings.control_timeout) {
            self.handle(&control, now);
        }
    }

    fn handle(&mut self, control: &Control, now: Instant) {
        let late = self.late.handle(control.source, now);
        self.controls = control.controls.sane();
        self.request = control.request;
        self.mode = control.mode;
        self.heard_at = Some(now - late);
        self.pauses.hear();
    }

    /// Returns the controls for the machine: the newest of the guard, or if they are too old or the
    /// end has begun, those of its own braking.
    fn controls(&mut self, state: &MachineState, now: Instant) -> Controls {
        let elapsed = now.since(self.applied_at).as_secs_f32();
        self.applied = match self.follows(now) {
            true => {
                self.alone = None;
                self.controls
            }
            false => {
                let braked = self.braked(state, now);
                self.stopped(&braked, &state.axes, elapsed)
            }
        };
        self.applied_at = now;
        self.applied
    }

    /// Returns these controls with axes and actions as the machine's description says for a stop,
    /// `seconds` after those applied last.
    fn stopped(&self, controls: &Controls, measured: &Axes, seconds: f32) -> Controls {
        let was_driven = self.heard_at.is_some();
        let (axes, actions) = left_alone(&self.items, &self.applied, measured, was_driven, seconds);
        Controls { axes, actions, ..*controls }
    }

    /// Returns the controls of a machine that brakes by itself, along its present arc.
    fn braked(&mut self, state: &MachineState, now: Instant) -> Controls {
        let (since, twist) = *self.alone.get_or_insert((now, self.controls.twist));
        if self.heard_at.is_some() {
            self.silent_at = Some(now);
        }
        let stands = stands(state);
        let brake = if stands { 1.0 } else { self.settings.brake };
        let Settings { deceleration, yaw_deceleration, .. } = self.settings;
        let passed = now.since(since).as_secs_f32();
        let slowed = twist.slowed(deceleration, yaw_deceleration, passed);
        Controls {
            throttle: 0.0,
            brake: brake.max(self.controls.brake),
            parking_brake: stands || self.controls.parking_brake,
            twist: if stands { Twist::ZERO } else { slowed },
            ..self.controls
        }
    }

    /// Returns whether the newest controls of the guard are applied: they are young enough, and the
    /// end has not begun.
    fn follows(&self, now: Instant) -> bool {
        let silence = self.heard_at.map(|at| self.pauses.count(now.since(at)));
        let is_heard = silence.is_some_and(|silence| silence <= self.settings.control_timeout);
        is_heard && self.ends_since.is_none()
    }

    /// Returns `state` as it is reported to the guard: with a notice while and for [`SILENT_TOLD`]
    /// after the machine braked by itself.
    fn told(&self, state: MachineState, now: Instant) -> MachineState {
        let was_silent = self.silent_at.is_some_and(|at| now.since(at) < SILENT_TOLD);
        let notices = state.notices.with_if(Notice::GuardSilent, was_silent);
        MachineState { notices, ..state }
    }
}

/// Returns whether the machine counts as stationary: neither one with unknown speed does, nor one
/// that turns on the spot.
fn stands(state: &MachineState) -> bool {
    let moves = |value: f32| value.abs() >= STANDING_SPEED;
    state.speed.abs() < STANDING_SPEED && !moves(state.sideways_speed) && !moves(state.yaw_rate)
}

/// Minimum time between two turns: a machine gets at most a thousand a second.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// Speed in m/s, and yaw rate in rad/s, below which the machine counts as stationary.
const STANDING_SPEED: f32 = 0.05;
/// Time for which a silence of the guard is still reported after its end: ten frames, the maximum
/// loss within one sequence.
const SILENT_TOLD: Duration = Duration::from_millis(100);
/// Time of braking after which a machine is left though it moves: it has no working brake, or does
/// not know its speed.
const END_MAX: Duration = Duration::from_secs(30);
const DATAGRAMS_MAX: usize = 32;

#[cfg(test)]
mod c_port;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock, Mutex};

    use tautline_guard::description::Action;
    use tautline_guard::{Fault, PERIOD};
    use tautline_net::datagram::Server;
    use tautline_testtrack::{Autopilot, STEERING_ANGLE_MAX, WHEELBASE, World};

    use super::*;

    /// A machine that its brake slows by up to 8 m/s², and that never accelerates.
    #[derive(Default)]
    struct Cart {
        speed: f32,
        controls: Controls,
        moved_until: Instant,
    }

    /// Lights and horn of a car.
    static LAMPS: LazyLock<[Item; 6]> = LazyLock::new(|| Action::of_car().map(Item::Action));

    impl Machine for Cart {
        fn description(&self) -> &[Item] {
            &*LAMPS
        }

        fn period(&self) -> Duration {
            PERIOD
        }

        fn state(&mut self, now: Instant) -> MachineState {
            let seconds = now.since(self.moved_until).as_secs_f32();
            self.moved_until = now;
            self.speed = (self.speed - 8.0 * self.controls.brake * seconds).max(0.0);
            MachineState { speed: self.speed, ..MachineState::default() }
        }

        fn apply(&mut self, controls: &Controls, _now: Instant) -> Result<(), Fault> {
            self.controls = *controls;
            Ok(())
        }
    }

    /// A machine that panics once throttle is applied.
    struct Failing(Arc<Mutex<Controls>>);

    impl Machine for Failing {
        fn description(&self) -> &[Item] {
            &*LAMPS
        }

        fn period(&self) -> Duration {
            PERIOD
        }

        fn state(&mut self, _now: Instant) -> MachineState {
            let throttle = self.0.lock().unwrap().throttle;
            assert!(throttle == 0.0, "a bug of the machine's");
            MachineState::default()
        }

        fn apply(&mut self, controls: &Controls, _now: Instant) -> Result<(), Fault> {
            *self.0.lock().unwrap() = *controls;
            Ok(())
        }
    }

    /// Returns the follower of a car, which declares its lights.
    fn follower() -> Follower {
        Follower::new(Settings::default(), LAMPS.to_vec(), Instant::ZERO)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn guard() -> (Server, Address) {
        let guard = Server::open(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let address = guard.local_address().unwrap();
        (guard, address)
    }

    fn control(controls: Controls, source: Instant) -> Control {
        Control { source, controls, ..Control::default() }
    }

    /// Answers the machine's report, if one has arrived, with a control frame that requests
    /// throttle; returns whether that was sent.
    fn give_throttle(guard: &Server, counter: &mut Sender, now: Instant) -> bool {
        let mut buffer = [0; MachineState::BYTES];
        let Some((_, machine)) = guard.receive(&mut buffer) else { return false };
        let throttle = Controls { throttle: 0.6, ..Controls::default() };
        guard.send(&counter.encode(&control(throttle, now)), &machine)
    }

    fn driven() -> (Follower, MachineState) {
        let mut follower = follower();
        let controls = Controls { throttle: 0.6, steering: 0.2, ..Controls::default() };
        follower.handle(&control(controls, at(100)), at(100));
        (follower, MachineState { speed: 8.0, ..MachineState::default() })
    }

    #[test]
    fn the_last_controls_hold_until_the_control_timeout() {
        let (mut follower, state) = driven();
        assert_eq!(follower.controls(&state, at(130)).throttle, 0.6);
        assert!(!follower.told(state, at(130)).notices.contains(Notice::GuardSilent));
        let alone = follower.controls(&state, at(131));
        assert_eq!((alone.throttle, alone.brake, alone.steering), (0.0, 0.5, 0.2));
        assert!(alone.actions.contains(Action::HAZARD) && !alone.parking_brake);
        assert!(follower.told(state, at(131)).notices.contains(Notice::GuardSilent));
        let stands = MachineState::default();
        let held = follower.controls(&stands, at(2_000));
        assert!(held.brake == 1.0 && held.parking_brake);
    }

    #[test]
    fn a_car_that_brakes_by_itself_keeps_the_arc_that_it_was_on() {
        for stretch in 0..48_u64 {
            let (mut world, mut now) = (World::new(stretch % 4), at(1_000));
            let until = at(9_000 + 1_000 * (stretch / 4) * 3);
            while now < until {
                let controls = Autopilot::default().controls(world.course(), world.car());
                world.step(&controls, PERIOD);
                now += PERIOD;
            }
            let held = *world.car();
            // The wheel has yet to follow the last control frame, which turns it by this much in a
            // period.
            let rate = (20.0 * WHEELBASE / (held.speed * held.speed)).min(1.05);
            let ahead = rate * PERIOD.as_secs_f64() * if stretch % 2 == 0 { 1.0 } else { -1.0 };
            let steering = ((held.steering_angle + ahead) / STEERING_ANGLE_MAX) as f32;
            let last = Controls { steering, throttle: 0.5, ..Controls::default() };
            let mut follower = follower();
            follower.handle(&control(last, now), now);
            while world.car().speed > 0.0 {
                let state =
                    MachineState { speed: world.car().speed as f32, ..MachineState::default() };
                world.step(&follower.controls(&state, now), PERIOD);
                now += PERIOD;
                let off_arc = world.car().off_arc(&held);
                assert!(off_arc < 0.5, "{off_arc} m off, stretch {stretch}, {held:?}");
                assert!(now < until + Duration::from_secs(10), "it stops: {held:?}");
            }
        }
    }

    #[test]
    fn a_pause_of_the_machine_is_not_silence_of_the_guard() {
        let (mut follower, state) = driven();
        let (_guard, address) = guard();
        let mut client = Client::new(&address);
        follower.receive(&mut client, || at(105));
        follower.receive(&mut client, || at(145));
        assert_eq!(follower.controls(&state, at(145)).throttle, 0.6);
        follower.receive(&mut client, || at(155));
        follower.receive(&mut client, || at(160));
        assert_eq!(follower.controls(&state, at(160)).throttle, 0.6);
        follower.receive(&mut client, || at(161));
        assert_eq!(follower.controls(&state, at(161)).throttle, 0.0);
        follower.handle(&control(follower.controls, at(165)), at(165));
        follower.receive(&mut client, || at(965));
        assert_eq!(follower.controls(&state, at(965)).throttle, 0.0, "so long is too long");
    }

    /// A machine's thread that is paused just after it read its clock, before it receives, or at
    /// any other place: frames that arrive meanwhile are not early.
    #[test]
    fn frames_received_during_a_machine_pause_make_no_control_late() {
        for stood in [0, 20, 75, 106, 400] {
            let (guard, address) = guard();
            let mut client = Client::new(&address);
            assert!(client.send(b"a name to be answered at"));
            let (_, machine) = guard.receive(&mut [0; 64]).expect("loopback delivers at once");
            let (mut follower, mut counter) = (follower(), Sender::default());
            let mut say = |millis: u64| {
                let throttle = Controls { throttle: 0.6, ..Controls::default() };
                assert!(
                    guard.send(&counter.encode(&control(throttle, at(7_000 + millis))), &machine)
                );
            };
            let (mut now, mut heard) = (0, 0);
            for turn in 0..1_000_u64 {
                now += 10;
                if turn == 100 {
                    let looked = std::cell::RefCell::new((now, &mut say));
                    follower.receive(&mut client, || {
                        let (now, say) = &mut *looked.borrow_mut();
                        let looked_at = *now;
                        (looked_at..looked_at + stood).step_by(10).for_each(&mut **say);
                        *now += stood;
                        at(looked_at + 1)
                    });
                    now = looked.into_inner().0;
                    continue;
                }
                say(now);
                follower.receive(&mut client, || at(now + 1));
                let is_followed =
                    follower.controls(&MachineState::default(), at(now + 1)).throttle > 0.0;
                heard += u64::from(turn > 101 && is_followed);
            }
            assert_eq!(heard, 898, "of the turns that follow, after {stood} ms");
        }
    }

    #[test]
    fn lateness_of_a_control_counts_as_silence() {
        let (mut follower, state) = driven();
        // A queue in which each frame waits 2 ms longer than the one before.
        for number in 1..=20 {
            let (sent, late) = (100 + 10 * number, 2 * number);
            follower.handle(&control(follower.controls, at(sent)), at(sent + late));
            let is_followed = follower.controls(&state, at(sent + late)).throttle > 0.0;
            assert_eq!(is_followed, late <= 30, "{late} ms");
        }
    }

    #[test]
    fn a_restarted_guard_with_another_clock_is_not_late() {
        let (mut follower, state) = driven();
        for counted in 0..20 {
            let (source, now) = (900 + 10 * counted, 3_000 + 10 * counted);
            follower.handle(&control(follower.controls, at(source)), at(now));
            assert_eq!(follower.controls(&state, at(now)).throttle, 0.6);
        }
    }

    #[test]
    fn a_request_reaches_the_machine_until_it_is_answered() {
        /// A machine that accepts its first request alone, and counts the calls.
        struct Docking(Vec<u8>);

        impl Machine for Docking {
            fn period(&self) -> Duration {
                PERIOD
            }

            fn state(&mut self, _now: Instant) -> MachineState {
                MachineState::default()
            }

            fn apply(&mut self, _controls: &Controls, _now: Instant) -> Result<(), Fault> {
                Ok(())
            }

            fn request(&mut self, action: u8, _now: Instant) -> Option<bool> {
                self.0.push(action);
                // The first one is decided at the second call.
                (self.0.len() > 1).then_some(self.0.len() == 2)
            }
        }

        let (guard, address) = guard();
        let mut served = Served::new(Docking(vec![]), &address, Settings::default(), at(0));
        let mut counter = Sender::default();
        let mut buffer = [0; MachineState::BYTES];
        let mut turn = |millis, request| {
            served.turn(|| at(millis));
            let (_, machine) = guard.receive(&mut buffer).expect("loopback delivers at once");
            let (state, _) = tautline_guard::frame::decode::<MachineState>(&buffer).unwrap();
            let control = Control { request, ..control(Controls::default(), at(millis)) };
            assert!(guard.send(&counter.encode(&control), &machine));
            (state.answered, served.machine.0.clone())
        };
        let dock = Some(Request { number: 7, action: 3 });
        assert_eq!(turn(0, dock), (None, vec![]));
        let accepted = Some(Answered { number: 7, is_accepted: true });
        assert_eq!(turn(10, dock), (None, vec![3]), "not decided yet");
        assert_eq!(turn(20, dock), (accepted, vec![3, 3]));
        assert_eq!(turn(30, dock), (accepted, vec![3, 3]), "the frame came again");
        turn(40, Some(Request { number: 8, action: 3 }));
        let refused = Some(Answered { number: 8, is_accepted: false });
        assert_eq!(turn(50, None), (refused, vec![3, 3, 3]));
    }

    #[test]
    fn a_returning_guard_is_followed_and_notified_of_its_silence() {
        let (mut follower, state) = driven();
        follower.controls(&state, at(140));
        let brake = Controls { brake: 0.3, ..Controls::default() };
        follower.handle(&control(brake, at(150)), at(150));
        assert_eq!(follower.controls(&state, at(150)), brake);
        assert!(follower.told(state, at(200)).notices.contains(Notice::GuardSilent));
        assert!(!follower.told(state, at(300)).notices.contains(Notice::GuardSilent));
    }

    #[test]
    fn an_unknown_speed_is_braked_and_never_counts_as_standstill() {
        let (mut follower, state) = driven();
        let unknown = MachineState { speed: f32::NAN, ..state };
        let alone = follower.controls(&unknown, at(500));
        assert!(alone.brake == 0.5 && !alone.parking_brake);
    }

    #[test]
    fn a_machine_with_a_twist_slows_on_its_arc_when_alone() {
        let twist = Twist { forward: 1.0, sideways: 0.0, yaw_rate: 0.5 };
        let mut follower = follower();
        follower.handle(&control(Controls { twist, ..Controls::default() }, at(100)), at(100));
        let turning = MachineState { yaw_rate: 0.5, ..MachineState::default() };
        assert_eq!(follower.controls(&turning, at(110)).twist, twist);
        for passed in (0..1_000).step_by(10) {
            let alone = follower.controls(&turning, at(140 + passed));
            let left = 1.0 - passed as f32 * 1e-3;
            assert!((alone.twist.forward - left).abs() < 1e-3, "{alone:?}");
            assert!((alone.twist.yaw_rate - 0.5 * left).abs() < 1e-3, "{alone:?}");
            assert!(!alone.parking_brake, "a turn on the spot is motion");
        }
        let alone = follower.controls(&MachineState::default(), at(1_200));
        assert!(alone.parking_brake && alone.twist == Twist::ZERO);
    }

    #[test]
    fn before_the_first_control_the_machine_brakes_without_notice() {
        let mut follower = follower();
        let stands = MachineState::default();
        assert_eq!(follower.controls(&stands, at(5)).brake, 1.0);
        assert!(follower.told(stands, at(5)).notices.is_empty());
    }

    #[test]
    fn a_machine_process_ends_only_at_standstill() {
        let (guard, address) = guard();
        let cart = Cart { speed: 4.0, ..Cart::default() };
        let mut served = Served::new(cart, &address, Settings::default(), at(0));
        let mut counter = Sender::default();
        let mut turn = |served: &mut Served<Cart>, now: Instant| {
            let is_last = served.turn(|| now);
            assert!(give_throttle(&guard, &mut counter, now), "loopback delivers at once");
            is_last
        };
        assert!(!turn(&mut served, at(0)) && !turn(&mut served, at(10)));
        assert_eq!(served.machine.controls.throttle, 0.6);
        served.follower.end(at(15));
        let left_at = (20..2_000).step_by(10).find(|millis| {
            let is_last = turn(&mut served, at(*millis));
            assert_eq!(served.machine.controls.throttle, 0.0);
            is_last
        });
        assert!(left_at.is_some() && served.machine.speed < STANDING_SPEED, "{left_at:?}");
        served.leave(at(2_000));
        let left = served.machine.controls;
        assert_eq!((left.throttle, left.brake, left.parking_brake), (0.0, 1.0, true));
        assert!(left.actions.contains(Action::HAZARD));
    }

    #[test]
    fn a_machine_that_does_not_stand_is_left_after_half_a_minute() {
        let (mut follower, state) = driven();
        let unknown = MachineState { speed: f32::NAN, ..state };
        assert!(!follower.may_leave(&MachineState::default(), at(105)), "nobody asked it to");
        follower.end(at(110));
        follower.end(at(20_000));
        assert_eq!(follower.controls(&state, at(111)).throttle, 0.0);
        for state in [state, unknown] {
            assert!(!follower.may_leave(&state, at(30_109)));
            assert!(follower.may_leave(&state, at(30_110)));
        }
    }

    #[test]
    fn a_machine_that_panics_is_left_on_its_full_brake() {
        let (guard, address) = guard();
        let applied = Arc::<Mutex<Controls>>::default();
        let machine = Failing(applied.clone());
        let serving = std::thread::spawn(move || {
            let stop = AtomicBool::new(false);
            serve(machine, &address, Settings::default(), Clock::start(), &stop);
        });
        let (mut counter, clock) = (Sender::default(), Clock::start());
        while !serving.is_finished() {
            give_throttle(&guard, &mut counter, clock.now());
            std::thread::yield_now();
        }
        assert!(serving.join().is_err(), "the panic reaches the caller");
        let left = *applied.lock().unwrap();
        assert_eq!((left.throttle, left.brake), (0.0, 1.0));
        assert!(left.actions.contains(Action::HAZARD));
    }
}
