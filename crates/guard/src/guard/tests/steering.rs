//! The steering check, and the checks of the vehicle's pictures.

use std::vec::Vec;

use super::rig::Rig;
use crate::Cause;
use crate::act::{Agreement, Blocker, Deed, Outcome};
use crate::frame::{Trouble, Troubles};
use crate::guard::Mode;

fn armed() -> Rig {
    let mut rig = Rig::new();
    rig.steps(20);
    rig.arm(1);
    rig.steps(2);
    assert_eq!(rig.mode(), Mode::Armed);
    rig
}

fn outcome(rig: &mut Rig, number: u32, deed: Deed) -> Outcome {
    rig.act(number, deed);
    rig.step().status.answer.unwrap().outcome
}

#[test]
fn the_steering_check_turns_left_right_and_back_then_yields() {
    let mut rig = armed();
    rig.command().controls.steering = -0.9;
    rig.steps(100);
    assert_eq!(outcome(&mut rig, 2, Deed::CheckSteering), Outcome::Done);
    let mut turned = Vec::new();
    for _ in 0..360 {
        let controls = rig.step().control.controls;
        assert!(controls.throttle == 0.0 && controls.brake > 0.0, "{controls:?}");
        turned.push(controls.steering);
    }
    assert_eq!([turned[115], turned[235], turned[355]], [0.3, -0.3, 0.0]);
    let rate = turned.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
    let config = rig.guard.config();
    let most = config.envelope.steering_rate / config.machine.steering_angle_max * 0.0101;
    assert!(rate <= most, "{rate} of {most}");
    rig.steps(150);
    assert_eq!(rig.last.unwrap().control.controls.steering, -0.9);
    assert_eq!(outcome(&mut rig, 3, Deed::Steering(Agreement::Agrees)), Outcome::Done);
    assert_eq!(rig.mode(), Mode::Armed);
}

#[test]
fn a_mirrored_picture_holds_the_machine_until_a_reset() {
    let mut rig = armed();
    assert_eq!(outcome(&mut rig, 2, Deed::CheckSteering), Outcome::Done);
    rig.steps(250);
    assert_eq!(outcome(&mut rig, 3, Deed::Steering(Agreement::Wrong)), Outcome::Done);
    let status = rig.last.unwrap().status;
    assert_eq!((status.mode, status.why.cause), (Mode::Held, Cause::SteeringWrong));
    assert!(status.is_latched);
    rig.steps(10);
    assert_eq!(outcome(&mut rig, 4, Deed::Arm), Outcome::Refused(Blocker::Latched));
    assert_eq!(outcome(&mut rig, 5, Deed::Reset(status.stop)), Outcome::Done);
    rig.arm(6);
    rig.steps(2);
    assert_eq!(rig.mode(), Mode::Armed);
}

#[test]
fn the_steering_is_checked_at_armed_alone_and_throttle_ends_it() {
    let refused = Outcome::Refused(Blocker::Mode);
    let mut rig = Rig::new();
    rig.steps(20);
    assert_eq!(outcome(&mut rig, 1, Deed::CheckSteering), refused, "held");
    let mut rig = armed();
    assert_eq!(
        outcome(&mut rig, 2, Deed::Steering(Agreement::Wrong)),
        refused,
        "nothing was shown"
    );
    assert_eq!(outcome(&mut rig, 3, Deed::CheckSteering), Outcome::Done);
    rig.command().controls.throttle = 0.4;
    rig.steps(60);
    assert_eq!(rig.mode(), Mode::Driving);
    assert_eq!(rig.last.unwrap().control.controls.steering, 0.0, "the person's");
    for (number, deed) in [(4, Deed::CheckSteering), (5, Deed::Steering(Agreement::Wrong))] {
        assert_eq!(outcome(&mut rig, number, deed), refused, "driving");
    }
    assert_eq!(rig.mode(), Mode::Driving);
}

#[test]
fn a_blind_camera_or_contradicted_motion_stops_the_machine() {
    for (trouble, cause) in
        [(Trouble::Blind, Cause::CameraBlind), (Trouble::Motion, Cause::SpeedImplausible)]
    {
        let mut rig = Rig::driving(5.0);
        rig.proposal.troubles = Troubles::of(trouble);
        rig.steps(1);
        assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, cause));
        rig.until_held();
        rig.command().controls.throttle = 0.0;
        assert_eq!(outcome(&mut rig, 2, Deed::Arm), Outcome::Refused(Blocker::VehicleTrouble));
    }
}
