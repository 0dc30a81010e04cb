//! `tautline probe`.

mod mtu;

use clap::{Args, Subcommand};

use crate::stop;

/// Run an experiment on a running session.
#[derive(Debug, Args)]
pub(crate) struct Probe {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Mtu(mtu::Mtu),
}

impl Probe {
    /// Runs one task and prints its figures.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.task {
            Task::Mtu(mtu) => stop::block_on(mtu.run()),
        }
    }
}
