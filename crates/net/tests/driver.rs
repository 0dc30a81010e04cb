//! Two event loops over real sockets of the loopback interface.

use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tautline_net::channels::APPLICATION_MIN;
use tautline_net::clock::Clock;
use tautline_net::driver::{Driver, Output};
use tautline_net::{Local, routes};
use tautline_transport::channel::{Channel, Descriptor, Order, Priority};
use tautline_transport::crypto::Identity;
use tautline_transport::{ChannelNumber, Config, Event, Session};
use tautline_units::Bitrate;

/// Output of a loop: events, unsent units, and at each tick the counts of forged and of unclaimed
/// datagrams.
#[derive(Debug)]
enum Told {
    Event(Event),
    Refused(ChannelNumber, Vec<u8>),
    Tick { forged_or_malformed: u64, no_session: u64 },
}

struct End {
    driver: Driver,
    clock: Clock,
    told: Receiver<Told>,
}

impl End {
    fn start() -> Self {
        let clock = Clock::start();
        let (tell, told) = channel();
        let local: Local = "127.0.0.1:0".parse().expect("an address");
        let driver = Driver::spawn(&[local], clock, move |output| {
            let told = match output {
                Output::Event(event, _) => Told::Event(event),
                Output::Refused(channel, unit, _) => Told::Refused(channel, unit.to_vec()),
                Output::Tick(session, _, drops) => Told::Tick {
                    forged_or_malformed: session
                        .counters()
                        .drops()
                        .filter(|(name, _)| name.starts_with("datagram_"))
                        .map(|(_, count)| count)
                        .sum(),
                    no_session: drops.no_session,
                },
            };
            // A failed send means that the test has ended.
            let _ = tell.send(told);
        });
        Self { driver: driver.expect("a free port"), clock, told }
    }

    fn address(&self) -> String {
        self.driver.local_addresses()[0].to_string()
    }

    /// Waits for an event for which `wanted` returns a value.
    fn await_event<T>(&self, what: &str, mut wanted: impl FnMut(Told) -> Option<T>) -> T {
        for _ in 0..100_000 {
            let told = self.told.recv_timeout(Duration::from_secs(10));
            if let Some(found) = wanted(told.unwrap_or_else(|_| panic!("no {what} in 10 s"))) {
                return found;
            }
        }
        panic!("no {what}")
    }
}

/// Returns a vehicle's and an operator's end with an established session.
fn pair() -> (End, End) {
    let (vehicle, operator) = (End::start(), End::start());
    let keys = [1, 2].map(|seed| Identity::from_seed(&[seed; 32]));
    let lease = [7; 16];
    let respond = Session::respond(
        Config::default(),
        &keys[1],
        keys[0].public(),
        lease,
        [3; 32],
        operator.clock.now(),
    );
    operator.driver.handle().start(respond.expect("a valid configuration"));
    let routes = routes(&vehicle.driver.local_addresses(), &[operator.address()]);
    let initiate = Session::initiate(
        Config::default(),
        &keys[0],
        keys[1].public(),
        lease,
        &routes,
        [4; 32],
        vehicle.clock.now(),
    );
    vehicle.driver.handle().start(initiate.expect("a valid configuration"));
    let budget = |told| match told {
        Told::Event(Event::Budget { media, .. }) if media.bps() > 0 => Some(()),
        Told::Event(_) | Told::Refused(..) | Told::Tick { .. } => None,
    };
    vehicle.await_event("budget", budget);
    (vehicle, operator)
}

fn unit(told: Told) -> Option<(ChannelNumber, Vec<u8>)> {
    match told {
        Told::Event(Event::Unit { channel, bytes, .. }) => Some((channel, bytes)),
        Told::Event(_) | Told::Refused(..) | Told::Tick { .. } => None,
    }
}

#[test]
fn units_cross_in_both_directions() {
    let (vehicle, operator) = pair();
    let slice: Vec<u8> = (0..5_000_u32).map(|byte| byte as u8).collect();
    let deadline = Duration::from_secs(2);
    assert!(vehicle.driver.handle().send(ChannelNumber::MEDIA, slice.clone(), deadline));
    assert_eq!(operator.await_event("slice", unit), (ChannelNumber::MEDIA, slice));
    assert!(operator.driver.handle().send(ChannelNumber::COMMAND, b"steer".to_vec(), deadline));
    assert_eq!(vehicle.await_event("command", unit), (ChannelNumber::COMMAND, b"steer".to_vec()));
}

#[test]
fn a_unit_that_is_never_sent_comes_back() {
    let alone = End::start();
    let slice = vec![7; 5_000];
    assert!(alone.driver.handle().send(
        ChannelNumber::MEDIA,
        slice.clone(),
        Duration::from_millis(200)
    ));
    let refused = |told| match told {
        Told::Refused(channel, unit) => Some((channel, unit)),
        Told::Event(_) | Told::Tick { .. } => None,
    };
    assert_eq!(alone.await_event("refusal", refused), (ChannelNumber::MEDIA, slice));
}

#[test]
fn an_application_opens_a_channel_of_its_own() {
    let (vehicle, operator) = pair();
    let descriptor = Descriptor { topic: "/scan".into(), ..Descriptor::default() };
    let number = ChannelNumber::new(APPLICATION_MIN);
    vehicle.driver.handle().open(Channel {
        number,
        order: Order::ByDeadline,
        priority: Priority::Data,
        rate_cap: Some(Bitrate::from_mbps(1)),
        descriptor: descriptor.clone(),
    });
    let announced = |told| match told {
        Told::Event(Event::Announced { channel, descriptor }) => Some((channel, descriptor)),
        Told::Event(_) | Told::Refused(..) | Told::Tick { .. } => None,
    };
    assert_eq!(operator.await_event("announcement", announced), (number, descriptor));
    let deadline = Duration::from_secs(2);
    assert!(vehicle.driver.handle().send(number, b"scan".to_vec(), deadline));
    assert_eq!(operator.await_event("scan", unit), (number, b"scan".to_vec()));
}

#[test]
fn strangers_datagrams_are_counted_and_change_nothing() {
    let (vehicle, operator) = pair();
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    for length in [0, 1, 7, 40, 1_400, 2_100] {
        stranger.send_to(&vec![0x35; length], operator.address()).expect("loopback carries it");
    }
    operator.await_event("count", |told| match told {
        Told::Tick { forged_or_malformed, .. } => (forged_or_malformed >= 6).then_some(()),
        Told::Event(_) | Told::Refused(..) => None,
    });
    let deadline = Duration::from_secs(2);
    assert!(vehicle.driver.handle().send(ChannelNumber::COMMAND, b"still here".to_vec(), deadline));
    assert_eq!(
        operator.await_event("unit", unit),
        (ChannelNumber::COMMAND, b"still here".to_vec())
    );
}

#[test]
fn after_a_stop_datagrams_find_no_session() {
    let (vehicle, operator) = pair();
    operator.driver.handle().stop();
    let deadline = Duration::from_secs(2);
    vehicle.driver.handle().send(ChannelNumber::COMMAND, b"anyone?".to_vec(), deadline);
    let silent = |told| match told {
        Told::Event(Event::Budget { media, .. }) if media.bps() == 0 => Some(()),
        Told::Event(_) | Told::Refused(..) | Told::Tick { .. } => None,
    };
    vehicle.await_event("pause", silent);
    // The operator's loop ticks only while it has a session; a new one reports the earlier
    // datagrams.
    let keys = [1, 2].map(|seed| Identity::from_seed(&[seed; 32]));
    let now = operator.clock.now();
    let again =
        Session::respond(Config::default(), &keys[1], keys[0].public(), [8; 16], [5; 32], now);
    operator.driver.handle().start(again.expect("a valid configuration"));
    operator.await_event("count", |told| match told {
        Told::Tick { no_session, .. } => (no_session > 0).then_some(()),
        Told::Event(_) | Told::Refused(..) => None,
    });
}
