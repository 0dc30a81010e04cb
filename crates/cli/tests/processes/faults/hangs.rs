//! A hung component of the vehicle's process while the others continue: the car stops, and the
//! cause is named.
//!
//! A thread is held by ptrace. If the system forbids that, the tests have no result. So they count
//! as ignored, and `make faults` reports whether it runs them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tautline_guard::{Cause, Mode};
use tautline_net::clock::Clock;

use crate::faults::remote::Remote;
use crate::faults::rig::{BlackBox, Limits, Rig, Setup, signal};
use crate::faults::thread::{Held, named, threads};
use crate::tries::tried;

/// Time for which a hung component may count as alive before the machine is stopped: the age limit
/// of a picture.
const PICTURE: Duration = Duration::from_millis(500);
/// Time for which a hung component that only reports to the operator and receives requests to end
/// may count as alive before the machine is stopped.
const PROCESS: Duration = Duration::from_secs(1);
/// Time from the detection to the brake's effect: one step of the guard on a busy machine, and the
/// brake's response.
const ANSWER: Duration = Duration::from_millis(100);

#[test]
#[ignore = "holds threads by ptrace, which not every machine allows: make faults"]
fn a_camera_held_by_ptrace_stops_the_machine() {
    tried(|| {
        let rig = Rig::remote("");
        held(&rig, &of(&rig, "camera")[..1], PICTURE, &["CameraStopped", "PictureAge"]);
    });
}

#[test]
#[ignore = "holds threads by ptrace, which not every machine allows: make faults"]
fn one_encoder_of_two_held_by_ptrace_stops_the_machine() {
    tried(|| {
        let rig = Rig::remote("");
        let encoders = of(&rig, "encoder");
        assert_eq!(encoders.len(), 2);
        for encoder in encoders {
            held(&rig, &[encoder], PICTURE, &["EncoderStopped", "PictureAge"]);
        }
    });
}

#[test]
#[ignore = "holds threads by ptrace, which not every machine allows: make faults"]
fn a_proposal_or_network_thread_held_by_ptrace_stops_the_car() {
    tried(|| {
        let rig = Rig::remote("");
        held(&rig, &of(&rig, "proposals"), PICTURE, &["ProposalTimeout"]);
        held(&rig, &of(&rig, "event-loop"), PICTURE, &["CommandTimeout", "PictureAge"]);
    });
}

#[test]
#[ignore = "holds threads by ptrace, which not every machine allows: make faults"]
fn the_main_thread_or_all_workers_held_by_ptrace_stop_the_car() {
    tried(|| {
        let rig = Rig::remote("");
        held(&rig, &[rig.vehicle.vehicle.id()], PROCESS, &["ProposalTimeout"]);
        let workers = of(&rig, "tokio-rt-worker");
        held(&rig, &workers, PROCESS, &["ProposalTimeout"]);
    });
}

#[test]
#[ignore = "holds threads by ptrace, which not every machine allows: make faults"]
fn of_guard_threads_held_by_ptrace_only_the_log_is_harmless() {
    tried(|| {
        let rig = Rig::patient();
        rig.drive(3.0);
        rig.vehicle.operator.throttle(0.2);
        let log = Held::hold(named(rig.guard_id(), "teller")[0]);
        crate::faults::goes_on(&rig);
        drop(log);
        let all =
            ["GuardLate", "GuardSilent", "MachineTimeout", "ProposalTimeout", "CommandTimeout"];
        held(&rig, &named(rig.guard_id(), "guard"), Duration::from_millis(200), &all);
    });
}

#[test]
#[ignore = "holds threads by ptrace, which not every machine allows: make faults"]
fn a_guards_log_held_by_ptrace_keeps_no_latch_off_the_disk() {
    tried(|| {
        let rig = crate::faults::car(&[]);
        rig.drive(3.0);
        let log = Held::hold(named(rig.guard_id(), "teller")[0]);
        rig.vehicle.emergency_stop(9);
        let stop = rig.vehicle.eventually("latched", |status| status.is_latched).stop;
        let is_kept = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let kept = tautline_port::latch::read_latch(&rig.path("latch"));
            kept.expect("a whole latch or none") == Some(stop)
        });
        assert!(is_kept);
        drop(log);
    });
}

#[test]
#[ignore = "holds threads by ptrace, which not every machine allows: make faults"]
fn a_black_box_held_by_ptrace_delays_no_stop_and_loses_nothing() {
    tried(|| {
        let mut rig = Rig::start(&recording());
        rig.drive(3.0);
        rig.vehicle.throttle(0.2);
        let box_held = Held::hold(named(rig.guard_id(), "blackbox")[0]);
        crate::faults::goes_on(&rig);
        crate::faults::stops(&mut rig, |rig| rig.vehicle.emergency_stop(9));
        rig.vehicle.eventually("held and latched", |status| {
            status.mode == Mode::Held && status.is_latched
        });
        rig.stays();
        drop(box_held);
        rig.end_guard();
        let (shown, _) = rig.black_box("show");
        assert!(shown.contains("Driving") && shown.contains("EmergencyStop"), "{shown}");
        let (verified, is_sound) = rig.black_box("verify");
        assert!(is_sound && verified.contains("closed"), "{verified}");
    });
}

#[test]
#[ignore = "holds threads by ptrace, which not every machine allows: make faults"]
fn a_guards_threads_held_by_ptrace_stop_nothing_but_for_its_own() {
    tried(|| {
        let rig = Rig::start(&recording());
        rig.drive(3.0);
        rig.vehicle.throttle(0.2);
        let beside = ["blackbox", "latch", "teller", "tautline", "tokio-rt-worker"];
        goes_on_without(&rig, rig.guard_id(), "guard", &beside);
    });
}

#[test]
#[ignore = "holds threads by ptrace, which not every machine allows: make faults"]
fn a_cars_threads_held_by_ptrace_stop_nothing_but_for_its_own() {
    tried(|| {
        let late = Setup { car: Some(Vec::new()), limits: Limits::Late, ..Setup::default() };
        let rig = Rig::start(&late);
        rig.drive(3.0);
        rig.vehicle.throttle(0.2);
        goes_on_without(&rig, rig.machine_id(), "machine", &["tautline", "tokio-rt-worker"]);
    });
}

/// Meanwhile the car continues with the last applied throttle, like a car whose computer hangs.
#[test]
#[ignore = "holds threads by ptrace, which not every machine allows: make faults"]
fn a_car_thread_held_by_ptrace_stops_the_car_as_timeout() {
    tried(|| {
        let rig = crate::faults::car(&[]);
        rig.drive(5.0);
        let begun = rig.car("odometer_metres");
        let (clock, car) = (Clock::start(), Held::hold(named(rig.machine_id(), "machine")[0]));
        let held_at = clock.now();
        rig.vehicle.eventually("told", |status| {
            status.mode == Mode::Manoeuvre && status.why.cause == Cause::MachineTimeout
        });
        drop(car);
        let held = clock.now().since(held_at);
        let (distance, fastest) = rig.stands_from(begun);
        let bound = fastest * (held + ANSWER).as_secs_f64() + ramp(fastest);
        assert!(distance < bound, "{distance} m from {fastest} m/s: {bound} m are allowed");
        println!("{distance:.1} m of {bound:.1} from {fastest:.1} m/s, held for {held:?}");
        let status = rig.vehicle.eventually("held", |status| status.mode == Mode::Held);
        assert_eq!(status.why.cause, Cause::MachineTimeout);
        rig.stays();
        rig.drive(2.0);
    });
}

#[test]
#[ignore = "needs ffmpeg: make faults"]
fn a_clip_whose_reader_hangs_or_dies_stops_the_car_and_reopens() {
    tried(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let clip = clip(folder.path());
        let rig = Rig::remote(&format!("clip = {clip:?}"));
        let reader = reader(&rig);
        let causes = ["CameraStopped", "PictureAge"];
        stands(&rig, PICTURE, || signal(reader, "STOP"));
        is_told(&rig, &causes);
        signal(reader, "CONT");
        rig.stays();
        stands(&rig, PICTURE, || signal(reader, "KILL"));
        is_told(&rig, &causes);
        let before = rig.vehicle.operator.pictures();
        rig.vehicle.operator.eventually("pictures", |operator| operator.pictures() > before + 10);
        rig.stays();
        assert_ne!(self::reader(&rig), reader);
        rig.drive(2.0);
    });
}

/// Returns a setup for drives that must not stop, with a recording black box.
fn recording() -> Setup {
    let (limits, black_box) = (Limits::Late, BlackBox::Records);
    Setup { car: Some(Vec::new()), limits, black_box, ..Setup::default() }
}

/// Holds each thread of a process except `own`, one after another, for one second: the car must
/// continue to be driven. Threads named in `beside` must be among them.
fn goes_on_without(rig: &Rig, process: u32, own: &str, beside: &[&str]) {
    let threads: Vec<_> = threads(process).into_iter().filter(|(_, name)| name != own).collect();
    for name in beside {
        assert!(threads.iter().any(|(_, of)| of == name), "no {name}: {threads:?}");
    }
    for (thread, name) in threads {
        let held = Held::hold(thread);
        let newest = || rig.vehicle.status().expect("it spoke");
        let before = newest().source;
        // The guard's status is the only source for a car whose main thread is held.
        for _ in 0..100 {
            std::thread::sleep(Duration::from_millis(10));
            let status = newest();
            let speed = status.machine.map_or(0.0, |(machine, _)| machine.speed);
            assert!(status.mode.is_driving() && speed > 1.0, "{name}: {status:?}");
        }
        let spoken = newest().source.since(before);
        assert!(spoken > Duration::from_millis(500), "{name}: the guard fell silent: {spoken:?}");
        drop(held);
    }
}

/// Holds threads while the car drives at 5 m/s. It must stand within the distance of `alive` and
/// the braking, for one of these causes. It must also stand after the threads' release, until it is
/// armed.
fn held(rig: &Rig<Remote>, threads: &[u32], alive: Duration, causes: &[&str]) {
    let mut holds = Vec::new();
    stands(rig, alive, || holds.extend(threads.iter().map(|thread| Held::hold(*thread))));
    drop(holds);
    // A guard that was held itself reports it only now.
    is_told(rig, causes);
    rig.stays();
    rig.drive(2.0);
    rig.vehicle.operator.throttle(0.0);
}

fn stands(rig: &Rig<Remote>, alive: Duration, fault: impl FnOnce()) {
    rig.drive(5.0);
    fault();
    let begun = rig.car("odometer_metres");
    let (distance, fastest) = rig.stands_from(begun);
    let bound = fastest * (alive + ANSWER).as_secs_f64() + ramp(fastest);
    assert!(distance < bound, "{distance} m from {fastest} m/s: {bound} m are allowed");
    println!("{distance:.1} m of {bound:.1} from {fastest:.1} m/s");
}

fn is_told(rig: &Rig<Remote>, causes: &[&str]) {
    let told = || rig.cause().is_some_and(|cause| causes.contains(&&*cause));
    for _ in 0..200 {
        if told() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{:?}, none of {causes:?}", rig.cause());
}

/// Returns the metres of a manoeuvre from `speed` m/s: it brakes at 1.5 m/s^2, rising at 5 m/s^3 to
/// 4 m/s^2; the controller's lag is added.
fn ramp(speed: f64) -> f64 {
    let ramped = 1.5 * 0.5 + 5.0 * 0.5 * 0.5 / 2.0;
    if speed < ramped {
        return speed;
    }
    let begun = speed * 0.5 - 1.5 * 0.125 - 5.0 * 0.125 / 6.0;
    begun + (speed - ramped).powi(2) / (2.0 * 4.0) + 0.5
}

fn of(rig: &Rig<Remote>, name: &str) -> Vec<u32> {
    let named = named(rig.vehicle.vehicle.id(), name);
    assert!(!named.is_empty(), "no thread {name}");
    named
}

fn reader(rig: &Rig<Remote>) -> u32 {
    *rig.vehicle.children().first().expect("ffmpeg reads the clip")
}

fn clip(folder: &Path) -> std::path::PathBuf {
    let clip = folder.join("clip.mp4");
    let made = Command::new("ffmpeg")
        .args([
            "-nostdin",
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=640x480:rate=20:duration=1",
        ])
        .arg(&clip)
        .status();
    assert!(made.is_ok_and(|status| status.success()), "ffmpeg");
    clip
}
