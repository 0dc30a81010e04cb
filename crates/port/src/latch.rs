//! Storage of the latch of a stop on disk, written by a separate thread so that no step of the
//! guard waits.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::Context;
use tautline_guard::Latch;
use tautline_guard::identity::Stop;
use tautline_units::Instant;

/// The guard's end of the latch of a stop: requests that the file hold it, and reports whether it
/// does; never waits.
#[derive(Debug)]
pub struct Latching {
    shared: Arc<Shared>,
    wake: SyncSender<()>,
    /// Time since which the file has not held the wanted latch; `None` while it does.
    behind_since: Option<Instant>,
}

/// End of the latch that writes its file, run by a thread of its own.
#[derive(Debug)]
pub struct LatchWriter {
    shared: Arc<Shared>,
    wakes: Receiver<()>,
    file: PathBuf,
    /// Text of the newest failure, from the system; `None` while writing succeeds.
    failure: Option<String>,
}

/// Stop whose latch the file must hold, and the one that it holds.
#[derive(Debug)]
struct Shared {
    /// Number of the stop whose latch the file must hold; 0 if it must hold none.
    wanted: AtomicU64,
    /// Number of the stop that the file holds, 0 if it holds none, or [`REFUSED`] before the first
    /// write and after a failed one.
    kept: AtomicU64,
}

/// Creates both ends of the latch in `file`, which currently holds `latched`.
pub fn latch(file: &Path, latched: Option<Stop>) -> (Latching, LatchWriter) {
    let wanted = AtomicU64::new(number(latched));
    let shared = Arc::new(Shared { wanted, kept: AtomicU64::new(REFUSED) });
    let (wake, wakes) = sync_channel(1);
    let latching = Latching { shared: shared.clone(), wake, behind_since: None };
    (latching, LatchWriter { shared, wakes, file: file.to_owned(), failure: None })
}

impl Latching {
    /// Returns which latch the file holds, for the guard's next step at `now`. It is refused after
    /// a failed write, and once the wanted latch has been missing for [`BEHIND_MAX`].
    pub fn state(&mut self, now: Instant) -> Latch {
        let kept = self.shared.kept.load(Ordering::Acquire);
        if kept == self.shared.wanted.load(Ordering::Relaxed) {
            self.behind_since = None;
        } else if now.since(*self.behind_since.get_or_insert(now)) >= BEHIND_MAX {
            return Latch::Refused;
        }
        match u32::try_from(kept) {
            Ok(number) => Latch::Kept(Stop::new(number)),
            Err(_) => Latch::Refused,
        }
    }

    /// Requests that the file hold the latch of `stop`, or none; never waits.
    pub fn keep(&mut self, stop: Option<Stop>) {
        let wanted = number(stop);
        if self.shared.wanted.swap(wanted, Ordering::Relaxed) != wanted {
            // A full queue has already woken the writer, which reads the newest value.
            let _ = self.wake.try_send(());
        }
    }
}

impl LatchWriter {
    /// Writes the file whenever its latch changes, until the other end is dropped.
    ///
    /// After a failure the write is retried every second. Without a change, a test file is written
    /// every minute, so that a failing disk is detected before a stop needs it.
    pub fn run(mut self) {
        loop {
            self.turn();
            let wait = if self.failure.is_some() { RETRY } else { TRY_INTERVAL };
            match self.wakes.recv_timeout(wait) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.turn();
                    return;
                }
            }
        }
    }

    /// Makes the file hold the wanted latch; if it does already, only tests that it can be written.
    fn turn(&mut self) {
        let wanted = self.shared.wanted.load(Ordering::Relaxed);
        let is_kept = wanted == self.shared.kept.load(Ordering::Relaxed);
        let done = match wanted {
            0 => clear(&self.file),
            _ if is_kept => try_folder(&self.file),
            stop => tautline_net::file::replace(&self.file, format!("{stop}\n").as_bytes()),
        };
        let failure = done.err().map(|error| error.to_string());
        let kept = if failure.is_none() { wanted } else { REFUSED };
        self.shared.kept.store(kept, Ordering::Release);
        if failure != self.failure {
            let file = self.file.display();
            match &failure {
                Some(error) => tracing::error!(
                    error,
                    %file,
                    "the latch of a stop cannot be stored: no machine is armed until it can"
                ),
                None => tracing::info!(%file, "the latch of a stop can be stored again"),
            }
            self.failure = failure;
        }
    }
}

/// Returns the stop that an earlier run left latched in `file`, if there is one.
///
/// # Errors
/// When the file cannot be read or holds no stop: it is then unknown whether a stop was latched.
pub fn read_latch(file: &Path) -> anyhow::Result<Option<Stop>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match tautline_net::file::read_text(file) {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        read => {
            let text = read.with_context(|| format!("latch: cannot read {}", file.display()))?;
            let stop = text.trim().parse().ok().and_then(Stop::new);
            Ok(Some(
                stop.with_context(|| format!("latch: {} does not contain a stop", file.display()))?,
            ))
        }
    }
}

/// Removes the latch and checks that the next one can be written.
fn clear(file: &Path) -> io::Result<()> {
    match tautline_net::file::remove(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => try_folder(file),
    }
}

/// Writes a test file next to the latch's and removes it.
fn try_folder(file: &Path) -> io::Result<()> {
    let mut name = file.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
    name.push(".try");
    let tried = file.with_file_name(name);
    tautline_net::file::replace(&tried, b"0\n")?;
    tautline_net::file::remove(&tried)
}

fn number(stop: Option<Stop>) -> u64 {
    stop.map_or(0, |stop| stop.get().into())
}

/// Value of [`Shared::kept`] while no latch is known to be in the file, above the number of every
/// stop.
const REFUSED: u64 = u64::MAX;
/// Time without the wanted latch in the file after which the disk counts as refusing it.
const BEHIND_MAX: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_secs(1);
const TRY_INTERVAL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const STOP: Option<Stop> = Stop::new(77);

    #[test]
    fn a_latch_is_kept_over_a_restart_and_never_guessed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("latch");
        assert_eq!(read_latch(&file).unwrap(), None);
        let (mut latching, mut writer) = latch(&file, None);
        assert_eq!(latching.state(Instant::ZERO), Latch::Refused, "not tried yet");
        writer.turn();
        assert_eq!(latching.state(Instant::ZERO), Latch::Kept(None));
        latching.keep(STOP);
        assert_eq!(latching.state(Instant::ZERO), Latch::Kept(None), "not on the disk yet");
        writer.turn();
        assert_eq!(latching.state(Instant::ZERO), Latch::Kept(STOP));
        assert_eq!(read_latch(&file).unwrap(), STOP);
        std::fs::write(&file, "0\n").unwrap();
        assert!(read_latch(&file).unwrap_err().to_string().contains("does not contain a stop"));
        latching.keep(None);
        writer.turn();
        assert_eq!(
            (read_latch(&file).unwrap(), latching.state(Instant::ZERO)),
            (None, Latch::Kept(None))
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no other file is left");
    }

    #[test]
    fn the_latch_that_is_kept_is_that_of_the_newest_stop() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("latch");
        let (mut latching, writer) = latch(&file, STOP);
        let writing = std::thread::spawn(move || writer.run());
        for stop in [None, STOP, Stop::new(78), None, STOP, Stop::new(79)] {
            latching.keep(stop);
        }
        drop(latching);
        writing.join().unwrap();
        assert_eq!(read_latch(&file).unwrap(), Stop::new(79));
    }

    #[test]
    fn a_disk_that_refuses_or_hangs_keeps_nothing_until_it_takes_it() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("no folder");
        std::fs::write(&below, "").unwrap();
        let file = below.join("latch");
        assert_eq!(read_latch(&file).unwrap(), None, "there is none");
        let (mut latching, mut writer) = latch(&file, None);
        writer.turn();
        assert_eq!(latching.state(Instant::ZERO), Latch::Refused);
        assert!(writer.failure.as_ref().is_some_and(|it| it.contains("Not a directory")));
        std::fs::remove_file(&below).unwrap();
        std::fs::create_dir(&below).unwrap();
        writer.turn();
        assert_eq!(latching.state(Instant::ZERO), Latch::Kept(None));
        latching.keep(STOP);
        let at = Instant::from_millis;
        assert_eq!(latching.state(at(0)), Latch::Kept(None));
        assert_eq!(latching.state(at(2_000)), Latch::Refused, "the writer hangs");
        writer.turn();
        assert_eq!(latching.state(at(2_010)), Latch::Kept(STOP));
    }
}
