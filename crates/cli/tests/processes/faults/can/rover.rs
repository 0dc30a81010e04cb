//! A simulated tracked rover on a bus: its tracks and its boom follow the frames, its dock answers.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tautline_can::{Database, Frame, Kind};
use tautline_net::clock::Clock;
use tautline_net::realtime;
use tautline_units::Instant;

/// A rover on a bus of datagrams.
pub(crate) struct Rover {
    address: SocketAddr,
    shared: Arc<Mutex<Observed>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Motion and equipment of the rover.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Observed {
    /// Speeds of left and right track in m/s.
    pub(crate) tracks: [f64; 2],
    /// Metres, without sign.
    pub(crate) odometer: f64,
    /// Radians, without sign.
    pub(crate) turned: f64,
    /// Degrees.
    pub(crate) boom: f64,
    pub(crate) is_lit: bool,
    pub(crate) is_docked: bool,
    /// Frames with a wrong counter or checksum.
    pub(crate) refused: u64,
}

impl Observed {
    /// Returns speed in m/s and yaw rate in rad/s.
    pub(crate) fn motion(&self) -> (f64, f64) {
        let [left, right] = self.tracks;
        ((left + right) / 2.0, (right - left) / TRACK_WIDTH)
    }
}

impl Rover {
    /// Starts a rover that stands, on a bus of its own.
    pub(crate) fn start() -> Self {
        let bus = UdpSocket::bind("127.0.0.1:0").expect("a port");
        bus.set_nonblocking(true).expect("a socket");
        let address = bus.local_addr().expect("it is bound");
        let (shared, stop) = (Arc::<Mutex<Observed>>::default(), Arc::<AtomicBool>::default());
        let thread = {
            let (shared, stop) = (shared.clone(), stop.clone());
            std::thread::spawn(move || Ecu::new(bus).run(&shared, &stop))
        };
        Self { address, shared, stop, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn seen(&self) -> Observed {
        *self.shared.lock().expect("nobody panics with it")
    }

    pub(crate) fn eventually(&self, what: &str, holds: impl Fn(&Observed) -> bool) -> Observed {
        for _ in 0..1_000 {
            let seen = self.seen();
            if holds(&seen) {
                return seen;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("never: {what}: {:?}", self.seen());
    }
}

impl Drop for Rover {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The rover's computer.
struct Ecu {
    database: Database,
    bus: UdpSocket,
    /// Address of the adapter; `None` before its first datagram.
    way: Option<SocketAddr>,
    /// Counter of the newest command that was taken.
    count: Option<u64>,
    /// Newest commands by the names of their signals.
    wanted: BTreeMap<String, f64>,
    seen: Observed,
    heard_at: Instant,
    turn: u64,
    was_asked: bool,
    /// Answer to a request while it is on: 1 accepted, 2 refused, 0 none.
    answer: u64,
}

impl Ecu {
    fn new(bus: UdpSocket) -> Self {
        Self {
            database: Database::parse(DBC).expect("a DBC"),
            bus,
            way: None,
            count: None,
            wanted: BTreeMap::new(),
            seen: Observed::default(),
            heard_at: Instant::ZERO,
            turn: 0,
            was_asked: false,
            answer: 0,
        }
    }

    fn run(mut self, shared: &Mutex<Observed>, stop: &AtomicBool) {
        realtime::raise_thread("the test's rover", realtime::Urgency::Safety);
        let clock = Clock::start();
        while !stop.load(Ordering::Relaxed) {
            let now = clock.now();
            self.receive(now);
            self.step(now);
            self.send();
            *shared.lock().expect("nobody panics with it") = self.seen;
            clock.sleep_until(now + PERIOD);
        }
    }

    fn receive(&mut self, now: Instant) {
        let mut buffer = [0; 72];
        while let Ok((length, way)) = self.bus.recv_from(&mut buffer) {
            if self.way != Some(way) {
                (self.way, self.count) = (Some(way), None);
            }
            if let Ok(frame) = Frame::from_socketcan(&buffer[..length]) {
                self.take(&frame, now);
            }
        }
    }

    fn take(&mut self, frame: &Frame, now: Instant) {
        let message = self.database.messages().iter().find(|it| it.id() == frame.id());
        let message = message.expect("nobody sends others");
        let values: BTreeMap<String, f64> = message
            .decode(frame.data())
            .map(|(signal, raw)| {
                (format!("{}.{}", message.name(), signal.name()), signal.physical(raw))
            })
            .collect();
        if let Some(count) = values.get("TRACK_COMMAND.COUNTER") {
            let (count, sum) = (*count as u64, frame.data().iter().fold(0, |sum, it| sum ^ it));
            let is_next = self.count.is_none_or(|last| (last + 1) % 16 == count);
            self.count = Some(count);
            if sum != 0 || !is_next {
                self.seen.refused += 1;
                return;
            }
            self.heard_at = now;
        }
        self.wanted.extend(values);
    }

    /// Moves tracks and boom. The tracks stop by themselves 0.2 s after the last command.
    fn step(&mut self, now: Instant) {
        let of = |name: &str| self.wanted.get(name).copied().unwrap_or_default();
        let is_commanded = now.since(self.heard_at) <= Duration::from_millis(200)
            && of("TRACK_COMMAND.ENABLE") == 1.0;
        let seconds = PERIOD.as_secs_f64();
        for (track, name) in self.seen.tracks.iter_mut().zip(["LEFT", "RIGHT"]) {
            let wanted = of(&format!("TRACK_COMMAND.{name}"));
            let wanted = if is_commanded { wanted } else { 0.0 };
            *track += (wanted - *track).clamp(-ACCELERATION * seconds, ACCELERATION * seconds);
        }
        let (speed, yaw_rate) = self.seen.motion();
        self.seen.odometer += speed.abs() * seconds;
        self.seen.turned += yaw_rate.abs() * seconds;
        if of("BOOM_COMMAND.ENABLE") == 1.0 {
            self.seen.boom = of("BOOM_COMMAND.ANGLE");
        }
        self.seen.is_lit = of("TRACK_COMMAND.LIGHTS") == 1.0;
        let is_asked = of("TRACK_COMMAND.DOCK") == 1.0;
        if is_asked && !self.was_asked {
            let stands = self.seen.tracks == [0.0; 2];
            self.seen.is_docked |= stands;
            self.answer = if stands { 1 } else { 2 };
        } else if !is_asked {
            self.answer = 0;
        }
        self.was_asked = is_asked;
    }

    fn send(&mut self) {
        let Some(way) = self.way else { return };
        self.turn += 1;
        let (speed, yaw_rate) = self.seen.motion();
        let raw = |value: f64, scale: f64| u64::from((value / scale).round() as i16 as u16);
        let motion = [
            ("SPEED", raw(speed, 0.001)),
            ("TURN", raw(yaw_rate, 0.001)),
            ("COUNTER", self.turn % 16),
        ];
        let status = [
            ("BOOM", raw(self.seen.boom, 0.01)),
            ("LIGHTS", self.seen.is_lit.into()),
            ("DOCKING", self.answer),
            ("VOLTAGE", 4_810),
            ("STATE", self.seen.is_docked.into()),
        ];
        for (name, raws) in [("TRACK_STATUS", &motion[..]), ("ROVER_STATUS", &status)] {
            let message = self.database.messages().iter().find(|it| it.name() == name);
            let message = message.expect("it is in the DBC");
            let mut data = message.encode(raws);
            if name == "TRACK_STATUS" {
                data[7] = data[..7].iter().fold(0, |sum, it| sum ^ it);
            } else if !self.turn.is_multiple_of(5) {
                continue;
            }
            let frame = Frame::new(message.id(), Kind::Classic, &data).expect("a frame");
            let _ = self.bus.send_to(frame.to_socketcan().as_ref(), way);
        }
    }
}

const DBC: &str = include_str!("../../../../../../adapters/can/rover.dbc");
/// Distance of the tracks in metres.
const TRACK_WIDTH: f64 = 0.8;
/// Largest change of a track's speed in m/s².
const ACCELERATION: f64 = 4.0;
const PERIOD: Duration = Duration::from_millis(10);
