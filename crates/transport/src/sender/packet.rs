//! Packets of a block as queued on a link.

use tautline_units::Instant;

use crate::channel::ChannelNumber;
use crate::link::Entry;
use crate::protect::Plan;
use crate::wire::Coded;

/// Creates the header of packet `index` of the unit `number`, with an empty symbol and the deadline
/// rounded up to whole milliseconds.
pub(super) fn header(
    channel: ChannelNumber,
    number: u64,
    index: u8,
    plan: &Plan,
    deadline: Instant,
) -> Coded<'static> {
    Coded {
        channel,
        unit_low: number as u32 & 0x00ff_ffff,
        index,
        source_count: plan.source_count as u8,
        deadline_low: deadline.as_nanos().div_ceil(1_000_000) as u16,
        symbol: &[],
    }
}

/// Creates a packet from `header` and `symbol`, to be queued on a link; `plaintext` is the buffer
/// for it, whose content is replaced.
pub(super) fn entry(
    unit: u64,
    header: &Coded<'_>,
    symbol: &[u8],
    deadline: Instant,
    mut plaintext: Vec<u8>,
) -> Entry {
    plaintext.clear();
    header.write_header(&mut plaintext);
    plaintext.extend_from_slice(symbol);
    Entry { plaintext, deadline, unit, standing: 0, again: false }
}
