//! The link emulator: link models of [`tautline_sim`] in real time, as a UDP relay.
//!
//! ```text
//! vehicle <-> [listen address] link 0: up model, down model [own socket] <-> target (operator)
//! vehicle <-> [listen address] link 1: ...                  [own socket] <-> target (operator)
//! ```
//!
//! What comes to a link's listen address goes to its target; what the target answers goes back to
//! the latest address that sent to the listen address. The target sees one source address per
//! link. One thread does it all: it sleeps in epoll until a datagram comes or a timerfd tells that
//! one is due. How late it is, it counts ([`Lateness`]); [`check`] tells it of this machine.
//!
//! [`Emulator::between`] does the same for packets of any protocol: a link is then two TUN devices, each in a network
//! namespace of its own, and what the kernel sends through one comes out of the other.
//!
//! ```text
//! vehicle's sockets <-> [device] link 0: up model, down model, or one wireless network [device] <-> operator's sockets
//! ```
//!
//! [`control`] is the way to cut a link, to restore it and to ask for the counters.

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

/// One side of links that are devices.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Where its devices are.
    pub namespace: &'a Namespace,
    /// Their names, but for the link's number.
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
    /// Traces and recordings that are not loaded yet are read; a relative path begins at the working directory.
    ///
    /// # Errors
    /// One line that names the field or the address, and what to do: a field out of range, a
    /// taken address, an unreadable file.
    pub fn bind(mut config: Config) -> anyhow::Result<Self> {
        config.load_files(std::path::Path::new("."))?;
        config.validate()?;
        let relays = config.links.iter().enumerate();
        let relays = relays.map(|(index, link)| Relay::bind(index, link, config.seed));
        Self::of(&config, relays.collect::<anyhow::Result<_>>()?)
    }

    /// Makes two devices for each link, the vehicle's end first, and gives them addresses and a route to each other:
    /// link 3 is of the network `a.b.3.0/24`, where `[a, b]` is `network`, the vehicle's address ends with 1, the operator's
    /// with 2. The devices go when this is dropped.
    ///
    /// # Errors
    /// As [`Self::bind`], and what `ip` says.
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

    /// Returns where the links listen, in order; tells the ports that were asked for as 0.
    pub fn listen_addresses(&self) -> Vec<SocketAddr> {
        self.relays.iter().map(|relay| relay.addresses()[0]).collect()
    }

    /// Returns the addresses of each link's devices, the vehicle's first.
    pub fn device_addresses(&self) -> Vec<[IpAddr; 2]> {
        self.relays.iter().map(|relay| relay.addresses().map(|address| address.ip())).collect()
    }

    /// Returns where the control channel listens; `None`: there is none.
    pub fn control_address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(Server::address)
    }

    /// Relays until `stop` is true (seen within [`STOP_WITHIN`]), on the calling thread.
    ///
    /// Returns the final counters. Nothing that comes from a socket ends it.
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

    /// Returns what the links have done so far.
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

    /// Releases what is due before and after each turn of reading, so that neither starves.
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

/// The time within which [`Emulator::run`] sees that it is to stop.
pub const STOP_WITHIN: Duration = Duration::from_millis(50);

/// The largest UDP payload, and a byte.
const DATAGRAM_BYTES_MAX: usize = 65_536;

const TIMER: Token = Token(0);

/// Links come in pairs of tokens after the timer; the server's tokens come after all of these.
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
