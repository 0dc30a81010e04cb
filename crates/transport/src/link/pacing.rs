use std::collections::VecDeque;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// A packet that waits for its link: plaintext, and when it is worthless.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) plaintext: Vec<u8>,
    pub(crate) deadline: Instant,
    /// The unit's number within its channel.
    pub(crate) unit: u64,
    /// What was known of the link when the packet was given to it: see `link/on_time.rs`.
    pub(crate) standing: u8,
    /// Whether another packet went over another link in its place already.
    pub(crate) again: bool,
}

impl Entry {
    /// Returns the bytes of its datagram.
    pub(crate) fn datagram_bytes(&self) -> ByteCount {
        let around = crate::wire::SEALED_HEADER_BYTES + crate::wire::TAG_BYTES;
        ByteCount::new((self.plaintext.len() + around) as u64)
    }
}

/// Media packets of one link, sent no faster than its rate.
#[derive(Debug)]
pub(crate) struct Pacer {
    queue: VecDeque<Entry>,
    /// Bytes of the queue's datagrams.
    queued: u64,
    /// When the link has sent all that went before, at its rate.
    next_at: Instant,
    rate: Bitrate,
    /// How much may be caught up with at once.
    burst: Duration,
    /// Packets taken, ever.
    given: u64,
}

impl Pacer {
    pub(crate) fn new(rate: Bitrate, now: Instant) -> Self {
        Self { queue: VecDeque::new(), queued: 0, next_at: now, rate, burst: BURST, given: 0 }
    }

    /// Changes the rate; what the last datagram still holds up is scaled with it.
    pub(crate) fn set_rate(&mut self, rate: Bitrate, now: Instant) {
        let held = self.next_at.since(now);
        if !held.is_zero() && rate > Bitrate::ZERO {
            self.next_at = now + held.mul_f64(self.rate.as_f64() / rate.as_f64());
        }
        self.rate = rate;
    }

    pub(crate) fn rate(&self) -> Bitrate {
        self.rate
    }

    pub(crate) fn queued(&self) -> ByteCount {
        ByteCount::new(self.queued)
    }

    /// Returns how many packets were taken, ever.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// Returns how many packets wait.
    pub(crate) fn waiting(&self) -> u64 {
        self.queue.len() as u64
    }

    /// Returns when the link will have sent all that waits: the paper's anticipated transmission
    /// end.
    pub(crate) fn free_at(&self, now: Instant) -> Instant {
        self.next_at.max(now) + self.rate.time_for(self.queued())
    }

    /// Takes a packet, or gives it back if the queue is full.
    ///
    /// The queue is in order of deadlines; among equals the first to come is the first to go.
    pub(crate) fn push(&mut self, entry: Entry) -> Result<(), Entry> {
        if self.queue.len() >= ENTRIES_MAX {
            return Err(entry);
        }
        self.queued += datagram_bytes(&entry);
        self.given += 1;
        let later = self.queue.iter().rev().take_while(|other| other.deadline > entry.deadline);
        let place = self.queue.len() - later.count();
        self.queue.insert(place, entry);
        Ok(())
    }

    /// Returns when the link will have sent all that waits and is due by `deadline`.
    pub(crate) fn free_before(&self, deadline: Instant, now: Instant) -> Instant {
        let ahead = self.queue.iter().take_while(|entry| entry.deadline <= deadline);
        let bytes = ByteCount::new(ahead.map(datagram_bytes).sum());
        self.next_at.max(now) + self.rate.time_for(bytes)
    }

    /// Returns whether the rate allows a datagram now.
    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        now >= self.next_at
    }

    /// Returns when the rate allows the next datagram; `None` if nothing waits.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.next_at)
    }

    /// Returns when the rate allows the next datagram, whether or not one waits.
    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Returns how many packets of a unit wait.
    pub(crate) fn holds(&self, unit: u64) -> usize {
        self.queue.iter().filter(|entry| entry.unit == unit).count()
    }

    /// Returns the bytes of the next packet's datagram.
    pub(crate) fn next_bytes(&self) -> Option<ByteCount> {
        self.queue.front().map(Entry::datagram_bytes)
    }

    /// Takes the next packet off the queue.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let entry = self.queue.pop_front()?;
        self.queued -= datagram_bytes(&entry);
        Some(entry)
    }

    /// Notes that a datagram of `bytes` bytes left, of whatever kind.
    ///
    /// A caller that comes late may catch up by the burst, no more.
    pub(crate) fn on_sent(&mut self, bytes: usize, now: Instant) {
        let from = self.next_at.max(now - self.burst);
        self.next_at = from + self.rate.time_for(ByteCount::new(bytes as u64));
    }

    /// Lets hardly anything be caught up with from now on: the network marks what comes at once ([RFC9331] 4.3).
    pub(crate) fn limit_bursts(&mut self) {
        self.burst = BURST_MARKED;
    }

    /// Takes back that the last datagram, of `bytes` bytes, took some of the rate.
    pub(crate) fn unsend(&mut self, bytes: usize) {
        self.next_at = self.next_at - self.rate.time_for(ByteCount::new(bytes as u64));
    }
}

/// Packets of one link that wait for no pace: the oldest is dropped when there are too many.
#[derive(Debug, Default)]
pub(crate) struct UrgentQueue {
    queue: VecDeque<Entry>,
}

impl UrgentQueue {
    /// Takes a packet; gives the one it pushed out.
    pub(crate) fn push(&mut self, entry: Entry) -> Option<Entry> {
        let pushed_out = match self.queue.len() >= URGENT_MAX {
            true => self.queue.pop_front(),
            false => None,
        };
        self.queue.push_back(entry);
        pushed_out
    }

    pub(crate) fn front(&self) -> Option<&Entry> {
        self.queue.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.queue.pop_front()
    }
}

fn datagram_bytes(entry: &Entry) -> u64 {
    entry.datagram_bytes().get()
}

/// The largest block eight times over; deadlines keep queues far shorter.
const ENTRIES_MAX: usize = 2_048;
const URGENT_MAX: usize = 64;
/// A timer of a busy machine comes a millisecond or two late.
const BURST: Duration = Duration::from_millis(2);
/// Less than a packet of 10 Mbit/s: a second one would wait for the first.
const BURST_MARKED: Duration = Duration::from_micros(250);

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(bytes: usize) -> Entry {
        Entry {
            plaintext: vec![0; bytes - 23],
            deadline: Instant::from_millis(500),
            unit: 0,
            standing: 0,
            again: false,
        }
    }

    #[test]
    fn a_full_queue_leaves_at_the_rate() {
        let mut now = Instant::from_millis(10);
        let mut pacer = Pacer::new(Bitrate::from_mbps(8), now);
        for _ in 0..100 {
            pacer.push(entry(1_000)).unwrap();
        }
        assert_eq!(pacer.free_at(now), Instant::from_millis(110));
        for sent in 0..100 {
            assert_eq!(pacer.due_at(), Some(Instant::from_millis(10 + sent)));
            now = pacer.due_at().unwrap();
            assert!(pacer.is_ready(now) && !pacer.is_ready(now - Duration::from_nanos(1)));
            let entry = pacer.pop().unwrap();
            pacer.on_sent(entry.plaintext.len() + 23, now);
        }
        assert_eq!((pacer.queued(), pacer.due_at()), (ByteCount::ZERO, None));
    }

    #[test]
    fn a_late_caller_catches_up_by_two_milliseconds_only() {
        let mut pacer = Pacer::new(Bitrate::from_mbps(8), Instant::ZERO);
        let now = Instant::from_millis(100);
        let mut burst = 0;
        while pacer.is_ready(now) {
            pacer.on_sent(1_000, now);
            burst += 1;
        }
        assert_eq!(burst, 3);
    }

    #[test]
    fn queues_are_bounded() {
        let mut pacer = Pacer::new(Bitrate::from_mbps(8), Instant::ZERO);
        for _ in 0..ENTRIES_MAX {
            pacer.push(entry(100)).unwrap();
        }
        assert!(pacer.push(entry(100)).is_err());
        let mut urgent = UrgentQueue::default();
        let pushed_out = (0..100).filter_map(|_| urgent.push(entry(100))).count();
        assert_eq!(pushed_out, 100 - URGENT_MAX);
    }
}
