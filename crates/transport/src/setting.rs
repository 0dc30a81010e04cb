//! Deserialization, serialization and validation of settings.

use tautline_units::{Bitrate, Bounded, Duration};

use crate::error::ConfigError;

/// Checks that a field's condition `holds`; `wrong` describes the fault if it does not.
///
/// # Errors
/// [`ConfigError`] with the field's name and a description of the fault.
pub(crate) fn check(
    field: &'static str,
    holds: bool,
    wrong: impl FnOnce() -> String,
) -> Result<(), ConfigError> {
    if holds { Ok(()) } else { Err(ConfigError::Contradiction { field, wrong: wrong() }) }
}

/// Checks that a field lies within `least` to `most` milliseconds, both included.
///
/// # Errors
/// [`ConfigError`] with the field's name and a description of the fault.
pub(crate) fn within(
    field: &'static str,
    value: Duration,
    least: u64,
    most: u64,
) -> Result<(), ConfigError> {
    let bounds = least as f64..=most as f64;
    Ok(Bounded::new(field, value.as_secs_f64() * 1e3, bounds).check()?)
}

/// Checks that a rate lies within `least` kbit/s to 10 Gbit/s.
pub(crate) fn rate_within(
    field: &'static str,
    rate: Bitrate,
    least: u32,
) -> Result<(), ConfigError> {
    let kbps = rate.as_f64() / 1e3;
    Ok(Bounded::new(field, kbps, f64::from(least)..=KBPS_MAX).check()?)
}

/// Maximum of every rate setting, kbit/s: more than any link carries.
const KBPS_MAX: f64 = 10e6;

/// Serialization of durations as numbers of milliseconds, with fractions.
pub(crate) mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use tautline_units::Duration;

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64() * 1e3)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let millis = f64::deserialize(from)?;
        Duration::try_from_secs_f64(millis / 1e3).map_err(serde::de::Error::custom)
    }
}

/// Serialization of byte counts as whole numbers of bytes.
pub(crate) mod bytes {
    use serde::{Deserialize, Deserializer, Serializer};
    use tautline_units::ByteCount;

    pub(crate) fn serialize<S: Serializer>(bytes: &ByteCount, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(bytes.get())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ByteCount, D::Error> {
        u64::deserialize(from).map(ByteCount::new)
    }
}

/// Serialization of rates as whole numbers of kbit/s; a fraction is cut off when writing.
pub(crate) mod kbps {
    use serde::{Deserialize, Deserializer, Serializer};
    use tautline_units::Bitrate;

    pub(crate) fn serialize<S: Serializer>(rate: &Bitrate, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(rate.bps() / 1_000)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bitrate, D::Error> {
        let kilobits = u64::deserialize(from)?;
        match kilobits.checked_mul(1_000) {
            Some(bits) => Ok(Bitrate::from_bps(bits)),
            None => Err(serde::de::Error::custom("more kbit/s than supported")),
        }
    }
}
