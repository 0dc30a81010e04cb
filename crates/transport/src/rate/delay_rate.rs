use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::competing::{self, Competing};
use super::config::Config;
use super::controller::{Controller, Evidence, Factory};
use super::grant::{Cause, Grant};
use super::losses::{self, Losses, News};
use super::marks::{Marked, Marks};
use super::meter::Meter;

/// Our default rate control. The arrival rate during a standing queue is the capacity, and a
/// growing queue shows in the delay before any loss.
///
/// It maintains an estimate of the link's capacity. A standing queue of our own in the delay of the
/// last 60 ms, without a stall, means that the link is busy all the time. The arrival rate is then
/// the capacity, and the estimate follows it. Without a queue the estimate grows, up to twice the
/// arrival rate: an application that sends little learns little. Media gets nine tenths of the
/// estimate, and less while a queue drains. The bytes in flight are limited to what the link
/// delivers within its minimum RTT plus a report interval and a margin. The queue of competing
/// traffic, or reordering, extends that time. A link that falls silent gets nothing after that.
///
/// A slowing link first shows datagrams that could have arrived and have not. The rate then drops
/// immediately below the arrival rate. Queues of competing traffic ([`Competing`]) and losses
/// ([`Losses`]) are handled separately. Marks of the network ([`Marks`]) arrive before a queue is
/// measurable.
#[derive(Debug, Clone)]
pub struct DelayRate {
    /// Minimum granted rate, bit/s.
    floor: f64,
    /// Maximum capacity estimate, bit/s.
    ceiling: f64,
    /// Capacity estimate, bit/s.
    capacity: f64,
    /// Meter of the arrival rate over [`SPAN`], by the peer's clock.
    arrived: Meter,
    /// Meter of the arrival rate from one report to the next, by the peer's clock.
    arrived_latest: Meter,
    /// Meter of the current sending rate over [`SPAN`], by our clock.
    left: Meter,
    /// Meter of the rate at which the datagrams that have arrived were sent, over [`SPAN`], by our
    /// clock.
    offered: Meter,
    /// Last rate of `offered`, bit/s; zero before the first.
    offered_rate: f64,
    /// Bytes sent up to and including the newest datagram known to have arrived.
    sent_until: ByteCount,
    /// Recent maximum of the capacity estimate, exponentially decayed, bit/s.
    former: f64,
    reported_at: Option<Instant>,
    rtt_min: Duration,
    /// Standing queueing delay that our own traffic caused.
    queue: Duration,
    /// Part of `queue` that has not drained yet.
    draining: Duration,
    losses: Losses,
    competing: Competing,
    marks: Marks,
    /// Maximum rate during a stall, bit/s; `None` without a stall.
    stalled: Option<f64>,
    /// Longest time by which recent datagrams were sent before newer ones that overtook them.
    reordering: Duration,
    /// Smoothed difference between consecutive transits.
    jitter: Duration,
    /// `jitter` at the previous report.
    jitter_before: Duration,
    /// Interval between the peer's reports on the link, as announced; [`FEEDBACK`] if it announced
    /// none.
    feedback: Duration,
    cause: Cause,
    /// Granted rate, bit/s.
    granted: f64,
    /// Granted rate when `cause` was last set, bit/s.
    told: f64,
    /// Cause to report while competing traffic is found: jitter or a queue.
    competing_cause: Cause,
}

/// The factory of [`DelayRate`].
#[derive(Debug, Clone, Copy)]
pub struct DelayRateFactory;

impl Factory for DelayRateFactory {
    fn controller(&self, config: &Config) -> Box<dyn Controller> {
        Box::new(DelayRate::new(config.initial, config.ceiling))
    }
}

/// Rates of the last measurement span, bit/s.
#[derive(Debug, Clone, Copy)]
struct Rates {
    /// Current sending rate of the link, bit/s.
    left: f64,
    /// Sending rate of the datagrams that have arrived, bit/s.
    offered: f64,
    /// Arrival rate, corrected for random loss, bit/s.
    received: f64,
    /// Arrival rate since the previous report, corrected for random loss, bit/s.
    latest: f64,
}

impl DelayRate {
    /// Creates a controller whose capacity estimate starts at `initial` and is at most `ceiling`;
    /// both are above zero.
    pub fn new(initial: Bitrate, ceiling: Bitrate) -> Self {
        let floor = FLOOR.min(ceiling.as_f64());
        let granted = (initial.as_f64() * SHARE).max(floor);
        Self {
            floor,
            ceiling: ceiling.as_f64(),
            capacity: initial.as_f64(),
            arrived: Meter::new(SPAN),
            arrived_latest: Meter::new(LATEST),
            left: Meter::new(SPAN),
            offered: Meter::new(SPAN),
            offered_rate: 0.0,
            sent_until: ByteCount::ZERO,
            former: initial.as_f64(),
            reported_at: None,
            rtt_min: RTT_GUESS,
            queue: Duration::ZERO,
            draining: Duration::ZERO,
            losses: Losses::default(),
            competing: Competing::default(),
            marks: Marks::default(),
            stalled: None,
            reordering: Duration::ZERO,
            jitter: Duration::ZERO,
            jitter_before: Duration::ZERO,
            feedback: FEEDBACK,
            cause: Cause::Beginning,
            granted,
            told: granted,
            competing_cause: Cause::ForeignQueue,
        }
    }

    fn grant(&self) -> Grant {
        let rate = Bitrate::from_bps(self.granted as u64);
        let span =
            self.rtt_min + self.competing.theirs().max(self.reordering) + self.feedback + SLACK;
        let window = ByteCount::new((self.capacity * span.as_secs_f64() / 8.0) as u64);
        let window = window.max(ByteCount::new(WINDOW_LEAST));
        Grant { rate, sustained: rate, window: Some(window), probing: false, cause: self.cause }
    }

    /// Computes the granted rate, and updates the cause if it is still the initial one, or if the
    /// rate has changed by more than the share [`NEWS`] since the cause was last set.
    fn decide(&mut self, now: Instant) {
        let over = self.draining.saturating_sub(QUEUE_SEEN).as_secs_f64();
        let drain = match self.draining > QUEUE_FREE {
            true => (1.0 - over / QUEUE_SPAN.as_secs_f64()).max(DRAIN_LEAST),
            false => 1.0,
        };
        let share = match self.competing.is_found() {
            true => self.competing.share(),
            false => drain,
        };
        let open = (self.capacity * SHARE * share).min(self.competing.rate_most());
        let most = self.losses.rate_most();
        let stalled = self.stalled.unwrap_or(f64::INFINITY).max(self.capacity * DRAIN_LEAST);
        let rate = open.min(most).min(stalled).max(self.floor);
        let cause = if stalled <= open.min(most) {
            Cause::Stall
        } else if self.losses.is_trying() {
            Cause::LossTrial
        } else if most <= open {
            Cause::Policer
        } else if self.competing.is_found() {
            self.competing_cause
        } else if self.marks.holds(now) {
            Cause::Marks
        } else if self.queue > QUEUE_SEEN {
            Cause::Queue
        } else {
            Cause::Growth
        };
        self.granted = rate;
        if (rate - self.told).abs() > NEWS * self.told || self.cause == Cause::Beginning {
            self.tell(cause);
        }
    }

    fn tell(&mut self, cause: Cause) {
        (self.cause, self.told) = (cause, self.granted);
    }

    /// Returns the rates that the report shows; `None` while the meters cover less than half of
    /// [`SPAN`].
    fn measure(&mut self, evidence: &Evidence) -> Option<Rates> {
        let left = self.left.measure(evidence.sent, evidence.now);
        let received = self.arrived.measure(evidence.received, evidence.taken_at);
        let latest = self.arrived_latest.measure(evidence.received, evidence.taken_at);
        if let Some((departed, sent)) = evidence.newest {
            self.sent_until = sent;
            self.offered_rate = self.offered.measure(sent, departed).unwrap_or(self.offered_rate);
        }
        let (left, received) = left.zip(received)?;
        let offered = if self.offered_rate > 0.0 { self.offered_rate } else { left };
        let came = 1.0 / (1.0 - self.losses.chance());
        let (received, latest) = (received * came, latest.unwrap_or(received) * came);
        Some(Rates { left, offered, received, latest })
    }

    /// Returns whether the report shows the capacity: the sending rate is above [`USED_SHARE`] of
    /// the estimate, or clearly less arrives than was sent. A little-used link shows only its
    /// delays.
    fn is_used(&self, rates: &Rates) -> bool {
        let Rates { offered, received, .. } = *rates;
        offered > USED_SHARE * self.capacity || received < LESS * offered
    }

    /// Moves the capacity estimate towards the arrival rate during a queue of our own, if that rate
    /// is higher, or if the link is used and its arrival and sending rates differ. `towards`
    /// returns the share of the difference to move by, for a time constant.
    fn follow(&mut self, rates: &Rates, towards: impl Fn(Duration) -> f64) {
        let Rates { offered, received, .. } = *rates;
        // Arrival and sending rates are equal: that is the sender's rate, not the link's.
        let apart = (received - offered).abs() > APART * offered;
        if (self.is_used(rates) && apart) || received > self.capacity {
            self.capacity += (received - self.capacity) * towards(SPAN);
        }
    }

    /// Increases the capacity estimate while there is no queue of our own, to at most [`REACH`]
    /// times the arrival rate; moves it towards that rate instead if a queue begins to form. `step`
    /// is the time since the last report in seconds; `towards` is that of [`DelayRate::follow`].
    fn grow(
        &mut self,
        rates: &Rates,
        evidence: &Evidence,
        step: f64,
        towards: impl Fn(Duration) -> f64,
    ) {
        let waiting = evidence.waiting.get() as f64 * 8.0;
        let begins = self.waits(waiting, BEGINS, self.jitter) && self.is_used(rates);
        if begins && rates.received < FULL * rates.offered {
            // A queue begins to form; only later does it count as standing.
            self.capacity += (rates.received - self.capacity) * towards(SPAN * 2);
            return;
        }
        if rates.received > self.capacity {
            self.capacity += (rates.received - self.capacity) * towards(SPAN * 2);
        }
        let fallen = self.capacity < FALLEN * self.former;
        let growth = if fallen { GROWTH_FALLEN } else { GROWTH };
        // Grow in proportion to how completely the traffic arrives: if it does not, the link is
        // overloaded.
        let came = (rates.received / rates.offered - STEMMED) / (FULL - STEMMED);
        let share = if self.is_used(rates) { came.clamp(0.0, 1.0) } else { 1.0 };
        let grown = self.capacity * (1.0 + step * share * self.pace() / growth.as_secs_f64());
        self.capacity = self.capacity.max(grown.min(REACH * rates.received));
    }

    /// Returns the factor on the growth rate given by [`GROWTH`].
    ///
    /// A response to a queue takes a proportional share of the rate. If growth were proportional as
    /// well, two sessions on one link would keep their initial ratio. The one that learns of the
    /// queue later would starve the other. Growth as the square root of the rate converges them
    /// (binomial congestion control, [BINOMIAL]).
    fn pace(&self) -> f64 {
        let unseen = self.capacity * (self.rtt_min + UNSEEN).as_secs_f64();
        let most = (self.capacity / PACE_THIN).clamp(1.0, PACE_MOST);
        (UNSEEN_BITS / unseen).sqrt().clamp(PACE_LEAST, most)
    }

    /// Shares the link with competing traffic that keeps a queue: increases the capacity estimate,
    /// to at most [`REACH`] times the arrival rate, until the queue overflows; then decreases it,
    /// at most once per round trip through the queue. `step` is that of [`DelayRate::grow`].
    fn compete(&mut self, rates: &Rates, news: News, evidence: &Evidence, step: f64) {
        if news == News::Overflow
            && self.competing.on_overflow(self.rtt_min, evidence.queue, evidence.now)
        {
            self.capacity *= FOREIGN_FALL;
            return;
        }
        let grown = self.capacity + FOREIGN_GROWTH * self.former * step;
        self.capacity = self.capacity.max(grown.min(REACH * rates.received));
    }

    /// Returns whether the `waiting` bits, which could have arrived and have not, are more than the
    /// link delivers within `most` and the time that reordering and a radio's bursty delivery
    /// explain.
    fn waits(&self, waiting: f64, most: Duration, jitter: Duration) -> bool {
        let usual = self.capacity * (most + self.reordering + jitter * JITTERS).as_secs_f64();
        waiting > usual.max(WAITING_LEAST)
    }

    /// Detects the start and the end of a stall: datagrams that could have arrived have not, and
    /// less than half of the sent rate arrives. During a stall, limits the rate to [`STALL_SHARE`]
    /// of the latest arrival rate.
    fn note_stall(&mut self, rates: &Rates, evidence: &Evidence) {
        let waiting = evidence.waiting.get() as f64 * 8.0;
        // The jitter caused by the stall itself must not hide it.
        let jitter = self.jitter.min(self.jitter_before);
        let stalls =
            self.waits(waiting, WAITING, jitter) && rates.latest < GIVES_WAY * rates.offered;
        self.stalled = stalls.then_some(rates.latest * STALL_SHARE);
    }
}

impl Controller for DelayRate {
    fn initial(&self) -> Grant {
        self.grant()
    }

    fn on_report(&mut self, evidence: &Evidence) -> Grant {
        self.rtt_min = evidence.rtt_min.unwrap_or(RTT_GUESS);
        self.jitter_before = std::mem::replace(&mut self.jitter, evidence.jitter);
        self.reordering = evidence.reordering;
        self.feedback = evidence.feedback.unwrap_or(FEEDBACK);
        let elapsed = self.reported_at.map_or(FEEDBACK, |at| evidence.now.since(at)).min(SPAN);
        self.reported_at = Some(evidence.now);
        let step = elapsed.as_secs_f64();
        let towards = |tau: Duration| 1.0 - (-step / tau.as_secs_f64()).exp();
        let Some(rates) = self.measure(evidence) else { return self.grant() };
        let seen = QUEUE_SEEN + evidence.jitter / 2;
        let shown = competing::Shown {
            queue: evidence.queue,
            received: rates.received,
            offered: rates.offered,
            left: rates.left,
            capacity: self.capacity,
            rtt: self.rtt_min,
            least: self.capacity <= self.floor * LEAST,
        };
        let told = self.competing.observe(&shown, seen, evidence.now);
        self.queue = told.ours;
        self.capacity = told.carried.map_or(self.capacity, |carried| carried.min(self.capacity));
        // While a queue drains, the newest arrivals waited longer than a datagram sent now will.
        let waits = Duration::from_secs_f64(evidence.waiting.get() as f64 * 8.0 / self.capacity);
        self.draining = self.queue.min(waits);
        self.competing_cause = match evidence.jitter > evidence.queue / 2 {
            true => Cause::Jitter,
            false => Cause::ForeignQueue,
        };
        let shown = losses::Shown {
            hole: evidence.hole,
            sent: self.sent_until,
            received: evidence.received,
            lost: evidence.lost,
            queued: evidence.queue > QUEUE_SEEN,
            reordering: evidence.reordering,
            rtt: self.rtt_min,
            left: rates.left,
        };
        let news = self.losses.observe(&shown, elapsed, evidence.now);
        // Marks throughout a standing queue do not come from an L4S queue: the delay controls the
        // rate.
        let marked = evidence.marked.filter(|_| evidence.queue <= seen);
        let kept = self.marks.observe(marked, self.rtt_min, evidence.now);
        if self.competing.is_found() {
            let news = if overflows(evidence.marked) { News::Overflow } else { news };
            self.compete(&rates, news, evidence, step);
        } else if evidence.newest.is_none() {
            // Without arrivals the report shows a stall, not the capacity.
        } else if self.queue > seen {
            // A rate measured across a stall would count the stall as well.
            if self.arrived.pause() < PAUSE.max(self.feedback * 3) {
                self.follow(&rates, towards);
            }
        } else if !self.marks.holds(evidence.now) {
            self.grow(&rates, evidence, step, towards);
        }
        if !self.competing.is_found() {
            self.capacity *= kept.unwrap_or(1.0);
        }
        self.note_stall(&rates, evidence);
        self.former -= self.former * step / FORMER_LIFE.as_secs_f64();
        self.former = self.former.max(self.capacity);
        self.capacity = self.capacity.clamp(self.floor, self.ceiling);
        self.decide(evidence.now);
        self.grant()
    }

    fn on_silent(&mut self, now: Instant) -> Grant {
        for meter in [&mut self.arrived, &mut self.arrived_latest, &mut self.left] {
            meter.clear();
        }
        self.offered.clear();
        self.offered_rate = 0.0;
        self.losses.clear();
        self.competing.clear();
        self.marks.clear();
        (self.queue, self.draining) = (Duration::ZERO, Duration::ZERO);
        self.stalled = None;
        self.decide(now);
        self.tell(Cause::Silence);
        self.grant()
    }

    /// Returns the present grant and keeps the capacity estimate, which the next arrivals update.
    fn on_stall(&mut self, _now: Instant) -> Grant {
        self.grant()
    }

    /// Returns false: the controller handles queues itself.
    fn avoids_queues(&self) -> bool {
        false
    }

    /// Returns true: the controller responds to marks; see [`Marks`].
    fn answers_marks(&self) -> bool {
        true
    }
}

/// Returns whether marks in the queue of competing traffic indicate overflow, as losses would. If
/// more than half are marked, regardless of our rate, they indicate nothing.
fn overflows(marked: Option<Marked>) -> bool {
    marked.is_some_and(|marked| marked.ce > 0 && marked.ce * 2 <= marked.datagrams)
}

/// Measurement span of rates: a picture interval at 15 pictures a second.
const SPAN: Duration = Duration::from_millis(60);
/// Measurement span of the latest arrival rate: from one report to the next.
const LATEST: Duration = Duration::from_millis(9);
/// Pause in arrivals from which the arrival rate during a queue is not taken for the capacity;
/// three report intervals if those are longer. It is the time of two datagrams at 500 kbit/s.
const PAUSE: Duration = Duration::from_millis(40);
/// Queueing delay above which there is a queue: alone for losses, and with half of the jitter added
/// for the capacity estimate.
const QUEUE_SEEN: Duration = Duration::from_millis(6);
/// Queueing delay above which the rate is reduced to drain the queue.
const QUEUE_FREE: Duration = Duration::from_millis(20);
/// Queueing delay in addition to [`QUEUE_SEEN`] that would reduce the rate to zero without
/// [`DRAIN_LEAST`].
const QUEUE_SPAN: Duration = Duration::from_millis(60);
const DRAIN_LEAST: f64 = 0.05;
/// Share of the capacity estimate that is granted.
const SHARE: f64 = 0.9;
/// Time in which the estimate grows by a factor of e without a queue, at a [`DelayRate::pace`] of
/// one.
const GROWTH: Duration = Duration::from_secs(1);
/// Bits sent until a queue is reported, within a round trip plus [`UNSEEN`], at which the pace is
/// one. With the round trip alone, the nearer of two senders would get twice the farther one's
/// rate.
const UNSEEN_BITS: f64 = 360e3;
const UNSEEN: Duration = Duration::from_millis(40);
const PACE_LEAST: f64 = 0.3;
const PACE_MOST: f64 = 2.0;
/// Rate, bit/s, up to which the pace is at most one: a single picture fills such a link. At 250
/// kbit/s and a pace of two, one session in six had only 83 % complete pictures.
const PACE_THIN: f64 = 500e3;
/// Time in which the estimate grows by a factor of e while it is below [`FALLEN`] of its recent
/// maximum: recovery from a trough.
const GROWTH_FALLEN: Duration = Duration::from_millis(350);
const FALLEN: f64 = 0.5;
/// Time in which the remembered maximum of the estimate falls by a factor of e.
const FORMER_LIFE: Duration = Duration::from_secs(10);
/// Share of the estimate above which the sending rate makes a link count as used.
const USED_SHARE: f64 = 0.5;
/// Share of the sending rate below which the arrival rate shows overload, so that the link counts
/// as used however low the sending rate.
const LESS: f64 = 0.8;
/// Relative difference up to which arrival and sending rates are equal, as accurate as 60 ms allow.
const APART: f64 = 0.05;
/// Ratio of the estimate to the arrival rate up to which the estimate grows.
const REACH: f64 = 2.0;
/// Factor on the estimate when the queue of competing traffic overflows, as losses or marks show.
const FOREIGN_FALL: f64 = 0.75;
/// Growth of the estimate per second with competing traffic, as a share of its recent maximum.
const FOREIGN_GROWTH: f64 = 0.25;
/// Queueing time above which bytes that could have arrived indicate a beginning queue.
const BEGINS: Duration = Duration::from_millis(4);
/// Ratio of arrival to sending rate from which the estimate of a used link grows at full speed;
/// below it, bytes that have waited longer than [`BEGINS`] indicate a beginning queue.
const FULL: f64 = 0.985;
/// Ratio of arrival to sending rate up to which the estimate of a used link does not grow beyond
/// the arrival rate; from here to [`FULL`] its growth increases linearly.
const STEMMED: f64 = 0.92;
/// Queueing time above which bytes that could have arrived indicate a stall.
const WAITING: Duration = Duration::from_millis(5);
/// Jitter multiple in stall detection. With fewer, LTE recordings seem to stall all the time: their
/// goodput fell to 0.4 of its value.
const JITTERS: u32 = 8;
/// Minimum number of waiting bits that indicates a queue or a stall: more than two packets.
const WAITING_LEAST: f64 = 25e3;
const GIVES_WAY: f64 = 0.5;
/// Sending rate during a stall as a share of the arrival rate: the queue has to drain.
const STALL_SHARE: f64 = 0.3;
/// Relative change of the granted rate above which its cause is set anew.
const NEWS: f64 = 0.02;
/// Minimum rate, bit/s, unless the ceiling is lower: a packet of 250 bytes every 40 ms, so that a
/// link can always show an improvement.
const FLOOR: f64 = 50e3;
/// Multiple of the floor up to which the estimate counts as at its minimum: a few packets cause
/// such fluctuations.
const LEAST: f64 = 1.5;
const FEEDBACK: Duration = Duration::from_millis(10);
const SLACK: Duration = Duration::from_millis(10);
const RTT_GUESS: Duration = Duration::from_millis(60);
/// Minimum window in bytes: two full datagrams, so that there is always something to measure.
const WINDOW_LEAST: u64 = 3_000;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns the input of report `count` on a 30 ms link without a queue where `rate` arrives.
    fn even(rate: Bitrate, count: u64) -> Evidence {
        let total = |time: Duration| rate * time;
        let now = Instant::from_millis(count * 10);
        let bytes = total(Duration::from_millis(count * 10));
        Evidence {
            received: bytes,
            sent: bytes + total(Duration::from_millis(30)),
            newest: Some((now, bytes)),
            rtt_min: Some(Duration::from_millis(30)),
            ..Evidence::nothing(now)
        }
    }

    /// Returns a controller after 39 reports of a link as in [`even`] with a jitter of `jitter`.
    fn settled(rate: Bitrate, jitter: Duration) -> DelayRate {
        let mut control = DelayRate::new(rate, Bitrate::from_mbps(80));
        for count in 1..40 {
            control.on_report(&Evidence { jitter, ..even(rate, count) });
        }
        control
    }

    #[test]
    fn a_change_in_small_steps_has_a_cause() {
        let mut control = DelayRate::new(Bitrate::from_mbps(2), Bitrate::from_mbps(80));
        control.on_silent(Instant::ZERO);
        let mut rates = vec![control.grant().rate.as_f64()];
        for count in 1..40 {
            let grant = control.on_report(&even(Bitrate::from_mbps(2), count));
            rates.push(grant.rate.as_f64());
        }
        let most = rates.windows(2).map(|pair| pair[1] / pair[0]).fold(0.0, f64::max);
        assert!((1.001..1.0 + NEWS).contains(&most), "{most}");
        assert_eq!(control.grant().cause, Cause::Growth);
    }

    #[test]
    fn a_stall_keeps_the_estimate() {
        let mut control = settled(Bitrate::from_mbps(4), Duration::ZERO);
        let before = control.capacity;
        let last = even(Bitrate::from_mbps(4), 39);
        for count in 40..60 {
            let sent = even(Bitrate::from_mbps(4), count);
            let queue = Duration::from_millis(20);
            let evidence = Evidence { newest: None, received: last.received, queue, ..sent };
            control.on_report(&evidence);
        }
        assert_eq!(control.capacity.to_bits(), before.to_bits());
    }

    #[test]
    fn a_queue_on_a_hardly_used_link_does_not_lower_its_capacity() {
        let mut control = DelayRate::new(Bitrate::from_mbps(8), Bitrate::from_mbps(80));
        let waiting = ByteCount::new(8_000);
        for count in 1..40 {
            let received = Bitrate::from_kbps(900) * Duration::from_millis(count * 10);
            let evidence = Evidence { received, waiting, ..even(Bitrate::from_mbps(1), count) };
            control.on_report(&evidence);
        }
        assert!(control.capacity >= 8e6, "{}", control.capacity);
    }

    #[test]
    fn a_stall_is_detected_despite_the_jitter_it_adds() {
        let stalled = |jitter_before: u64| {
            let jitter_before = Duration::from_micros(jitter_before);
            let mut control = settled(Bitrate::from_mbps(8), jitter_before);
            // Of the last 10 ms a tenth arrived, the rest is queued.
            let sent = even(Bitrate::from_mbps(8), 40);
            let received = even(Bitrate::from_mbps(8), 39).received + ByteCount::new(1_000);
            let (waiting, jitter) = (ByteCount::new(9_000), Duration::from_micros(900));
            control.on_report(&Evidence { received, waiting, jitter, ..sent });
            control.grant().cause == Cause::Stall
        };
        assert!(stalled(100));
        // A radio's bursty delivery is not a stall.
        assert!(!stalled(900));
    }

    #[test]
    fn the_first_report_after_a_stall_says_nothing_of_the_capacity() {
        let mut control = settled(Bitrate::from_mbps(4), Duration::ZERO);
        let before = control.capacity;
        // Nothing arrived for 90 ms. The first report follows the first datagram, the next follows
        // all others.
        let stalled = even(Bitrate::from_mbps(4), 48);
        let received = even(Bitrate::from_mbps(4), 39).received + ByteCount::new(1_200);
        let queue = Duration::from_millis(90);
        control.on_report(&Evidence { received, queue, ..stalled });
        control.on_report(&even(Bitrate::from_mbps(4), 49));
        assert!(control.capacity >= before, "{} {before}", control.capacity);
    }

    #[test]
    fn anothers_queue_is_found_by_the_few_packets_of_the_floor() {
        let mut control = DelayRate::new(Bitrate::from_kbps(50), Bitrate::from_mbps(80));
        let mut received = 0;
        let found = (1..200_u64).any(|count| {
            // 50 kbit/s in packets of 190 bytes, every third report.
            received += if count % 3 == 0 { 190 } else { 0 };
            let received = ByteCount::new(received);
            let now = Instant::from_millis(count * 10);
            control.on_report(&Evidence {
                received,
                sent: received + ByteCount::new(760),
                newest: (count % 3 == 0).then_some((now, received)),
                queue: Duration::from_millis(80 + count % 3),
                waiting: ByteCount::new(570),
                rtt_min: Some(Duration::from_millis(30)),
                ..Evidence::nothing(now)
            });
            control.competing.is_found()
        });
        assert!(found);
    }

    #[test]
    fn a_ceiling_below_the_floor_holds() {
        let ceiling = Bitrate::from_kbps(40);
        let mut control = DelayRate::new(Bitrate::from_kbps(20), ceiling);
        assert_eq!(control.initial().rate, ceiling);
        for count in 1..200 {
            let grant = control.on_report(&even(Bitrate::from_kbps(400), count));
            assert!(grant.rate <= ceiling, "{}", grant.rate);
        }
        assert!(control.on_silent(Instant::from_millis(2_000)).rate <= ceiling);
    }

    /// Runs two controllers on a shared 10 Mbit/s queue for 30 s, starting at `rates` bit/s.
    /// Returns the rate of each over the last 10 s, bit/s.
    fn share(rates: [u64; 2]) -> [f64; 2] {
        let step = Duration::from_millis(10);
        let mut controls =
            rates.map(|rate| DelayRate::new(Bitrate::from_bps(rate), Bitrate::from_mbps(80)));
        let (mut sent, mut received, mut had) = ([0.0; 2], [0.0; 2], [0.0; 2]);
        // Each entry: send time, bytes of each sender, and the totals of both by then.
        let mut queue = std::collections::VecDeque::new();
        for count in 1..3_000_u64 {
            let now = Instant::from_millis(count * 10);
            let left =
                controls.each_ref().map(|control| control.granted * step.as_secs_f64() / 8.0);
            sent = [sent[0] + left[0], sent[1] + left[1]];
            queue.push_back((now, left, sent));
            let mut room = 10e6 * step.as_secs_f64() / 8.0;
            let mut newest = None;
            while let Some((at, bytes, by_then)) = queue.front_mut() {
                let all = bytes[0] + bytes[1];
                let part = (room / all).min(1.0);
                for flow in 0..2 {
                    received[flow] += bytes[flow] * part;
                    had[flow] += bytes[flow] * part * f64::from(u8::from(count > 2_000));
                    bytes[flow] *= 1.0 - part;
                }
                newest = Some((*at, *by_then));
                room -= all * part;
                if part < 1.0 {
                    break;
                }
                queue.pop_front();
            }
            let waits = queue.front().map_or(Duration::ZERO, |(at, ..)| now.since(*at));
            for (flow, control) in controls.iter_mut().enumerate() {
                let bytes = |all: f64| ByteCount::new(all as u64);
                control.on_report(&Evidence {
                    sent: bytes(sent[flow]),
                    received: bytes(received[flow]),
                    newest: newest.map(|(at, by_then)| (at, bytes(by_then[flow]))),
                    queue: waits,
                    waiting: bytes(sent[flow] - received[flow]),
                    rtt_min: Some(Duration::from_millis(30)),
                    ..Evidence::nothing(now)
                });
            }
        }
        had.map(|bytes| bytes * 8.0 / 10.0)
    }

    #[test]
    fn two_that_share_a_link_come_to_the_same_rate() {
        for rates in [[8_000_000, 8_000_000], [9_000_000, 1_000_000], [600_000, 8_000_000]] {
            let [first, second] = share(rates);
            assert!(first.min(second) > 0.8 * first.max(second), "{rates:?}: {first} {second}");
            assert!(first + second > 8e6, "{rates:?}: {first} {second}");
        }
    }

    /// Returns the increments of a report: instants, totals and delays, in any combination.
    fn reports() -> impl Strategy<Value = (u64, u64, Option<u64>, [u32; 4], [u64; 6], bool)> {
        let delays = [(); 6].map(|()| 0..300_u64);
        let bytes = [0..60_000_u32, 0..60_000_u32, 0..60_000_u32, 0..60_000_u32];
        let newest = proptest::option::of(0..100_u64);
        (0..100_u64, 0..100_u64, newest, bytes, delays, proptest::bool::weighted(0.02))
    }

    proptest! {
        #[test]
        fn any_report_leaves_the_rate_within_its_bounds(
            reports in vec(reports(), 1..400),
            ceiling in 8_000..80_000_000_u64,
        ) {
            let ceiling = Bitrate::from_bps(ceiling);
            let mut control = DelayRate::new(ceiling, ceiling);
            let mut evidence = even(Bitrate::from_mbps(1), 0);
            let mut newest = (Instant::ZERO, ByteCount::ZERO);
            for (taken, later, departed, [received, sent, offered, lost], delays, silent) in reports {
                evidence.taken_at += Duration::from_millis(taken);
                evidence.now += Duration::from_millis(later);
                evidence.received += ByteCount::new(received.into());
                evidence.sent += ByteCount::new(sent.into());
                evidence.lost += ByteCount::new(lost.into());
                evidence.newest = departed.map(|after| {
                    newest = (newest.0 + Duration::from_millis(after), newest.1 + ByteCount::new(offered.into()));
                    newest
                });
                let [queue, jitter, reordering, rtt, waiting, hole] = delays;
                evidence.queue = Duration::from_millis(queue);
                evidence.jitter = Duration::from_millis(jitter);
                evidence.reordering = Duration::from_millis(reordering);
                evidence.hole = Duration::from_millis(hole);
                evidence.rtt_min = (rtt > 0).then(|| Duration::from_millis(rtt));
                evidence.waiting = ByteCount::new(waiting * 1_000);
                let marked = Marked { datagrams: waiting / 2, ce: hole.min(waiting / 2) };
                evidence.marked = Some(marked).filter(|_| jitter < 200);
                let grant = control.on_report(&evidence);
                let grant = if silent { control.on_silent(evidence.now) } else { grant };
                prop_assert!(grant.rate <= ceiling, "{} {}", grant.rate, ceiling);
                prop_assert!(grant.rate.as_f64() >= control.floor - 1.0, "{}", grant.rate);
                prop_assert!(control.capacity.is_finite(), "{control:?}");
                let chance = control.losses.chance();
                prop_assert!((0.0..=losses::CHANCE_MOST).contains(&chance), "{chance}");
                prop_assert!(control.losses.rate_most() > 0.0, "{:?}", control.losses);
            }
        }
    }
}
