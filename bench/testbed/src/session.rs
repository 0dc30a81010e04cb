//! Both ends of Tautline's own session, as in the vehicle and the operator: the event loop of
//! `tautline-net` on kernel sockets. A packet is a unit of media.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use tautline_net::clock::Clock;
use tautline_net::driver::{Driver, Output};
use tautline_net::{Local, random};
use tautline_transport::{ChannelNumber, Config, Event, Identity, Route, Session};
use tautline_units::{Bitrate, ByteCount};

use crate::cell::Cell;
use crate::clock;
use crate::counters::Counters;
use crate::log::Log;
use crate::packet::Packet;
use crate::place::{End, Place};
use crate::receive::Received;
use crate::schedule::Schedule;
use crate::send::Sent;

/// Offers the packets of a cell, each at its due time, once the session carries media.
pub(crate) fn send(cell: &Cell, schedule: &Schedule, place: Place) -> Result<Sent> {
    clock::wake_exactly();
    let (began, begun) = sync_channel(1);
    let clock = Clock::start();
    let driver = Driver::spawn(&locals(cell, place, End::Sender), clock, on_budget(began))?;
    let handle = driver.handle();
    let routes =
        links(cell).map(|link| Route { socket: link, remote: place.address(End::Receiver, link) });
    let routes: Vec<Route> = routes.collect();
    let (own, peer) = (identity(End::Sender), identity(End::Receiver).public());
    let seed = random::seed()?;
    handle.start(Session::initiate(config(), &own, peer, LEASE, &routes, seed, clock.now())?);
    begun.recv_timeout(BEGUN_WITHIN).context("the session did not begin")?;

    let begin = clock::now();
    let deadline = config().media_deadline;
    let mut packets = 0;
    for number in 0..schedule.packets() {
        let due_nanos = begin + clock::nanos(schedule.due(number));
        clock::sleep_until(due_nanos);
        let unit = Packet { number, due_nanos }.to_bytes().to_vec();
        packets += u64::from(handle.send(ChannelNumber::MEDIA, unit, deadline));
    }
    std::thread::sleep(deadline * 2);
    Ok(Sent { packets, abandoned: 0, counters: Counters::read() })
}

/// The receiving end, which waits for its peer.
pub(crate) struct Listener {
    driver: Driver,
    log: Arc<Mutex<Log>>,
}

impl Listener {
    /// Opens the sockets.
    pub(crate) fn open(cell: &Cell, place: Place) -> Result<Self> {
        let log = Arc::new(Mutex::new(Log::default()));
        let clock = Clock::start();
        let sink = on_unit(Arc::clone(&log));
        let driver = Driver::spawn(&locals(cell, place, End::Receiver), clock, sink)?;
        let (own, peer) = (identity(End::Receiver), identity(End::Sender).public());
        let seed = random::seed()?;
        driver.handle().start(Session::respond(config(), &own, peer, LEASE, seed, clock.now())?);
        Ok(Self { driver, log })
    }

    /// Receives units until none has come for [`UNIT_TIMEOUT`]; the first may take
    /// [`BEGUN_WITHIN`].
    pub(crate) fn run(self) -> Result<Received> {
        let begin = clock::now();
        loop {
            std::thread::sleep(LOOK_EVERY);
            let last = self.log().arrivals.last().map(|arrival| arrival.at_nanos);
            let wait = if last.is_some() { UNIT_TIMEOUT } else { BEGUN_WITHIN };
            if clock::now() > last.unwrap_or(begin) + clock::nanos(wait) {
                break;
            }
        }
        let counters = Counters::read();
        let log = std::mem::take(&mut *self.log());
        drop(self.driver);
        Ok(Received { log, damaged: 0, counters })
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn on_unit(log: Arc<Mutex<Log>>) -> impl FnMut(Output<'_>) + Send + 'static {
    move |output| {
        if let Output::Event(Event::Unit { bytes, .. }, _) = output
            && let Some(packet) = Packet::parse(&bytes)
        {
            let now = clock::now();
            log.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(packet, now);
        }
    }
}

fn on_budget(began: SyncSender<()>) -> impl FnMut(Output<'_>) + Send + 'static {
    move |output| {
        if let Output::Event(Event::Budget { media, .. }, _) = output
            && media > Bitrate::ZERO
        {
            // The first signal suffices.
            let _ = began.try_send(());
        }
    }
}

fn locals(cell: &Cell, place: Place, end: End) -> Vec<Local> {
    links(cell).map(|link| Local::Address(place.address(end, link))).collect()
}

fn links(cell: &Cell) -> impl Iterator<Item = u8> {
    0..cell.transport.links()
}

fn identity(end: End) -> Identity {
    Identity::from_seed(&match end {
        End::Sender => [1; 32],
        End::Receiver => [2; 32],
    })
}

/// Returns the product's defaults, with packets as large as those of the other transports.
fn config() -> Config {
    Config { datagram_bytes_max: ByteCount::new(1400), ..Config::default() }
}

const LEASE: [u8; 16] = [7; 16];
const BEGUN_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const UNIT_TIMEOUT: Duration = Duration::from_secs(2);
