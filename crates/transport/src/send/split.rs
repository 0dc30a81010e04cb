use tautline_units::Instant;

use super::protect::Plan;
use crate::wire::Prefix;

/// Writes a unit's block into `block`, old content replaced: prefix, unit, zeros up to the end of
/// the last source packet, and room for the repair packets.
pub(crate) fn split(plan: &Plan, unit: &[u8], sent_at: Instant, block: &mut Vec<u8>) {
    block.clear();
    block.extend_from_slice(&Prefix::new(unit.len(), sent_at).to_bytes());
    block.extend_from_slice(unit);
    assert!(block.len() <= plan.source_count * plan.symbol_bytes, "the plan fits the unit");
    block.resize(plan.packet_count * plan.symbol_bytes, 0);
}
