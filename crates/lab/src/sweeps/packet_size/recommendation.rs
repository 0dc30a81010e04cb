//! The size that a sweep recommends, with reasons.

use std::fmt;

use super::bins::{CHOSEN_BY, LIMITS};
use super::trial::{Size, Trial};

/// A recommended size, with its reasons.
///
/// The paper picks the largest share of messages within 250 ms, however small the difference. Here
/// sizes that are statistically indistinguishable from the best are equal. Among these, the one
/// with the least overhead is chosen: fewer bytes mean less load and less queueing for other
/// traffic. Among sizes whose overhead is equal to within a thousandth, the one with the largest
/// sum of both directions is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The recommended size.
    pub size: Size,
    /// Share of the end-to-end messages within 250 ms at the recommended size.
    pub within: f64,
    /// Share of the bytes on the wire that are not application data, at the recommended size.
    pub overhead: f64,
    /// The size with the largest share within 250 ms, which the paper's rule picks.
    pub largest: Size,
    /// Share of the end-to-end messages within 250 ms at the size [`largest`](Self::largest).
    pub largest_within: f64,
    /// Sizes indistinguishable from the largest, including itself, in the order of the trials.
    pub equal: Vec<Size>,
    /// Number of sizes tried.
    pub tried: usize,
}

impl Recommendation {
    /// Chooses among `trials`; `None` if none of them has an end-to-end message.
    ///
    /// Two trials are compared round by round: they differ if the mean difference exceeds two
    /// standard errors. With fewer than two rounds that both have, the error is that of independent
    /// messages, which is too optimistic, because delays are correlated.
    pub fn of(trials: &[Trial]) -> Option<Self> {
        let judged: Vec<Judged<'_>> = trials.iter().filter_map(Judged::of).collect();
        let largest = judged.iter().reduce(|a, b| if b.within > a.within { b } else { a })?;
        let equal: Vec<&Judged<'_>> =
            judged.iter().filter(|judged| !judged.is_below(largest)).collect();
        let least = equal.iter().map(|judged| judged.overhead).fold(f64::INFINITY, f64::min);
        let cheap = equal.iter().copied().filter(|judged| judged.overhead <= least + OVERHEAD_SAME);
        let chosen = cheap.max_by_key(|judged| judged.trial.size.up + judged.trial.size.down)?;
        Some(Self {
            size: chosen.trial.size,
            within: chosen.within,
            overhead: chosen.overhead,
            largest: largest.trial.size,
            largest_within: largest.within,
            equal: equal.iter().map(|judged| judged.trial.size).collect(),
            tried: judged.len(),
        })
    }
}

impl fmt::Display for Recommendation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = LIMITS[CHOSEN_BY].as_millis();
        let percent = |share: f64| share * 100.0;
        write!(
            f,
            "use {}: {:.1} % of the messages come within {limit} ms end to end, and {:.1} % of the \
             bytes are overhead. ",
            self.size,
            percent(self.within),
            percent(self.overhead)
        )?;
        if self.equal.len() == 1 {
            return write!(f, "No other of {} sizes does as well.", self.tried);
        }
        let all = if self.equal.len() == self.tried { "All" } else { "Of them," };
        write!(
            f,
            "The largest share, {:.2} %, is that of {}. {all} {} of the {} sizes do not differ \
             significantly from it; this one has the least overhead.",
            percent(self.largest_within),
            self.largest,
            self.equal.len(),
            self.tried
        )
    }
}

/// A trial with data to judge.
struct Judged<'a> {
    trial: &'a Trial,
    within: f64,
    overhead: f64,
}

impl<'a> Judged<'a> {
    fn of(trial: &'a Trial) -> Option<Self> {
        let total = trial.total();
        let within = total.end_to_end.shares()?[CHOSEN_BY];
        Some(Self { trial, within, overhead: total.overhead_share().unwrap_or(0.0) })
    }

    fn is_below(&self, largest: &Self) -> bool {
        let difference = largest.within - self.within;
        difference > ERRORS_APART * self.error_against(largest)
    }

    /// Returns the standard error of the difference between this trial's and the other's share of
    /// messages within the limit: from the differences by round, or, with fewer than two rounds
    /// that both have, as of independent messages.
    fn error_against(&self, other: &Self) -> f64 {
        let share = |trial: &Trial, round: usize| {
            trial.rounds[round].end_to_end.shares().map(|shares| shares[CHOSEN_BY])
        };
        let rounds = self.trial.rounds.len().min(other.trial.rounds.len());
        let differences: Vec<f64> = (0..rounds)
            .filter_map(|round| Some(share(other.trial, round)? - share(self.trial, round)?))
            .collect();
        let count = differences.len() as f64;
        if differences.len() < 2 {
            let variance = |judged: &Self| {
                let sent = judged.trial.total().end_to_end.sent() as f64;
                judged.within * (1.0 - judged.within) / sent
            };
            return (variance(self) + variance(other)).sqrt();
        }
        let mean = differences.iter().sum::<f64>() / count;
        let squares: f64 = differences.iter().map(|d| (d - mean) * (d - mean)).sum();
        (squares / (count - 1.0) / count).sqrt()
    }
}

/// Number of standard errors by which two sizes' shares of messages within the limit must differ:
/// chance alone exceeds two about once in twenty comparisons.
const ERRORS_APART: f64 = 2.0;
/// Overhead difference treated as chance: packets smaller than all sizes tried have the same
/// overhead.
const OVERHEAD_SAME: f64 = 0.001;

#[cfg(test)]
mod tests {
    use tautline_units::{ByteCount, Duration};

    use super::*;
    use crate::sweeps::packet_size::Round;

    /// Returns a trial of `bytes` with the given number of 100 messages in time in each round.
    fn trial(bytes: u64, in_time: &[u64], overhead_percent: u64) -> Trial {
        let round = |in_time: &u64| {
            let mut round = Round::default();
            (0..*in_time).for_each(|_| round.end_to_end.arrive(Duration::from_millis(200)));
            round.end_to_end.lose(100 - in_time);
            round.wire = ByteCount::new(100);
            round.payload = ByteCount::new(100 - overhead_percent);
            round
        };
        let bytes = ByteCount::new(bytes);
        let size = Size { up: bytes, down: bytes };
        Trial { size, rounds: in_time.iter().map(round).collect() }
    }

    #[test]
    fn a_clear_winner_is_chosen_despite_its_overhead() {
        let trials = [trial(150, &[95, 96, 97], 40), trial(1200, &[80, 82, 81], 5)];
        let recommendation = Recommendation::of(&trials).unwrap();
        assert_eq!(recommendation.size.up.get(), 150);
        assert_eq!(recommendation.equal.len(), 1);
        assert!(recommendation.to_string().contains("No other of 2 sizes"), "{recommendation}");
    }

    #[test]
    fn of_equals_the_one_with_the_least_overhead_is_taken() {
        let trials = [
            trial(150, &[95, 60, 97], 40),
            trial(400, &[94, 61, 97], 15),
            trial(1200, &[95, 59, 96], 5),
            trial(1500, &[60, 20, 59], 4),
        ];
        let recommendation = Recommendation::of(&trials).unwrap();
        assert_eq!(recommendation.size.up.get(), 1200);
        assert_eq!(recommendation.equal.len(), 3);
        assert_eq!((recommendation.largest.up.get(), recommendation.tried), (150, 4));
    }

    #[test]
    fn a_single_round_has_the_error_of_independent_messages() {
        let trials = [trial(150, &[96], 40), trial(1200, &[94], 5), trial(1500, &[80], 4)];
        assert_eq!(Recommendation::of(&trials).unwrap().size.up.get(), 1200);
    }

    #[test]
    fn a_size_that_changes_nothing_is_left_large() {
        let trials = [trial(150, &[95, 60], 10), trial(1200, &[95, 60], 10)];
        assert_eq!(Recommendation::of(&trials).unwrap().size.up.get(), 1200);
    }

    #[test]
    fn nothing_is_recommended_from_nothing() {
        assert_eq!(Recommendation::of(&[]), None);
        let size = Size { up: ByteCount::new(400), down: ByteCount::new(400) };
        let silent = Trial { size, rounds: vec![Round::default()] };
        assert_eq!(Recommendation::of(&[silent]), None);
    }
}
