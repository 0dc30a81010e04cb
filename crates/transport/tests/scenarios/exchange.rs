use std::net::SocketAddr;

use tautline_transport::{Class, Config, Event, Identity, Route, SendError, Session};
use tautline_units::{ByteCount, Duration, Instant};

/// Two sessions over a wire without delay or loss.
pub(crate) struct Couple {
    pub(crate) vehicle: Session,
    pub(crate) operator: Session,
    pub(crate) now: Instant,
}

pub(crate) fn route(port: u16) -> Route {
    Route { socket: 0, remote: SocketAddr::from(([10, 0, 0, 1], port)) }
}

impl Couple {
    pub(crate) fn new(routes: &[Route]) -> Self {
        Self::with(routes, Config::default(), Config::default())
    }

    /// The vehicle's configuration first.
    pub(crate) fn with(routes: &[Route], vehicle: Config, operator: Config) -> Self {
        let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
        let now = Instant::from_millis(1);
        let vehicle = Session::initiate(vehicle, &a, b.public(), [7; 16], routes, 1, now).unwrap();
        let operator = Session::respond(operator, &b, a.public(), [7; 16], 2, now).unwrap();
        Self { vehicle, operator, now }
    }

    /// Moves every datagram at once.
    pub(crate) fn exchange(&mut self) {
        let mut buffer = Vec::new();
        let mut moved = true;
        while moved {
            moved = false;
            while let Some(route) = self.vehicle.poll_transmit(&mut buffer, self.now) {
                self.operator.handle_datagram(route, &buffer, self.now);
                moved = true;
            }
            while let Some(route) = self.operator.poll_transmit(&mut buffer, self.now) {
                self.vehicle.handle_datagram(route, &buffer, self.now);
                moved = true;
            }
        }
    }

    /// Moves the time on to the next timer; false if that is after `end`.
    pub(crate) fn step(&mut self, end: Instant) -> bool {
        let timers = [&self.vehicle, &self.operator];
        let next = timers.into_iter().filter_map(|s| s.poll_timeout()).min();
        let Some((at, _)) = next.filter(|(at, _)| *at <= end) else { return false };
        self.now = at.max(self.now);
        self.vehicle.handle_timeout(self.now);
        self.operator.handle_timeout(self.now);
        true
    }

    pub(crate) fn run_until(&mut self, millis: u64) {
        let end = Instant::from_millis(millis);
        self.exchange();
        while self.step(end) {
            self.exchange();
        }
        self.now = end;
    }

    /// The operator's units, as text.
    pub(crate) fn units(&mut self) -> Vec<String> {
        units(&mut self.operator)
    }
}

fn units(session: &mut Session) -> Vec<String> {
    std::iter::from_fn(|| session.poll_event())
        .filter_map(|event| match event {
            Event::Unit { class, bytes, .. } => {
                Some(format!("{class:?} {}", String::from_utf8_lossy(&bytes)))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn units_cross_in_both_directions() {
    let mut couple = Couple::new(&[route(1), route(2)]);
    couple.run_until(100);
    assert!(couple.vehicle.is_established() && couple.operator.is_established());
    let unit: Vec<u8> = (0..5_000_u32).map(|i| b'a' + (i % 26) as u8).collect();
    let (deadline, now) = (Duration::from_millis(200), couple.now);
    couple.vehicle.send(Class::Media, &unit, deadline, now).unwrap();
    couple.operator.send(Class::Control, b"left", deadline, now).unwrap();
    couple.run_until(200);
    let sent = String::from_utf8(unit).unwrap();
    assert_eq!(couple.units(), [format!("Media {sent}")]);
    assert_eq!(units(&mut couple.vehicle), ["Control left"]);
}

#[test]
fn a_unit_that_cannot_be_sent_is_refused_with_the_reason() {
    let mut couple = Couple::new(&[route(1)]);
    let deadline = Duration::from_millis(200);
    let send = |couple: &mut Couple, class, unit: &[u8], deadline| {
        couple.vehicle.send(class, unit, deadline, couple.now).unwrap_err()
    };
    let early = send(&mut couple, Class::Media, b"x", deadline);
    assert_eq!(early, SendError::NotEstablished);
    couple.run_until(100);
    let large = send(&mut couple, Class::Media, &[0; 200_000], deadline);
    let most = ByteCount::new(128 * 1_169 - 8);
    assert_eq!(large, SendError::TooLarge { found: ByteCount::new(200_000), most });
    let late = send(&mut couple, Class::Control, b"x", Duration::ZERO);
    assert_eq!(late, SendError::Deadline { found: Duration::ZERO });
    // 100 kB in 20 ms is 40 Mbit/s and twice that with repair; 8 Mbit/s are granted.
    let congested = send(&mut couple, Class::Media, &[0; 100_000], Duration::from_millis(20));
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
    config.protect.source_count_min = 0;
    assert_eq!(
        begin(config, &[route(1)]),
        "transport.protect.source_count_min: 0 is not within 1 to 64"
    );
}

#[test]
fn an_idle_session_wakes_no_more_than_its_pings_and_reports_need() {
    let mut couple = Couple::new(&[route(1), route(2)]);
    couple.run_until(1_000);
    let mut wakes = 0;
    while couple.step(Instant::from_millis(2_000)) {
        couple.exchange();
        wakes += 1;
    }
    // 50 pings a second on each link from each side, 10 reports from each.
    assert!(wakes < 4 * 55 + 25, "{wakes}");
}
