//! Common code of all messages: verified decoding, builder-based encoding, and checks of values.

use flatbuffers::{
    FlatBufferBuilder, Follow, ForwardsUOffset, Vector, Verifiable, VerifierOptions, WIPOffset,
};
use tautline_units::ByteCount;

use crate::Error;

/// Limits on the bytes of one kind of message, checked before any of it is read.
pub(crate) struct Kind {
    /// Name of the kind of message, for errors.
    pub(crate) name: &'static str,
    /// File identifier in bytes 4 to 7 of the message; `None` if the kind has none.
    pub(crate) identifier: Option<&'static str>,
    /// Maximum length of the message in bytes.
    pub(crate) bytes_max: usize,
    /// Maximum number of tables, including the root.
    pub(crate) tables_max: usize,
    /// Maximum nesting of tables, including the root.
    pub(crate) depth_max: usize,
}

/// Returns the root of `bytes`, after verifying length, identifier and structure.
pub(crate) fn root<'a, T>(kind: &Kind, bytes: &'a [u8]) -> Result<T::Inner, Error>
where
    T: Follow<'a> + Verifiable + 'a,
{
    if bytes.len() > kind.bytes_max {
        let max = ByteCount::new(kind.bytes_max as u64);
        return Err(Error::Oversized { kind: kind.name, length: ByteCount::of(bytes), max });
    }
    if let Some(identifier) = kind.identifier
        && bytes.get(4..8) != Some(identifier.as_bytes())
    {
        return Err(Error::WrongKind { kind: kind.name });
    }
    let options = VerifierOptions {
        max_depth: kind.depth_max,
        max_tables: kind.tables_max,
        // A builder shares vtables, but the verifier counts them for each table that uses them.
        max_apparent_size: kind.bytes_max.saturating_mul(4),
        ignore_missing_null_terminator: false,
    };
    flatbuffers::root_with_opts::<T>(&options, bytes)
        .map_err(|cause| Error::Malformed { kind: kind.name, cause })
}

/// Returns `value` if it is within `min` to `max`; NaN is not.
pub(crate) fn number(field: &'static str, value: f32, min: f32, max: f32) -> Result<f32, Error> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    let (value, min, max) = (f64::from(value), f64::from(min), f64::from(max));
    Err(Error::OutOfRange { field, value, min, max })
}

/// Returns `value` if it is within `min` to `max`, otherwise an error that names `field`.
pub(crate) fn within(field: &'static str, value: u16, min: u16, max: u16) -> Result<u16, Error> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    let (value, min, max) = (value.into(), min.into(), max.into());
    Err(Error::OutOfRange { field, value, min, max })
}

/// Returns `value`, in double precision, if it is within `min` to `max`; NaN is not.
pub(crate) fn number_f64(
    field: &'static str,
    value: f64,
    min: f64,
    max: f64,
) -> Result<f64, Error> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(Error::OutOfRange { field, value, min, max })
}

/// Returns a time in milliseconds, or `None` for a negative value, which means unknown. NaN and
/// times over [`MILLIS_MAX`] are errors.
pub(crate) fn millis(field: &'static str, value: f32) -> Result<Option<f32>, Error> {
    let value = number(field, value, f32::MIN, MILLIS_MAX)?;
    Ok((value >= 0.0).then_some(value))
}

/// Returns the encoding that [`millis`] reads back as `value`: a negative number for `None`.
pub(crate) fn millis_on_wire(value: Option<f32>) -> f32 {
    value.unwrap_or(-1.0)
}

/// Returns `value` owned, if it is at most `max` bytes long.
pub(crate) fn text(field: &'static str, value: &str, max: usize) -> Result<String, Error> {
    length(field, value.len(), max)?;
    Ok(value.to_owned())
}

/// Returns the items of `vector` as `read` converts them, if there are at most `max`.
pub(crate) fn list<'a, T, Owned>(
    field: &'static str,
    vector: Vector<'a, ForwardsUOffset<T>>,
    max: usize,
    read: impl Fn(T::Inner) -> Result<Owned, Error>,
) -> Result<Vec<Owned>, Error>
where
    T: Follow<'a> + 'a,
{
    length(field, vector.len(), max)?;
    vector.iter().map(read).collect()
}

/// Returns an error that names `field` if `length` exceeds `max`.
pub(crate) fn length(field: &'static str, length: usize, max: usize) -> Result<(), Error> {
    if length > max { Err(Error::TooLong { field, length, max }) } else { Ok(()) }
}

/// Writes `strings` into `builder` and returns their vector.
pub(crate) fn strings(
    builder: &mut FlatBufferBuilder<'static>,
    strings: &[String],
) -> WIPOffset<Vector<'static, ForwardsUOffset<&'static str>>> {
    let offsets: Vec<_> = strings.iter().map(|string| builder.create_string(string)).collect();
    builder.create_vector(&offsets)
}

/// Maximum length of the name of a vehicle, operator, link, drop or coordinate frame, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 64;
/// Maximum length of a text for a person, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 256;
/// Maximum number of links of a session: each local interface with each remote address, numbered 0
/// to 15.
pub(crate) const LINK_COUNT_MAX: usize = 16;
/// Maximum time in milliseconds, beyond which a message is refused: about three hours, far above
/// any delay of a live session.
pub(crate) const MILLIS_MAX: f32 = 1e7;
