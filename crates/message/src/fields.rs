//! The fields of a message in one list: a new field needs only one line there.
//!
//! A line states a field's name and type, its name in flatc's table, and the [`Codec`] between the
//! two. The list generates the field's writer, its reader, and the random and invalid values for
//! tests.

use std::time::Duration;

use flatbuffers::{FlatBufferBuilder, WIPOffset};
#[cfg(test)]
use proptest::prelude::*;
use tautline_units::{Bitrate, ByteCount, Instant};

use crate::Error;
use crate::wire::{MILLIS_MAX, number, text};

/// Declares a message, or a table within one, by its fields.
///
/// `Message of Table<'_>, TableArgs, "prefix."`: flatc's two types, and the prefix of field names
/// in errors. A line is `name: Type = wire_name as Codec`, or `name: Type => part.name as Codec`
/// for a field of a struct that is written by hand, or a bare `name: Type` for a field that is also
/// read by hand.
macro_rules! fields {
    (
        $(#[$about:meta])*
        $message:ident of $table:ty, $($arguments:ident)::+, $prefix:literal {
            $($(#[$doc:meta])* $field:ident: $type:ty
                $(= $wire:ident as $codec:expr)?
                $(=> $part:ident.$within:ident as $of_part:expr)?,)+
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
                )? $(
                    let name = concat!($prefix, stringify!($field));
                    let wire = table.$part().$within();
                    message.$field = $crate::fields::Codec::<$type>::read(&$of_part, name, wire)?;
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
                )? $(
                    let values = $crate::fields::Codec::<$type>::any(&$of_part);
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
                )? $(
                    let name = concat!($prefix, stringify!($field));
                    for value in $crate::fields::Codec::<$type>::refused(&$of_part) {
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
    /// Type returned by the table's getter.
    type Read<'a>;
    /// Type of the table's argument.
    type Written;

    /// Returns the encoding of `value`.
    fn write(&self, value: &T, builder: &mut FlatBufferBuilder<'static>) -> Self::Written;

    /// Returns the decoded value, if it is valid.
    fn read(&self, field: &'static str, wire: Self::Read<'_>) -> Result<T, Error>;

    /// Returns any valid value.
    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<T>;

    /// Returns values that decoding refuses with the field's name.
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

/// Codec of enums with conversions from [`choice`].
pub(crate) struct Choice;

/// Adds conversions between an enum and flatc's enum.
macro_rules! choice {
    ($owned:ident, $wire:ty, $field:literal, [$($variant:ident),+ $(,)?]) => {
        impl $owned {
            pub(crate) fn to_wire(self) -> $wire {
                match self {
                    $(Self::$variant => <$wire>::$variant,)+
                }
            }

            pub(crate) fn from_wire(wire: $wire) -> Result<Self, $crate::Error> {
                match wire {
                    $(<$wire>::$variant => Ok(Self::$variant),)+
                    other => Err($crate::Error::Unknown { field: $field, value: other.0 }),
                }
            }
        }

        impl $crate::fields::Codec<$owned> for $crate::fields::Choice {
            type Read<'a> = $wire;
            type Written = $wire;

            fn write(
                &self,
                value: &$owned,
                _: &mut ::flatbuffers::FlatBufferBuilder<'static>,
            ) -> $wire {
                value.to_wire()
            }

            fn read(&self, _: &'static str, wire: $wire) -> Result<$owned, $crate::Error> {
                $owned::from_wire(wire)
            }

            #[cfg(test)]
            fn any(&self) -> ::proptest::strategy::BoxedStrategy<$owned> {
                use ::proptest::strategy::Strategy;
                ::proptest::sample::select(vec![$($owned::$variant),+]).boxed()
            }
        }
    };
}
pub(crate) use choice;

/// Codec of an instant, in nanoseconds.
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

/// Codec of a byte count in 16 bits, saturating.
pub(crate) struct BytesU16;

/// Codec of a byte count in 32 bits, saturating.
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

/// Codec of a time in whole milliseconds, at most 65,534; all ones mean unknown.
pub(crate) struct MillisU16;

impl Codec<Option<Duration>> for MillisU16 {
    type Read<'a> = u16;
    type Written = u16;

    fn write(&self, value: &Option<Duration>, _: &mut FlatBufferBuilder<'static>) -> u16 {
        let most = u128::from(u16::MAX - 1);
        value.map_or(u16::MAX, |time| time.as_millis().min(most) as u16)
    }

    fn read(&self, _: &'static str, wire: u16) -> Result<Option<Duration>, Error> {
        Ok((wire != u16::MAX).then(|| Duration::from_millis(wire.into())))
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<Option<Duration>> {
        proptest::option::of((0..u64::from(u16::MAX)).prop_map(Duration::from_millis)).boxed()
    }
}

/// Codec of a number from `min` to `max`.
pub(crate) struct Number {
    min: f32,
    max: f32,
}

impl Number {
    /// Share from 0 to 1.
    pub(crate) const SHARE: Self = Self { min: 0.0, max: 1.0 };

    /// Returns the codec of numbers from `-max` to `max`.
    pub(crate) const fn within(max: f32) -> Self {
        Self { min: -max, max }
    }
}

impl Codec<f32> for Number {
    type Read<'a> = f32;
    type Written = f32;

    fn write(&self, value: &f32, _: &mut FlatBufferBuilder<'static>) -> f32 {
        *value
    }

    fn read(&self, field: &'static str, wire: f32) -> Result<f32, Error> {
        number(field, wire, self.min, self.max)
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<f32> {
        (self.min..=self.max).boxed()
    }

    #[cfg(test)]
    fn refused(&self) -> Vec<f32> {
        vec![f32::NAN, f32::NEG_INFINITY, self.min.next_down(), self.max.next_up(), f32::INFINITY]
    }
}

/// Codec of an optional number from 0 to `max`; a negative number means unknown.
pub(crate) struct Known {
    max: f32,
}

impl Known {
    /// Time in milliseconds.
    pub(crate) const MILLIS: Self = Self { max: MILLIS_MAX };
    /// Share from 0 to 1.
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
