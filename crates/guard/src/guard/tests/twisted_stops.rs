//! Stops of machines that a twist moves, from every cause at ten speeds.

use std::vec::Vec;

use super::super::*;
use super::rig::Rig;
use super::twisted::{kinds, twist, until_stopped};
use crate::frame::{Absence, Absences, DeadMan, Trouble, Troubles};
use crate::{Fault, Faults, Notices, Twist};

type Change = fn(&mut Rig);

/// Returns each cause of a stop with what brings it about, and whether it is an emergency's.
fn causes() -> Vec<(Cause, Change)> {
    Vec::from([
        (Cause::ConsoleGone, (|rig| absent(rig, Absence::ConsoleGone)) as Change),
        (Cause::PageHidden, |rig| absent(rig, Absence::PageHidden)),
        (Cause::FocusLost, |rig| absent(rig, Absence::FocusLost)),
        (Cause::InputsUnhealthy, |rig| absent(rig, Absence::InputsUnhealthy)),
        (Cause::DeadManReleased, |rig| rig.command().dead_man = DeadMan::Released),
        (Cause::SessionEnded, |rig| rig.proposal.session = None),
        (Cause::ConsoleChanged, |rig| rig.command().console = Console::new(0xC1).unwrap()),
        (Cause::CameraStopped, |rig| rig.proposal.troubles = Troubles::of(Trouble::Camera)),
        (Cause::EncoderStopped, |rig| rig.proposal.troubles = Troubles::of(Trouble::Encoder)),
        (Cause::CameraBlind, |rig| rig.proposal.troubles = Troubles::of(Trouble::Blind)),
        (Cause::SpeedImplausible, |rig| rig.proposal.troubles = Troubles::of(Trouble::Motion)),
        (Cause::MachineFault, |rig| rig.machine.faults = Faults::of(Fault::Drive)),
        (Cause::LocalStop, |rig| rig.machine.notices = Notices::of(Notice::LocalStop)),
        (Cause::GuardSilent, |rig| rig.machine.notices = Notices::of(Notice::GuardSilent)),
        (Cause::EmergencyStop, |rig| rig.proposal.emergency_stop = ActNumber::new(5)),
        (Cause::PictureAge, |rig| rig.is_seeing = false),
        (Cause::CommandTimeout, |rig| rig.is_commanding = false),
    ])
}

fn absent(rig: &mut Rig, absence: Absence) {
    rig.command().absences = Absences::of(absence);
}

/// Returns metres and radians that the declared ramp takes from this motion, with the drive's lag.
fn declared(config: &Config, begun: Twist, is_emergency: bool) -> (f32, f32) {
    let ramp = &config.manoeuvre;
    let (mut slowing, yaw_slowing) = match is_emergency {
        true => (ramp.deceleration_emergency, ramp.yaw_deceleration_emergency),
        false => (ramp.deceleration_begin, ramp.yaw_deceleration),
    };
    let lag = 0.13;
    let (mut metres, mut radians) = (lag * begun.speed(), lag * begun.yaw_rate.abs());
    let mut twist = begun;
    while twist != Twist::ZERO {
        metres += twist.speed() * 0.01;
        radians += twist.yaw_rate.abs() * 0.01;
        twist = twist.slowed(slowing, yaw_slowing, 0.01);
        slowing = (slowing + ramp.jerk * 0.01).min(ramp.deceleration.max(slowing));
    }
    (metres + 0.02, radians + 0.02)
}

#[test]
fn every_cause_stops_each_kind_within_the_declared_way() {
    for (config, twists) in kinds() {
        for full in twists {
            for speed in 1..=10_u8 {
                let wanted = full.scaled(f32::from(speed) / 10.0);
                let driving = Rig::turning(config, wanted);
                for (cause, change) in causes() {
                    stops(driving.clone(), cause, change);
                }
            }
        }
    }
}

fn stops(mut rig: Rig, cause: Cause, change: Change) {
    let config = *rig.guard.config();
    change(&mut rig);
    let (found, _) = until_stopped(&mut rig);
    let begun = rig.moved();
    let says = std::format!("{cause:?} at {begun:?}");
    assert_eq!(found, cause, "{says}");
    let is_emergency = cause == Cause::EmergencyStop;
    let (metres_max, radians_max) = declared(&config, begun, is_emergency);
    let (mut metres, mut radians) = (0.0, 0.0);
    let mut told = Vec::new();
    rig.machine.notices = Notices::NONE;
    while rig.mode() == Mode::Manoeuvre {
        let output = rig.step();
        told.push(output.control.controls.twist);
        metres += rig.moved().speed() * 0.01;
        radians += rig.moved().yaw_rate.abs() * 0.01;
    }
    assert!(metres <= metres_max, "{metres} m of {metres_max}: {says}");
    assert!(radians <= radians_max, "{radians} rad of {radians_max}: {says}");
    // The arc: yaw rate and speeds keep their proportion, and only fall.
    for pair in told.windows(2) {
        let off = |from: Twist| pair[1].yaw_rate * from.forward - pair[1].forward * from.yaw_rate;
        assert!(off(told[0]).abs() < 1e-4, "off the arc by {}: {says}", off(told[0]));
        assert!(off(begun).abs() < 0.05, "off the arc by {}: {says}", off(begun));
        assert!(pair[1].speed() <= pair[0].speed() + 1e-6, "{says}");
        assert!(pair[1].yaw_rate.abs() <= pair[0].yaw_rate.abs() + 1e-6, "{says}");
    }
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Held, cause), "{says}");
    assert_eq!(rig.last.unwrap().status.is_latched, is_emergency, "{says}");
    rig.is_commanding = true;
    rig.command().controls.twist = twist(1.0, 0.0, 1.0);
    rig.steps(100);
    assert_eq!((rig.mode(), rig.moved()), (Mode::Held, Twist::ZERO), "{says}");
}

#[test]
fn silence_of_the_vehicle_or_the_machine_stops_each_kind() {
    for (config, twists) in kinds() {
        for wanted in twists {
            let mut rig = Rig::turning(config, wanted);
            (0..4).for_each(|_| {
                rig.step_with(false, true);
            });
            assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::ProposalTimeout));
            let mut rig = Rig::turning(config, wanted);
            (0..4).for_each(|_| {
                rig.step_with(true, false);
            });
            assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::MachineTimeout));
            // Blind: along the arc to 0, and no parking brake while it may move.
            let told: Vec<Controls> =
                (0..200).map(|_| rig.step_with(true, false).control.controls).collect();
            assert!(told[..150].iter().all(|controls| !controls.parking_brake));
            assert_eq!(told[199].twist, Twist::ZERO, "at {wanted:?}");
            let mut rig = Rig::turning(config, wanted);
            rig.now += Duration::from_millis(81);
            rig.step();
            assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::GuardLate));
        }
    }
}

#[test]
fn an_emergency_stop_and_a_turn_use_their_own_decelerations() {
    let slowed = |wanted: Twist, is_emergency: bool, from: usize| {
        let mut rig = Rig::turning(Config::rover(), wanted);
        if is_emergency {
            rig.proposal.emergency_stop = ActNumber::new(5);
        } else {
            rig.proposal.session = None;
        }
        let told: Vec<Twist> = (0..30).map(|_| rig.step().control.controls.twist).collect();
        let of = |at: usize| (told[at].speed(), told[at].yaw_rate.abs());
        let (begun, ended) = (of(from), of(from + 10));
        ((begun.0 - ended.0) / 0.1, (begun.1 - ended.1) / 0.1)
    };
    let near = |is: f32, wanted: f32| assert!((is - wanted).abs() < 0.02, "{is} of {wanted}");
    near(slowed(twist(2.0, 0.0, 0.0), true, 4).0, 3.0);
    near(slowed(twist(0.0, 0.0, 0.8), true, 4).1, 4.0);
    // The ramp of 4 m/s³ is at 0.8 + 0.98 m/s² between 200 and 300 ms.
    near(slowed(twist(2.0, 0.0, 0.0), false, 19).0, 1.78);
    near(slowed(twist(0.0, 0.0, 0.8), false, 4).1, 2.0);
}
