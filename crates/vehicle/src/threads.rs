use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::sync::mpsc;

/// Threads that end together.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    ending: Arc<AtomicBool>,
    running: Vec<JoinHandle<()>>,
}

/// First failure among threads that feed each other.
///
/// A thread whose input ended has not failed and reports nothing. So consequences never hide the
/// cause, whichever thread ends first.
#[derive(Debug)]
pub(crate) struct FirstFailure {
    told: mpsc::Sender<anyhow::Error>,
    first: mpsc::Receiver<anyhow::Error>,
}

impl FirstFailure {
    /// Creates a place for the first failure, which is empty.
    pub(crate) fn new() -> Self {
        // The channel holds one error; later ones are dropped.
        let (told, first) = mpsc::channel(1);
        Self { told, first }
    }

    /// Waits for the first failure; returns `None` when all threads have ended without one.
    pub(crate) async fn wait(self) -> Option<anyhow::Error> {
        let Self { told, mut first } = self;
        drop(told);
        first.recv().await
    }
}

impl Threads {
    /// Returns the flag that asks the threads to end.
    pub(crate) fn ending(&self) -> Arc<AtomicBool> {
        self.ending.clone()
    }

    /// Starts a thread called `name`.
    ///
    /// # Errors
    /// Fails if the system cannot create a thread.
    pub(crate) fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<()> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .context("cannot start a thread")?;
        self.running.push(thread);
        Ok(())
    }

    /// Starts a thread called `name`, whose error or panic is reported to `first`.
    ///
    /// # Errors
    /// Fails as [`spawn`](Self::spawn) does.
    pub(crate) fn spawn_fallible(
        &mut self,
        name: &'static str,
        first: &FirstFailure,
        work: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let told = first.told.clone();
        self.spawn(name, move || {
            let error = match catch_unwind(AssertUnwindSafe(work)) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(panic) => anyhow!("a bug in the {name}'s code: {}", words_of(&*panic)),
            };
            // An earlier failure is the cause of this one, or the receiver is gone.
            let _ = told.try_send(error);
        })
    }

    /// Asks all threads to end and waits up to 2 s for them; a hung thread is logged and abandoned.
    pub(crate) fn end(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        for turn in 0..END_TURNS {
            self.running.retain(|thread| !thread.is_finished());
            if self.running.is_empty() {
                return;
            }
            // Most threads end within one picture.
            std::thread::sleep(if turn == 0 { Duration::from_millis(1) } else { END_TURN });
        }
        for thread in self.running.drain(..) {
            tracing::warn!(
                thread = thread.thread().name(),
                "a thread does not end and is abandoned"
            );
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the message of a panic, or a text that says that it has none.
fn words_of(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it panicked without a message")
}

const END_TURN: Duration = Duration::from_millis(10);
/// Number of waits of [`END_TURN`] for threads to end, 2 s in all, after which hung ones are
/// abandoned: the slowest sensor delivers ten pictures in that time.
const END_TURNS: u32 = 200;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// Runs a source that feeds two sinks and ends as `end` does, closing its queues before its
    /// report; returns the report.
    async fn told(end: fn() -> anyhow::Result<()>) -> Option<String> {
        let (mut threads, first) = (Threads::default(), FirstFailure::new());
        let (sinks, queues): (Vec<_>, Vec<_>) = (0..2).map(|_| sync_channel::<u8>(1)).unzip();
        let (ended, sinks_ended) = std::sync::mpsc::channel::<()>();
        for queue in queues {
            let ended = ended.clone();
            let work = move || {
                queue.iter().for_each(drop);
                drop(ended);
                Ok(())
            };
            threads.spawn_fallible("encoder", &first, work).unwrap();
        }
        drop(ended);
        let source = move || {
            drop(sinks);
            // Both sinks have ended before the source reports why.
            assert!(sinks_ended.recv().is_err());
            end()
        };
        threads.spawn_fallible("camera", &first, source).unwrap();
        first.wait().await.map(|error| format!("{error:#}"))
    }

    #[tokio::test]
    async fn the_cause_is_reported_although_dependent_threads_end_first() {
        let cause = told(|| Err(anyhow!("the lens fell off"))).await;
        assert_eq!(cause.as_deref(), Some("the lens fell off"));
        let panicked = told(|| panic!("index out of bounds")).await;
        assert_eq!(panicked.as_deref(), Some("a bug in the camera's code: index out of bounds"));
        assert_eq!(told(|| Ok(())).await, None);
    }

    #[tokio::test]
    async fn of_two_failures_the_first_is_reported() {
        let (mut threads, first) = (Threads::default(), FirstFailure::new());
        let (told, heard) = sync_channel::<()>(0);
        let cause = move || {
            let _told = told;
            Err(anyhow!("no such mode"))
        };
        threads.spawn_fallible("camera", &first, cause).unwrap();
        let follows = move || {
            assert!(heard.recv().is_err());
            std::thread::sleep(Duration::from_millis(5));
            Err(anyhow!("nothing to encode"))
        };
        threads.spawn_fallible("encoder", &first, follows).unwrap();
        threads.end();
        let words = first.wait().await.unwrap().to_string();
        assert_eq!(words, "no such mode");
    }
}
