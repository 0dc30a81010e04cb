//! One end of a cell's flow, whatever the transport.

use anyhow::Result;

use crate::cell::Cell;
use crate::place::Place;
use crate::receive::{self, Received};
use crate::schedule::Schedule;
use crate::send::{self, Sent};
use crate::transport::Kind;
use crate::{quic, session};

/// The receiving end, ready for a sender.
pub(crate) enum Listener {
    Socket(receive::Listener),
    Quic(quic::Listener),
    Session(session::Listener),
}

impl Listener {
    /// Opens its sockets.
    pub(crate) fn open(cell: &Cell, place: Place) -> Result<Self> {
        Ok(match cell.transport.kind() {
            Kind::Session => Self::Session(session::Listener::open(cell, place)?),
            Kind::Quic => Self::Quic(quic::Listener::open(cell, place)?),
            Kind::Datagrams | Kind::Messages | Kind::Stream | Kind::TimedStream => {
                Self::Socket(receive::Listener::open(cell, place)?)
            }
        })
    }

    /// Receives packets until the flow ends.
    pub(crate) fn run(self) -> Result<Received> {
        match self {
            Self::Socket(listener) => listener.run(),
            Self::Quic(listener) => listener.run(),
            Self::Session(listener) => listener.run(),
        }
    }
}

/// Offers the packets of a cell, each at its due time.
pub(crate) fn send(cell: &Cell, schedule: &Schedule, place: Place) -> Result<Sent> {
    match cell.transport.kind() {
        Kind::Session => session::send(cell, schedule, place),
        Kind::Quic => quic::send(cell, schedule, place),
        Kind::Datagrams | Kind::Messages | Kind::Stream | Kind::TimedStream => {
            send::run(cell, schedule, place)
        }
    }
}
