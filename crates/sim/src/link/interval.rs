use std::collections::VecDeque;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::Exp1;
use serde::{Deserialize, Serialize};

use crate::error::{Error, within};

/// Handovers between cells.
///
/// From its start, nothing leaves the queue for `step_ms`; then it drains at the link's rate. A
/// ping on an idle link sees a delay step of up to `step_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// Length of one handover in ms, at most nine tenths of the shortest time between two.
    pub step_ms: f64,
    /// Time between the starts of two handovers in s: uniform from the first to the second.
    pub every_s: [f64; 2],
}

/// Outages: a Poisson process of interruptions with exponential lengths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Mean time from one outage's end to the next one's start in s.
    pub every_s: f64,
    /// Mean length in ms.
    pub mean_ms: f64,
}

impl Outage {
    /// Checks both fields, whose names in TOML are given.
    pub(super) fn validate(&self, [every_s, mean_ms]: [&'static str; 2]) -> Result<(), Error> {
        within(every_s, self.every_s, 0.1, 1e6)?;
        within(mean_ms, self.mean_ms, 0.001, 6e5)
    }
}

/// Interruptions of a link: disjoint intervals of time, `from..to` in nanoseconds.
///
/// Like the capacity, they depend on the seed alone and not on the traffic.
#[derive(Debug)]
pub(super) struct Intervals {
    law: Law,
    rng: ChaCha8Rng,
    known: VecDeque<(u64, u64)>,
    /// Cached stretch without interruptions; most queries fall into it.
    clear: (u64, u64),
}

#[derive(Debug)]
enum Law {
    Never,
    /// Exponential gaps from end to start, and exponential lengths; means in nanoseconds.
    Poisson {
        gap: f64,
        length: f64,
    },
    /// Uniform times from start to start, and one constant length.
    Steps {
        from: f64,
        to: f64,
        length: u64,
    },
    /// Intervals of a recording of length `period`, looped, from offset `start`.
    Recorded {
        list: Arc<[(u64, u64)]>,
        period: u64,
        start: u64,
    },
}

/// Maximum intervals drawn one by one; a longer leap in time starts afresh.
const DRAWS_MAX: usize = 100_000;

impl Intervals {
    pub(super) fn outages(outage: Option<&Outage>, rng: ChaCha8Rng) -> Self {
        let law = outage.map_or(Law::Never, |outage| Law::Poisson {
            gap: outage.every_s * 1e9,
            length: outage.mean_ms * 1e6,
        });
        Self::of_law(law, rng)
    }

    pub(super) fn handovers(handover: Option<&Handover>, rng: ChaCha8Rng) -> Self {
        let law = handover.map_or(Law::Never, |handover| Law::Steps {
            from: handover.every_s[0] * 1e9,
            to: handover.every_s[1] * 1e9,
            length: (handover.step_ms * 1e6) as u64,
        });
        Self::of_law(law, rng)
    }

    /// Returns the disjoint intervals of `list`, in order and within a loop of `period` (above
    /// zero), from `start` on.
    pub(super) fn recorded(list: Arc<[(u64, u64)]>, period: u64, start: u64) -> Self {
        let law = if list.is_empty() { Law::Never } else { Law::Recorded { list, period, start } };
        Self::of_law(law, ChaCha8Rng::seed_from_u64(0))
    }

    fn of_law(law: Law, rng: ChaCha8Rng) -> Self {
        Self { law, rng, known: VecDeque::new(), clear: (0, 0) }
    }

    /// Returns whether there are no interruptions at all.
    pub(super) fn is_never(&self) -> bool {
        matches!(self.law, Law::Never)
    }

    /// Returns the interval that contains `at`, or else the next one, or `None` if there are no
    /// more.
    pub(super) fn at_or_after(&mut self, at: u64) -> Option<(u64, u64)> {
        self.draw_beyond(at);
        let ended = self.known.iter().rev().take_while(|(_, to)| *to > at).count();
        self.known.get(self.known.len() - ended).copied()
    }

    /// Returns whether `at` lies within an interval.
    pub(super) fn contain(&mut self, at: u64) -> bool {
        if (self.clear.0..self.clear.1).contains(&at) {
            return false;
        }
        let next = self.at_or_after(at).map_or(u64::MAX, |(from, _)| from);
        self.clear = (at, next);
        next <= at
    }

    /// Discards intervals that ended before `now` (ns), except the newest; no later query is
    /// earlier.
    pub(super) fn forget_before(&mut self, now: u64) {
        while self.known.len() > 1 && self.known[0].1 <= now {
            self.known.pop_front();
        }
    }

    fn draw_beyond(&mut self, at: u64) {
        let mut previous = self.known.back().copied().unwrap_or((0, 0));
        for drawn in 0.. {
            if previous.1 > at {
                return;
            }
            if drawn == DRAWS_MAX {
                previous = (at, at);
                self.known.clear();
            }
            let Some(next) = self.draw(previous) else { return };
            self.known.push_back(next);
            previous = next;
            if next.0 == u64::MAX {
                return;
            }
        }
    }

    fn draw(&mut self, previous: (u64, u64)) -> Option<(u64, u64)> {
        match &self.law {
            Law::Never => None,
            Law::Poisson { gap, length } => {
                let gap: f64 = self.rng.sample::<f64, _>(Exp1) * *gap;
                let length: f64 = self.rng.sample::<f64, _>(Exp1) * *length;
                let from = previous.1.saturating_add(gap as u64);
                Some((from, from.saturating_add((length as u64).max(1))))
            }
            Law::Steps { from, to, length } => {
                // The first one has a random phase, so that links with different seeds differ from
                // the start.
                let lower = if self.known.is_empty() { 0.0 } else { *from };
                let gap = self.rng.random_range(lower..=*to);
                let from = previous.0.saturating_add(gap as u64);
                Some((from, from.saturating_add((*length).max(1))))
            }
            Law::Recorded { list, period, start } => {
                let place = previous.1.saturating_add(*start);
                let (mut cycle, rest) = (place / period, place % period);
                let mut index = list.partition_point(|(_, to)| *to <= rest);
                if index == list.len() {
                    (cycle, index) = (cycle + 1, 0);
                }
                let seen = |at: u64| {
                    let at = cycle.saturating_mul(*period).saturating_add(at);
                    if at == u64::MAX { at } else { at.saturating_sub(*start) }
                };
                let (from, to) = list[index];
                Some((seen(from).max(previous.1), seen(to)))
            }
        }
    }
}

/// All processes that stop a link's queue for a while: handovers and holding outages.
#[derive(Debug)]
pub(super) struct Gates {
    all: Vec<Intervals>,
    /// Cached open stretch; most queries fall into it.
    open: (u64, u64),
}

impl Gates {
    pub(super) fn new(all: impl IntoIterator<Item = Intervals>) -> Self {
        let all = all.into_iter().filter(|gate| !gate.is_never()).collect();
        Self { all, open: (0, 0) }
    }

    /// Returns the first instant from `at` on at which the link is open, and the time of its next
    /// closing, both in ns; `u64::MAX` if it does not close any more.
    pub(super) fn open_from(&mut self, at: u64) -> (u64, u64) {
        if (self.open.0..self.open.1).contains(&at) {
            return (at, self.open.1);
        }
        let mut at = at;
        loop {
            let (mut closed_until, mut closes) = (None, u64::MAX);
            for (from, to) in self.all.iter_mut().filter_map(|gate| gate.at_or_after(at)) {
                if from <= at {
                    closed_until = closed_until.max(Some(to));
                } else {
                    closes = closes.min(from);
                }
            }
            match closed_until {
                Some(until) if until > at => at = until,
                Some(_) => return (at, u64::MAX),
                None => {
                    self.open = (at, closes);
                    return self.open;
                }
            }
        }
    }

    /// Discards interruptions that ended before `now` (ns); no later query is earlier.
    pub(super) fn forget_before(&mut self, now: u64) {
        for gate in &mut self.all {
            gate.forget_before(now);
        }
    }
}

/// Returns a separate generator for each stream of a seed.
pub(super) fn stream_of(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn rng(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    #[test]
    fn handovers_come_at_their_times_and_last_their_length() {
        let law = Handover { step_ms: 300.0, every_s: [10.0, 30.0] };
        let mut steps = Intervals::handovers(Some(&law), rng(1));
        let (mut at, mut starts) = (0, Vec::new());
        while starts.len() < 200 {
            let (from, to) = steps.at_or_after(at).expect("for ever");
            assert_eq!(to - from, 300_000_000);
            starts.push(from);
            at = to;
            steps.forget_before(at);
        }
        let gaps = starts.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.clone().all(|gap| (10 * SECOND..=30 * SECOND).contains(&gap)));
        assert!(gaps.clone().any(|gap| gap < 12 * SECOND) && gaps.max() > Some(28 * SECOND));
    }

    #[test]
    fn outages_have_their_share_of_time() {
        let law = Outage { every_s: 20.0, mean_ms: 1_000.0 };
        let mut outages = Intervals::outages(Some(&law), rng(2));
        let total = 200_000 * SECOND;
        let (mut at, mut down) = (0, 0);
        while let Some((from, to)) = outages.at_or_after(at).filter(|(from, _)| *from < total) {
            down += to - from;
            at = to;
            outages.forget_before(at);
        }
        let share = down as f64 / total as f64;
        assert!((share - 1.0 / 21.0).abs() < 0.003, "share {share}");
    }

    #[test]
    fn gates_of_both_kinds_add_up() {
        let every = Outage { every_s: 0.1, mean_ms: 400.0 };
        let of_seed = |seed| Intervals::outages(Some(&every), rng(seed));
        let mut gates = Gates::new([of_seed(3), of_seed(4)]);
        let mut alone = [of_seed(3), of_seed(4)];
        let mut held = 0;
        for millis in 0..100_000_u64 {
            let now = millis * 1_000_000;
            gates.forget_before(now);
            let (open, closes) = gates.open_from(now);
            assert!(open >= now && closes > open);
            assert!(!alone.iter_mut().any(|gate| gate.contain(open)));
            held += u64::from(open > now);
        }
        assert!((93_000..99_000).contains(&held), "{held}");
    }

    #[test]
    fn the_clocks_end_is_reached_in_short_work() {
        let law = Outage { every_s: 0.1, mean_ms: 0.001 };
        let mut outages = Intervals::outages(Some(&law), rng(5));
        let step = Handover { step_ms: 1.0, every_s: [0.1, 0.1] };
        let mut steps = Intervals::handovers(Some(&step), rng(5));
        for at in [0, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            outages.contain(at);
            steps.contain(at);
        }
        Gates::new([steps, outages]).open_from(u64::MAX);
    }

    #[test]
    fn recorded_intervals_come_round() {
        let list: Arc<[_]> = [(10, 20), (20, 25), (90, 100)].into();
        let mut seen = Intervals::recorded(Arc::clone(&list), 100, 15);
        for at in 0..1_000 {
            let place = (at + 15) % 100;
            let inside = list.iter().any(|(from, to)| (*from..*to).contains(&place));
            assert_eq!(seen.contain(at), inside, "at {at}");
        }
        let mut far = Intervals::recorded(list, 100, 15);
        assert!(far.contain(u64::MAX / 2 / 100 * 100 + 100));
        far.contain(u64::MAX);
    }
}
