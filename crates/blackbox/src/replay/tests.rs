use tautline_guard::{Config, Guard, Input};
use tautline_units::Instant;

use super::*;
use crate::film::Film;
use crate::rehearsal::Rehearsal;
use crate::{Recording, Signer};

/// Returns a recorded drive; `change` modifies each body before it is written.
fn recorded(change: impl FnMut(Topic, &mut Value)) -> Recording {
    recorded_of(Rehearsal::new(), change)
}

fn recorded_of(mut rehearsal: Rehearsal, mut change: impl FnMut(Topic, &mut Value)) -> Recording {
    let mut bytes = Vec::new();
    let mut film = Film::begin(&mut bytes, Signer::from_seed(&[7; 32]));
    let mut count = 0;
    let mut step = |guard: &mut Guard, input: &Input, now: Instant| {
        let before = guard.clone();
        let output = guard.step(input, now);
        let step = Step { input: *input, output, at: now };
        if count % 500 == 0 {
            let mut body = body::snapshot(&before, &step);
            change(Topic::Snapshot, &mut body);
            film.put(Topic::Snapshot, &body, now.as_nanos()).unwrap();
        }
        count += 1;
        let mut body = body::step(&step);
        change(Topic::Step, &mut body);
        film.put(Topic::Step, &body, now.as_nanos()).unwrap();
        output
    };
    rehearsal.drive(1, 500, &mut step);
    film.seal(true, 0).unwrap();
    Recording::parse(bytes)
}

#[test]
fn a_recorded_drive_replays_the_same() {
    let replay = replay(&recorded(|_, _| {}));
    assert_eq!((replay.difference, replay.gaps, replay.same), (None, 0, 1_215));
}

/// A snapshot holds the watches and the envelope of a twist too.
#[test]
fn a_recorded_drive_of_each_kind_replays_the_same() {
    for config in [Config::robot(), Config::rover(), Config::cart()] {
        let replay = replay(&recorded_of(Rehearsal::of(config), |_, _| {}));
        assert_eq!((replay.difference, replay.gaps, replay.same), (None, 0, 1_215));
    }
}

#[test]
fn a_decision_that_was_not_the_guards_is_named() {
    let recording = recorded(|topic, body| {
        if topic == Topic::Step && body["tick"] == 1_300 {
            body["applied"]["throttle"] = 0.25.into();
        }
    });
    let difference = replay(&recording).difference.unwrap();
    assert_eq!((difference.tick, difference.member.as_str()), (1_300, "applied"));
    assert_eq!(difference.recorded["throttle"], 0.25);
    assert!(difference.to_string().starts_with("step 1300 of 1970-01-01 00:00:"), "{difference}");
}

#[test]
fn a_removed_input_is_detected_at_its_step() {
    // The record of one step is changed to have no proposal.
    let recording = recorded(|topic, body| {
        if topic == Topic::Step && body["tick"] == 1_300 {
            body["frames"]["proposal"] = Value::Null;
            body["demand"] = Value::Null;
        }
    });
    assert_eq!(replay(&recording).difference.unwrap().tick, 1_300);
}

#[test]
fn a_snapshot_inconsistent_with_its_steps_is_detected() {
    let mut kept = None;
    let recording = recorded(|topic, body| {
        if topic == Topic::Snapshot {
            let guard = kept.get_or_insert_with(|| body["guard"].clone());
            body["guard"] = guard.clone();
        }
    });
    let difference = replay(&recording).difference.unwrap();
    assert_eq!(difference.member, "guard");
}
