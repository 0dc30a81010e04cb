//! Conversion between messages and the guard's own types.

use tautline_guard::act::{Act, Agreement, Deed};
use tautline_guard::description::ACTIONS_MAX;
use tautline_guard::frame::{Absences, Command};
use tautline_guard::identity::{ActNumber, Console, Stop, Tick};
use tautline_guard::{Controls, Extra, Reported};
use tautline_message as message;
use tautline_message::snapshot::Value;

/// Content of one command of the operator, in the guard's types.
pub(crate) struct Asked {
    /// Controls, with the console, its successor, the dead-man input and the cited tick; `None` if
    /// the command names no console.
    pub(crate) command: Option<Command>,
    pub(crate) act: Option<Act>,
    pub(crate) emergency_stop: Option<ActNumber>,
}

/// Converts a command of the operator to the guard's types. An act without a console or a number,
/// a reset without its stop, or a request for an action that no machine can have, is left out.
pub(crate) fn proposed(command: &message::Command) -> Asked {
    let controls = Controls {
        steering: command.steering,
        throttle: command.throttle,
        brake: command.brake,
        gear: command.gear,
        parking_brake: false,
        twist: command.twist,
        axes: command.axes,
        actions: command.actions,
    };
    let console = Console::new(command.console);
    let driven = |console| Command {
        sequence: command.sequence,
        console,
        successor: Console::new(command.successor),
        controls,
        dead_man: command.dead_man,
        absences: Absences::from_any_bits(command.absences),
        cited: Tick::new(command.cited),
        age: None,
    };
    let act = command.act.and_then(|act| {
        let deed = match act.deed {
            message::Deed::Arm => Deed::Arm,
            message::Deed::Reset => Deed::Reset(Stop::new(act.stop)?),
            message::Deed::Park => Deed::Park,
            message::Deed::TakeOver => Deed::TakeOver,
            message::Deed::CheckSteering => Deed::CheckSteering,
            message::Deed::SteeringAgrees => Deed::Steering(Agreement::Agrees),
            message::Deed::SteeringWrong => Deed::Steering(Agreement::Wrong),
            message::Deed::SteeringUnseen => Deed::Steering(Agreement::Unseen),
            message::Deed::Request => Deed::Request(action(act.stop)?),
        };
        Some(Act { console: console?, number: ActNumber::new(act.number)?, deed, age: None })
    });
    let emergency_stop = ActNumber::new(command.emergency_stop_number);
    Asked { command: console.map(driven), act, emergency_stop }
}

/// Returns the number of a declared action; `None` from 32 on, which no machine declares.
fn action(number: u32) -> Option<u8> {
    u8::try_from(number).ok().filter(|number| usize::from(*number) < ACTIONS_MAX)
}

/// Returns those of the machine's optional numbers that it reports, as values.
pub(crate) fn told(told: &Reported) -> impl Iterator<Item = Value> + use<> {
    let named = Reported::NAMES.iter().zip(told.numbers());
    named.filter_map(|((name, unit), number)| Some(Value::of(name, number?.into(), unit)))
}

/// Returns the machine's extras as values, up to the number that a message holds. One with a name
/// or unit that is too long, or a number that is not finite, is left out.
pub(crate) fn extras(extras: &[Extra]) -> impl Iterator<Item = Value> + '_ {
    let values = extras.iter().map(|extra| Value::of(extra.name, extra.value, extra.unit));
    values.filter(Value::is_possible).take(Extra::COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use tautline_guard::frame::Absence;
    use tautline_guard::{Actions, Axes, Twist};
    use tautline_message::snapshot::{End, ProcessStats};

    use super::*;

    #[test]
    fn a_command_says_whose_it_is_or_drives_nothing() {
        let mut axes = Axes::NONE;
        axes.0[1] = -0.5;
        let act = message::Act { number: 3, stop: 0, deed: message::Deed::Reset };
        let command = message::Command {
            console: 7,
            cited: 9,
            act: Some(act),
            absences: u32::MAX,
            twist: Twist { forward: 0.5, sideways: -0.25, yaw_rate: 1.5 },
            axes,
            actions: Actions::from_bits(0b100),
            ..message::Command::default()
        };
        let asked = proposed(&command);
        let driven = asked.command.unwrap();
        assert_eq!((driven.cited, driven.absences.iter().count()), (Tick::new(9), 5));
        assert_eq!(driven.controls.twist, command.twist);
        assert_eq!((driven.controls.axes, driven.controls.actions), (axes, command.actions));
        assert!(asked.act.is_none(), "a reset names its stop");
        // An absence that only a later build knows counts as an absence.
        for bit in 4..32 {
            let later = proposed(&message::Command { absences: 1 << bit, ..command });
            assert_eq!(later.command.unwrap().absences, Absences::of(Absence::Unknown));
        }
        let nobody = proposed(&message::Command { console: 0, ..command });
        assert!(nobody.command.is_none());
    }

    #[test]
    fn a_request_names_an_action_that_a_machine_can_have() {
        let asked = |stop| {
            let act = message::Act { number: 3, stop, deed: message::Deed::Request };
            let command =
                message::Command { console: 7, act: Some(act), ..message::Command::default() };
            proposed(&command).act.map(|act| act.deed)
        };
        assert_eq!((asked(0), asked(31)), (Some(Deed::Request(0)), Some(Deed::Request(31))));
        assert_eq!((asked(32), asked(256), asked(u32::MAX)), (None, None, None));
    }

    #[test]
    fn known_optional_numbers_have_a_name_and_a_unit() {
        let charge = Reported { charge: Some(48.5), ..Reported::default() };
        assert_eq!(told(&charge).collect::<Vec<_>>(), [Value::of("charge", 48.5, "%")]);
        let values = told(&Reported::from_numbers([Some(1.0); Reported::COUNT]));
        assert!(values.filter(Value::is_possible).count() == Reported::COUNT);
    }

    /// No extras of a machine produce a snapshot that the operator rejects.
    #[test]
    fn any_machine_state_makes_a_valid_message() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e30, 0.0] {
            let unit = "u".repeat(17);
            let given = [Extra { name: "a", value, unit: unit.leak() }; 2];
            let given = [&given[..], &[Extra { name: "b", value, unit: "V" }; 20]].concat();
            let process = ProcessStats { values: extras(&given).collect(), drops: vec![] };
            let snapshot = message::Snapshot {
                process: Some(process),
                ..message::Snapshot::empty(End::Vehicle)
            };
            assert_eq!(message::Snapshot::decode(&snapshot.encode()), Ok(snapshot));
        }
    }
}
