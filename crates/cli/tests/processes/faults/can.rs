//! `tautline can` between the guard and a simulated car on a bus: bytes, silence, mismatches, and a
//! bus that goes.

mod car;
mod rover;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tautline_guard::act::{Blocker, Deed, Outcome};
use tautline_guard::frame::Status;
use tautline_guard::{Axes, Controls, Fault, Mode, Twist};
use tautline_port::serve;
use tautline_testtrack::Kind;

use self::car::{Car, Conduct};
use self::rover::Rover;
use crate::faults::bound;
use crate::faults::rig::{CAN_LOG, Rig, Setup, tautline};
use crate::tries::tried;

/// A driven car, and the folder of its map.
struct Driven {
    rig: Rig,
    car: Car,
    _folder: tempfile::TempDir,
}

impl Driven {
    fn start() -> Self {
        let car = Car::start();
        let folder = tempfile::tempdir().expect("a folder");
        let flags = flags(folder.path(), &format!("udp:{}", car.address()));
        let rig = Rig::start(&Setup { can: Some(flags), ..Setup::default() });
        Self { rig, car, _folder: folder }
    }

    /// Lets the car drive, then applies `fault`; asserts that it stops within the bound, with the
    /// silence that the map allows a message.
    fn stops(&mut self, fault: impl FnOnce(&mut Self)) {
        self.rig.drive(3.0);
        let before = self.car.seen();
        fault(self);
        let after = self.car.eventually("it stands", |car| car.speed == 0.0);
        let distance = after.odometer - before.odometer;
        let bound = bound(before.speed, self.rig.silence() + TIMEOUT);
        assert!(distance < bound, "{distance} m of {bound} m from {} m/s", before.speed);
    }

    /// Waits until the machine has no fault and is held.
    fn recovers(&self) -> Status {
        self.rig.vehicle.throttle(0.0);
        self.rig.vehicle.eventually("held without faults", |status| {
            status.mode == Mode::Held && faults_of(status).is_empty()
        })
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.rig.path(CAN_LOG)).expect("a log")
    }
}

fn faults_of(status: &Status) -> Vec<Fault> {
    let machine = status.machine.as_ref();
    machine.map(|(machine, _)| machine.faults.iter().collect()).unwrap_or_default()
}

/// Writes a map of the example's car in `folder`, in which a busy computer has time, and a stop
/// switches the lights on; returns the flags for it.
fn flags(folder: &Path, bus: &str) -> Vec<String> {
    let map = map_of("car").replace("HORN = 0", "LIGHTS = 1");
    assert!(map.contains("LIGHTS = 1"));
    written("car", &map, folder, bus)
}

/// Returns the map of an example in which a busy computer has time.
fn map_of(name: &str) -> String {
    let map = std::fs::read_to_string(example().join(name).with_extension("toml"));
    let timeout = format!("timeout_ms = {}", TIMEOUT.as_millis());
    let map = map.expect("a map").replace("timeout_ms = 50", &timeout);
    assert!(map.contains(&timeout));
    map
}

/// Writes the map of an example in `folder`; returns the flags for it.
fn written(name: &str, map: &str, folder: &Path, bus: &str) -> Vec<String> {
    let (file, dbc) = (folder.join("map.toml"), example().join(name).with_extension("dbc"));
    std::fs::write(&file, map).expect("room");
    let flags = ["--map", &file.to_string_lossy(), "--dbc", &dbc.to_string_lossy(), "--bus", bus];
    flags.map(str::to_owned).into()
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../adapters/can")
}

#[test]
fn controls_become_frames_that_the_car_accepts() {
    tried(|| {
        let mut driven = Driven::start();
        driven.rig.drive(3.0);
        let seen = driven.car.seen();
        assert!(seen.acceleration > 0.0 && seen.acceleration <= 4.2, "{seen:?}");
        assert_eq!(seen.steering[..4], [0, 0, 80, 1], "0 degrees, at most 8 Nm, and a request");
        let ended = driven.rig.end_machine();
        let last = driven.car.seen();
        assert!(ended.success() && last.speed < 0.05, "{ended}, {last:?}");
        assert_eq!(last.steering[..4], [0, 0, 80, 0], "released by the last frame");
        assert!(last.accepted > seen.accepted && seen.accepted > 100, "{last:?}");
        assert_eq!(last.refused, 0, "by counter or checksum");
        let log = driven.log();
        assert!(!log.contains("WARN") || log.contains("SCHED_FIFO"), "{log}");
    });
}

#[test]
fn a_rover_turns_moves_its_boom_docks_and_stops_over_can() {
    tried(|| {
        let rover = Rover::start();
        let folder = tempfile::tempdir().expect("a folder");
        let flags =
            written("rover", &map_of("rover"), folder.path(), &format!("udp:{}", rover.address()));
        let mut rig =
            Rig::start(&Setup { kind: Kind::Rover, can: Some(flags), ..Setup::default() });
        let vehicle = &rig.vehicle;
        vehicle.eventually("it is described", |it| {
            it.machine.is_some_and(|(it, _)| it.description.is_some())
        });
        vehicle.arm();
        let mut axes = Axes::NONE;
        axes.0[0] = 0.4;
        let lights = [0].into_iter().collect();
        vehicle.control(Controls { axes, actions: lights, ..Controls::default() });
        rover.eventually("boom and lights follow", |it| it.boom > 22.0 && it.is_lit);
        vehicle.eventually("the boom is reported", |status| {
            status.machine.is_some_and(|(machine, _)| (machine.axes.0[0] - 0.4).abs() < 0.02)
        });
        vehicle.act(500, Deed::Request(1));
        rover.eventually("it docks", |rover| rover.is_docked);
        let answer = |status: &Status| status.answer.filter(|it| it.number.get() == 500);
        vehicle.eventually("it is answered", |status| {
            answer(status).is_some_and(|it| it.outcome == Outcome::Done)
        });

        let turning =
            Controls { twist: Twist { yaw_rate: 0.6, ..Twist::ZERO }, ..Controls::default() };
        vehicle.control(turning);
        let spot = rover.eventually("it turns", |rover| rover.motion().1 > 0.5);
        assert!(spot.odometer < 0.02, "on the spot: {spot:?}");
        vehicle.act(501, Deed::Request(1));
        vehicle.eventually("it is refused", |status| {
            status.answer.is_some_and(|it| {
                it.number.get() == 501 && it.outcome == Outcome::Refused(Blocker::MachineRefused)
            })
        });
        let twist = Twist { forward: 0.6, ..turning.twist };
        vehicle.control(Controls { twist, ..turning });
        rover.eventually("it drives an arc", |rover| rover.motion().0 > 0.5);
        let begun = rover.seen();
        rig.signal_guard("STOP");
        let ended = rover.eventually("it stands", |rover| rover.tracks == [0.0; 2]);
        let silence = rig.silence().as_secs_f64() + 0.1;
        let alone = serve::Settings::default();
        let (speed, yaw_rate) = begun.motion();
        let ramp =
            |speed: f64, slowing: f32| silence * speed + speed * speed / (2.0 * f64::from(slowing));
        let (metres, radians) = (ended.odometer - begun.odometer, ended.turned - begun.turned);
        let told = format!("{metres} m, {radians} rad from {speed} m/s, {yaw_rate} rad/s");
        assert!(metres < ramp(1.1 * speed, alone.deceleration) + 0.02, "{told}");
        // The yaw rate follows the arc, and so takes as long as the speed.
        let turn = 1.1 * yaw_rate / speed;
        assert!(radians < turn * ramp(1.1 * speed, alone.deceleration) + 0.02, "{told}");
        rig.signal_guard("CONT");
        assert!(rig.end_machine().success());
        assert_eq!(rover.seen().refused, 0, "by counter or checksum");
    });
}

#[test]
fn a_silent_guard_leaves_a_car_on_the_frames_of_a_stop() {
    tried(|| {
        let mut driven = Driven::start();
        driven.stops(|driven| driven.rig.signal_guard("STOP"));
        let seen = driven.car.seen();
        assert!(seen.is_lit && seen.indicators == 3 && seen.acceleration < 0.0, "{seen:?}");
        driven.rig.signal_guard("CONT");
        driven.recovers();
        driven.car.eventually("the guard is followed again", |car| !car.is_lit);
        driven.rig.drive(2.0);
    });
}

#[test]
fn a_car_whose_messages_fail_has_a_fault_and_is_stopped() {
    tried(|| {
        let mut driven = Driven::start();
        for conduct in [Conduct::Silent, Conduct::WrongChecksum, Conduct::StuckCounter] {
            driven.stops(|driven| driven.car.behave(conduct));
            let status = driven
                .rig
                .vehicle
                .eventually("a fault", |status| faults_of(status).contains(&Fault::Speed));
            assert!(!status.mode.is_driving(), "{conduct:?}: {status:?}");
            assert!(driven.car.seen().is_lit, "{conduct:?}: the values of a stop");
            driven.car.behave(Conduct::Sound);
            driven.recovers();
        }
        driven.rig.drive(2.0);
    });
}

#[test]
fn a_bus_that_goes_is_logged_once_and_comes_back() {
    tried(|| {
        let mut driven = Driven::start();
        driven.stops(|driven| driven.car.behave(Conduct::Away));
        let status = driven.rig.vehicle.eventually("the bus is a fault", |status| {
            faults_of(status).contains(&Fault::Unreachable)
        });
        assert!(!status.mode.is_driving(), "{status:?}");
        // Several attempts.
        std::thread::sleep(Duration::from_secs(1));
        driven.car.behave(Conduct::Sound);
        driven.recovers();
        let log = driven.log();
        let told = "Connection refused (os error 111): no simulator listens there";
        assert_eq!(log.matches(told).count(), 1, "{log}");
        assert_eq!(log.matches("the bus works").count(), 2, "{log}");
        driven.rig.drive(2.0);
    });
}

#[test]
fn a_bus_missing_at_start_is_a_fault_and_ends_nothing() {
    tried(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let flags = flags(folder.path(), "can-never");
        let rig = Rig::start(&Setup { can: Some(flags), ..Setup::default() });
        rig.vehicle
            .eventually("it is reported", |status| faults_of(status).contains(&Fault::Unreachable));
        std::thread::sleep(Duration::from_secs(1));
        let status = rig.vehicle.status().expect("it runs");
        assert!(status.machine.is_some() && status.mode == Mode::Held, "{status:?}");
        let log = std::fs::read_to_string(rig.path(CAN_LOG)).expect("a log");
        let told = "the bus can-never: No such device (os error 19): `ip link` lists";
        assert_eq!(log.matches(told).count(), 1, "{log}");
    });
}

#[test]
fn a_check_prints_the_map_or_all_its_mistakes() {
    let check = |map: &Path| -> Output {
        let mut command: Command = tautline();
        command.stderr(std::process::Stdio::piped());
        command.args(["can", "--check", "--map"]).arg(map).output().expect("our own binary")
    };
    let told = check(&example().join("car.toml"));
    let table = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success(), "{told:?}");
    for part in ["STEERING_COMMAND", "-450 to 450, at most 500/s up", "at end: REQUEST = 0"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let map = folder.path().join("wrong.toml");
    std::fs::write(&map, "dbc = \"none.dbc\"\nbuss = \"can0\"\nsend = 1\n").expect("room");
    let told = check(&map);
    let mistakes = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(2), "{told:?}");
    for part in ["none.dbc: No such file", "wrong.toml:2: buss", "wrong.toml:3: send is a list"] {
        assert!(mistakes.contains(part), "{part}: {mistakes}");
    }
}

/// Time for which the map of these tests allows the car's motion not to come.
const TIMEOUT: Duration = Duration::from_millis(200);
