use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use anyhow::{Context, anyhow};
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};

use super::control::LINE_BYTES_MAX;
use super::relay::reason;
use crate::open_files;

/// Server of the control channel: lines in, lines out, on the emulator's own thread.
#[derive(Debug)]
pub(super) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    connections: BTreeMap<usize, Connection>,
    token_next: usize,
    /// `true` if more connections may wait than the last turn accepted.
    acceptable: bool,
    /// `true` if a failed accept call was logged and none has succeeded since.
    is_told: bool,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    woken: bool,
}

/// Maximum connections; the oldest is closed for a newer one.
const CONNECTIONS_MAX: usize = 8;

/// Maximum reads of 1,024 bytes from one connection per turn, so that the relay does not starve.
const CHUNKS_MAX: usize = 8;

/// Maximum bytes of unread answers before a slow reader is closed.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// Token of the listener, far beyond the links' tokens.
const LISTENER: Token = Token(1 << 20);

impl Server {
    pub(super) fn bind(address: SocketAddr, registry: &Registry) -> anyhow::Result<Self> {
        let mut listener = TcpListener::bind(address).map_err(|error| {
            let reason = reason(&error);
            anyhow!("cannot listen on {address}: {reason}; choose another with control")
        })?;
        let address = listener.local_addr().context("a bound socket has an address")?;
        registry
            .register(&mut listener, LISTENER, Interest::READABLE)
            .context("cannot watch the control address")?;
        let connections = BTreeMap::new();
        let token_next = LISTENER.0 + 1;
        Ok(Self { listener, address, connections, token_next, acceptable: false, is_told: false })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Marks the listener or connection of `token` as ready for the next [`turn`](Self::turn).
    pub(super) fn note(&mut self, token: Token) {
        if token == LISTENER {
            self.acceptable = true;
        } else if let Some(connection) = self.connections.get_mut(&token.0) {
            connection.woken = true;
        }
    }

    /// Accepts waiting connections and handles ready ones; closes those that end, or that break a
    /// limit. `answer` converts a request line to the line to send back.
    pub(super) fn turn(&mut self, registry: &Registry, mut answer: impl FnMut(&[u8]) -> Vec<u8>) {
        if self.acceptable {
            self.acceptable = false;
            self.accept(registry);
        }
        self.connections.retain(|_, connection| {
            let stays = !connection.woken || connection.turn(&mut answer).is_ok();
            if !stays {
                // Closing the socket would suffice; this notifies mio too.
                let _ = registry.deregister(&mut connection.stream);
            }
            stays
        });
    }

    fn accept(&mut self, registry: &Registry) {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    // Others may still wait: retry in the next turn, with the file of the oldest.
                    if !self.is_told {
                        let remedy = open_files::remedy(&error);
                        tracing::warn!("cannot accept a control connection: {error}{remedy}");
                    }
                    (self.acceptable, self.is_told) = (true, true);
                    self.connections.pop_first();
                    return;
                }
            };
            self.is_told = false;
            let token = self.token_next;
            self.token_next += 1;
            let interest = Interest::READABLE | Interest::WRITABLE;
            if registry.register(&mut stream, Token(token), interest).is_err() {
                continue;
            }
            let _ = stream.set_nodelay(true);
            let (input, output) = (Vec::new(), Vec::new());
            self.connections.insert(token, Connection { stream, input, output, woken: true });
            if self.connections.len() > CONNECTIONS_MAX {
                self.connections.pop_first();
            }
        }
    }
}

impl Connection {
    /// Reads and answers waiting requests; beyond [`CHUNKS_MAX`], in the next turn.
    ///
    /// # Errors
    /// When the connection must be closed: its end, an overlong line, a peer that never reads.
    fn turn(&mut self, answer: &mut impl FnMut(&[u8]) -> Vec<u8>) -> io::Result<()> {
        self.woken = false;
        self.flush()?;
        let mut chunk = [0; 1024];
        for _ in 0..CHUNKS_MAX {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.take(&chunk[..bytes], answer)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.flush(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.woken = true;
        self.flush()
    }

    fn take(&mut self, bytes: &[u8], answer: &mut impl FnMut(&[u8]) -> Vec<u8>) -> io::Result<()> {
        for byte in bytes {
            if *byte != b'\n' {
                self.input.push(*byte);
            } else {
                let line = std::mem::take(&mut self.input);
                if !line.trim_ascii().is_empty() {
                    self.output.extend(answer(line.trim_ascii()));
                    self.output.push(b'\n');
                }
            }
            if self.input.len() > LINE_BYTES_MAX || self.output.len() > OUTPUT_BYTES_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(bytes) => drop(self.output.drain(..bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
