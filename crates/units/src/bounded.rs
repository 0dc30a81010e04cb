use core::fmt;
use core::ops::RangeInclusive;

/// Value of a setting, with the bounds that it must keep.
///
/// As an error it names setting, value, bounds and unit; docs/settings.md takes bounds and units
/// from that text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounded {
    setting: &'static str,
    value: f64,
    min: f64,
    max: f64,
    unit: &'static str,
    is_size: bool,
}

impl Bounded {
    /// Creates a value in the unit that the name of its setting ends with, such as `_ms`; without a
    /// unit if the name ends with none.
    pub fn new(setting: &'static str, value: f64, bounds: RangeInclusive<f64>) -> Self {
        let named = UNITS.iter().find(|(suffix, _)| setting.ends_with(suffix));
        let unit = named.map_or("", |(_, unit)| unit);
        let (min, max) = bounds.into_inner();
        Self { setting, value, min, max, unit, is_size: false }
    }

    /// Creates the size of a text or of a list, counted in `unit`, with its bounds.
    pub fn size(
        setting: &'static str,
        size: usize,
        bounds: RangeInclusive<usize>,
        unit: &'static str,
    ) -> Self {
        let (min, max) = bounds.into_inner();
        let (value, min, max) = (size as f64, min as f64, max as f64);
        Self { setting, value, min, max, unit, is_size: true }
    }

    /// Sets the unit of a setting whose name has none.
    #[must_use]
    pub const fn in_unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// Checks the value; NaN is out of all bounds.
    ///
    /// # Errors
    /// The value itself, if it is out of its bounds.
    pub fn check(self) -> Result<(), Self> {
        if (self.min..=self.max).contains(&self.value) { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Bounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, value, min, max, unit, is_size } = *self;
        match is_size {
            true => write!(f, "{setting} has {value} {unit}: must be {min} to {max}")?,
            false => write!(f, "{setting} = {value}: must be {min} to {max}")?,
        }
        if unit.is_empty() { Ok(()) } else { write!(f, " {unit}") }
    }
}

impl core::error::Error for Bounded {}

/// Ends of settings' names, and the units that they stand for; a longer end precedes the shorter.
const UNITS: [(&str, &str); 22] = [
    ("_m_per_s3", "m/s³"),
    ("_m_per_s2", "m/s²"),
    ("_rad_per_s2", "rad/s²"),
    ("_rad_per_s", "rad/s"),
    ("_m_per_s", "m/s"),
    ("_rad", "rad"),
    ("_degrees", "degrees"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_days", "days"),
    ("_m", "m"),
    ("_kg", "kg"),
    ("_dbm", "dBm"),
    ("_kbps", "kbit/s"),
    ("_mbps", "Mbit/s"),
    ("_kib", "KiB"),
    ("_mib", "MiB"),
    ("_gib", "GiB"),
    ("_bytes", "bytes"),
    ("_bytes_max", "bytes"),
    ("_per_second", "per second"),
    ("_percent", "%"),
];

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;

    #[test]
    fn a_value_out_of_bounds_is_named_with_bounds_and_unit() {
        let told = |bounded: Bounded| bounded.check().unwrap_err().to_string();
        let timeout = |ms| Bounded::new("link_timeout_ms", ms, 20.0..=500.0);
        assert_eq!(told(timeout(19.5)), "link_timeout_ms = 19.5: must be 20 to 500 ms");
        assert!(told(timeout(f64::NAN)).starts_with("link_timeout_ms = NaN"));
        assert_eq!((timeout(20.0).check(), timeout(500.0).check()), (Ok(()), Ok(())));
        let share = Bounded::new("brake_share", 2.0, 0.0..=1.0);
        assert_eq!(told(share), "brake_share = 2: must be 0 to 1");
        let count = Bounded::new("leases_max", 0.0, 1.0..=4096.0).in_unit("leases");
        assert_eq!(told(count), "leases_max = 0: must be 1 to 4096 leases");
        let text = Bounded::size("place", 33, 1..=32, "bytes");
        assert_eq!(told(text), "place has 33 bytes: must be 1 to 32 bytes");
    }

    #[test]
    fn the_longest_unit_of_a_name_counts() {
        let unit = |setting| Bounded::new(setting, 0.0, 0.0..=0.0).unit;
        assert_eq!(unit("speed_max_m_per_s"), "m/s");
        assert_eq!(unit("datagram_bytes_max"), "bytes");
        assert_eq!((unit("to_front_m"), unit("before_s")), ("m", "s"));
    }
}
