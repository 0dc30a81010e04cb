//! Recorder that steps the guard and records on a thread of its own.

mod ring;
mod shared;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use serde_json::json;
use tautline_guard::{Guard, Input, Output};
use tautline_units::Instant;

use crate::body::Step;
use crate::topic::Fact;
use crate::{Config, Error, Signer};
pub use shared::Trouble;
use shared::{DISK_ENDED, Item, Shared, Taken};
use worker::{Disk, Folder, Worker};

/// A recorder that steps the guard and passes input and output to a writer thread.
///
/// No call waits for the disk. Items for which a stalled disk leaves no room are dropped and
/// counted, and recording resumes with a [snapshot](crate::Topic::Snapshot) of the guard. Dropping
/// the recorder ends the drive and waits for the disk for at most two seconds.
#[derive(Debug)]
pub struct Recorder {
    items: Option<SyncSender<Item>>,
    shared: Arc<Shared>,
    /// Signal that the writer thread has ended.
    done: Receiver<()>,
    /// Time at which the next snapshot is due; `None` if it is due with the next step, at the start
    /// and after a drop.
    snapshot_at: Option<Instant>,
}

/// State of the recording, for the guard and the driving person.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Health {
    /// Current fault, if there is one; the driving person is notified.
    pub trouble: Option<Trouble>,
    /// Number of steps and facts dropped, because the disk was behind or a fact was too long.
    pub dropped: u64,
    /// Number of the drive that is being recorded; `None` if there is none, or it has no file yet.
    pub drive: Option<u32>,
}

/// The thread's end of a recorder.
struct WorkersEnd {
    items: Receiver<Item>,
    shared: Arc<Shared>,
    done: SyncSender<()>,
}

impl Recorder {
    /// Starts a recorder; `unix_nanos` is the Unix time of [`Instant::ZERO`], in nanoseconds.
    ///
    /// Nothing is written before the guard's first transition, which begins a drive.
    ///
    /// # Errors
    /// When a setting is out of range, or the folder or the thread cannot be created.
    pub fn start(config: Config, signer: Signer, unix_nanos: u64) -> Result<Self, Error> {
        config.validate()?;
        let folder = Folder::open(&config)?;
        Self::start_on(folder, config, signer, unix_nanos, ITEMS_MAX)
    }

    fn start_on<D: Disk>(
        disk: D,
        config: Config,
        signer: Signer,
        unix_nanos: u64,
        items_max: usize,
    ) -> Result<Self, Error> {
        let (mut recorder, end) = Self::pair(items_max);
        if let Some(vin) = &config.vin {
            let says = json!({ "identification": vin });
            recorder.tell(Fact::Vehicle, &says.to_string(), Instant::ZERO);
        }
        let worker = Worker::new(disk, config, signer, unix_nanos, Arc::clone(&end.shared));
        let thread = std::thread::Builder::new().name("blackbox".into());
        let run = move || {
            worker.run(&end.items);
            let _ = end.done.send(());
        };
        thread.spawn(run).map_err(Error::Thread)?;
        Ok(recorder)
    }

    /// Creates a recorder and its thread's end, joined by a queue of at most `items_max` items.
    fn pair(items_max: usize) -> (Self, WorkersEnd) {
        let shared = Arc::new(Shared::default());
        let (sender, items) = sync_channel(items_max);
        let (done, is_done) = sync_channel(1);
        let end = WorkersEnd { items, shared: Arc::clone(&shared), done };
        (Self { items: Some(sender), shared, done: is_done, snapshot_at: None }, end)
    }

    /// Steps the guard, queues the step for recording and returns its output; a step for which the
    /// queue has no room is dropped and counted. The cost is that of the step, plus an allocation
    /// of 10 kB every five seconds.
    pub fn step(&mut self, guard: &mut Guard, input: &Input, now: Instant) -> Output {
        let is_due = self.snapshot_at.is_none_or(|at| now >= at);
        let before = is_due.then(|| Box::new(guard.clone()));
        let output = guard.step(input, now);
        let step = Step { input: *input, output, at: now };
        if !self.send(Item::Step(Taken { step, before })) {
            self.snapshot_at = None;
        } else if is_due {
            self.snapshot_at = Some(now + SNAPSHOT_EVERY);
        }
        output
    }

    /// Records a fact that the guard does not have, as the text of a JSON object; it is repeated at
    /// the beginning of each file. The same text again is ignored, as is every [`Fact::Vehicle`]
    /// after the first if the settings contain a vehicle identification number. A text longer than
    /// [`FACT_BYTES_MAX`], or one for which the queue has no room, is dropped and counted.
    pub fn tell(&mut self, fact: Fact, text: &str, now: Instant) {
        if text.len() > FACT_BYTES_MAX {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            self.send(Item::Fact(fact, text.to_owned(), now));
        }
    }

    /// Returns the state of the recording.
    pub fn health(&self) -> Health {
        let drive = self.shared.drive.load(Ordering::Relaxed);
        Health {
            trouble: self.shared.trouble(),
            dropped: self.shared.dropped.load(Ordering::Relaxed),
            drive: (drive > 0).then_some(drive),
        }
    }

    fn send(&mut self, item: Item) -> bool {
        let is_sent = self.items.as_ref().is_some_and(|items| items.try_send(item).is_ok());
        self.shared.is_behind.store(u8::from(!is_sent), Ordering::Relaxed);
        if !is_sent {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
        is_sent
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.items = None;
        // A thread that panicked has already logged it.
        if self.done.recv_timeout(END_WAIT) == Err(RecvTimeoutError::Timeout) {
            tracing::error!("the black box was not closed: the disk does not respond");
        }
    }
}

/// Maximum length of a fact's text in bytes.
pub const FACT_BYTES_MAX: usize = 4_096;
/// Maximum of queued items: 40 seconds of steps, 4 MB, longer than any stall of a working disk.
const ITEMS_MAX: usize = 4_096;
/// Interval of snapshots: a replay begins at most this long before the time of interest.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(5);
/// Maximum time that dropping a recorder waits for its thread to end: a process must not hang on
/// its disk.
const END_WAIT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
