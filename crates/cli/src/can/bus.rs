//! A thread that exchanges frames with a bus, so that the machine's thread never waits for it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

use tautline_can::{Frame, Id};
use tautline_net::can_bus::{Accepted, Address, Bus, Received, Sent, Waker, wait};
use tautline_net::clock::Clock;
use tautline_net::realtime;
use tautline_units::Instant;

use super::health::Health;

/// The machine's end: gives frames to the bus and takes those of the bus, without waiting.
#[derive(Debug)]
pub(crate) struct Link {
    to_bus: SyncSender<Frame>,
    from_bus: Receiver<(Frame, Instant)>,
    waker: Waker,
    facts: Arc<Facts>,
}

/// Bus's end of the exchange of frames with the machine's thread; it runs on a thread of its own.
#[derive(Debug)]
pub(crate) struct Exchange {
    address: Address,
    accepted: Vec<Accepted>,
    from_machine: Receiver<Frame>,
    to_machine: SyncSender<(Frame, Instant)>,
    waker: Waker,
    facts: Arc<Facts>,
    health: Health,
    bus: Option<Bus>,
    open_at: Instant,
    /// Instant at which nothing more was waiting: frames that are read later came after it.
    drained_at: Instant,
    /// Frames that the full transmit queue has refused, and those not given to it yet.
    waiting: Vec<Frame>,
    /// Instant at which the machine's end has gone; `None` before.
    left_at: Option<Instant>,
}

/// Condition and counts of a bus, for other threads.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// True while the bus has worked for half a second or longer without a failure.
    pub(crate) is_sound: AtomicBool,
    /// Failures for which the bus was opened anew, or could not be opened.
    pub(crate) failures: AtomicU64,
    /// Reports of errors by the controller.
    pub(crate) errors: AtomicU64,
    /// Frames that were not sent since the bus was not open, or failed.
    pub(crate) away: AtomicU64,
    /// Frames that were not sent since a newer one of the same identifier followed while the
    /// transmit queue was full.
    pub(crate) superseded: AtomicU64,
    /// Frames that were not sent since the bus's thread did not take them.
    pub(crate) overflow: AtomicU64,
    /// Frames that were not received since the machine's thread did not take them, or that are no
    /// data frames.
    pub(crate) unread: AtomicU64,
}

/// Creates both ends of the exchange with a bus, from which frames of these identifiers are taken.
///
/// # Errors
/// When the system gives no file descriptor.
pub(crate) fn exchange(
    address: Address,
    ids: impl Iterator<Item = Id>,
) -> io::Result<(Link, Exchange)> {
    let (to_bus, from_machine) = sync_channel(FRAMES_MAX);
    let (to_machine, from_bus) = sync_channel(FRAMES_MAX);
    let (waker, facts) = (Waker::new()?, Arc::<Facts>::default());
    let link = Link { to_bus, from_bus, waker: waker.clone(), facts: facts.clone() };
    let accepted =
        ids.map(|id| Accepted { id: id.number(), is_extended: matches!(id, Id::Extended(_)) });
    let exchange = Exchange {
        accepted: accepted.collect(),
        health: Health::new(address.clone()),
        address,
        from_machine,
        to_machine,
        waker,
        facts,
        bus: None,
        open_at: Instant::ZERO,
        drained_at: Instant::ZERO,
        waiting: Vec::new(),
        left_at: None,
    };
    Ok((link, exchange))
}

impl Link {
    /// Returns the next frame that the bus has received, and when; `None` if none is waiting.
    pub(crate) fn receive(&self) -> Option<(Frame, Instant)> {
        self.from_bus.try_recv().ok()
    }

    /// Queues frames for the bus's thread. Returns false, and counts the frames that did not fit,
    /// if the queue is full or that thread has ended.
    pub(crate) fn send(&self, frames: impl IntoIterator<Item = Frame>) -> bool {
        let mut overflow = 0;
        for frame in frames {
            match self.to_bus.try_send(frame) {
                Ok(()) => {}
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => overflow += 1,
            }
        }
        self.waker.wake();
        self.facts.overflow.fetch_add(overflow, Ordering::Relaxed);
        overflow == 0
    }

    /// Returns condition and counts of the bus.
    pub(crate) fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }
}

impl Exchange {
    /// Exchanges frames until the machine's end has gone and the last frames are sent, for which
    /// there are 0.2 s. A failure of the bus ends nothing.
    pub(crate) fn run(mut self, clock: Clock) {
        realtime::raise_thread("the bus", realtime::Urgency::Safety);
        loop {
            let now = clock.now();
            self.take(now);
            self.turn(now);
            let is_over = |left_at| self.waiting.is_empty() || now.since(left_at) >= LAST_MAX;
            if self.left_at.is_some_and(is_over) {
                return;
            }
            wait(self.bus.as_ref(), &self.waker, self.longest(now));
        }
    }

    /// Takes the machine's new frames, in place of waiting ones of the same identifiers, which are
    /// counted as superseded. Notes `now` if the machine's end has gone.
    fn take(&mut self, now: Instant) {
        let mut taken = Vec::new();
        loop {
            match self.from_machine.try_recv() {
                Ok(frame) => taken.push(frame),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.left_at.get_or_insert(now);
                    break;
                }
            }
        }
        let before = self.waiting.len();
        self.waiting.retain(|old| taken.iter().all(|new| new.id() != old.id()));
        count(&self.facts.superseded, before - self.waiting.len());
        self.waiting.append(&mut taken);
    }

    fn turn(&mut self, now: Instant) {
        if self.bus.is_none() && now >= self.open_at {
            match Bus::open(&self.address, &self.accepted) {
                Ok(bus) => {
                    self.bus = Some(bus);
                    self.drained_at = now;
                    self.health.work(now);
                }
                Err(error) => self.fail(&error, now),
            }
        }
        if let Err(error) = self.receive(now).and_then(|()| self.send(now)) {
            self.fail(&error, now);
        }
        if self.bus.is_none() {
            count(&self.facts.away, self.waiting.len());
            self.waiting.clear();
        }
        self.health.settle(now);
        self.facts.is_sound.store(self.health.is_sound(), Ordering::Relaxed);
    }

    fn receive(&mut self, now: Instant) -> io::Result<()> {
        let Some(bus) = &mut self.bus else { return Ok(()) };
        let mut buffer = [0; Bus::BYTES_MAX];
        for _ in 0..FRAMES_MAX {
            match bus.receive(&mut buffer)? {
                None => {
                    self.drained_at = now;
                    break;
                }
                Some(Received::Frame { length, age }) => {
                    self.health.hear(now);
                    // The kernel's stamp is by a clock that may be set meanwhile.
                    let at = now - age.min(now.since(self.drained_at));
                    let frame = Frame::from_socketcan(&buffer[..length]).ok();
                    let given = frame.is_some_and(|it| self.to_machine.try_send((it, at)).is_ok());
                    count(&self.facts.unread, usize::from(!given));
                }
                Some(Received::BusOff) => {
                    count(&self.facts.errors, 1);
                    self.health.off();
                }
                Some(Received::Restarted) => self.health.hear(now),
                Some(Received::Error) => count(&self.facts.errors, 1),
            }
        }
        Ok(())
    }

    fn send(&mut self, now: Instant) -> io::Result<()> {
        let Some(bus) = &mut self.bus else { return Ok(()) };
        while let Some(frame) = self.waiting.first() {
            match bus.send(frame.to_socketcan().as_ref())? {
                Sent::Accepted => self.health.work(now),
                Sent::Full => {
                    self.health.refuse(now);
                    break;
                }
            }
            self.waiting.remove(0);
        }
        Ok(())
    }

    /// Closes the bus because of `error`, and counts and logs the failure; the bus is opened anew
    /// after 0.2 s.
    fn fail(&mut self, error: &io::Error, now: Instant) {
        self.bus = None;
        self.open_at = now + RETRY;
        count(&self.facts.failures, 1);
        self.health.fail(match help(error) {
            "" => error.to_string(),
            help => format!("{error}: {help}"),
        });
    }

    /// Returns how long the thread may wait if nothing happens.
    fn longest(&self, now: Instant) -> Duration {
        match (&self.bus, self.waiting.is_empty()) {
            (None, _) => self.open_at.since(now),
            (Some(_), false) => REFUSED_RETRY,
            (Some(_), true) => LOOK,
        }
    }
}

/// Returns what a person can do about an error; empty if the error says it.
fn help(error: &io::Error) -> &'static str {
    use rustix::io::Errno;
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    match error {
        _ if is(Errno::AFNOSUPPORT) => "the kernel has no CAN (modprobe can_raw)",
        _ if is(Errno::NODEV) => "`ip link` lists the interfaces",
        _ if is(Errno::NETDOWN) => "`ip link set can0 up type can bitrate 500000` starts can0",
        _ if is(Errno::INVAL) => "the interface does not take CAN FD, or is no CAN interface",
        _ if is(Errno::CONNREFUSED) => "no simulator listens there",
        _ => "",
    }
}

fn count(counter: &AtomicU64, frames: usize) {
    counter.fetch_add(frames as u64, Ordering::Relaxed);
}

/// Maximum number of frames that wait in each direction, beyond which they are dropped and counted:
/// a full bus of 1 Mbit/s carries 80 short ones in 10 ms.
const FRAMES_MAX: usize = 1_024;
/// Pause before a bus that failed is opened anew.
const RETRY: Duration = Duration::from_millis(200);
/// Pause before a frame is given again to a transmit queue that was full: eight frames at 1 Mbit/s.
const REFUSED_RETRY: Duration = Duration::from_millis(1);
/// Maximum wait for a bus on which nothing happens.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum time for which the bus's thread still sends the last frames after the machine's end has
/// gone.
const LAST_MAX: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use tautline_can::Kind;

    use super::*;

    /// Creates both ends of an exchange with a simulator.
    fn rig() -> (UdpSocket, Link, Exchange) {
        let simulator = UdpSocket::bind("127.0.0.1:0").unwrap();
        simulator.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let address = Address::Udp(simulator.local_addr().unwrap());
        let (link, exchange) = exchange(address, std::iter::empty()).unwrap();
        (simulator, link, exchange)
    }

    fn frame(id: u16, data: &[u8]) -> Frame {
        Frame::new(Id::Standard(id), Kind::Classic, data).unwrap()
    }

    fn value(facts: &AtomicU64) -> u64 {
        facts.load(Ordering::Relaxed)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn frames_pass_both_ways_and_the_last_ones_before_the_end() {
        let (simulator, link, exchange) = rig();
        let thread = std::thread::spawn(move || exchange.run(Clock::start()));
        let mut buffer = [0; 72];
        let (_, way) = simulator.recv_from(&mut buffer).unwrap();
        simulator.send_to(frame(1, &[8]).to_socketcan().as_ref(), way).unwrap();
        let received = (0..10_000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            link.receive()
        });
        assert_eq!(received.map(|(frame, _)| frame), Some(frame(1, &[8])));
        assert!(link.send([frame(2, &[1]), frame(2, &[2])]));
        drop(link);
        for expected in [[1], [2]] {
            let length = simulator.recv(&mut buffer).unwrap();
            let sent = Frame::from_socketcan(&buffer[..length]).unwrap();
            assert_eq!(sent, frame(2, &expected), "two pages of a message");
        }
        thread.join().unwrap();
    }

    #[test]
    fn newer_frames_replace_those_that_were_refused() {
        let (_simulator, link, mut exchange) = rig();
        exchange.waiting = vec![frame(1, &[1]), frame(2, &[1])];
        link.send([frame(1, &[2]), frame(3, &[2])]);
        exchange.take(at(0));
        assert_eq!(exchange.waiting, [frame(2, &[1]), frame(1, &[2]), frame(3, &[2])]);
        assert_eq!(value(&link.facts().superseded), 1);
    }

    #[test]
    fn a_bus_that_does_not_open_is_tried_again() {
        let address = Address::Interface("can-never".into());
        let (link, mut exchange) = exchange(address, std::iter::empty()).unwrap();
        link.send([frame(1, &[])]);
        for millis in [0, 100, 199, 200, 399] {
            exchange.take(at(millis));
            exchange.turn(at(millis));
        }
        let facts = link.facts();
        assert_eq!((value(&facts.failures), value(&facts.away)), (2, 1));
        assert!(!facts.is_sound.load(Ordering::Relaxed));
        let failed = "No such device (os error 19): `ip link` lists the interfaces";
        assert!(format!("{exchange:?}").contains(failed), "{exchange:?}");
    }

    #[test]
    fn a_machine_that_takes_no_frames_is_counted_and_bounded() {
        let (simulator, link, mut exchange) = rig();
        exchange.turn(at(0));
        let mut buffer = [0; 72];
        let (_, way) = simulator.recv_from(&mut buffer).unwrap();
        for _ in 0..FRAMES_MAX + 7 {
            simulator.send_to(frame(1, &[]).to_socketcan().as_ref(), way).unwrap();
            exchange.turn(at(1));
        }
        simulator.send_to(&[1; 5], way).unwrap();
        while value(&link.facts().unread) < 8 {
            exchange.turn(at(2));
        }
        assert_eq!(std::iter::from_fn(|| link.receive()).count(), FRAMES_MAX);
    }

    #[test]
    fn a_bus_thread_that_hangs_is_noticed() {
        let (_simulator, link, exchange) = rig();
        assert!(link.send(std::iter::repeat_n(frame(1, &[]), FRAMES_MAX)));
        assert!(!link.send([frame(1, &[])]));
        assert_eq!(value(&link.facts().overflow), 1);
        drop(exchange);
    }
}
