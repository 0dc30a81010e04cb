use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub};
use core::time::Duration;

use crate::ByteCount;

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bitrate(u64);

impl Bitrate {
    /// Zero bits per second.
    pub const ZERO: Self = Self(0);

    /// Returns `bits` bits per second.
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns `kilobits` thousand bits per second.
    pub const fn from_kbps(kilobits: u64) -> Self {
        Self(kilobits * 1_000)
    }

    /// Returns `megabits` million bits per second.
    pub const fn from_mbps(megabits: u64) -> Self {
        Self(megabits * 1_000_000)
    }

    /// Returns the rate that carries `bytes` in `duration`, rounded down; zero for a zero duration.
    pub fn of(bytes: ByteCount, duration: Duration) -> Self {
        let nanos = duration.as_nanos();
        if nanos == 0 {
            return Self::ZERO;
        }
        if let (Ok(short), Some(scaled)) = (u64::try_from(nanos), bytes.get().checked_mul(SCALE)) {
            return Self(scaled / short);
        }
        let bits = u128::from(bytes.get()) * u128::from(SCALE) / nanos;
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// Returns bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Returns bits per second as `f64`, for arithmetic on estimates.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Returns this rate times `factor`, rounded down; zero for negative factors and NaN.
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }

    /// Returns the time that `bytes` take at this rate, rounded down to a nanosecond;
    /// [`Duration::MAX`] at rate zero.
    pub fn time_for(self, bytes: ByteCount) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        if let Some(scaled) = bytes.get().checked_mul(SCALE) {
            return Duration::from_nanos(scaled / self.0);
        }
        let nanos = u128::from(bytes.get()) * u128::from(SCALE) / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Mul<Duration> for Bitrate {
    type Output = ByteCount;
    fn mul(self, rhs: Duration) -> ByteCount {
        let short = u64::try_from(rhs.as_nanos()).ok().and_then(|nanos| self.0.checked_mul(nanos));
        if let Some(scaled) = short {
            return ByteCount::new(scaled / SCALE);
        }
        let bytes = u128::from(self.0).saturating_mul(rhs.as_nanos()) / u128::from(SCALE);
        ByteCount::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Add for Bitrate {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Bitrate {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Bitrate {
    type Output = Self;
    /// Subtracts, saturating at zero.
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Sum for Bitrate {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Debug for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..10_000 => write!(f, "{} bit/s", self.0),
            10_000..1_000_000 => write!(f, "{:.1} kbit/s", self.0 as f64 / 1e3),
            _ => write!(f, "{:.2} Mbit/s", self.0 as f64 / 1e6),
        }
    }
}

/// Bits per byte times nanoseconds per second: converts bytes per nanosecond to bits per second.
/// 64-bit arithmetic is used where it fits: a 128-bit division takes ten times as long.
const SCALE: u64 = 8_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_times_a_time_is_bytes_and_back() {
        let rate = Bitrate::from_mbps(8);
        let bytes = rate * Duration::from_millis(1);
        assert_eq!(bytes, ByteCount::new(1_000));
        assert_eq!(rate.time_for(bytes), Duration::from_millis(1));
        assert_eq!(Bitrate::of(bytes, Duration::from_millis(1)), rate);
    }

    #[test]
    fn rate_zero_takes_for_ever() {
        assert_eq!(Bitrate::ZERO.time_for(ByteCount::new(1)), Duration::MAX);
        assert_eq!(Bitrate::of(ByteCount::new(1), Duration::ZERO), Bitrate::ZERO);
    }
}
