//! `tautline status`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use tautline_net::metrics::STATUS_HEAD;

use crate::{local, stop};

/// Print the statistics of a running vehicle or operator.
///
/// Prints the same table as both print at their end. Per link: rates in Mbit/s, one-way delays and
/// RTT in milliseconds, losses, queues, the outcome of the media packets, and the largest datagram.
/// Per channel: the outcome of its units. Then values and drop counters by name. An operator also
/// shows the vehicle's latest table.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Address of an operator's console on the loopback interface, or of the metrics of either
    #[arg(default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    address: SocketAddr,
    /// Print the table again at this interval in seconds, 1 to 3600 [default: once]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: Option<u64>,
}

impl Status {
    /// Prints the table once, or at the given interval until the person ends it.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let Some(seconds) = self.every else { return self.print().await };
        let mut due = tokio::time::interval(Duration::from_secs(seconds));
        loop {
            tokio::select! {
                () = stop::asked() => return Ok(()),
                _ = due.tick() => self.print().await?,
            }
        }
    }

    async fn print(&self) -> anyhow::Result<()> {
        let text = local::get(self.address, "/status").await?;
        ensure!(text.starts_with(STATUS_HEAD), local::stranger(self.address));
        answer!("{}", text.trim_end());
        Ok(())
    }
}
