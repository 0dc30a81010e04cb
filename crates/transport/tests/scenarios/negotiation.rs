//! Behaviour of two ends with different versions.

use tautline_scenario::direct::Direct;
use tautline_scenario::run::{LEASE, identity};
use tautline_scenario::script::Side;
use tautline_transport::{
    ChannelNumber, Config, Discard, Event, Session, VersionMismatch, Versions,
};
use tautline_units::Duration;

use crate::exchange::route;
use crate::harness::ms;

fn speaking(lowest: u8, highest: u8) -> Config {
    Config { versions: Versions::new(lowest, highest).unwrap(), ..Config::default() }
}

/// Returns two sessions a second after their start, with the ranges of versions of the vehicle and
/// of the operator.
fn met(vehicle: (u8, u8), operator: (u8, u8)) -> Direct {
    let (vehicle, operator) = (speaking(vehicle.0, vehicle.1), speaking(operator.0, operator.1));
    let mut sessions = Direct::new(&[route(1), route(2)], vehicle, operator).unwrap();
    sessions.run_until(ms(1_000));
    sessions
}

fn refusals(session: &mut Session) -> Vec<VersionMismatch> {
    std::iter::from_fn(|| session.poll_event())
        .filter_map(|event| match event {
            Event::Refused { mismatch } => Some(mismatch),
            _ => None,
        })
        .collect()
}

#[test]
fn ends_with_a_common_version_establish_a_session() {
    for (vehicle, operator) in [((2, 2), (2, 2)), ((2, 4), (1, 2)), ((2, 3), (3, 9))] {
        let mut sessions = met(vehicle, operator);
        assert!(sessions.vehicle.is_established() && sessions.operator.is_established());
        assert_eq!(refusals(&mut sessions.vehicle), []);
        assert_eq!(refusals(&mut sessions.operator), []);
    }
}

#[test]
fn without_a_common_version_both_ends_learn_once_who_is_older() {
    for (vehicle, operator, older) in
        [((2, 3), (4, 5), Side::Vehicle), ((6, 7), (2, 5), Side::Operator)]
    {
        let mut sessions = met(vehicle, operator);
        assert!(!sessions.vehicle.is_established() && !sessions.operator.is_established());
        let [at_vehicle] = refusals(&mut sessions.vehicle)[..] else { panic!("told once") };
        let [at_operator] = refusals(&mut sessions.operator)[..] else { panic!("told once") };
        assert_eq!((at_vehicle.ours, at_vehicle.theirs), (at_operator.theirs, at_operator.ours));
        assert_eq!(at_vehicle.is_ours_older(), older == Side::Vehicle);
        assert_eq!(at_operator.is_ours_older(), older == Side::Operator);
        for session in [&sessions.vehicle, &sessions.operator] {
            assert!(session.counters().discarded(Discard::HandshakeVersion) > 0);
        }
    }
}

/// Version 3 changed the messages: this build and one of version 2 have nothing to say to each
/// other.
#[test]
fn ends_of_versions_2_and_3_refuse_and_name_the_older_one() {
    let ours = (Versions::OURS.lowest, Versions::OURS.highest);
    assert_eq!(ours, (3, 3));
    for (vehicle, operator, words) in [
        (
            (2, 2),
            ours,
            [
                "this end speaks version 2, the operator version 3: update this end",
                "this end speaks version 3, the vehicle version 2: update the vehicle",
            ],
        ),
        (
            ours,
            (2, 2),
            [
                "this end speaks version 3, the operator version 2: update the operator",
                "this end speaks version 2, the vehicle version 3: update this end",
            ],
        ),
    ] {
        let mut sessions = met(vehicle, operator);
        assert!(!sessions.vehicle.is_established() && !sessions.operator.is_established());
        let [at_vehicle] = refusals(&mut sessions.vehicle)[..] else { panic!("told once") };
        let [at_operator] = refusals(&mut sessions.operator)[..] else { panic!("told once") };
        assert_eq!([at_vehicle.told("the operator"), at_operator.told("the vehicle")], words);
    }
}

#[test]
fn a_refusal_is_smaller_than_its_cause() {
    let sessions = Direct::new(&[route(1)], speaking(2, 2), speaking(3, 3));
    let Direct { mut vehicle, mut operator, now, .. } = sessions.unwrap();
    let (mut init, mut refusal) = (Vec::new(), Vec::new());
    vehicle.poll_transmit(&mut init, now).unwrap();
    operator.handle_datagram(route(1), &init, now);
    operator.poll_transmit(&mut refusal, now).unwrap();
    assert_eq!((init.len(), refusal.len()), (150, 21));
    // Every bit of it is checked except the link's, and so is the length.
    for at in 0..refusal.len() * 8 {
        let mut forged = refusal.clone();
        forged[at / 8] ^= 1 << (at % 8);
        if at >= 4 {
            vehicle.handle_datagram(route(1), &forged, now);
            vehicle.handle_datagram(route(1), &refusal[..at / 8], now);
        }
    }
    assert_eq!(refusals(&mut vehicle), []);
    vehicle.handle_datagram(route(1), &refusal, now);
    assert_eq!(refusals(&mut vehicle).len(), 1);
}

#[test]
fn a_refusal_ends_no_living_session() {
    let mut sessions = met((2, 2), (2, 2));
    assert_eq!(refusals(&mut sessions.vehicle), []);
    // The operator restarts as another build, which answers the vehicle's next call.
    let (a, b) = (identity(Side::Vehicle), identity(Side::Operator));
    let later = Session::respond(speaking(3, 3), &b, a.public(), LEASE, 9, sessions.now).unwrap();
    let mut earlier = std::mem::replace(&mut sessions.operator, later);
    sessions.run_until(ms(5_000));
    let [mismatch] = refusals(&mut sessions.vehicle)[..] else { panic!("told once") };
    assert_eq!(
        mismatch.told("the operator"),
        "this end speaks version 2, the operator version 3: update this end"
    );
    assert!(sessions.vehicle.is_established());
    // The earlier one returns, and the session continues.
    std::mem::swap(&mut sessions.operator, &mut earlier);
    sessions.run_until(ms(6_000));
    let (deadline, now) = (Duration::from_millis(200), sessions.now);
    sessions.vehicle.send(ChannelNumber::COMMAND, b"here", deadline, now).unwrap();
    sessions.run_until(ms(6_100));
    let came = |event: Event| matches!(event, Event::Unit { bytes, .. } if bytes == b"here");
    assert!(sessions.operator_events().any(came));
    assert_eq!(sessions.vehicle.counters().handshakes, 1);
}
