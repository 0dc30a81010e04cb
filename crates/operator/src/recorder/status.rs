//! The guard's status in readable form, as a topic of its own: telemetry has it as a frame.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use tautline_guard::Readable;
use tautline_guard::act::{Answer, Outcome};
use tautline_guard::frame::{Budget, Status};
use tautline_message::Telemetry;
use tautline_transport::channel::Descriptor;

/// Descriptor of the topic `/vehicle/guard`, with its JSON schema.
pub(crate) static DESCRIPTOR: LazyLock<Arc<Descriptor>> = LazyLock::new(|| {
    Arc::new(Descriptor {
        topic: "/vehicle/guard".to_owned(),
        message_encoding: "json".to_owned(),
        schema_name: "tautline.Status".to_owned(),
        schema_encoding: "jsonschema".to_owned(),
        schema: include_bytes!("status.json").to_vec(),
    })
});

/// Returns the guard's status of one telemetry message as JSON; `None` while the guard is silent.
pub(crate) fn message(telemetry: &Telemetry) -> Option<Vec<u8>> {
    let status = telemetry.status()?;
    Some(body(status, telemetry).to_string().into_bytes())
}

fn body(status: &Status, telemetry: &Telemetry) -> Value {
    let mut body = serde_json::to_value(Readable(status)).expect("structs of numbers and names");
    body["sequence"] = telemetry.sequence.into();
    body["mode_reason"] = json!(telemetry.mode_reason);
    body["source_trouble"] = json!(telemetry.source_trouble);
    body["sight"] = json!(Readable(telemetry.sight));
    body["emergency_stop"] = json!(status.emergency_stop.map(|number| number.get()));
    body["answer"] = status.answer.as_ref().map_or(Value::Null, answer);
    body["countdown"] = json!(status.countdown.map(|(cause, left)| json!({
        "cause": format!("{cause:?}"),
        "left_ms": left.as_millis() as u64,
    })));
    body["machine_age_ms"] = json!(status.machine.map(|(_, age)| age.as_millis() as u64));
    body["budget"] = budget(&status.budget);
    body
}

fn answer(answer: &Answer) -> Value {
    let refused = match answer.outcome {
        Outcome::Done => None,
        Outcome::Refused(blocker) => Some(format!("{blocker:?}")),
    };
    let (console, number) = (Readable(answer.console), answer.number.get());
    json!({ "console": console, "number": number, "refused": refused })
}

fn budget(budget: &Budget) -> Value {
    json!({
        "picture_age_max_ms": budget.picture_age_max.as_millis() as u64,
        "command_age_max_ms": budget.command_age_max.as_millis() as u64,
        "command_timeout_ms": budget.command_timeout.map(|timeout| timeout.as_millis() as u64),
        "deceleration_begin": budget.deceleration_begin,
        "deceleration": budget.deceleration,
        "jerk": budget.jerk,
        "yaw_deceleration": budget.yaw_deceleration,
        "speed_max": budget.speed_max,
        "reverse_speed_max": budget.reverse_speed_max,
        "sideways_speed_max": budget.sideways_speed_max,
        "yaw_rate_max": budget.yaw_rate_max,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tautline_guard::act::Blocker;
    use tautline_guard::identity::{ActNumber, Console, Tick};
    use tautline_guard::{Cause, Config, Guard, Input, MachineState, Position};
    use tautline_message::{Sight, Sights, StatusFrame};
    use tautline_units::Instant;

    use super::*;

    fn telemetry() -> Telemetry {
        let mut guard = Guard::new(Config::car(), Tick::new(70).unwrap());
        let position = Some(Position { x: 3.0, y: -4.0, heading: 0.5 });
        let machine = MachineState { speed: 2.5, position, ..MachineState::default() };
        let input = Input { machine: Some(machine), ..Input::default() };
        let status = Status {
            answer: Some(Answer {
                console: Console::new(7).unwrap(),
                number: ActNumber::new(3).unwrap(),
                outcome: Outcome::Refused(Blocker::Moving),
            }),
            countdown: Some((Cause::PictureAge, Duration::from_millis(90))),
            ..guard.step(&input, Instant::ZERO).status
        };
        Telemetry {
            sequence: 9,
            status: Some(StatusFrame::of(&status)),
            sight: Sights::of(Sight::Drawn),
            ..Telemetry::default()
        }
    }

    #[test]
    fn a_recording_has_every_number_of_a_status_by_its_name() {
        let body: Value = serde_json::from_slice(&message(&telemetry()).unwrap()).unwrap();
        assert_eq!((&body["mode"], &body["speed"]), (&json!("Manoeuvre"), &json!(2.5)));
        assert_eq!(body["machine"]["position"]["y"], -4.0);
        assert_eq!((&body["sequence"], &body["sight"]), (&json!(9), &json!(["Drawn"])));
        assert_eq!(body["answer"]["refused"], "Moving");
        assert_eq!(body["countdown"], json!({ "cause": "PictureAge", "left_ms": 90 }));
        assert_eq!(body["budget"]["command_timeout_ms"], 300);
        assert_eq!(message(&Telemetry::default()), None, "a silent guard");
    }

    #[test]
    fn the_schema_of_the_topic_lists_what_its_messages_have() {
        let schema: Value = serde_json::from_slice(&DESCRIPTOR.schema).unwrap();
        let listed = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let telemetry = telemetry();
        let body = body(telemetry.status().unwrap(), &telemetry);
        assert_eq!(listed(&schema["properties"]), listed(&body));
        for part in ["machine", "applied", "answer", "countdown", "budget"] {
            assert_eq!(listed(&schema["properties"][part]["properties"]), listed(&body[part]));
        }
    }
}
