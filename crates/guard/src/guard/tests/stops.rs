use std::vec::Vec;

use super::super::*;
use super::rig::{CONSOLE, Rig};
use crate::frame::{Absence, Absences, DeadMan, Trouble, Troubles};
use crate::{Fault, Faults, Gear, Notices};

/// Drives at 10 m/s, applies `change`, and returns the cause of the stop and the number of steps.
fn stopped_by(change: impl FnOnce(&mut Rig)) -> (Cause, usize) {
    let mut rig = Rig::driving(10.0);
    let before = rig.transitions.len();
    change(&mut rig);
    let step = (1..=100).find(|_| {
        rig.step();
        rig.mode() == Mode::Manoeuvre
    });
    let step = step.unwrap_or_else(|| panic!("goes on: {:?}", rig.last));
    assert_eq!(rig.transitions[before..].last().unwrap().to, Mode::Manoeuvre);
    let cause = rig.last_cause();
    rig.machine.notices = Notices::NONE;
    rig.until_held();
    assert_eq!(rig.last_cause(), cause, "a held machine says what stopped it");
    rig.command().controls.throttle = 1.0;
    rig.steps(200);
    assert_eq!((rig.mode(), rig.machine.speed), (Mode::Held, 0.0));
    (cause, step)
}

#[test]
fn every_cause_stops_the_machine_under_its_own_name() {
    let absent = |absence| stopped_by(|rig| rig.command().absences = Absences::of(absence));
    assert_eq!(absent(Absence::ConsoleGone), (Cause::ConsoleGone, 1));
    assert_eq!(absent(Absence::PageHidden), (Cause::PageHidden, 1));
    assert_eq!(absent(Absence::FocusLost), (Cause::FocusLost, 1));
    assert_eq!(absent(Absence::InputsUnhealthy), (Cause::InputsUnhealthy, 1));
    let released = stopped_by(|rig| rig.command().dead_man = DeadMan::Released);
    assert_eq!(released, (Cause::DeadManReleased, 1));
    assert_eq!(stopped_by(|rig| rig.proposal.session = None), (Cause::SessionEnded, 1));
    let other = stopped_by(|rig| rig.proposal.session = Session::new(2));
    assert_eq!(other, (Cause::SessionEnded, 1));
    let other = stopped_by(|rig| rig.command().console = Console::new(0xC1).unwrap());
    assert_eq!(other, (Cause::ConsoleChanged, 1));
    let troubles = |trouble| stopped_by(|rig| rig.proposal.troubles = Troubles::of(trouble));
    assert_eq!(troubles(Trouble::Camera), (Cause::CameraStopped, 1));
    assert_eq!(troubles(Trouble::Encoder), (Cause::EncoderStopped, 1));
    let faults = |fault| stopped_by(|rig| rig.machine.faults = Faults::of(fault));
    assert_eq!(faults(Fault::Steering), (Cause::MachineFault, 1));
    assert_eq!(faults(Fault::Brake), (Cause::BrakeDoesNotAnswer, 1));
    assert_eq!(faults(Fault::EmergencyButton), (Cause::LocalStop, 1));
    let notices = |notice| stopped_by(|rig| rig.machine.notices = Notices::of(notice));
    assert_eq!(notices(Notice::LocalStop), (Cause::LocalStop, 1));
    assert_eq!(notices(Notice::LocalControl), (Cause::LocalControl, 1));
    assert_eq!(notices(Notice::GuardSilent), (Cause::GuardSilent, 1));
    let emergency = stopped_by(|rig| rig.proposal.emergency_stop = ActNumber::new(5));
    assert_eq!(emergency, (Cause::EmergencyStop, 1));
    // The picture is 60 ms old at first, and older than 500 ms after 45 steps.
    let (cause, steps) = stopped_by(|rig| rig.is_seeing = false);
    assert_eq!(cause, Cause::PictureAge);
    assert!((44..=46).contains(&steps), "{steps}");
    let (cause, steps) = stopped_by(|rig| rig.is_commanding = false);
    assert_eq!((cause, steps), (Cause::CommandTimeout, 30));
    let (cause, steps) = stopped_by(|rig| rig.command().age = Some(Duration::from_millis(251)));
    assert_eq!((cause, steps), (Cause::CommandTimeout, 30));
}

#[test]
fn silence_of_vehicle_machine_or_guard_stops_the_machine() {
    let mut rig = Rig::driving(10.0);
    (0..4).for_each(|_| {
        rig.step_with(false, true);
    });
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::ProposalTimeout));
    let mut rig = Rig::driving(10.0);
    (0..4).for_each(|_| {
        rig.step_with(true, false);
    });
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::MachineTimeout));
    let told: Vec<f32> =
        (0..80).map(|_| rig.step_with(true, false).control.controls.brake * 8.0).collect();
    assert!(told[1] > 1.4 && told.is_sorted() && (told[79] - 4.0).abs() < 1e-3, "{told:?}");
    let mut rig = Rig::driving(10.0);
    rig.now += Duration::from_millis(70);
    rig.step();
    assert!(rig.mode().is_driving(), "80 ms");
    rig.now += Duration::from_millis(71);
    rig.step();
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::GuardLate));
}

#[test]
fn a_pause_of_the_guard_does_not_count_as_silence_of_others() {
    let mut rig = Rig::driving(10.0);
    for turn in 0..40 {
        // The computer pauses for up to 40 ms in each tenth of a second.
        rig.now += Duration::from_millis(if turn % 8 == 0 { 40 } else { 0 });
        rig.step();
        assert!(rig.mode().is_driving(), "{:?}", rig.last_cause());
    }
    rig.now += Duration::from_millis(35);
    for _ in 0..3 {
        rig.step_with(false, false);
        assert!(rig.mode().is_driving(), "they may have stood as long");
    }
    rig.step_with(false, true);
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::ProposalTimeout));
}

#[test]
fn frames_that_stood_in_a_queue_count_by_when_they_were_sent() {
    let mut rig = Rig::driving(10.0);
    // A frame arrives with each step, each 5 ms later than the one before.
    let mut source = rig.now;
    for _ in 0..8 {
        rig.now += Duration::from_millis(10);
        source += Duration::from_millis(5);
        rig.proposal.source = source;
        rig.command().sequence += 1;
        rig.machine.measured_at = rig.now;
        let input =
            Input { proposal: Some(rig.proposal), machine: Some(rig.machine), ..Input::default() };
        rig.guard.step(&input, rig.now);
    }
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::ProposalTimeout));
}

/// The successor's clock starts with it, and has passed the former one's at its first frame.
#[test]
fn a_successor_process_with_another_clock_is_not_late() {
    for whose in 0..2 {
        let mut rig = Rig::new();
        rig.steps(20);
        // The guard continues meanwhile.
        (0..100).for_each(|_| {
            rig.step_with(whose == 1, whose == 0);
        });
        rig.clocks_behind[whose] = Duration::from_millis(700);
        rig.steps(20);
        rig.arm(1);
        rig.steps(2);
        assert_eq!(rig.mode(), Mode::Armed, "{:?}", rig.last);
    }
}

#[test]
fn the_deceleration_is_ramped_and_an_emergency_stop_is_not() {
    let mut rig = Rig::driving(14.0);
    rig.proposal.session = None;
    let first = rig.step().control.controls;
    assert!(first.actions.contains(HAZARD) && first.throttle == 0.0);
    assert_eq!(first.brake, 0.0, "the lights come before the brake");
    let mut speeds = Vec::from([rig.machine.speed]);
    while rig.mode() == Mode::Manoeuvre {
        rig.step();
        speeds.push(rig.machine.speed);
    }
    let slowed = |from: usize| (speeds[from] - speeds[from + 10]) / 0.1;
    assert!((1.4..2.1).contains(&slowed(0)), "{}", slowed(0));
    assert!((3.9..4.1).contains(&slowed(100)), "{}", slowed(100));
    let hardest = speeds.windows(2).map(|two| (two[0] - two[1]) / 0.01).fold(0.0, f32::max);
    assert!(hardest < 8.01, "only at the very end");
    let mut rig = Rig::driving(14.0);
    rig.proposal.emergency_stop = ActNumber::new(1);
    assert_eq!(rig.step().control.controls.brake, 1.0);
}

#[test]
fn a_stop_ends_with_both_brakes_and_hazard_lights_on() {
    let mut rig = Rig::driving(6.0);
    rig.is_commanding = false;
    rig.steps(31);
    rig.until_held();
    rig.steps(100);
    let controls = rig.step().control.controls;
    assert_eq!((controls.brake, controls.parking_brake, controls.throttle), (1.0, true, 0.0));
    assert!(controls.actions.contains(HAZARD));
    let last = rig.transitions.last().unwrap();
    assert_eq!((last.to, last.why.cause), (Mode::Held, Cause::Standstill));
    assert!((1.0..4.0).contains(&last.why.value), "seconds: {last:?}");
    assert!((4.0..8.0).contains(&last.why.limit), "metres: {last:?}");
}

#[test]
fn an_emergency_stop_is_latched_until_a_reset_names_it() {
    let mut rig = Rig::driving(5.0);
    rig.proposal.emergency_stop = ActNumber::new(900);
    rig.command().age = None;
    rig.steps(1);
    rig.command().age = Some(Duration::from_millis(30));
    rig.until_held();
    let status = rig.step().status;
    assert_eq!(status.emergency_stop, ActNumber::new(900));
    assert!(status.is_latched && status.blockers.contains(Blocker::Latched));
    rig.command().controls.throttle = 0.0;
    rig.arm(2);
    rig.steps(3);
    let refused = Outcome::Refused(Blocker::Latched);
    assert_eq!(rig.last.unwrap().status.answer.unwrap().outcome, refused);
    rig.act(3, Deed::Reset(Stop::new(77).unwrap()));
    let refused = Outcome::Refused(Blocker::OtherStop);
    assert_eq!(rig.step().status.answer.unwrap().outcome, refused);
    rig.act(4, Deed::Reset(status.stop));
    assert_eq!(rig.step().status.answer.unwrap().outcome, Outcome::Done);
    rig.steps(50);
    assert_eq!(rig.mode(), Mode::Held, "a reset moves nothing");
    assert_eq!(rig.last_cause(), Cause::EmergencyStop);
    rig.arm(5);
    rig.steps(2);
    assert_eq!(rig.mode(), Mode::Armed);
}

#[test]
fn an_emergency_stop_at_standstill_latches_under_a_new_number() {
    let mut rig = Rig::new();
    rig.steps(20);
    rig.proposal.emergency_stop = ActNumber::new(1);
    let first = rig.step().status;
    assert_eq!((first.mode, first.is_latched), (Mode::Held, true));
    rig.steps(10);
    rig.proposal.emergency_stop = ActNumber::new(2);
    let second = rig.step().status;
    assert_ne!(first.stop, second.stop);
    rig.act(1, Deed::Reset(first.stop));
    rig.steps(2);
    assert!(rig.last.unwrap().status.is_latched);
    let guard = Guard::new(Config::car(), Tick::new(9).unwrap()).with_latched(second.stop);
    assert!(guard.is_latched && guard.stop == second.stop, "a former run's latch is kept");
}

#[test]
fn refused_arming_names_its_blocker() {
    let blocked = |change: &dyn Fn(&mut Rig)| {
        let mut rig = Rig::new();
        rig.steps(20);
        change(&mut rig);
        rig.steps(60);
        rig.arm(1);
        rig.steps(2);
        assert_eq!(rig.mode(), Mode::Held);
        match rig.last.unwrap().status.answer.unwrap().outcome {
            Outcome::Refused(blocker) => blocker,
            Outcome::Done => panic!("done"),
        }
    };
    let throttle = blocked(&|rig| rig.command().controls.throttle = 0.03);
    assert_eq!(throttle, Blocker::ThrottlePressed);
    assert_eq!(blocked(&|rig| rig.is_seeing = false), Blocker::PictureAge);
    assert_eq!(blocked(&|rig| rig.is_commanding = false), Blocker::NoCommand);
    assert_eq!(blocked(&|rig| rig.proposal.session = None), Blocker::NoSession);
    let stop = blocked(&|rig| rig.machine.notices = Notices::of(Notice::LocalStop));
    assert_eq!(stop, Blocker::LocalPerson);
    let fault = blocked(&|rig| rig.machine.faults = Faults::of(Fault::Drive));
    assert_eq!(fault, Blocker::MachineFault);
    let camera = blocked(&|rig| rig.proposal.troubles = Troubles::of(Trouble::Camera));
    assert_eq!(camera, Blocker::VehicleTrouble);
    let absent = blocked(&|rig| rig.command().absences = Absences::of(Absence::PageHidden));
    assert_eq!(absent, Blocker::PersonAbsent);
    let unknown = blocked(&|rig| {
        rig.is_following = false;
        rig.machine.speed = f32::NAN;
    });
    assert!(matches!(unknown, Blocker::MachineFault | Blocker::Moving), "{unknown:?}");
    let other = blocked(&|rig| rig.command().console = Console::new(3).unwrap());
    assert_eq!(other, Blocker::OtherConsole);
}

#[test]
fn an_act_is_done_once_and_an_old_one_never_again() {
    let mut rig = Rig::driving(0.0);
    rig.command().controls.throttle = 0.0;
    rig.machine.speed = 0.0;
    rig.steps(2);
    rig.act(2, Deed::Park);
    rig.steps(2);
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Held, Cause::Parked));
    rig.arm(1);
    rig.steps(50);
    assert_eq!(rig.mode(), Mode::Held, "the act that armed it came again");
    rig.arm(3);
    rig.proposal.act.as_mut().unwrap().age = Some(Duration::from_secs(2));
    rig.steps(2);
    let stale = Outcome::Refused(Blocker::StaleAct);
    assert_eq!(rig.last.unwrap().status.answer.unwrap().outcome, stale);
    rig.arm(4);
    rig.steps(2);
    assert_eq!(rig.mode(), Mode::Armed);
    let hazard = rig.last.unwrap().control.controls.actions.contains(HAZARD);
    assert!(!hazard, "a parked machine is in no trouble");
}

#[test]
fn a_hand_over_needs_both() {
    let mut rig = Rig::driving(8.0);
    let other = Console::new(0xC1).unwrap();
    let take_over = |rig: &mut Rig, number| {
        let number = ActNumber::new(number).unwrap();
        let age = Some(Duration::ZERO);
        rig.proposal.act = Some(Act { console: other, number, deed: Deed::TakeOver, age });
        rig.step().status.answer.unwrap().outcome
    };
    assert_eq!(take_over(&mut rig, 1), Outcome::Refused(Blocker::NotNamed));
    rig.command().successor = Some(other);
    rig.steps(2);
    assert_eq!(take_over(&mut rig, 2), Outcome::Done);
    rig.steps(3);
    assert_eq!(rig.mode(), Mode::Driving, "what is under way from the first does not count");
    rig.command().console = other;
    rig.command().successor = None;
    rig.steps(40);
    assert_eq!((rig.mode(), rig.last.unwrap().status.holder), (Mode::Driving, Some(other)));
    rig.command().console = CONSOLE;
    rig.steps(31);
    assert_eq!(rig.last_cause(), Cause::CommandTimeout, "the first cannot take it back");
}

#[test]
fn a_brake_that_does_not_answer_adds_the_parking_brake() {
    let mut rig = Rig::driving(10.0);
    rig.is_following = false;
    rig.is_commanding = false;
    let braked = (0..300).find(|_| rig.step().status.why.cause == Cause::BrakeDoesNotAnswer);
    assert!(braked.is_some_and(|step| step < 30 + 150), "{braked:?}");
    assert_eq!(rig.last.unwrap().control.controls.brake, 1.0);
    assert!(!rig.last.unwrap().control.controls.parking_brake);
    rig.steps(52);
    let controls = rig.last.unwrap().control.controls;
    assert_eq!((controls.brake, controls.parking_brake), (1.0, true));
    assert_eq!(rig.mode(), Mode::Manoeuvre, "it still moves");
    rig.machine.speed = 0.0;
    rig.until_held();
    assert!(rig.step().status.is_latched);
}

#[test]
fn a_held_machine_that_rolls_is_braked() {
    let mut rig = Rig::new();
    rig.steps(20);
    rig.machine.speed = 0.6;
    rig.step();
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::Rolling));
    let mut rig = Rig::new();
    rig.steps(20);
    rig.machine.notices = Notices::of(Notice::LocalControl);
    rig.is_following = false;
    rig.machine.speed = 2.0;
    rig.steps(50);
    assert_eq!(rig.mode(), Mode::Held, "a person at the machine moves it");
    rig.machine.notices = Notices::NONE;
    rig.step();
    assert_eq!(rig.mode(), Mode::Manoeuvre);
}

#[test]
fn a_late_picture_limits_the_speed_and_a_fresh_one_restores_it() {
    let mut rig = Rig::driving(14.0);
    rig.is_seeing = false;
    let cite = |rig: &mut Rig, behind: u32| {
        let tick = rig.guard.tick.get() - behind;
        rig.command().cited = Tick::new(tick);
        rig.step();
    };
    for _ in 0..400 {
        rig.command().controls.throttle = 1.0;
        cite(&mut rig, 29);
    }
    let status = rig.last.unwrap().status;
    assert_eq!((status.mode, status.why.cause), (Mode::Limited, Cause::LoopAge));
    assert!((status.speed_bound - 9.7).abs() < 0.4, "{status:?}");
    assert!(rig.machine.speed <= status.speed_bound + 0.1, "{}", rig.machine.speed);
    assert!(status.limits.contains(crate::envelope::Limit::Speed));
    (0..400).for_each(|_| cite(&mut rig, 6));
    assert_eq!(rig.mode(), Mode::Driving);
    assert!(rig.machine.speed > 13.0);
}

#[test]
fn armed_without_throttle_the_machine_is_held_again() {
    let mut rig = Rig::new();
    rig.steps(20);
    rig.arm(1);
    rig.steps(2);
    assert_eq!(rig.last.unwrap().control.controls.brake, 1.0, "on its service brake");
    rig.steps(2_998);
    assert_eq!(rig.mode(), Mode::Armed);
    rig.steps(4);
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Held, Cause::ArmExpired));
}

#[test]
fn a_guard_that_starts_while_the_machine_moves_ramps_it_down() {
    let mut rig = Rig::new();
    rig.machine.speed = 10.0;
    let first = rig.step();
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::Rolling));
    assert!(!first.control.controls.parking_brake && first.control.controls.brake <= 0.5);
    rig.until_held();
    assert_eq!(rig.machine.speed, 0.0);
}

/// The vehicle keeps proposing its newest emergency stop.
#[test]
fn a_guard_started_in_motion_parks_only_after_standstill() {
    let mut rig = Rig::new();
    rig.machine.speed = 10.0;
    rig.proposal.emergency_stop = ActNumber::new(9);
    rig.step();
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::EmergencyStop));
    while rig.machine.speed > 0.5 {
        let controls = rig.step().control.controls;
        assert!(!controls.parking_brake && controls.brake > 0.9, "at {}", rig.machine.speed);
    }
    rig.until_held();
    let output = rig.step();
    assert!(output.status.is_latched && output.control.controls.parking_brake);
}

#[test]
fn an_armed_machine_that_rolls_is_braked() {
    let mut rig = Rig::new();
    rig.steps(20);
    rig.arm(1);
    rig.steps(2);
    assert_eq!(rig.mode(), Mode::Armed);
    rig.is_following = false;
    rig.machine.speed = 0.6;
    rig.step();
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::Rolling));
}

#[test]
fn in_a_manoeuvre_steering_follows_a_seeing_person_or_the_arc() {
    let arc = 0.02_f32 / 0.52;
    let mut rig = Rig::driving(10.0);
    rig.machine.steering_angle = 0.02;
    rig.proposal.troubles = Troubles::of(Trouble::Camera);
    rig.command().controls.steering = -0.1;
    rig.steps(50);
    assert_eq!(rig.mode(), Mode::Manoeuvre);
    assert!((rig.last.unwrap().control.controls.steering - arc).abs() < 1e-6);
    let mut rig = Rig::driving(10.0);
    rig.machine.steering_angle = 0.02;
    rig.proposal.emergency_stop = ActNumber::new(1);
    rig.command().controls.steering = -0.1;
    rig.steps(50);
    let controls = rig.last.unwrap().control.controls;
    assert!((controls.steering + 0.1).abs() < 1e-6, "{controls:?}");
}

#[test]
fn the_arc_is_kept_at_unknown_speed_and_after_local_control() {
    let steering = |rig: &Rig| rig.last.unwrap().control.controls.steering;
    for is_silent in [true, false] {
        let mut rig = Rig::driving(4.0);
        rig.is_following = false;
        rig.command().controls.steering = 0.3 / 0.52;
        rig.machine.steering_angle = 0.3;
        rig.steps(100);
        rig.command().absences = Absences::of(Absence::ConsoleGone);
        rig.command().controls.steering = -1.0;
        rig.machine.speed = f32::NAN;
        for _ in 0..100 {
            rig.step_with(true, !is_silent);
        }
        assert_eq!(rig.mode(), Mode::Manoeuvre);
        assert!((steering(&rig) - 0.3 / 0.52).abs() < 1e-3, "{}", steering(&rig));
    }
    for is_refused in [true, false] {
        let mut rig = Rig::driving(8.0);
        rig.is_following = false;
        let (notices, faults) = match is_refused {
            true => (Notices::NONE, Faults::of(Fault::Refused)),
            false => (Notices::of(Notice::LocalControl), Faults::NONE),
        };
        (rig.machine.notices, rig.machine.faults) = (notices, faults);
        rig.command().controls.steering = -1.0;
        for turned in 0..40_u8 {
            rig.machine.steering_angle = f32::from(turned) * 0.002;
            rig.step();
        }
        (rig.machine.notices, rig.machine.faults) = (Notices::NONE, Faults::NONE);
        rig.is_following = true;
        rig.steps(50);
        assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::LocalControl));
        assert!((steering(&rig) - 0.078 / 0.52).abs() < 1e-6, "{}", steering(&rig));
    }
}

#[test]
fn reverse_is_limited_and_lights_stay_on_without_an_operator() {
    let mut rig = Rig::driving(0.0);
    rig.machine.speed = 0.0;
    rig.is_following = false;
    rig.command().controls.gear = Gear::Reverse;
    rig.command().controls.actions = [LIGHTS, HORN].into_iter().collect();
    rig.machine.speed = 4.5;
    let controls = rig.step().control.controls;
    assert_eq!((controls.throttle, controls.gear), (0.0, Gear::Drive), "not at this speed");
    for speed in (0..45).rev() {
        rig.machine.speed = speed as f32 * 0.1;
        rig.step();
    }
    rig.steps(2);
    rig.machine.speed = -4.5;
    let controls = rig.step().control.controls;
    assert_eq!((controls.throttle, controls.gear), (0.0, Gear::Reverse));
    assert!(controls.brake > 0.1 && controls.actions.contains(HORN));
    rig.is_commanding = false;
    rig.steps(35);
    let actions = rig.last.unwrap().control.controls.actions;
    assert_eq!(actions, [LIGHTS, HAZARD].into_iter().collect());
}

#[test]
fn the_status_has_the_next_cause_and_its_countdown() {
    let mut rig = Rig::driving(5.0);
    rig.is_commanding = false;
    rig.steps(10);
    let (cause, left) = rig.last.unwrap().status.countdown.unwrap();
    assert_eq!(cause, Cause::CommandTimeout);
    assert!(left <= Duration::from_millis(200) && left >= Duration::from_millis(180), "{left:?}");
}

/// Equal inputs produce equal outputs.
#[test]
fn a_replay_decides_the_same() {
    let mut rig = Rig::driving(9.0);
    let mut twin = rig.clone();
    for step in 0..400_u32 {
        for rig in [&mut rig, &mut twin] {
            rig.command().controls.steering = (step as f32 * 0.1).sin();
            rig.is_commanding = step % 90 < 50;
        }
        assert_eq!(rig.step(), twin.step());
    }
}

#[test]
fn a_driven_machine_that_stands_without_any_input_is_held() {
    let mut rig = Rig::driving(0.0);
    rig.command().controls.throttle = 0.0;
    rig.until_standing();
    // Noise of the wheel's sensor is no input; a turn of the wheel is.
    for step in 0..2_900 {
        rig.command().controls.steering = if step % 2 == 0 { 0.0 } else { 0.01 };
        rig.step();
    }
    rig.command().controls.steering = 0.3;
    rig.steps(2_990);
    assert_eq!(rig.mode(), Mode::Driving);
    rig.steps(20);
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Held, Cause::Unattended));
    let mut rig = Rig::driving(0.0);
    rig.command().controls.throttle = 0.0;
    rig.command().controls.brake = 0.4;
    rig.until_standing();
    rig.steps(4_000);
    assert_eq!(rig.mode(), Mode::Driving, "a foot is on the brake");
    rig.command().controls.brake = 0.0;
    rig.command().dead_man = DeadMan::Held;
    rig.steps(4_000);
    assert_eq!(rig.mode(), Mode::Driving, "a hand is on the dead-man input");
}

#[test]
fn a_machine_that_rolls_against_its_gear_is_stopped() {
    for (gear, sign) in [(Gear::Drive, 1.0), (Gear::Reverse, -1.0)] {
        let mut rig = Rig::driving(0.0);
        rig.command().controls.throttle = 0.0;
        rig.until_standing();
        rig.is_following = false;
        rig.command().controls.gear = gear;
        rig.steps(2);
        rig.machine.speed = -0.2 * sign;
        let brake = rig.step().control.controls.brake;
        assert!(brake > 0.35 && rig.mode() == Mode::Driving, "{brake}");
        rig.machine.speed = -0.31 * sign;
        rig.step();
        assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::Rolling));
    }
    // From a slow roll the gear is changed without a stop.
    let mut rig = Rig::driving(0.45);
    rig.is_following = false;
    rig.command().controls.gear = Gear::Reverse;
    for speed in (0..45).rev() {
        rig.machine.speed = speed as f32 * 0.01;
        rig.step();
        assert_eq!(rig.mode(), Mode::Driving, "at {} m/s", rig.machine.speed);
    }
}

#[test]
fn an_unknown_absence_of_a_later_build_prevents_arming() {
    let later = Absences::from_any_bits(1 << 17);
    assert_eq!(stopped_by(|rig| rig.command().absences = later), (Cause::InputsUnhealthy, 1));
    let mut rig = Rig::new();
    rig.command().absences = later;
    rig.steps(20);
    rig.arm(1);
    rig.steps(2);
    let answer = rig.last.unwrap().status.answer.unwrap();
    assert_eq!(answer.outcome, Outcome::Refused(Blocker::PersonAbsent));
}

#[test]
fn a_fast_or_strong_machine_requires_the_dead_man_input() {
    let required = |speed_max: f32, mass: f32, acceleration: f32| {
        let mut config = Config::car();
        config.envelope.speed_max = speed_max;
        (config.machine.mass, config.machine.acceleration_max) = (mass, acceleration);
        config.requires_dead_man()
    };
    assert!(Config::car().requires_dead_man());
    assert!(!required(1.6, 30.0, 4.2) && required(1.7, 30.0, 4.2));
    assert!(required(1.6, 34.0, 4.2) && !required(1.6, 130.0, 1.0));
    let mut rig = Rig::with(Config::car());
    rig.steps(20);
    rig.arm(1);
    rig.steps(2);
    let answer = rig.last.unwrap().status.answer.unwrap();
    assert_eq!(answer.outcome, Outcome::Refused(Blocker::DeadMan));
}

#[test]
fn an_emergency_stop_is_acknowledged_when_its_latch_is_kept() {
    let mut rig = Rig::driving(5.0);
    rig.latch = Latch::Kept(None);
    rig.proposal.emergency_stop = ActNumber::new(900);
    let output = rig.step();
    assert_eq!((output.status.mode, output.control.controls.brake), (Mode::Manoeuvre, 1.0));
    rig.until_held();
    let output = rig.step();
    assert_eq!((output.status.emergency_stop, output.status.is_latched), (None, false));
    assert!(output.status.blockers.contains(Blocker::Latched));
    let stop = output.latched.expect("it is to be kept");
    rig.latch = Latch::Kept(Some(stop));
    let status = rig.step().status;
    assert_eq!((status.emergency_stop, status.is_latched), (ActNumber::new(900), true));
    // A second one is not acknowledged by the latch of the first.
    rig.proposal.emergency_stop = ActNumber::new(901);
    let status = rig.step().status;
    assert_eq!((status.emergency_stop, status.is_latched), (ActNumber::new(900), false));
}

#[test]
fn no_machine_is_armed_while_a_latch_cannot_be_kept() {
    let mut rig = Rig::new();
    rig.latch = Latch::Refused;
    rig.steps(20);
    rig.arm(1);
    rig.steps(2);
    let answer = rig.last.unwrap().status.answer.unwrap();
    assert_eq!(answer.outcome, Outcome::Refused(Blocker::LatchNotKept));
    rig.latch = Latch::Kept(None);
    rig.arm(2);
    rig.steps(2);
    assert_eq!(rig.mode(), Mode::Armed);
}

/// Drives at `speed`, then freezes the reported speed and applies `change`. Returns the cause of
/// the stop and the number of steps until it; `None` without a stop within 1,000 steps.
fn frozen(speed: f32, change: impl FnOnce(&mut Rig)) -> Option<(Cause, u32)> {
    let mut rig = Rig::driving(speed);
    rig.steps(100);
    rig.is_following = false;
    change(&mut rig);
    let steps = (1..=1_000).find(|_| {
        rig.step();
        rig.mode() == Mode::Manoeuvre
    })?;
    let controls = rig.step().control.controls;
    assert!(!controls.parking_brake, "it may be fast");
    Some((rig.last_cause(), steps))
}

#[test]
fn an_implausible_speed_stops_the_machine_within_a_second() {
    let fell = frozen(5.0, |rig| rig.machine.speed = 0.0);
    assert_eq!(fell, Some((Cause::SpeedImplausible, 5)));
    let pushed = frozen(0.0, |rig| {
        rig.machine.speed = 0.0;
        rig.command().controls.throttle = 0.65;
    });
    assert!(
        pushed.is_some_and(|(cause, steps)| cause == Cause::SpeedImplausible && steps <= 100),
        "{pushed:?}"
    );
    let told = frozen(5.0, |rig| rig.machine.told.acceleration_along = Some(-6.0));
    assert!(
        told.is_some_and(|(cause, steps)| cause == Cause::SpeedImplausible && steps <= 100),
        "{told:?}"
    );
}

#[test]
fn an_implausible_speed_prevents_gear_change_and_reset() {
    let mut rig = Rig::driving(5.0);
    rig.is_following = false;
    rig.machine.speed = 0.0;
    rig.command().controls.gear = Gear::Reverse;
    for _ in 0..100 {
        let controls = rig.step().control.controls;
        assert_eq!((controls.gear, controls.parking_brake), (Gear::Drive, false));
    }
    assert_eq!(rig.mode(), Mode::Manoeuvre);
    let blockers = rig.last.unwrap().status.blockers;
    assert!(blockers.contains(Blocker::Moving) && blockers.contains(Blocker::MachineFault));
    // After braking for twice as long as any possible speed takes, the reported standstill is
    // accepted.
    let steps = rig.until_held();
    assert!(steps > 200, "{steps}");
    assert_eq!(rig.last_cause(), Cause::SpeedImplausible);
}

/// Numbers of a car's actions.
const HORN: u8 = 0;
const LIGHTS: u8 = 1;
const HAZARD: u8 = 5;
