//! Connection of a program that delivers pictures: its newest complete picture, read by a thread.

use std::io::{ErrorKind, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tautline_net::clock::Clock;

use super::header::Header;

/// One complete picture.
#[derive(Debug)]
pub(super) struct Delivered {
    pub(super) header: Header,
    pub(super) bytes: Vec<u8>,
    /// Arrival of its last byte, on the monotonic clock.
    pub(super) arrived_at: Duration,
    /// Time of its capture by the header, on the monotonic clock.
    pub(super) captured_at: Duration,
}

/// The end from which pictures are taken. Dropped, it ends the thread and removes the socket.
#[derive(Debug)]
pub(super) struct Inlet {
    shared: Arc<Shared>,
    path: PathBuf,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    slot: Mutex<Slot>,
    changed: Condvar,
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct Slot {
    newest: Option<Delivered>,
    /// Buffers for later pictures, at most two.
    free: Vec<Vec<u8>>,
    /// Pictures replaced by a newer one since the last take.
    superseded: u32,
    /// Reason for which the last program was disconnected; `None` before, and after a picture.
    refused: Option<String>,
    is_connected: bool,
}

/// A reason not to have a picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Missing {
    /// No program is connected.
    Program,
    /// A program is connected and delivers nothing.
    Picture,
    /// The program has delivered what is no picture.
    Refused(String),
}

impl Inlet {
    /// Listens at `path`; a socket that an earlier process left there is replaced.
    ///
    /// # Errors
    /// Those of the system: another process listens there, or the folder does not exist.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let at = path.display();
        let listener = listen(path).with_context(|| format!("cannot listen at unix:{at}"))?;
        listener.set_nonblocking(true).with_context(|| format!("unix:{at}"))?;
        let shared = Arc::new(Shared::default());
        let reading = shared.clone();
        let thread = std::thread::Builder::new()
            .name("camera socket".to_owned())
            .spawn(move || reading.serve(&listener))
            .context("the system gives no thread")?;
        Ok(Self { shared, path: path.to_owned(), thread: Some(thread) })
    }

    /// Takes the newest picture, with the number of those that it replaced, after waiting for one
    /// for at most `longest`. `used` is the buffer of an earlier picture.
    pub(super) fn take(
        &self,
        used: Vec<u8>,
        longest: Duration,
    ) -> Result<(Delivered, u32), Missing> {
        let mut slot = self.shared.lock();
        slot.free.push(used);
        slot.free.truncate(FREE_MAX);
        let is_empty = |slot: &mut Slot| slot.newest.is_none() && slot.refused.is_none();
        let waited = self.shared.changed.wait_timeout_while(slot, longest, is_empty);
        let (mut slot, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(newest) = slot.newest.take() {
            return Ok((newest, std::mem::take(&mut slot.superseded)));
        }
        Err(match slot.refused.take() {
            Some(reason) => Missing::Refused(reason),
            None if slot.is_connected => Missing::Picture,
            None => Missing::Program,
        })
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends within a tenth of a second; a panic of it changes nothing here.
            let _ = thread.join();
        }
        // If this fails, the next inlet replaces the socket.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Serves one program after the other.
    fn serve(&self, listener: &UnixListener) {
        while !self.is_over() {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(ACCEPT_PAUSE);
                continue;
            };
            self.lock().is_connected = true;
            let reason = self.read(stream, listener);
            let mut slot = self.lock();
            slot.is_connected = false;
            if let Some(reason) = reason {
                tracing::warn!(reason, "the program that delivers pictures is disconnected");
                slot.refused = Some(reason);
            }
            drop(slot);
            self.changed.notify_all();
        }
    }

    /// Reads pictures until the program ends, delivers no complete one for two seconds, or sends a
    /// header that is refused; returns the reason of a refusal, `None` for the other ends.
    fn read(&self, mut stream: UnixStream, listener: &UnixListener) -> Option<String> {
        stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(READ_MAX)))
            .ok()?;
        let mut head = [0; Header::BYTES];
        while self.fill(&mut stream, &mut head, listener) {
            let header = match Header::parse(&head) {
                Ok(header) => header,
                Err(reason) => return Some(reason),
            };
            let mut bytes = self.lock().free.pop().unwrap_or_default();
            bytes.resize(header.byte_count, 0);
            if !self.fill(&mut stream, &mut bytes, listener) {
                break;
            }
            let arrived_at = Clock::monotonic();
            let captured_at = header.captured_at(arrived_at, Clock::unix());
            let delivered = Delivered { header, bytes, arrived_at, captured_at };
            let mut slot = self.lock();
            slot.refused = None;
            if let Some(older) = slot.newest.replace(delivered) {
                slot.superseded = slot.superseded.saturating_add(1);
                slot.free.push(older.bytes);
                slot.free.truncate(FREE_MAX);
            }
            drop(slot);
            self.changed.notify_all();
        }
        None
    }

    /// Fills `bytes` from the stream, within two seconds; returns false otherwise, and at its end.
    /// Other programs are turned away meanwhile: what they wrote would be old once it is read.
    fn fill(&self, stream: &mut UnixStream, bytes: &mut [u8], listener: &UnixListener) -> bool {
        let (mut count, begun_at) = (0, Clock::monotonic());
        while count < bytes.len() {
            drop(listener.accept());
            if self.is_over() || Clock::age_of_monotonic(begun_at) > SILENCE_MAX {
                return false;
            }
            match stream.read(&mut bytes[count..]) {
                Ok(0) => return false,
                Ok(read) => count += read,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock => {}
                    _ => return false,
                },
            }
        }
        true
    }
}

fn listen(path: &Path) -> std::io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt;
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_behind(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Returns whether `path` is a socket that no process has open. To connect to any other file is
/// refused as well.
fn is_left_behind(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::metadata(path).is_ok_and(|it| it.file_type().is_socket());
    let tried = UnixStream::connect(path);
    is_socket && tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Number of buffers kept: one is read into, one holds the newest picture, one is encoded.
const FREE_MAX: usize = 2;
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Time after which a read looks whether it should end.
const READ_MAX: Duration = Duration::from_millis(100);
/// Time without a complete picture after which another program may connect.
const SILENCE_MAX: Duration = Duration::from_secs(2);
