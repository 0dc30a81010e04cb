//! Running until the work ends or the person ends it.

use std::future::Future;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use crate::service;

/// Runs `work` to its end on two threads; tasks that it left are abandoned.
pub(crate) fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the system gives no threads")?;
    let ended = runtime.block_on(work);
    runtime.shutdown_background();
    ended
}

/// Waits until the person presses Ctrl-C or the system asks to end. Also notifies the service
/// manager that the process is up and then that it is ending. Waits forever if signals cannot be
/// received.
pub(crate) async fn asked() {
    let hear = || -> std::io::Result<_> {
        Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    };
    service::tell_up();
    match hear() {
        Ok((mut interrupt, mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            service::tell_ending();
        }
        Err(error) => {
            tracing::warn!(%error, "signals cannot be heard: end this process by killing it");
            std::future::pending().await
        }
    }
}
