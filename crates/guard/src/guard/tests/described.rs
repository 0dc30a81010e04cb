//! Axes, actions and requests of a described machine.

use std::vec::Vec;

use super::super::*;
use super::rig::{CONSOLE, Rig};
use crate::description::{
    Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule, AxisStop, Item, Name,
    Unit,
};
use crate::{Actions, Answered, Fault, Twist};

fn axis(form: AxisForm, on_stop: AxisStop) -> Item {
    let rule = AxisRule { form, low: -1.0, high: 1.0, rate: 0.5, on_stop };
    let (name, unit) = (Name::new("boom").unwrap(), Unit::new("rad").unwrap());
    Item::Axis(Axis { name, unit, rule })
}

fn action(form: ActionForm, is_allowed_held: bool) -> Item {
    let rule = ActionRule { form, on_stop: ActionStop::Off, is_allowed_held };
    Item::Action(Action { name: Name::new("dock").unwrap(), rule })
}

/// Axes: one that holds, one that returns to 0.25, one that is released, a speed that ends.
/// Actions: a blade that a person holds down, a request, and a request that is allowed while held.
fn excavator() -> [Item; 7] {
    [
        axis(AxisForm::Position, AxisStop::Hold),
        axis(AxisForm::Position, AxisStop::Value(0.25)),
        axis(AxisForm::Position, AxisStop::Release),
        axis(AxisForm::Speed, AxisStop::Zero),
        action(ActionForm::Momentary, false),
        action(ActionForm::Request, false),
        action(ActionForm::Request, true),
    ]
}

const BLADE: u8 = 0;
const DOCK: u8 = 1;
const LOWER: u8 = 2;

/// Returns an armed machine whose description the guard knows.
fn armed() -> Rig {
    let mut config = Config::robot();
    config.presence.dead_man_required = Some(false);
    let mut rig = Rig::with(config);
    rig.declare(9, &excavator());
    rig.machine.axes = Axes([0.5; 16]);
    rig.steps(20);
    rig.arm(1);
    rig.steps(2);
    assert_eq!(rig.mode(), Mode::Armed, "{:?}", rig.last);
    rig
}

fn axes(rig: &Rig) -> [f32; 4] {
    let Axes([hold, value, release, speed, rest @ ..]) = rig.last.unwrap().control.controls.axes;
    assert!(rest.iter().all(|other| other.is_nan()), "they are not declared");
    [hold, value, release, speed]
}

fn outcome(rig: &Rig) -> Option<Outcome> {
    let answer = rig.last.unwrap().status.answer?;
    (answer.console == CONSOLE).then_some(answer.outcome)
}

#[test]
fn axes_follow_a_driver_and_end_in_a_stop_as_declared() {
    let mut rig = armed();
    assert!(axes(&rig)[..3].iter().all(|set_point| set_point.is_nan()), "nobody moved them");
    rig.command().controls.axes = Axes([1.0; 16]);
    rig.steps(100);
    assert_eq!(rig.mode(), Mode::Armed, "an axis moves a machine that stands");
    for (number, set_point) in axes(&rig).into_iter().enumerate() {
        let wanted = if number == 3 { 0.5 } else { 1.0 };
        assert!((set_point - wanted).abs() < 0.02, "{number}: {set_point}, by 0.5 a second");
    }
    rig.steps(105);
    assert_eq!(axes(&rig), [1.0; 4]);
    rig.is_commanding = false;
    rig.steps(60);
    assert_eq!(rig.mode(), Mode::Held);
    let [hold, value, release, speed] = axes(&rig);
    assert!(hold == 1.0 && value < 1.0 && release.is_nan() && speed < 1.0, "{value} {speed}");
    rig.steps(300);
    let [hold, value, _, speed] = axes(&rig);
    assert_eq!((hold, value, speed), (1.0, 0.25, 0.0));
}

#[test]
fn a_person_moves_no_axis_of_a_held_machine() {
    let mut rig = armed();
    rig.act(2, Deed::Park);
    rig.steps(2);
    assert_eq!(rig.mode(), Mode::Held);
    rig.command().controls.axes = Axes([-1.0; 16]);
    rig.command().controls.actions = Actions::from_bits(u32::MAX);
    rig.steps(100);
    assert!(axes(&rig).iter().all(|set_point| set_point.is_nan() || *set_point >= 0.0));
    assert!(rig.last.unwrap().control.controls.actions.is_empty());
}

#[test]
fn a_blade_is_on_while_held_down_and_off_in_a_stop() {
    let mut rig = armed();
    let blade = |rig: &Rig| rig.last.unwrap().control.controls.actions;
    rig.command().controls.actions = [BLADE, DOCK].into_iter().collect();
    rig.steps(1);
    assert_eq!(blade(&rig), [BLADE].into_iter().collect(), "a request is not switched");
    rig.command().controls.twist = Twist { forward: 0.5, ..Twist::ZERO };
    rig.steps(50);
    assert!(rig.mode().is_driving() && blade(&rig).contains(BLADE));
    rig.proposal.emergency_stop = ActNumber::new(1);
    rig.steps(1);
    assert_eq!(rig.mode(), Mode::Manoeuvre);
    assert!(blade(&rig).is_empty());
}

#[test]
fn a_request_goes_out_until_the_machine_answers_and_once() {
    for is_accepted in [true, false] {
        let mut rig = armed();
        rig.act(5, Deed::Request(DOCK));
        rig.steps(1);
        let request = rig.last.unwrap().control.request.unwrap();
        assert_eq!(request.action, DOCK);
        rig.steps(20);
        assert_eq!(rig.last.unwrap().control.request, Some(request));
        assert_eq!(outcome(&rig), Some(Outcome::Done), "of arming: there is no answer yet");
        rig.act(6, Deed::Request(DOCK));
        rig.steps(1);
        assert_eq!(outcome(&rig), Some(Outcome::Refused(Blocker::Busy)));
        rig.act(5, Deed::Request(DOCK));
        rig.machine.answered = Some(Answered { number: request.number, is_accepted });
        rig.steps(1);
        let expected =
            if is_accepted { Outcome::Done } else { Outcome::Refused(Blocker::MachineRefused) };
        let answer = rig.last.unwrap().status.answer.unwrap();
        assert_eq!((answer.number.get(), answer.outcome), (5, expected));
        assert_eq!(rig.last.unwrap().control.request, None);
        rig.steps(50);
        assert_eq!(rig.last.unwrap().control.request, None, "the act came again");
    }
}

#[test]
fn a_request_without_an_answer_is_refused_after_a_second() {
    let mut rig = armed();
    rig.act(5, Deed::Request(DOCK));
    rig.steps(100);
    assert!(rig.last.unwrap().control.request.is_some());
    rig.steps(1);
    assert_eq!(outcome(&rig), Some(Outcome::Refused(Blocker::NoAnswer)));
    assert_eq!(rig.last.unwrap().control.request, None);
}

#[test]
fn requests_are_refused_by_mode_console_and_declaration() {
    let mut rig = armed();
    for (number, action, blocker) in
        [(5, BLADE, Blocker::UnknownAction), (6, 31, Blocker::UnknownAction)]
    {
        rig.act(number, Deed::Request(action));
        rig.steps(1);
        assert_eq!(outcome(&rig), Some(Outcome::Refused(blocker)), "{action}");
    }
    rig.act(7, Deed::Request(DOCK));
    rig.steps(1);
    rig.is_commanding = false;
    rig.steps(60);
    assert_eq!(rig.mode(), Mode::Held);
    assert_eq!(outcome(&rig), Some(Outcome::Refused(Blocker::Mode)), "the stop ended it");
    rig.is_commanding = true;
    rig.act(8, Deed::Request(DOCK));
    rig.steps(1);
    assert_eq!(outcome(&rig), Some(Outcome::Refused(Blocker::Mode)));
    rig.act(9, Deed::Request(LOWER));
    rig.steps(1);
    assert_eq!(rig.last.unwrap().control.request.map(|request| request.action), Some(LOWER));
}

#[test]
fn another_description_stops_the_machine_and_counts_when_held() {
    let mut rig = armed();
    rig.command().controls.twist = Twist { forward: 0.5, ..Twist::ZERO };
    rig.steps(50);
    assert!(rig.mode().is_driving());
    rig.proposal.act = None;
    rig.declare(10, &excavator()[..4]);
    rig.steps(1);
    assert_eq!((rig.mode(), rig.last_cause()), (Mode::Manoeuvre, Cause::MachineFault));
    let faults = rig.last.unwrap().status.why.value as u32;
    assert_eq!(faults, 1 << Fault::Description.number());
    rig.command().controls.twist = Twist::ZERO;
    rig.until_held();
    rig.steps(10);
    rig.arm(11);
    rig.steps(2);
    assert_eq!(rig.mode(), Mode::Armed, "{:?}", rig.last.unwrap().status.blockers);
}

#[test]
fn an_incomplete_description_prevents_arming() {
    let mut rig = Rig::new();
    let blockers = |rig: &Rig| rig.last.unwrap().status.blockers;
    rig.step();
    assert!(blockers(&rig).contains(Blocker::Description), "one of six entries has arrived");
    rig.steps(6);
    assert!(!blockers(&rig).contains(Blocker::Description));
    rig.machine.description = None;
    rig.steps(1);
    assert!(!blockers(&rig).contains(Blocker::Description), "it declares nothing");
    let entries: Vec<_> = rig.entries.drain(..).collect();
    rig.machine.description = Some(entries[0].revision);
    rig.steps(1);
    assert!(!blockers(&rig).contains(Blocker::Description), "it is known already");
}
