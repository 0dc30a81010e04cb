//! A machine on slopes, against kerbs and with a wrong speed sensor, driven by a person who sees
//! without delay.

use std::time::Duration;

use tautline_guard::act::{Act, Deed};
use tautline_guard::config::Config;
use tautline_guard::frame::{Absences, Command, DeadMan, Proposal, Status};
use tautline_guard::identity::{ActNumber, Console, Session, Tick};
use tautline_guard::{Cause, Controls, Gear, Guard, Input, Mode, Notices};
use tautline_units::Instant;

use crate::bicycle::{Bicycle, Tells};

/// One drive, in steps of one millisecond.
struct Hill {
    machine: Bicycle,
    guard: Guard,
    now: u64,
    wanted: Controls,
    controls: Controls,
    status: Option<Status>,
    /// Cause of the first stop, and its time in ms; `None` without a stop.
    stopped: Option<(Cause, u64)>,
}

const SLOPES: [f64; 5] = [-0.2, -0.1, 0.0, 0.1, 0.2];
const GEARS: [(Gear, f64); 2] = [(Gear::Drive, 1.0), (Gear::Reverse, -1.0)];
const TELLS: [Tells; 3] = [Tells::Nothing, Tells::Change, Tells::Felt];

#[test]
fn hands_off_a_machine_stands_on_every_slope_in_either_gear() {
    for slope in SLOPES {
        for (gear, _) in GEARS {
            let mut hill = Hill::released(slope, gear, Tells::Nothing);
            let begun = hill.machine.x;
            hill.run(10_000);
            let rolled = (hill.machine.x - begun).abs();
            assert!(rolled < 0.01, "{rolled} m, slope {slope}, {gear:?}");
            assert!(hill.mode().is_driving() && hill.stopped.is_none());
            hill.run(21_000);
            assert_eq!(hill.cause(), (Mode::Held, Cause::Unattended), "slope {slope}, {gear:?}");
        }
    }
}

#[test]
fn a_hill_start_rolls_back_nowhere_however_the_throttle_rises() {
    for slope in SLOPES {
        for (gear, forwards) in GEARS {
            // Milliseconds to full throttle.
            for rise in [1, 50, 200, 500, 1_000, 3_000, 8_000] {
                for tells in TELLS {
                    let mut hill = Hill::released(slope, gear, tells);
                    let (begun, mut back) = (hill.machine.x, 0.0_f64);
                    for passed in 0..rise + 1_500 {
                        hill.wanted.throttle = (passed as f32 / rise as f32).min(1.0);
                        hill.run(1);
                        back = back.max((begun - hill.machine.x) * forwards);
                    }
                    let says = || format!("slope {slope}, {gear:?}, {rise} ms, {tells:?}");
                    assert!(back < 0.02, "{back} m back: {}", says());
                    assert_eq!(hill.stopped, None, "{}", says());
                    let speed = hill.machine.speed * forwards;
                    assert!(speed > 0.8, "{speed} m/s: {}", says());
                }
            }
        }
    }
}

#[test]
fn slight_throttle_moves_the_machine_or_the_brake_holds_it() {
    for (slope, throttle, moves) in [(0.0, 0.1, true), (0.05, 0.2, true), (0.2, 0.3, false)] {
        for (gear, forwards) in GEARS {
            let mut hill = Hill::released(slope * forwards, gear, Tells::Felt);
            hill.wanted.throttle = throttle;
            let (begun, mut back) = (hill.machine.x, 0.0_f64);
            (0..4_500).for_each(|_| {
                hill.run(1);
                back = back.max((begun - hill.machine.x) * forwards);
            });
            let ahead = (hill.machine.x - begun) * forwards;
            let says =
                format!("slope {slope}, throttle {throttle}, {gear:?}: {ahead} m, {back} m back");
            assert!(back < 0.05 && hill.stopped.is_none(), "{says} {:?}", hill.stopped);
            assert_eq!(ahead > 0.1, moves, "{says}");
        }
    }
}

#[test]
fn a_roll_back_by_a_failed_brake_is_detected_within_a_second() {
    for (gear, forwards) in GEARS {
        let mut hill = Hill::released(0.2 * forwards, gear, Tells::Nothing);
        hill.machine.has_brake = false;
        let failed = hill.now;
        hill.run(8_000);
        let (cause, at) = hill.stopped.expect("it rolls");
        assert_eq!(cause, Cause::Rolling);
        assert!(at - failed < 1_000, "{} ms", at - failed);
        assert_eq!(hill.machine.speed, 0.0, "the parking brake holds it");
    }
}

#[test]
fn a_sound_speed_is_never_doubted() {
    for slope in SLOPES {
        for (gear, forwards) in GEARS {
            for tells in TELLS {
                let mut hill = Hill::released(slope, gear, tells);
                // Accelerate, drive at the top speed, release, brake fully, and roll out slowly.
                let acts =
                    [(1.0, 0.0, 6_000), (0.6, 0.0, 2_000), (0.0, 1.0, 3_000), (0.5, 0.0, 1_500)];
                for (throttle, brake, millis) in
                    acts.into_iter().chain([(0.0, 0.0, 4_000), (0.0, 0.3, 4_000)])
                {
                    (hill.wanted.throttle, hill.wanted.brake) = (throttle, brake);
                    hill.run(millis);
                    let says = format!("slope {slope}, {gear:?}, {tells:?}, at {} ms", hill.now);
                    assert_eq!(hill.stopped, None, "{says}: {:?}", hill.machine);
                }
                assert!(hill.machine.distance > 10.0 && forwards != 0.0);
            }
        }
    }
}

/// A kerb is climbed if more throttle overcomes it; at one too high, a person pushes for a while.
#[test]
fn a_kerb_is_no_fault_of_the_speed() {
    for (takes, throttle, millis, climbs) in [
        (1.0, 0.5, 3_000, true),
        (2.5, 0.75, 3_000, true),
        (9.0, 0.5, 4_000, false),
        (9.0, 1.0, 600, false),
    ] {
        for tells in TELLS {
            let mut hill = Hill::released(0.0, Gear::Drive, tells);
            hill.machine.kerb = Some((hill.machine.x + 0.2, takes));
            hill.wanted.throttle = 0.2;
            hill.run(1_800);
            hill.wanted.throttle = throttle;
            hill.run(millis);
            let says = format!("a kerb of {takes} m/s², throttle {throttle}, {tells:?}");
            assert_eq!(hill.stopped, None, "{says}");
            assert_eq!(hill.machine.x > 1.0, climbs, "{says}: {} m", hill.machine.x);
        }
    }
}

#[test]
fn a_speed_sensor_that_freezes_is_found_within_a_second() {
    // At standstill, with more throttle than the steepest slope needs, or less with reported
    // acceleration.
    for (throttle, tells) in
        [(1.0, Tells::Nothing), (0.7, Tells::Nothing), (0.45, Tells::Felt), (0.45, Tells::Change)]
    {
        let mut hill = Hill::released(0.0, Gear::Drive, tells);
        hill.machine.frozen = Some(0.0);
        hill.wanted.throttle = throttle;
        let begun = hill.now;
        hill.run_until(3_000, |hill| hill.machine.speed > 0.05);
        let moved = hill.now;
        hill.run(3_000);
        let (cause, at) = hill.stopped.unwrap_or_else(|| panic!("throttle {throttle}, {tells:?}"));
        assert_eq!(cause, Cause::SpeedImplausible);
        assert!(at <= moved + 1_000, "{} ms, throttle {throttle}", at - begun);
        hill.run(12_000);
        assert_eq!((hill.mode(), hill.machine.speed), (Mode::Held, 0.0));
    }
    // In motion: frozen at 0, and at the current speed.
    for (frozen, brake, tells) in
        [(0.0, 0.0, Tells::Nothing), (5.0, 0.8, Tells::Nothing), (5.0, 0.6, Tells::Felt)]
    {
        let mut hill = Hill::released(0.0, Gear::Drive, tells);
        hill.wanted.throttle = 1.0;
        hill.run_until(4_000, |hill| hill.machine.speed > 5.0);
        hill.machine.frozen = Some(frozen);
        (hill.wanted.throttle, hill.wanted.brake) = (0.0, brake);
        let begun = hill.now;
        let mut parked_at = None;
        hill.run_until(1_000, |hill| {
            parked_at = parked_at.or(hill.controls.parking_brake.then_some(hill.machine.speed));
            hill.stopped.is_some()
        });
        let (cause, at) = hill.stopped.unwrap_or_else(|| panic!("frozen at {frozen}, {tells:?}"));
        assert!(matches!(cause, Cause::SpeedImplausible | Cause::BrakeDoesNotAnswer), "{cause:?}");
        assert!(at <= begun + 1_000 && parked_at.is_none());
    }
}

impl Hill {
    /// Returns a machine that is armed and in Driving, its throttle released.
    fn released(slope: f64, gear: Gear, tells: Tells) -> Self {
        let controls = Controls { brake: 1.0, ..Controls::default() };
        let mut config = Config::car();
        config.presence.dead_man_required = Some(false);
        let mut hill = Self {
            machine: Bicycle { tells, ..Bicycle::new(slope) },
            guard: Guard::new(config, Tick::new(9).expect("not 0")),
            now: 1_000,
            wanted: Controls { gear, ..Controls::default() },
            controls,
            status: None,
            stopped: None,
        };
        hill.run(2_000);
        hill.wanted.throttle = 0.03;
        hill.run(30);
        hill.wanted.throttle = 0.0;
        hill.run(500);
        assert!(hill.mode().is_driving());
        hill.stopped = None;
        hill
    }

    fn run_until(&mut self, most: u64, mut ends: impl FnMut(&Self) -> bool) {
        for _ in 0..most {
            if ends(self) {
                return;
            }
            self.run(1);
        }
    }

    fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.now += 1;
            self.machine.step(&self.controls);
            if self.now.is_multiple_of(10) {
                self.turn();
            }
        }
    }

    fn turn(&mut self) {
        let now = Instant::from_millis(self.now);
        let tick = self.status.map(|status| status.tick);
        let console = Console::new(0xC0).expect("not 0");
        let command = Command {
            sequence: self.now,
            console,
            successor: None,
            controls: self.wanted,
            dead_man: DeadMan::Absent,
            absences: Absences::NONE,
            cited: tick,
            age: Some(Duration::from_millis(40)),
        };
        let is_arming = self.mode() == Mode::Held && self.now > 2_000 && self.stopped.is_none();
        let act = is_arming.then_some(Act {
            console,
            number: ActNumber::new(self.now as u32).expect("not 0"),
            deed: Deed::Arm,
            age: Some(Duration::ZERO),
        });
        let proposal = Proposal {
            source: now,
            session: Session::new(1),
            command: Some(command),
            act,
            ..Proposal::default()
        };
        let machine = self.machine.state(Notices::NONE, now);
        let input = Input { proposal: Some(proposal), machine: Some(machine), ..Input::default() };
        let output = self.guard.step(&input, now);
        self.controls = output.control.controls;
        self.status = Some(output.status);
        let stop = output.transition.filter(|it| it.from.is_driving() && !it.to.is_driving());
        self.stopped = self.stopped.or(stop.map(|stop| (stop.why.cause, self.now)));
    }

    fn mode(&self) -> Mode {
        self.status.map_or(Mode::Held, |status| status.mode)
    }

    fn cause(&self) -> (Mode, Cause) {
        (self.mode(), self.status.expect("it has stepped").why.cause)
    }
}
