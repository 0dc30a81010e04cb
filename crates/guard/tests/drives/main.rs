//! Whole drives in virtual time: a person, a page, a network, a vehicle, the guard and a machine.
//!
//! Sound drives with delay, jitter and pauses must never be stopped; drives with a fault must be,
//! in time, within the metres that docs/guard.md allows, and on the arc that was held.
//! Drives by commands that were recorded of a page in Chromium are stopped when something was too late,
//! and never otherwise.
//! `DRIVES=10000` runs so many of each; a failing one prints its seed, and `SIM_SEED=..` runs that.

mod bicycle;
mod replay;
mod world;

use tautline_guard::{Cause, Mode};
use world::{Fault, World};

#[test]
fn sound_drives_are_never_stopped() {
    for seed in seeds() {
        let mut world = World::new(seed, None);
        world.run_ms(8_000);
        let status = world.status();
        assert!(
            status.mode.is_driving() && world.stopped.is_none(),
            "SIM_SEED={seed}: {:?} {:?}",
            world.stopped,
            status.why
        );
        assert!(world.machine.distance > 1.0, "SIM_SEED={seed}: it drove");
    }
}

#[test]
fn recorded_drives_are_stopped_by_what_was_too_late_and_by_nothing_else() {
    for seed in seeds() {
        let mut world = World::replaying(seed);
        world.replay_ms(4_000);
        while world.stopped.is_none() && world.replays() {
            world.replay_ms(world.now_ms() + 100);
        }
        let (now, status) = (world.now_ms(), world.status());
        // Ticks and turns of 10 ms each lie between what is sent and what is known.
        let was_late = |from: u64| {
            let worst = world.worst_since(from);
            worst.picture_ms > 470 || worst.silence_ms > 270
        };
        let says = || format!("SIM_SEED={seed} at {now} ms: {:?} {:?}", world.stopped, status.why);
        match world.stopped {
            Some(stop) => {
                let is_known = matches!(stop.cause, Cause::PictureAge | Cause::CommandTimeout);
                assert!(is_known && was_late(stop.at_ms - 40), "false: {}", says());
            }
            None if status.mode.is_driving() => {
                let worst = world.worst_since(4_000);
                let is_missed = worst.picture_ms > 560 || worst.silence_ms > 360;
                assert!(!is_missed, "missed: {worst:?}, {}", says());
            }
            // Nobody arms with a picture that is too old.
            None => assert!(was_late(2_500), "not armed: {}", says()),
        }
    }
}

#[test]
fn drives_with_a_fault_are_stopped_in_time_in_place_and_on_the_arc() {
    for seed in seeds() {
        let fault = Fault::ALL[seed as usize % Fault::ALL.len()];
        let mut world = World::new(seed, Some(fault));
        world.run_ms(14_000);
        let Some(stop) = world.stopped else {
            panic!("SIM_SEED={seed}: {fault:?} missed");
        };
        let says = || format!("SIM_SEED={seed}: {fault:?} {stop:?}");
        // One picture in many comes through: blindness begins with the last.
        let began = match fault {
            Fault::UplinkFlickers => stop.blind_from_ms.max(fault.at_ms(seed)),
            _ => fault.at_ms(seed),
        };
        assert!(stop.at_ms <= began + fault.most_ms(), "late: {}", says());
        let is_blind_for_long = stop.at_ms > stop.blind_from_ms + 530;
        assert!(!is_blind_for_long || fault == Fault::GuardStopped, "blind: {}", says());
        assert!(stop.at_ms >= fault.at_ms(seed), "false: {}", says());
        assert!(fault.causes().contains(&stop.cause), "another cause: {}", says());
        assert_eq!(world.status().mode, Mode::Held, "{}", says());
        assert!(world.machine.speed.abs() < 0.01, "{}", says());
        let metres = world.machine.distance - stop.blind_from;
        let allowed = world.allowed(stop.speed_max);
        assert!(metres <= allowed, "{metres} m, {allowed} m allowed: {}", says());
        if !fault.leaves_wheel() {
            assert!(world.off_arc < 0.5, "{} m off the arc: {}", world.off_arc, says());
        }
        let is_latched = stop.cause == Cause::EmergencyStop;
        assert_eq!(world.status().is_latched, is_latched, "{}", says());
    }
}

#[test]
fn a_brake_that_fails_is_told_and_the_parking_brake_stops_the_machine() {
    for seed in seeds().take(320) {
        let mut world = World::new(seed, Some(Fault::UplinkDead));
        world.run_ms(Fault::UplinkDead.at_ms(seed));
        world.machine.has_brake = false;
        let speed = world.machine.speed;
        world.run_ms(30_000);
        let status = world.status();
        let says = || format!("SIM_SEED={seed} at {speed} m/s: {:?} {:?}", status.mode, status.why);
        assert_eq!((status.mode, world.machine.speed), (Mode::Held, 0.0), "{}", says());
        // A slow machine stands before the watch is sure.
        let is_told = status.why.cause == Cause::BrakeDoesNotAnswer && status.is_latched;
        assert!(is_told || speed < 3.0, "{}", says());
    }
}

/// Returns the seeds to run: one that is asked for, or as many as are.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DRIVES").unwrap_or(DRIVES),
    }
}

/// A few of each fault at each speed in `make test`.
const DRIVES: u64 = 320;
