//! Complete drives in virtual time: a person, a page, a network, a vehicle, the guard and a
//! machine.
//!
//! Page and network are replayed from a recording of a page in Chromium, or modelled. Sound drives
//! with their delay, jitter and pauses must never be stopped. Drives with a fault must be stopped
//! in time, within the metres that docs/guard.md allows, and on the arc that was held. Drives with
//! a page slower than the recorded one are stopped if some data was too late, and never otherwise.
//! `DRIVES=10000` runs that number of each; a failing one prints its seed, and `SIM_SEED=..` runs
//! that one.

mod bicycle;
mod body;
mod equipment;
mod hills;
mod mover;
mod replay;
mod world;

use bicycle::Bicycle;
use body::Body;
use mover::{Cart, Robot, Rover};
use replay::Page;
use tautline_guard::{Cause, Mode};
use world::{Fault, World};

#[test]
fn sound_drives_are_never_stopped() {
    seeds().for_each(sound_drive::<Bicycle>);
}

#[test]
fn sound_drives_of_a_robot_rover_or_cart_are_never_stopped() {
    for seed in seeds_of_kinds() {
        sound_drive::<Robot>(seed);
        sound_drive::<Rover>(seed);
        sound_drive::<Cart>(seed);
    }
}

fn sound_drive<M: Body>(seed: u64) {
    let mut recorded = World::<M>::recorded(seed, None, Page::AS_RECORDED);
    recorded.run_ms(8_000);
    judge(&recorded, seed);
    // Longer delays than recorded, drawn independently.
    let mut modelled = World::<M>::new(seed, None);
    modelled.run_ms(8_000);
    judge(&modelled, seed);
}

#[test]
fn recorded_drives_stop_only_for_data_that_was_too_late() {
    let mut stopped = 0;
    for seed in seeds() {
        let page = Page {
            interval_times: 1 + seed % 4,
            picture_percent: [125, 150, 175, 200][seed as usize / 4 % 4],
        };
        let mut world = World::<Bicycle>::recorded(seed, None, page);
        world.run_ms(8_000);
        judge(&world, seed);
        stopped += usize::from(world.stopped.is_some());
    }
    let drives = seeds().count();
    let is_shown = stopped > drives / 20 && stopped < drives - drives / 20;
    assert!(is_shown || drives < 100, "{stopped} of {drives} were stopped");
}

/// Asserts that a drive without a fault was stopped if some data was too late, and only then.
fn judge<M: Body>(world: &World<M>, seed: u64) {
    let (now, status) = (world.now_ms(), world.status());
    let says = || format!("SIM_SEED={seed} at {now} ms: {:?} {:?}", world.stopped, status.why);
    match world.stopped {
        Some(stop) => {
            let is_known = matches!(stop.cause, Cause::PictureAge | Cause::CommandTimeout);
            let is_late = was_late(world, stop.at_ms - 40, stop.at_ms);
            assert!(is_known && is_late, "false: {}", says());
        }
        None if status.mode.is_driving() => {
            let worst = world.drives_since.and_then(|since| world.worst(since, now));
            let is_missed = worst.is_some_and(|it| it.picture_ms > 560 || it.silence_ms > 360);
            assert!(!is_missed, "missed: {worst:?}, {}", says());
            let moved = world.machine.moved();
            assert!(moved.distance + moved.turned > M::DRIVEN_LEAST, "it drove: {}", says());
        }
        // Arming is refused with a picture that is too old.
        None => assert!(was_late(world, 2_500, now), "not armed: {}", says()),
    }
}

/// Returns whether recorded data was too late between two times in ms; modelled data never is.
fn was_late<M: Body>(world: &World<M>, from_ms: u64, until_ms: u64) -> bool {
    // Ticks and turns of 10 ms each separate sending from processing.
    world.worst(from_ms, until_ms).is_some_and(|it| it.picture_ms > 470 || it.silence_ms > 270)
}

#[test]
fn faulty_drives_stop_in_time_within_distance_and_on_the_arc() {
    seeds().for_each(faulty_drive::<Bicycle>);
}

/// Each fault at ten speeds, on straights, on arcs, backwards or sideways, and on the spot.
#[test]
fn faulty_drives_of_robot_rover_and_cart_stop_as_declared() {
    for seed in seeds_of_kinds() {
        faulty_drive::<Robot>(seed);
        faulty_drive::<Rover>(seed);
        faulty_drive::<Cart>(seed);
    }
}

fn faulty_drive<M: Body>(seed: u64) {
    let fault = Fault::ALL[seed as usize % Fault::ALL.len()];
    let mut recorded = World::<M>::recorded(seed, Some(fault), Page::AS_RECORDED);
    judge_fault(&mut recorded, fault, seed);
    let mut modelled = World::<M>::new(seed, Some(fault));
    judge_fault(&mut modelled, fault, seed);
}

/// Asserts that a fault stopped a drive as required.
fn judge_fault<M: Body>(world: &mut World<M>, fault: Fault, seed: u64) {
    world.run_ms(fault.at_ms(seed) - 1);
    judge(world, seed);
    if !world.status().mode.is_driving() {
        return;
    }
    world.run_ms(14_000);
    let Some(stop) = world.stopped else {
        panic!("SIM_SEED={seed}: {fault:?} missed");
    };
    let says = || format!("SIM_SEED={seed}: {fault:?} {stop:?}");
    let began = match fault {
        // One picture in many gets through: blindness begins with the last.
        Fault::UplinkFlickers => stop.blind_from_ms.max(fault.at_ms(seed)),
        Fault::DownlinkDead | Fault::PageGone => stop.heard_ms,
        fault if fault.is_commands() => world.told_at.unwrap_or(fault.at_ms(seed)),
        _ => fault.at_ms(seed),
    };
    assert!(stop.at_ms <= began + fault.most_ms(), "late: {}", says());
    let is_blind_for_long = stop.at_ms > stop.blind_from_ms + 530;
    assert!(!is_blind_for_long || fault == Fault::GuardStopped, "blind: {}", says());
    assert!(stop.at_ms >= fault.at_ms(seed), "false: {}", says());
    assert!(fault.causes().contains(&stop.cause), "another cause: {}", says());
    assert_eq!(world.status().mode, Mode::Held, "{}", says());
    let moved = world.machine.moved();
    assert!(moved.speed < 0.01 && moved.yaw_rate < 0.01, "{}", says());
    let metres = moved.distance - stop.blind_from.distance;
    let radians = moved.turned - stop.blind_from.turned;
    let (metres_max, radians_max) = world.machine.allowed(stop.fastest);
    assert!(metres <= metres_max, "{metres} m, {metres_max} m allowed: {}", says());
    assert!(radians <= radians_max, "{radians} rad, {radians_max} allowed: {}", says());
    if !fault.leaves_wheel() {
        assert!(world.off_arc < 0.5, "{} m off the arc: {}", world.off_arc, says());
    }
    assert!(
        world.had_moved && equipment::is_stopped(&world.controls()),
        "{:?}: {}",
        world.controls(),
        says()
    );
    let is_latched = stop.cause == Cause::EmergencyStop;
    assert_eq!(world.status().is_latched, is_latched, "{}", says());
}

#[test]
fn after_a_brake_failure_the_parking_brake_stops_the_machine() {
    for seed in seeds().take(320) {
        let mut world = World::<Bicycle>::new(seed, Some(Fault::UplinkDead));
        world.run_ms(Fault::UplinkDead.at_ms(seed));
        world.machine.has_brake = false;
        let speed = world.machine.speed;
        world.run_ms(30_000);
        let status = world.status();
        let says = || format!("SIM_SEED={seed} at {speed} m/s: {:?} {:?}", status.mode, status.why);
        assert_eq!((status.mode, world.machine.speed), (Mode::Held, 0.0), "{}", says());
        // A slow machine is stationary before the check completes.
        let is_told = status.why.cause == Cause::BrakeDoesNotAnswer && status.is_latched;
        assert!(is_told || speed < 3.0, "{}", says());
    }
}

/// The speed, or the yaw rate, of a drive that no longer answers does not fall.
#[test]
fn after_a_drive_failure_the_parking_brake_stops_the_machine() {
    for seed in seeds_of_kinds().take(320) {
        drive_failure::<Robot>(seed, |robot| &mut robot.0.has_drive);
        drive_failure::<Rover>(seed, |rover| &mut rover.0.has_drive);
        drive_failure::<Cart>(seed, |cart| &mut cart.0.has_drive);
    }
}

fn drive_failure<M: Body>(seed: u64, has_drive: impl Fn(&mut M) -> &mut bool) {
    let mut world = World::<M>::new(seed, Some(Fault::UplinkDead));
    world.run_ms(Fault::UplinkDead.at_ms(seed));
    *has_drive(&mut world.machine) = false;
    let begun = world.machine.moved();
    world.run_ms(30_000);
    let (status, moved) = (world.status(), world.machine.moved());
    let says = || format!("SIM_SEED={seed} from {begun:?}: {:?} {:?}", status.mode, status.why);
    assert!(status.mode == Mode::Held && moved.speed + moved.yaw_rate < 0.01, "{}", says());
    // A slow machine is stationary before the check completes.
    let is_told = status.why.cause == Cause::BrakeDoesNotAnswer && status.is_latched;
    assert!(is_told || begun.speed + begun.yaw_rate < 0.6, "{}", says());
}

/// Returns the seeds to run: the one in `SIM_SEED`, or as many as `DRIVES`.
fn seeds() -> std::ops::Range<u64> {
    seeds_or(DRIVES)
}

/// Returns the seeds to run for each of several kinds of machines.
fn seeds_of_kinds() -> std::ops::Range<u64> {
    seeds_or(DRIVES_OF_KINDS)
}

fn seeds_or(drives: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DRIVES").unwrap_or(drives),
    }
}

/// Number of drives in `make test`: a few of each fault at each speed.
const DRIVES: u64 = 320;
/// Each fault at each of ten speeds.
const DRIVES_OF_KINDS: u64 = 10 * Fault::COUNT;
