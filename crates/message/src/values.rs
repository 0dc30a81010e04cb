use flatbuffers::{FlatBufferBuilder, WIPOffset};
use tautline_guard::description::{Reading, Revision, VALUES_MAX};
use tautline_units::Instant;

use crate::Error;
use crate::codec::codec;
use crate::description::{revision, short};
use crate::generated::values::{self as wire, Values as Root};
use crate::wire::{Kind, list, number, within};

/// Newest readings of the values that a machine declares, from vehicle to operator and console.
#[derive(Clone, PartialEq, Debug)]
pub struct Values {
    /// Description by which the indices count.
    pub revision: Revision,
    /// Time at which the newest reading arrived, on the vehicle's clock.
    pub taken_at: Instant,
    /// Readings with the indices of their values in the [`Description`](crate::Description), in
    /// rising order; at most 64, without numbers that are not known.
    pub readings: Vec<(u8, Reading)>,
}

codec!(Values);

impl Values {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let readings = self.readings.iter();
        let readings: Vec<_> =
            readings.map(|(index, reading)| write_reading(*index, reading, builder)).collect();
        let arguments = wire::ValuesArgs {
            revision: self.revision.get(),
            taken_at_ns: self.taken_at.as_nanos(),
            readings: (!readings.is_empty()).then(|| builder.create_vector(&readings)),
        };
        let root = Root::create(builder, &arguments);
        wire::finish_values_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let readings = match root.readings() {
            Some(readings) => list("readings", readings, VALUES_MAX, read_reading)?,
            None => Vec::new(),
        };
        if !readings.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Err(Error::Disordered { field: "readings.index" });
        }
        let revision = revision(root.revision())?;
        Ok(Self { revision, taken_at: Instant::from_nanos(root.taken_at_ns()), readings })
    }
}

fn write_reading<'b>(
    index: u8,
    reading: &Reading,
    builder: &mut FlatBufferBuilder<'b>,
) -> WIPOffset<wire::Reading<'b>> {
    let (number, text) = match reading {
        Reading::Number(number) => (*number, None),
        Reading::Text(text) => (f32::NAN, Some(builder.create_string(text.as_str()))),
    };
    wire::Reading::create(builder, &wire::ReadingArgs { index, number, text })
}

fn read_reading(reading: wire::Reading<'_>) -> Result<(u8, Reading), Error> {
    let index = reading.index();
    within("readings.index", index.into(), 0, VALUES_MAX as u16 - 1)?;
    let read = match reading.text() {
        Some(text) => Reading::Text(short("readings.text", text)?),
        None => Reading::Number(number("readings.number", reading.number(), f32::MIN, f32::MAX)?),
    };
    Ok((index, read))
}

const KIND: Kind = Kind {
    name: "values",
    identifier: Some(wire::VALUES_IDENTIFIER),
    bytes_max: 8 * 1024,
    tables_max: 1 + VALUES_MAX,
    depth_max: 2,
};
