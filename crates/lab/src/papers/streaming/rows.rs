//! Rows and notes shared by the experiments on the simulated link.

use super::link::{SLOT_MS, Transfer};
use crate::experiment::Row;

/// Returns rows that judge the mean and the percentiles of a delay by `reference`, in ms: mean, 50,
/// 95 and 99 %. `tolerance` is a share of the reference.
///
/// High percentiles vary more: that of 99 % has twice the tolerance.
pub(super) fn delay_rows(
    name: &str,
    given: &Transfer,
    reference: [f64; 4],
    tolerance: f64,
) -> Vec<Row> {
    let measured = [
        ("mean", given.mean_ms(), tolerance),
        ("50 %", given.percentile_ms(0.5), tolerance),
        ("95 %", given.percentile_ms(0.95), tolerance),
        ("99 %", given.percentile_ms(0.99), 2.0 * tolerance),
    ];
    let rows = measured.into_iter().zip(reference);
    rows.map(|((what, value, tolerance), reference)| {
        Row::new(format!("{name}: delay, {what}"), "ms", value)
            .reference(reference)
            .within_absolute((tolerance * reference).max(1.1 * SLOT_MS).min(reference / 2.0))
            .because("set by hand: transfers spread; a percentile is a whole number of slots")
    })
    .collect()
}

/// Returns the mean burst length of erasures as text: `independent` for 1, `bursts of 4` for 4.
pub(super) fn burst_name(burst: f64) -> String {
    if burst == 1.0 { "independent".to_owned() } else { format!("bursts of {burst}") }
}

/// Returns the note for all experiments on the simulated link.
pub(super) fn link_note() -> String {
    "Simulated: 25 Mbit/s and 1500-byte packets, so .48 ms a packet, and a round trip of 60 ms. \
     Delay is in-order delivery less first transmission, less the link's own delay."
        .to_owned()
}

/// Returns the note on the sessions, and on their differences from the simulation slot by slot.
pub(super) fn sessions_note() -> String {
    "By sessions: two of the transport, sealed, a unit a packet, under the streaming code, over the same link in \
     virtual time. Repair packets in addition to those that are due follow from reports every 5 ms and \
     their own rule (docs/decisions/0011-streaming-on-the-wire.md), not the paper's. Blocks are by real coders \
     slot by slot, because a session hands over whole units alone; it holds 512 units of those on their way, too few for \
     retransmission alone at this rate."
        .to_owned()
}
