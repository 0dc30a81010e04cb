//! Steps the guard and records what it did, on a thread of its own.

mod ring;
mod worker;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use serde_json::json;
use tautline_guard::{Guard, Input, Output};
use tautline_units::Instant;

use crate::body::Step;
use crate::topic::Fact;
use crate::{Config, Error, Signer};
use worker::{Disk, Folder, Worker};

/// Steps the guard, and hands what it got and gave to a thread that writes.
///
/// No call waits for the disk: what a stalled disk leaves no room for is dropped and counted, and
/// what is recorded goes on with a [snapshot](crate::Topic::Snapshot) of the guard. A recorder that
/// is dropped ends the drive, and waits for the disk for two seconds at most.
#[derive(Debug)]
pub struct Recorder {
    items: Option<SyncSender<Item>>,
    shared: Arc<Shared>,
    /// Says that the thread is done.
    done: Receiver<()>,
    /// When the next snapshot is due; at once after a drop.
    snapshot_at: Option<Instant>,
}

/// How the recorder does.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Health {
    /// What is wrong, if something is: a person who drives is to be told.
    pub trouble: Option<Trouble>,
    /// Steps and facts that were lost because the disk was behind.
    pub dropped: u64,
    /// The drive that is recorded.
    pub drive: Option<u32>,
}

/// Why not all is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trouble {
    /// The disk is full.
    DiskFull,
    /// The disk refuses to be written to.
    DiskRefuses,
    /// The disk is so slow that steps are dropped.
    DiskBehind,
    /// The thread that writes has ended.
    Ended,
}

/// What goes to the thread.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a step a hundredth of a second, and no allocation")]
enum Item {
    Step(Taken),
    Fact(Fact, String, Instant),
}

/// A step, and the guard before it where a replay may begin.
#[derive(Debug)]
struct Taken {
    step: Step,
    before: Option<Box<Guard>>,
}

/// The thread's end of a recorder.
struct WorkersEnd {
    items: Receiver<Item>,
    shared: Arc<Shared>,
    done: SyncSender<()>,
}

/// What both threads see.
#[derive(Debug, Default)]
struct Shared {
    dropped: AtomicU64,
    is_behind: AtomicU8,
    /// 0, or the number of what is wrong with the disk.
    disk: AtomicU8,
    /// 0 while there is none.
    drive: AtomicU32,
}

impl Recorder {
    /// Starts to record; `unix_nanos` is the Unix time of [`Instant::ZERO`], in nanoseconds.
    ///
    /// Nothing is written before the guard's first transition, which begins a drive.
    ///
    /// # Errors
    /// When a setting is out of its bounds, the folder cannot be made, or no thread started.
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

    /// Returns a recorder, and what its thread takes.
    fn pair(items_max: usize) -> (Self, WorkersEnd) {
        let shared = Arc::new(Shared::default());
        let (sender, items) = sync_channel(items_max);
        let (done, is_done) = sync_channel(1);
        let end = WorkersEnd { items, shared: Arc::clone(&shared), done };
        (Self { items: Some(sender), shared, done: is_done, snapshot_at: None }, end)
    }

    /// Steps the guard, and records it. Takes as long as the step, and every five seconds 10 kB of
    /// memory more.
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

    /// Records what the guard does not know, the text of a JSON object; it is told again at the beginning
    /// of each file. More than [`FACT_BYTES_MAX`] are not taken, and counted.
    pub fn tell(&mut self, fact: Fact, text: &str, now: Instant) {
        if text.len() > FACT_BYTES_MAX {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            self.send(Item::Fact(fact, text.to_owned(), now));
        }
    }

    /// Returns how recording does.
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
        // A thread that has panicked has said so.
        if self.done.recv_timeout(END_WAIT) == Err(RecvTimeoutError::Timeout) {
            tracing::error!("the black box did not get to its end: the disk stalls");
        }
    }
}

impl Shared {
    fn trouble(&self) -> Option<Trouble> {
        match self.disk.load(Ordering::Relaxed) {
            DISK_FULL => Some(Trouble::DiskFull),
            DISK_REFUSES => Some(Trouble::DiskRefuses),
            DISK_ENDED => Some(Trouble::Ended),
            _ if self.is_behind.load(Ordering::Relaxed) > 0 => Some(Trouble::DiskBehind),
            _ => None,
        }
    }

    /// Takes note of how writing went.
    fn set_disk(&self, error: Option<&io::Error>) {
        let state = match error.map(io::Error::kind) {
            None => DISK_WELL,
            Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => DISK_FULL,
            Some(_) => DISK_REFUSES,
        };
        self.disk.store(state, Ordering::Relaxed);
    }
}

/// Most bytes of a fact's text.
pub const FACT_BYTES_MAX: usize = 4_096;
/// 40 seconds of steps, 4 MB: longer than a disk stalls that works.
const ITEMS_MAX: usize = 4_096;
/// How far a replay may have to begin before what is looked at.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(5);
/// A process that ends must not hang on its disk.
const END_WAIT: Duration = Duration::from_secs(2);

const DISK_WELL: u8 = 0;
const DISK_FULL: u8 = 1;
const DISK_REFUSES: u8 = 2;
const DISK_ENDED: u8 = 3;

#[cfg(test)]
mod tests;
