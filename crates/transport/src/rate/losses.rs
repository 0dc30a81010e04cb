use std::collections::VecDeque;

use tautline_units::{ByteCount, Duration, Instant};

/// The classification of losses: random at any rate, or caused by too high a rate.
///
/// Only a lower rate can tell. If more is lost than chance explains, without a queue, the rate is
/// held below the arrival rate for a while. If the losses end, they come from a policer or a short
/// queue, whose rate is the arrival rate during the losses. If they continue, they are random.
/// Random losses come in clusters, which trigger such trials, and mostly decrease afterwards. If
/// chance explains the end of the losses too, the limit is soon tested, and confirmed only if
/// losses return beyond it. (BBR v3 treats any share above 2 % as a bound, which fails on a radio
/// that loses a tenth by itself.)
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    /// Totals of the last [`SPAN`] or [`BYTES`], whichever is longer, but of at most [`SPAN_MOST`].
    marks: VecDeque<Mark>,
    /// Share of datagrams that is lost at random, whatever the rate.
    chance: f64,
    /// Trial at a lower rate that is running at present; `None` without one.
    trial: Option<Trial>,
    /// Rate above which datagrams are lost; `None` if none is known.
    limit: Option<Limit>,
    rtt: Duration,
    reordering: Duration,
}

/// Totals as of one report, in bytes: `sent` up to the newest datagram that arrived, and of these
/// `received` and `lost`.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Instant,
    sent: u64,
    lost: u64,
    received: u64,
}

/// A period at a lower rate, which shows whether losses end there.
#[derive(Debug, Clone, Copy)]
struct Trial {
    /// Time from which reports cover the trial rather than what preceded it.
    from: Instant,
    /// Totals of the first report from `from` on; `None` before it.
    first: Option<Mark>,
    /// Share of the bytes sent that was lost before the trial.
    lost: f64,
    /// Number of full packets that `lost` is based on.
    packets: f64,
    /// Arrival rate before the trial, bit/s.
    delivered: f64,
    /// True if this is the second of two trials, because the first changed the losses without
    /// ending them.
    again: bool,
}

/// A rate above which datagrams are lost.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// Present value in bit/s; grows while nothing is lost.
    rate: f64,
    /// Time of the last losses that the limit caused.
    met_at: Instant,
    /// Value of the limit at `met_at`, bit/s.
    met: f64,
    /// True if chance does not explain the end of the losses, or losses returned at a higher rate.
    confirmed: bool,
}

/// Reaction that the losses of one report demand of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// No reaction, except to keep to [`Losses::rate_most`].
    Nothing,
    /// A reaction to an overflowing queue: more is lost than chance explains, and there is a queue.
    Overflow,
}

/// Values of one delivery report, from which [`Losses`] decides whether losses are random or those
/// of an overflowing queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// Time from the first to the last send time in a new run of missing datagrams.
    pub(super) hole: Duration,
    /// Total bytes sent up to the newest datagram that arrived.
    pub(super) sent: ByteCount,
    /// Total bytes that arrived since the session began.
    pub(super) received: ByteCount,
    /// Total bytes declared lost since the session began, without those that arrived later.
    pub(super) lost: ByteCount,
    /// True if there is a standing queue.
    pub(super) queued: bool,
    /// Longest time by which recent datagrams were sent before newer ones that overtook them.
    pub(super) reordering: Duration,
    /// Minimum RTT of the link.
    pub(super) rtt: Duration,
    /// Current sending rate of the link, bit/s, whatever part of it arrives.
    pub(super) left: f64,
}

impl Losses {
    /// Returns the share of datagrams that is lost at random, whatever the rate.
    pub(super) fn chance(&self) -> f64 {
        self.chance
    }

    /// Returns whether a trial at a lower rate is running.
    pub(super) fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Returns the maximum sending rate by the running trial and the known limit, bit/s; infinite
    /// without either.
    pub(super) fn rate_most(&self) -> f64 {
        let tried = self.trial.map_or(f64::INFINITY, |trial| trial.rate());
        tried.min(self.limit.map_or(f64::INFINITY, |limit| limit.rate * LIMIT_SHARE))
    }

    /// Handles a report, `elapsed` after the previous one: starts and judges trials, and sets,
    /// tests and drops the limit. Returns [`News::Overflow`] if more is lost than chance explains
    /// while there is a queue, and no trial is running.
    pub(super) fn observe(&mut self, shown: &Shown, elapsed: Duration, now: Instant) -> News {
        let (sent, received) = (shown.sent.get(), shown.received.get());
        let mark = Mark { at: now, sent, lost: shown.lost.get(), received };
        self.rtt = shown.rtt;
        // A complete gap in arrivals is an outage: a policer, a full queue and random loss let some
        // packets pass. Without transmissions there is no gap.
        if shown.hole > OUTAGE {
            self.clear();
        }
        // Datagrams declared lost arrived later than was assumed possible.
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

    /// Handles a report that shows no more losses than usual: adapts the share lost at random,
    /// raises a limit that is used and has caused no losses for a while, and drops one that has
    /// grown by a factor of [`FORGOTTEN`].
    fn calm(&mut self, lost: f64, shown: &Shown, elapsed: Duration, now: Instant) {
        let share = elapsed.as_secs_f64();
        // Losses of an overflowing queue are not random, however slowly they increase.
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
            // Too little was sent for a verdict.
            self.end_trial(mark);
            return;
        }
        if lost < trial.lost * ENDED {
            let confirmed = trial.explains(lost, packets) <= BY_CHANCE;
            if !confirmed && !is_over {
                return;
            }
            if !confirmed {
                // If the losses at this rate are random too, they must not trigger the next trial.
                self.chance = self.chance.max(lost.min(CHANCE_MOST));
            }
            self.limit = Some(Limit::of(trial.delivered, mark.at, confirmed));
        } else if !trial.again && !AS_BEFORE.contains(&(lost / trial.lost)) {
            // Packets that a token bucket passed at first hid its rate.
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

    /// Drops the recent totals and the trial, after a silence or an outage; keeps the share lost at
    /// random and the limit.
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
    /// Returns the sending rate during the trial, bit/s: less than arrived before, and the lower
    /// the more was lost. Fewer losses mean that a policer's rate is closer to what is sent.
    fn rate(self) -> f64 {
        self.delivered * (1.0 - self.lost - TRIAL_MARGIN).max(TRIAL_SHARE)
    }

    /// Returns the probability that at most the share `lost` of `packets` packets is lost during
    /// the trial if the loss ratio is the same before and during it.
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
    /// Returns whether the marks from `next` up to this one span enough time and bytes, so that the
    /// mark before `next` can be dropped.
    fn outlives(&self, next: &Mark) -> bool {
        let span = self.at.since(next.at);
        (span >= SPAN && self.sent.saturating_sub(next.sent) >= BYTES) || span >= SPAN_MOST
    }

    /// Returns the arrival rate since `first`, bit/s; at least one packet per second, so that a
    /// limit can grow.
    fn received_since(&self, first: Mark) -> f64 {
        let span = self.at.since(first.at).as_secs_f64().max(1e-3);
        let rate = self.received.saturating_sub(first.received) as f64 * 8.0 / span;
        rate.max(PACKET * 8.0)
    }

    /// Returns the share lost since `first`, and the number of full packets it is based on.
    ///
    /// An overtaken datagram has not arrived and is not lost. A datagram that only lost reports
    /// covered is declared lost although it arrived. Hence the smaller of the two counts.
    fn lost_since(&self, first: Mark) -> (f64, f64) {
        let sent = self.sent.saturating_sub(first.sent);
        let missing = sent.saturating_sub(self.received.saturating_sub(first.received));
        let lost = self.lost.saturating_sub(first.lost).min(missing) as f64;
        let sent = sent as f64;
        ((lost / sent.max(1.0)).min(1.0), sent / PACKET)
    }
}

/// Minimum time over which losses are counted.
const SPAN: Duration = Duration::from_millis(300);
/// Minimum number of bytes over which losses are counted, unless they take [`SPAN_MOST`]: 100
/// packets.
const BYTES: u64 = 120_000;
const SPAN_MOST: Duration = Duration::from_millis(1_500);
/// Bytes of a full packet.
const PACKET: f64 = 1_200.0;
/// Minimum number of full packets sent from which anything is concluded about losses.
const PACKETS_LEAST: f64 = 20.0;
/// Gap in arrivals above which it counts as an outage, which ends a trial and drops the recent
/// totals: a policer causes it only below 250 kbit/s.
const OUTAGE: Duration = Duration::from_millis(50);
/// Share of datagrams lost beyond chance that is tolerated without reordering: it costs less than a
/// trial. BBR v3 tolerates the same.
const LOST_SEEN: f64 = 0.02;
/// Share of datagrams lost beyond chance that is tolerated with reordering: some datagrams declared
/// lost are still in flight.
const LOST_SEEN_REORDERED: f64 = 0.1;
/// Number of standard deviations above the mean from which chance does not explain losses.
const DEVIATIONS: f64 = 4.0;
/// Minimum rate of a trial as a share of the arrival rate before it.
const TRIAL_SHARE: f64 = 0.8;
/// Margin of a trial's rate, as a share of the arrival rate, in addition to the share lost before.
const TRIAL_MARGIN: f64 = 0.03;
/// Time until a lower rate shows its effect, in addition to a round trip.
const SETTLES: Duration = Duration::from_millis(20);
/// Number of expected losses from which a trial can be judged.
const EXPECTED: f64 = 6.0;
/// Time after which a trial is judged even with fewer than [`EXPECTED`] expected losses, or if
/// chance explains that they have ended. (Without a verdict at that time, a 1 Mbit/s policer leaves
/// .53 instead of .65.)
const TRIAL_MOST: Duration = Duration::from_millis(800);
/// Ratio of the losses in a trial to those before it that counts as unchanged. A token bucket that
/// passes some packets at first changes it more.
const AS_BEFORE: std::ops::RangeInclusive<f64> = 0.6..=1.6;
/// Ratio of the losses in a trial to those before it below which they have ended.
const ENDED: f64 = 0.34;
/// Probability below which chance does not explain the end of losses. Trials start where losses are
/// many, so they mostly decrease afterwards.
const BY_CHANCE: f64 = 0.04;
pub(super) const CHANCE_MOST: f64 = 0.6;
/// Time constant of the share lost at random, in seconds.
const CHANCE_LIFE: f64 = 3.0;
/// Maximum sending rate as a share of a limit.
const LIMIT_SHARE: f64 = 0.96;
/// Time since the last losses at a limit after which new losses are attributed to it without a
/// trial.
const AGAIN_AFTER: Duration = Duration::from_millis(600);
/// Time after losses for which a confirmed limit does not grow.
const CALM: Duration = Duration::from_millis(1_500);
/// Initial relative growth of a confirmed limit per second; it doubles every second.
const GROWTH_FIRST: f64 = 0.02;
/// Time after losses for which an unconfirmed limit, which may not exist, does not grow.
const CALM_UNCONFIRMED: Duration = Duration::from_millis(300);
/// Initial relative growth of an unconfirmed limit per second; it doubles every second.
const GROWTH_UNCONFIRMED: f64 = 0.3;
/// Share of a confirmed limit's rate that must be sent for the limit to grow.
const USED: f64 = 0.8;
/// Share of an unconfirmed limit's rate that must be sent for the limit to grow. Refused bursts are
/// not sent, so such a limit holds back more than the sent rate shows.
const USED_UNCONFIRMED: f64 = 0.5;
/// Factor by which a limit must have grown since the last losses to be dropped.
const FORGOTTEN: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends 6 Mbit/s, or what is allowed, for 4 s in steps of 10 ms; `passes` maps the bytes sent
    /// in a step, and its number, to the bytes delivered. Returns the final state.
    fn run(passes: impl FnMut(f64, u64) -> f64) -> Losses {
        run_in_bursts(1, passes)
    }

    /// Sends as [`run`] does, but the bytes of `every` steps together in the last of them.
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
    fn slowly_rising_overflow_losses_are_not_taken_for_random() {
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
    fn a_trial_with_hardly_any_traffic_proves_nothing() {
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
