//! The event loop: one thread that owns the sockets and drives one session at a time.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use mio::{Events, Poll, Token, Waker};
use rustix::io::Errno;
use tautline_transport::{Channel, ChannelNumber, Event, Route, Session};
use tautline_units::{ByteCount, Instant};

use crate::clock::Clock;
use crate::slot::Slot;
use crate::socket::Local;
use crate::timer::Timer;

/// What the event loop tells the application, on the loop's own thread: be brief.
#[derive(Debug)]
pub enum Output<'a> {
    /// Something happened in the session.
    Event(Event, &'a Session),
    /// A tenth of a second has passed: the session to look at, and the loop's own drops.
    Tick(&'a Session, &'a Drops),
}

/// Datagrams that the loop itself had to drop, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Arrived while no session was there to take them.
    pub no_session: u64,
    /// The kernel's send buffer was full.
    pub send_full: u64,
    /// The kernel refused to send: no route, interface down.
    pub send_refused: u64,
    /// The datagram was larger than the interface carries.
    pub send_too_large: u64,
    /// Units that did not fit the transport: no link, too large, queue full.
    pub unit_refused: u64,
}

impl Drops {
    /// Returns every counter with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("loop: no session", self.no_session),
            ("loop: send buffer full", self.send_full),
            ("loop: send refused", self.send_refused),
            ("loop: send too large", self.send_too_large),
            ("loop: unit refused", self.unit_refused),
        ]
        .into_iter()
    }
}

/// A running event loop. Dropping it ends the thread and closes the sockets.
#[derive(Debug)]
pub struct Driver {
    handle: Handle,
    locals: Vec<SocketAddr>,
    thread: Option<JoinHandle<()>>,
}

/// A way to speak to the event loop from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    inputs: SyncSender<Input>,
    waker: Arc<Waker>,
}

impl Driver {
    /// Opens the sockets, in the order of [`Route::socket`], and starts the loop.
    ///
    /// # Errors
    /// When a socket cannot be opened, or the kernel gives no timer, poller or thread.
    pub fn spawn(
        locals: &[Local],
        clock: Clock,
        sink: impl FnMut(Output<'_>) + Send + 'static,
    ) -> anyhow::Result<Self> {
        let poll = Poll::new().context("the kernel gives no poller")?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE).context("no waker")?);
        let timer = Timer::new().context("the kernel gives no timer")?;
        timer.register(poll.registry(), TIMER).context("the timer cannot be watched")?;
        let slots = locals.iter().enumerate();
        let slots = slots.map(|(index, local)| Slot::open(local, Token(index), poll.registry()));
        let slots = slots.collect::<anyhow::Result<Vec<_>>>()?;
        let addresses = slots.iter().map(Slot::address).collect();
        let (inputs, receiver) = sync_channel(INPUTS_MAX);
        let event_loop = EventLoop {
            poll,
            timer,
            slots,
            inputs: receiver,
            clock,
            sink: Box::new(sink),
            session: None,
            opened: BTreeMap::new(),
            drops: Drops::default(),
            tick_at: clock.now(),
            datagram: Vec::with_capacity(DATAGRAM_BYTES_MAX),
        };
        let thread = std::thread::Builder::new()
            .name("event-loop".into())
            .spawn(move || event_loop.run())
            .context("the kernel gives no thread")?;
        Ok(Self { handle: Handle { inputs, waker }, locals: addresses, thread: Some(thread) })
    }

    /// Returns a handle, by which other threads speak to the loop.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns the local addresses of the sockets, in order, as they were opened first.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.locals
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.handle.input(Input::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Handle {
    /// Puts `session` in the place of the running one.
    pub fn start(&self, session: Session) {
        self.input(Input::Start(Box::new(session)));
    }

    /// Opens a channel in the running session, and in every one to come.
    ///
    /// Numbers from [`crate::channels::APPLICATION_MIN`] on are an application's. One that a session
    /// has no room for is logged, and its units are refused.
    pub fn open(&self, channel: Channel) {
        self.input(Input::Open(Box::new(channel)));
    }

    /// Ends the running session, if there is one.
    pub fn stop(&self) {
        self.input(Input::Stop);
    }

    /// Hands a unit of `channel` to the transport, to arrive within `deadline` from now.
    ///
    /// Returns false, and the unit is gone, if the loop's bounded queue is full.
    pub fn send(&self, channel: ChannelNumber, unit: Vec<u8>, deadline: Duration) -> bool {
        self.offer(Input::Send { channel, unit, deadline })
    }

    /// Sets the largest datagram that each present link of the session may carry from here; see
    /// [`Session::set_datagram_bytes_max`]. A new session begins with its configured size.
    ///
    /// Returns false, and nothing changes, if the loop's bounded queue is full.
    pub fn set_datagram_bytes_max(&self, most: ByteCount) -> bool {
        self.offer(Input::DatagramBytesMax(most))
    }

    fn offer(&self, input: Input) -> bool {
        match self.inputs.try_send(input) {
            Ok(()) => self.waker.wake().is_ok(),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    fn input(&self, input: Input) {
        // A loop that has ended needs no telling.
        if self.inputs.send(input).is_ok() {
            let _ = self.waker.wake();
        }
    }
}

#[derive(Debug)]
enum Input {
    Start(Box<Session>),
    Open(Box<Channel>),
    Stop,
    Send { channel: ChannelNumber, unit: Vec<u8>, deadline: Duration },
    DatagramBytesMax(ByteCount),
    End,
}

struct EventLoop {
    poll: Poll,
    timer: Timer,
    slots: Vec<Slot>,
    inputs: Receiver<Input>,
    clock: Clock,
    sink: Box<dyn FnMut(Output<'_>) + Send>,
    session: Option<Session>,
    /// What the application opened, for sessions to come: 256 channels at most.
    opened: BTreeMap<ChannelNumber, Channel>,
    drops: Drops,
    tick_at: Instant,
    datagram: Vec<u8>,
}

impl EventLoop {
    fn run(mut self) {
        let mut events = Events::with_capacity(64);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return tracing::error!(%error, "the poller failed"),
                Ok(()) => self.timer.acknowledge(),
            }
            if !self.take_inputs() {
                return;
            }
            let more = self.receive();
            self.advance();
            self.tick();
            let now = self.clock.now();
            if let Err(error) = self.timer.arm(Some(self.due(more, now)), now) {
                return tracing::error!(%error, "the timer cannot be set");
            }
        }
    }

    /// Returns when the loop must turn again, if nothing wakes it before.
    fn due(&self, more: bool, now: Instant) -> Instant {
        if more {
            return now;
        }
        match &self.session {
            Some(session) => {
                session.poll_timeout().map_or(self.tick_at, |(at, _)| at.min(self.tick_at))
            }
            None => now + IDLE,
        }
    }

    /// Applies what the application asked for; false when it asked to end.
    fn take_inputs(&mut self) -> bool {
        for _ in 0..INPUTS_MAX {
            let Ok(input) = self.inputs.try_recv() else { break };
            match input {
                Input::Start(mut session) => {
                    self.opened.values().for_each(|channel| open(&mut session, channel));
                    self.session = Some(*session);
                }
                Input::Open(channel) => {
                    if let Some(session) = &mut self.session {
                        open(session, &channel);
                    }
                    self.opened.insert(channel.number, *channel);
                }
                Input::Stop => self.session = None,
                Input::Send { channel, unit, deadline } => {
                    let now = self.clock.now();
                    let sent = self.session.as_mut().map(|s| s.send(channel, &unit, deadline, now));
                    if !matches!(sent, Some(Ok(_))) {
                        self.drops.unit_refused += 1;
                    }
                }
                Input::DatagramBytesMax(most) => {
                    let Some(session) = &mut self.session else { continue };
                    let links: Vec<_> = session.links().map(|link| link.number).collect();
                    for link in links {
                        session.set_datagram_bytes_max(link, most);
                    }
                }
                Input::End => return false,
            }
        }
        true
    }

    /// Reads what has arrived, a bounded number a turn; true if more may wait.
    fn receive(&mut self) -> bool {
        let mut bytes = [0; DATAGRAM_BYTES_MAX];
        let mut more = false;
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(socket) = slot.socket() else { continue };
            let mut turn = 0..RECEIVE_TURN;
            loop {
                if turn.next().is_none() {
                    more = true;
                    break;
                }
                let (length, remote) = match socket.recv_from(&mut bytes) {
                    Ok(received) => received,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => {
                        tracing::debug!(%error, "a socket refused to read");
                        break;
                    }
                };
                let Some(session) = &mut self.session else {
                    self.drops.no_session += 1;
                    continue;
                };
                let route = Route { socket: index as u8, remote };
                session.handle_datagram(route, &bytes[..length], self.clock.now());
            }
        }
        more
    }

    /// Lets the session act: its timers, its datagrams out, its events up.
    fn advance(&mut self) {
        let Some(session) = &mut self.session else { return };
        let now = self.clock.now();
        if session.poll_timeout().is_some_and(|(at, _)| at <= now) {
            session.handle_timeout(now);
        }
        while let Some(route) = session.poll_transmit(&mut self.datagram, now) {
            let Some(slot) = self.slots.get_mut(usize::from(route.socket)) else {
                self.drops.send_refused += 1;
                continue;
            };
            let Some(socket) = slot.socket() else {
                self.drops.send_refused += 1;
                continue;
            };
            match socket.send_to(&self.datagram, route.remote) {
                Ok(_) => slot.on_sent(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.drops.send_full += 1;
                }
                Err(error) if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) => {
                    self.drops.send_too_large += 1;
                    session.handle_too_large(route, ByteCount::of(&self.datagram), now);
                }
                Err(_) => {
                    self.drops.send_refused += 1;
                    slot.on_refused(now);
                }
            }
        }
        while let Some(event) = session.poll_event() {
            (self.sink)(Output::Event(event, session));
        }
    }

    fn tick(&mut self) {
        let now = self.clock.now();
        if now < self.tick_at {
            return;
        }
        self.tick_at = now + TICK;
        for slot in &mut self.slots {
            slot.renew(self.poll.registry(), now);
        }
        if let Some(session) = &self.session {
            (self.sink)(Output::Tick(session, &self.drops));
        }
    }
}

fn open(session: &mut Session, channel: &Channel) {
    if let Err(error) = session.open(channel.clone()) {
        tracing::warn!(%error, "a channel is not opened");
    }
}

const WAKE: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
/// How often the application sees the session.
const TICK: Duration = Duration::from_millis(100);
/// How long the loop sleeps with no session and no datagram.
const IDLE: Duration = Duration::from_secs(1);
/// Units of a tenth of a second at 60 pictures of six slices a second, with room to spare.
const INPUTS_MAX: usize = 256;
/// Datagrams read from one socket before the session may send again.
const RECEIVE_TURN: usize = 64;
/// More than any datagram of the protocol, so that an overlong one is seen as such.
const DATAGRAM_BYTES_MAX: usize = 2048;
