//! The recorder: received data as H.264 files that any decoder plays, and as MCAP.

mod entry;
mod film;
mod log;
mod output;
pub(crate) mod status;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use tautline_net::clock::Clock;
use tautline_video::{Layout, SliceKind};

pub use entry::Entry;
use film::Film;
use log::Log;
pub use log::Unit;
use output::Output;

/// Recorder of one operator's run. It writes each strip's stream to `strip-N.h264`, and a line per
/// slice to `slices.csv`. Strips that can be [joined](tautline_video::avc::Joiner) also go to
/// `picture.h264` as complete pictures. All other units go to `channels.mcap`, with the descriptors
/// of their channels.
///
/// A dedicated thread writes the files. If the disk is too slow, full or failing, entries are
/// dropped and counted by that name; the video is never blocked. Recording resumes in the same
/// files as soon as the disk accepts the backlog. About one second is missing for a concurrent
/// reader, or after the operator was killed.
#[derive(Debug)]
pub struct Recorder {
    entries: Option<SyncSender<Item>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

/// Reason why entries of a recording are lost: what is wrong with the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The disk is too slow: the queue of entries is full.
    Slow,
    /// The disk is full, or its user's quota is.
    Full,
    /// Any other error of writing to the disk.
    Refuses,
}

/// Number of lost entries, by [`Trouble`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dropped {
    /// Number of lost slices for each reason of [`Trouble::ALL`], in its order.
    pub slices: [u64; Trouble::ALL.len()],
    /// Number of lost units of channels other than the video's, for each reason of
    /// [`Trouble::ALL`].
    pub units: [u64; Trouble::ALL.len()],
}

enum Item {
    Slice(Entry),
    Unit(Unit),
}

/// State shared by the recorder's caller and the thread that writes.
#[derive(Debug, Default)]
struct Shared {
    slices: [AtomicU64; Trouble::ALL.len()],
    units: [AtomicU64; Trouble::ALL.len()],
    /// 0 while the disk accepts everything, otherwise one plus the trouble's index.
    trouble: AtomicU8,
}

/// All open files of a recording, with their writers.
struct Files {
    strips: Vec<Output>,
    index: Output,
    film: Film,
    log: Log,
    line: String,
}

impl Trouble {
    /// All reasons, in the order of the counters.
    pub const ALL: [Self; 3] = [Self::Slow, Self::Full, Self::Refuses];

    /// Returns the description of the reason, such as "disk full".
    pub fn words(self) -> &'static str {
        match self {
            Self::Slow => "disk too slow",
            Self::Full => "disk full",
            Self::Refuses => "disk refuses",
        }
    }

    fn of(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Refuses,
        }
    }
}

impl Recorder {
    /// Creates `folder` if it is missing, and begins new files in it, in place of those of an
    /// earlier recording.
    ///
    /// # Errors
    /// Fails if the folder or a file cannot be created.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot record into {}", folder.display());
        fs::create_dir_all(folder).with_context(cannot)?;
        let file = |name: &str| {
            let file = File::create(folder.join(name)).with_context(cannot)?;
            anyhow::Ok(Output::new(file))
        };
        let strips = (0..Layout::STRIP_COUNT).map(|strip| file(&format!("strip-{strip}.h264")));
        let strips = strips.collect::<Result<Vec<_>, _>>()?;
        // The file is created with its first picture; an older one must not look like a part of
        // this recording.
        match fs::remove_file(folder.join(PICTURES)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(cannot);
            }
            Ok(()) | Err(_) => {}
        }
        let film = Film::new(folder.join(PICTURES));
        let log = Log::begin(file(CHANNELS)?).with_context(cannot)?;
        let files = Files::begin(strips, file(INDEX)?, film, log).with_context(cannot)?;
        Self::start(files)
    }

    fn start(files: Files) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (entries, receiver) = sync_channel(ENTRIES_MAX);
        let told = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("recorder".into());
        let thread = thread.spawn(move || write(&receiver, files, &told, &Clock::start()))?;
        Ok(Self { entries: Some(entries), thread: Some(thread), shared })
    }

    /// Queues a slice for writing; counts it as dropped if the queue is full.
    pub fn record(&mut self, entry: Entry) {
        self.take(Item::Slice(entry));
    }

    /// Queues a unit of another channel for writing; counts it as dropped if the queue is full.
    pub fn record_unit(&mut self, unit: Unit) {
        self.take(Item::Unit(unit));
    }

    /// Returns how many entries were lost, by reason.
    pub fn dropped(&self) -> Dropped {
        let counts = |counters: &[AtomicU64; Trouble::ALL.len()]| {
            counters.each_ref().map(|counter| counter.load(Ordering::Relaxed))
        };
        Dropped { slices: counts(&self.shared.slices), units: counts(&self.shared.units) }
    }

    /// Returns why nothing is written at present, never [`Trouble::Slow`]; `None` if the last write
    /// succeeded.
    pub fn trouble(&self) -> Option<Trouble> {
        let place = usize::from(self.shared.trouble.load(Ordering::Relaxed)).checked_sub(1)?;
        Trouble::ALL.get(place).copied()
    }

    fn take(&mut self, item: Item) {
        let counters = self.shared.of(&item);
        let is_taken = self.entries.as_ref().is_some_and(|entries| entries.try_send(item).is_ok());
        counters[Trouble::Slow as usize].fetch_add(u64::from(!is_taken), Ordering::Relaxed);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.entries = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn of(&self, item: &Item) -> &[AtomicU64; Trouble::ALL.len()] {
        match item {
            Item::Slice(_) => &self.slices,
            Item::Unit(_) => &self.units,
        }
    }

    /// Records the result of writing, and logs it if the trouble has changed; returns the trouble,
    /// if there is one.
    fn set(&self, written: &io::Result<()>) -> Option<Trouble> {
        let trouble = written.as_ref().err().map(Trouble::of);
        let place = trouble.map_or(0, |trouble| trouble as u8 + 1);
        let before = self.trouble.swap(place, Ordering::Relaxed);
        match written {
            Err(error) if before != place => {
                let why = Trouble::of(error).words();
                tracing::error!(%error, "recording has stopped: {why}; it is tried again");
            }
            Ok(()) if before != 0 => tracing::info!("recording continues"),
            Ok(()) | Err(_) => {}
        }
        trouble
    }
}

impl Files {
    fn begin(strips: Vec<Output>, mut index: Output, film: Film, log: Log) -> io::Result<Self> {
        index.append(format!("{INDEX_HEAD}\n").as_bytes())?;
        Ok(Self { strips, index, film, log, line: String::new() })
    }

    /// Writes an item to its files, which may buffer it. After an error its bytes wait with the
    /// earlier ones.
    fn take(&mut self, item: Item) -> io::Result<()> {
        let entry = match item {
            Item::Slice(entry) => entry,
            Item::Unit(unit) => return self.log.take(&unit),
        };
        let kind = match entry.kind {
            SliceKind::Idr => "idr",
            SliceKind::Predicted => "predicted",
            SliceKind::Skip => "skip",
        };
        self.line.clear();
        let _ = writeln!(
            self.line,
            "{},{},{kind},{},{},{},{},{}",
            entry.picture,
            entry.strip,
            entry.captured_at.as_micros(),
            entry.encoded_at.as_micros(),
            entry.shown_at.as_micros(),
            entry.bytes.len(),
            u8::from(entry.is_clean)
        );
        // Every file gets its part, even if another one fails.
        let strip = self.strips.get_mut(usize::from(entry.strip));
        let strip = strip.map_or(Ok(()), |file| file.append(&entry.bytes));
        let index = self.index.append(self.line.as_bytes());
        let film = self.film.take(entry);
        strip.and(index).and(film)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.strips.iter_mut().try_for_each(Output::flush)?;
        self.index.flush()?;
        self.film.flush()?;
        self.log.flush()
    }
}

/// Writes items until all senders are gone. While the disk fails, items are counted and dropped,
/// and writing the backlog is retried.
fn write(items: &Receiver<Item>, mut files: Files, shared: &Shared, clock: &Clock) {
    let mut flushed_at = clock.now();
    let mut trouble = None;
    loop {
        let item = items.recv_timeout(FLUSHED_AFTER);
        if matches!(item, Err(RecvTimeoutError::Disconnected)) {
            break;
        }
        match (item, trouble) {
            (Ok(item), None) => {
                let taken = files.take(item);
                if taken.is_err() {
                    trouble = shared.set(&taken);
                }
            }
            (Ok(item), Some(trouble)) => {
                shared.of(&item)[trouble as usize].fetch_add(1, Ordering::Relaxed);
            }
            (Err(_), _) => {}
        }
        let now = clock.now();
        if now.since(flushed_at) >= FLUSHED_AFTER {
            flushed_at = now;
            trouble = shared.set(&files.flush());
        }
    }
    let ended = files.flush().and_then(|()| files.log.finish()).and_then(|()| files.film.finish());
    shared.set(&ended);
}

/// Name of the file with a line per slice.
pub const INDEX: &str = "slices.csv";
/// First line of the file [`INDEX`], with the names of the file's columns.
pub const INDEX_HEAD: &str = "picture,strip,kind,captured_us,encoded_us,shown_us,bytes,clean";
/// Name of the file with complete pictures.
pub const PICTURES: &str = "picture.h264";
/// Name of the file with the units of all channels except the video's.
pub const CHANNELS: &str = "channels.mcap";
/// Maximum number of queued entries, 1.4 s of slices at 60 pictures per second; further ones are
/// dropped and counted as [`Trouble::Slow`].
const ENTRIES_MAX: usize = 512;
/// Interval at which buffered data is written: the longest time that a part of a recording is in
/// memory only.
const FLUSHED_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
