use std::net::SocketAddr;

use proptest::prelude::*;
use tautline_scenario::direct::Direct;
use tautline_scenario::faults::{Attack, Faults};
use tautline_transport::{
    ChannelNumber, Config, Discard, Event, Identity, Route, Session, Timer, UnitNumber,
};
use tautline_units::{Duration, Instant};

use crate::exchange::{direct, route, units};
use crate::harness::{Run, Scenario, clean, fixed, ms};

#[test]
fn forged_replayed_and_damaged_datagrams_alter_no_unit() {
    let mut scenario = Scenario::new(41, vec![clean(8.0, 20.0); 3]);
    scenario.config = fixed(6_000);
    scenario.length = Duration::from_secs(3);
    let calm = scenario.run();
    scenario.faults = Faults::Attack(Attack::default());
    let attacked = scenario.run();
    // A replayed init is answered again, so times may differ by one small datagram's.
    let numbers = |run: &Run| {
        let media = &run.operator().application.media.received;
        let mut numbers: Vec<UnitNumber> = media.iter().map(|unit| unit.number).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers(&attacked), numbers(&calm));
    let commands = |run: &Run| {
        let commands = &run.vehicle().application.commands.received;
        commands.iter().map(|command| command.number).collect::<Vec<_>>()
    };
    assert_eq!(commands(&attacked), commands(&calm));
    let (told, told_calm) = (&attacked.operator().application, &calm.operator().application);
    assert_eq!(told.media.lost, told_calm.media.lost);
    assert_eq!(told.established, 1);
    let counters = attacked.operator().session.counters();
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
    let mut sessions = direct(&[route(1), route(2)]);
    let mut inits = Vec::new();
    let mut buffer = Vec::new();
    while let Some(route) = sessions.vehicle.poll_transmit(&mut buffer, sessions.now) {
        inits.push(buffer.clone());
        sessions.operator.handle_datagram(route, &buffer, sessions.now);
    }
    assert_eq!(inits.len(), 2);
    sessions.run_until(ms(200));
    let victim = Route { socket: 0, remote: SocketAddr::from(([10, 9, 9, 9], 9)) };
    let mut reflected = 0;
    for _ in 0..100 {
        sessions.operator.handle_datagram(victim, &inits[0], sessions.now);
        while let Some(to) = sessions.operator.poll_transmit(&mut buffer, sessions.now) {
            if to == victim {
                reflected += buffer.len();
                assert!(buffer.len() < inits[0].len());
            }
        }
    }
    assert!(reflected > 0);
    sessions
        .vehicle
        .send(ChannelNumber::MEDIA, b"on", Duration::from_millis(200), sessions.now)
        .unwrap();
    sessions.run_until(ms(300));
    assert_eq!(sessions.operator.counters().handshakes, 1);
    assert_eq!(units(&mut sessions.operator), ["channel 1 on"]);
}

#[test]
fn a_half_open_handshake_expires_and_a_retry_succeeds() {
    let mut sessions = direct(&[route(1)]);
    let mut buffer = Vec::new();
    sessions.vehicle.poll_transmit(&mut buffer, sessions.now).unwrap();
    sessions.operator.handle_datagram(route(1), &buffer, sessions.now);
    // Its answer is lost.
    while sessions.operator.poll_transmit(&mut buffer, sessions.now).is_some() {}
    let (expires_at, why) = sessions.operator.poll_timeout().unwrap();
    assert_eq!(why, Timer::Handshake);
    assert_eq!(expires_at, sessions.now + Duration::from_secs(10));
    let expired =
        |sessions: &Direct| sessions.operator.counters().discarded(Discard::HandshakeExpired);
    sessions.operator.handle_timeout(expires_at - Duration::from_millis(1));
    assert_eq!(expired(&sessions), 0);
    sessions.operator.handle_timeout(expires_at);
    assert_eq!((expired(&sessions), sessions.operator.poll_timeout()), (1, None));
    sessions.run_until(expires_at + Duration::from_secs(2));
    assert!(sessions.operator.is_established() && sessions.vehicle.is_up());
}

#[test]
fn a_datagram_names_the_session_that_it_is_for() {
    let mut sessions = direct(&[route(1)]);
    let mut buffer = Vec::new();
    sessions.vehicle.poll_transmit(&mut buffer, sessions.now).unwrap();
    let lease = [8; 16];
    let config = Config::default();
    let (a, b) = (identity(1), identity(2));
    let other = Session::respond(config, &b, a.public(), lease, 9, sessions.now).unwrap();
    assert!(sessions.operator.is_addressed_by(&buffer) && !other.is_addressed_by(&buffer));
    sessions.operator.handle_datagram(route(1), &buffer, sessions.now);
    sessions.operator.poll_transmit(&mut buffer, sessions.now).unwrap();
    assert!(
        sessions.vehicle.is_addressed_by(&buffer) && !sessions.operator.is_addressed_by(&buffer)
    );
    sessions.vehicle.handle_datagram(route(1), &buffer, sessions.now);
    assert_eq!(sessions.vehicle.heard_at(), Some(sessions.now));
    // Half open, and then established: the first sealed datagram of the vehicle.
    sessions.vehicle.poll_transmit(&mut buffer, sessions.now).unwrap();
    for _ in 0..2 {
        assert!(sessions.operator.is_addressed_by(&buffer) && !other.is_addressed_by(&buffer));
        sessions.operator.handle_datagram(route(1), &buffer, sessions.now);
    }
    assert!(!other.is_addressed_by(&[]));
}

#[test]
fn a_stranger_and_a_foreign_lease_are_not_answered() {
    let mut sessions = direct(&[route(1)]);
    let (a, b, c) = (identity(1), identity(2), identity(3));
    let mut buffer = Vec::new();
    for (who, lease, what) in
        [(&c, [7; 16], Discard::HandshakeWrongPeer), (&a, [8; 16], Discard::HandshakeForged)]
    {
        let config = Config::default();
        let routes = [route(1)];
        let mut other =
            Session::initiate(config, who, b.public(), lease, &routes, 5, sessions.now).unwrap();
        other.poll_transmit(&mut buffer, sessions.now).unwrap();
        sessions.operator.handle_datagram(route(1), &buffer, sessions.now);
        assert_eq!(sessions.operator.counters().discarded(what), 1);
        assert_eq!(sessions.operator.poll_transmit(&mut buffer, sessions.now), None);
    }
    sessions.run_until(ms(200));
    assert!(sessions.operator.is_established());
}

#[test]
fn an_unproved_link_is_sent_no_more_than_it_sent() {
    let mut sessions = direct(&[route(1), route(2)]);
    let mut buffer = Vec::new();
    let (mut came, mut went) = (0, 0);
    let end = Instant::from_millis(3_000);
    loop {
        let now = sessions.now;
        while let Some(to) = sessions.vehicle.poll_transmit(&mut buffer, now) {
            if to == route(2) {
                came += buffer.len();
            }
            sessions.operator.handle_datagram(to, &buffer, now);
        }
        // Every datagram that the operator sends to the second link is lost.
        while let Some(to) = sessions.operator.poll_transmit(&mut buffer, now) {
            match to == route(2) {
                true => went += buffer.len(),
                false => sessions.vehicle.handle_datagram(to, &buffer, now),
            }
            assert!(went <= came, "{went} sent for {came}");
        }
        let deadline = Duration::from_millis(100);
        let _ = sessions.operator.send(ChannelNumber::MEDIA, &[1; 5_000], deadline, now);
        let _ = sessions.operator.send(ChannelNumber::COMMAND, &[1; 50], deadline, now);
        if !sessions.step(end) {
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
        let mut sessions = direct(&[route(1), route(2)]);
        sessions.run_until(ms(150));
        let mut genuine = Vec::new();
        sessions.vehicle.send(ChannelNumber::MEDIA, b"x", Duration::from_millis(100), sessions.now).unwrap();
        sessions.vehicle.poll_transmit(&mut genuine, sessions.now);
        for mut datagram in datagrams {
            // Half of them begin like a datagram of this session.
            if datagram.len() > 7 && head % 2 == 0 {
                datagram[..7].copy_from_slice(&genuine[..7]);
                datagram[0] ^= head >> 2;
            }
            for route in [route(1), route(9)] {
                sessions.operator.handle_datagram(route, &datagram, sessions.now);
                sessions.vehicle.handle_datagram(route, &datagram, sessions.now);
            }
        }
        let mut events = Vec::new();
        while let Some(event) = sessions.operator.poll_event() {
            events.push(event);
        }
        let no_unit = events.iter().all(|e| !matches!(e, Event::Unit { .. }));
        prop_assert!(no_unit);
        sessions.operator.handle_datagram(route(1), &genuine, sessions.now);
        sessions.run_until(ms(300));
        prop_assert_eq!(units(&mut sessions.operator), vec!["channel 1 x".to_string()]);
        prop_assert!(sessions.operator.links().all(|link| link.route.remote.port() < 9));
    }
}
