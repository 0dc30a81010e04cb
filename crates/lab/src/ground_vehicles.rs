//! \[UGV\]: an unmanned ground vehicle, its operator, and a switchboard between two 3G links.

mod gate;

use crate::experiment::Experiment;

/// The paper's figures and tables, in its order.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    key: "ugv-fig-4",
    title: "Message latency with video sent regardless, and only on a path that answers",
    source: "[UGV] Figs. 4 and 5",
    run: gate::run,
}];
