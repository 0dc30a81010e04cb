//! Replay of a recording through the guard.

use std::fmt;

use serde_json::Value;
use tautline_guard::Guard;

use crate::body::{self, Step};
use crate::{Recording, Topic, utc};

/// Result of a replay of a recording: counts, and the first difference.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Replay {
    /// Number of steps whose output was the recorded one.
    pub same: u64,
    /// Number of times a guard was restored from a snapshot after missing steps.
    pub gaps: u64,
    /// First step with a different output, at which the replay ends; `None` if there is none.
    pub difference: Option<Difference>,
}

/// A step whose output differs from the recorded one.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// The guard's tick of the step.
    pub tick: u64,
    /// Time of the step in nanoseconds of Unix time.
    pub unix_nanos: u64,
    /// Name of the differing member in the record.
    pub member: String,
    /// Value of the member in the recording.
    pub recorded: Value,
    /// Value of the member in the replay.
    pub replayed: Value,
}

/// Runs a guard from each snapshot of `recording` through the following steps, and compares its
/// decisions bit by bit with the recorded ones, up to the first difference.
///
/// Snapshots and decisions depend on the version of the software: another version may differ.
pub fn replay(recording: &Recording) -> Replay {
    let mut running = Running::default();
    for record in recording.records() {
        let found = match record.topic {
            Topic::Snapshot => running.restore(&recording.body(record)),
            Topic::Step => running.step(&recording.body(record)),
            Topic::Drive | Topic::Transition | Topic::Sample | Topic::Fact(_) | Topic::Seal => None,
        };
        if let Some((member, recorded, replayed)) = found {
            let tick = recording.body(record)["tick"].as_u64().unwrap_or_default();
            let unix_nanos = record.unix_nanos;
            let difference = Difference { tick, unix_nanos, member, recorded, replayed };
            running.replay.difference = Some(difference);
            break;
        }
    }
    running.replay
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tick, unix_nanos, member, recorded, replayed } = self;
        write!(f, "step {tick} of {}: {member} is {recorded}, ", utc(*unix_nanos))?;
        write!(f, "but this guard computes {replayed}")
    }
}

/// Guard and counts of a replay in progress.
#[derive(Default)]
struct Running {
    /// Guard, and the tick of its last step, `None` after a snapshot; no guard before the first
    /// snapshot.
    guard: Option<(Guard, Option<u64>)>,
    replay: Replay,
}

/// A differing member, its recorded value, and the replayed one.
type Found = (String, Value, Value);

impl Running {
    /// Restores the guard of a snapshot. If no steps are missing, it must equal the running one.
    /// Returns the difference if it does not, or if the snapshot cannot be read; `None` otherwise.
    fn restore(&mut self, body: &Value) -> Option<Found> {
        let wrong = || Some(("guard".to_owned(), body["guard"].clone(), Value::Null));
        let Some(kept) = body::guard(body) else { return wrong() };
        if let Some((guard, Some(last))) = &self.guard {
            let is_next = body["tick"].as_u64() == Some(last + 1);
            if is_next && !is_same(guard, &kept) {
                return wrong();
            }
            self.replay.gaps += u64::from(!is_next);
        }
        self.guard = Some((kept, None));
        None
    }

    /// Steps the guard with the recorded input; returns the first member that differs, the frames
    /// if they cannot be read, or `None` if none does. Does nothing before the first snapshot.
    fn step(&mut self, recorded: &Value) -> Option<Found> {
        let (guard, last) = self.guard.as_mut()?;
        let Some((input, at)) = body::input(recorded) else {
            return Some(("frames".to_owned(), recorded["frames"].clone(), Value::Null));
        };
        let output = guard.step(&input, at);
        *last = Some(output.status.tick.get().into());
        let replayed = written(&body::step(&Step { input, output, at }));
        let of = |member: &str| recorded.get(member).cloned().unwrap_or_default();
        let differs = |(member, value): &(&String, &Value)| of(member) != **value;
        let found = replayed.as_object()?.iter().find(differs);
        self.replay.same += u64::from(found.is_none());
        found.map(|(member, value)| (member.clone(), of(member), value.clone()))
    }
}

/// Returns a value as read back from a file: the text of a number may round to a neighbour.
fn written(value: &Value) -> Value {
    serde_json::from_str(&value.to_string()).unwrap_or_default()
}

fn is_same(one: &Guard, other: &Guard) -> bool {
    let bytes = |guard| postcard::to_stdvec(guard).ok();
    bytes(one) == bytes(other)
}

#[cfg(test)]
mod tests;
