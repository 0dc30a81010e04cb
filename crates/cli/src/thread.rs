//! A thread without which a process must not continue.

use std::thread::JoinHandle;

use anyhow::{Context, bail};
use tokio::sync::oneshot;

/// A thread that works until it is asked to end, and whose earlier end is noticed.
#[derive(Debug)]
pub(crate) struct Thread {
    handle: JoinHandle<()>,
    ended: oneshot::Receiver<()>,
}

impl Thread {
    /// Starts `work` on a thread of this name.
    ///
    /// # Errors
    /// Fails if the system cannot create a thread.
    pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<Self> {
        let (ends, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let handle = thread.spawn(move || {
            // Dropped at the end, also by a panic.
            let _ends = ends;
            work();
        });
        Ok(Self { handle: handle.context("the system gives no thread")?, ended })
    }

    /// Waits until the thread ends, which is unexpected here.
    ///
    /// # Errors
    /// Always: one line that names the thread.
    pub(crate) async fn ended(&mut self) -> anyhow::Result<()> {
        let _ = (&mut self.ended).await;
        let name = self.handle.thread().name().unwrap_or_default();
        bail!("the thread `{name}` has ended by itself, which is a bug: what it said stands above")
    }

    /// Waits for the end of the thread, which must have been asked to end; blocks.
    pub(crate) fn join(self) {
        // A panic has been logged already.
        let _ = self.handle.join();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::stop;

    #[test]
    fn a_thread_that_panics_is_known_to_have_ended() {
        let mut thread = Thread::start("guard", || panic!("a bug")).unwrap();
        let ended = stop::block_on(async {
            let long = Duration::from_secs(20);
            timeout(long, thread.ended()).await?
        });
        let words = ended.unwrap_err().to_string();
        assert!(words.contains("the thread `guard` has ended by itself"), "{words}");
        thread.join();
    }
}
