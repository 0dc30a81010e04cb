//! What losses cost a strip: the measure by which its references are chosen.

/// The share of recent pictures that were corrupt, or would have been, had only each loss that was reported been
/// recovered from.
///
/// A loss that is reported shows from its picture to the recovery, a round trip. What it shows counts for
/// [`MEMORY`] pictures, less and less.
#[derive(Clone, Debug)]
pub(super) struct Toll {
    share: f64,
    is_high: bool,
}

impl Toll {
    pub(super) fn new() -> Self {
        Self { share: 0.0, is_high: false }
    }

    /// Takes note of a picture that is coded next, and of how many pictures were corrupt if it recovers from a loss.
    pub(super) fn note(&mut self, corrupt: Option<u64>) {
        let corrupt = corrupt.map_or(0.0, |pictures| pictures as f64);
        self.share += (corrupt - self.share) / MEMORY;
        self.is_high = self.share >= if self.is_high { LOW } else { HIGH };
    }

    /// Returns whether so many pictures are corrupt that references which are a round trip old cost less.
    pub(super) fn is_high(&self) -> bool {
        self.is_high
    }
}

/// Pictures: two seconds at 60 a second.
const MEMORY: f64 = 120.0;
/// Reached by one loss at a round trip of 6 pictures, by two within two seconds at one of 3; `tautline lab loss --toll`
/// shows both ways around it.
const HIGH: f64 = 0.05;
/// What is left of a single loss after three seconds is less.
const LOW: f64 = 0.015;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of 6000 pictures in which the toll is high, and how often that changes, when every
    /// `interval`th recovers from a loss of `corrupt` pictures.
    fn high(interval: u64, corrupt: u64) -> (f64, usize) {
        let mut toll = Toll::new();
        let highs: Vec<bool> = (0..6_000_u64)
            .map(|picture| {
                toll.note(picture.is_multiple_of(interval).then_some(corrupt));
                toll.is_high()
            })
            .collect();
        let changes = highs.windows(2).filter(|pair| pair[0] != pair[1]).count();
        (highs.iter().filter(|high| **high).count() as f64 / 6_000.0, changes)
    }

    #[test]
    fn few_losses_are_recovered_from_and_many_are_provided_for() {
        // One loss in 10 s, of 3 pictures; then one every two and a half seconds; then five a second, of 7.
        assert_eq!(high(600, 3).0, 0.0);
        assert_eq!(high(150, 3).0, 0.0);
        let (share, changes) = high(12, 7);
        assert!(share > 0.99 && changes <= 1, "{share} {changes}");
    }

    #[test]
    fn a_spell_of_losses_is_over_a_few_seconds_after_it() {
        let mut toll = Toll::new();
        (0..600).for_each(|picture| toll.note((picture % 7 == 0).then_some(7)));
        assert!(toll.is_high());
        let pictures = (0..2_000).take_while(|_| {
            toll.note(None);
            toll.is_high()
        });
        assert!((120..600).contains(&pictures.count()));
    }
}
