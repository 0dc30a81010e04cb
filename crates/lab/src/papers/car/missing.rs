//! The tables and figures of which nothing stands yet: each says what it lacks.

use anyhow::Result;

use crate::experiment::{Experiment, Outcome, Run};

pub(crate) const TABLE_1: Experiment = Experiment {
    key: "car-table-1",
    title: "Throughput in a car's wireless network by received power",
    source: "[CAR] Table 1",
    run: wireless,
};

pub(crate) const FIG_1: Experiment = Experiment {
    key: "car-fig-1",
    title: "Losses in a car's wireless network by the rate that is sent",
    source: "[CAR] Fig. 1",
    run: wireless,
};

pub(crate) const FIG_4: Experiment = Experiment {
    key: "car-fig-4",
    title: "Distribution of the throughput in a car's wireless network",
    source: "[CAR] Fig. 4",
    run: wireless,
};

fn wireless(_: &Run<'_>) -> Result<Outcome> {
    Ok(Outcome::skipped(
        "there is no model of the paper's wireless channel",
        "It needs one that sockets of the kernel can meet: shared airtime, the access point's queue.",
    ))
}
