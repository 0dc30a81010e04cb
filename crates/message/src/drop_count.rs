use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, WIPOffset};

use crate::Error;
use crate::generated::drop_count as wire_drop;
use crate::wire::{NAME_BYTES_MAX, list, text};

pub(crate) type Counts<'a> = Vector<'a, ForwardsUOffset<wire_drop::DropCount<'a>>>;

/// Writes named drop counts, omitting zeros. Length and number of the names are not checked.
pub(crate) fn write_all(
    drops: &[(String, u64)],
    builder: &mut FlatBufferBuilder<'static>,
) -> WIPOffset<Counts<'static>> {
    let counts: Vec<_> = drops
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| {
            let name = Some(builder.create_string(name));
            let arguments = wire_drop::DropCountArgs { name, count: *count };
            wire_drop::DropCount::create(builder, &arguments)
        })
        .collect();
    builder.create_vector(&counts)
}

/// Reads named drop counts, omitting zeros; more than 128, or a name over 64 bytes, is an error.
pub(crate) fn read_all(counts: Counts<'_>) -> Result<Vec<(String, u64)>, Error> {
    let mut drops = list("drops", counts, COUNT_MAX, |drop| {
        Ok((text("drops.name", drop.name(), NAME_BYTES_MAX)?, drop.count()))
    })?;
    drops.retain(|(_, count)| *count > 0);
    Ok(drops)
}

const COUNT_MAX: usize = 128;
