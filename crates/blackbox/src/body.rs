//! Content of records as JSON: readable by people and tools, and exact enough for a replay.

use serde::Deserialize;
use serde_json::{Value, json};
use tautline_guard::frame::{Frame, Proposal, Status, encode};
use tautline_guard::{
    Controls, Guard, Input, Latch, MachineState, Member, Output, Set, Transition, frame, identity,
};
use tautline_units::Instant;

use crate::hex;

/// One step of a guard.
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
    let machine = status.machine.map(|(machine, _)| machine);
    json!({
        "tick": status.tick.get(),
        "now_ns": at.as_nanos(),
        "mode": name(status.mode),
        "cause": name(status.why.cause),
        "value": status.why.value,
        "limit": status.why.limit,
        "stop": status.stop.get(),
        "is_latched": status.is_latched,
        "transition": transition.as_ref().map(changed),
        "loop_age_ms": status.loop_age.map(millis),
        "command_age_ms": status.command_age.map(millis),
        "speed_bound": status.speed_bound,
        "limits": names(status.limits),
        "blockers": names(status.blockers),
        "holder": status.holder.map(console),
        "session": status.session.map(identity::Session::get),
        "speed": machine.map(|machine| machine.speed),
        "steering_angle": machine.map(|machine| machine.steering_angle),
        "machine": machine.as_ref().map(state),
        "demand": input.proposal.as_ref().map(demand),
        "applied": controls(&control.controls),
        "black_box": name(status.black_box),
        "latch": input.latch,
        "frames": {
            "proposal": input.proposal.as_ref().map(|proposal| bytes(proposal, status.tick)),
            "machine": input.machine.as_ref().map(|machine| bytes(machine, status.tick)),
            "control": bytes(control, status.tick),
            "status": bytes(status, status.tick),
        },
    })
}

/// Returns input and time of the step in this body.
pub(crate) fn input(body: &Value) -> Option<(Input, Instant)> {
    let at = Instant::from_nanos(body["now_ns"].as_u64()?);
    let frames = &body["frames"];
    let proposal: Option<Proposal> = decoded(&frames["proposal"])?;
    let machine: Option<MachineState> = decoded(&frames["machine"])?;
    let status: Option<Status> = decoded(&frames["status"])?;
    let black_box = status?.black_box;
    // Files of earlier builds do not contain it.
    let latch = Latch::deserialize(&body["latch"]).unwrap_or_default();
    Some((Input { proposal, machine, black_box, latch }, at))
}

/// Returns the record of a guard before a step.
pub(crate) fn snapshot(guard: &Guard, next: &Step) -> Value {
    let bytes = postcard::to_stdvec(guard).expect("a guard is numbers in a fixed shape");
    json!({
        "tick": next.output.status.tick.get(),
        "settings": guard.config(),
        "software": SOFTWARE,
        "guard": hex::encode(&bytes),
    })
}

/// Returns the guard of a snapshot's body.
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

fn state(machine: &MachineState) -> Value {
    json!({
        "measured_ns": machine.measured_at.as_nanos(),
        "gear": name(machine.gear),
        "position": machine.position.map(|position| json!({
            "x": position.x,
            "y": position.y,
            "heading": position.heading,
        })),
        "place": machine.place.map(|place| json!({
            "latitude": place.latitude,
            "longitude": place.longitude,
            "height": place.height,
            "reference": "WGS 84",
        })),
        "faults": names(machine.faults),
        "notices": names(machine.notices),
        "signals": names(machine.signals),
        "told": machine.told,
    })
}

fn demand(proposal: &Proposal) -> Value {
    json!({
        "session": proposal.session.map(identity::Session::get),
        "troubles": names(proposal.troubles),
        "emergency_stop": proposal.emergency_stop.map(identity::ActNumber::get),
        "act": proposal.act.map(|act| json!({
            "console": console(act.console),
            "number": act.number.get(),
            "deed": format!("{:?}", act.deed),
            "age_ms": act.age.map(millis),
        })),
        "command": proposal.command.map(|command| json!({
            "sequence": command.sequence,
            "console": console(command.console),
            "successor": command.successor.map(console),
            "controls": controls(&command.controls),
            "dead_man": name(command.dead_man),
            "absences": names(command.absences),
            "cited": command.cited.map(identity::Tick::get),
            "age_ms": command.age.map(millis),
        })),
    })
}

fn controls(controls: &Controls) -> Value {
    json!({
        "steering": controls.steering,
        "throttle": controls.throttle,
        "brake": controls.brake,
        "gear": name(controls.gear),
        "parking_brake": controls.parking_brake,
        "signals": names(controls.signals),
    })
}

/// Encodes a frame as hexadecimal digits; the tick replaces the socket's counter, which is unknown
/// here.
fn bytes<F: Frame>(frame: &F, tick: identity::Tick) -> String {
    hex::encode(encode(frame, tick.get() as u16).as_ref())
}

/// Decodes the frame of these digits, if there is one; `None` if they are invalid.
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

/// Returns a console's number as text: it has more digits than JSON numbers reliably keep.
fn console(console: identity::Console) -> String {
    format!("{:016x}", console.get())
}

fn name(variant: impl std::fmt::Debug) -> String {
    format!("{variant:?}")
}

fn names<E: Member>(set: Set<E>) -> Vec<String> {
    set.iter().map(name).collect()
}

fn millis(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Software that wrote a record: only the same version replays it.
pub(crate) const SOFTWARE: &str = concat!("tautline ", env!("CARGO_PKG_VERSION"));
