use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, WIPOffset};

use crate::Error;
use crate::generated::telemetry as wire_telemetry;
use crate::wire::{NAME_BYTES_MAX, list, number_f64, text};

/// A value that only one kind of machine has.
#[derive(Clone, PartialEq, Debug)]
pub struct Extra {
    /// What it is, in words that stay the same; at most 64 bytes.
    pub name: String,
    /// How much of it; finite.
    pub value: f64,
    /// What the value counts, as it stands behind the number; at most 16 bytes, empty for a bare
    /// number.
    pub unit: String,
}

type Extras<'a> = Vector<'a, ForwardsUOffset<wire_telemetry::Extra<'a>>>;

impl Extra {
    /// The most of one message.
    pub const COUNT_MAX: usize = 16;

    /// Returns whether a message has room for it.
    pub fn is_possible(&self) -> bool {
        self.value.is_finite()
            && self.name.len() <= NAME_BYTES_MAX
            && self.unit.len() <= UNIT_BYTES_MAX
    }

    pub(crate) fn write_all(
        extras: &[Self],
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<Extras<'static>> {
        let extras: Vec<_> = extras
            .iter()
            .map(|extra| {
                let name = Some(builder.create_string(&extra.name));
                let unit = (!extra.unit.is_empty()).then(|| builder.create_string(&extra.unit));
                let arguments = wire_telemetry::ExtraArgs { name, value: extra.value, unit };
                wire_telemetry::Extra::create(builder, &arguments)
            })
            .collect();
        builder.create_vector(&extras)
    }

    pub(crate) fn read_all(extras: Extras<'_>) -> Result<Vec<Self>, Error> {
        list("extras", extras, Self::COUNT_MAX, |extra| {
            Ok(Self {
                name: text("extras.name", extra.name(), NAME_BYTES_MAX)?,
                value: number_f64("extras.value", extra.value(), f64::MIN, f64::MAX)?,
                unit: text("extras.unit", extra.unit().unwrap_or_default(), UNIT_BYTES_MAX)?,
            })
        })
    }
}

const UNIT_BYTES_MAX: usize = 16;
