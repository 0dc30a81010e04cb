//! The fields of a message in one list: a new field needs only one line there.
//!
//! A line states a field's name and type, its name in flatc's table, and the [`Codec`] between the
//! two. The list generates the field's writer, its reader, and the random and invalid values for
//! tests.

use flatbuffers::{FlatBufferBuilder, WIPOffset};
#[cfg(test)]
use proptest::prelude::*;
use tautline_units::{Bitrate, ByteCount, Instant};

use crate::Error;
use crate::wire::{MILLIS_MAX, number, text};

/// Declares a message, or a table within one, by its fields.
///
/// `Message of Table<'_>, TableArgs, "prefix."`: flatc's two types, and the prefix of field names
/// in errors. A line is `name: Type = wire_name as Codec`, or a bare `name: Type` for a field that
/// is written and read by hand.
macro_rules! fields {
    (
        $(#[$about:meta])*
        $message:ident of $table:ty, $($arguments:ident)::+, $prefix:literal {
            $($(#[$doc:meta])* $field:ident: $type:ty
                $(= $wire:ident as $codec:expr)?,)+
        }
    ) => {
        $(#[$about])*
        pub struct $message {
            $($(#[$doc])* pub $field: $type,)+
        }

        impl $message {
            fn write_listed(
                &self,
                arguments: &mut $($arguments)::+<'_>,
                builder: &mut ::flatbuffers::FlatBufferBuilder<'static>,
            ) {
                $($(
                    arguments.$wire =
                        $crate::fields::Codec::<$type>::write(&$codec, &self.$field, builder);
                )?)+
            }

            /// Returns the listed fields, with defaults for the others.
            fn read_listed(table: $table) -> Result<Self, $crate::Error> {
                let mut message = Self::default();
                $($(
                    let name = concat!($prefix, stringify!($field));
                    message.$field =
                        $crate::fields::Codec::<$type>::read(&$codec, name, table.$wire())?;
                )?)+
                Ok(message)
            }

            /// Returns random values for the listed fields, with defaults for the others.
            #[cfg(test)]
            pub(crate) fn any_listed() -> ::proptest::strategy::BoxedStrategy<Self> {
                use ::proptest::strategy::Strategy;
                let message = ::proptest::strategy::Just(Self::default()).boxed();
                $($(
                    let values = $crate::fields::Codec::<$type>::any(&$codec);
                    let with = |(message, value)| Self { $field: value, ..message };
                    let message = (message, values).prop_map(with).boxed();
                )?)+
                message
            }

            /// Returns, for each invalid value of a listed field, the field's name and `ordinary`
            /// with that value.
            #[cfg(test)]
            pub(crate) fn refused_listed(ordinary: &Self) -> Vec<(&'static str, Self)> {
                let mut refused = Vec::new();
                $($(
                    let name = concat!($prefix, stringify!($field));
                    for value in $crate::fields::Codec::<$type>::refused(&$codec) {
                        refused.push((name, Self { $field: value, ..ordinary.clone() }));
                    }
                )?)+
                refused
            }
        }
    };
}
pub(crate) use fields;

/// Encoding of a field's values in a table, with their range.
pub(crate) trait Codec<T> {
    /// Type that the getter in flatc's table returns for the field.
    type Read<'a>;
    /// Type of the field among flatc's arguments for writing the table.
    type Written;

    /// Returns the encoding of `value`, as an argument for writing the table.
    fn write(&self, value: &T, builder: &mut FlatBufferBuilder<'static>) -> Self::Written;

    /// Returns the decoded value.
    ///
    /// # Errors
    /// An error that names `field`, if the value is out of its range.
    fn read(&self, field: &'static str, wire: Self::Read<'_>) -> Result<T, Error>;

    /// Returns a strategy for random valid values of the field.
    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<T>;

    /// Returns some values that can be encoded and that [`read`](Self::read) refuses; none if it
    /// accepts every value.
    #[cfg(test)]
    fn refused(&self) -> Vec<T> {
        Vec::new()
    }
}

/// Codec of types that are stored unchanged.
pub(crate) struct Plain;

macro_rules! plain {
    ($($type:ty),+) => {$(
        impl Codec<$type> for Plain {
            type Read<'a> = $type;
            type Written = $type;

            fn write(&self, value: &$type, _: &mut FlatBufferBuilder<'static>) -> $type {
                *value
            }

            fn read(&self, _: &'static str, wire: $type) -> Result<$type, Error> {
                Ok(wire)
            }

            #[cfg(test)]
            fn any(&self) -> BoxedStrategy<$type> {
                any::<$type>().boxed()
            }
        }
    )+};
}

plain!(bool, u8, u16, u32, u64);

/// Codec of an enum that implements [`Kinds`], by the number of its variant.
pub(crate) struct Choice;

/// An enum whose variants a schema's enum has too, with the conversions between the two.
pub(crate) trait Kinds: Copy + 'static {
    /// Enum that flatc generates from the schema.
    type Wire;
    /// All variants of the enum.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests draw from them"))]
    const ALL: &'static [Self];

    /// Returns the schema's variant that corresponds to this one and is written as a number.
    fn to_wire(self) -> Self::Wire;

    /// Returns the variant that corresponds to the schema's `wire`.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a number without a variant.
    fn from_wire(wire: Self::Wire) -> Result<Self, Error>;
}

impl<T: Kinds + std::fmt::Debug> Codec<T> for Choice {
    type Read<'a> = T::Wire;
    type Written = T::Wire;

    fn write(&self, value: &T, _: &mut FlatBufferBuilder<'static>) -> T::Wire {
        value.to_wire()
    }

    fn read(&self, _: &'static str, wire: T::Wire) -> Result<T, Error> {
        T::from_wire(wire)
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<T> {
        proptest::sample::select(T::ALL).boxed()
    }
}

/// Declares an enum whose variants a schema's enum has by the same names.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $owned:ident of $wire:ty, $field:literal {
            $($(#[$doc:meta])* $variant:ident,)+
        }
    ) => {
        $(#[$meta])*
        pub enum $owned { $($(#[$doc])* $variant,)+ }

        $crate::fields::kinds!($owned of $wire, $field, [$($variant),+]);
    };
}
pub(crate) use choice;

/// Implements [`Kinds`] for an enum that is declared elsewhere.
macro_rules! kinds {
    ($owned:ident of $wire:ty, $field:literal, [$($variant:ident),+]) => {
        impl $crate::fields::Kinds for $owned {
            type Wire = $wire;
            const ALL: &'static [Self] = &[$($owned::$variant),+];

            fn to_wire(self) -> $wire {
                match self {
                    $(Self::$variant => <$wire>::$variant,)+
                }
            }

            fn from_wire(wire: $wire) -> Result<Self, $crate::Error> {
                match wire {
                    $(<$wire>::$variant => Ok(Self::$variant),)+
                    other => Err($crate::Error::Unknown { field: $field, value: other.0 }),
                }
            }
        }
    };
}
pub(crate) use kinds;

/// Codec of an instant, as 64 bits of nanoseconds.
pub(crate) struct Nanos;

impl Codec<Instant> for Nanos {
    type Read<'a> = u64;
    type Written = u64;

    fn write(&self, value: &Instant, _: &mut FlatBufferBuilder<'static>) -> u64 {
        value.as_nanos()
    }

    fn read(&self, _: &'static str, wire: u64) -> Result<Instant, Error> {
        Ok(Instant::from_nanos(wire))
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<Instant> {
        any::<u64>().prop_map(Instant::from_nanos).boxed()
    }
}

/// Codec of a rate, in bit/s.
pub(crate) struct Rate;

impl Codec<Bitrate> for Rate {
    type Read<'a> = u64;
    type Written = u64;

    fn write(&self, value: &Bitrate, _: &mut FlatBufferBuilder<'static>) -> u64 {
        value.bps()
    }

    fn read(&self, _: &'static str, wire: u64) -> Result<Bitrate, Error> {
        Ok(Bitrate::from_bps(wire))
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<Bitrate> {
        any::<u64>().prop_map(Bitrate::from_bps).boxed()
    }
}

/// Codec of a byte count in 16 bits; a larger count is written as 65,535.
pub(crate) struct BytesU16;

/// Codec of a byte count in 32 bits; a larger count is written as 4,294,967,295.
pub(crate) struct BytesU32;

macro_rules! bytes {
    ($codec:ident: $wire:ty) => {
        impl Codec<ByteCount> for $codec {
            type Read<'a> = $wire;
            type Written = $wire;

            fn write(&self, value: &ByteCount, _: &mut FlatBufferBuilder<'static>) -> $wire {
                <$wire>::try_from(value.get()).unwrap_or(<$wire>::MAX)
            }

            fn read(&self, _: &'static str, wire: $wire) -> Result<ByteCount, Error> {
                Ok(ByteCount::new(wire.into()))
            }

            #[cfg(test)]
            fn any(&self) -> BoxedStrategy<ByteCount> {
                any::<$wire>().prop_map(|bytes| ByteCount::new(bytes.into())).boxed()
            }
        }
    };
}

bytes!(BytesU16: u16);
bytes!(BytesU32: u32);

/// Codec of an optional number from 0 to `max`; a negative number means unknown.
pub(crate) struct Known {
    max: f32,
}

impl Known {
    /// Codec of an optional time in milliseconds, up to [`MILLIS_MAX`].
    pub(crate) const MILLIS: Self = Self { max: MILLIS_MAX };
    /// Codec of an optional share from 0 to 1.
    pub(crate) const SHARE: Self = Self { max: 1.0 };
}

impl Codec<Option<f32>> for Known {
    type Read<'a> = f32;
    type Written = f32;

    fn write(&self, value: &Option<f32>, _: &mut FlatBufferBuilder<'static>) -> f32 {
        value.unwrap_or(-1.0)
    }

    fn read(&self, field: &'static str, wire: f32) -> Result<Option<f32>, Error> {
        let value = number(field, wire, f32::MIN, self.max)?;
        Ok((value >= 0.0).then_some(value))
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<Option<f32>> {
        proptest::option::of(0.0..=self.max).boxed()
    }

    #[cfg(test)]
    fn refused(&self) -> Vec<Option<f32>> {
        [f32::NAN, f32::NEG_INFINITY, self.max.next_up(), f32::INFINITY].map(Some).to_vec()
    }
}

/// Codec of a text with a maximum length in bytes.
pub(crate) struct Text(pub(crate) usize);

impl Codec<String> for Text {
    type Read<'a> = &'a str;
    type Written = Option<WIPOffset<&'static str>>;

    fn write(&self, value: &String, builder: &mut FlatBufferBuilder<'static>) -> Self::Written {
        Some(builder.create_string(value))
    }

    fn read(&self, field: &'static str, wire: &str) -> Result<String, Error> {
        text(field, wire, self.0)
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<String> {
        crate::tests::arbitrary::text(self.0).boxed()
    }

    #[cfg(test)]
    fn refused(&self) -> Vec<String> {
        vec!["x".repeat(self.0 + 1)]
    }
}

impl Codec<Option<String>> for Text {
    type Read<'a> = Option<&'a str>;
    type Written = Option<WIPOffset<&'static str>>;

    fn write(
        &self,
        value: &Option<String>,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> Self::Written {
        value.as_ref().map(|value| builder.create_string(value))
    }

    fn read(&self, field: &'static str, wire: Option<&str>) -> Result<Option<String>, Error> {
        wire.map(|wire| text(field, wire, self.0)).transpose()
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<Option<String>> {
        proptest::option::of(crate::tests::arbitrary::text(self.0)).boxed()
    }

    #[cfg(test)]
    fn refused(&self) -> Vec<Option<String>> {
        vec![Some("x".repeat(self.0 + 1))]
    }
}
