//! Machines that a twist moves, driven by commands through the whole chain: they turn on the spot,
//! and stop within the metres and radians that the guard's settings declare.

use std::net::Ipv4Addr;
use std::time::Duration;

use tautline_guard::act::Outcome;
use tautline_guard::description::Reading;
use tautline_guard::{Axes, Mode, Twist};
use tautline_net::free_port;
use tautline_port::serve;
use tautline_testtrack::Kind;

use crate::faults::remote::{Place, Relay, Remote};
use crate::faults::rig::{Rig, Setup, name_of};
use crate::tries::tried;

/// A fault, or a person's act, while a machine is driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    LinkCut,
    OperatorKilled,
    VehicleKilled,
    GuardKilled,
    EmergencyStop,
}

impl Fault {
    const ALL: [Self; 5] = [
        Self::LinkCut,
        Self::OperatorKilled,
        Self::VehicleKilled,
        Self::GuardKilled,
        Self::EmergencyStop,
    ];

    fn inject(self, rig: &mut Rig<Remote>) {
        match self {
            Self::LinkCut => rig.vehicle.relay.as_mut().expect("a link").kill().expect("ours"),
            Self::OperatorKilled => rig.vehicle.operator.kill(),
            Self::VehicleKilled => rig.vehicle.vehicle.kill().expect("ours"),
            Self::GuardKilled => rig.kill_guard(),
            Self::EmergencyStop => rig.vehicle.operator.emergency_stop(3),
        }
    }

    /// Returns the time in seconds after which the stop must have begun.
    fn noticed(self, silence: Duration) -> f64 {
        match self {
            // Commands older than 0.3 s, or none for as long.
            Self::LinkCut | Self::OperatorKilled => 0.3,
            Self::VehicleKilled | Self::GuardKilled => silence.as_secs_f64(),
            // A command, a proposal and a control.
            Self::EmergencyStop => 0.06,
        }
    }

    /// Returns the causes of which the guard must log one; none if it cannot.
    fn causes(self) -> &'static [&'static str] {
        match self {
            Self::LinkCut | Self::OperatorKilled => &["CommandTimeout", "PictureAge"],
            Self::VehicleKilled => &["ProposalTimeout"],
            Self::GuardKilled => &[],
            Self::EmergencyStop => &["EmergencyStop"],
        }
    }
}

/// Returns the metres and radians in which a machine stops from `begun`.
fn declared(kind: Kind, fault: Fault, begun: Twist, silence: Duration) -> (f64, f64) {
    let ramp = kind.settings().manoeuvre;
    let alone = serve::Settings::default();
    let (mut slowing, most, yaw) = match fault {
        Fault::LinkCut | Fault::OperatorKilled | Fault::VehicleKilled => {
            (ramp.deceleration_begin, ramp.deceleration, ramp.yaw_deceleration)
        }
        Fault::GuardKilled => (alone.deceleration, alone.deceleration, alone.yaw_deceleration),
        Fault::EmergencyStop => {
            let most = ramp.deceleration_emergency;
            (most, most, ramp.yaw_deceleration_emergency)
        }
    };
    // Lag of the drive, and the readings of the machine before and after the fault.
    let waits = fault.noticed(silence) + 0.1 + 0.3;
    let mut twist = begun;
    let (mut metres, mut radians) =
        (waits * f64::from(twist.speed()), waits * f64::from(twist.yaw_rate.abs()));
    while twist != Twist::ZERO {
        metres += f64::from(twist.speed()) * 0.01;
        radians += f64::from(twist.yaw_rate.abs()) * 0.01;
        twist = twist.slowed(slowing, yaw, 0.01);
        slowing = (slowing + ramp.jerk * 0.01).min(most);
    }
    (metres + 0.02, radians + 0.02)
}

/// Turns the machine on the spot, drives it on, and stops it by a fault: of every second kind of
/// fault in a turn on the spot, of the others on an arc.
fn stops(kind: Kind, fault: Fault, is_in_a_turn: bool) {
    let envelope = kind.settings().envelope;
    // Not a number for machines that cannot.
    let sideways_max = envelope.sideways_speed_max.max(0.0);
    let mut rig = start(kind);
    let spot = Twist { yaw_rate: envelope.yaw_rate_max, ..Twist::ZERO };
    // The tracks of a rover lose three tenths of a turn.
    drive(&rig, spot, |motion| motion.yaw_rate > 0.5 * envelope.yaw_rate_max);
    let (odometer, turned) = (rig.car("odometer_metres"), rig.car("turned_radians"));
    std::thread::sleep(Duration::from_millis(500));
    assert!(rig.car("odometer_metres") - odometer < 0.01, "it turns on the spot");
    assert!(rig.car("turned_radians") - turned > 0.1);
    if !is_in_a_turn {
        let arc = Twist {
            forward: 0.6 * envelope.speed_max,
            sideways: 0.5 * sideways_max,
            yaw_rate: -0.3 * envelope.yaw_rate_max,
        };
        let (along, across) = (0.5 * envelope.speed_max, 0.35 * sideways_max);
        drive(&rig, arc, |it| it.forward > along && it.sideways >= across && it.yaw_rate < 0.0);
    }

    let (begun, silence) = (motion(&rig), rig.silence());
    let (odometer, turned) = (rig.car("odometer_metres"), rig.car("turned_radians"));
    fault.inject(&mut rig);
    let metres = rig.stands_after(odometer);
    let radians = rig.car("turned_radians") - turned;
    // Nothing of the measured motion may be above what was read a moment before.
    let (metres_most, radians_most) = declared(kind, fault, begun.scaled(1.1), silence);
    let told = format!("{kind:?}, {fault:?} from {begun:?}: {metres} m, {radians} rad");
    assert!(metres <= metres_most && radians <= radians_most, "{told}");
    assert_eq!(rig.car("hazard"), 1.0);
    if fault != Fault::GuardKilled {
        let cause = rig.cause().expect("a stop was logged");
        assert!(fault.causes().contains(&&*cause), "{told}: {cause}");
    }
    // The person still wants to move: nobody has armed.
    rig.stays();
    eprintln!("{told}");
}

fn start(kind: Kind) -> Rig<Remote> {
    let port = || free_port(Ipv4Addr::LOCALHOST.into()).expect("a port").port();
    let relay = Some(Relay { from: port(), to: port() });
    let place = Place { relay, ..Place::default() };
    let settings = format!("machine = \"{}\"", name_of(kind));
    Rig::remote_at(&place, &settings, &Setup { kind, ..Setup::default() })
}

/// Arms if it must, and wants `twist` until the machine moves as `is_there` says. A machine that is
/// too busy for young pictures may stop it, and is retried.
fn drive(rig: &Rig<Remote>, twist: Twist, is_there: impl Fn(Twist) -> bool) {
    let operator = &rig.vehicle.operator;
    for _ in 0..10 {
        if operator.guard().is_none_or(|guard| guard.mode == Mode::Held) {
            operator.arm();
        }
        operator.twist(twist);
        for _ in 0..1_000 {
            if is_there(motion(rig)) {
                return;
            }
            if operator.guard().is_some_and(|guard| guard.mode == Mode::Held) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    panic!("it does not drive: {:?}, {:?}", operator.guard(), rig.cause());
}

/// Returns the machine's own measure of its motion.
fn motion(rig: &Rig<Remote>) -> Twist {
    let sideways = rig.car("sideways_speed_metres_per_second") as f32;
    Twist {
        forward: rig.car("speed_metres_per_second") as f32,
        sideways: if sideways.is_nan() { 0.0 } else { sideways },
        yaw_rate: rig.car("yaw_rate_radians_per_second") as f32,
    }
}

/// Stops a machine of this kind by every fault.
fn stops_from_every_fault(kind: Kind, turns_first: bool) {
    for (at, fault) in Fault::ALL.into_iter().enumerate() {
        tried(|| stops(kind, fault, at.is_multiple_of(2) == turns_first));
    }
}

/// Returns the newest text among the machine's values; `None` without one.
fn text(rig: &Rig<Remote>) -> Option<String> {
    let values = rig.vehicle.operator.values()?;
    values.readings.iter().find_map(|(_, reading)| match reading {
        Reading::Text(text) => Some(text.to_string()),
        Reading::Number(_) => None,
    })
}

#[test]
fn an_operator_moves_the_boom_that_a_rover_declares() {
    tried(|| {
        let rig = start(Kind::Rover);
        let operator = &rig.vehicle.operator;
        operator.eventually("a description", |it| it.description().is_some());
        let description = operator.description().expect("it is there");
        let named = |name: &str| description.actions.iter().position(|it| it.name.as_str() == name);
        let boom = description.axes.iter().position(|it| it.name.as_str() == "boom");
        let (boom, dock) = (boom.expect("a boom"), named("dock").expect("a dock"));
        operator.eventually("values", |_| text(&rig).as_deref() == Some("undocked"));
        let revision = operator.values().map(|values| values.revision);
        assert_eq!(revision, Some(description.revision));

        // Held, the boom stays.
        let at = || operator.guard().and_then(|guard| Some(guard.machine?.0.axes.0[boom]));
        let mut axes = Axes::NONE;
        axes.0[boom] = 1.0;
        operator.axes(axes);
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(at(), Some(0.0));
        operator.arm();
        operator.axes(axes);
        operator.eventually("the boom is up", |_| at().is_some_and(|at| at > 0.9));
        operator.request(1_000, dock as u8);
        operator.eventually("it is answered", |operator| {
            let answer = operator.guard().and_then(|guard| guard.answer);
            answer.is_some_and(|it| it.number.get() == 1_000 && it.outcome == Outcome::Done)
        });
        operator.eventually("docked", |_| text(&rig).as_deref() == Some("docked"));
    });
}

#[test]
fn a_robot_stops_as_declared_from_every_fault() {
    stops_from_every_fault(Kind::Robot, true);
}

#[test]
fn a_rover_stops_as_declared_from_every_fault() {
    stops_from_every_fault(Kind::Rover, false);
}

#[test]
fn a_cart_stops_as_declared_from_every_fault() {
    stops_from_every_fault(Kind::Cart, false);
}
