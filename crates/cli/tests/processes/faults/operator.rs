//! An operator played by the test: a thread with the product's own session, which sees every
//! complete picture.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tautline_guard::frame::{DeadMan, Status};
use tautline_guard::{Axes, Mode, Twist};
use tautline_message::{Act, Command, Control, Deed, Description, Held, Telemetry, Values};
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::control::{Client, Event as Word};
use tautline_net::driver::{Driver, Output};
use tautline_net::{Destination, Local, Tls};
use tautline_transport::crypto::Identity;
use tautline_transport::{ClockEstimate, Config as Transport, Event, Session};
use tautline_units::Instant;
use tautline_video::Slice;

use crate::faults::remote::{NAME, Place};

/// The operator played by this test.
pub(crate) struct Operator {
    wanted: Arc<Mutex<Wanted>>,
    told: Arc<Mutex<Told>>,
    delays: Arc<Mutex<Vec<Delays>>>,
    stop: Arc<AtomicBool>,
    is_killed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Delays of a slice, from the start of its readout and from its hand-over, until its arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    pub(crate) came_at: Instant,
    pub(crate) captured: Duration,
    pub(crate) handed_over: Duration,
}

#[derive(Clone, Copy, Default)]
struct Wanted {
    throttle: f32,
    twist: Twist,
    axes: Axes,
    /// Number of the act by which a declared action is requested, and the action; `None` for none.
    request: Option<(u32, u8)>,
    /// Number of the emergency stop; 0 for none.
    emergency_stop: u32,
    is_arming: bool,
}

/// Reports of the vehicle and the switchboard.
#[derive(Clone, Default)]
struct Told {
    telemetry: Option<Telemetry>,
    pictures: u64,
    introductions: u64,
    slices_lost: u64,
    description: Option<Description>,
    values: Option<Values>,
}

impl Operator {
    pub(crate) fn start(
        own: Identity,
        vehicle: &Identity,
        switchboard: String,
        switchboard_key: tautline_transport::crypto::PublicKey,
        place: &Place,
    ) -> Self {
        let (wanted, told) = (Arc::<Mutex<Wanted>>::default(), Arc::<Mutex<Told>>::default());
        let (stop, is_killed) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let mut seat = Seat::new(own, vehicle.public(), place);
        let delays = seat.delays.clone();
        let thread = {
            let (wanted, told, stop) = (wanted.clone(), told.clone(), stop.clone());
            let is_killed = is_killed.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.expect("the system gives one");
                let work = seat.sit(&switchboard, switchboard_key, &wanted, &told, &stop);
                runtime.block_on(async {
                    tokio::select! { () = work => {}, () = killed(&is_killed) => {} }
                });
            })
        };
        Self { wanted, told, delays, stop, is_killed, thread: Some(thread) }
    }

    /// Returns the delays of the slices that arrived since the last call.
    pub(crate) fn take_delays(&self) -> Vec<Delays> {
        std::mem::take(&mut *self.delays.lock().expect("nobody panics with it"))
    }

    /// Returns how many slices of the vehicle were lost.
    pub(crate) fn slices_lost(&self) -> u64 {
        self.told().slices_lost
    }

    pub(crate) fn throttle(&self, throttle: f32) {
        self.want(|wanted| wanted.throttle = throttle);
    }

    pub(crate) fn twist(&self, twist: Twist) {
        self.want(|wanted| wanted.twist = twist);
    }

    pub(crate) fn axes(&self, axes: Axes) {
        self.want(|wanted| wanted.axes = axes);
    }

    /// Asks for a declared action, by an act of this number.
    pub(crate) fn request(&self, number: u32, action: u8) {
        self.want(|wanted| wanted.request = Some((number, action)));
    }

    /// Returns what the machine declares; `None` before the first description.
    pub(crate) fn description(&self) -> Option<Description> {
        self.told().description
    }

    /// Returns the machine's newest values; `None` before the first.
    pub(crate) fn values(&self) -> Option<Values> {
        self.told().values
    }

    pub(crate) fn emergency_stop(&self, number: u32) {
        self.want(|wanted| wanted.emergency_stop = number);
    }

    /// Ends it as a kill does: nothing is sent from now on, and the connection to the switchboard
    /// breaks off.
    pub(crate) fn kill(&mut self) {
        self.is_killed.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }

    /// Asks for arming until the guard has armed, unless the machine is driven.
    pub(crate) fn arm(&self) {
        self.want(|wanted| *wanted = Wanted { is_arming: true, ..Wanted::default() });
        self.eventually("armed", |operator| {
            operator.guard().is_some_and(|guard| match guard.mode {
                Mode::Armed | Mode::Driving | Mode::Limited => true,
                Mode::Held | Mode::Manoeuvre => false,
            })
        });
        self.want(|wanted| wanted.is_arming = false);
    }

    /// Returns the guard's status in the newest telemetry; `None` before the first.
    pub(crate) fn guard(&self) -> Option<Status> {
        self.told().telemetry.and_then(|telemetry| telemetry.status().copied())
    }

    /// Returns how often the switchboard has introduced the vehicle.
    pub(crate) fn introductions(&self) -> u64 {
        self.told().introductions
    }

    /// Returns how many complete pictures arrived.
    pub(crate) fn pictures(&self) -> u64 {
        self.told().pictures
    }

    pub(crate) fn eventually(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..3_000 {
            if holds(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("never: {what}: {:?}, {} pictures", self.guard(), self.pictures());
    }

    fn want(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted.lock().expect("nobody panics with it"));
    }

    fn told(&self) -> Told {
        self.told.lock().expect("nobody panics with it").clone()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Waits until the operator is killed.
async fn killed(is_killed: &AtomicBool) {
    while !is_killed.load(Ordering::Relaxed) {
        tokio::time::sleep(TURN).await;
    }
}

/// State of the thread that plays the operator.
struct Seat {
    own: Identity,
    vehicle: tautline_transport::crypto::PublicKey,
    clock: Clock,
    driver: Driver,
    events: Receiver<Came>,
    delays: Arc<Mutex<Vec<Delays>>>,
    sequence: u64,
    act: Option<Act>,
    /// Address that the vehicle learns in place of the driver's own; `None` without a relay.
    advertised: Option<SocketAddr>,
    cited: u32,
    /// For each incomplete picture, the strips that have arrived: bit i stands for strip i.
    strips: BTreeMap<u32, u64>,
    /// Bits of all strips that any picture has had so far; one that has them all is complete.
    whole: u64,
}

/// An event, its arrival time, and the vehicle's clock as estimated then.
struct Came {
    event: Event,
    at: Instant,
    clock: Option<ClockEstimate>,
}

impl Seat {
    fn new(own: Identity, vehicle: tautline_transport::crypto::PublicKey, place: &Place) -> Self {
        let (clock, (tell, events)) = (Clock::start(), channel());
        let port = place.relay.map_or(0, |relay| relay.to);
        let local = Local::Address((place.here, port).into());
        let listen = place.tls_port.map(|port| (place.here, port).into());
        let tls = listen.map(|listen| Tls { identity: own.clone(), listen: Some(listen) });
        let driver = Driver::spawn_with(&[local], tls, clock, move |output| {
            if let Output::Event(event, session) = output {
                // The receiver is gone once the test has ended.
                let _ = tell.send(Came { event, at: clock.now(), clock: session.clock() });
            }
        });
        Self {
            own,
            vehicle,
            clock,
            driver: driver.expect("an address of this machine"),
            events,
            delays: Arc::default(),
            sequence: 0,
            act: None,
            advertised: place.relay.map(|relay| (place.here, relay.from).into()),
            cited: 0,
            strips: BTreeMap::new(),
            whole: 0,
        }
    }

    async fn sit(
        &mut self,
        switchboard: &str,
        key: tautline_transport::crypto::PublicKey,
        wanted: &Mutex<Wanted>,
        told: &Mutex<Told>,
        stop: &AtomicBool,
    ) {
        let take = Control::Take { vehicle_name: NAME.to_owned() }.encode();
        let greeting = vec![self.registration(None), take.clone()];
        let answer = |frame: &[u8]| match Control::decode(frame) {
            Ok(Control::Ping { t }) => Some(Control::Pong { t, seen_at: None }.encode()),
            Ok(_) | Err(_) => None,
        };
        let begun = Client::start(switchboard, key, &self.own, greeting, answer);
        let (client, mut words) = begun.expect("a key");
        let mut due = tokio::time::interval(TURN);
        while !stop.load(Ordering::Relaxed) {
            tokio::select! {
                _ = due.tick() => self.turn(wanted, told),
                Some(Word::Frame(frame)) = words.recv() => match Control::decode(&frame) {
                    Ok(Control::Introduce { lease, epoch, peer_key, .. }) => {
                        told.lock().expect("nobody panics with it").introductions += 1;
                        let held = Held { lease: Some(lease), epoch, peer_key };
                        let greeting = vec![self.registration(Some(held)), take.clone()];
                        client.handle().set_greeting(greeting);
                        self.begin(lease);
                    }
                    Ok(Control::Refused { .. } | Control::Released { .. }) => {
                        tokio::time::sleep(AGAIN).await;
                        let _ = client.handle().send(take.clone());
                    }
                    _ => {}
                },
            }
        }
        client.close().await;
    }

    fn registration(&self, held: Option<Held>) -> Vec<u8> {
        let register = Control::RegisterOperator {
            name: "anna".to_owned(),
            addresses: self.addresses(),
            versions: channels::versions(),
            relays: false,
            candidates: Vec::new(),
            held,
        };
        register.encode()
    }

    fn addresses(&self) -> Vec<String> {
        if let Some(address) = self.advertised {
            return vec![address.to_string()];
        }
        let datagrams = self.driver.local_addresses().into_iter().map(Destination::Datagrams);
        let streams = self.driver.tls_address().map(Destination::Tls);
        datagrams.chain(streams).map(|destination| destination.to_string()).collect()
    }

    fn begin(&self, lease: [u8; 16]) {
        let (now, seed) = (self.clock.now(), [lease[0]; 32]);
        let session =
            Session::respond(Transport::default(), &self.own, self.vehicle, lease, seed, now);
        let mut session = session.expect("keys that fit");
        channels::open(&mut session).expect("free channels");
        self.driver.handle().start(session);
    }

    fn turn(&mut self, wanted: &Mutex<Wanted>, told: &Mutex<Told>) {
        let mut told = told.lock().expect("nobody panics with it");
        for Came { event, at, clock } in self.events.try_iter() {
            match event {
                Event::Established => (self.cited, self.strips) = (0, BTreeMap::new()),
                Event::Unit { channel: channels::TELEMETRY, bytes, .. } => {
                    told.telemetry = Telemetry::decode(&bytes).ok();
                }
                Event::Unit { channel: channels::DESCRIPTION, bytes, .. } => {
                    told.description = Description::decode(&bytes).ok();
                }
                Event::Unit { channel: channels::VALUES, bytes, .. } => {
                    told.values = Values::decode(&bytes).ok();
                }
                Event::UnitLost { channel: channels::VIDEO, .. } => told.slices_lost += 1,
                Event::Unit { channel: channels::VIDEO, bytes, sent_at, .. } => {
                    let slice = Slice::parse(bytes).expect("the vehicle's own");
                    let captured = clock.map(|clock| at.since(clock.to_local(slice.captured_at)));
                    let handed_over = sent_at.map(|sent_at| at.since(sent_at));
                    if let Some((captured, handed_over)) = captured.zip(handed_over) {
                        let delays = Delays { came_at: at, captured, handed_over };
                        self.delays.lock().expect("nobody panics with it").push(delays);
                    }
                    let strips = self.strips.entry(slice.picture).or_default();
                    *strips |= 1 << slice.strip;
                    self.whole |= *strips;
                    if *strips == self.whole {
                        (self.cited, told.pictures) = (slice.tick, told.pictures + 1);
                        let picture = slice.picture;
                        self.strips.retain(|other, _| *other > picture);
                    }
                }
                _ => {}
            }
        }
        let wanted = *wanted.lock().expect("nobody panics with it");
        let guard = told.telemetry.as_ref().and_then(Telemetry::status);
        self.act =
            guard.filter(|guard| wanted.is_arming && guard.mode == Mode::Held).map(|guard| {
                let answered = guard.answer.filter(|answer| answer.console.get() == CONSOLE);
                Act {
                    number: answered.map_or(0, |answer| answer.number.get()) + 1,
                    stop: 0,
                    deed: Deed::Arm,
                }
            });
        if let Some((number, action)) = wanted.request {
            self.act = Some(Act { number, stop: action.into(), deed: Deed::Request });
        }
        self.sequence += 1;
        let command = Command {
            sequence: self.sequence,
            sent_at: self.clock.now(),
            console: CONSOLE,
            cited: self.cited,
            act: self.act,
            throttle: wanted.throttle,
            twist: wanted.twist,
            axes: wanted.axes,
            emergency_stop_number: wanted.emergency_stop,
            dead_man: DeadMan::Held,
            ..Command::default()
        };
        self.driver.handle().send(channels::COMMAND, command.encode(), DEADLINE);
    }
}

const CONSOLE: u64 = 7;
const TURN: Duration = Duration::from_millis(20);
/// Pause before a refused vehicle is taken again.
const AGAIN: Duration = Duration::from_millis(300);
/// Deadline of the units that the operator sends: that of commands in the product.
const DEADLINE: Duration = Duration::from_millis(250);
