use std::net::SocketAddr;

use tautline_scenario::direct::Direct;
use tautline_transport::{ChannelNumber, Config, Event, Identity, Route, SendError, Session};
use tautline_units::{ByteCount, Duration, Instant};

use crate::harness::ms;

pub(crate) fn route(port: u16) -> Route {
    Route { socket: 0, remote: SocketAddr::from(([10, 0, 0, 1], port)) }
}

/// Returns two sessions with the default configuration.
pub(crate) fn direct(routes: &[Route]) -> Direct {
    Direct::new(routes, Config::default(), Config::default()).unwrap()
}

/// Drains the session's events and returns the received units as text: channel and content.
pub(crate) fn units(session: &mut Session) -> Vec<String> {
    std::iter::from_fn(|| session.poll_event())
        .filter_map(|event| match event {
            Event::Unit { channel, bytes, .. } => {
                Some(format!("{channel:?} {}", String::from_utf8_lossy(&bytes)))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn units_cross_in_both_directions() {
    let mut sessions = direct(&[route(1), route(2)]);
    sessions.run_until(ms(100));
    assert!(sessions.vehicle.is_established() && sessions.operator.is_established());
    let unit: Vec<u8> = (0..5_000_u32).map(|i| b'a' + (i % 26) as u8).collect();
    let (deadline, now) = (Duration::from_millis(200), sessions.now);
    sessions.vehicle.send(ChannelNumber::MEDIA, &unit, deadline, now).unwrap();
    sessions.operator.send(ChannelNumber::COMMAND, b"left", deadline, now).unwrap();
    sessions.run_until(ms(200));
    let sent = String::from_utf8(unit).unwrap();
    assert_eq!(units(&mut sessions.operator), [format!("channel 1 {sent}")]);
    assert_eq!(units(&mut sessions.vehicle), ["channel 0 left"]);
}

#[test]
fn a_unit_that_cannot_be_sent_is_refused_with_the_reason() {
    let mut sessions = direct(&[route(1)]);
    let deadline = Duration::from_millis(200);
    let send = |sessions: &mut Direct, channel, unit: &[u8], deadline| {
        sessions.vehicle.send(channel, unit, deadline, sessions.now).unwrap_err()
    };
    let early = send(&mut sessions, ChannelNumber::MEDIA, b"x", deadline);
    assert_eq!(early, SendError::NotEstablished);
    sessions.run_until(ms(100));
    let large = send(&mut sessions, ChannelNumber::MEDIA, &[0; 200_000], deadline);
    let most = ByteCount::new(128 * 1_169 - 8);
    assert_eq!(large, SendError::TooLarge { found: ByteCount::new(200_000), most });
    let late = send(&mut sessions, ChannelNumber::COMMAND, b"x", Duration::ZERO);
    assert_eq!(late, SendError::Deadline { found: Duration::ZERO });
    // 100 kB in 20 ms is 40 Mbit/s, and twice that with repair; 8 Mbit/s are granted.
    let congested =
        send(&mut sessions, ChannelNumber::MEDIA, &[0; 100_000], Duration::from_millis(20));
    assert_eq!(congested, SendError::Congested);
}

#[test]
fn a_session_needs_routes_and_a_valid_configuration() {
    let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
    let now = Instant::ZERO;
    let begin = |config: Config, routes: &[Route]| {
        Session::initiate(config, &a, b.public(), [7; 16], routes, 1, now)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(begin(Config::default(), &[]), "a session needs 1 to 16 routes, got 0");
    let mut config = Config::default();
    config.protect.miss_target = 0.0;
    assert_eq!(
        begin(config, &[route(1)]),
        "transport.protect.miss_target = 0: must be 0.0001 to 0.2"
    );
}

#[test]
fn an_idle_session_wakes_only_for_pings_and_reports() {
    let mut sessions = direct(&[route(1), route(2)]);
    sessions.run_until(ms(1_000));
    let mut wakes = 0;
    while sessions.step(Instant::from_millis(2_000)) {
        sessions.exchange();
        wakes += 1;
    }
    // 50 pings a second on each link from each side, 10 reports from each.
    assert!(wakes < 4 * 55 + 25, "{wakes}");
}
