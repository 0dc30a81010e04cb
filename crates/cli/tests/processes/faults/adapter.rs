//! A Python adapter in place of the car: garbage on its port, late controls, a request to end, and
//! a bug.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tautline_guard::{Cause, Mode};

use crate::faults::bound;
use crate::faults::garbage::{Between, Garbage};
use crate::faults::rig::{ADAPTERS, Limits, MACHINE, Rig, Setup};
use crate::tries::tried;

#[test]
fn garbage_stops_an_adapter_only_if_it_replaces_its_frames() {
    tried(|| {
        let machine_at = "between.sock";
        let mut rig = Rig::start(&Setup { limits: Limits::Late, machine_at, ..Setup::default() });
        let printed = Printed::of(&mut rig);
        let between = Between::start(rig.path(machine_at), rig.path(MACHINE));
        rig.drive(3.0);
        between.garble(Garbage::Beside);
        rig.vehicle.throttle(0.2);
        let (_, begun) = printed.newest();
        std::thread::sleep(Duration::from_secs(1));
        let (speed, x) = printed.newest();
        assert!(speed > 1.0 && x - begun > 1.0, "{} m in a second, then {speed} m/s", x - begun);
        assert!(rig.vehicle.status().is_some_and(|status| status.mode.is_driving()), "it drives");
        let (speed, begun) = printed.newest();
        between.garble(Garbage::Instead);
        let distance = printed.stands() - begun;
        assert!(distance < bound(speed, rig.silence()), "{distance} m from {speed} m/s");
        between.garble(Garbage::None);
        let status = rig.vehicle.eventually("held", |status| status.mode == Mode::Held);
        assert!(
            [Cause::MachineTimeout, Cause::GuardSilent].contains(&status.why.cause),
            "{status:?}"
        );
        // The throttle stays pressed.
        let stood = printed.newest();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(printed.newest(), stood, "nobody armed it");
        rig.drive(2.0);
    });
}

#[test]
fn queued_controls_count_as_silence_for_an_adapter() {
    tried(|| {
        let machine_at = "between.sock";
        let mut rig = Rig::start(&Setup { limits: Limits::Late, machine_at, ..Setup::default() });
        let printed = Printed::of(&mut rig);
        let between = Between::start(rig.path(machine_at), rig.path(MACHINE));
        rig.drive(3.0);
        rig.vehicle.throttle(0.1);
        // A control arrives every 15 ms, and none is lost.
        between.hold_back(Duration::from_millis(5));
        std::thread::sleep(Duration::from_millis(500));
        assert!(printed.newest().0 > 1.0, "it drives on by what is 170 ms late");
        let status = rig.vehicle.eventually("held", |status| status.mode == Mode::Held);
        assert_eq!(status.why.cause, Cause::GuardSilent, "{status:?}");
        assert_eq!(printed.newest().0, 0.0);
        between.hold_back(Duration::ZERO);
    });
}

#[test]
fn a_terminated_adapter_stops_its_machine_before_it_ends() {
    tried(|| {
        let mut rig = Rig::start(&Setup::default());
        let printed = Printed::of(&mut rig);
        rig.drive(4.0);
        let (speed, begun) = printed.newest();
        let ended = rig.end_machine();
        let (last, x) = printed.last();
        assert!(ended.success() && last.abs() <= STANDING, "{ended}, {last} m/s");
        let distance = x - begun;
        assert!(distance < bound(speed, Duration::ZERO), "{distance} m from {speed} m/s");
    });
}

#[test]
fn an_adapter_whose_machine_fails_leaves_it_on_its_full_brake() {
    let mut failing = Command::new("python3");
    failing.args(["-B", "-c", FAILING]).env("PYTHONPATH", ADAPTERS);
    let output = failing.output().expect("python3");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("the bus is gone"), "{words}");
    let applied = String::from_utf8_lossy(&output.stdout);
    let applied: Vec<&str> = applied.lines().collect();
    assert_eq!(applied, ["2 0.1 0.0 0.5 0 0 32", "2 0.1 0.0 1.0 0 0 32"]);
}

/// Newest output of a machine: its speed in metres per second, and its position in metres.
struct Printed {
    newest: Arc<Mutex<(f64, f64)>>,
    reader: JoinHandle<()>,
}

impl Printed {
    fn of(rig: &mut Rig) -> Self {
        let (printed, newest) = (rig.printed(), Arc::<Mutex<(f64, f64)>>::default());
        let reader = {
            let newest = newest.clone();
            std::thread::spawn(move || {
                for state in printed {
                    *newest.lock().expect("nobody panics with it") = state;
                }
            })
        };
        Self { newest, reader }
    }

    fn newest(&self) -> (f64, f64) {
        *self.newest.lock().expect("nobody panics with it")
    }

    /// Waits until the machine stands; returns its position in metres.
    fn stands(&self) -> f64 {
        for _ in 0..2_000 {
            let (speed, x) = self.newest();
            if speed == 0.0 {
                return x;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not stand: {:?}", self.newest());
    }

    /// Waits until the machine's process has ended; returns its last output, speed and position.
    fn last(self) -> (f64, f64) {
        self.reader.join().expect("it only reads");
        *self.newest.lock().expect("nobody panics with it")
    }
}

/// Speed in m/s below which an adapter counts its machine as standing; its output is rounded.
const STANDING: f64 = 0.05;

/// Python text of an adapter whose machine drives until its bus fails, and that prints the applied
/// controls.
const FAILING: &str = r#"
import adapter, machine

class Failing(machine.Machine):
    speed, controls = 5.0, (2, 0.1, 0.8, 0.0, 0, 0, 0.0, 0.0, 0.0, *adapter.NO_AXES, 0, 0, 0)
    def apply(self, controls):
        super().apply(controls)
        print(*controls[:6], controls[25])
    def state(self, seconds, notices):
        raise OSError("the bus is gone")

machine.Machine = Failing
machine.main("/nowhere/machine.sock")
"#;
