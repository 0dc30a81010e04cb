//! A simulated car on a bus: takes frames only with the right counter and checksum, moves by them,
//! and reports its motion.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tautline_can::{Database, Frame, Kind, Message};
use tautline_net::clock::Clock;
use tautline_net::realtime;
use tautline_units::Instant;

/// A car on a bus of datagrams.
pub(crate) struct Car {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Conduct of the car on the bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Conduct {
    Sound,
    /// Its motion is not sent.
    Silent,
    /// The checksum of its motion is wrong.
    WrongChecksum,
    /// The counter of its motion does not change.
    StuckCounter,
    /// Its end of the bus is closed.
    Away,
}

/// Motion of the car, and the commands that it has received.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Observed {
    /// Metres per second.
    pub(crate) speed: f64,
    /// Metres.
    pub(crate) odometer: f64,
    /// Newest command in m/s².
    pub(crate) acceleration: f64,
    pub(crate) indicators: u64,
    pub(crate) is_lit: bool,
    /// Data of the newest steering command.
    pub(crate) steering: [u8; 8],
    pub(crate) accepted: u64,
    /// Frames with a wrong counter or checksum.
    pub(crate) refused: u64,
}

struct Shared {
    conduct: Conduct,
    seen: Observed,
}

impl Car {
    /// Starts a car that stands, on a bus of its own.
    pub(crate) fn start() -> Self {
        let bus = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = bus.local_addr().expect("it is bound");
        let shared = Shared { conduct: Conduct::Sound, seen: Observed::default() };
        let (shared, stop) = (Arc::new(Mutex::new(shared)), Arc::<AtomicBool>::default());
        let thread = {
            let (shared, stop) = (shared.clone(), stop.clone());
            std::thread::spawn(move || Ecu::new(bus, address).run(&shared, &stop))
        };
        Self { address, shared, stop, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn behave(&self, conduct: Conduct) {
        self.shared.lock().expect("nobody panics with it").conduct = conduct;
    }

    pub(crate) fn seen(&self) -> Observed {
        self.shared.lock().expect("nobody panics with it").seen
    }

    pub(crate) fn eventually(&self, what: &str, holds: impl Fn(&Observed) -> bool) -> Observed {
        for _ in 0..2_000 {
            let seen = self.seen();
            if holds(&seen) {
                return seen;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("never: {what}: {:?}", self.seen());
    }
}

impl Drop for Car {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The car's computer.
struct Ecu {
    database: Database,
    address: SocketAddr,
    /// `None` while the car is away.
    bus: Option<UdpSocket>,
    /// Address of the adapter; `None` before its first datagram.
    way: Option<SocketAddr>,
    /// Counter of the newest frame of each message, by its identifier.
    counters: BTreeMap<u32, u64>,
    seen: Observed,
    heard_at: Instant,
    /// Acceleration of the last step in m/s².
    measured: f64,
    turn: u64,
    counter: u64,
}

impl Ecu {
    fn new(bus: UdpSocket, address: SocketAddr) -> Self {
        bus.set_nonblocking(true).expect("a socket");
        Self {
            database: Database::parse(DBC).expect("a DBC"),
            address,
            bus: Some(bus),
            way: None,
            counters: BTreeMap::new(),
            seen: Observed::default(),
            heard_at: Instant::ZERO,
            measured: 0.0,
            turn: 0,
            counter: 0,
        }
    }

    fn run(mut self, shared: &Mutex<Shared>, stop: &AtomicBool) {
        realtime::raise_thread("the test's car", realtime::Urgency::Safety);
        let clock = Clock::start();
        let mut last = clock.now();
        while !stop.load(Ordering::Relaxed) {
            let now = clock.now();
            let conduct = shared.lock().expect("nobody panics with it").conduct;
            self.connect(conduct);
            self.receive(now);
            self.step(now.since(last), now);
            last = now;
            self.send(conduct);
            shared.lock().expect("nobody panics with it").seen = self.seen;
            clock.sleep_until(now + PERIOD);
        }
    }

    /// Opens or closes the bus.
    fn connect(&mut self, conduct: Conduct) {
        if conduct == Conduct::Away {
            (self.bus, self.way) = (None, None);
        } else if self.bus.is_none() {
            let bus = UdpSocket::bind(self.address).expect("the same port");
            bus.set_nonblocking(true).expect("a socket");
            self.bus = Some(bus);
        }
    }

    fn receive(&mut self, now: Instant) {
        let mut buffer = [0; 72];
        while let Some(bus) = &self.bus {
            let Ok((length, way)) = bus.recv_from(&mut buffer) else { break };
            if self.way != Some(way) {
                self.way = Some(way);
                // The adapter opened the bus anew; frames between are lost.
                self.counters.clear();
            }
            if let Ok(frame) = Frame::from_socketcan(&buffer[..length]) {
                self.take(&frame, now);
            }
        }
    }

    fn take(&mut self, frame: &Frame, now: Instant) {
        let id = frame.id().number();
        let Ok(data): Result<[u8; 8], _> = frame.data().try_into() else {
            self.seen.refused += 1;
            return;
        };
        let raw = |name: &str| {
            let message = self.database.messages().iter().find(|it| it.id() == frame.id())?;
            let mut signals = message.decode(frame.data());
            signals.find(|(signal, _)| signal.name() == name).map(|(_, raw)| raw)
        };
        let (is_right, modulus) = match id {
            STEERING => (data[7] == toyota(id, &data), 16),
            MOTION => (data[0] == profile_1(&data), 15),
            other => panic!("nobody sends {other:#x}"),
        };
        let counter = raw("COUNTER").expect("both have one");
        let last = self.counters.insert(id, counter);
        if !is_right || last.is_some_and(|last| counter != (last + 1) % modulus) {
            self.seen.refused += 1;
            return;
        }
        self.seen.accepted += 1;
        self.heard_at = now;
        if id == STEERING {
            self.seen.steering = data;
            return;
        }
        self.seen.indicators = raw("INDICATORS").expect("a signal");
        self.seen.is_lit = raw("LIGHTS") == Some(1);
        let acceleration = raw("ACCELERATION").expect("a signal") as u16;
        self.seen.acceleration = f64::from(acceleration.cast_signed()) / 1_000.0;
    }

    /// Moves the car. It brakes by itself 0.2 s after the last command.
    fn step(&mut self, elapsed: Duration, now: Instant) {
        let is_alone = now.since(self.heard_at) > Duration::from_millis(200);
        let acceleration = if is_alone { -8.0 } else { self.seen.acceleration };
        let seconds = elapsed.as_secs_f64();
        let before = self.seen.speed;
        self.seen.speed = (before + acceleration * seconds).max(0.0);
        self.seen.odometer += self.seen.speed * seconds;
        if seconds > 0.0 {
            self.measured = (self.seen.speed - before) / seconds;
        }
    }

    fn send(&mut self, conduct: Conduct) {
        self.turn += 1;
        if conduct != Conduct::Silent {
            let speed = (self.seen.speed * 3.6 * 100.0) as u64;
            if conduct != Conduct::StuckCounter {
                self.counter = (self.counter + 1) % 16;
            }
            let acceleration = ((self.measured + 25.6) / 0.05) as u64;
            let raws =
                [("SPEED", speed), ("COUNTER", self.counter), ("ACCELERATION", acceleration)];
            let message = self.message("VEHICLE_MOTION");
            let (id, mut data) = (message.id(), message.encode(&raws));
            let bytes: [u8; 8] = data[..].try_into().expect("eight");
            data[7] = toyota(id.number(), &bytes) ^ u8::from(conduct == Conduct::WrongChecksum);
            self.transmit(&Frame::new(id, Kind::Classic, &data).expect("a frame"));
        }
        if self.turn.is_multiple_of(2) {
            let raws = [("PAGE", self.turn / 2 % 2), ("GEAR", 3)];
            let message = self.message("VEHICLE_STATUS");
            let (id, data) = (message.id(), message.encode(&raws));
            self.transmit(&Frame::new(id, Kind::Classic, &data).expect("a frame"));
        }
    }

    fn message(&self, name: &str) -> &Message {
        self.database.messages().iter().find(|it| it.name() == name).expect("it is in the DBC")
    }

    fn transmit(&self, frame: &Frame) {
        if let (Some(bus), Some(way)) = (&self.bus, self.way) {
            let _ = bus.send_to(frame.to_socketcan().as_ref(), way);
        }
    }
}

/// Returns Toyota's checksum: the sum of identifier, length and all bytes but the last.
fn toyota(id: u32, data: &[u8; 8]) -> u8 {
    let sum = id / 256 + id % 256 + 8 + data[..7].iter().map(|byte| u32::from(*byte)).sum::<u32>();
    sum as u8
}

/// Returns the CRC of AUTOSAR's profile 1 for the data id 0x343: polynomial 0x1D over the id's
/// bytes, low one first, and all bytes but the first.
fn profile_1(data: &[u8; 8]) -> u8 {
    let bytes = [0x43, 0x03].into_iter().chain(data[1..].iter().copied());
    let bits = bytes.flat_map(|byte: u8| (0..8).rev().map(move |bit| byte >> bit & 1));
    bits.fold(0, |crc: u8, bit| {
        let out = (crc >> 7) ^ bit;
        (crc << 1) ^ (0x1D * out)
    })
}

const DBC: &str = include_str!("../../../../../../adapters/can/car.dbc");
const STEERING: u32 = 740;
const MOTION: u32 = 835;
const PERIOD: Duration = Duration::from_millis(10);
