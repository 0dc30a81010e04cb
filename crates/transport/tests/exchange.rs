//! Two sessions over a perfect wire: handshake, media, commands.

use std::net::SocketAddr;

use tautline_transport::{Class, Config, Event, Identity, Route, Session};
use tautline_units::{Duration, Instant};

fn route(port: u16) -> Route {
    Route { socket: 0, remote: SocketAddr::from(([10, 0, 0, 1], port)) }
}

/// Moves every datagram at once, and the time on to the next timer, until `end`.
fn run(vehicle: &mut Session, operator: &mut Session, now: &mut Instant, end: Instant) {
    let mut buffer = Vec::new();
    loop {
        let mut moved = true;
        while moved {
            moved = false;
            while let Some(route) = vehicle.poll_transmit(&mut buffer, *now) {
                operator.handle_datagram(route, &buffer, *now);
                moved = true;
            }
            while let Some(route) = operator.poll_transmit(&mut buffer, *now) {
                vehicle.handle_datagram(route, &buffer, *now);
                moved = true;
            }
        }
        let next = [&*vehicle, &*operator].iter().filter_map(|s| s.poll_timeout()).min();
        let Some((at, _)) = next.filter(|(at, _)| *at <= end) else { break };
        *now = at.max(*now);
        vehicle.handle_timeout(*now);
        operator.handle_timeout(*now);
    }
    *now = end;
}

#[test]
fn units_cross_in_both_directions() {
    let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
    let mut now = Instant::from_millis(1);
    let routes = [route(1), route(2)];
    let config = Config::default();
    let mut vehicle =
        Session::initiate(config.clone(), &a, b.public(), [7; 16], &routes, 1, now).unwrap();
    let mut operator = Session::respond(config, &b, a.public(), [7; 16], 2, now).unwrap();
    let end = Instant::from_millis(100);
    run(&mut vehicle, &mut operator, &mut now, end);
    assert!(vehicle.is_established() && operator.is_established());

    let unit: Vec<u8> = (0..5_000_u32).map(|i| i as u8).collect();
    let deadline = Duration::from_millis(200);
    vehicle.send(Class::Media, &unit, deadline, now).unwrap();
    operator.send(Class::Control, b"left", deadline, now).unwrap();
    run(&mut vehicle, &mut operator, &mut now, Instant::from_millis(200));

    let units = |session: &mut Session| {
        std::iter::from_fn(|| session.poll_event())
            .filter_map(|event| match event {
                Event::Unit { class, bytes, sent_at, .. } => Some((class, bytes, sent_at)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(units(&mut operator), [(Class::Media, unit, Some(end))]);
    assert_eq!(units(&mut vehicle), [(Class::Control, b"left".to_vec(), Some(end))]);
}
