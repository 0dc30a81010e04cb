//! A vehicle and an operator that communicate through a switchboard, in virtual time: one link from
//! each end to it, media in the up direction, small messages in both.
//!
//! The ends are real sessions, or [`Carriage::Plain`] senders that ignore the state of their link.

mod address;
mod carrier;
mod counted;
mod round_trips;
mod sent;
mod switchboard;

use anyhow::Result;
use tautline_net::latency::Sample;
use tautline_scenario::endpoint::Endpoint;
use tautline_scenario::measure;
use tautline_scenario::run::{LEASE, identity};
use tautline_scenario::script::Side;
use tautline_scenario::traffic::{Commands, Media, Traffic};
use tautline_sim::link::Pair;
use tautline_sim::world::{self, Clock, Node, World};
use tautline_transport::{Config, Route, Session};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use address::{OPERATOR, TO_OPERATOR, TO_VEHICLE, VEHICLE, address};
use carrier::{Carrier, Plain};
use counted::Counted;
pub(crate) use sent::Sent;
use switchboard::Switchboard;

/// Parameters of one run.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Link between the vehicle and the switchboard; up is from the vehicle.
    pub(crate) vehicle_link: Pair,
    /// Link between the operator and the switchboard; up is from the operator.
    pub(crate) operator_link: Pair,
    /// Transport of the vehicle.
    pub(crate) vehicle: Carriage,
    /// Transport of the operator.
    pub(crate) operator: Carriage,
    /// Media of the vehicle, in addition to messages.
    pub(crate) media: Media,
    /// Size of a message, in either direction.
    pub(crate) message_bytes: ByteCount,
    /// Time between two messages, in either direction.
    pub(crate) message_interval: Duration,
    pub(crate) length: Duration,
    pub(crate) seed: u64,
}

/// Transport of an end.
#[derive(Clone, Debug)]
pub(crate) enum Carriage {
    /// A session.
    Session(Box<Config>),
    /// Datagrams of at most this size, each sent immediately, without regard to feedback.
    Plain(ByteCount),
}

/// Observations of a run, from the end of the warm-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    /// Messages from the vehicle.
    pub(crate) reports: Vec<Sent>,
    /// Messages from the operator.
    pub(crate) commands: Vec<Sent>,
    /// Media units that were sent.
    pub(crate) media: Vec<Sent>,
    /// Datagrams from the vehicle to the switchboard.
    pub(crate) vehicle_leg: Vec<Sent>,
    /// Datagrams from the operator to the switchboard.
    pub(crate) operator_leg: Vec<Sent>,
    /// Media units that were due at a budget of zero.
    pub(crate) paused: u64,
    /// Bytes sent by both ends, IP and UDP headers included.
    pub(crate) wire: ByteCount,
    /// Bytes of the messages and media units that arrived.
    pub(crate) payload: ByteCount,
    /// The session's own pings from the operator, as stored in latency files; empty without
    /// sessions.
    pub(crate) round_trips: Vec<Sample>,
}

/// Returns a camera as in a tele-operated vehicle of 2011. The paper does not specify one; ours has
/// 15 pictures per second, 480 kbit/s at a fixed rate, and every other second a key picture that is
/// three times as large.
pub(crate) fn camera_of_2011() -> Media {
    Media {
        large_every: 30,
        large_factor: 3.0,
        adapts: false,
        deadline: Duration::from_millis(500),
        bytes_min: MESSAGE_BYTES,
        ..Media::slices(15, Bitrate::from_kbps(480))
    }
}

impl Setup {
    /// Performs the run.
    ///
    /// # Errors
    /// For an invalid session or link configuration.
    pub(crate) fn run(&self) -> Result<Observed> {
        let mut world = World::new(self.seed);
        world.log_mut().keep(0);
        let middle = world.add(Place::Switchboard(Switchboard::default()), Clock::default());
        let operator = world.add(self.end(Side::Operator)?, Clock::default());
        // Its first message finds no link yet and is retransmitted.
        let vehicle = world.add(self.end(Side::Vehicle)?, Clock::default());
        let place = |node, socket, host| world::End::new(node, socket, address(host));
        world.link(place(vehicle, 0, VEHICLE), place(middle, 0, TO_VEHICLE), &self.vehicle_link)?;
        world.link(
            place(operator, 0, OPERATOR),
            place(middle, 1, TO_OPERATOR),
            &self.operator_link,
        )?;
        // Leave time for the last messages to arrive.
        world.run_until(Instant::ZERO + self.length + LATEST);
        let (Place::End(vehicle), Place::End(operator), Place::Switchboard(middle)) =
            (world.node(vehicle), world.node(operator), world.node(middle))
        else {
            unreachable!("put there above")
        };
        Ok(self.observed(&vehicle.application, &operator.application, middle))
    }

    fn end(&self, side: Side) -> Result<Place> {
        let (interval, bytes) = (self.message_interval, self.message_bytes);
        let messages = Commands { interval, bytes, deadline: LATEST };
        let until = Instant::ZERO + self.length;
        let mut traffic = Traffic::default().with_commands(messages).until(until);
        if side == Side::Vehicle {
            traffic = traffic.with_media(self.media);
        }
        let application = Counted { traffic, ..Counted::default() };
        let endpoint = Endpoint::new(self.carrier(side)?, application, Clock::default(), self.seed);
        Ok(Place::End(Box::new(endpoint)))
    }

    fn carrier(&self, side: Side) -> Result<Carrier> {
        let (carriage, host) = match side {
            Side::Vehicle => (&self.vehicle, TO_VEHICLE),
            Side::Operator => (&self.operator, TO_OPERATOR),
        };
        let route = Route { socket: 0, remote: address(host) };
        let config = match carriage {
            Carriage::Session(config) => {
                Config { media_deadline: self.media.deadline, ..(**config).clone() }
            }
            Carriage::Plain(most) => return Ok(Carrier::Plain(Plain::new(*most, route))),
        };
        let (own, peer) = (identity(side), identity(side.peer()).public());
        let (seed, now) = (self.seed, Instant::ZERO);
        let session = match side {
            Side::Vehicle => Session::initiate(config, &own, peer, LEASE, &[route], seed ^ 2, now)?,
            Side::Operator => Session::respond(config, &own, peer, LEASE, seed ^ 1, now)?,
        };
        Ok(Carrier::Session(Box::new(session)))
    }

    fn observed(&self, vehicle: &Counted, operator: &Counted, middle: &Switchboard) -> Observed {
        let (begin, end) = (Instant::ZERO + WARM_UP, Instant::ZERO + self.length);
        let units = |offered, received| -> Vec<Sent> {
            let units = measure::units(offered, received);
            measure::within(&units, begin..end).map(Sent::of).collect()
        };
        let leg = |end_of_leg: &Counted, side: usize| -> Vec<Sent> {
            let sent = end_of_leg.departed.iter().map(|(digest, sent)| Sent {
                arrived: middle.arrived[side].get(digest).copied(),
                ..*sent
            });
            sent.filter(|sent| (begin..end).contains(&sent.at)).collect()
        };
        let (up, down) = (&vehicle.traffic, &operator.traffic);
        let mut observed = Observed {
            reports: units(&up.commands.offered, &down.commands.received),
            commands: units(&down.commands.offered, &up.commands.received),
            media: units(&up.media.offered, &down.media.received),
            vehicle_leg: leg(vehicle, 0),
            operator_leg: leg(operator, 1),
            paused: up.pauses.iter().filter(|at| **at >= begin).count() as u64,
            round_trips: operator.round_trips.within(begin, end),
            ..Observed::default()
        };
        let headers = ByteCount::new(HEADERS);
        for sent in observed.vehicle_leg.iter().chain(&observed.operator_leg) {
            observed.wire += sent.bytes + headers;
        }
        let units = observed.reports.iter().chain(&observed.commands).chain(&observed.media);
        observed.payload = units.filter(|unit| unit.arrived.is_some()).map(|unit| unit.bytes).sum();
        observed
    }
}

/// One node of the world.
enum Place {
    End(Box<Endpoint<Counted, Carrier>>),
    Switchboard(Switchboard),
}

impl Place {
    fn node(&self) -> &dyn Node {
        match self {
            Self::End(end) => end,
            Self::Switchboard(middle) => middle,
        }
    }

    fn node_mut(&mut self) -> &mut dyn Node {
        match self {
            Self::End(end) => end,
            Self::Switchboard(middle) => middle,
        }
    }
}

impl Node for Place {
    fn handle_datagram(&mut self, route: world::Route, datagram: &[u8], now: Instant) {
        self.node_mut().handle_datagram(route, datagram, now);
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<world::Route> {
        self.node_mut().poll_transmit(buffer, now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node().poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node_mut().handle_timeout(now);
    }
}

/// Size of a message in the paper's experiments.
pub(crate) const MESSAGE_BYTES: ByteCount = ByteCount::new(60);
/// Bytes of the IPv4 and UDP headers of a datagram.
const HEADERS: u64 = 28;
/// Time at the start of a run that is excluded from the measurement, for the handshake and the
/// startup of the rate control.
const WARM_UP: Duration = Duration::from_secs(3);
/// Deadline of a message, and the time for which a run continues after its length so that the last
/// ones arrive; a later one counts as lost.
pub(crate) const LATEST: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(carriage: &Carriage) -> Setup {
        let link = tautline_sim::link::Config::of_rate(Bitrate::from_mbps(4));
        let link = Pair::symmetric(link.with_delay(Duration::from_millis(30)));
        Setup {
            vehicle_link: link.clone(),
            operator_link: link,
            vehicle: carriage.clone(),
            operator: carriage.clone(),
            media: camera_of_2011(),
            message_bytes: MESSAGE_BYTES,
            message_interval: Duration::from_millis(100),
            length: Duration::from_secs(8),
            seed: 1,
        }
    }

    #[test]
    fn everything_comes_over_links_that_lose_nothing() {
        let plain = Carriage::Plain(ByteCount::new(1_000));
        for carriage in [plain, Carriage::Session(Box::default())] {
            let observed = setup(&carriage).run().unwrap();
            assert_eq!((observed.reports.len(), observed.commands.len()), (50, 50));
            assert!(observed.media.len() > 70 && observed.vehicle_leg.len() > 200);
            assert_eq!(observed.paused, 0);
            for sent in observed.reports.iter().chain(&observed.commands).chain(&observed.media) {
                let delay = sent.delay().expect("nothing is lost");
                assert!((60..200).contains(&delay.as_millis()), "{delay:?}");
            }
            let legs = observed.vehicle_leg.iter().chain(&observed.operator_leg);
            for delay in legs.map(|sent| sent.delay().expect("nothing is lost")) {
                assert!((30..100).contains(&delay.as_millis()), "{delay:?}");
            }
            assert!(observed.payload < observed.wire);
            let is_session = matches!(carriage, Carriage::Session(_));
            assert_eq!(observed.round_trips.len() > 50, is_session, "a ping in 20 ms at most");
            for sample in observed.round_trips {
                assert!((120..400).contains(&sample.round_trip().as_millis()), "{sample:?}");
            }
        }
    }
}
