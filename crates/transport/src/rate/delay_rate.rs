use std::collections::VecDeque;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::{Controller, Evidence, Grant};

/// Our rate control: what arrives while a queue stands is the capacity, and a queue that grows is
/// seen in the delay before anything is lost.
///
/// It keeps an estimate of the link's capacity. While the delay of the last 60 ms shows a standing
/// queue, the link is busy all the time, and the rate at which datagrams arrive is the capacity;
/// the estimate follows it. While there is no queue, the estimate grows, never beyond twice what
/// arrives: an application that sends little learns little. Media gets nine tenths of it, less
/// while a queue drains; and no more may be on its way than the link delivers within its least
/// round trip, a report's interval and a little: a link that falls silent gets nothing after one
/// round trip.
#[derive(Debug, Clone)]
pub struct DelayRate {
    ceiling: f64,
    /// The estimate, bit/s.
    capacity: f64,
    /// By the peer's clock: when a report was taken, and the bytes that had arrived.
    arrived: Meter,
    /// By our clock: when a report came, and the bytes that had left.
    left: Meter,
    /// The highest that the estimate was of late, fading.
    former: f64,
    /// By our clock: transit times in nanoseconds, of the last [`SPAN`].
    transits: VecDeque<(Instant, i64)>,
    least: Least,
    reported_at: Option<Instant>,
    rtt_min: Duration,
    queue: Duration,
    /// Since when a queue has stood without growing although little is sent.
    stuck_since: Option<Instant>,
}

/// The least transit of the last ten seconds, by the half second.
#[derive(Debug, Clone, Default)]
struct Least {
    slots: VecDeque<(u64, i64)>,
}

impl DelayRate {
    /// Begins at `initial` and stays below `ceiling`.
    pub fn new(initial: Bitrate, ceiling: Bitrate) -> Self {
        Self {
            ceiling: ceiling.as_f64(),
            capacity: initial.as_f64(),
            arrived: Meter::default(),
            left: Meter::default(),
            former: initial.as_f64(),
            transits: VecDeque::new(),
            least: Least::default(),
            reported_at: None,
            rtt_min: RTT_GUESS,
            queue: Duration::ZERO,
            stuck_since: None,
        }
    }

    fn grant(&self) -> Grant {
        let over = self.queue.saturating_sub(QUEUE_SEEN).as_secs_f64();
        let drain = match self.queue > QUEUE_FREE {
            true => (1.0 - over / QUEUE_SPAN.as_secs_f64()).max(DRAIN_LEAST),
            false => 1.0,
        };
        let rate = Bitrate::from_bps((self.capacity * SHARE * drain) as u64);
        let span = self.rtt_min + FEEDBACK + SLACK;
        let window = ByteCount::new((self.capacity * span.as_secs_f64() / 8.0) as u64);
        let window = window.max(ByteCount::new(WINDOW_LEAST));
        Grant { rate, sustained: rate, window: Some(window), probing: false }
    }

    /// Measures how long datagrams wait in the link's queue.
    fn measure_queue(&mut self, evidence: &Evidence) {
        if let Some(transit) = evidence.transit {
            self.least.observe(transit, evidence.now);
            self.transits.push_back((evidence.now, transit));
        }
        while self.transits.len() > 1
            && self.transits.front().is_some_and(|(at, _)| evidence.now.since(*at) > SPAN)
        {
            self.transits.pop_front();
        }
        let of_late = self.transits.iter().map(|(_, transit)| *transit).min();
        if let (Some(of_late), Some(least)) = (of_late, self.least.get()) {
            self.queue = Duration::from_nanos(of_late.saturating_sub(least).max(0) as u64);
        }
    }

    /// Forgets the least delay where a queue stays although little is sent: the way has become
    /// longer.
    fn rebase(&mut self, received: f64, now: Instant) {
        let stuck = self.queue > QUEUE_FREE && received < STUCK_SHARE * self.capacity;
        if !stuck {
            self.stuck_since = None;
            return;
        }
        let since = *self.stuck_since.get_or_insert(now);
        if now.since(since) > STUCK_FOR {
            self.stuck_since = None;
            self.least = Least::default();
        }
    }
}

impl Controller for DelayRate {
    fn initial(&self) -> Grant {
        self.grant()
    }

    fn on_report(&mut self, evidence: &Evidence) -> Grant {
        self.measure_queue(evidence);
        self.rtt_min = evidence.rtt_min.unwrap_or(RTT_GUESS);
        let elapsed = self.reported_at.map_or(FEEDBACK, |at| evidence.now.since(at)).min(SPAN);
        self.reported_at = Some(evidence.now);
        let sent = self.left.measure(evidence.sent, evidence.now);
        let received = self.arrived.measure(evidence.received, evidence.taken_at);
        let Some((sent, received)) = sent.zip(received) else { return self.grant() };
        let step = elapsed.as_secs_f64();
        let towards = |tau: Duration| 1.0 - (-step / tau.as_secs_f64()).exp();
        if self.queue > QUEUE_SEEN {
            // A link that is little used shows its delays, not its capacity.
            let used = sent > USED_SHARE * self.capacity || received < LESS * sent;
            if used || received > self.capacity {
                self.capacity += (received - self.capacity) * towards(SPAN);
            }
        } else {
            if received > self.capacity {
                self.capacity += (received - self.capacity) * towards(SPAN * 2);
            }
            let fallen = self.capacity < FALLEN * self.former;
            let growth = if fallen { GROWTH_FALLEN } else { GROWTH };
            let grown = self.capacity * (1.0 + step / growth.as_secs_f64());
            self.capacity = self.capacity.max(grown.min(REACH * received));
        }
        self.former -= self.former * step / FORMER_LIFE.as_secs_f64();
        self.former = self.former.max(self.capacity);
        self.rebase(received, evidence.now);
        self.capacity = self.capacity.clamp(FLOOR, self.ceiling);
        self.grant()
    }

    fn on_silent(&mut self, _now: Instant) -> Grant {
        (self.arrived, self.left) = (Meter::default(), Meter::default());
        self.transits.clear();
        self.queue = Duration::ZERO;
        self.grant()
    }

    /// Keeps what it knows of the capacity: what comes next will show.
    fn on_stall(&mut self, _now: Instant) -> Grant {
        self.grant()
    }

    /// Returns false: it sees to queues itself.
    fn spares_queues(&self) -> bool {
        false
    }
}

/// Counts of bytes at instants of the last [`SPAN`].
#[derive(Debug, Clone, Default)]
struct Meter {
    totals: VecDeque<(Instant, u64)>,
}

impl Meter {
    /// Takes a total and gives the rate over the span, bit/s; `None` before half of it is known.
    fn measure(&mut self, total: ByteCount, at: Instant) -> Option<f64> {
        self.totals.push_back((at, total.get()));
        while self.totals.get(1).is_some_and(|(next, _)| at.since(*next) >= SPAN) {
            self.totals.pop_front();
        }
        let (from, bytes) = *self.totals.front()?;
        let span = at.since(from);
        let bits = total.get().saturating_sub(bytes) as f64 * 8.0;
        (span >= SPAN / 2).then(|| bits / span.as_secs_f64())
    }
}

impl Least {
    fn observe(&mut self, transit: i64, now: Instant) {
        let slot = now.as_millis() / SLOT_MILLIS;
        match self.slots.back_mut() {
            Some((at, least)) if *at == slot => *least = transit.min(*least),
            Some(_) | None => self.slots.push_back((slot, transit)),
        }
        while self.slots.front().is_some_and(|(at, _)| at + SLOTS <= slot) {
            self.slots.pop_front();
        }
    }

    fn get(&self) -> Option<i64> {
        self.slots.iter().map(|(_, least)| *least).min()
    }
}

/// Over which rates and queues are measured: a picture's time at 15 a second.
const SPAN: Duration = Duration::from_millis(60);
/// A longer queue is seen through jitter.
const QUEUE_SEEN: Duration = Duration::from_millis(6);
/// A longer queue must be drained.
const QUEUE_FREE: Duration = Duration::from_millis(20);
/// How much more queue would bring the rate to zero, if it were not for the least share.
const QUEUE_SPAN: Duration = Duration::from_millis(60);
const DRAIN_LEAST: f64 = 0.05;
/// What media gets of the capacity.
const SHARE: f64 = 0.9;
/// In which time the estimate may double while there is no queue.
const GROWTH: Duration = Duration::from_secs(1);
/// The same while it is below [`FALLEN`] of what it was of late: out of a trough.
const GROWTH_FALLEN: Duration = Duration::from_millis(350);
const FALLEN: f64 = 0.5;
const FORMER_LIFE: Duration = Duration::from_secs(10);
/// A link is used that sends more than this share of the estimate.
const USED_SHARE: f64 = 0.5;
/// Less than this share of what leaves arrives: the link cannot carry it.
const LESS: f64 = 0.8;
/// How far the estimate may be above what arrives.
const REACH: f64 = 2.0;
/// A packet of 250 bytes every 40 ms: a link can always show that it is better.
const FLOOR: f64 = 50e3;
const FEEDBACK: Duration = Duration::from_millis(10);
const SLACK: Duration = Duration::from_millis(10);
const RTT_GUESS: Duration = Duration::from_millis(60);
/// Two full datagrams, so that there is always something to learn from.
const WINDOW_LEAST: u64 = 3_000;
const STUCK_SHARE: f64 = 0.7;
const STUCK_FOR: Duration = Duration::from_millis(1_500);
const SLOT_MILLIS: u64 = 500;
const SLOTS: u64 = 20;
