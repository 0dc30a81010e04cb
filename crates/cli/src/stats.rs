//! Output of a running vehicle's or operator's statistics.

use std::future::Future;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tautline_net::stats::Latest;
use tokio::signal::unix::{SignalKind, signal};

/// Schedule of the table of links and channels.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Print the table of links and channels to standard output at this interval in seconds, 1 to
    /// 3600 [default: on SIGUSR1, and at the end]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    stats_every: Option<u64>,
}

impl Stats {
    /// Runs `work`; prints the newest snapshot at the set interval, on SIGUSR1, and at the end.
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
