//! Loss patterns of slices.

use std::fmt;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A loss pattern, applied to slices in sending order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pattern {
    /// Independent losses with this probability.
    Random(f64),
    /// Bursts of consecutive slices with uniform lengths, which amount to this share of all.
    Bursts {
        /// Share of slices lost.
        share: f64,
        /// Minimum and maximum length of a burst, in slices.
        lengths: [u32; 2],
    },
    /// All slices of a picture at once, with this probability.
    Pictures(f64),
    /// Every n-th slice, for the given n.
    Every(u32),
    /// Independent losses with this probability, from the third second to the thirteenth; none
    /// before and after.
    Spell(f64),
}

/// The lost slices of one run.
pub(super) struct Losses {
    pattern: Pattern,
    /// Slices per picture.
    strips: u32,
    /// Pictures per second.
    rate: u32,
    random: ChaCha8Rng,
    slice: u32,
    /// Slices still to be lost in the current burst or picture.
    left: u32,
}

impl Losses {
    pub(super) fn new(pattern: Pattern, strips: usize, rate: u32, seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        Self { pattern, strips: strips as u32, rate, random, slice: 0, left: 0 }
    }

    /// Returns whether the next slice is lost; the first picture is never lost.
    pub(super) fn next(&mut self) -> bool {
        let (slice, picture) = (self.slice, self.slice / self.strips);
        self.slice += 1;
        if picture == 0 {
            return false;
        }
        match self.pattern {
            Pattern::Random(share) => self.random.random_bool(share),
            Pattern::Spell(share) => {
                let within = (3 * self.rate..13 * self.rate).contains(&picture);
                within && self.random.random_bool(share)
            }
            Pattern::Every(nth) => slice.is_multiple_of(nth.max(1)),
            Pattern::Pictures(share) => {
                if slice.is_multiple_of(self.strips) && self.random.random_bool(share) {
                    self.left = self.strips;
                }
                self.take()
            }
            Pattern::Bursts { share, lengths: [least, most] } => {
                let mean = f64::from(least + most) / 2.0;
                // The gap between two bursts is as long as the share requires.
                let begins = (share / (mean * (1.0 - share))).clamp(0.0, 1.0);
                if self.left == 0 && self.random.random_bool(begins) {
                    self.left = self.random.random_range(least..=most);
                }
                self.take()
            }
        }
    }

    fn take(&mut self) -> bool {
        let is_lost = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_lost
    }
}

impl Pattern {
    /// Patterns of mobile links, and some more severe ones.
    pub const ALL: [Self; 10] = [
        Self::Random(0.005),
        Self::Random(0.01),
        Self::Random(0.02),
        Self::Random(0.05),
        Self::Random(0.1),
        Self::Bursts { share: 0.02, lengths: [3, 30] },
        Self::Bursts { share: 0.05, lengths: [3, 30] },
        Self::Pictures(0.03),
        Self::Every(17),
        Self::Spell(0.3),
    ];
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        match self {
            Self::Random(share) => write!(f, "{} % of slices", percent(*share)),
            Self::Bursts { share, lengths: [least, most] } => {
                write!(f, "{} % in bursts of {least} to {most}", percent(*share))
            }
            Self::Pictures(share) => write!(f, "{} % of whole pictures", percent(*share)),
            Self::Every(nth) => write!(f, "every {nth}th slice"),
            Self::Spell(share) => write!(f, "{} % for 10 s", percent(*share)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS: u32 = 160;

    #[test]
    fn each_pattern_loses_its_share_and_none_of_the_first_picture() {
        for pattern in Pattern::ALL {
            let mut losses = Losses::new(pattern, 6, 60, 7);
            let lost: Vec<bool> = (0..6 * 60 * SECONDS).map(|_| losses.next()).collect();
            assert!(lost[..6].iter().all(|lost| !lost), "{pattern}");
            let share = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
            let expected = match pattern {
                Pattern::Random(share)
                | Pattern::Pictures(share)
                | Pattern::Bursts { share, .. } => share,
                Pattern::Every(nth) => 1.0 / f64::from(nth),
                Pattern::Spell(share) => share * 10.0 / f64::from(SECONDS),
            };
            assert!((share / expected - 1.0).abs() < 0.35, "{pattern}: {share}");
        }
    }

    #[test]
    fn bursts_have_the_requested_lengths() {
        let pattern = Pattern::Bursts { share: 0.02, lengths: [3, 30] };
        let mut losses = Losses::new(pattern, 6, 60, 1);
        let lost: Vec<bool> = (0..60_000).map(|_| losses.next()).collect();
        let runs = lost.split(|lost| !lost).map(<[bool]>::len).filter(|run| *run > 0);
        let runs: Vec<usize> = runs.collect();
        // Two bursts may be adjacent.
        assert!(runs.iter().all(|run| (3..=60).contains(run)));
        assert!(runs.iter().filter(|run| **run <= 30).count() * 20 > runs.len() * 19);
    }
}
