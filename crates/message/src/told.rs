use flatbuffers::{FlatBufferBuilder, Vector, WIPOffset};
#[cfg(test)]
use proptest::prelude::*;

use crate::Error;
use crate::fields::Codec;
use crate::wire::length;

/// Codec of a vector of at most 64 optional numbers; trailing unknowns are omitted.
pub(crate) struct Told;

impl Codec<Vec<Option<f32>>> for Told {
    type Read<'a> = Option<Vector<'a, f32>>;
    type Written = Option<WIPOffset<Vector<'static, f32>>>;

    fn write(
        &self,
        numbers: &Vec<Option<f32>>,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> Self::Written {
        let known = numbers.iter().rposition(Option::is_some)? + 1;
        let numbers: Vec<f32> =
            numbers[..known].iter().map(|number| number.unwrap_or(f32::NAN)).collect();
        Some(builder.create_vector(&numbers))
    }

    fn read(&self, field: &'static str, wire: Self::Read<'_>) -> Result<Vec<Option<f32>>, Error> {
        let wire = wire.unwrap_or_default();
        length(field, wire.len(), COUNT_MAX)?;
        Ok(wire.iter().map(|number| Some(number).filter(|number| number.is_finite())).collect())
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<Vec<Option<f32>>> {
        let numbers = proptest::collection::vec(proptest::option::of(-1e9f32..=1e9), 0..=COUNT_MAX);
        let trimmed = |mut numbers: Vec<Option<f32>>| {
            numbers.truncate(numbers.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
            numbers
        };
        numbers.prop_map(trimmed).boxed()
    }

    #[cfg(test)]
    fn refused(&self) -> Vec<Vec<Option<f32>>> {
        vec![vec![Some(1.0); COUNT_MAX + 1]]
    }
}

/// Maximum number of values; larger than any machine reports.
const COUNT_MAX: usize = 64;
