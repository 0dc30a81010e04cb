//! Files named by a person, files that must survive a crash, and files that must be private.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// A file opened for reading whose path a person supplied: a pipe or a device does not block it.
///
/// Opening does not wait for a writer. A read waits for at most [`SILENCE_MAX`]: the pipe of a
/// shell's `<(command)` is read to its end, but a pipe without a writer is an error.
#[derive(Debug)]
pub struct Input(File);

impl Input {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Those of the system; [`ErrorKind::IsADirectory`] for a folder, [`ErrorKind::InvalidInput`]
    /// for a socket.
    pub fn open(path: &Path) -> io::Result<Self> {
        let named = std::fs::metadata(path)?.file_type();
        if named.is_dir() {
            return Err(refused(ErrorKind::IsADirectory, "it is a folder, a file is needed"));
        }
        if named.is_socket() {
            return Err(refused(ErrorKind::InvalidInput, "it is a socket, a file is needed"));
        }
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        Ok(Self(File::options().read(true).custom_flags(flags).open(path)?))
    }

    /// Returns the open file, for inspection.
    pub fn file(&self) -> &File {
        &self.0
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let limit = Timespec { tv_sec: SILENCE_MAX.as_secs().cast_signed(), tv_nsec: 0 };
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut ready, Some(&limit))? {
            0 => {
                Err(refused(ErrorKind::TimedOut, "it is a pipe or a device to which nobody writes"))
            }
            _ => self.0.read(bytes),
        }
    }
}

/// Reads the complete file at `path` by [`Input`].
///
/// # Errors
/// Those of [`Input::open`] and of the system; [`ErrorKind::FileTooLarge`] beyond `bytes_max`.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Input::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => {
            Err(refused(ErrorKind::FileTooLarge, &format!("it has more than {bytes_max} bytes")))
        }
        false => Ok(bytes),
    }
}

/// Reads the complete text file at `path` by [`read`], at most [`TEXT_BYTES_MAX`].
///
/// # Errors
/// Those of [`read`]; [`ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read(path, TEXT_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|_| refused(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Checks that `path` names a regular file that is not empty, so that it can be read repeatedly
/// from its beginning.
///
/// # Errors
/// Those of the system; [`ErrorKind::InvalidInput`] with a text that describes what it is instead.
pub fn check_regular(path: &Path) -> io::Result<()> {
    let found = std::fs::metadata(path)?;
    let kind = found.file_type();
    let words = match kind {
        _ if kind.is_dir() => "it is a folder",
        _ if kind.is_fifo() => "it is a pipe, which can be read only once",
        _ if kind.is_socket() => "it is a socket",
        _ if kind.is_char_device() || kind.is_block_device() => "it is a device",
        _ if found.len() == 0 => "it is empty",
        // Opening checks whether this user may read it.
        _ => return Input::open(path).map(drop),
    };
    Err(refused(ErrorKind::InvalidInput, words))
}

fn refused(kind: ErrorKind, words: &str) -> io::Error {
    io::Error::new(kind, words)
}

/// Replaces `file` atomically by one that contains `bytes`: even after a kill or a power cut,
/// either the old or the new one exists. The new one is on the disk when this returns.
///
/// It is first written in the same folder, under the same name with `.new` appended.
///
/// # Errors
/// When `file` names no file, or either cannot be written.
pub fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = file.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut new_name = name.to_owned();
    new_name.push(".new");
    let new = file.with_file_name(new_name);
    let mut output = File::create(&new)?;
    output.write_all(bytes)?;
    output.sync_all()?;
    std::fs::rename(&new, file)?;
    sync_folder(file)
}

/// Removes `file`; the removal is on the disk when this returns.
///
/// # Errors
/// When it cannot be removed, or does not exist.
pub fn remove(file: &Path) -> io::Result<()> {
    std::fs::remove_file(file)?;
    sync_folder(file)
}

/// Fails if users other than its owner may read or change the file of a secret key.
///
/// `input` is the file opened at `file`, so that the check applies to the file that is read.
///
/// # Errors
/// One line with the problem and the remedy.
pub fn refuse_readable_by_others(input: &File, file: &Path) -> anyhow::Result<()> {
    let metadata = input.metadata().with_context(|| format!("key file {}", file.display()))?;
    let mode = metadata.permissions().mode() & 0o777;
    ensure!(
        mode & 0o077 == 0,
        "other users can read or change key file {0} (mode {mode:04o}): run `chmod 600 {0}`",
        file.display()
    );
    Ok(())
}

/// Syncs the entries of the folder of `file` to the disk.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Maximum wait of one read; a pipe or device without data for longer counts as one without a
/// writer.
pub const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Maximum size of a text file that [`read_text`] reads, beyond which it fails: a thousand times
/// that of usual settings and lists.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn pipe(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
        path
    }

    #[test]
    fn a_pipe_without_a_writer_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = pipe(folder.path());
        let error = read_text(&pipe).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(error.to_string().contains("nobody writes"), "{error}");
        let error = check_regular(&pipe).unwrap_err().to_string();
        assert!(error.starts_with("it is a pipe"), "{error}");
    }

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = pipe(folder.path());
        let path = pipe.clone();
        let writer = std::thread::spawn(move || {
            let mut pipe = File::options().write(true).open(path).unwrap();
            pipe.write_all(b"name = 1\n").unwrap();
            std::thread::sleep(Duration::from_millis(20));
            pipe.write_all(b"key = 2\n").unwrap();
        });
        assert_eq!(read_text(&pipe).unwrap(), "name = 1\nkey = 2\n");
        writer.join().unwrap();
    }

    #[test]
    fn a_path_that_is_no_regular_file_is_refused_by_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let empty = folder.path().join("empty");
        File::create(&empty).unwrap();
        let words = |path: &Path| check_regular(path).unwrap_err().to_string();
        assert_eq!(words(folder.path()), "it is a folder");
        assert_eq!(words(&socket), "it is a socket");
        assert_eq!(words(&empty), "it is empty");
        assert_eq!(words(Path::new("/dev/null")), "it is a device");
        assert_eq!(read_text(Path::new("/dev/null")).unwrap(), "");
        assert_eq!(read_text(folder.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert!(read_text(&socket).unwrap_err().to_string().starts_with("it is a socket"));
        let error = read(Path::new("/dev/zero"), 1_000).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 1000 bytes");
        std::fs::write(&empty, [0xFF]).unwrap();
        assert!(read_text(&empty).is_err() && check_regular(&empty).is_ok());
    }

    #[test]
    fn a_file_is_replaced_atomically_despite_a_torn_leftover() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("latch");
        replace(&file, b"a first one, which is longer\n").unwrap();
        std::fs::write(folder.path().join("latch.new"), "torn").unwrap();
        replace(&file, b"a second one\n").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"a second one\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        remove(&file).unwrap();
        assert_eq!(remove(&file).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_path_without_a_file_name_is_refused() {
        assert!(replace(Path::new("/"), b"").is_err());
        assert!(replace(Path::new("/no/such/folder/file"), b"").is_err());
    }

    #[test]
    fn a_key_that_others_may_read_or_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.key");
        let opened = File::create(&file).unwrap();
        for (mode, is_secret) in [(0o600, true), (0o400, true), (0o640, false), (0o602, false)] {
            opened.set_permissions(Permissions::from_mode(mode)).unwrap();
            let refused = refuse_readable_by_others(&opened, &file).err();
            assert_eq!(refused.is_none(), is_secret, "{refused:?}");
            let words = refused.map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(words.contains("`chmod 600 /"), !is_secret, "{words}");
        }
    }
}
