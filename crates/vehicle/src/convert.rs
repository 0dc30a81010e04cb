//! Conversion between messages and the guard's own types.

use std::f32::consts::PI;

use tautline_guard::act::{Act, Agreement, Blocker, Deed, Outcome};
use tautline_guard::frame::{Absences, BlackBox, Command, DeadMan, Status};
use tautline_guard::identity::{ActNumber, Console, Stop, Tick};
use tautline_guard::{
    Cause, Controls, Extra, Fault, Gear, MachineState, Member, Mode, Position, Set, Told, Why,
};
use tautline_message as message;
use tautline_message::snapshot::Value;

/// Requests of one command to the guard.
pub(crate) struct Asked {
    /// Controls; `None` if the command names no console.
    pub(crate) command: Option<Command>,
    pub(crate) act: Option<Act>,
    pub(crate) emergency_stop: Option<ActNumber>,
}

/// Returns the requests of a command to the guard.
pub(crate) fn proposed(command: &message::Command) -> Asked {
    let controls = Controls {
        steering: command.steering,
        throttle: command.throttle,
        brake: command.brake,
        gear: match command.gear {
            message::Gear::Drive => Gear::Drive,
            message::Gear::Reverse => Gear::Reverse,
        },
        parking_brake: false,
        signals: known(command.signals),
    };
    let console = Console::new(command.console);
    let driven = |console| Command {
        sequence: command.sequence,
        console,
        successor: Console::new(command.successor),
        controls,
        dead_man: match command.dead_man {
            message::DeadMan::Absent => DeadMan::Absent,
            message::DeadMan::Held => DeadMan::Held,
            message::DeadMan::Released => DeadMan::Released,
        },
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
        };
        Some(Act { console: console?, number: ActNumber::new(act.number)?, deed, age: None })
    });
    let emergency_stop = ActNumber::new(command.emergency_stop_number);
    Asked { command: console.map(driven), act, emergency_stop }
}

/// Returns the members whose bits are set; bits of a later version are ignored.
fn known<E: Member>(bits: u32) -> Set<E> {
    let known = E::ALL.iter().copied().collect::<Set<E>>().bits();
    Set::from_bits(bits & known).unwrap_or_default()
}

/// Returns the mode, and its reason in words for the operator.
pub(crate) fn mode(status: &Status) -> (message::Mode, String) {
    let why = why(&status.why);
    match (status.mode, status.why.cause) {
        (Mode::Held, Cause::Started) => (message::Mode::AwaitingOperator, why),
        (Mode::Held, _) if status.is_latched => {
            (message::Mode::Stopped, format!("{why}; it has to be reset"))
        }
        (Mode::Held, _) => (message::Mode::Stopped, why),
        (Mode::Armed | Mode::Driving, _) => (message::Mode::Driving, String::new()),
        (Mode::Limited, _) => (message::Mode::Driving, why),
        (Mode::Manoeuvre, _) => (message::Mode::Stopping, why),
    }
}

/// Returns a cause in words.
fn why(why: &Why) -> String {
    let (value, limit) = (why.value, why.limit);
    match why.cause {
        Cause::Started => "the guard has just started".to_owned(),
        Cause::PictureAge => {
            format!("the newest picture seen is {value:.0} ms old, {limit:.0} are allowed")
        }
        Cause::CommandTimeout => format!("no fresh command for {value:.0} ms"),
        Cause::ProposalTimeout => format!("the vehicle's process was silent for {value:.0} ms"),
        Cause::MachineTimeout => format!("the machine was silent for {value:.0} ms"),
        Cause::BrakeDoesNotAnswer => {
            format!("the brake does not answer: {value:.1} m/s² of {limit:.1}")
        }
        Cause::EmergencyStop => "emergency stop".to_owned(),
        Cause::ConsoleGone => "the console has gone".to_owned(),
        Cause::PageHidden => "the page was hidden".to_owned(),
        Cause::FocusLost => "the page lost the keyboard".to_owned(),
        Cause::InputsUnhealthy => "an input is not sound".to_owned(),
        Cause::DeadManReleased => "the dead-man input was let go of".to_owned(),
        Cause::SessionEnded => "the session ended".to_owned(),
        Cause::ConsoleChanged => "another console sends commands".to_owned(),
        Cause::LocalStop => "a person at the machine stopped it".to_owned(),
        Cause::LocalControl => "a person at the machine drives it".to_owned(),
        Cause::MachineFault => "something of the machine does not work".to_owned(),
        Cause::GuardSilent => "the guard was silent, and the machine braked by itself".to_owned(),
        Cause::GuardLate => format!("the guard came {value:.0} ms late, {limit:.0} are allowed"),
        Cause::Overspeed => format!("{value:.1} m/s where {limit:.1} are allowed"),
        Cause::Rolling => format!("it rolls at {value:.1} m/s, held or against its gear"),
        Cause::CameraStopped => "the camera gives no pictures".to_owned(),
        Cause::EncoderStopped => "the encoders give no slices".to_owned(),
        Cause::Parked => "parked".to_owned(),
        Cause::ArmExpired => format!("armed for {value:.0} ms, and nobody drove"),
        Cause::Arm => "armed".to_owned(),
        Cause::Throttle => "throttle was given".to_owned(),
        Cause::LoopAge => format!("slower: the picture is {value:.0} ms old"),
        Cause::Standstill => "it stands".to_owned(),
        Cause::Reset => "the stop was reset".to_owned(),
        Cause::Unattended => format!("unattended: no input for {:.0} s", value / 1e3),
        Cause::SpeedImplausible => {
            format!("the machine says {value:.1} m/s, and {limit:.1} m/s are possible")
        }
        Cause::CameraBlind => "the picture is of one brightness all over".to_owned(),
        Cause::SteeringWrong => {
            "the picture is mirrored or the steering is wrong, as a person saw".to_owned()
        }
    }
}

/// Returns the guard's status for the operator.
pub(crate) fn guard(status: &Status) -> message::GuardState {
    let most = message::GuardState::VALUE_MAX;
    let finite = |value: f32| if value.is_nan() { 0.0 } else { value.clamp(-most, most) };
    let positive = |value: f32| finite(value).max(0.0);
    let machine = status.machine.map(|(machine, _)| machine).unwrap_or_default();
    message::GuardState {
        tick: status.tick.get(),
        mode: guard_mode(status.mode),
        cause: cause(status.why.cause),
        value: finite(status.why.value),
        limit: finite(status.why.limit),
        stop: status.stop.get(),
        is_latched: status.is_latched,
        emergency_stop: ActNumber::to_wire(status.emergency_stop),
        answer: status.answer.map(|answer| message::ActAnswer {
            console: answer.console.get(),
            number: answer.number.get(),
            refused: match answer.outcome {
                Outcome::Done => None,
                Outcome::Refused(by) => Some(blocker(by)),
            },
        }),
        blockers: status.blockers.bits(),
        holder: Console::to_wire(status.holder),
        loop_age: status.loop_age,
        command_age: status.command_age,
        speed_bound: finite(status.speed_bound),
        countdown: status.countdown.map(|(of, left)| (cause(of), left)),
        limits: status.limits.bits(),
        machine_age: status.machine.map(|(_, age)| age),
        notices: machine.notices.bits(),
        signals: machine.signals.bits(),
        black_box: black_box(status.black_box),
        budget: Some(message::Budget {
            picture_age_max: status.budget.picture_age_max,
            command_age_max: status.budget.command_age_max,
            deceleration_begin: positive(status.budget.deceleration_begin),
            deceleration: positive(status.budget.deceleration),
            jerk: positive(status.budget.jerk),
        }),
    }
}

/// Converts a guard's enum to its counterpart in messages.
macro_rules! twin {
    ($name:ident: $guard:ident => $message:ident, [$($variant:ident),+ $(,)?]) => {
        fn $name(value: $guard) -> message::$message {
            match value {
                $($guard::$variant => message::$message::$variant,)+
            }
        }
    };
}

twin!(guard_mode: Mode => GuardMode, [Held, Armed, Driving, Limited, Manoeuvre]);
twin!(cause: Cause => Cause, [Started, PictureAge, CommandTimeout, ProposalTimeout, MachineTimeout, BrakeDoesNotAnswer, EmergencyStop, ConsoleGone, PageHidden, FocusLost, InputsUnhealthy, DeadManReleased, SessionEnded, ConsoleChanged, LocalStop, LocalControl, MachineFault, GuardSilent, GuardLate, Overspeed, Rolling, CameraStopped, EncoderStopped, Parked, ArmExpired, Arm, Throttle, LoopAge, Standstill, Reset, Unattended, SpeedImplausible, CameraBlind, SteeringWrong]);
twin!(black_box: BlackBox => BlackBox, [Absent, Records, DiskFull, DiskRefuses, DiskBehind, Ended]);
twin!(blocker: Blocker => Blocker, [Mode, Latched, Moving, MachineSilent, LocalPerson, MachineFault, VehicleSilent, NoSession, NoCommand, OtherConsole, ThrottlePressed, PictureAge, PersonAbsent, DeadMan, VehicleTrouble, StaleAct, OtherStop, NotNamed, LatchNotKept]);

pub(crate) fn gear(gear: Gear) -> message::Gear {
    match gear {
        Gear::Drive => message::Gear::Drive,
        Gear::Reverse => message::Gear::Reverse,
    }
}

/// Returns speed and steering angle, clamped to a message's range; an unknown value is sent as 0,
/// along with the fault.
pub(crate) fn motion(state: &MachineState) -> (f32, f32) {
    let known = |value: f32| if value.is_nan() { 0.0 } else { value };
    let speed =
        known(state.speed).clamp(-message::Telemetry::SPEED_MAX, message::Telemetry::SPEED_MAX);
    (speed, known(state.steering_angle).clamp(-PI, PI))
}

/// Returns the machine's position, if it is known and in a message's range.
pub(crate) fn position(state: &MachineState) -> Option<message::Position> {
    let Position { x, y, heading } = state.position?;
    let position = message::Position { x, y, heading };
    position.is_possible().then_some(position)
}

/// Returns the machine's faults, including an unknown speed.
pub(crate) fn faults(state: &MachineState) -> Vec<message::Fault> {
    let faults = match state.speed.is_nan() {
        true => state.faults.with(Fault::Speed),
        false => state.faults,
    };
    let convert = |fault| match fault {
        Fault::Unreachable => message::Fault::Unreachable,
        Fault::Refused => message::Fault::Refused,
        Fault::EmergencyButton => message::Fault::EmergencyButton,
        Fault::Steering => message::Fault::Steering,
        Fault::Drive => message::Fault::Drive,
        Fault::Brake => message::Fault::Brake,
        Fault::Gear => message::Fault::Gear,
        Fault::Speed => message::Fault::Speed,
        Fault::Other => message::Fault::Other,
    };
    faults.iter().map(convert).collect()
}

/// Returns the machine's optional numbers as values.
pub(crate) fn told(told: &Told) -> impl Iterator<Item = Value> + use<> {
    let named = Told::NAMES.iter().zip(told.numbers());
    named.filter_map(|((name, unit), number)| Some(Value::of(name, number?.into(), unit)))
}

/// Returns as many extras as a message holds, as values.
pub(crate) fn extras(extras: &[Extra]) -> impl Iterator<Item = Value> + '_ {
    let values = extras.iter().map(|extra| Value::of(extra.name, extra.value, extra.unit));
    values.filter(Value::is_possible).take(Extra::COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use tautline_guard::config::Config;
    use tautline_guard::frame::Absence;
    use tautline_guard::{Faults, Guard, Input};
    use tautline_message::snapshot::{End, ProcessStats};

    use super::*;

    fn status(mode: Mode, why: Why) -> Status {
        let mut guard = Guard::new(Config::default(), Tick::new(3).unwrap());
        let output = guard.step(&Input::default(), tautline_units::Instant::ZERO);
        Status { mode, why, ..output.status }
    }

    #[test]
    fn every_cause_is_told_in_words() {
        let told = |mode, cause| super::mode(&status(mode, Why::new(cause, 312.0, 300.0)));
        let (stopping, why) = told(Mode::Manoeuvre, Cause::CommandTimeout);
        assert_eq!(
            (stopping, why.as_str()),
            (message::Mode::Stopping, "no fresh command for 312 ms")
        );
        assert_eq!(told(Mode::Held, Cause::EmergencyStop).0, message::Mode::Stopped);
        assert_eq!(told(Mode::Held, Cause::Started).0, message::Mode::AwaitingOperator);
        assert_eq!(told(Mode::Driving, Cause::Throttle), (message::Mode::Driving, String::new()));
        for cause in Cause::ALL {
            let words = told(Mode::Held, *cause).1;
            assert!(!words.is_empty() && words.len() < 128, "{words}");
        }
    }

    #[test]
    fn whatever_a_guard_says_makes_a_message() {
        for (number, why) in Cause::ALL.iter().zip([f32::NAN, f32::INFINITY, -1e30].iter().cycle())
        {
            let state = guard(&Status {
                speed_bound: *why,
                answer: Some(tautline_guard::act::Answer {
                    console: Console::new(u64::MAX).unwrap(),
                    number: ActNumber::new(4).unwrap(),
                    outcome: Outcome::Refused(Blocker::Moving),
                }),
                ..status(Mode::Limited, Why::new(*number, *why, *why))
            });
            let telemetry = message::Telemetry { guard: Some(state), ..Default::default() };
            assert_eq!(message::Telemetry::decode(&telemetry.encode()), Ok(telemetry));
        }
    }

    #[test]
    fn a_command_says_whose_it_is_or_drives_nothing() {
        let act = message::Act { number: 3, stop: 0, deed: message::Deed::Reset };
        let command = message::Command {
            console: 7,
            cited: 9,
            act: Some(act),
            absences: u32::MAX,
            signals: 1 | 1 << 31,
            ..message::Command::default()
        };
        let asked = proposed(&command);
        let driven = asked.command.unwrap();
        assert_eq!((driven.cited, driven.absences.iter().count()), (Tick::new(9), 5));
        assert_eq!(driven.controls.signals.iter().count(), 1);
        assert!(asked.act.is_none(), "a reset names its stop");
        // An absence that only a later build knows counts as an absence.
        for bit in 4..32 {
            let later = proposed(&message::Command { absences: 1 << bit, ..command });
            assert_eq!(later.command.unwrap().absences, Absences::of(Absence::Unknown));
        }
        let nobody = proposed(&message::Command { console: 0, ..command });
        assert!(nobody.command.is_none());
    }

    /// The page uses the same names, in the same order.
    #[test]
    fn the_page_has_the_same_list_of_what_a_machine_tells() {
        let page = include_str!("../../../console/src/reading.ts");
        let (_, rest) = page.split_once("const TOLD = [").expect("it has a list");
        let (list, _) = rest.split_once(']').expect("it ends");
        let listed: Vec<&str> = list.split('\'').skip(1).step_by(2).collect();
        let camel = |name: &str| {
            let mut words = name.split(' ').map(str::to_owned);
            let first = words.next().unwrap_or_default();
            words.fold(first, |camel, word| camel + &word[..1].to_uppercase() + &word[1..])
        };
        let names: Vec<String> = Told::NAMES.iter().map(|(name, _)| camel(name)).collect();
        assert_eq!(listed, names);
    }

    #[test]
    fn what_a_machine_tells_for_people_has_a_name_and_a_unit_if_it_is_known() {
        let charge = Told { charge: Some(48.5), ..Told::default() };
        assert_eq!(told(&charge).collect::<Vec<_>>(), [Value::of("charge", 48.5, "%")]);
        let values = told(&Told::from_numbers([Some(1.0); Told::COUNT]));
        assert!(values.filter(Value::is_possible).count() == Told::COUNT);
    }

    /// No state of a machine produces telemetry that the operator rejects.
    #[test]
    fn whatever_a_machine_says_makes_a_message() {
        let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, 0.0];
        for speed in odd {
            for angle in odd {
                let state = MachineState {
                    speed,
                    steering_angle: angle,
                    position: Some(Position { x: speed, y: angle, heading: speed }),
                    faults: Fault::ALL.iter().copied().collect(),
                    ..MachineState::default()
                };
                let unit = "u".repeat(17);
                let value = f64::from(speed);
                let given = [Extra { name: "a", value, unit: unit.leak() }; 2];
                let (speed, steering_angle) = motion(&state);
                let telemetry = message::Telemetry {
                    speed,
                    steering_angle,
                    position: position(&state),
                    faults: faults(&state),
                    ..message::Telemetry::default()
                };
                assert_eq!(message::Telemetry::decode(&telemetry.encode()), Ok(telemetry));
                let given = [&given[..], &[Extra { name: "b", value, unit: "V" }; 20]].concat();
                let process = ProcessStats { values: extras(&given).collect(), drops: vec![] };
                let snapshot = message::Snapshot {
                    process: Some(process),
                    ..message::Snapshot::empty(End::Vehicle)
                };
                assert_eq!(message::Snapshot::decode(&snapshot.encode()), Ok(snapshot));
            }
        }
        let unknown = MachineState { speed: f32::NAN, ..MachineState::default() };
        assert_eq!(faults(&unknown), [message::Fault::Speed]);
        assert_eq!(unknown.faults, Faults::NONE);
    }
}
