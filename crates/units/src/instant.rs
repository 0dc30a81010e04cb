use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since the zero of one monotonic clock. A program's clock has its
/// zero when the program starts it, so one clock may serve several sessions.
///
/// Instants of two machines are not comparable without the estimated clock offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(u64);

impl Instant {
    /// The clock's zero.
    pub const ZERO: Self = Self(0);

    /// Returns the instant `nanos` nanoseconds after the clock's zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the instant `micros` microseconds after the clock's zero.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Returns the instant `millis` milliseconds after the clock's zero.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Returns the nanoseconds since the clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the microseconds since the clock's zero, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the milliseconds since the clock's zero, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the age at `self` of an event at `dated`: the time from `dated` to `self`.
    ///
    /// `dated` comes from another machine's clock and is already converted to this one's; `error`
    /// is the maximum error of that conversion. If `dated` is later than `self` by at most `error`,
    /// the age is zero. If it is later by more, the age is unknown: `None`, which must not count as
    /// fresh.
    pub const fn age(self, dated: Self, error: Duration) -> Option<Duration> {
        let ahead = dated.since(self);
        if ahead.as_nanos() > error.as_nanos() { None } else { Some(self.since(dated)) }
    }

    /// Returns the time from `other` to `self` in nanoseconds, negative if `other` is later. Wraps
    /// if the two lie more than 292 years apart.
    pub const fn signed_nanos_since(self, other: Self) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }

    /// Returns the instant `nanos` nanoseconds later (earlier if negative), saturating at the
    /// clock's limits.
    pub const fn offset_by_nanos(self, nanos: i64) -> Self {
        Self(self.0.saturating_add_signed(nanos))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(rhs)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    /// Subtracts, saturating at [`Instant::ZERO`].
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanos(rhs)))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}ms", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_later_instant_is_never_a_negative_time_away() {
        let (a, b) = (Instant::from_millis(3), Instant::from_millis(5));
        assert_eq!(b.since(a), Duration::from_millis(2));
        assert_eq!(a.since(b), Duration::ZERO);
        assert_eq!(a.signed_nanos_since(b), -2_000_000);
        assert_eq!(a.offset_by_nanos(-4_000_000), Instant::ZERO);
    }

    #[test]
    fn a_date_ahead_by_more_than_the_error_has_no_age() {
        let (now, error) = (Instant::from_millis(1_000), Duration::from_millis(20));
        let age = |millis| now.age(Instant::from_millis(millis), error);
        assert_eq!(age(990), Some(Duration::from_millis(10)));
        assert_eq!(age(1_020), Some(Duration::ZERO));
        assert_eq!(age(1_021), None);
        assert_eq!(age(3_601_000), None);
        assert_eq!(now.age(Instant::from_nanos(u64::MAX), error), None);
    }

    proptest! {
        /// For all timestamps: the age is exactly the time since the timestamp, zero if that is
        /// negative by at most the error, and `None` if it is negative by more.
        #[test]
        fn no_date_is_younger_than_it_can_be(now in any::<u64>(), dated in any::<u64>(), error in any::<u64>()) {
            let age = Instant::from_nanos(now).age(Instant::from_nanos(dated), Duration::from_nanos(error));
            let apart = i128::from(now) - i128::from(dated);
            prop_assert_eq!(age.is_none(), apart < -i128::from(error));
            if let Some(age) = age {
                prop_assert_eq!(age.as_nanos() as i128, apart.max(0));
            }
        }
    }

    #[test]
    fn the_end_of_the_clock_holds() {
        assert_eq!(Instant::from_nanos(u64::MAX) + Duration::MAX, Instant::from_nanos(u64::MAX));
        assert_eq!(Instant::ZERO - Duration::MAX, Instant::ZERO);
    }
}
