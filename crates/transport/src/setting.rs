//! Deserialization and validation of settings.

use serde::Deserialize;
use tautline_units::{Bitrate, ByteCount, Duration};

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
    if holds { Ok(()) } else { Err(ConfigError { field, wrong: wrong() }) }
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
    let holds = value >= Duration::from_millis(least) && value <= Duration::from_millis(most);
    check(field, holds, || format!("{value:?} is not within {least} to {most} ms"))
}

/// Deserializes a setting that is a number of milliseconds, fractions allowed.
///
/// # Errors
/// The deserializer's, or one for a negative, too large or NaN number.
pub(crate) fn millis<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let millis = f64::deserialize(from)?;
    Duration::try_from_secs_f64(millis / 1e3).map_err(serde::de::Error::custom)
}

/// Deserializes a setting that is a whole number of bytes.
pub(crate) fn bytes<'de, D: serde::Deserializer<'de>>(from: D) -> Result<ByteCount, D::Error> {
    u64::deserialize(from).map(ByteCount::new)
}

/// Deserializes a setting that is a whole number of kbit/s.
///
/// # Errors
/// The deserializer's, or one for more than 2^64 bit/s.
pub(crate) fn kbps<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Bitrate, D::Error> {
    let kilobits = u64::deserialize(from)?;
    match kilobits.checked_mul(1_000) {
        Some(bits) => Ok(Bitrate::from_bps(bits)),
        None => Err(serde::de::Error::custom("more kbit/s than supported")),
    }
}
