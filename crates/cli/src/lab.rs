//! `tautline lab`.

mod budgets;
mod clip;
mod encoders;
mod fairness;
mod gate_alone;
#[cfg(feature = "quorum")]
mod leader;
mod links;
mod loss;
pub(crate) mod mtu;
mod papers;
mod progress;
mod qp_table;
mod table;
mod theory;

use clap::{Args, Subcommand};

use crate::stop;

/// Measure: the papers' tables and figures, and the whole system.
#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    List(papers::List),
    Run(papers::Run),
    Report(papers::Report),
    Budgets(budgets::Budgets),
    /// Send a clip through the whole system and compare the received with the sent pictures
    Clip(clip::Clip),
    Encoders(encoders::Encoders),
    Fairness(fairness::Fairness),
    #[command(hide = true, subcommand)]
    GateAlone(Box<gate_alone::GateAlone>),
    #[cfg(feature = "quorum")]
    Leader(leader::Leader),
    /// Run three redundant steering processes, of which one acts [not in this binary]
    #[cfg(not(feature = "quorum"))]
    Leader(crate::missing::Missing),
    #[cfg(feature = "quorum")]
    #[command(hide = true)]
    LeaderMember(leader::LeaderMember),
    Links(links::Links),
    Loss(loss::Loss),
    Mtu(mtu::Mtu),
    QpTable(qp_table::QpTable),
    Theory(theory::Theory),
}

impl Lab {
    /// Runs one task and prints its figures.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.task {
            Task::List(list) => list.run(),
            Task::Run(run) => run.run(),
            Task::Report(report) => report.run(),
            Task::Budgets(budgets) => budgets.run(),
            Task::Clip(clip) => stop::block_on(clip.run()),
            Task::Encoders(encoders) => encoders.run(),
            Task::Fairness(fairness) => fairness.run(),
            Task::GateAlone(end) => end.run(),
            #[cfg(feature = "quorum")]
            Task::Leader(leader) => leader.run(),
            #[cfg(not(feature = "quorum"))]
            Task::Leader(leader) => leader.run("lab leader", "quorum"),
            #[cfg(feature = "quorum")]
            Task::LeaderMember(member) => member.run(),
            Task::Links(links) => links.run(),
            Task::Loss(loss) => loss.run(),
            Task::Mtu(mtu) => mtu.run(),
            Task::QpTable(table) => table.run(),
            Task::Theory(theory) => theory.run(),
        }
    }
}
