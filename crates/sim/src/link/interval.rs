use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::Exp1;

use super::config::{Handover, Outage};

/// Interruptions of a link: disjoint intervals of time, `from..to` in nanoseconds.
///
/// Like the capacity, they depend on the seed alone and not on the traffic.
#[derive(Debug)]
pub(super) struct Intervals {
    law: Law,
    rng: ChaCha8Rng,
    known: VecDeque<(u64, u64)>,
}

#[derive(Debug)]
enum Law {
    Never,
    /// Exponential gaps from end to start, exponential lengths: means in nanoseconds.
    Poisson {
        gap: f64,
        length: f64,
    },
    /// Uniform times from start to start, one length.
    Steps {
        from: f64,
        to: f64,
        length: u64,
    },
}

/// Intervals that are drawn one by one before a leap in time starts afresh.
const DRAWS_MAX: usize = 100_000;

impl Intervals {
    pub(super) fn outages(outage: Option<&Outage>, rng: ChaCha8Rng) -> Self {
        let law = outage.map_or(Law::Never, |outage| Law::Poisson {
            gap: outage.every_s * 1e9,
            length: outage.mean_ms * 1e6,
        });
        Self { law, rng, known: VecDeque::new() }
    }

    pub(super) fn handovers(handover: Option<&Handover>, rng: ChaCha8Rng) -> Self {
        let law = handover.map_or(Law::Never, |handover| Law::Steps {
            from: handover.every_s[0] * 1e9,
            to: handover.every_s[1] * 1e9,
            length: (handover.step_ms * 1e6) as u64,
        });
        Self { law, rng, known: VecDeque::new() }
    }

    /// The interval that contains `at`, or else the next one; `None`: there is no further one.
    pub(super) fn at_or_after(&mut self, at: u64) -> Option<(u64, u64)> {
        self.draw_beyond(at);
        let ended = self.known.iter().rev().take_while(|(_, to)| *to > at).count();
        self.known.get(self.known.len() - ended).copied()
    }

    /// Whether `at` lies within an interval.
    pub(super) fn contain(&mut self, at: u64) -> bool {
        self.at_or_after(at).is_some_and(|(from, _)| from <= at)
    }

    /// Lets go of what lies before `now`.
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
        match self.law {
            Law::Never => None,
            Law::Poisson { gap, length } => {
                let gap: f64 = self.rng.sample::<f64, _>(Exp1) * gap;
                let length: f64 = self.rng.sample::<f64, _>(Exp1) * length;
                let from = previous.1.saturating_add(gap as u64);
                Some((from, from.saturating_add((length as u64).max(1))))
            }
            Law::Steps { from, to, length } => {
                // The first comes at any phase, so that links with different seeds differ at once.
                let lower = if self.known.is_empty() { 0.0 } else { from };
                let gap = self.rng.random_range(lower..=to);
                let from = previous.0.saturating_add(gap as u64);
                Some((from, from.saturating_add(length.max(1))))
            }
        }
    }
}

/// Everything that stops a link's queue for a while: handovers and outages that hold.
#[derive(Debug)]
pub(super) struct Gates {
    pub(super) handovers: Intervals,
    pub(super) outages: Intervals,
}

impl Gates {
    /// The first instant from `at` on at which the link is open, and when it closes next.
    pub(super) fn open_from(&mut self, at: u64) -> (u64, u64) {
        let mut at = at;
        loop {
            let next = [self.handovers.at_or_after(at), self.outages.at_or_after(at)];
            let closed_until = next.iter().flatten().filter(|i| i.0 <= at).map(|i| i.1).max();
            match closed_until {
                Some(until) if until > at => at = until,
                Some(_) => return (at, u64::MAX),
                None => {
                    let closes = next.iter().flatten().map(|i| i.0).min().unwrap_or(u64::MAX);
                    return (at, closes);
                }
            }
        }
    }

    /// Lets go of what lies before `now`.
    pub(super) fn forget_before(&mut self, now: u64) {
        self.handovers.forget_before(now);
        self.outages.forget_before(now);
    }

    /// Nanoseconds from `now` to the end of the present interruption; zero when open.
    #[cfg(test)]
    fn wait(&mut self, now: u64) -> u64 {
        self.open_from(now).0 - now
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

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
        let mut gates = Gates {
            handovers: Intervals::outages(Some(&every), rng(3)),
            outages: Intervals::outages(Some(&every), rng(4)),
        };
        let mut held = 0;
        for millis in 0..100_000_u64 {
            let now = millis * 1_000_000;
            gates.forget_before(now);
            let (open, closes) = gates.open_from(now);
            assert!(open >= now && closes > open);
            assert!(!gates.handovers.contain(open) && !gates.outages.contain(open));
            held += u64::from(gates.wait(now) > 0);
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
        let mut gates = Gates { handovers: steps, outages };
        gates.open_from(u64::MAX);
    }
}
