//! Printing what a running vehicle or operator observes.

use std::future::Future;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tautline_net::stats::Latest;
use tokio::signal::unix::{SignalKind, signal};

/// Times at which the table of links and channels is printed.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Print the table of links and channels every so many seconds, 1 to 3600, to standard output
    /// [default: on SIGUSR1, and at the end]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    stats_every: Option<u64>,
}

impl Stats {
    /// Runs `work`; prints the newest snapshot whenever it is due or asked for, and at the end.
    pub(crate) async fn alongside(
        &self,
        latest: &Latest,
        work: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let mut asked = signal(SignalKind::user_defined1()).context("SIGUSR1 cannot be heard")?;
        let mut work = std::pin::pin!(work);
        let ended = loop {
            let due = async {
                match self.stats_every {
                    Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = &mut work => break ended,
                _ = asked.recv() => print(latest),
                () = due => print(latest),
            }
        };
        print(latest);
        ended
    }
}

fn print(latest: &Latest) {
    tell!("{latest}");
}
