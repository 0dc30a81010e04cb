/// Measure of the cost of losses over all strips of a picture, used to select their references
/// ([`LossRecovery::ReferencesByLoss`](super::LossRecovery::ReferencesByLoss)).
///
/// It is the share of recent slices that were corrupt, or would have been with recovery only after
/// each reported loss. A reported loss is visible from its picture to the recovery, one round trip.
/// It counts for [`MEMORY`] pictures, with decreasing weight. A loss in one strip also affects the
/// others' choice: the next loss may be theirs.
#[derive(Clone, Debug)]
pub struct LossCost {
    share: f64,
    is_high: bool,
    /// Number of slices over which the share is averaged.
    memory: f64,
}

impl LossCost {
    /// Creates the measure of a picture of `strips` strips (at least one) without losses.
    pub fn new(strips: usize) -> Self {
        Self { share: 0.0, is_high: false, memory: MEMORY * strips.max(1) as f64 }
    }

    /// Records a slice that is about to be coded. `corrupt` is the number of its strip's pictures
    /// that a loss corrupted, or would have, if it recovers from one; `None` otherwise.
    pub fn note(&mut self, corrupt: Option<u64>) {
        let corrupt = corrupt.map_or(0.0, |pictures| pictures as f64);
        self.share += (corrupt - self.share) / self.memory;
        self.is_high = self.share >= if self.is_high { LOW } else { HIGH };
    }

    /// Returns whether corrupt slices are so frequent that references one round trip old cost less:
    /// true from [`HIGH`] on, until the share falls below [`LOW`].
    pub fn is_high(&self) -> bool {
        self.is_high
    }
}

/// Number of pictures over which the share is averaged: two seconds at 60 pictures/s.
const MEMORY: f64 = 120.0;
/// Share of corrupt slices from which losses count as frequent, reached by two losses within a
/// second at a round trip of 6 pictures, in any of six strips; `tautline lab loss --toll` compares
/// both methods around it.
const HIGH: f64 = 0.015;
/// Share of corrupt slices below which losses no longer count as frequent: two losses fall below it
/// after two and a half seconds. It is a third of [`HIGH`], so that single losses at regular
/// intervals do not toggle the method.
const LOW: f64 = 0.005;

#[cfg(test)]
mod tests {
    use super::*;

    const STRIPS: u64 = 6;

    /// Returns the measure after a start without losses.
    fn quiet() -> LossCost {
        let mut toll = LossCost::new(STRIPS as usize);
        (0..200 * STRIPS).for_each(|_| toll.note(None));
        assert!(!toll.is_high());
        toll
    }

    /// Returns the share of 6000 pictures in which the measure is high, and the number of changes,
    /// when every `interval`th slice recovers from a loss of `corrupt` pictures.
    fn high(interval: u64, corrupt: u64) -> (f64, usize) {
        let mut toll = quiet();
        let highs: Vec<bool> = (0..6_000 * STRIPS)
            .map(|slice| {
                toll.note(slice.is_multiple_of(interval).then_some(corrupt));
                toll.is_high()
            })
            .collect();
        let changes = highs.windows(2).filter(|pair| pair[0] != pair[1]).count();
        (highs.iter().filter(|high| **high).count() as f64 / highs.len() as f64, changes)
    }

    #[test]
    fn few_losses_are_recovered_from_and_many_are_provided_for() {
        // One loss of 3 pictures per second; one of 7 every three seconds; then eighteen of 7 per
        // second, 5 % of the slices.
        assert_eq!(high(60 * STRIPS, 3).0, 0.0);
        assert_eq!(high(180 * STRIPS, 7).0, 0.0);
        let (share, changes) = high(20, 7);
        assert!(share > 0.99 && changes <= 1, "{share} {changes}");
    }

    #[test]
    fn losses_around_the_threshold_do_not_toggle_the_mode() {
        for interval in (60..720).step_by(12) {
            let (_, changes) = high(interval, 7);
            assert!(changes <= 2, "every {interval}th: {changes}");
        }
    }

    #[test]
    fn losses_of_one_strip_raise_the_mode_of_all() {
        let mut toll = quiet();
        let strips: Vec<u64> = (0..2 * STRIPS)
            .filter(|slice| {
                toll.note(matches!(slice % STRIPS, 1 | 4).then_some(7));
                toll.is_high()
            })
            .collect();
        assert_eq!(strips.first(), Some(&4));
    }

    #[test]
    fn a_spell_of_losses_is_over_a_few_seconds_after_it() {
        let mut toll = LossCost::new(STRIPS as usize);
        let pictures_until_low = |toll: &mut LossCost| {
            let slices = (0..10_000).take_while(|_| {
                toll.note(None);
                toll.is_high()
            });
            slices.count() as u64 / STRIPS
        };
        assert_eq!(pictures_until_low(&mut toll), 0);
        (0..600 * STRIPS).for_each(|slice| toll.note((slice % 7 == 0).then_some(7)));
        assert!(toll.is_high());
        assert!((120..720).contains(&pictures_until_low(&mut toll)));
    }
}
