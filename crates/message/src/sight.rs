use flatbuffers::FlatBufferBuilder;
#[cfg(test)]
use proptest::prelude::*;
use tautline_guard::{Member, Set};

use crate::Error;
use crate::fields::Codec;

/// Property of the pictures that a person who drives must know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sight {
    /// The pictures are drawn by a computer.
    Drawn,
    /// The pictures are from a recording.
    Recorded,
    /// The source repeats one capture.
    Repeats,
    /// The pictures have one brightness everywhere.
    Uniform,
    /// The pictures move although the machine reports standstill.
    Moves,
    /// The pictures turn against the steering.
    Contradicts,
    /// A steering check is due: nobody has completed one yet or, if every drive requires one, since
    /// the machine was last held.
    Unchecked,
}

/// A set of properties of the pictures.
pub type Sights = Set<Sight>;

impl Member for Sight {
    const ALL: &'static [Self] = &[
        Self::Drawn,
        Self::Recorded,
        Self::Repeats,
        Self::Uniform,
        Self::Moves,
        Self::Contradicts,
        Self::Unchecked,
    ];

    fn number(self) -> u8 {
        self as u8
    }
}

/// Codec of [`Sights`] as bits; those that only a later build knows are ignored.
pub(crate) struct SightBits;

impl Codec<Sights> for SightBits {
    type Read<'a> = u32;
    type Written = u32;

    fn write(&self, sights: &Sights, _: &mut FlatBufferBuilder<'static>) -> u32 {
        sights.bits()
    }

    fn read(&self, _: &'static str, wire: u32) -> Result<Sights, Error> {
        Ok(Sights::known(wire))
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<Sights> {
        any::<u32>().prop_map(Sights::known).boxed()
    }
}
