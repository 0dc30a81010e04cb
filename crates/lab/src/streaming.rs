//! \[STREAM\]: a streaming code against retransmission and block codes, in delay and rate.
//!
//! The paper measured real transfers between servers; here a link is simulated slot by slot, with
//! this project's own streaming code at its ends. Definitions stand in [`link`], [`arq`],
//! [`block`] and [`coded`].

mod arq;
mod block;
mod block_size;
mod bound;
mod closed_loop;
mod coded;
mod complexity;
mod delays;
mod link;
mod open_loop;
mod residual;
mod retransmission;
mod trial;

use crate::experiment::Experiment;
use crate::row::Row;
use link::{SLOT_MS, Transfer};

/// The paper's tables and figures, in its order.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        key: "stream-fig-1",
        title: "Delay of retransmission, and with a block code, at 20 % loss",
        source: "[STREAM] Fig. 1",
        run: retransmission::run,
    },
    Experiment {
        key: "stream-fig-2",
        title: "Delay over the size of a block",
        source: "[STREAM] Fig. 2",
        run: block_size::against_retransmission,
    },
    Experiment {
        key: "stream-table-1",
        title: "Operations of the streaming code's decoder",
        source: "[STREAM] Table I",
        run: complexity::run,
    },
    Experiment {
        key: "stream-fig-6",
        title: "The streaming code's delay and its bound, over the code rate",
        source: "[STREAM] Fig. 6",
        run: bound::run,
    },
    Experiment {
        key: "stream-fig-7",
        title: "Delay over the code rate without feedback",
        source: "[STREAM] Fig. 7",
        run: open_loop::run,
    },
    Experiment {
        key: "stream-fig-8",
        title: "Delay over the code rate with feedback, losses in bursts",
        source: "[STREAM] Fig. 8",
        run: closed_loop::bursts,
    },
    Experiment {
        key: "stream-fig-9",
        title: "The streaming code against blocks of every size",
        source: "[STREAM] Fig. 9",
        run: block_size::against_streaming,
    },
    Experiment {
        key: "stream-fig-10",
        title: "Delay over the effective code rate",
        source: "[STREAM] Fig. 10",
        run: closed_loop::rates,
    },
];

/// Judges the mean and percentiles of a delay by the reference values: mean, 50, 95 and 99 %.
///
/// Percentiles far out spread more: the last has twice the tolerance.
fn delay_rows(name: &str, given: &Transfer, reference: [f64; 4], tolerance: f64) -> Vec<Row> {
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
            // A percentile is a whole number of slots, the reference is rounded.
            .within_absolute((tolerance * reference).max(1.1 * SLOT_MS))
    })
    .collect()
}

/// Says in words how long bursts of erasures are.
fn burst_name(burst: f64) -> String {
    if burst == 1.0 { "independent".to_owned() } else { format!("bursts of {burst}") }
}

/// Says what all experiments on the simulated link share.
fn link_note() -> String {
    "Simulated: 25 Mbit/s and 1500-byte packets, so .48 ms a packet, and a round trip of 60 ms. \
     Delay is in-order delivery less first transmission, less the link's own delay."
        .to_owned()
}
