use std::collections::VecDeque;
use std::time::Duration;

use tautline_guard::description::{ACTIONS_MAX, AXES_MAX, Entry, VALUES_MAX};
use tautline_guard::frame::{
    Description, Fact, Frame, Receiver, Sender as Counter, Value, is_called,
};
use tautline_net::datagram::{Sender, Server};
use tautline_units::Instant;

/// The guard's end towards the vehicle or the machine: one peer at a time.
#[derive(Debug)]
pub(crate) struct End<In> {
    server: Server,
    peer: Option<Peer<In>>,
    fact: Option<Fact>,
    entries: VecDeque<Entry>,
    values: VecDeque<Value>,
    counts: Counts,
}

/// Current peer, the sender of accepted frames; another one is accepted only after this one has
/// been silent for [`HOLD`].
#[derive(Debug)]
struct Peer<In> {
    sender: Sender,
    heard_at: Instant,
    receiver: Receiver<In>,
    facts: Receiver<Fact>,
    entries: Receiver<Description>,
    values: Receiver<Value>,
    counters: Counters,
}

/// Counters of the frames sent to a peer, by kind.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    main: Counter,
    entries: Counter,
    values: Counter,
}

/// Counts since the start of the frames that an end of a guard refused or could not send.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Frames of the peer that were invalid, incomplete or repeated, and so refused.
    pub refused: u64,
    /// Frames of another sender while the peer is active, or invalid frames while there is no peer.
    pub foreign: u64,
    /// Frames that the system did not send.
    pub unsent: u64,
    /// Values out of range in accepted frames: they are treated as unknown.
    pub impossible: u64,
    /// Accepted frames with trailing numbers unknown to this build.
    pub skipped: u64,
    /// Entries of a description and readings that were dropped, the oldest first, because too many
    /// arrived within a step.
    pub dropped: u64,
}

impl<In: Frame> End<In> {
    pub(crate) fn new(server: Server) -> Self {
        Self {
            server,
            peer: None,
            fact: None,
            entries: VecDeque::new(),
            values: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Receives all waiting datagrams, at most [`DATAGRAMS_MAX`]; returns the newest valid frame of
    /// the peer, or `None` if none has arrived.
    ///
    /// The clock is read after each datagram. With an earlier reading, a datagram that arrives
    /// while this thread is paused would look early.
    pub(crate) fn receive(&mut self, clock: impl Fn() -> Instant) -> Option<In> {
        let mut buffer = [0; BYTES_MAX];
        let mut newest = None;
        for _ in 0..DATAGRAMS_MAX {
            let Some((length, sender)) = self.server.receive(&mut buffer) else { break };
            newest = self.take(&buffer[..length], sender, clock()).or(newest);
        }
        newest
    }

    /// Removes and returns the newest fact from the peer since the last call, for the black box;
    /// `None` without one.
    pub(crate) fn take_fact(&mut self) -> Option<Fact> {
        self.fact.take()
    }

    /// Removes and returns the oldest entry of the peer's description that waits; `None` without
    /// one.
    pub(crate) fn take_entry(&mut self) -> Option<Entry> {
        self.entries.pop_front()
    }

    /// Removes and returns the oldest reading of the peer that waits; `None` without one.
    pub(crate) fn take_value(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    /// Sends a frame to the peer, if there is one; counts it if the system does not send it.
    pub(crate) fn send<Out: Frame>(&mut self, frame: &Out) {
        self.send_by(|counters| &mut counters.main, frame);
    }

    /// Sends an entry of a description as [`send`](Self::send) does.
    pub(crate) fn send_entry(&mut self, description: &Description) {
        self.send_by(|counters| &mut counters.entries, description);
    }

    /// Sends a reading as [`send`](Self::send) does.
    pub(crate) fn send_value(&mut self, value: &Value) {
        self.send_by(|counters| &mut counters.values, value);
    }

    fn send_by<Out: Frame>(&mut self, of: fn(&mut Counters) -> &mut Counter, frame: &Out) {
        let Some(peer) = &mut self.peer else { return };
        let bytes = of(&mut peer.counters).encode(frame);
        if !self.server.send(bytes.as_ref(), &peer.sender) {
            self.counts.unsent += 1;
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    fn take(&mut self, bytes: &[u8], sender: Sender, now: Instant) -> Option<In> {
        let peer = self
            .peer
            .as_mut()
            .filter(|peer| now.since(peer.heard_at) < HOLD || peer.sender == sender);
        match peer {
            Some(peer) if peer.sender == sender && is_called::<Fact>(bytes) => {
                let fact = peer.facts.receive(bytes);
                self.counts.refused += u64::from(fact.is_err());
                self.fact = fact.ok().or(self.fact);
                None
            }
            Some(peer) if peer.sender == sender && is_called::<Description>(bytes) => {
                let entry = peer.entries.receive(bytes).map(|description| description.entry);
                keep(&mut self.entries, entry.ok(), &mut self.counts);
                None
            }
            Some(peer) if peer.sender == sender && is_called::<Value>(bytes) => {
                let value = peer.values.receive(bytes);
                keep(&mut self.values, value.ok(), &mut self.counts);
                None
            }
            Some(peer) if peer.sender == sender => {
                let impossible_before = peer.receiver.impossible_count();
                let received = peer.receiver.receive(bytes);
                self.counts.impossible += peer.receiver.impossible_count() - impossible_before;
                self.counts.refused += u64::from(received.is_err());
                self.counts.skipped += u64::from(received.is_ok() && bytes.len() > In::BYTES);
                peer.heard_at = if received.is_ok() { now } else { peer.heard_at };
                received.ok()
            }
            Some(_) => {
                self.counts.foreign += 1;
                None
            }
            None => {
                let mut receiver = Receiver::default();
                let Ok(frame) = receiver.receive(bytes) else {
                    self.counts.foreign += 1;
                    return None;
                };
                self.peer = Some(Peer {
                    sender,
                    heard_at: now,
                    receiver,
                    facts: Receiver::default(),
                    entries: Receiver::default(),
                    values: Receiver::default(),
                    counters: Counters::default(),
                });
                Some(frame)
            }
        }
    }
}

/// Adds a received frame to its queue, and drops the oldest if the queue is full; `None` stands for
/// a refused frame, which is only counted.
fn keep<T>(queue: &mut VecDeque<T>, received: Option<T>, counts: &mut Counts) {
    let Some(received) = received else {
        counts.refused += 1;
        return;
    };
    if queue.len() == QUEUED_MAX {
        queue.pop_front();
        counts.dropped += 1;
    }
    queue.push_back(received);
}

/// Maximum number of entries, and of readings, that wait: all that a machine can declare.
const QUEUED_MAX: usize = AXES_MAX + ACTIONS_MAX + VALUES_MAX;
/// Silence after which a peer may be replaced by another: ten frames.
const HOLD: Duration = Duration::from_millis(100);
/// Maximum datagrams per step: three times the arrivals of a tenth of a second. The rest waits for
/// the next step, in the socket's own bounded queue.
const DATAGRAMS_MAX: usize = 32;
/// Size of the receive buffer, longer than every frame: the length of a truncated datagram then
/// differs from the one in its header.
const BYTES_MAX: usize = Fact::BYTES + 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tautline_guard::frame::{About, Control};
    use tautline_net::datagram::Client;

    use super::*;

    struct Rig {
        end: End<Control>,
        address: tautline_net::datagram::Address,
    }

    fn rig() -> Rig {
        let server = Server::open(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let address = server.local_address().unwrap();
        Rig { end: End::new(server), address }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Sends and receives; loopback delivers before the call returns.
    fn exchange(rig: &mut Rig, client: &mut Client, bytes: &[u8], now: Instant) -> Option<Control> {
        assert!(client.send(bytes));
        rig.end.receive(|| now)
    }

    #[test]
    fn one_peer_is_accepted_at_a_time_the_next_after_silence() {
        let mut rig = rig();
        let (mut first, mut second) = (Client::new(&rig.address), Client::new(&rig.address));
        let (mut counter, mut other) = (Counter::default(), Counter::default());
        let frame = Control::default();
        let mut say = |rig: &mut Rig, now| exchange(rig, &mut first, &counter.encode(&frame), now);
        assert!(say(&mut rig, at(0)).is_some());
        assert!(exchange(&mut rig, &mut second, &other.encode(&frame), at(10)).is_none());
        assert!(say(&mut rig, at(90)).is_some());
        assert!(exchange(&mut rig, &mut second, &other.encode(&frame), at(180)).is_none());
        assert!(exchange(&mut rig, &mut second, &other.encode(&frame), at(190)).is_some());
        assert!(say(&mut rig, at(200)).is_none(), "it lost its place");
        assert_eq!(rig.end.counts().foreign, 3);
        rig.end.send(&frame);
        let mut buffer = [0; 256];
        assert_eq!(second.receive(&mut buffer), Some(Control::BYTES));
    }

    #[test]
    fn of_several_frames_the_newest_counts() {
        let mut rig = rig();
        let (mut client, mut counter) = (Client::new(&rig.address), Counter::default());
        for millis in 1..=5 {
            let frame = Control { source: at(millis), ..Control::default() };
            client.send(&counter.encode(&frame));
        }
        client.send(b"no frame");
        assert_eq!(rig.end.receive(|| at(9)).map(|frame| frame.source), Some(at(5)));
        assert_eq!(rig.end.counts().refused, 1);
        assert_eq!(rig.end.receive(|| at(9)), None);
    }

    #[test]
    fn facts_are_accepted_only_from_the_peer_and_keep_no_peer_alive() {
        let mut rig = rig();
        let (mut client, mut counter, mut facts) =
            (Client::new(&rig.address), Counter::default(), Counter::default());
        let fact = |text| Fact::new(About::Network, text, at(0)).unwrap();
        assert!(exchange(&mut rig, &mut client, &facts.encode(&fact("{}")), at(0)).is_none());
        assert!(rig.end.peer.is_none() && rig.end.take_fact().is_none(), "nobody's");
        let frame = Control::default();
        assert!(exchange(&mut rig, &mut client, &counter.encode(&frame), at(10)).is_some());
        client.send(&facts.encode(&fact("{\"a\":1}")));
        client.send(&facts.encode(&fact("{\"a\":2}")));
        assert!(exchange(&mut rig, &mut client, &counter.encode(&frame), at(20)).is_some());
        assert_eq!(rig.end.take_fact().map(|fact| fact.text().len()), Some(7));
        assert!(rig.end.take_fact().is_none());
        client.send(&facts.encode(&fact("{}")));
        rig.end.receive(|| at(110));
        let mut other = Client::new(&rig.address);
        let came = exchange(&mut rig, &mut other, &Counter::default().encode(&frame), at(125));
        assert!(came.is_some(), "who only tells facts is silent");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn any_bytes_are_taken_without_panic_and_make_no_peer(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut rig = rig();
            let mut client = Client::new(&rig.address);
            prop_assert!(exchange(&mut rig, &mut client, &bytes, at(0)).is_none());
            prop_assert!(rig.end.peer.is_none());
        }
    }
}
