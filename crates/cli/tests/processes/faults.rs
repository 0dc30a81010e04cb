//! Faults outside the machine stop it: real processes, suspended and killed.
//!
//! Distances are from the machine's own odometer, so a slow test does not distort them.

mod adapter;
mod blocked;
mod can;
mod ends;
mod garbage;
mod hangs;
mod operator;
pub(crate) mod remote;
pub(crate) mod rig;
mod thread;
mod twisted;

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use self::garbage::{Between, Garbage};
use self::rig::{BlackBox, Limits, MACHINE, Rig, Setup};
use tautline_guard::act::{Blocker, Deed};
use tautline_guard::frame::{self, Status};
use tautline_guard::identity::ActNumber;
use tautline_guard::{Cause, Mode};

use crate::tries::tried;

fn car(flags: &[&'static str]) -> Rig {
    Rig::start(&Setup { car: Some(flags.to_vec()), ..Setup::default() })
}

/// Returns the distance in metres that a stop may take from `speed` m/s. It covers the silence, the
/// time of a signal and a reading of the car on a busy machine, and the braking at 4 m/s².
fn bound(speed: f64, silence: Duration) -> f64 {
    speed * (silence.as_secs_f64() + 0.5 + 0.2) + speed * speed / (2.0 * 4.0)
}

/// Injects `fault` while the car drives; asserts that the car stops within the bound.
fn stops<V>(rig: &mut Rig<V>, fault: impl FnOnce(&mut Rig<V>)) {
    let (speed, begun) = (rig.car("speed_metres_per_second"), rig.car("odometer_metres"));
    fault(rig);
    let distance = rig.stands_after(begun);
    assert!(distance < bound(speed, rig.silence()), "{distance} m from {speed} m/s");
    assert_eq!(rig.car("hazard"), 1.0);
}

#[test]
fn a_guard_that_hangs_or_dies_leaves_a_car_that_stops_by_itself() {
    tried(|| {
        let mut rig = car(&[]);
        rig.drive(6.0);
        stops(&mut rig, |rig| rig.signal_guard("STOP"));
        rig.signal_guard("CONT");
        let status = rig.vehicle.eventually("held", |status| status.mode == Mode::Held);
        // Either silence may be detected first.
        let silences = [
            Cause::GuardLate,
            Cause::GuardSilent,
            Cause::MachineTimeout,
            Cause::ProposalTimeout,
            Cause::CommandTimeout,
        ];
        assert!(silences.contains(&status.why.cause), "{:?}", status.why);
        // The throttle stays pressed: no motion without a new act.
        rig.stays();
        rig.drive(4.0);
        stops(&mut rig, Rig::kill_guard);
        rig.restart_guard();
        rig.vehicle.eventually("held anew", |status| {
            status.mode == Mode::Held && status.why.cause == Cause::Started
        });
        rig.stays();
        rig.drive(2.0);
    });
}

#[test]
fn a_vehicle_that_falls_silent_is_stopped_and_comes_back_held() {
    tried(|| {
        let mut rig = car(&["--slope", "0.1"]);
        rig.drive(6.0);
        stops(&mut rig, |rig| rig.vehicle.silence(true));
        rig.vehicle.silence(false);
        let status = rig.vehicle.eventually("held", |status| status.mode == Mode::Held);
        assert_eq!(status.why.cause, Cause::ProposalTimeout);
        // On a slope, with the throttle pressed.
        rig.stays();
    });
}

#[test]
fn a_latched_stop_survives_the_guard_and_is_reset_by_its_number() {
    tried(|| {
        let mut rig = car(&[]);
        rig.drive(4.0);
        stops(&mut rig, |rig| rig.vehicle.emergency_stop(9));
        rig.vehicle.throttle(0.0);
        let stop =
            rig.vehicle.eventually("latched", |it| it.is_latched && it.mode == Mode::Held).stop;
        rig.kill_guard();
        let last = rig.vehicle.status().expect("it spoke").source;
        rig.restart_guard();
        rig.vehicle.eventually("latched still", |status| {
            status.is_latched && status.machine.is_some() && status.source < last
        });
        rig.vehicle.act(1_000, Deed::Arm);
        let refused = |status: &Status| status.counts.acts_refused > 0;
        // By then it has taken the emergency stop, which is still proposed, for a new one.
        let status = rig.vehicle.eventually("refused", refused);
        rig.vehicle.act(1_001, Deed::Reset(status.stop));
        rig.vehicle.eventually("reset", |status| !status.is_latched);
        assert!(stop.get() > 0);
        rig.drive(2.0);
    });
}

#[test]
fn a_guard_killed_after_acknowledging_a_stop_restarts_latched() {
    tried(|| {
        let mut rig = car(&[]);
        for number in 1..=12 {
            rig.vehicle
                .eventually("it can be kept", |it| !it.blockers.contains(Blocker::LatchNotKept));
            rig.vehicle.emergency_stop(number);
            let acknowledged = |status: &Status| status.emergency_stop == ActNumber::new(number);
            let status = loop {
                match rig.vehicle.status().filter(acknowledged) {
                    Some(status) => break status,
                    None => std::thread::sleep(Duration::from_micros(200)),
                }
            };
            rig.kill_guard();
            let kept = tautline_port::latch::read_latch(&rig.path("latch"));
            assert_eq!(kept.expect("a latch"), Some(status.stop), "stop {number}");
            rig.restart_guard();
            // Each guard begins at a random tick; the former one made at most a few thousand more.
            let is_another = |it: &Status| it.tick.get().abs_diff(status.tick.get()) > 10_000;
            let is_back = |it: &Status| is_another(it) && it.machine.is_some();
            rig.vehicle.eventually("latched still", |it| {
                is_back(it) && it.blockers.contains(Blocker::Latched)
            });
        }
    });
}

#[test]
fn a_guard_whose_latch_cannot_be_kept_stops_and_arms_nothing() {
    tried(|| {
        let setup = Setup { latch: "guard.toml/latch", car: Some(Vec::new()), ..Setup::default() };
        let rig = Rig::start(&setup);
        rig.vehicle.eventually("it hears the machine", |it| it.machine.is_some());
        rig.vehicle.act(1, Deed::Arm);
        let status = rig.vehicle.eventually("refused", |it| it.answer.is_some());
        assert!(status.blockers.contains(Blocker::LatchNotKept), "{status:?}");
        assert_eq!(status.mode, Mode::Held);
        let log = std::fs::read_to_string(rig.path("guard.log")).expect("a log");
        assert!(log.contains("Not a directory"), "{log}");
        rig.vehicle.emergency_stop(5);
        let status = rig.vehicle.eventually("stopped", |it| it.why.cause == Cause::EmergencyStop);
        assert_eq!((status.emergency_stop, status.is_latched), (None, false), "on no disk");
    });
}

#[test]
fn a_brake_that_does_not_answer_latches_and_the_machine_stands() {
    tried(|| {
        let rig = car(&["--brake-share", "0"]);
        rig.drive(5.0);
        rig.vehicle.silence(true);
        let begun = rig.car("odometer_metres");
        rig.stands_after(begun);
        rig.vehicle.silence(false);
        rig.vehicle.eventually("latched", |status| {
            status.is_latched && status.why.cause == Cause::BrakeDoesNotAnswer
        });
    });
}

#[test]
fn foreign_datagrams_neither_end_the_guard_nor_move_the_car() {
    tried(|| {
        let setup = Setup { car: Some(Vec::new()), limits: Limits::Late, ..Setup::default() };
        let mut rig = Rig::start(&setup);
        let stranger = UnixDatagram::bind(rig.path("stranger.sock")).expect("a path of ours");
        rig.drive(3.0);
        // The commands are full throttle all the time.
        let before = rig.car("speed_metres_per_second");
        send_garbage(&rig, &stranger);
        let speed = rig.car("speed_metres_per_second");
        assert!(speed > before + 1.0, "{before} m/s, then {speed} m/s");
        assert_eq!(rig.car("hazard"), 0.0);
        rig.vehicle.throttle(0.2);
        stops(&mut rig, |rig| rig.vehicle.silence(true));
        rig.vehicle.silence(false);
        rig.vehicle.eventually("held", |status| status.mode == Mode::Held);
        let begun = rig.car("odometer_metres");
        send_garbage(&rig, &stranger);
        let end = (rig.car("speed_metres_per_second"), rig.car("odometer_metres"));
        assert_eq!(end, (0.0, begun), "nobody armed it");
        for end in ["vehicle", "machine"] {
            let is_told = (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(100));
                rig.foreign(end).is_some_and(|count| count > 0)
            });
            assert!(is_told, "what came to the {end}'s end is counted");
        }
    });
}

/// Sends garbage to both ends of the guard for more than one second.
fn send_garbage(rig: &Rig, stranger: &UnixDatagram) {
    stranger.set_nonblocking(true).expect("it is a socket");
    let ends = ["vehicle.sock", "machine.sock"].map(|name| rig.path(name));
    for turn in 0_u32..1_000 {
        let bytes: Vec<u8> =
            (0..turn % 260).map(|at| (turn.wrapping_mul(at + 7) >> 3) as u8).collect();
        let _ = stranger.send_to(&bytes, &ends[turn as usize % 2]);
        // No more at once: a socket's queue holds ten, and the peer needs room there too.
        if turn % 8 == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn garbage_stops_the_car_only_if_it_replaces_vehicle_frames() {
    tried(|| {
        let setup = Setup { car: Some(Vec::new()), limits: Limits::Late, ..Setup::default() };
        let mut rig = Rig::start(&setup);
        rig.drive(3.0);
        rig.vehicle.garble(Garbage::Beside);
        rig.vehicle.throttle(0.2);
        goes_on(&rig);
        assert!(rig.vehicle.status().is_some_and(|status| status.mode.is_driving()), "it drives");
        stops(&mut rig, |rig| rig.vehicle.garble(Garbage::Instead));
        rig.vehicle.garble(Garbage::Beside);
        let status = rig.vehicle.eventually("held", |status| status.mode == Mode::Held);
        assert_eq!(status.why.cause, Cause::ProposalTimeout);
        rig.stays();
        rig.drive(2.0);
    });
}

#[test]
fn garbage_stops_the_car_only_if_it_replaces_its_port_frames() {
    tried(|| {
        let machine_at = "between.sock";
        let (car, limits) = (Some(Vec::new()), Limits::Late);
        let mut rig = Rig::start(&Setup { car, limits, machine_at, ..Setup::default() });
        let between = Between::start(rig.path(machine_at), rig.path(MACHINE));
        rig.drive(3.0);
        between.garble(Garbage::Beside);
        rig.vehicle.throttle(0.2);
        goes_on(&rig);
        assert!(rig.vehicle.status().is_some_and(|status| status.mode.is_driving()), "it drives");
        stops(&mut rig, |_| between.garble(Garbage::Instead));
        between.garble(Garbage::None);
        let status = rig.vehicle.eventually("held", |status| status.mode == Mode::Held);
        assert!(
            [Cause::MachineTimeout, Cause::GuardSilent].contains(&status.why.cause),
            "{status:?}"
        );
        rig.stays();
        rig.drive(2.0);
    });
}

/// Watches for one second: the car must continue to be driven with a little throttle.
fn goes_on<V>(rig: &Rig<V>) {
    let begun = rig.car("odometer_metres");
    std::thread::sleep(Duration::from_secs(1));
    let speed = rig.car("speed_metres_per_second");
    let driven = rig.car("odometer_metres") - begun;
    assert!(speed > 1.0 && driven > 1.0, "{driven} m in a second, then {speed} m/s");
    assert_eq!(rig.car("hazard"), 0.0);
}

#[test]
fn the_python_adapter_drives_and_brakes_when_the_guard_dies() {
    tried(|| {
        let mut rig = Rig::start(&Setup::default());
        let mut printed = rig.printed();
        rig.drive(4.0);
        rig.kill_guard();
        let (mut first, mut last) = (None, (0.0, 0.0));
        for (speed, x) in printed.by_ref().take(3_000) {
            let begun = *first.get_or_insert(x);
            last = (speed, x - begun);
            if speed == 0.0 && x > 1.0 {
                break;
            }
        }
        assert_eq!(last.0, 0.0, "{last:?}");
        std::thread::spawn(move || printed.for_each(drop));
        rig.restart_guard();
        rig.drive(2.0);
    });
}

#[test]
fn facts_of_an_adapter_are_recorded_in_the_black_box() {
    tried(|| {
        let setup = Setup { black_box: BlackBox::Records, ..Setup::default() };
        let mut rig = Rig::start(&setup);
        let printed = rig.printed();
        std::thread::spawn(move || printed.for_each(drop));
        rig.drive(2.0);
        // The record is sent once per second.
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        rig.end_guard();
        let (facts, is_read) = rig.black_box("facts");
        assert!(is_read && facts.contains("machine") && facts.contains("48.5"), "{facts}");
        let (verified, is_sound) = rig.black_box("verify");
        assert!(is_sound, "{verified}");
    });
}

#[test]
fn an_adapter_that_hangs_or_dies_is_a_machine_that_says_nothing() {
    tried(|| {
        let mut rig = Rig::start(&Setup::default());
        let printed = rig.printed();
        std::thread::spawn(move || printed.for_each(drop));
        rig.drive(3.0);
        rig.signal_machine("STOP");
        rig.vehicle.eventually("stopping", |status| {
            status.mode == Mode::Manoeuvre && status.why.cause == Cause::MachineTimeout
        });
        rig.vehicle.throttle(0.0);
        rig.signal_machine("CONT");
        rig.vehicle.eventually("held", |status| status.mode == Mode::Held);
        rig.drive(2.0);
        rig.signal_machine("KILL");
        rig.vehicle.eventually("stopping", |status| status.why.cause == Cause::MachineTimeout);
    });
}

#[test]
fn a_disk_that_refuses_is_reported_and_does_not_affect_driving() {
    tried(|| {
        let setup =
            Setup { car: Some(Vec::new()), black_box: BlackBox::Refused, ..Setup::default() };
        let mut rig = Rig::start(&setup);
        rig.drive(4.0);
        let told = rig.vehicle.eventually("the status reports the black box's trouble", |status| {
            status.black_box == frame::BlackBox::DiskRefuses
        });
        assert!(told.mode.is_driving(), "{told:?}");
        stops(&mut rig, |rig| rig.vehicle.emergency_stop(5));
        rig.vehicle.eventually("held and latched", |status| {
            status.mode == Mode::Held && status.is_latched
        });
    });
}

#[test]
fn a_drive_is_recorded_listed_shown_verified_and_replayed() {
    tried(|| {
        let setup =
            Setup { car: Some(Vec::new()), black_box: BlackBox::Records, ..Setup::default() };
        let mut rig = Rig::start(&setup);
        rig.drive(4.0);
        let recording = rig
            .vehicle
            .eventually("it records", |status| status.black_box == frame::BlackBox::Records);
        assert!(recording.mode.is_driving());
        stops(&mut rig, |rig| rig.vehicle.emergency_stop(5));
        rig.vehicle.eventually("held", |status| status.mode == Mode::Held);
        rig.end_guard();
        let (list, _) = rig.black_box("list");
        let is_closed = |line: &str| line.starts_with("    1  001 ") && line.ends_with("closed");
        assert!(list.lines().any(is_closed), "{list}");
        let (shown, _) = rig.black_box("show");
        assert!(shown.contains("Driving") && shown.contains("EmergencyStop"), "{shown}");
        let (verified, is_sound) = rig.black_box("verify");
        assert!(is_sound && verified.contains("closed"), "{verified}");
        let (replayed, is_same) = rig.black_box("replay");
        assert!(is_same && !replayed.contains(" 0 steps"), "{replayed}");
    });
}
