//! The fields of a message in one list: a line there is all that another field takes here.
//!
//! A line tells a field's name and type, its name in the table that flatc made, and the [`Codec`]
//! between the two. Written, read, drawn at random by the tests and spoilt by them is what stands
//! in the list.

use std::time::Duration;

use flatbuffers::{FlatBufferBuilder, WIPOffset};
#[cfg(test)]
use proptest::prelude::*;
use tautline_units::{Bitrate, ByteCount, Instant};

use crate::Error;
use crate::wire::{MILLIS_MAX, number, text};

/// Declares a message, or a table of one, by its fields.
///
/// `Message of Table<'_>, TableArgs, "prefix."`: the two that flatc made, and what an error puts
/// before a field's name. A line is `name: Type = wire_name as Codec`; `name: Type => part.name as Codec`
/// of a struct in the table, which is written by hand, whole; and bare where a field is read by
/// hand, too.
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

            /// Returns the listed fields, and defaults in the others' places.
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

            /// Returns any values of the listed fields, and defaults in the others' places.
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

            /// Returns the name of each listed field that something is refused of, and `ordinary`
            /// with such a value in it.
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

/// How a field's values stand in a table, and which of them it holds.
pub(crate) trait Codec<T> {
    /// As the table's getter gives it.
    type Read<'a>;
    /// As the table's arguments take it.
    type Written;

    /// Returns what stands for `value`.
    fn write(&self, value: &T, builder: &mut FlatBufferBuilder<'static>) -> Self::Written;

    /// Returns the value that was written, if a message holds such.
    fn read(&self, field: &'static str, wire: Self::Read<'_>) -> Result<T, Error>;

    /// Returns any value that a message holds.
    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<T>;

    /// Returns values that decoding refuses by the field's name.
    #[cfg(test)]
    fn refused(&self) -> Vec<T> {
        Vec::new()
    }
}

/// Any value of a type that stands in a table as it is.
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

/// A variant of an enum that [`choice`] gave its numbers.
pub(crate) struct Choice;

/// Gives an enum its number on the wire and back, through the enum that flatc made.
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

/// A moment, in nanoseconds.
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

/// A rate, in bit/s.
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

/// A count of bytes; more than its integer holds is told as the most that it holds.
pub(crate) struct BytesU16;

/// As [`BytesU16`], in 32 bits.
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

/// A time in whole milliseconds, at most 65,534; all ones say that it is not known.
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

/// A number of `min` to `max`.
pub(crate) struct Number {
    min: f32,
    max: f32,
}

impl Number {
    /// A share of 0 to 1.
    pub(crate) const SHARE: Self = Self { min: 0.0, max: 1.0 };

    /// Takes numbers at most `max` from zero, either way.
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

/// A number of 0 to `max` that may not be known, which the table tells by a negative one.
pub(crate) struct Known {
    max: f32,
}

impl Known {
    /// A time in milliseconds.
    pub(crate) const MILLIS: Self = Self { max: MILLIS_MAX };
    /// A share of 0 to 1.
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

/// A text of at most so many bytes.
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
