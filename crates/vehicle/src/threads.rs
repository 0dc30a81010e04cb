use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;

/// Threads that end together.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    ending: Arc<AtomicBool>,
    running: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Returns what tells the threads to end.
    pub(crate) fn ending(&self) -> Arc<AtomicBool> {
        self.ending.clone()
    }

    /// Starts one more.
    ///
    /// # Errors
    /// When the system gives none.
    pub(crate) fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<()> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .context("the system gives no thread")?;
        self.running.push(thread);
        Ok(())
    }

    /// Tells all of them to end and waits for that; one that hangs is left behind.
    pub(crate) fn end(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        for turn in 0..END_TURNS {
            self.running.retain(|thread| !thread.is_finished());
            if self.running.is_empty() {
                return;
            }
            // Most end within a picture's time.
            std::thread::sleep(if turn == 0 { Duration::from_millis(1) } else { END_TURN });
        }
        for thread in self.running.drain(..) {
            tracing::warn!(thread = thread.thread().name(), "a thread does not end: it is left");
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

const END_TURN: Duration = Duration::from_millis(10);
/// Two seconds: the slowest sensor gives ten pictures in that time.
const END_TURNS: u32 = 200;
