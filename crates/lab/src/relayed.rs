//! A vehicle and an operator that meet at a switchboard, in virtual time: one link from each end to
//! it, media going up, small messages going both ways.
//!
//! The ends are real sessions, or [`Carriage::Plain`] senders that have no idea of their link.

mod camera;
mod end;
mod switchboard;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::Result;
use tautline_sim::link::Pair;
use tautline_sim::world::{self, Clock, Node, World};
use tautline_transport::{Config, Identity, Route, Session};
use tautline_units::{ByteCount, Duration, Instant};

pub(crate) use camera::Camera;
use end::{End, Role};
use switchboard::Switchboard;

/// Is one run, before it is made.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Between the vehicle and the switchboard; up is from the vehicle.
    pub(crate) vehicle_link: Pair,
    /// Between the operator and the switchboard; up is from the operator.
    pub(crate) operator_link: Pair,
    /// How the vehicle sends.
    pub(crate) vehicle: Carriage,
    /// How the operator sends.
    pub(crate) operator: Carriage,
    pub(crate) camera: Camera,
    /// How long media is worth something.
    pub(crate) media_deadline: Duration,
    /// Between two messages, either way.
    pub(crate) message_interval: Duration,
    pub(crate) length: Duration,
    pub(crate) seed: u64,
}

/// How an end sends.
#[derive(Clone, Debug)]
pub(crate) enum Carriage {
    /// By a session.
    Session(Box<Config>),
    /// In datagrams of at most so many bytes, all at once, whatever comes back.
    Plain(ByteCount),
}

/// Is what was seen of a run, from the end of the warm-up to its length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Messages from the vehicle.
    pub(crate) reports: Vec<Sent>,
    /// Messages from the operator.
    pub(crate) commands: Vec<Sent>,
    /// Media units that were handed over.
    pub(crate) media: Vec<Sent>,
    /// Datagrams from the vehicle to the switchboard.
    pub(crate) vehicle_leg: Vec<Sent>,
    /// Datagrams from the operator to the switchboard.
    pub(crate) operator_leg: Vec<Sent>,
    /// Media units that were due while the gate was closed.
    pub(crate) paused: u64,
    /// Bytes that left both ends, headers of IP and UDP included.
    pub(crate) wire: ByteCount,
    /// Bytes of messages and media units that came.
    pub(crate) payload: ByteCount,
}

/// Is something that was sent, and when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) bytes: ByteCount,
    pub(crate) arrived: Option<Instant>,
}

impl Sent {
    /// Returns how long it took; `None` if it never came.
    pub(crate) fn delay(&self) -> Option<Duration> {
        self.arrived.map(|arrived| arrived.since(self.at))
    }
}

impl Setup {
    /// Makes the run.
    ///
    /// # Errors
    /// For a session or a link that cannot be configured so.
    pub(crate) fn run(&self) -> Result<Seen> {
        let (vehicle, operator) = self.ends()?;
        let mut world = World::new(self.seed);
        world.log_mut().keep(0);
        let middle = world.add(Party::Switchboard(Switchboard::default()), Clock::default());
        let operator = world.add(Party::End(Box::new(operator)), Clock::default());
        // Its first message finds no link yet and is sent again.
        let vehicle = world.add(Party::End(Box::new(vehicle)), Clock::default());
        let place = |node, socket, host| world::End::new(node, socket, address(host));
        world.link(place(vehicle, 0, VEHICLE), place(middle, 0, TO_VEHICLE), &self.vehicle_link)?;
        world.link(
            place(operator, 0, OPERATOR),
            place(middle, 1, TO_OPERATOR),
            &self.operator_link,
        )?;
        // What was sent last has its time as well.
        world.run_until(Instant::ZERO + self.length + LATEST);
        let Party::Switchboard(middle) = world.node(middle) else {
            unreachable!("put there above")
        };
        let (Party::End(vehicle), Party::End(operator)) =
            (world.node(vehicle), world.node(operator))
        else {
            unreachable!("put there above")
        };
        Ok(self.seen(vehicle, operator, middle))
    }

    fn ends(&self) -> Result<(End, End)> {
        let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
        let route = |host| Route { socket: 0, remote: address(host) };
        let now = Instant::ZERO;
        let with_deadline =
            |config: &Config| Config { media_deadline: self.media_deadline, ..config.clone() };
        let vehicle = match &self.vehicle {
            Carriage::Session(config) => Role::session(Session::initiate(
                with_deadline(config),
                &a,
                b.public(),
                LEASE,
                &[route(TO_VEHICLE)],
                self.seed ^ 2,
                now,
            )?),
            Carriage::Plain(most) => Role::plain(*most, route(TO_VEHICLE)),
        };
        let operator = match &self.operator {
            Carriage::Session(config) => {
                let config = with_deadline(config);
                Role::session(Session::respond(config, &b, a.public(), LEASE, self.seed ^ 1, now)?)
            }
            Carriage::Plain(most) => Role::plain(*most, route(TO_OPERATOR)),
        };
        let camera = Some((self.camera, self.media_deadline));
        let end = |role, camera| End::new(role, camera, self.message_interval, self.length);
        Ok((end(vehicle, camera), end(operator, None)))
    }

    fn seen(&self, vehicle: &End, operator: &End, middle: &Switchboard) -> Seen {
        let (begin, end) = (Instant::ZERO + WARM_UP, Instant::ZERO + self.length);
        let measured = |sent: &[Sent]| -> Vec<Sent> {
            sent.iter().filter(|sent| (begin..end).contains(&sent.at)).copied().collect()
        };
        let with = |sent: &[Sent], came: &BTreeMap<u64, Instant>| {
            let sent = (0..).zip(sent).map(|(number, sent): (u64, &Sent)| Sent {
                arrived: came.get(&number).copied(),
                ..*sent
            });
            measured(&sent.collect::<Vec<Sent>>())
        };
        let leg = |end: &End, side: usize| {
            let sent = end.departed.iter().map(|(digest, sent)| Sent {
                arrived: middle.arrived[side].get(digest).copied(),
                ..*sent
            });
            measured(&sent.collect::<Vec<Sent>>())
        };
        let mut seen = Seen {
            reports: with(&vehicle.messages, &operator.came.messages),
            commands: with(&operator.messages, &vehicle.came.messages),
            media: with(&vehicle.media, &operator.came.media),
            vehicle_leg: leg(vehicle, 0),
            operator_leg: leg(operator, 1),
            paused: vehicle.pauses.iter().filter(|at| **at >= begin).count() as u64,
            ..Seen::default()
        };
        let headers = ByteCount::new(HEADERS);
        for sent in seen.vehicle_leg.iter().chain(&seen.operator_leg) {
            seen.wire += sent.bytes + headers;
        }
        let units = seen.reports.iter().chain(&seen.commands).chain(&seen.media);
        seen.payload = units.filter(|unit| unit.arrived.is_some()).map(|unit| unit.bytes).sum();
        seen
    }
}

/// Is one node of the world.
enum Party {
    End(Box<End>),
    Switchboard(Switchboard),
}

impl Node for Party {
    fn handle_datagram(&mut self, route: world::Route, datagram: &[u8], now: Instant) {
        match self {
            Self::End(end) => end.handle_datagram(route, datagram, now),
            Self::Switchboard(middle) => middle.handle_datagram(route, datagram, now),
        }
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<world::Route> {
        match self {
            Self::End(end) => end.poll_transmit(buffer, now),
            Self::Switchboard(middle) => middle.poll_transmit(buffer),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::End(end) => end.poll_timeout(),
            Self::Switchboard(_) => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::End(end) => end.handle_timeout(now),
            Self::Switchboard(_) => {}
        }
    }
}

/// Tells datagrams apart, without keeping them (FNV-1a).
fn digest(datagram: &[u8]) -> u64 {
    datagram.iter().fold(0xCBF2_9CE4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 5_000))
}

const VEHICLE: u8 = 1;
const OPERATOR: u8 = 2;
/// The switchboard's addresses, one for each end.
const TO_VEHICLE: u8 = 3;
const TO_OPERATOR: u8 = 4;
const LEASE: [u8; 16] = [7; 16];
/// IPv4 and UDP.
const HEADERS: u64 = 28;
/// Not measured: the handshake and the rate control's first steps.
const WARM_UP: Duration = Duration::from_secs(3);
/// The longest that a message is waited for.
pub(crate) const LATEST: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(carriage: &Carriage) -> Setup {
        let link = tautline_sim::link::Config::of_rate(tautline_units::Bitrate::from_mbps(4));
        let link = Pair::symmetric(link.with_delay(Duration::from_millis(30)));
        Setup {
            vehicle_link: link.clone(),
            operator_link: link,
            vehicle: carriage.clone(),
            operator: carriage.clone(),
            camera: Camera::of_2011(),
            media_deadline: Duration::from_millis(500),
            message_interval: Duration::from_millis(100),
            length: Duration::from_secs(8),
            seed: 1,
        }
    }

    #[test]
    fn everything_comes_over_links_that_lose_nothing() {
        let plain = Carriage::Plain(ByteCount::new(1_000));
        for carriage in [plain, Carriage::Session(Box::default())] {
            let seen = setup(&carriage).run().unwrap();
            assert_eq!((seen.reports.len(), seen.commands.len()), (50, 50));
            assert!(seen.media.len() > 70 && seen.vehicle_leg.len() > 200);
            assert_eq!(seen.paused, 0);
            for sent in seen.reports.iter().chain(&seen.commands).chain(&seen.media) {
                let delay = sent.delay().expect("nothing is lost");
                assert!((60..200).contains(&delay.as_millis()), "{delay:?}");
            }
            let legs = seen.vehicle_leg.iter().chain(&seen.operator_leg);
            for delay in legs.map(|sent| sent.delay().expect("nothing is lost")) {
                assert!((30..100).contains(&delay.as_millis()), "{delay:?}");
            }
            assert!(seen.payload < seen.wire);
        }
    }
}
