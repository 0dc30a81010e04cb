use core::fmt;
use core::marker::PhantomData;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A member of a [`Set`]: a variant of a small enum, numbered from 0.
pub trait Member: Copy + fmt::Debug + 'static {
    /// All variants in the order of their numbers; at most 32.
    const ALL: &'static [Self];

    /// Returns the variant's number, which is also the index of its bit on the wire.
    fn number(self) -> u8;
}

/// A set of a small enum's variants: one bit each.
pub struct Set<E>(u32, PhantomData<fn() -> E>);

impl<E> Set<E> {
    /// Empty set.
    pub const NONE: Self = Self(0, PhantomData);

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the bits: 1 << number for each member.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl<E: Member> Set<E> {
    /// Returns the set of these bits; `None` if a set bit has no variant.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let known = E::ALL.iter().fold(0, |bits, member| bits | 1 << member.number());
        (bits & !known == 0).then_some(Self(bits, PhantomData))
    }

    /// Returns the set of these bits; bits without a variant are ignored.
    pub fn known(bits: u32) -> Self {
        let known = E::ALL.iter().fold(0, |bits, member| bits | 1 << member.number());
        Self(bits & known, PhantomData)
    }

    /// Returns the set of `member` alone.
    pub fn of(member: E) -> Self {
        Self::NONE.with(member)
    }

    /// Returns this set and `member`.
    #[must_use]
    pub fn with(self, member: E) -> Self {
        Self(self.0 | 1 << member.number(), PhantomData)
    }

    /// Returns this set, with `member` added if `holds`.
    #[must_use]
    pub fn with_if(self, member: E, holds: bool) -> Self {
        if holds { self.with(member) } else { self }
    }

    /// Returns this set without `member`.
    #[must_use]
    pub fn without(self, member: E) -> Self {
        Self(self.0 & !(1 << member.number()), PhantomData)
    }

    /// Returns whether `member` is in the set.
    pub fn contains(self, member: E) -> bool {
        self.0 & 1 << member.number() != 0
    }

    /// Returns an iterator over the members in the order of [`Member::ALL`].
    pub fn iter(self) -> impl Iterator<Item = E> {
        E::ALL.iter().copied().filter(move |member| self.contains(*member))
    }
}

impl<E> Clone for Set<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Set<E> {}

impl<E> PartialEq for Set<E> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<E> Eq for Set<E> {}

impl<E> core::hash::Hash for Set<E> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<E> Default for Set<E> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<E: Member> FromIterator<E> for Set<E> {
    fn from_iter<I: IntoIterator<Item = E>>(members: I) -> Self {
        members.into_iter().fold(Self::NONE, Self::with)
    }
}

impl<E: Member> fmt::Debug for Set<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<E> Serialize for Set<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de, E: Member> Deserialize<'de> for Set<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bits = u32::deserialize(deserializer)?;
        Self::from_bits(bits).ok_or_else(|| D::Error::custom("a bit without a meaning"))
    }
}

/// Defines an enum with explicit numbers, and the conversions in both directions.
macro_rules! numbered {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(serde::Serialize, serde::Deserialize)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant = $number,)+ }

        impl $name {
            /// All variants in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the variant's number on the wire.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// Returns the variant with this number, if there is one.
            pub const fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl $crate::set::Member for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn number(self) -> u8 {
                self as u8
            }
        }
    };
}
pub(crate) use numbered;

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::Notice;

    #[test]
    fn a_set_holds_each_member_once_and_no_bit_of_nobody() {
        let twice = [Notice::LocalControl, Notice::ParkingBrake, Notice::LocalControl];
        let set: Set<Notice> = twice.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [Notice::ParkingBrake, Notice::LocalControl]);
        assert_eq!(Set::from_bits(set.bits()), Some(set));
        assert_eq!(set.without(Notice::ParkingBrake), Set::of(Notice::LocalControl));
        assert_eq!(Set::<Notice>::from_bits(1 << 31), None);
        assert!(Set::<Notice>::NONE.is_empty() && !set.is_empty());
    }
}
