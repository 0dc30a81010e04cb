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
//! [`control`] is the way to cut a link, to restore it and to ask for the counters.

pub mod check;
mod config;
pub mod control;
mod lateness;
mod relay;
mod server;
mod status;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use mio::{Events, Interest, Poll, Token};
use tautline_units::Instant;

pub use config::{Config, LinkConfig};
pub use lateness::Lateness;

use crate::clock::Clock;
use crate::timer::Timer;
use relay::{Relay, Side};
use server::Server;
use status::Status;

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
        let poll = Poll::new().context("cannot make an epoll instance")?;
        let timer = Timer::new().context("cannot make a timer")?;
        timer.register(poll.registry(), TIMER).context("cannot watch the timer")?;
        let mut relays = Vec::with_capacity(config.links.len());
        for (index, link) in config.links.iter().enumerate() {
            let mut relay = Relay::bind(index, link, config.seed)?;
            for side in Side::BOTH {
                let token = socket_token(index, side);
                poll.registry()
                    .register(relay.socket_mut(side), token, Interest::READABLE)
                    .with_context(|| format!("cannot watch link {:?}", link.name))?;
            }
            relays.push(relay);
        }
        let server = match config.control {
            Some(address) => Some(Server::bind(address, poll.registry())?),
            None => None,
        };
        Ok(Self { poll, clock: Clock::start(), timer, relays, server })
    }

    /// Returns where the links listen, in order; tells the ports that were asked for as 0.
    pub fn listen_addresses(&self) -> Vec<SocketAddr> {
        self.relays.iter().map(Relay::listen_address).collect()
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
        } else if let Some((index, side)) = socket_of(token, self.relays.len()) {
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
        let next = self.relays.iter().filter_map(Relay::next_departure).min();
        self.timer.arm(next, self.clock.now()).context("cannot set the timer")
    }

    fn release(&mut self) {
        for relay in &mut self.relays {
            relay.release(&self.clock);
        }
    }

    fn work_is_left(&self) -> bool {
        let due = self.next_departure().is_some_and(|at| at <= self.clock.now());
        due || self.relays.iter().any(Relay::is_readable)
    }

    fn next_departure(&self) -> Option<Instant> {
        self.relays.iter().filter_map(Relay::next_departure).min()
    }
}

/// The time within which [`Emulator::run`] sees that it is to stop.
pub const STOP_WITHIN: Duration = Duration::from_millis(50);

/// The largest UDP payload, and a byte.
const DATAGRAM_BYTES_MAX: usize = 65_536;

const TIMER: Token = Token(0);

/// Links come in pairs of tokens after the timer; the server's tokens come after all of these.
const LINK_TOKENS: usize = 1;

fn socket_token(index: usize, side: Side) -> Token {
    Token(LINK_TOKENS + 2 * index + side as usize)
}

fn socket_of(token: Token, link_count: usize) -> Option<(usize, Side)> {
    let place = token.0.checked_sub(LINK_TOKENS)?;
    (place < 2 * link_count).then(|| (place / 2, Side::BOTH[place % 2]))
}

#[cfg(test)]
mod tests;
