use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tautline_transport::rate::{Cause, Config, Controller, Evidence, Factory, Grant, Sample};
use tautline_units::{Bitrate, Duration, Instant};

/// The two-state rate control of [LTE] III.B with the parameters of its published code [LLMLNCL].
///
/// *Measure*: if less arrives than was sent, the rate falls below the arrival rate, to drain the
/// queue. *Probation*: after 1.5 s without a change the rate rises by a fifth for four reports and
/// falls by a fifth for four. If the arrival rate shows both, the raised rate is kept.
///
/// Deviations from the paper, all because transport paces here and an application may send less
/// than granted:
/// - sent and received samples cover the same datagrams (the reports' times are aligned by the
///   link's delay), whereas the published code compares the last 100 ms of each side;
/// - a link that sends less than 0.7 of its grant does not probe: there is nothing to gain, and the
///   raised rate would show nothing;
/// - the rate of a link that sends less than the floor never falls: too few datagrams to judge by.
///   If it sends less than 0.7 of its grant, the rate falls only during a queue. Otherwise a camera
///   on a still scene would lose its rate to every short stall;
/// - padding fills the grant while probing, so that the probe does not wait for the encoder;
/// - a stall of the link (a handover) does not indicate its capacity: the samples are cleared;
/// - a link far below its rate of the last 20 s probes after 500 ms and, once a probation has
///   succeeded, by half instead of a fifth;
/// - a probation is aborted below half the floor, not below the floor: at the floor its lowered
///   half is four fifths of it, and no link would ever leave it;
/// - during a queue of 80 ms there is no probation, and the rate falls if it is far above the
///   arrival rate.
///
/// Measured in docs/decisions/0005-cut-links.md.
#[derive(Debug)]
pub struct TwoState {
    turns: Turns,
    floor: f64,
    ceiling: f64,
    initial: f64,
    /// Rate that both states start from, bit/s.
    base: f64,
    /// Recent maximum of `base`, with its time; `None` before the first.
    former: Option<(Instant, f64)>,
    /// Factor on `base` in the current probation.
    raise: f64,
    /// Evidence since the last fall that the rate can rise again.
    rising: Rising,
    state: State,
    changed_at: Option<Instant>,
    /// Rate received at the other end by each of the last [`SAMPLES`] reports, the newest first,
    /// bit/s.
    received: VecDeque<f64>,
    /// Rate sent by this end in the times of the same reports, in the same order, bit/s.
    sent: VecDeque<f64>,
}

/// The factory of [`TwoState`].
#[derive(Debug, Clone)]
pub struct TwoStateFactory {
    /// Minimum granted rate; default 800 kbit/s (100 kB/s, [LLMLNCL]).
    pub floor: Bitrate,
    /// Number of the session's links that are probing now, at most one.
    probing: Arc<AtomicUsize>,
}

impl Default for TwoStateFactory {
    fn default() -> Self {
        Self { floor: Bitrate::from_kbps(800), probing: Arc::default() }
    }
}

impl Factory for TwoStateFactory {
    fn controller(&self, config: &Config) -> Box<dyn Controller> {
        let turns = Turns { probing: Arc::clone(&self.probing), holds: false };
        let floor = self.floor.min(config.initial);
        Box::new(TwoState::new(config.initial, floor, config.ceiling, turns))
    }

    fn for_session(&self) -> Option<Arc<dyn Factory>> {
        Some(Arc::new(Self { floor: self.floor, probing: Arc::default() }))
    }
}

/// This link's part in the turns at probing: of a session's links, one probes at a time.
#[derive(Debug, Default)]
struct Turns {
    probing: Arc<AtomicUsize>,
    /// True while it is the turn of this link.
    holds: bool,
}

impl Turns {
    fn are_free(&self) -> bool {
        self.probing.load(Ordering::Relaxed) == usize::from(self.holds)
    }

    fn set(&mut self, holds: bool) {
        match (self.holds, holds) {
            (false, true) => _ = self.probing.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.probing.fetch_sub(1, Ordering::Relaxed),
            (true, true) | (false, false) => {}
        }
        self.holds = holds;
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// Outcome of the last probation since the rate last fell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rising {
    /// No probation has ended since the rate last fell.
    Untried,
    Shown,
    Denied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Measure,
    /// A probation, in which the rate is raised and then lowered; `left` counts the reports until
    /// its end, from 8 to 1.
    Probation {
        left: u32,
        raised: bool,
        lowered: bool,
    },
}

impl TwoState {
    /// Creates a controller that starts at `initial` and stays within `floor` and `ceiling`.
    fn new(initial: Bitrate, floor: Bitrate, ceiling: Bitrate, turns: Turns) -> Self {
        Self {
            turns,
            floor: floor.as_f64(),
            ceiling: ceiling.as_f64(),
            initial: initial.as_f64(),
            base: initial.as_f64(),
            former: None,
            raise: RAISE,
            rising: Rising::Untried,
            state: State::Measure,
            changed_at: None,
            received: VecDeque::with_capacity(SAMPLES),
            sent: VecDeque::with_capacity(SAMPLES),
        }
    }

    fn grant(&mut self) -> Grant {
        self.turns.set(self.state != State::Measure);
        let rate = match self.state {
            State::Measure => self.base,
            State::Probation { left, .. } if left >= TURN => self.base * self.raise,
            State::Probation { .. } => self.base * LOWER,
        };
        Grant {
            rate: Bitrate::from_bps(rate as u64),
            sustained: Bitrate::from_bps(rate.min(self.base) as u64),
            window: None,
            probing: self.state != State::Measure,
            cause: self.cause(),
        }
    }

    fn cause(&self) -> Cause {
        match (self.state, self.rising) {
            (State::Measure, _) if self.changed_at.is_none() => Cause::Beginning,
            (State::Measure, Rising::Untried) => Cause::Queue,
            (State::Measure, Rising::Shown) => Cause::Growth,
            (State::Measure, Rising::Denied) | (State::Probation { .. }, _) => Cause::Probation,
        }
    }

    fn push(&mut self, sample: Sample) {
        let both = [(&mut self.received, sample.received), (&mut self.sent, sample.sent)];
        for (samples, rate) in both {
            if samples.len() == SAMPLES {
                samples.pop_back();
            }
            samples.push_front(rate.as_f64());
        }
    }

    fn change(&mut self, rate: f64, now: Instant) {
        self.base = rate.clamp(self.floor, self.ceiling);
        self.changed_at = Some(now);
        let higher =
            self.former.filter(|(at, rate)| *rate > self.base && now.since(*at) < FORMER_LIFE);
        self.former = Some(higher.unwrap_or((now, self.base)));
    }

    fn measure(&mut self, evidence: &Evidence) {
        let (rx, tx) = (&self.received, &self.sent);
        let full = rx.len() == SAMPLES;
        let carried = mean(tx, 0, 3);
        if full && mean(rx, 0, SAMPLES - 1) == 0.0 && mean(tx, 0, SAMPLES - 1) > 0.0 {
            self.change(self.floor, evidence.now);
            return;
        }
        let waited = evidence.now.since(self.changed_at.unwrap_or(Instant::ZERO));
        if self.changed_at.is_some() && waited < CHANGE_PAUSE {
            return;
        }
        if rx.len() < 4 {
            return;
        }
        let arrived = mean(rx, 0, 3);
        let less = rx[0] < 0.95 * tx[0] && 1.05 * arrived < carried;
        let waiting = evidence.queueing.is_some_and(|queue| queue > QUEUE_MOST);
        let far = waiting && arrived < QUEUED_SHARE * self.base;
        // On a link that is not filled, a shortfall without a queue shows a stall, not the
        // capacity.
        let filled = carried >= PROBE_SHARE * self.base;
        let queued = evidence.queueing.is_some_and(|queue| queue > QUEUE_SIGN);
        let less = less && (filled || queued);
        if (less || far) && carried >= self.floor {
            self.rising = Rising::Untried;
            self.change(0.9 * arrived.min(self.base), evidence.now);
            return;
        }
        let busy = filled && !waiting;
        let room = self.base < self.ceiling;
        let fallen = self.former.is_some_and(|(_, rate)| self.base < FALLEN * rate);
        let (pause, raise) = match self.rising {
            Rising::Untried if fallen => (CHANGE_PAUSE, RAISE),
            Rising::Shown if fallen => (CHANGE_PAUSE, RAISE_FALLEN),
            Rising::Untried | Rising::Shown | Rising::Denied => (PROBE_PAUSE, RAISE),
        };
        if full && waited >= pause && busy && room && self.turns.are_free() {
            self.raise = raise;
            self.state = State::Probation { left: 8, raised: false, lowered: false };
        }
    }

    fn probation(&mut self, left: u32, mut raised: bool, mut lowered: bool, evidence: &Evidence) {
        let rx = &self.received;
        if rx[0] < ABORT_SHARE * self.floor {
            self.state = State::Measure;
            self.changed_at = Some(evidence.now);
            return;
        }
        if left == TURN {
            raised = 0.95 * mean(rx, 0, 3) > mean(rx, 4, 7);
        }
        if left == 2 {
            lowered = mean(rx, 1, 2) < 0.95 * mean(rx, 3, 5);
        }
        if left > 1 {
            self.state = State::Probation { left: left - 1, raised, lowered };
            return;
        }
        self.state = State::Measure;
        // The raised samples are those of reports 7, 6 and 5; this one is report 1.
        let reached = mean(rx, 4, 6);
        let shown = raised && lowered;
        self.rising = if shown { Rising::Shown } else { Rising::Denied };
        self.change(if shown { reached.max(self.base) } else { self.base }, evidence.now);
    }
}

impl Controller for TwoState {
    fn initial(&self) -> Grant {
        let rate = Bitrate::from_bps(self.initial as u64);
        let cause = Cause::Beginning;
        Grant { rate, sustained: rate, window: None, probing: false, cause }
    }

    fn on_report(&mut self, evidence: &Evidence) -> Grant {
        let Some(sample) = evidence.sample else { return self.grant() };
        self.push(sample);
        match self.state {
            State::Measure => self.measure(evidence),
            State::Probation { left, raised, lowered } => {
                self.probation(left, raised, lowered, evidence);
            }
        }
        self.grant()
    }

    fn on_silent(&mut self, now: Instant) -> Grant {
        self.received.clear();
        self.sent.clear();
        self.state = State::Measure;
        self.changed_at = Some(now);
        self.grant()
    }

    fn on_stall(&mut self, now: Instant) -> Grant {
        self.received.clear();
        self.sent.clear();
        if self.state != State::Measure {
            self.state = State::Measure;
            self.changed_at = Some(now);
        }
        self.grant()
    }
}

/// Returns the mean of the samples with indices `from..=to`, newest first; zero if there are none.
fn mean(samples: &VecDeque<f64>, from: usize, to: usize) -> f64 {
    let count = samples.len().min(to + 1).saturating_sub(from);
    if count == 0 {
        return 0.0;
    }
    samples.range(from..from + count).sum::<f64>() / count as f64
}

/// Number of samples that are kept, each of 100 ms ([LLMLNCL]).
const SAMPLES: usize = 10;
/// Factor on the base rate in the first four reports of a probation ([LLMLNCL]).
const RAISE: f64 = 1.2;
/// Factor on the base rate in the last four reports of a probation ([LLMLNCL]).
const LOWER: f64 = 0.8;
/// Number of reports left in a probation down to which the rate is raised ([LLMLNCL]).
const TURN: u32 = 5;
/// Minimum time between two changes of the rate ([LLMLNCL]).
const CHANGE_PAUSE: Duration = Duration::from_millis(500);
/// Minimum time from a change to a probation ([LLMLNCL]).
const PROBE_PAUSE: Duration = Duration::from_millis(1_500);
/// Share of the recent maximum within [`FORMER_LIFE`] below which a link is assumed to leave a
/// trough, not to have changed. It then probes sooner and by more.
const FALLEN: f64 = 0.6;
const FORMER_LIFE: Duration = Duration::from_secs(20);
const RAISE_FALLEN: f64 = 1.5;
/// Share of the floor below which a received rate aborts a probation: below the 0.8 of the floor
/// that a probation itself causes.
const ABORT_SHARE: f64 = 0.5;
/// Queueing delay above which no probation begins, and the rate falls if the arrival rate is below
/// [`QUEUED_SHARE`] of the base rate.
const QUEUE_MOST: Duration = Duration::from_millis(80);
/// Queueing delay, above jitter, from which the rate of a link that does not fill its grant may
/// fall as that of a filled link does.
const QUEUE_SIGN: Duration = Duration::from_millis(25);
/// Share of the base rate below which the arrival rate, during a queue, shows that the rate is too
/// high: the arrival rate is then the link's capacity. Pacing has protected the link, so that the
/// paper's rule cannot see it.
const QUEUED_SHARE: f64 = 0.7;
/// Share of the grant below which the application, not the link, sets the rate. The budget is 0.9
/// of the grant, and an encoder stays a little below it.
const PROBE_SHARE: f64 = 0.7;

#[cfg(test)]
mod tests;
