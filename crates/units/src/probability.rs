/// A probability: a real number from 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug)]
pub struct Probability(f64);

impl Probability {
    /// Probability of an event that never happens.
    pub const ZERO: Self = Self(0.0);

    /// Probability of an event that always happens.
    pub const ONE: Self = Self(1.0);

    /// Returns the probability `value`, or `None` outside 0 to 1.
    #[inline]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Returns the share `part / whole`, capped at 1; zero if `whole` is zero.
    pub fn share(part: u64, whole: u64) -> Self {
        if whole == 0 {
            return Self::ZERO;
        }
        Self((part as f64 / whole as f64).min(1.0))
    }

    /// Returns the value, from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_zero_to_one_is_a_probability() {
        assert_eq!(Probability::new(-0.1), None);
        assert_eq!(Probability::new(f64::NAN), None);
        assert_eq!(Probability::share(3, 0), Probability::ZERO);
        assert_eq!(Probability::share(1, 4).get(), 0.25);
    }
}
