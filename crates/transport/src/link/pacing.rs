use std::collections::VecDeque;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// A packet, not yet sealed, in a link's paced or urgent queue, or before that in a channel's lane.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) plaintext: Vec<u8>,
    pub(crate) deadline: Instant,
    /// Number of the packet's unit within its channel.
    pub(crate) unit: u64,
    /// Index of the condition that the link was in when the packet was queued; see
    /// `link/on_time.rs`.
    pub(crate) standing: u8,
    /// True if the packet was also resent over another link.
    pub(crate) again: bool,
}

impl Entry {
    /// Returns the length of the datagram that carries the packet alone.
    pub(crate) fn datagram_bytes(&self) -> ByteCount {
        let around = crate::wire::SEALED_HEADER_BYTES + crate::wire::TAG_BYTES;
        ByteCount::new((self.plaintext.len() + around) as u64)
    }
}

/// Media queue of one link, paced at the link's rate.
#[derive(Debug)]
pub(crate) struct Pacer {
    queue: VecDeque<Entry>,
    /// Bytes of the queue's datagrams.
    queued: u64,
    /// Time from which the rate allows the next datagram: at the rate, all previous ones have been
    /// sent by then.
    next_at: Instant,
    rate: Bitrate,
    /// Maximum delay of a send time that the following datagrams make up for.
    burst: Duration,
    /// Number of packets ever queued.
    given: u64,
}

impl Pacer {
    pub(crate) fn new(rate: Bitrate, now: Instant) -> Self {
        Self { queue: VecDeque::new(), queued: 0, next_at: now, rate, burst: BURST, given: 0 }
    }

    /// Changes the rate, and scales the remaining wait for the next datagram in inverse proportion;
    /// a rate of zero leaves the wait as it is.
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

    /// Returns the number of packets ever queued.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// Returns the number of packets queued at present.
    pub(crate) fn waiting(&self) -> u64 {
        self.queue.len() as u64
    }

    /// Returns when everything queued will have been sent: the anticipated transmission end of
    /// [LTE].
    pub(crate) fn free_at(&self, now: Instant) -> Instant {
        self.next_at.max(now) + self.rate.time_for(self.queued())
    }

    /// Queues a packet, or returns it if the queue is full.
    ///
    /// The queue is ordered by deadline, and first-in first-out among equals.
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

    /// Returns when everything queued with a deadline up to `deadline` will have been sent.
    pub(crate) fn free_before(&self, deadline: Instant, now: Instant) -> Instant {
        let ahead = self.queue.iter().take_while(|entry| entry.deadline <= deadline);
        let bytes = ByteCount::new(ahead.map(datagram_bytes).sum());
        self.next_at.max(now) + self.rate.time_for(bytes)
    }

    /// Returns whether the rate allows a datagram now.
    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        now >= self.next_at
    }

    /// Returns when the rate allows the next datagram; `None` if the queue is empty.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.next_at)
    }

    /// Returns when the rate allows the next datagram, even if the queue is empty.
    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Returns the number of queued packets of media unit `unit`.
    pub(crate) fn holds(&self, unit: u64) -> usize {
        self.queue.iter().filter(|entry| entry.unit == unit).count()
    }

    /// Returns the length of the next packet's datagram; `None` if the queue is empty.
    pub(crate) fn next_bytes(&self) -> Option<ByteCount> {
        self.queue.front().map(Entry::datagram_bytes)
    }

    /// Removes and returns the packet with the earliest deadline; `None` if the queue is empty.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let entry = self.queue.pop_front()?;
        self.queued -= datagram_bytes(&entry);
        Some(entry)
    }

    /// Records that a datagram of `bytes` bytes was sent, of any kind, which delays the next one.
    ///
    /// A datagram sent later than the rate allowed shortens the following waits by the delay, at
    /// most by `burst`.
    pub(crate) fn on_sent(&mut self, bytes: usize, now: Instant) {
        let from = self.next_at.max(now - self.burst);
        self.next_at = from + self.rate.time_for(ByteCount::new(bytes as u64));
    }

    /// Limits bursts to [`BURST_MARKED`] from now on: the network marks packets sent back to back
    /// ([RFC9331] 4.3).
    pub(crate) fn limit_bursts(&mut self) {
        self.burst = BURST_MARKED;
    }

    /// Takes back the delay by the last datagram, of `bytes` bytes, as if it had not been sent.
    pub(crate) fn unsend(&mut self, bytes: usize) {
        self.next_at = self.next_at - self.rate.time_for(ByteCount::new(bytes as u64));
    }
}

/// Unpaced packets of one link; a full queue drops the oldest.
#[derive(Debug, Default)]
pub(crate) struct UrgentQueue {
    queue: VecDeque<Entry>,
}

impl UrgentQueue {
    /// Queues a packet; returns the oldest one if the queue was full and had to drop it.
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

/// Maximum number of media packets in a queue, which refuses a further one: eight times the largest
/// block; deadlines keep queues far shorter.
const ENTRIES_MAX: usize = 2_048;
const URGENT_MAX: usize = 64;
/// Maximum delay of a send time that the following datagrams make up for: that of a timer on a busy
/// machine.
const BURST: Duration = Duration::from_millis(2);
/// Maximum delay of a send time that the following datagrams make up for once the network marks
/// packets: less than one packet takes at 10 Mbit/s, as a second one would wait for the first.
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
