//! Event loop: one thread that owns the sockets and drives one session and its successor.

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
use tautline_transport::link::State;
use tautline_transport::reach::{Candidate, CandidatePair};
use tautline_transport::relay::{self, Admission};
use tautline_transport::{
    Channel, ChannelNumber, Event, PublicKey, Route, SendError, Session, stun,
};
use tautline_units::{ByteCount, Ecn, Instant};
use tokio::sync::watch;

use crate::clock::Clock;
pub use crate::drops::Drops;
use crate::random;
use crate::reach::Reach;
use crate::sessions::{self, Condition, Sessions};
use crate::slot::Slot;
use crate::socket::Local;
use crate::streams::{Streams, Tls};
use crate::timer::Timer;
use crate::udp::{BUFFER_BYTES, Received};

/// Output of the event loop, delivered on the loop's own thread: handlers must be brief.
#[derive(Debug)]
pub enum Output<'a> {
    /// An event of the current session, with that session.
    Event(Event, &'a Session),
    /// A unit that cannot be sent: there is no session, no link, or no room for it in time.
    Refused(ChannelNumber, &'a [u8], SendError),
    /// Every tenth of a second while there is a session: the session, the links through relays, and
    /// the loop's own drops.
    Tick(&'a Session, &'a [relay::LegView], &'a Drops),
}

/// A running event loop. Dropping it ends the thread and closes the sockets.
#[derive(Debug)]
pub struct Driver {
    handle: Handle,
    locals: watch::Receiver<Vec<SocketAddr>>,
    tls: Option<SocketAddr>,
    candidates: watch::Receiver<Vec<Candidate>>,
    thread: Option<JoinHandle<()>>,
}

/// A handle to the event loop for any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    inputs: SyncSender<Input>,
    waker: Arc<Waker>,
}

impl Driver {
    /// Opens the sockets, in the order of [`Route::socket`], and starts the loop. A local end that
    /// does not exist yet is opened when it appears.
    ///
    /// # Errors
    /// When a port is in use or not permitted, or the kernel provides no timer, poller or thread.
    pub fn spawn(
        locals: &[Local],
        clock: Clock,
        sink: impl FnMut(Output<'_>) + Send + 'static,
    ) -> anyhow::Result<Self> {
        Self::spawn_with(locals, None, clock, sink)
    }

    /// Starts as [`spawn`](Self::spawn) does, with links over TLS in addition.
    ///
    /// # Errors
    /// Same as [`spawn`](Self::spawn), and when the address for TLS cannot be bound.
    pub fn spawn_with(
        locals: &[Local],
        tls: Option<Tls>,
        clock: Clock,
        sink: impl FnMut(Output<'_>) + Send + 'static,
    ) -> anyhow::Result<Self> {
        let poll = Poll::new().context("cannot create a poller")?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE).context("no waker")?);
        let timer = Timer::new().context("cannot create a timer")?;
        timer.register(poll.registry(), TIMER).context("cannot watch the timer")?;
        let slots = locals.iter().enumerate();
        let slots = slots.map(|(index, local)| Slot::open(local, Token(index), poll.registry()));
        let slots = slots.collect::<anyhow::Result<Vec<_>>>()?;
        let addresses: Vec<_> = slots.iter().map(Slot::address).collect();
        let (tell, candidates) = watch::channel(Vec::new());
        let reach = Reach::new(&addresses, random::seed()?, tell);
        let (tell_locals, addresses) = watch::channel(addresses);
        let streams = tls.map(|tls| Streams::open(tls, locals, poll.registry(), LISTENER));
        let streams = streams.transpose()?;
        let tls = streams.as_ref().and_then(Streams::address);
        let (inputs, receiver) = sync_channel(INPUTS_MAX);
        let event_loop = EventLoop {
            poll,
            timer,
            slots,
            locals: tell_locals,
            streams,
            inputs: receiver,
            clock,
            sink: Box::new(sink),
            sessions: Sessions::default(),
            relays: relay::Client::default(),
            reach,
            opened: BTreeMap::new(),
            drops: Drops::default(),
            tick_at: clock.now(),
            datagram: Vec::with_capacity(DATAGRAM_BYTES_MAX),
            buffer: vec![0; BUFFER_BYTES],
        };
        let thread = std::thread::Builder::new()
            .name("event-loop".into())
            .spawn(move || event_loop.run())
            .context("cannot start a thread")?;
        let handle = Handle { inputs, waker };
        Ok(Self { handle, locals: addresses, tls, candidates, thread: Some(thread) })
    }

    /// Returns a handle for other threads.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns the listening address for links over TLS, if there is one.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls
    }

    /// Returns the current local addresses of the sockets, in order. A socket that is not open yet
    /// has the configured address, with port 0 if the system chooses one.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.locals.borrow().clone()
    }

    /// Returns the local addresses of those sockets that have a port, configured or chosen by the
    /// system; they may be announced.
    pub fn open_addresses(&self) -> Vec<SocketAddr> {
        self.locals.borrow().iter().copied().filter(|address| address.port() != 0).collect()
    }

    /// Returns the candidates of the sockets, updated as they are found: see
    /// [`Handle::find_addresses`].
    pub fn candidates(&self) -> watch::Receiver<Vec<Candidate>> {
        self.candidates.clone()
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
    /// Starts `session`. An established one continues for as long as its peer is received, and this
    /// one runs as its successor.
    ///
    /// When the old one has fallen silent, the successor replaces it as soon as one of its own
    /// links is up: with the same peer after half a second of silence, with another peer after ten
    /// seconds. A third session replaces the successor.
    pub fn start(&self, session: Session) {
        self.introduce(session, || false);
    }

    /// Starts `session` as [`start`](Self::start) does. With another peer it replaces a live
    /// session as soon as one of its links is up and `may_take_over` returns `true`. The loop calls
    /// that on its own thread, so it must be brief.
    pub fn introduce(&self, session: Session, may_take_over: impl Fn() -> bool + Send + 'static) {
        self.input(Input::Start(Box::new(session), Condition::new(may_take_over)));
    }

    /// Keeps a connection over TLS for each of `routes` that is a stream, for as long as a session
    /// has the route. The other end must hold `key`. Call it before the session is started.
    ///
    /// A loop that was spawned without TLS makes no connections.
    pub fn call(&self, routes: &[Route], key: PublicKey) {
        self.input(Input::Call(routes.to_vec(), key));
    }

    /// Searches for candidates from now on: the addresses of the interfaces, and the
    /// server-reflexive ones that these STUN servers report.
    pub fn find_addresses(&self, servers: Vec<SocketAddr>) {
        self.input(Input::FindAddresses(servers));
    }

    /// Updates the candidate pairs of the session under this lease: see [`Session::offer`].
    pub fn offer_pairs(&self, lease: [u8; 16], pairs: Vec<CandidatePair>) {
        self.input(Input::Offer(lease, pairs));
    }

    /// Updates the hole-punching targets of the session under this lease: see [`Session::punch`].
    pub fn punch(&self, lease: [u8; 16], routes: Vec<Route>) {
        self.input(Input::Punch(lease, routes));
    }

    /// Opens a channel in the running session and in all later ones.
    ///
    /// Numbers from [`crate::channels::APPLICATION_MIN`] on are an application's. A channel without
    /// room in a session is logged, and its units are refused.
    pub fn open(&self, channel: Channel) {
        self.input(Input::Open(Box::new(channel)));
    }

    /// Sets the relays towards a peer, in place of its previous ones: each socket registers with
    /// each of them and keeps the registration alive.
    pub fn admit(&self, admission: Admission) {
        self.input(Input::Admit(Box::new(admission)));
    }

    /// Marks the running session's peer as possibly gone: the session ends after ten seconds
    /// without a datagram from it.
    pub fn release(&self) {
        self.input(Input::Release);
    }

    /// Ends the current sessions: the running one once `may_end` returns `true` on the loop's own
    /// thread, the successor at once. Sessions introduced later run as successors until then.
    pub fn end_sessions(&self, may_end: impl Fn() -> bool + Send + 'static) {
        self.input(Input::EndSessions(Condition::new(may_end)));
    }

    /// Ends the running session and its successor now, if they exist.
    pub fn stop(&self) {
        self.input(Input::Stop);
    }

    /// Passes a unit to a successor session with another peer and a link that is up, to arrive
    /// within `deadline` from now. Without such a session the unit is dropped.
    ///
    /// Returns `false`, and drops the unit, if the loop's bounded queue is full.
    pub fn send_waiting(&self, channel: ChannelNumber, unit: Vec<u8>, deadline: Duration) -> bool {
        self.offer(Input::SendWaiting { channel, unit, deadline })
    }

    /// Passes a unit of `channel` to the transport, to arrive within `deadline` from now.
    ///
    /// Returns `false`, and drops the unit, if the loop's bounded queue is full.
    pub fn send(&self, channel: ChannelNumber, unit: Vec<u8>, deadline: Duration) -> bool {
        self.offer(Input::Send { channel, unit, deadline })
    }

    /// Sets the maximum datagram size of each current link of the session in the sending direction;
    /// see [`Session::set_datagram_bytes_max`]. A new session starts with its configured size.
    ///
    /// Returns `false` without a change if the loop's bounded queue is full.
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
        // A failed send means that the loop has already ended.
        if self.inputs.send(input).is_ok() {
            let _ = self.waker.wake();
        }
    }
}

#[derive(Debug)]
enum Input {
    Start(Box<Session>, Condition),
    Call(Vec<Route>, PublicKey),
    Open(Box<Channel>),
    Admit(Box<Admission>),
    FindAddresses(Vec<SocketAddr>),
    Offer([u8; 16], Vec<CandidatePair>),
    Punch([u8; 16], Vec<Route>),
    Release,
    EndSessions(Condition),
    Stop,
    SendWaiting { channel: ChannelNumber, unit: Vec<u8>, deadline: Duration },
    Send { channel: ChannelNumber, unit: Vec<u8>, deadline: Duration },
    DatagramBytesMax(ByteCount),
    End,
}

struct EventLoop {
    poll: Poll,
    timer: Timer,
    slots: Vec<Slot>,
    locals: watch::Sender<Vec<SocketAddr>>,
    streams: Option<Streams>,
    inputs: Receiver<Input>,
    clock: Clock,
    sink: Box<dyn FnMut(Output<'_>) + Send>,
    sessions: Sessions,
    relays: relay::Client,
    reach: Reach,
    /// Channels of the application, to open in later sessions: at most 256.
    opened: BTreeMap<ChannelNumber, Channel>,
    drops: Drops,
    tick_at: Instant,
    datagram: Vec<u8>,
    /// Buffer for the datagrams of one read from a socket.
    buffer: Vec<u8>,
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

    /// Returns when the loop must run again, if no event wakes it before.
    fn due(&self, more: bool, now: Instant) -> Instant {
        if more {
            return now;
        }
        let relays = self.relays.poll_timeout();
        let due = match self.sessions.present() {
            Some(_) => self.sessions.poll_timeout().map_or(self.tick_at, |at| at.min(self.tick_at)),
            None => now + IDLE,
        };
        let reach = self.reach.poll_timeout();
        // Past deadlines are already handled.
        let unheard = self.unheard_at().filter(|at| *at > now);
        [relays, reach, unheard].into_iter().flatten().fold(due, Instant::min)
    }

    /// Applies the application's inputs; returns `false` after a request to end.
    fn take_inputs(&mut self) -> bool {
        for _ in 0..INPUTS_MAX {
            let Ok(input) = self.inputs.try_recv() else { break };
            match input {
                Input::Start(mut session, condition) => {
                    self.opened.values().for_each(|channel| sessions::open(&mut session, channel));
                    self.sessions.introduce(*session, condition, self.clock.now());
                }
                Input::Call(routes, key) => {
                    if let Some(streams) = &mut self.streams {
                        streams.call(&routes, key, self.clock.now());
                    }
                }
                Input::Open(channel) => {
                    self.sessions.open(&channel);
                    self.opened.insert(channel.number, *channel);
                }
                Input::Admit(admission) => {
                    self.admit(*admission);
                }
                Input::FindAddresses(servers) => self.reach.begin(&servers, self.clock.now()),
                Input::Offer(lease, pairs) => {
                    self.sessions.offer(&lease, &pairs, self.clock.now());
                }
                Input::Punch(lease, routes) => {
                    self.sessions.punch(&lease, &routes, self.clock.now());
                }
                Input::Release => self.sessions.release(),
                Input::EndSessions(may_end) => self.sessions.end(may_end),
                Input::Stop => self.sessions.stop(),
                Input::SendWaiting { channel, unit, deadline } => {
                    let now = self.clock.now();
                    let Some(waiting) = self.sessions.waiting_mut() else { continue };
                    if waiting.send(channel, &unit, deadline, now).is_err() {
                        self.drops.unit_refused += 1;
                    }
                }
                Input::Send { channel, unit, deadline } => {
                    let now = self.clock.now();
                    let present = self.sessions.present_mut();
                    let sent = present.map(|session| session.send(channel, &unit, deadline, now));
                    if let Err(error) = sent.unwrap_or(Err(SendError::NotEstablished)) {
                        tracing::debug!(?channel, bytes = unit.len(), %error, "a unit was refused");
                        self.drops.unit_refused += 1;
                        (self.sink)(Output::Refused(channel, &unit, error));
                    }
                }
                Input::DatagramBytesMax(most) => {
                    let Some(session) = self.sessions.present_mut() else { continue };
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

    fn admit(&mut self, mut admission: Admission) {
        let locals: Vec<SocketAddr> = self.slots.iter().map(Slot::address).collect();
        let now = self.clock.now();
        if self.streams.is_none() {
            admission.tickets.iter_mut().for_each(|ticket| ticket.streams.clear());
        }
        self.relays.admit(&admission, &locals, now);
        if let Some(streams) = &mut self.streams {
            streams.call_relays(&self.relays, now);
        }
    }

    /// Receives a bounded number of datagrams; returns whether more may wait.
    fn receive(&mut self) -> bool {
        let Self { streams, sessions, relays, reach, drops, poll, clock, .. } = self;
        let turn =
            |streams: &mut Streams| streams.turn(poll.registry(), (sessions, relays), drops, clock);
        let mut more = streams.as_mut().is_some_and(turn);
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let mut turn = 0..RECEIVE_TURN;
            loop {
                if turn.next().is_none() {
                    more = true;
                    break;
                }
                let received = match slot.receive(&mut self.buffer) {
                    None => break,
                    Some(Ok(received)) => received,
                    Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Some(Err(error)) => {
                        tracing::debug!(%error, "cannot read from a socket");
                        break;
                    }
                };
                let Received { remote, local, ecn, .. } = received;
                let route = Route { socket: index as u8, remote };
                let now = clock.now();
                for datagram in received.datagrams(&self.buffer) {
                    if stun::is_stun(datagram) {
                        reach.handle_datagram(route.socket, remote, datagram, now);
                    } else if !relays.handle_datagram(route, datagram, now)
                        && !sessions.handle_datagram(route, datagram, ecn, now)
                    {
                        drops.no_session += 1;
                    } else if let Some(local) = local.filter(|_| sessions.is_called(now)) {
                        slot.on_called(remote, datagram, local, now);
                    }
                }
            }
        }
        more
    }

    /// Runs the sessions: handles timers, sends datagrams, and delivers the events of the current
    /// session.
    fn advance(&mut self) {
        let now = self.clock.now();
        self.sessions.handle_timeout(now);
        self.follow(now);
        self.find_addresses(now);
        self.drops.unit_of_successor = self.sessions.units_of_successor();
        while let Some((route, ecn)) = self.poll_transmit(now) {
            if route.stream_index().is_some() {
                let Self { streams, sessions, drops, datagram, .. } = self;
                match streams {
                    Some(streams) => streams.send(route, datagram, sessions, drops, now),
                    None => drops.stream_absent += 1,
                }
                continue;
            }
            let Some(slot) = self.slots.get_mut(usize::from(route.socket)) else {
                self.drops.send_refused += 1;
                continue;
            };
            let Some(sent) = slot.send(&self.datagram, route.remote, ecn, now) else {
                self.drops.send_refused += 1;
                continue;
            };
            match sent {
                Ok(()) => slot.on_sent(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.drops.send_full += 1;
                }
                Err(error) if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) => {
                    self.drops.send_too_large += 1;
                    self.sessions.handle_too_large(route, ByteCount::of(&self.datagram), now);
                }
                Err(error) => {
                    self.drops.send_refused += 1;
                    slot.on_refused(error, now);
                }
            }
        }
        while let Some((event, session)) = self.sessions.poll_event() {
            if matches!(event, Event::Link { state: State::Silent, .. }) {
                self.reach.hurry(now);
            }
            (self.sink)(Output::Event(event, session));
        }
    }

    /// Writes the next datagram of a relay client or a session; returns its route and codepoint, or
    /// `None` if none is due. Relays forward no codepoint.
    fn poll_transmit(&mut self, now: Instant) -> Option<(Route, Ecn)> {
        let Self { relays, sessions, datagram, .. } = self;
        if let Some(route) = relays.poll_transmit(datagram, now) {
            return Some((route, Ecn::NotEct));
        }
        let (route, ecn) = sessions.poll_transmit(datagram, now)?;
        Some((route, if relays.has_route(route) { Ecn::NotEct } else { ecn }))
    }

    /// Queries servers, relays and standby links while the peer is silent, which shows a changed
    /// NAT mapping or a lost path. Reports each socket whose address has changed to the sessions.
    fn follow(&mut self, now: Instant) {
        if self.unheard_at().is_some_and(|at| at <= now) {
            self.reach.hurry(now);
            self.relays.hurry(now);
            self.sessions.hurry(now);
        }
        while let Some(socket) = self.relays.poll_moved().or_else(|| self.reach.poll_moved()) {
            if let Some(slot) = self.slots.get_mut(usize::from(socket)) {
                slot.on_moved();
            }
            let relayed: Vec<Route> = self.relays.legs().map(|leg| leg.route).collect();
            self.reach.hurry(now);
            self.sessions.handle_moved(socket, &relayed, now);
        }
    }

    /// Returns when the peer has been silent for [`UNHEARD`], from which [`follow`](Self::follow)
    /// queries the servers; `None` without a session, and before its peer's first datagram.
    fn unheard_at(&self) -> Option<Instant> {
        Some(self.sessions.present()?.heard_at()? + UNHEARD)
    }

    /// Queries servers for the sockets' addresses.
    fn find_addresses(&mut self, now: Instant) {
        self.reach.turn(&self.slots, now);
        while let Some((socket, server, datagram)) = self.reach.poll_transmit(now) {
            let slot = self.slots.get_mut(usize::from(socket));
            let sent = slot.and_then(|slot| slot.send(&datagram, server, Ecn::NotEct, now));
            if !matches!(sent, Some(Ok(()))) {
                tracing::debug!(%server, "cannot send the question for our address");
            }
        }
    }

    fn tick(&mut self) {
        let now = self.clock.now();
        if now < self.tick_at {
            return;
        }
        self.tick_at = now + TICK;
        let renewed = self.slots.iter_mut().map(|slot| slot.renew(self.poll.registry(), now));
        if renewed.fold(false, |any, is_renewed| any | is_renewed) {
            self.locals.send_replace(self.slots.iter().map(Slot::address).collect());
        }
        if let Some(streams) = &mut self.streams {
            streams.prune(&self.sessions, &self.relays, now);
            streams.renew(self.poll.registry(), LISTENER, now);
        }
        if let Some(session) = self.sessions.present() {
            let legs: Vec<relay::LegView> = self.relays.legs().collect();
            (self.sink)(Output::Tick(session, &legs, &self.drops));
        }
    }
}

const WAKE: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
const LISTENER: Token = Token(usize::MAX - 2);
/// Interval of the driver's regular work: lost sockets are reopened, and the application sees the
/// session.
const TICK: Duration = Duration::from_millis(100);
/// Silence on all links after which the own addresses are queried again, because a NAT mapping may
/// have changed: 1.5 ping intervals. An unnecessary query costs about 100 bytes.
const UNHEARD: Duration = Duration::from_millis(30);
/// Sleep time of the loop without a session or datagrams.
const IDLE: Duration = Duration::from_secs(1);
/// Maximum inputs of the application that wait, and that are taken in one turn. Beyond it, units
/// are dropped and other inputs block their caller. It is the units of a tenth of a second at 60
/// pictures of six slices a second, and more.
const INPUTS_MAX: usize = 256;
/// Number of reads from one socket before the session may send again; the kernel may join several
/// datagrams of one sender in a read.
const RECEIVE_TURN: usize = 64;
/// Initial capacity in bytes of the buffer for a datagram to send: more than any datagram of the
/// protocol.
const DATAGRAM_BYTES_MAX: usize = 2048;
