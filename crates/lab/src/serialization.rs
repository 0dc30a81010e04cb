//! \[TIMING\]: what serialization costs, and what that means for safety.

mod codecs;
mod leader;
mod reaction;
mod round_trip;
mod table;

use crate::experiment::Experiment;

/// The paper's table and figures, then its arguments in numbers.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        key: "timing-table-1",
        title: "Serialization of 10,000 lidar points",
        source: "[TIMING] Table 1",
        run: table::run,
    },
    Experiment {
        key: "timing-fig-1",
        title: "Round trips of 10,000 lidar points, and why the ranking is another today",
        source: "[TIMING] Fig. 1",
        run: round_trip::run,
    },
    Experiment {
        key: "timing-fig-2",
        title: "Serialization over the number of points",
        source: "[TIMING] Fig. 2",
        run: table::sizes,
    },
    Experiment {
        key: "timing-reaction",
        title: "What serialization costs in inches at 60 miles per hour",
        source: "[TIMING] Significance arguments",
        run: reaction::run,
    },
    Experiment {
        key: "timing-leader",
        title: "Three redundant steering computers, of which one acts",
        source: "[TIMING] Significance arguments",
        run: leader::run,
    },
];
