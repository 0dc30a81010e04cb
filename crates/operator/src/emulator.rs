//! The console's connection to a link emulator: the state of its links, and cuts.

use std::net::SocketAddr;
use std::time::Duration;

use tautline_message::{EmulatedLink, LinkAction};
use tautline_net::emulate::control::Client;
use tokio::sync::mpsc;

use crate::reception::Shared;

/// Keeps `shared` up to date with the emulator's links, and cuts or restores links as `cuts` asks,
/// forever. While the emulator does not answer, there are no links in `shared`. Without an address
/// there is no emulator, and this never resolves.
pub(crate) async fn attend(
    address: Option<SocketAddr>,
    mut cuts: mpsc::Receiver<LinkAction>,
    shared: &Shared,
) -> anyhow::Result<()> {
    let Some(address) = address else { return std::future::pending().await };
    let mut client = Client::new(address);
    let mut due = tokio::time::interval(LOOK_INTERVAL);
    loop {
        let asked = tokio::select! {
            Some(action) = cuts.recv() => client.cut(action.link, action.cut).await,
            _ = due.tick() => Ok(()),
        };
        if let Err(error) = asked {
            tracing::warn!(%error, "a link could not be cut or restored");
        }
        match client.status().await {
            Ok(status) => {
                let links = status.links.into_iter();
                let links = links.map(|link| EmulatedLink { name: link.name, cut: link.cut });
                shared.set_emulated_links(links.collect());
            }
            Err(error) => {
                tracing::debug!(%error, "the emulator does not answer");
                shared.set_emulated_links(Vec::new());
            }
        }
    }
}

const LOOK_INTERVAL: Duration = Duration::from_millis(500);
