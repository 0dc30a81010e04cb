//! [LTE]: remote driving over several LTE modems, with block codes against loss and delay.

mod block_latency;
mod block_speed;

use crate::experiment::Experiment;

/// The paper's tables and figures, in its order.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        key: "lte-fig-2",
        title: "Latency of a block with and without a code, Gaussian delays",
        source: "[LTE] Fig. 2",
        run: block_latency::run,
    },
    Experiment {
        key: "lte-table-2",
        title: "Speed of the block code, 100 packets of 1296 bytes",
        source: "[LTE] Table II",
        run: block_speed::run,
    },
];
