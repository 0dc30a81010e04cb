//! Link emulator: the link models of [`tautline_sim`] in real time, as a UDP relay.
//!
//! ```text
//! vehicle <-> [listen address] link 0: up model, down model [own socket] <-> target (operator)
//! vehicle <-> [listen address] link 1: ...                  [own socket] <-> target (operator)
//! ```
//!
//! Datagrams to a link's listen address are forwarded to its target. The target's answers are
//! forwarded to the latest source address at the listen address. The target sees one source address
//! per link. A single thread does all work: it sleeps in epoll until a datagram arrives or a
//! timerfd expires. It measures its own lateness ([`Lateness`]), and [`check`] measures it on this
//! machine.
//!
//! [`Emulator::between`] does the same for packets of any protocol. A link is then a pair of TUN
//! devices, each in its own network namespace. Packets that the kernel sends through one device are
//! received from the other.
//!
//! ```text
//! vehicle's sockets <-> [device] link 0: up model, down model, or one wireless network [device] <-> operator's sockets
//! ```
//!
//! [`control`] cuts a link, restores it and reads the counters.

pub mod check;
mod config;
pub mod control;
mod lateness;
mod model;
mod packet;
mod relay;
mod server;
mod status;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use mio::{Events, Poll, Token};
use tautline_units::Instant;

pub use config::{Config, LinkConfig, WirelessConfig};
pub use lateness::Lateness;

use crate::clock::Clock;
use crate::timer::Timer;
use crate::tun::{Device, Namespace};
use relay::{Relay, Side};
use server::Server;
use status::Status;

/// One side's devices of all emulated links between devices: the vehicle's or the operator's.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Network namespace in which this side's devices are created.
    pub namespace: &'a Namespace,
    /// Prefix of the devices' names, before the link's number.
    pub device: &'a str,
}

/// Emulated links, bound to their addresses and ready to run.
#[derive(Debug)]
pub struct Emulator {
    poll: Poll,
    clock: Clock,
    timer: Timer,
    relays: Vec<Relay>,
    server: Option<Server>,
}

impl Emulator {
    /// Opens all sockets.
    ///
    /// Reads traces and recordings that are not loaded yet; a relative path starts at the working
    /// directory.
    ///
    /// # Errors
    /// One line with the field or the address, and the remedy: a field out of range, an address in
    /// use, an unreadable file.
    pub fn bind(mut config: Config) -> anyhow::Result<Self> {
        config.load_files(std::path::Path::new("."))?;
        config.validate()?;
        let relays = config.links.iter().enumerate();
        let relays = relays.map(|(index, link)| Relay::bind(index, link, config.seed));
        Self::of(&config, relays.collect::<anyhow::Result<_>>()?)
    }

    /// Creates two devices for each link, the vehicle's end first, with addresses and a route to
    /// each other. Link 3 has the network `a.b.3.0/24`, where `[a, b]` is `network`; the vehicle's
    /// address ends with 1, the operator's with 2. Dropping the emulator removes the devices.
    ///
    /// # Errors
    /// Same as [`Self::bind`], and errors of `ip`.
    pub fn between(
        mut config: Config,
        ends: [End<'_>; 2],
        network: [u8; 2],
    ) -> anyhow::Result<Self> {
        config.load_files(std::path::Path::new("."))?;
        config.validate()?;
        let [a, b] = network;
        let mut relays = Vec::with_capacity(config.links.len());
        for (number, link) in config.links.iter().enumerate() {
            let place = u8::try_from(number).context("more links than networks")?;
            let addresses = [1, 2].map(|host| IpAddr::V4(Ipv4Addr::new(a, b, place, host)));
            let lay = |end: usize| {
                let End { namespace, device } = ends[end];
                let (name, address) = (format!("{device}{number}"), addresses[end]);
                let made = Device::make(&name, namespace)?;
                let lines = [
                    "link set lo up".to_owned(),
                    format!("addr add {address}/24 dev {name}"),
                    format!("link set {name} up"),
                ];
                namespace.ip(&lines)?;
                anyhow::Ok(made)
            };
            let devices = [lay(0)?, lay(1)?];
            relays.push(Relay::join(number, link, config.seed, devices, addresses)?);
        }
        Self::of(&config, relays)
    }

    fn of(config: &Config, mut relays: Vec<Relay>) -> anyhow::Result<Self> {
        let poll = Poll::new().context("cannot make an epoll instance")?;
        let timer = Timer::new().context("cannot make a timer")?;
        timer.register(poll.registry(), TIMER).context("cannot watch the timer")?;
        for (index, relay) in relays.iter_mut().enumerate() {
            for side in Side::BOTH {
                let token = plug_token(index, side);
                let watched = relay.register(side, token, poll.registry());
                watched
                    .with_context(|| format!("cannot watch link {:?}", config.links[index].name))?;
            }
        }
        let server = match config.control {
            Some(address) => Some(Server::bind(address, poll.registry())?),
            None => None,
        };
        Ok(Self { poll, clock: Clock::start(), timer, relays, server })
    }

    /// Returns the listen addresses of the links, in order, with the actual ports in place of 0;
    /// for links between devices the vehicle's addresses, with port 0.
    pub fn listen_addresses(&self) -> Vec<SocketAddr> {
        self.relays.iter().map(|relay| relay.addresses()[0]).collect()
    }

    /// Returns the addresses of each link's devices, the vehicle's first.
    pub fn device_addresses(&self) -> Vec<[IpAddr; 2]> {
        self.relays.iter().map(|relay| relay.addresses().map(|address| address.ip())).collect()
    }

    /// Returns the address of the control channel; `None` if there is none.
    pub fn control_address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(Server::address)
    }

    /// Relays on the calling thread until `stop` is true, which it notices within [`STOP_WITHIN`];
    /// then returns the final counters. No input from a socket ends it.
    ///
    /// # Errors
    /// When epoll or the timer fails.
    pub fn run(mut self, stop: &AtomicBool) -> anyhow::Result<Status> {
        let mut events = Events::with_capacity(256);
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        while !stop.load(Ordering::Relaxed) {
            let timeout = if self.work_is_left() { Duration::ZERO } else { STOP_WITHIN };
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result.context("cannot wait for events")?,
            }
            for event in &events {
                self.note(event.token());
            }
            self.turn(&mut buffer)?;
        }
        Ok(self.status())
    }

    /// Returns the current counters of each link, and the lateness of all links together.
    pub fn status(&self) -> Status {
        relay::status(&self.relays)
    }

    fn note(&mut self, token: Token) {
        if token == TIMER {
            self.timer.acknowledge();
        } else if let Some((index, side)) = plug_of(token, self.relays.len()) {
            self.relays[index].set_readable(side);
        } else if let Some(server) = &mut self.server {
            server.note(token);
        }
    }

    /// Reads from each link, answers the control channel, and sets the timer. Due datagrams are
    /// sent before each link's turn and after the last, so that reading does not delay them.
    fn turn(&mut self, buffer: &mut [u8]) -> anyhow::Result<()> {
        for index in 0..self.relays.len() {
            self.release();
            self.relays[index].read_turn(buffer, &self.clock);
        }
        self.release();
        if let Some(server) = &mut self.server {
            let relays = &mut self.relays;
            server.turn(self.poll.registry(), |request| control::answer(request, relays));
        }
        let next = self.relays.iter().filter_map(Relay::next_event).min();
        self.timer.arm(next, self.clock.now()).context("cannot set the timer")
    }

    fn release(&mut self) {
        for relay in &mut self.relays {
            relay.release(&self.clock);
        }
    }

    fn work_is_left(&self) -> bool {
        let due = self.next_event().is_some_and(|at| at <= self.clock.now());
        due || self.relays.iter().any(Relay::is_readable)
    }

    fn next_event(&self) -> Option<Instant> {
        self.relays.iter().filter_map(Relay::next_event).min()
    }
}

/// Maximum delay until [`Emulator::run`] notices the stop flag.
pub const STOP_WITHIN: Duration = Duration::from_millis(50);

/// Maximum UDP payload, plus one byte.
const DATAGRAM_BYTES_MAX: usize = 65_536;

const TIMER: Token = Token(0);

/// First of the links' tokens, after the timer's: each link has two. The server's tokens follow.
const LINK_TOKENS: usize = 1;

fn plug_token(index: usize, side: Side) -> Token {
    Token(LINK_TOKENS + 2 * index + side as usize)
}

fn plug_of(token: Token, link_count: usize) -> Option<(usize, Side)> {
    let place = token.0.checked_sub(LINK_TOKENS)?;
    (place < 2 * link_count).then(|| (place / 2, Side::BOTH[place % 2]))
}

#[cfg(test)]
mod tests;
