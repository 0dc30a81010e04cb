//! Transfers by the transport: two sessions over a link in virtual time.
//!
//! They use the streaming code, with one source packet per unit. A sender sends a unit as soon as
//! nothing else waits for the link. Source packets, repair packets and retransmissions thus follow
//! each other without a gap, as in the paper's file transfer. The measure is that of `link`: slots
//! from the first transmission to the time at which a packet and all earlier ones are known, minus
//! the link's own delay.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use rand_chacha::ChaCha20Rng;
use tautline_scenario::endpoint::{Application, Moment};
use tautline_scenario::policies::{planner, rate};
use tautline_scenario::run::{Run, Setup};
use tautline_sim::link::{self, BurstLoss, Pair};
use tautline_transport::protect::Code;
use tautline_transport::{ChannelNumber, Config, Event, Route, Session};
use tautline_units::{Bitrate, ByteCount, Instant};

use super::coded::symbol;
use super::link::{Length, Transfer, chain};

/// Two sessions, and the link between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sessions {
    /// Repair packets of the streaming code per source packet.
    pub(super) share: f64,
    pub(super) erasure_rate: f64,
    /// Mean burst length of erasures; 1 for independent ones.
    pub(super) burst: f64,
    /// True if reports make the sender send more: the paper's closed loop. Otherwise they only move
    /// the coding window, and the link's delay is 1 ms in each direction.
    pub(super) feedback: bool,
}

impl Sessions {
    /// Sends `length`, with losses from `seed`.
    ///
    /// # Errors
    /// If the sessions do not connect, or do not report the outcome of every packet.
    pub(super) fn send(&self, length: Length, seed: u64) -> Result<Sent> {
        let mut run = self.start(length, seed)?;
        let begun = self.begin(&mut run)?;
        match length {
            Length::Packets(count) => {
                // Ten times the duration without losses; a lost packet is reported at its deadline.
                let end = begun + SLOT * u32::try_from(10 * count)? + DEADLINE;
                while !run.operator().application.has_settled(count) {
                    let now = run.world.now();
                    ensure!(now < end, "of {count} packets not all came or were given up");
                    run.until(now + STEP);
                }
            }
            Length::Slots(count) => run.until(begun + SLOT * u32::try_from(count)?),
        }
        let (sender, receiver) = (&run.vehicle().application, &run.operator().application);
        let came: BTreeSet<&Tag> = receiver.packets.iter().collect();
        let erased = sender.packets.iter().map(|tag| !came.contains(tag));
        let warm_up = self.warm_up() as usize;
        Ok(Sent {
            handed: sender.handed[warm_up..].to_vec(),
            arrived: receiver.arrived.get(warm_up..).unwrap_or_default().to_vec(),
            erased: erased.collect(),
            least: SLOT + self.delay(),
        })
    }

    fn start(&self, length: Length, seed: u64) -> Result<Run<Flow>> {
        let mut up = link::Config::of_rate(LINK).with_delay(self.delay());
        let [after_good, after_bad] = chain(self.erasure_rate, self.burst);
        if self.burst <= 1.0 {
            up.loss = self.erasure_rate;
        } else {
            let (enter, leave) = (after_good, 1.0 - after_bad);
            up.burst_loss = Some(BurstLoss { enter, leave, loss: 1.0 });
        }
        let down = link::Config::of_rate(LINK).with_delay(self.delay());
        let setup = Setup::new(seed, vec![Pair { up, down }]).with_config(self.config());
        let warm_up = self.warm_up();
        let count = match length {
            Length::Packets(count) => warm_up + count,
            Length::Slots(_) => u64::MAX,
        };
        let receiver = Flow { warm_up, ..Flow::default() };
        Ok(setup.start(Flow { count, warm_up, ..Flow::default() }, receiver)?)
    }

    /// Runs until the sessions are connected, their datagram size is established, and the first
    /// unit after the warm-up is sent; returns its sending time.
    fn begin(&self, run: &mut Run<Flow>) -> Result<Instant> {
        for _ in 0..WARM_UP_STEPS {
            if let Some(first) = run.vehicle().application.handed.get(self.warm_up() as usize) {
                return Ok(*first);
            }
            let next = run.world.now() + STEP;
            run.until(next);
        }
        bail!("the sessions found no link of datagrams of {DATAGRAM_BYTES} bytes")
    }

    fn config(&self) -> Config {
        let mut config = Config {
            datagram_bytes_max: ByteCount::new(DATAGRAM_BYTES),
            spread: false,
            retransmit: self.feedback,
            ping_interval: Duration::from_millis(100),
            link_timeout: Duration::from_secs(10),
            report_interval: Duration::from_millis(5),
            media_deadline: DEADLINE,
            ..Config::default()
        };
        let code = planner::Code::of_rate(1.0 / (1.0 + self.share));
        config.planner = planner::Kind::TransmissionEnd.factory(code);
        config.controllers = rate::Kind::Fixed.factory();
        config.rate.initial = PACE;
        config.protect.code = Code::Stream;
        config
    }

    /// Returns the number of warm-up units: whole intervals, so that the measured ones start a new
    /// interval.
    fn warm_up(&self) -> u64 {
        (WARM_UP_INTERVALS / self.share).round() as u64
    }

    fn delay(&self) -> Duration {
        if self.feedback { RTT / 2 } else { Duration::from_millis(1) }
    }
}

/// Transmitted units and packets, and their outcome.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// Sending time of each unit after the warm-up.
    handed: Vec<Instant>,
    /// Arrival time of each unit after the warm-up, `None` for a lost one; may end before the last
    /// unit.
    arrived: Vec<Option<Instant>>,
    /// Loss flags of the packets, from the first unit's on.
    pub(super) erased: Vec<bool>,
    /// Transmission time of a packet, plus the propagation delay.
    least: Duration,
}

impl Sent {
    /// Returns the result for the first `count` units; the packets sent are counted in proportion.
    pub(super) fn first(&self, count: u64) -> Transfer {
        let mut transfer = Transfer::default();
        let mut all_by = Instant::ZERO;
        for (number, at) in self.handed.iter().enumerate().take(count as usize) {
            let Some(Some(arrived)) = self.arrived.get(number) else {
                transfer.lost += 1;
                continue;
            };
            all_by = all_by.max(*arrived);
            let late = all_by.since(*at).saturating_sub(self.least);
            transfer.delays.add((late.as_secs_f64() / SLOT.as_secs_f64()).round() as u64);
        }
        // Scale the packets by the share of the units.
        let share = count as f64 / self.handed.len() as f64;
        transfer.sent = (self.erased.len() as f64 * share).round() as u64;
        transfer
    }
}

/// Application of one end: units to send, and units received.
#[derive(Debug, Default)]
struct Flow {
    /// Number of units to send.
    count: u64,
    /// Number of units for the warm-up, among those to send.
    warm_up: u64,
    /// Sending time of each unit sent until now.
    handed: Vec<Instant>,
    /// Earliest time of the next unit, if nothing else is waiting.
    due: Instant,
    /// End of the pause after the warm-up units.
    rests_until: Instant,
    /// Arrival time of each unit, `None` if it is lost or did not arrive yet; may end before the
    /// last unit.
    arrived: Vec<Option<Instant>>,
    /// Units after the warm-up whose outcome is known.
    settled: u64,
    /// Tags of the media datagrams sent, or of all large ones received.
    packets: Vec<Tag>,
    /// Number of media packets that had left the link's queue at the last datagram.
    left: u64,
}

impl Flow {
    fn has_settled(&self, count: u64) -> bool {
        self.settled >= count
    }
}

impl Application for Flow {
    fn next_at(&self) -> Option<Instant> {
        ((self.handed.len() as u64) < self.count).then_some(self.due.max(self.rests_until))
    }

    fn produce(&mut self, session: &mut Session, _rng: &mut ChaCha20Rng, at: Moment) {
        let now = at.local();
        if now < self.due.max(self.rests_until) || self.handed.len() as u64 >= self.count {
            return;
        }
        self.due = now + LOOK;
        let link = session.links().next();
        let is_free = link.is_some_and(|link| {
            link.queued == ByteCount::ZERO && link.datagram_bytes.get() == DATAGRAM_BYTES
        });
        let number = self.handed.len() as u64;
        if is_free && session.is_up() {
            let deadline = if number < self.warm_up { WARM_UP_DEADLINE } else { DEADLINE };
            if number == self.warm_up {
                self.packets.clear();
            }
            if session.send(ChannelNumber::MEDIA, &content(number), deadline, now).is_ok() {
                self.handed.push(at.world());
            }
        }
        if number + 1 == self.warm_up && self.handed.len() as u64 == self.warm_up {
            self.rests_until = now + WARM_UP_REST;
        }
    }

    fn handle_event(&mut self, _session: &Session, event: Event, at: Moment) {
        let (Event::Unit { channel: ChannelNumber::MEDIA, number, .. }
        | Event::UnitLost { channel: ChannelNumber::MEDIA, number, .. }) = event
        else {
            return;
        };
        self.settled += u64::from(number.get() >= self.warm_up);
        if let Event::Unit { number, bytes, .. } = event {
            let number = number.get();
            assert_eq!(bytes, content(number), "unit {number} came damaged");
            let place = number as usize;
            if place >= self.arrived.len() {
                self.arrived.resize(place + 1, None);
            }
            self.arrived[place] = Some(at.world());
        }
    }

    fn watch_departure(&mut self, session: &Session, _route: Route, datagram: &[u8], at: Moment) {
        if datagram.len() < UNIT_BYTES {
            return;
        }
        self.due = self.due.max(at.local()) + SLOT + SLACK;
        // A datagram size probe has the same size.
        let media = session.links().next().map_or(0, |link| link.media.given - link.media.waiting);
        if std::mem::replace(&mut self.left, media) != media {
            self.packets.extend(datagram.last_chunk());
        }
    }

    fn watch_arrival(&mut self, _route: Route, datagram: &[u8], _at: Moment) {
        if datagram.len() >= UNIT_BYTES {
            self.packets.extend(datagram.last_chunk());
        }
    }
}

/// Last bytes of a datagram, which belong to its authentication tag and are unique.
type Tag = [u8; 8];

/// Returns unique bytes for each unit.
fn content(number: u64) -> Vec<u8> {
    symbol(number).repeat(UNIT_BYTES.div_ceil(8))[..UNIT_BYTES].to_vec()
}

/// Transmission time of the paper's packets of 1500 bytes at 25 Mbit/s.
const SLOT: Duration = Duration::from_micros(480);
const LINK: Bitrate = Bitrate::from_mbps(25);
const RTT: Duration = Duration::from_millis(60);
/// Datagram size in bytes: the paper's packet of 1500 bytes minus IP and UDP headers.
const DATAGRAM_BYTES: u64 = 1_472;
/// Unit size at which a repair packet fills a datagram: 23 bytes around the sealed part, 15 of the
/// repair packet and its symbol, 8 before the unit.
const UNIT_BYTES: usize = 1_472 - 23 - 15 - 8;
/// Fixed rate of the sessions, higher than the simulated link's: units are sent slot by slot, and
/// repair packets do not wait for a slot of their own.
const PACE: Bitrate = Bitrate::from_mbps(26);
/// Extra time per slot, for pings and packets that do not wait for a slot.
const SLACK: Duration = Duration::from_micros(2);
/// Interval at which a sender checks whether the link is free.
const LOOK: Duration = Duration::from_micros(60);
/// Deadline of the measured units: the longest that a session permits, so that nothing is
/// abandoned.
const DEADLINE: Duration = Duration::from_secs(30);
/// Intervals of units for the warm-up, so that both ends know the link and each other's clock. They
/// expire before the measured ones start.
const WARM_UP_INTERVALS: f64 = 30.0;
const WARM_UP_DEADLINE: Duration = Duration::from_millis(300);
const WARM_UP_REST: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(50);
/// Number of steps in which the first measured unit must be sent: ten seconds.
const WARM_UP_STEPS: u32 = 200;
