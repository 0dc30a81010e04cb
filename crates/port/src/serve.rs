//! Any machine behind the guard's port.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tautline_guard::frame::{Control, Frame, Receiver, Sender};
use tautline_guard::{Controls, Machine, MachineState, Notice, PERIOD, Pauses, Signal};
use tautline_net::clock::Clock;
use tautline_net::datagram::{Address, Client};
use tautline_net::realtime;
use tautline_units::Instant;

/// What a machine's side does by itself.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// Time without a control after which it brakes; default 30 ms.
    pub silence: Duration,
    /// Share of the service brake with which it does; default 0.5.
    pub brake: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { silence: Duration::from_millis(30), brake: 0.5 }
    }
}

/// Serves `machine` to the guard at `guard`, at the machine's own rate, until `stop` is set.
///
/// The machine goes on by the controls that came last until none has come for
/// [`silence`](Settings::silence), of which what this thread itself stood still does not count
/// ([`Pauses`]). Then it brakes by itself along the arc that it was on, its hazard
/// lights on, and stands on both brakes; it says so, and begins to follow again with the next control.
pub fn serve(
    mut machine: impl Machine,
    guard: &Address,
    settings: Settings,
    clock: Clock,
    stop: &AtomicBool,
) {
    realtime::raise_thread("the machine", realtime::Urgency::Safety);
    let period = machine.period().clamp(PERIOD_MIN, PERIOD);
    let (mut client, mut sender) = (Client::new(guard), Sender::default());
    let mut follower = Follower::new(settings);
    let (mut due, mut tell_at) = (clock.now(), clock.now());
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        follower.receive(&mut client, now);
        let state = machine.state(now);
        let controls = follower.controls(&state, now);
        let fault = machine.apply(&controls, now).err();
        if now >= tell_at {
            tell_at = (tell_at + PERIOD).max(now);
            let mut told = follower.told(state, now);
            if let Some(fault) = fault {
                told.faults = told.faults.with(fault);
            }
            // A guard that is not there is tried again with the next one.
            client.send(&sender.encode(&told));
        }
        due += period;
        let now = clock.now();
        if now.since(due) > PERIOD {
            due = now;
        }
        clock.sleep_until(due);
    }
}

/// What follows the guard, or brakes without it.
#[derive(Debug)]
struct Follower {
    settings: Settings,
    receiver: Receiver<Control>,
    controls: Controls,
    heard_at: Option<Instant>,
    pauses: Pauses,
    turned_at: Option<Instant>,
    /// When it last braked by itself.
    silent_at: Option<Instant>,
}

impl Follower {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            receiver: Receiver::default(),
            controls: Controls { brake: 1.0, ..Controls::default() },
            heard_at: None,
            pauses: Pauses::default(),
            turned_at: None,
            silent_at: None,
        }
    }

    /// Takes the newest control that has come; what waited while this thread stood still is old.
    fn receive(&mut self, client: &mut Client, now: Instant) {
        let stood = self.turned_at.replace(now).map_or(Duration::ZERO, |at| now.since(at));
        self.pauses.turn(stood);
        let mut buffer = [0; Control::BYTES + 1];
        for _ in 0..DATAGRAMS_MAX {
            let Some(length) = client.receive(&mut buffer) else { return };
            let received = self.receiver.receive(&buffer[..length]);
            if let (Ok(control), true) = (received, stood < self.settings.silence) {
                self.handle(&control, now);
            }
        }
    }

    fn handle(&mut self, control: &Control, now: Instant) {
        self.controls = control.controls.sane();
        self.heard_at = Some(now);
        self.pauses.hear();
    }

    /// Returns what the machine is to do.
    fn controls(&mut self, state: &MachineState, now: Instant) -> Controls {
        let silence = self.heard_at.map(|at| self.pauses.count(now.since(at)));
        if silence.is_some_and(|silence| silence <= self.settings.silence) {
            return self.controls;
        }
        if self.heard_at.is_some() {
            self.silent_at = Some(now);
        }
        let stands = state.speed.abs() < STANDING_SPEED;
        let brake = if stands { 1.0 } else { self.settings.brake };
        Controls {
            throttle: 0.0,
            brake: brake.max(self.controls.brake),
            parking_brake: stands || self.controls.parking_brake,
            signals: self.controls.signals.with_if(Signal::Hazard, self.heard_at.is_some()),
            ..self.controls
        }
    }

    /// Returns what the guard is told: also, for some frames, that it was silent.
    fn told(&self, state: MachineState, now: Instant) -> MachineState {
        let was_silent = self.silent_at.is_some_and(|at| now.since(at) < SILENT_TOLD);
        let notices = state.notices.with_if(Notice::GuardSilent, was_silent);
        MachineState { notices, ..state }
    }
}

/// A machine that asks for more than a thousand turns a second gets so many.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// m/s below which the machine counts as standing.
const STANDING_SPEED: f32 = 0.05;
/// Ten frames: as many as may be lost in a row of the same sequence.
const SILENT_TOLD: Duration = Duration::from_millis(100);
const DATAGRAMS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn driven() -> (Follower, MachineState) {
        let mut follower = Follower::new(Settings::default());
        let controls = Controls { throttle: 0.6, steering: 0.2, ..Controls::default() };
        follower.handle(&Control { controls, ..Control::default() }, at(100));
        (follower, MachineState { speed: 8.0, ..MachineState::default() })
    }

    #[test]
    fn the_last_controls_hold_until_the_guard_is_silent_for_too_long() {
        let (mut follower, state) = driven();
        assert_eq!(follower.controls(&state, at(130)).throttle, 0.6);
        assert!(!follower.told(state, at(130)).notices.contains(Notice::GuardSilent));
        let alone = follower.controls(&state, at(131));
        assert_eq!((alone.throttle, alone.brake, alone.steering), (0.0, 0.5, 0.2));
        assert!(alone.signals.contains(Signal::Hazard) && !alone.parking_brake);
        assert!(follower.told(state, at(131)).notices.contains(Notice::GuardSilent));
        let stands = MachineState::default();
        let held = follower.controls(&stands, at(2_000));
        assert!(held.brake == 1.0 && held.parking_brake);
    }

    #[test]
    fn what_the_machine_itself_stood_still_is_no_silence_of_the_guard() {
        let (mut follower, state) = driven();
        let guard = tautline_net::datagram::Server::open(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let mut client = Client::new(&guard.local_address().unwrap());
        follower.receive(&mut client, at(105));
        follower.receive(&mut client, at(145));
        assert_eq!(follower.controls(&state, at(145)).throttle, 0.6);
        follower.receive(&mut client, at(155));
        follower.receive(&mut client, at(160));
        assert_eq!(follower.controls(&state, at(160)).throttle, 0.6);
        follower.receive(&mut client, at(161));
        assert_eq!(follower.controls(&state, at(161)).throttle, 0.0);
        follower.handle(&Control { controls: follower.controls, ..Control::default() }, at(165));
        follower.receive(&mut client, at(965));
        assert_eq!(follower.controls(&state, at(965)).throttle, 0.0, "so long is too long");
    }

    #[test]
    fn a_guard_that_comes_back_is_followed_and_told_that_it_was_silent() {
        let (mut follower, state) = driven();
        follower.controls(&state, at(140));
        let brake = Controls { brake: 0.3, ..Controls::default() };
        follower.handle(&Control { controls: brake, ..Control::default() }, at(150));
        assert_eq!(follower.controls(&state, at(150)), brake);
        assert!(follower.told(state, at(200)).notices.contains(Notice::GuardSilent));
        assert!(!follower.told(state, at(300)).notices.contains(Notice::GuardSilent));
    }

    #[test]
    fn a_speed_that_is_not_known_is_braked_and_never_counts_as_standing() {
        let (mut follower, state) = driven();
        let unknown = MachineState { speed: f32::NAN, ..state };
        let alone = follower.controls(&unknown, at(500));
        assert!(alone.brake == 0.5 && !alone.parking_brake);
    }

    #[test]
    fn before_the_guard_has_spoken_the_machine_is_braked_and_says_nothing_of_silence() {
        let mut follower = Follower::new(Settings::default());
        let stands = MachineState::default();
        assert_eq!(follower.controls(&stands, at(5)).brake, 1.0);
        assert!(follower.told(stands, at(5)).notices.is_empty());
    }
}
