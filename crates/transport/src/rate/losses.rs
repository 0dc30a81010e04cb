use std::collections::VecDeque;

use tautline_units::{ByteCount, Duration, Instant};

/// The meaning of losses: by chance at any rate, or of a rate that is too high.
///
/// Only sending less tells. Where more is lost than chance explains, and no queue does, the rate is held
/// below what arrives for a while: losses that end are a policer's or a short queue's, whose rate is that at
/// which datagrams arrived while some were lost; losses that go on are chance. Chance loses in clusters, which are what is
/// looked into, and mostly less afterwards: where that explains the end of losses as well, the limit is tried soon, and
/// stands only if losses come again beyond it. (BBR v3 takes any share
/// above 2 % for a bound, which a radio that loses a tenth by itself does not survive.)
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    /// Of the last [`SPAN`] or [`BYTES`], which is longer.
    marks: VecDeque<Mark>,
    /// The share that is lost at any rate.
    chance: f64,
    trial: Option<Trial>,
    limit: Option<Limit>,
    rtt: Duration,
    reordering: Duration,
}

/// Totals of the datagrams up to the newest that arrived.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Instant,
    sent: u64,
    lost: u64,
    received: u64,
}

/// A while at a lower rate.
#[derive(Debug, Clone, Copy)]
struct Trial {
    /// When reports begin to tell of it.
    from: Instant,
    /// Totals at that time.
    first: Option<Mark>,
    /// The share lost before, of how many packets, and the rate that arrived.
    lost: f64,
    packets: f64,
    delivered: f64,
    /// Whether losses went on in one before it.
    again: bool,
}

/// A rate beyond which datagrams are lost.
#[derive(Debug, Clone, Copy)]
struct Limit {
    rate: f64,
    /// When it last showed.
    met_at: Instant,
    /// The rate at that time.
    met: f64,
    /// Whether chance does not explain it, or losses came again when more was sent.
    confirmed: bool,
}

/// News of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Nothing,
    /// More is lost than chance explains, with a queue.
    Overflow,
}

/// What a report shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// Over how long what left in a row before the newest that arrived did not.
    pub(super) hole: Duration,
    /// Bytes that had left when the newest datagram that arrived did, and those that arrived.
    pub(super) sent: ByteCount,
    pub(super) received: ByteCount,
    /// Bytes of all that is held lost.
    pub(super) lost: ByteCount,
    /// Whether a queue stands.
    pub(super) queued: bool,
    /// How much later than newer ones datagrams come.
    pub(super) reordering: Duration,
    /// The round trip without a queue.
    pub(super) rtt: Duration,
    /// The rate that leaves now.
    pub(super) left: f64,
}

impl Losses {
    /// Returns the share that is lost at any rate.
    pub(super) fn chance(&self) -> f64 {
        self.chance
    }

    /// Returns whether the rate is lowered to see what losses mean.
    pub(super) fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Returns the most that may be sent, bit/s.
    pub(super) fn rate_most(&self) -> f64 {
        let tried = self.trial.map_or(f64::INFINITY, |trial| trial.rate());
        tried.min(self.limit.map_or(f64::INFINITY, |limit| limit.rate * LIMIT_SHARE))
    }

    /// Takes a report.
    pub(super) fn observe(&mut self, shown: &Shown, elapsed: Duration, now: Instant) -> News {
        let (sent, received) = (shown.sent.get(), shown.received.get());
        let mark = Mark { at: now, sent, lost: shown.lost.get(), received };
        self.rtt = shown.rtt;
        // Of all that left in a while none came. A policer, a full queue and chance let some pass; where nothing
        // left there is nothing to miss.
        if shown.hole > OUTAGE {
            self.clear();
        }
        // What was held lost came after all, later than was thought possible.
        if shown.reordering > self.reordering {
            self.clear();
            self.limit = None;
        }
        self.reordering = shown.reordering;
        self.marks.push_back(mark);
        while self.marks.get(1).is_some_and(|next| mark.outlives(next)) {
            self.marks.pop_front();
        }
        if let Some(trial) = self.trial {
            self.judge(trial, mark);
            return News::Nothing;
        }
        let Some(first) = self.marks.front().copied() else { return News::Nothing };
        let (lost, packets) = mark.lost_since(first);
        if packets < PACKETS_LEAST {
            return News::Nothing;
        }
        let deviation = (self.chance.max(0.01) * (1.0 - self.chance) / packets).sqrt();
        let seen = if shown.reordering.is_zero() { LOST_SEEN } else { LOST_SEEN_REORDERED };
        if lost <= self.chance + seen + DEVIATIONS * deviation {
            self.calm(lost, shown, elapsed, now);
            return News::Nothing;
        }
        self.marks.clear();
        self.marks.push_back(mark);
        if shown.queued {
            return News::Overflow;
        }
        let delivered = mark.received_since(first);
        let again = self.limit.filter(|limit| now.since(limit.met_at) > AGAIN_AFTER);
        self.limit = again.map(|_| Limit::of(delivered, now, true));
        if self.limit.is_none() {
            let from = now + shown.rtt + SETTLES;
            self.trial = Some(Trial { from, first: None, lost, packets, delivered, again: false });
        }
        News::Nothing
    }

    /// Learns from a time without more losses than usual.
    fn calm(&mut self, lost: f64, shown: &Shown, elapsed: Duration, now: Instant) {
        let share = elapsed.as_secs_f64();
        // What a queue that overflows loses is no chance, however slowly it becomes more.
        if lost < self.chance || (self.limit.is_none() && !shown.queued) {
            let lost = lost.min(CHANCE_MOST);
            self.chance += (lost - self.chance) * (1.0 - (-share / CHANCE_LIFE).exp());
        }
        let Some(limit) = &mut self.limit else { return };
        let (calm, first, used) = match limit.confirmed {
            true => (CALM, GROWTH_FIRST, USED),
            false => (CALM_UNCONFIRMED, GROWTH_UNCONFIRMED, USED_UNCONFIRMED),
        };
        let calm = now.since(limit.met_at).saturating_sub(calm).as_secs_f64();
        if calm > 0.0 && shown.left > used * limit.rate * LIMIT_SHARE {
            let growth = (first * calm.exp2()).min(1.0);
            limit.rate *= 1.0 + growth * share;
        }
        if limit.rate > limit.met * FORGOTTEN {
            self.limit = None;
        }
    }

    fn judge(&mut self, trial: Trial, mark: Mark) {
        if mark.at < trial.from {
            return;
        }
        let Some(first) = trial.first else {
            self.trial = Some(Trial { first: Some(mark), ..trial });
            return;
        };
        let (lost, packets) = mark.lost_since(first);
        let is_over = mark.at.since(first.at) > TRIAL_MOST;
        if packets * trial.lost < EXPECTED && !is_over {
            return;
        }
        if packets < PACKETS_LEAST {
            // Too little was sent to tell.
            self.end_trial(mark);
            return;
        }
        if lost < trial.lost * ENDED {
            let confirmed = trial.explains(lost, packets) <= BY_CHANCE;
            if !confirmed && !is_over {
                return;
            }
            if !confirmed {
                // Where what is lost at this rate as well is chance, it is no reason for the next trial.
                self.chance = self.chance.max(lost.min(CHANCE_MOST));
            }
            self.limit = Some(Limit::of(trial.delivered, mark.at, confirmed));
        } else if !trial.again && !AS_BEFORE.contains(&(lost / trial.lost)) {
            // What a bucket let pass at first hid its rate.
            let delivered = mark.received_since(first).min(trial.rate());
            let from = mark.at + SETTLES + self.rtt;
            self.trial = Some(Trial { from, first: None, lost, packets, delivered, again: true });
            return;
        } else {
            self.chance = self.chance.max(lost.max(trial.lost).min(CHANCE_MOST));
        }
        self.end_trial(mark);
    }

    fn end_trial(&mut self, mark: Mark) {
        self.trial = None;
        self.marks.clear();
        self.marks.push_back(mark);
    }

    /// Forgets what came of late: the link was silent.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
        self.trial = None;
    }
}

impl Limit {
    fn of(rate: f64, met_at: Instant, confirmed: bool) -> Self {
        Self { rate, met_at, met: rate, confirmed }
    }
}

impl Trial {
    /// Returns the rate that is tried, bit/s: the fewer were lost, the nearer is a policer's to what is sent.
    fn rate(self) -> f64 {
        self.delivered * (1.0 - self.lost - TRIAL_MARGIN).max(TRIAL_SHARE)
    }

    /// Returns how likely it is that no more were lost than the share `lost` of `packets`, if the same share is lost before
    /// the trial and in it.
    fn explains(self, lost: f64, packets: f64) -> f64 {
        let (before, during) = (self.lost * self.packets, lost * packets);
        let expected = (before + during) / (self.packets + packets) * packets;
        let mut term = (-expected).exp();
        let mut sum = term;
        for count in 1..=during.round() as u32 {
            term *= expected / f64::from(count);
            sum += term;
        }
        sum
    }
}

impl Mark {
    /// Returns whether the marks from `next` on are enough.
    fn outlives(&self, next: &Mark) -> bool {
        let span = self.at.since(next.at);
        (span >= SPAN && self.sent.saturating_sub(next.sent) >= BYTES) || span >= SPAN_MOST
    }

    /// Returns the rate that arrived since `first`, bit/s: a packet a second at least, for a limit must be
    /// able to grow.
    fn received_since(&self, first: Mark) -> f64 {
        let span = self.at.since(first.at).as_secs_f64().max(1e-3);
        let rate = self.received.saturating_sub(first.received) as f64 * 8.0 / span;
        rate.max(PACKET * 8.0)
    }

    /// Returns the share lost since `first`, and of how many full packets.
    ///
    /// What is overtaken has not arrived and is not lost; what reports that were lost told of is held lost
    /// and has arrived.
    fn lost_since(&self, first: Mark) -> (f64, f64) {
        let sent = self.sent.saturating_sub(first.sent);
        let missing = sent.saturating_sub(self.received.saturating_sub(first.received));
        let lost = self.lost.saturating_sub(first.lost).min(missing) as f64;
        let sent = sent as f64;
        ((lost / sent.max(1.0)).min(1.0), sent / PACKET)
    }
}

/// Losses are counted over so long, and over so many bytes: 100 packets.
const SPAN: Duration = Duration::from_millis(300);
const BYTES: u64 = 120_000;
const SPAN_MOST: Duration = Duration::from_millis(1_500);
const PACKET: f64 = 1_200.0;
const PACKETS_LEAST: f64 = 20.0;
/// Nothing arrives for so long of what a policer limits only if it lets less than 250 kbit/s pass.
const OUTAGE: Duration = Duration::from_millis(50);
/// Fewer losses beyond chance cost less than looking into them. BBR v3 bears as many.
const LOST_SEEN: f64 = 0.02;
/// The same where datagrams overtake each other: some that are held lost are still on their way.
const LOST_SEEN_REORDERED: f64 = 0.1;
/// How many standard deviations more than expected are no chance.
const DEVIATIONS: f64 = 4.0;
/// What is sent in a trial, of what arrived, at the least; and by how much less than that would be what was lost.
const TRIAL_SHARE: f64 = 0.8;
const TRIAL_MARGIN: f64 = 0.03;
/// What a lower rate takes to show, beside a round trip.
const SETTLES: Duration = Duration::from_millis(20);
/// A trial goes on until so many losses were to be expected, or for so long. (Without a verdict at that time a
/// policer of 1 Mbit/s leaves .53 where it leaves .65.)
const EXPECTED: f64 = 6.0;
const TRIAL_MOST: Duration = Duration::from_millis(800);
/// Losses are as before of which so much is left: a bucket that let some pass at first would leave more or fewer.
const AS_BEFORE: std::ops::RangeInclusive<f64> = 0.6..=1.6;
/// Losses have ended of which less than this share is left.
const ENDED: f64 = 0.34;
/// And if it is less likely than this that chance had them end: losses are looked into where they are many, and so mostly
/// fewer afterwards.
const BY_CHANCE: f64 = 0.04;
pub(super) const CHANCE_MOST: f64 = 0.6;
/// Seconds.
const CHANCE_LIFE: f64 = 3.0;
/// What is sent of a limit's rate.
const LIMIT_SHARE: f64 = 0.96;
/// Losses that come again so soon are not the limit's.
const AGAIN_AFTER: Duration = Duration::from_millis(600);
/// A limit is left alone for so long; then it grows by so much a second, twice as fast each second.
const CALM: Duration = Duration::from_millis(1_500);
const GROWTH_FIRST: f64 = 0.02;
/// The same of a limit that is not confirmed: it may be none.
const CALM_UNCONFIRMED: Duration = Duration::from_millis(300);
const GROWTH_UNCONFIRMED: f64 = 0.3;
/// Of a limit's rate more than this share is sent where it is used. What bursts are refused of is not sent, so that one that may
/// be none holds more of them back than it lets be seen.
const USED: f64 = 0.8;
const USED_UNCONFIRMED: f64 = 0.5;
/// A limit that has grown by so much is none.
const FORGOTTEN: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends 6 Mbit/s, or what is allowed, for 4 s over what `passes` of bytes and instants; returns what was
    /// found.
    fn run(passes: impl FnMut(f64, u64) -> f64) -> Losses {
        run_in_bursts(1, passes)
    }

    /// Sends the same in one of `every` steps of 10 ms.
    fn run_in_bursts(every: u64, mut passes: impl FnMut(f64, u64) -> f64) -> Losses {
        let mut losses = Losses::default();
        let (mut sent, mut received) = (0.0, 0.0);
        let (mut first_missing, mut last_missing, mut sent_until) = (None, Instant::ZERO, 0.0);
        for step in 1..400_u64 {
            let rate = losses.rate_most().min(6e6);
            let bytes = if step % every == 0 { rate * 0.01 * every as f64 / 8.0 } else { 0.0 };
            sent += bytes;
            let now = Instant::from_millis(step * 10);
            let passed = passes(bytes, step);
            received += passed;
            let mut hole = Duration::ZERO;
            if passed > 0.0 {
                sent_until = sent;
                hole = first_missing.take().map_or(hole, |first| last_missing.since(first));
            }
            if passed < bytes {
                last_missing = now;
                first_missing = first_missing.or(Some(now));
            }
            let shown = Shown {
                hole,
                sent: ByteCount::new(sent_until as u64),
                received: ByteCount::new(received as u64),
                lost: ByteCount::new((sent_until - received) as u64),
                queued: false,
                reordering: Duration::ZERO,
                rtt: Duration::from_millis(30),
                left: rate,
            };
            losses.observe(&shown, Duration::from_millis(10), now);
        }
        losses
    }

    #[test]
    fn losses_that_end_at_a_lower_rate_are_a_policers() {
        // 4 Mbit/s and a bucket of 50 kB.
        let mut tokens = 50_000.0;
        let losses = run(|bytes, _| {
            tokens = f64::min(tokens + 5_000.0, 50_000.0);
            let passed = f64::min(bytes, tokens);
            tokens -= passed;
            passed
        });
        let most = losses.rate_most();
        assert!((3.2e6..4.6e6).contains(&most), "{most}");
        assert!(losses.chance() < 0.05, "{}", losses.chance());
    }

    #[test]
    fn a_policer_is_found_where_15_pictures_a_second_leave_pauses() {
        // 4 Mbit/s and a bucket of 40 kB; each picture's end is lost.
        let mut tokens = 40_000.0;
        let losses = run_in_bursts(7, |bytes, _| {
            tokens = f64::min(tokens + 5_000.0, 40_000.0);
            let passed = f64::min(bytes, tokens);
            tokens -= passed;
            passed
        });
        let most = losses.rate_most();
        // It grows until the bucket is empty again.
        assert!((3.2e6..4.8e6).contains(&most), "{most}");
        assert!(losses.chance() < 0.07, "{}", losses.chance());
    }

    #[test]
    fn losses_that_go_on_at_any_rate_are_chance() {
        let losses = run(|bytes, step| bytes * if step % 4 == 0 { 0.6 } else { 1.0 });
        assert_eq!((losses.rate_most(), losses.is_trying()), (f64::INFINITY, false));
        assert!((0.05..0.2).contains(&losses.chance()), "{}", losses.chance());
    }

    #[test]
    fn what_a_full_queue_loses_is_no_chance_however_slowly_it_becomes_more() {
        let mut losses = Losses::default();
        let (mut sent, mut lost, mut overflows) = (0.0, 0.0, 0);
        for step in 1..2_000_u64 {
            sent += 7_500.0;
            lost += 7_500.0 * 0.3 * step as f64 / 2_000.0;
            let shown = Shown {
                hole: Duration::ZERO,
                sent: ByteCount::new(sent as u64),
                received: ByteCount::new((sent - lost) as u64),
                lost: ByteCount::new(lost as u64),
                queued: true,
                reordering: Duration::ZERO,
                rtt: Duration::from_millis(30),
                left: 6e6,
            };
            let now = Instant::from_millis(step * 10);
            overflows +=
                u32::from(losses.observe(&shown, Duration::from_millis(10), now) == News::Overflow);
        }
        assert_eq!(losses.chance(), 0.0);
        assert!(overflows > 20, "{overflows}");
    }

    #[test]
    fn an_outage_is_neither() {
        let losses = run(|bytes, step| if (200..225).contains(&step) { 0.0 } else { bytes });
        assert_eq!((losses.rate_most(), losses.is_trying()), (f64::INFINITY, false));
        assert!(losses.chance() < 0.01, "{}", losses.chance());
    }

    #[test]
    fn a_trial_in_which_hardly_anything_is_sent_tells_nothing() {
        let mut losses = Losses::default();
        let mut tell = |millis: u64, sent: u64, lost: u64| {
            let now = Instant::from_millis(millis);
            let shown = Shown {
                hole: Duration::ZERO,
                sent: ByteCount::new(sent),
                received: ByteCount::new(sent - lost),
                lost: ByteCount::new(lost),
                queued: false,
                reordering: Duration::ZERO,
                rtt: Duration::from_millis(30),
                left: 0.0,
            };
            losses.observe(&shown, Duration::from_millis(10), now);
            (losses.is_trying(), losses.rate_most())
        };
        tell(10, 0, 0);
        assert!(tell(20, 60_000, 12_000).0);
        let mut told = (true, 0.0);
        for step in 3..200 {
            told = tell(step * 10, 60_000 + step, 12_000);
        }
        assert_eq!(told, (false, f64::INFINITY));
    }
}
