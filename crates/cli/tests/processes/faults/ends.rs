//! Requests to end, refusals and second processes of the same name while the machine moves: real
//! processes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use tautline_guard::Notice;
use tautline_transport::crypto::Identity;

use crate::faults::remote::NAME;
use crate::faults::rig::{Rig, signal, tautline};
use crate::tries::tried;

#[test]
fn orders_to_end_stop_the_machine_before_the_vehicle_ends() {
    tried(|| {
        let mut rig = Rig::patient();
        rig.drive(4.0);
        // The operator keeps the throttle pressed, and the requests to end are repeated.
        let mut ended = None;
        for turn in 0..2_000 {
            if turn % 10 == 0 {
                signal(rig.vehicle.vehicle.id(), ["TERM", "INT"][turn / 10 % 2]);
            }
            let speed = rig.car("speed_metres_per_second");
            ended = rig.vehicle.vehicle.try_wait().expect("it was started");
            if ended.is_some() {
                assert_eq!(speed, 0.0, "the machine moved when the process had ended");
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
        assert_eq!(rig.cause().as_deref(), Some("SessionEnded"));
        assert_eq!(rig.car("parking_brake"), 1.0);
    });
}

#[test]
fn only_a_supervisors_order_ends_a_drive_by_the_manoeuvre() {
    tried(|| {
        let rig = Rig::patient();
        let end = |more: &[&str]| {
            let mut command = tautline();
            command.args(["end", NAME, "--config"]).arg(rig.path("supervisor.toml")).args(more);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("our own binary")
        };
        let ended = |child: Child| child.wait_with_output().expect("it ends");
        rig.drive(4.0);
        // An operator's key signs no valid order: not even the switchboard carries it.
        let made = tautline().args(["keys", "new"]).arg(rig.path("other.key")).output();
        assert!(made.expect("our own binary").status.success());
        let others = ended(end(&["--key", rig.path("other.key").to_str().expect("text")]));
        assert!(!others.status.success(), "{others:?}");
        let key = Identity::from_seed(&[9; 32]).public().to_string();
        let foreign = ended(end(&["--vehicle-key", &key]));
        let words = String::from_utf8_lossy(&foreign.stderr).into_owned();
        assert!(words.contains("for another vehicle"), "{words}");
        crate::faults::goes_on(&rig);
        assert_eq!(rig.cause(), None);

        let begun = rig.car("odometer_metres");
        let order = end(&[]);
        // The operator keeps the throttle pressed.
        let (metres, fastest) = rig.stands_from(begun);
        let told = ended(order);
        let words = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(words.contains("the lease of anna has ended; the order was delivered"), "{told:?}");
        // The vehicle itself reports this, and only its report lets the command succeed.
        let signed: Vec<_> =
            words.lines().filter(|line| line.contains("its own signature")).collect();
        let [begun, held] = signed[..] else { panic!("{told:?}") };
        assert!(begun.contains("the guard's manoeuvre has begun; epoch 1"), "{told:?}");
        assert!(held.contains("the machine stands, and the guard holds it; epoch 1"), "{told:?}");
        assert!(told.status.success(), "{told:?}");
        // By the ramp: full braking at 8 m/s² would be shorter.
        assert!(metres > fastest * fastest / 16.0, "{metres} m from {fastest} m/s");
        assert_eq!(rig.cause().as_deref(), Some("SessionEnded"));
        rig.stays();
        let kept = std::fs::read_to_string(rig.path("orders")).expect("it keeps what it obeyed");
        assert_eq!(kept.lines().count(), 2, "{kept}");
    });
}

#[test]
fn a_terminated_guard_ends_at_once_and_the_machine_brakes() {
    tried(|| {
        let mut rig = crate::faults::car(&[]);
        rig.drive(5.0);
        crate::faults::stops(&mut rig, Rig::end_guard);
        rig.restart_guard();
        rig.vehicle.eventually("held", |status| status.mode == tautline_guard::Mode::Held);
        rig.stays();
    });
}

#[test]
fn a_terminated_car_process_stops_the_car_before_it_ends() {
    tried(|| {
        let mut rig = crate::faults::car(&[]);
        rig.drive(4.0);
        // The guard receives a pressed throttle all the time.
        let ended = rig.end_machine();
        let status = rig.vehicle.eventually("it says nothing any more", |status| {
            status.machine.is_some_and(|(_, age)| age > rig.silence())
        });
        let (last, _) = status.machine.expect("it spoke");
        assert!(ended.success() && last.speed.abs() < 0.05, "{ended}, {last:?}");
        assert!(last.notices.contains(Notice::GuardSilent));
    });
}

#[test]
fn a_second_process_with_the_vehicles_key_disturbs_no_drive() {
    tried(|| {
        let mut rig = Rig::patient();
        rig.drive(3.0);
        rig.vehicle.operator.throttle(0.2);
        let introductions = rig.vehicle.operator.introductions();
        let mut second = rig.vehicle.another();
        // The first one still answers the switchboard, so the second is refused, with the addresses
        // of both.
        let line = line_with(&mut second.0, "another machine uses its key at 127.0.0.1:");
        assert!(
            line.is_some_and(|line| line.contains("is at 127.0.0.1:")),
            "the copy learns of neither"
        );
        crate::faults::goes_on(&rig);
        crate::faults::goes_on(&rig);
        assert_eq!(rig.cause(), None);
        let who = rig.vehicle.who();
        assert!(who.contains("a connection with the same key from 127.0.0.1:"), "{who}");
        assert!(rig.vehicle.vehicle.try_wait().expect("it was started").is_none(), "it goes on");
        assert_eq!(
            rig.vehicle.operator.introductions(),
            introductions,
            "nobody else is introduced"
        );
        drop(second);
        crate::faults::goes_on(&rig);
    });
}

#[test]
fn a_copy_that_registers_first_after_a_restart_is_refused() {
    tried(|| {
        let mut rig = Rig::patient();
        rig.drive(3.0);
        rig.vehicle.operator.throttle(0.4);
        let introductions = rig.vehicle.operator.introductions();
        rig.vehicle.switchboard.kill().expect("it runs");
        rig.vehicle.switchboard.wait().expect("it was started");
        // By now both ends of the drive wait for three seconds between two attempts.
        for _ in 0..6 {
            crate::faults::goes_on(&rig);
        }
        rig.vehicle.restart_switchboard();
        let mut copy = rig.vehicle.another();
        let line = line_with(&mut copy.0, "another machine uses its key at 127.0.0.1:");
        let who = rig.vehicle.who();
        assert!(line.is_some(), "the copy learns of both: {who}");
        assert!(who.contains("a connection with the same key from 127.0.0.1:"), "{who}");
        // Longer than the ten seconds for which the process of the lease would have been awaited.
        for _ in 0..8 {
            crate::faults::goes_on(&rig);
        }
        assert_eq!(rig.cause(), None);
        assert_eq!(
            rig.vehicle.operator.introductions(),
            introductions,
            "the copy is introduced to nobody"
        );
    });
}

/// Returns the first line with these words on a process's standard error; `None` if none comes
/// within 20 s.
fn line_with(child: &mut Child, words: &'static str) -> Option<String> {
    let errors = BufReader::new(child.stderr.take().expect("it is ours to read"));
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let lines = errors.lines().map_while(Result::ok);
        lines.filter(|line| line.contains(words)).for_each(|line| drop(tell.send(line)));
    });
    told.recv_timeout(Duration::from_secs(20)).ok()
}

#[test]
fn a_switchboard_that_hangs_or_dies_stops_nothing() {
    tried(|| {
        let mut rig = Rig::patient();
        rig.drive(3.0);
        rig.vehicle.operator.throttle(0.2);
        signal(rig.vehicle.switchboard.id(), "STOP");
        // Longer than the three seconds for which either end waits for its messages.
        for _ in 0..4 {
            crate::faults::goes_on(&rig);
        }
        rig.vehicle.switchboard.kill().expect("it runs");
        crate::faults::goes_on(&rig);
        assert_eq!(rig.cause(), None);
    });
}
