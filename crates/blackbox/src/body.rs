//! Content of records as JSON: readable by people and tools, and exact enough for a replay.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tautline_guard::frame::{Description, Frame, Proposal, Status, encode};
use tautline_guard::{
    Guard, Input, Latch, MachineState, Output, Readable, Transition, frame, identity,
};
use tautline_units::Instant;

use crate::hex;

/// One step of a guard: its input, its output and its time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Step {
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) at: Instant,
}

/// Returns the record of a step: the frames bit by bit, and their values in readable form.
pub(crate) fn step(step: &Step) -> Value {
    let Step { input, output, at } = step;
    let Output { control, status, transition, latched: _ } = output;
    let mut body = readable(status);
    body["now_ns"] = at.as_nanos().into();
    body["transition"] = transition.as_ref().map_or(Value::Null, changed);
    body["demand"] = input.proposal.as_ref().map_or(Value::Null, demand);
    body["applied"] = readable(&control.controls);
    body["latch"] = json!(input.latch);
    body["frames"] = json!({
        "proposal": input.proposal.as_ref().map(|proposal| bytes(proposal, status.tick)),
        "machine": input.machine.as_ref().map(|machine| bytes(machine, status.tick)),
        "entry": input.entry.map(|entry| bytes(&Description { source: *at, entry }, status.tick)),
        "control": bytes(control, status.tick),
        "status": bytes(status, status.tick),
    });
    body
}

/// Returns input and time of the step in this body; `None` if a member is missing or invalid.
pub(crate) fn input(body: &Value) -> Option<(Input, Instant)> {
    let at = Instant::from_nanos(body["now_ns"].as_u64()?);
    let frames = &body["frames"];
    let proposal: Option<Proposal> = decoded(&frames["proposal"])?;
    let machine: Option<MachineState> = decoded(&frames["machine"])?;
    let entry: Option<Description> = decoded(&frames["entry"])?;
    let status: Option<Status> = decoded(&frames["status"])?;
    let black_box = status?.black_box;
    // Files of earlier builds do not contain it.
    let latch = Latch::deserialize(&body["latch"]).unwrap_or_default();
    let entry = entry.map(|description| description.entry);
    Some((Input { proposal, machine, entry, black_box, latch }, at))
}

/// Returns the record of a snapshot: `guard` as it is before the step `next`.
pub(crate) fn snapshot(guard: &Guard, next: &Step) -> Value {
    let bytes =
        postcard::to_stdvec(guard).expect("a guard consists of numbers in a fixed structure");
    json!({
        "tick": next.output.status.tick.get(),
        "settings": guard.config(),
        "software": SOFTWARE,
        "guard": hex::encode(&bytes),
    })
}

/// Returns the guard of a snapshot's body; `None` if it cannot be read, as one of another version.
pub(crate) fn guard(body: &Value) -> Option<Guard> {
    postcard::from_bytes(&hex::decode(body["guard"].as_str()?)?).ok()
}

fn changed(transition: &Transition) -> Value {
    json!({
        "from": name(transition.from),
        "to": name(transition.to),
        "cause": name(transition.why.cause),
        "value": transition.why.value,
        "limit": transition.why.limit,
        "stop": transition.stop.get(),
        "at_ns": transition.at.as_nanos(),
    })
}

fn demand(proposal: &Proposal) -> Value {
    json!({
        "session": proposal.session.map(identity::Session::get),
        "troubles": readable(proposal.troubles),
        "emergency_stop": proposal.emergency_stop.map(identity::ActNumber::get),
        "act": proposal.act.map(|act| json!({
            "console": readable(act.console),
            "number": act.number.get(),
            "deed": format!("{:?}", act.deed),
            "age_ms": act.age.map(millis),
        })),
        "command": proposal.command.map(|command| json!({
            "sequence": command.sequence,
            "console": readable(command.console),
            "successor": command.successor.map(readable),
            "controls": readable(&command.controls),
            "dead_man": name(command.dead_man),
            "absences": readable(command.absences),
            "cited": command.cited.map(identity::Tick::get),
            "age_ms": command.age.map(millis),
        })),
    })
}

/// Returns a guard's value in readable form.
fn readable<T>(value: T) -> Value
where
    Readable<T>: Serialize,
{
    serde_json::to_value(Readable(value)).expect("structs of numbers and names")
}

/// Encodes a frame as hexadecimal digits; the tick replaces the socket's counter, which is unknown
/// here.
fn bytes<F: Frame>(frame: &F, tick: identity::Tick) -> String {
    hex::encode(encode(frame, tick.get() as u16).as_ref())
}

/// Decodes the frame of these digits: `Some(None)` for null, which stands for no frame; `None` if
/// the digits are invalid.
fn decoded<F: Frame>(digits: &Value) -> Option<Option<F>> {
    match digits {
        Value::Null => Some(None),
        Value::String(digits) => {
            let bytes = hex::decode(digits)?;
            frame::decode::<F>(&bytes).ok().map(|(frame, _)| Some(frame))
        }
        _ => None,
    }
}

fn name(variant: impl std::fmt::Debug) -> String {
    format!("{variant:?}")
}

fn millis(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Software that wrote a record: only the same version replays it.
pub(crate) const SOFTWARE: &str = concat!("tautline ", env!("CARGO_PKG_VERSION"));
