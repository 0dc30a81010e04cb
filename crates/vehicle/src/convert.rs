//! What passes between messages and the guard, which has types of its own for it.

use std::f32::consts::PI;

use tautline_guard::failsafe::{Config, Demand, Mode, Reason};
use tautline_guard::{Controls, Extra, Fault, Gear, MachineState, Position};
use tautline_message as message;
use tautline_message::snapshot::Value;

/// Returns what a command demands of the machine.
pub(crate) fn demand(command: &message::Command) -> Demand {
    let controls = Controls {
        steering: command.steering,
        throttle: command.throttle,
        brake: command.brake,
        gear: match command.gear {
            message::Gear::Drive => Gear::Drive,
            message::Gear::Reverse => Gear::Reverse,
        },
        ..Controls::default()
    };
    Demand { sequence: command.sequence, controls, emergency_stop: command.emergency_stop }
}

/// Returns the failsafe's mode, and why it is so, in words for the operator.
pub(crate) fn mode(mode: Mode, config: &Config) -> (message::Mode, String) {
    let why = |reason: Reason| match reason {
        Reason::CommandTimeout => {
            format!("no fresh command for {} ms", config.command_timeout.as_millis())
        }
        Reason::EmergencyStop => "the operator asked to stop".to_owned(),
    };
    match mode {
        Mode::AwaitingOperator => (message::Mode::AwaitingOperator, "no operator yet".to_owned()),
        Mode::Driving => (message::Mode::Driving, String::new()),
        Mode::Stopping(reason) => (message::Mode::Stopping, why(reason)),
        Mode::Stopped(reason) => (message::Mode::Stopped, why(reason)),
        Mode::AwaitingRelease(reason) => {
            (message::Mode::AwaitingRelease, format!("{}; let go of the throttle", why(reason)))
        }
    }
}

pub(crate) fn gear(gear: Gear) -> message::Gear {
    match gear {
        Gear::Drive => message::Gear::Drive,
        Gear::Reverse => message::Gear::Reverse,
    }
}

/// Returns the speed and the steering angle within what a message holds: a machine that gives no
/// number tells 0 and the fault.
pub(crate) fn motion(state: &MachineState) -> (f32, f32) {
    let known = |value: f32| if value.is_nan() { 0.0 } else { value };
    let speed =
        known(state.speed).clamp(-message::Telemetry::SPEED_MAX, message::Telemetry::SPEED_MAX);
    (speed, known(state.steering_angle).clamp(-PI, PI))
}

/// Returns where the machine is, if it knows and a message has room for it.
pub(crate) fn position(state: &MachineState) -> Option<message::Position> {
    let Position { x, y, heading } = state.position?;
    let position = message::Position { x, y, heading };
    position.is_possible().then_some(position)
}

/// Returns the faults of the machine, a speed that is not known among them.
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

/// Returns those of the extras that a message has room for, as values.
pub(crate) fn extras(extras: &[Extra]) -> impl Iterator<Item = Value> + '_ {
    let values = extras.iter().map(|extra| Value::of(extra.name, extra.value, extra.unit));
    values.filter(Value::is_possible).take(Extra::COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tautline_guard::Faults;
    use tautline_message::snapshot::{End, ProcessStats};

    use super::*;

    #[test]
    fn every_reason_is_told_in_words() {
        let config = Config { command_timeout: Duration::from_millis(300), ..Config::default() };
        let told = |guard| mode(guard, &config);
        let timeout = Reason::CommandTimeout;
        let (stopping, why) = told(Mode::Stopping(timeout));
        assert_eq!(
            (stopping, why.as_str()),
            (message::Mode::Stopping, "no fresh command for 300 ms")
        );
        let (released, why) = told(Mode::AwaitingRelease(timeout));
        assert_eq!(released, message::Mode::AwaitingRelease);
        assert_eq!(why, "no fresh command for 300 ms; let go of the throttle");
        let (_, why) = told(Mode::Stopped(Reason::EmergencyStop));
        assert_eq!(why, "the operator asked to stop");
        assert_eq!(told(Mode::Driving), (message::Mode::Driving, String::new()));
    }

    /// A machine's word does not make its telemetry one that the operator refuses.
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
