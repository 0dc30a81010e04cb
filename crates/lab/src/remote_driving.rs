//! [LTE]: remote driving over several LTE modems, with block codes against loss and delay.

mod block;
mod block_latency;
mod block_speed;
mod budget_steps;
mod constant_rate;
mod curves;
mod encoders;
mod end_to_end;
mod healing;
mod intra_refresh;
mod joint_coding;
mod latencies;
mod modem_count;
mod ping_pong;
pub(crate) mod qp_table;
mod refresh;
mod rig;
mod slice_times;
mod slices;
mod stages;
mod survival;
mod sweep_pattern;
mod trials;

use crate::experiment::Experiment;

/// The paper's tables and figures, in its order.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        key: "lte-table-1",
        title: "Sources of latency, stage by stage",
        source: "[LTE] Table I",
        run: stages::run,
    },
    Experiment {
        key: "lte-fig-2",
        title: "Latency of a block with and without a code, Gaussian delays",
        source: "[LTE] Fig. 2",
        run: block_latency::run,
    },
    Experiment {
        key: "lte-fig-3",
        title: "Latency and autocorrelation of a constant-rate stream over one link",
        source: "[LTE] Fig. 3",
        run: constant_rate::one_link,
    },
    Experiment {
        key: "lte-table-2",
        title: "Speed of the block code, 100 packets of 1296 bytes",
        source: "[LTE] Table II",
        run: block_speed::run,
    },
    Experiment {
        key: "lte-survival",
        title: "Which codes outlive the loss of a link",
        source: "[LTE] III.C",
        run: survival::run,
    },
    Experiment {
        key: "lte-fig-6",
        title: "Latency and autocorrelation of a constant-rate stream over one to four links",
        source: "[LTE] Fig. 6",
        run: constant_rate::many_links,
    },
    Experiment {
        key: "lte-fig-8",
        title: "Latency of slices over two modems, coded jointly and apart",
        source: "[LTE] Fig. 8",
        run: joint_coding::run,
    },
    Experiment {
        key: "lte-fig-9",
        title: "Intra macroblocks that sweep over P slices",
        source: "[LTE] Fig. 9",
        run: sweep_pattern::run,
    },
    Experiment {
        key: "lte-fig-10",
        title: "Quality at rate of intra, inter and intra refresh, one slice of 16 lost",
        source: "[LTE] Fig. 10",
        run: intra_refresh::run,
    },
    Experiment {
        key: "lte-fig-11",
        title: "Quantizers for a desired slice size",
        source: "[LTE] Fig. 11",
        run: qp_table::run,
    },
    Experiment {
        key: "lte-fig-13",
        title: "Reading and coding slices in time, one encoder and two in turn",
        source: "[LTE] Fig. 13",
        run: ping_pong::run,
    },
    Experiment {
        key: "lte-fig-14",
        title: "From an event to its picture, by counting pictures and by the stamp",
        source: "[LTE] Fig. 14",
        run: end_to_end::run,
    },
    Experiment {
        key: "lte-fig-15",
        title: "Latency of slices over one to four modems",
        source: "[LTE] Fig. 15",
        run: modem_count::run,
    },
    Experiment {
        key: "lte-slice-times",
        title: "From the first row of a slice to the slice, six and twelve in a picture",
        source: "[LTE] IV",
        run: slice_times::run,
    },
    Experiment {
        key: "lte-refresh",
        title: "Every way of healing, one slice in 20 lost",
        source: "[LTE] IV",
        run: refresh::run,
    },
    Experiment {
        key: "lte-budget-steps",
        title: "Slices around steps of the budget",
        source: "[LTE] IV",
        run: budget_steps::run,
    },
    Experiment {
        key: "lte-encoders",
        title: "Encoders by strips: quality at rate, time and size",
        source: "[LTE] IV",
        run: encoders::run,
    },
];
