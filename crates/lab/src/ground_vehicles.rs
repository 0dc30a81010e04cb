//! \[UGV\]: an unmanned ground vehicle, its operator, and a switchboard between two 3G links.

mod bins;
mod gate;
mod published;

use crate::experiment::Experiment;

/// The paper's figures and tables, in its order.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        key: "ugv-fig-4",
        title: "Message latency with video sent regardless, and only on a path that answers",
        source: "[UGV] Figs. 4 and 5",
        run: gate::run,
    },
    Experiment {
        key: "ugv-table-1",
        title: "Delay bins over packet sizes, 400 bytes from the vehicle",
        source: "[UGV] Table 1",
        run: bins::table_1,
    },
    Experiment {
        key: "ugv-table-2",
        title: "Delay bins over packet sizes, 500 bytes from the vehicle",
        source: "[UGV] Table 2",
        run: bins::table_2,
    },
];
