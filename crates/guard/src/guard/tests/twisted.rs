//! The watches of machines that a twist moves: robot, rover and cart.

use std::vec::Vec;

use super::super::*;
use super::rig::Rig;
use crate::act::{Blocker, Deed, Outcome};
use crate::envelope::Limit;
use crate::{Notices, Twist};

pub(super) const fn twist(forward: f32, sideways: f32, yaw_rate: f32) -> Twist {
    Twist { forward, sideways, yaw_rate }
}

/// Returns each kind of machine with twists that it can hold: straight, on an arc, on the spot,
/// backwards and, of a cart, sideways.
pub(super) fn kinds() -> Vec<(Config, Vec<Twist>)> {
    let of = |config: Config| {
        let Config { envelope, .. } = config;
        let (fast, turn) = (envelope.speed_max, envelope.yaw_rate_max);
        let mut twists = Vec::from([
            twist(fast, 0.0, 0.0),
            twist(0.6 * fast, 0.0, 0.5 * turn),
            twist(0.0, 0.0, -turn),
            twist(-envelope.reverse_speed_max, 0.0, 0.4 * turn),
        ]);
        if config.machine.motion == Motion::Omni {
            twists.push(twist(0.0, -envelope.sideways_speed_max, 0.0));
            twists.push(twist(0.4 * fast, envelope.sideways_speed_max, 0.3 * turn));
        }
        (config, twists)
    };
    [Config::robot(), Config::rover(), Config::cart()].map(of).into()
}

/// Steps until the stop begins; returns its cause and the number of steps.
pub(super) fn until_stopped(rig: &mut Rig) -> (Cause, u32) {
    let steps = (1..=400).find(|_| {
        rig.step();
        rig.mode() == Mode::Manoeuvre
    });
    (rig.last_cause(), steps.unwrap_or_else(|| panic!("goes on: {:?}", rig.last)))
}

fn outcome(rig: &mut Rig, number: u32, deed: Deed) -> Outcome {
    rig.act(number, deed);
    rig.step().status.answer.unwrap().outcome
}

/// Returns each part of a twist alone.
fn parts(config: &Config) -> Vec<Twist> {
    let mut parts = Vec::from([twist(1.0, 0.0, 0.0), twist(0.0, 0.0, 1.0)]);
    if config.machine.motion == Motion::Omni {
        parts.push(twist(0.0, 1.0, 0.0));
    }
    parts
}

#[test]
fn a_held_or_armed_machine_that_moves_in_any_part_is_stopped() {
    for (mut config, _) in kinds() {
        config.presence.dead_man_required = Some(false);
        for part in parts(&config) {
            for (is_armed, sign) in [(false, 1.0), (false, -1.0), (true, 1.0), (true, -1.0)] {
                let mut rig = Rig::with(config);
                rig.steps(20);
                if is_armed {
                    rig.arm(1);
                    rig.steps(2);
                    assert_eq!(rig.mode(), Mode::Armed);
                }
                rig.is_following = false;
                rig.set_moved(part.scaled(0.19 * sign));
                rig.step();
                assert_ne!(rig.mode(), Mode::Manoeuvre, "noise");
                rig.set_moved(part.scaled(0.25 * sign));
                rig.step();
                assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::Rolling));
            }
        }
    }
}

#[test]
fn a_turn_on_the_spot_is_motion_for_every_act() {
    let moving = Outcome::Refused(Blocker::Moving);
    for (mut config, _) in kinds() {
        config.presence.dead_man_required = Some(false);
        for part in parts(&config) {
            let mut rig = Rig::with(config);
            rig.is_following = false;
            rig.set_moved(part.scaled(0.1));
            rig.steps(20);
            assert_eq!(rig.mode(), Mode::Held);
            assert_eq!(outcome(&mut rig, 1, Deed::Arm), moving);
            rig.proposal.emergency_stop = ActNumber::new(1);
            let stop = rig.step().status.stop;
            assert_eq!(outcome(&mut rig, 2, Deed::Reset(stop)), moving);
        }
    }
    let mut rig = Rig::turning(Config::robot(), twist(0.0, 0.0, 0.5));
    assert_eq!(outcome(&mut rig, 2, Deed::Park), moving);
}

#[test]
fn a_stop_ends_after_300_ms_in_which_no_part_moves() {
    for (config, twists) in kinds() {
        for wanted in twists {
            let mut rig = Rig::turning(config, wanted);
            rig.is_commanding = false;
            until_stopped(&mut rig);
            while !rig.guard.is_standing(rig.now) {
                rig.step();
                assert_eq!(rig.mode(), Mode::Manoeuvre);
            }
            rig.is_following = false;
            rig.set_moved(Twist::ZERO);
            rig.steps(25);
            // A short turn in between begins the time anew.
            rig.set_moved(twist(0.0, 0.0, 0.06));
            rig.step();
            rig.set_moved(Twist::ZERO);
            rig.steps(30);
            assert_eq!(rig.mode(), Mode::Manoeuvre);
            rig.steps(2);
            assert_eq!((rig.mode(), rig.last_cause()), (Mode::Held, Cause::CommandTimeout));
            let controls = rig.step().control.controls;
            assert!(controls.parking_brake && controls.twist == Twist::ZERO);
        }
    }
}

#[test]
fn a_driven_machine_that_moves_against_its_set_point_is_stopped() {
    for (config, _) in kinds() {
        for part in parts(&config) {
            let [forward, sideways, yaw_rate] = [
                config.envelope.speed_max,
                config.envelope.sideways_speed_max,
                config.envelope.yaw_rate_max,
            ];
            let most =
                [(part.forward, forward), (part.sideways, sideways), (part.yaw_rate, yaw_rate)];
            let most = most.into_iter().find(|(part, _)| *part > 0.0).map_or(0.0, |(_, most)| most);
            // With a set point the other way, and without one.
            for told in [0.5, 0.0] {
                let mut rig = Rig::turning(config, part.scaled(0.5 * most));
                if told == 0.0 {
                    rig.command().controls.twist = Twist::ZERO;
                    rig.steps(300);
                    assert!(rig.mode().is_driving());
                }
                rig.is_following = false;
                // It slows, stands for an instant, and goes the other way.
                let mut moves = told * most;
                while rig.mode() != Mode::Manoeuvre {
                    moves -= 0.015;
                    rig.set_moved(part.scaled(moves));
                    rig.step();
                }
                let (cause, limit) = (rig.last_cause(), 0.2 + 0.15 * most);
                assert_eq!(cause, Cause::Rolling);
                assert!(-moves < limit + 0.17, "{moves} of {limit}");
                assert_eq!(rig.last.unwrap().control.controls.twist, Twist::ZERO, "follows none");
            }
        }
    }
}

#[test]
fn a_machine_beyond_its_set_point_is_stopped_in_any_part() {
    for (config, _) in kinds() {
        let Config { envelope, .. } = config;
        let mut fast = Vec::from([
            (twist(0.5 * envelope.speed_max, 0.0, 0.0), twist(1.4 * envelope.speed_max, 0.0, 0.0)),
            (twist(0.0, 0.0, 0.3), twist(0.0, 0.0, 0.3 + 0.25 + 0.2 * envelope.yaw_rate_max)),
        ]);
        if config.machine.motion == Motion::Omni {
            fast.push((twist(0.0, 0.1, 0.0), twist(0.0, 0.5, 0.0)));
        }
        for (told, moved) in fast {
            let mut rig = Rig::turning(config, told);
            rig.is_following = false;
            rig.set_moved(moved);
            let (cause, steps) = until_stopped(&mut rig);
            assert!(cause == Cause::Overspeed && steps <= 52, "{cause:?} after {steps}");
        }
    }
}

#[test]
fn a_set_point_that_moves_nothing_is_an_implausible_report() {
    for (config, twists) in kinds() {
        for wanted in twists {
            let mut rig = Rig::turning(config, wanted);
            rig.command().controls.twist = Twist::ZERO;
            rig.steps(300);
            rig.is_following = false;
            rig.set_moved(Twist::ZERO);
            rig.command().controls.twist = wanted;
            let (cause, steps) = until_stopped(&mut rig);
            // The set point rises for a while before it has to move the machine.
            assert!(cause == Cause::SpeedImplausible && steps <= 140, "{cause:?} after {steps}");
            let steps = rig.until_held();
            assert!(steps > 200, "it slows blind: {steps}");
        }
    }
}

#[test]
fn a_report_that_falls_too_fast_stops_the_machine_at_once() {
    for (config, _) in kinds() {
        let Config { envelope, .. } = config;
        let wanted = [twist(envelope.speed_max, 0.0, 0.0), twist(0.0, 0.0, envelope.yaw_rate_max)];
        for wanted in wanted {
            let mut rig = Rig::turning(config, wanted);
            rig.is_following = false;
            rig.set_moved(Twist::ZERO);
            let (cause, steps) = until_stopped(&mut rig);
            assert!(cause == Cause::SpeedImplausible && steps <= 8, "{cause:?} after {steps}");
            let blockers = rig.step().status.blockers;
            assert!(blockers.contains(Blocker::Moving), "its motion is unknown");
        }
    }
}

#[test]
fn a_part_that_does_not_fall_in_a_stop_adds_the_parking_brake() {
    for (config, twists) in kinds() {
        for wanted in twists {
            let mut rig = Rig::turning(config, wanted);
            rig.is_following = false;
            rig.proposal.session = None;
            until_stopped(&mut rig);
            let told = (1..200).find(|_| rig.step().status.why.cause == Cause::BrakeDoesNotAnswer);
            assert!(told.is_some_and(|steps| steps <= 110), "{told:?} at {wanted:?}");
            let controls = rig.last.unwrap().control.controls;
            assert_eq!((controls.twist, controls.parking_brake), (Twist::ZERO, false));
            rig.steps(52);
            assert!(rig.last.unwrap().control.controls.parking_brake);
            assert_eq!(rig.mode(), Mode::Manoeuvre, "it still moves");
            rig.set_moved(Twist::ZERO);
            rig.until_held();
            assert!(rig.step().status.is_latched);
        }
    }
}

#[test]
fn an_unknown_part_of_the_motion_is_a_fault() {
    for (config, _) in kinds() {
        for part in parts(&config) {
            let mut rig = Rig::turning(config, twist(0.3, 0.0, 0.0));
            rig.is_following = false;
            let unknown = |value: f32, part: f32| if part > 0.0 { f32::NAN } else { value };
            let moved = rig.moved();
            rig.set_moved(Twist {
                forward: unknown(moved.forward, part.forward),
                sideways: unknown(moved.sideways, part.sideways),
                yaw_rate: unknown(moved.yaw_rate, part.yaw_rate),
            });
            assert_eq!(until_stopped(&mut rig), (Cause::MachineFault, 1), "{part:?}");
            assert!(rig.last.unwrap().status.blockers.contains(Blocker::Moving));
        }
    }
    let mut rig = Rig::turning(Config::robot(), twist(0.3, 0.0, 0.0));
    rig.machine.sideways_speed = f32::NAN;
    rig.steps(20);
    assert!(rig.mode().is_driving(), "a robot has none");
}

#[test]
fn a_late_picture_limits_speed_and_turn_until_a_fresh_one() {
    for (config, twists) in kinds() {
        for wanted in twists {
            let mut rig = Rig::turning(config, wanted);
            rig.is_seeing = false;
            let cite = |rig: &mut Rig, behind: u32| {
                let tick = rig.guard.tick.get() - behind;
                rig.command().cited = Tick::new(tick);
                rig.step();
            };
            (0..600).for_each(|_| cite(&mut rig, 39));
            let Output { control, status, .. } = rig.last.unwrap();
            assert_eq!((status.mode, status.why.cause), (Mode::Limited, Cause::LoopAge));
            let share = status.speed_bound / config.envelope.speed_max;
            assert!((0.45..0.55).contains(&share), "{share}");
            assert!((status.yaw_rate_bound / config.envelope.yaw_rate_max - share).abs() < 1e-4);
            let told = control.controls.twist;
            assert!(told.yaw_rate.abs() <= status.yaw_rate_bound + 1e-4, "{told:?}");
            assert!(told.speed() <= status.speed_bound + 1e-4, "{told:?}");
            assert!(rig.moved().yaw_rate.abs() <= status.yaw_rate_bound + 0.02);
            let limited =
                status.limits.contains(Limit::Speed) || status.limits.contains(Limit::YawRate);
            let envelope = &config.envelope;
            let was_fast = wanted.speed() > 0.6 * envelope.speed_max
                || wanted.yaw_rate.abs() > 0.6 * envelope.yaw_rate_max;
            assert!(limited || !was_fast, "{wanted:?}: {:?}", status.limits);
            (0..600).for_each(|_| cite(&mut rig, 6));
            assert_eq!(rig.mode(), Mode::Driving);
        }
    }
}

#[test]
fn a_steering_check_is_refused_as_it_would_move_the_machine() {
    for (mut config, _) in kinds() {
        config.presence.dead_man_required = Some(false);
        let mut rig = Rig::with(config);
        rig.steps(20);
        rig.arm(1);
        rig.steps(2);
        let refused = Outcome::Refused(Blocker::NoSteering);
        assert_eq!(outcome(&mut rig, 2, Deed::CheckSteering), refused);
        for _ in 0..300 {
            assert_eq!(rig.step().control.controls.twist, Twist::ZERO);
        }
    }
}

#[test]
fn only_a_twist_moves_a_robot_and_only_pedals_a_car() {
    let mut config = Config::robot();
    config.presence.dead_man_required = Some(false);
    let mut rig = Rig::with(config);
    rig.steps(20);
    rig.arm(1);
    rig.command().controls.throttle = 0.0;
    rig.steps(2);
    rig.command().controls.throttle = 1.0;
    rig.steps(100);
    let controls = rig.last.unwrap().control.controls;
    assert_eq!((rig.mode(), controls.throttle), (Mode::Armed, 0.0));
    rig.command().controls.twist = twist(0.5, 0.4, 0.0);
    rig.steps(200);
    let controls = rig.last.unwrap().control.controls;
    assert_eq!((controls.throttle, controls.twist.sideways), (0.0, 0.0));
    assert!((controls.twist.forward - 0.5).abs() < 1e-3, "{controls:?}");
    let mut car = Rig::driving(5.0);
    car.command().controls.twist = twist(1.0, 0.0, 1.0);
    assert_eq!(car.step().control.controls.twist, Twist::ZERO);
}

#[test]
fn a_machine_that_stands_without_a_set_point_is_held_after_30_s() {
    let mut rig = Rig::turning(Config::robot(), twist(0.0, 0.0, 0.5));
    rig.steps(4_000);
    assert_eq!(rig.mode(), Mode::Driving, "a person turns it");
    rig.command().controls.twist = Twist::ZERO;
    rig.steps(2_990);
    assert_eq!(rig.mode(), Mode::Driving);
    rig.steps(100);
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Held, Cause::Unattended));
}

#[test]
fn a_person_at_the_machine_moves_it_without_a_stop() {
    for (mut config, twists) in kinds() {
        config.presence.dead_man_required = Some(false);
        let mut rig = Rig::with(config);
        rig.steps(20);
        rig.machine.notices = Notices::of(Notice::LocalControl);
        rig.is_following = false;
        rig.set_moved(twists[1]);
        rig.steps(50);
        assert_eq!(rig.mode(), Mode::Held);
        rig.machine.notices = Notices::NONE;
        rig.is_following = true;
        let first = rig.step().control.controls.twist;
        assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::Rolling));
        assert!((first.forward - twists[1].forward).abs() < 0.05, "it is slowed on its arc");
        rig.until_held();
        rig.steps(50);
        assert_eq!(rig.moved(), Twist::ZERO);
    }
}

/// Equal inputs produce equal outputs.
#[test]
fn a_replay_of_a_twist_decides_the_same() {
    for (config, twists) in kinds() {
        for wanted in twists {
            let mut rig = Rig::turning(config, wanted);
            let mut twin = rig.clone();
            for step in 0..400_u32 {
                for rig in [&mut rig, &mut twin] {
                    rig.command().controls.twist = wanted.scaled((step as f32 * 0.1).sin());
                    rig.is_commanding = step % 190 < 150;
                }
                assert_eq!(rig.step(), twin.step());
            }
        }
    }
}
