use std::net::SocketAddr;

use proptest::prelude::*;
use tautline_transport::{Class, Config, Discard, Event, Identity, Route, Session};
use tautline_units::{Duration, Instant};

use crate::exchange::{Couple, route};
use crate::harness::{Run, Scenario, clean, fixed};

#[test]
fn forged_replayed_and_damaged_datagrams_change_no_delivered_unit() {
    let mut scenario = Scenario::new(41, vec![clean(8.0, 20.0); 3]);
    scenario.config = fixed(6_000);
    scenario.run_ms = 3_000;
    let calm = scenario.run();
    scenario.hostile = true;
    let attacked = scenario.run();
    // A replayed init is answered again, so times may differ by one small datagram's.
    let numbers = |run: &Run| {
        let mut numbers: Vec<u64> = run.receiver().media.iter().map(|unit| unit.number).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers(&attacked), numbers(&calm));
    let commands = |run: &Run| run.sender().control.iter().map(|c| c.0).collect::<Vec<_>>();
    assert_eq!(commands(&attacked), commands(&calm));
    assert_eq!(attacked.receiver().lost, calm.receiver().lost);
    assert_eq!(attacked.receiver().established, 1);
    let counters = attacked.receiver().session.counters();
    for what in [
        Discard::DatagramMalformed,
        Discard::DatagramForged,
        Discard::DatagramReplayed,
        Discard::DatagramUnknownSession,
    ] {
        assert!(counters.discarded(what) > 10, "{what:?}: {}", counters.discarded(what));
    }
    assert_eq!(counters.discarded(Discard::PacketMalformed), 0);
}

#[test]
fn a_replayed_init_does_not_harm_a_running_session() {
    let mut couple = Couple::new(&[route(1), route(2)]);
    let mut inits = Vec::new();
    let mut buffer = Vec::new();
    while let Some(route) = couple.vehicle.poll_transmit(&mut buffer, couple.now) {
        inits.push(buffer.clone());
        couple.operator.handle_datagram(route, &buffer, couple.now);
    }
    assert_eq!(inits.len(), 2);
    couple.run_until(200);
    let victim = Route { socket: 0, remote: SocketAddr::from(([10, 9, 9, 9], 9)) };
    let mut reflected = 0;
    for _ in 0..100 {
        couple.operator.handle_datagram(victim, &inits[0], couple.now);
        while let Some(to) = couple.operator.poll_transmit(&mut buffer, couple.now) {
            if to == victim {
                reflected += buffer.len();
                assert!(buffer.len() < inits[0].len());
            }
        }
    }
    assert!(reflected > 0);
    couple.vehicle.send(Class::Media, b"on", Duration::from_millis(200), couple.now).unwrap();
    couple.run_until(300);
    assert_eq!(couple.operator.counters().handshakes, 1);
    assert_eq!(couple.units(), ["Media on"]);
}

#[test]
fn a_stranger_and_a_foreign_lease_are_not_answered() {
    let mut couple = Couple::new(&[route(1)]);
    let (a, b, c) = (identity(1), identity(2), identity(3));
    let mut buffer = Vec::new();
    for (who, lease, what) in
        [(&c, [7; 16], Discard::HandshakeWrongPeer), (&a, [8; 16], Discard::HandshakeForged)]
    {
        let config = Config::default();
        let routes = [route(1)];
        let mut other =
            Session::initiate(config, who, b.public(), lease, &routes, 5, couple.now).unwrap();
        other.poll_transmit(&mut buffer, couple.now).unwrap();
        couple.operator.handle_datagram(route(1), &buffer, couple.now);
        assert_eq!(couple.operator.counters().discarded(what), 1);
        assert_eq!(couple.operator.poll_transmit(&mut buffer, couple.now), None);
    }
    couple.run_until(200);
    assert!(couple.operator.is_established());
}

#[test]
fn an_unproved_link_is_sent_no_more_than_it_sent() {
    let mut couple = Couple::new(&[route(1), route(2)]);
    let mut buffer = Vec::new();
    let (mut came, mut went) = (0, 0);
    let end = Instant::from_millis(3_000);
    loop {
        let now = couple.now;
        while let Some(to) = couple.vehicle.poll_transmit(&mut buffer, now) {
            if to == route(2) {
                came += buffer.len();
            }
            couple.operator.handle_datagram(to, &buffer, now);
        }
        // Every datagram that the operator sends to the second link is lost.
        while let Some(to) = couple.operator.poll_transmit(&mut buffer, now) {
            match to == route(2) {
                true => went += buffer.len(),
                false => couple.vehicle.handle_datagram(to, &buffer, now),
            }
            assert!(went <= came, "{went} sent for {came}");
        }
        let deadline = Duration::from_millis(100);
        let _ = couple.operator.send(Class::Media, &[1; 5_000], deadline, now);
        let _ = couple.operator.send(Class::Control, &[1; 50], deadline, now);
        if !couple.step(end) {
            break;
        }
    }
    assert!(came > 1_000 && went > 500, "{came} {went}");
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_neither_panic_nor_deliver(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..40),
        head in 0_u8..64,
    ) {
        let mut couple = Couple::new(&[route(1), route(2)]);
        couple.run_until(150);
        let mut genuine = Vec::new();
        couple.vehicle.send(Class::Media, b"x", Duration::from_millis(100), couple.now).unwrap();
        couple.vehicle.poll_transmit(&mut genuine, couple.now);
        for mut datagram in datagrams {
            // Half of them begin like a datagram of this session.
            if datagram.len() > 7 && head % 2 == 0 {
                datagram[..7].copy_from_slice(&genuine[..7]);
                datagram[0] ^= head >> 2;
            }
            for route in [route(1), route(9)] {
                couple.operator.handle_datagram(route, &datagram, couple.now);
                couple.vehicle.handle_datagram(route, &datagram, couple.now);
            }
        }
        let mut events = Vec::new();
        while let Some(event) = couple.operator.poll_event() {
            events.push(event);
        }
        let no_unit = events.iter().all(|e| !matches!(e, Event::Unit { .. }));
        prop_assert!(no_unit);
        couple.operator.handle_datagram(route(1), &genuine, couple.now);
        couple.run_until(300);
        prop_assert_eq!(couple.units(), vec!["Media x".to_string()]);
        prop_assert!(couple.operator.links().all(|link| link.route.remote.port() < 9));
    }
}
