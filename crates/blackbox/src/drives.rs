//! Folders of a black box: one per drive, numbered, never overwritten.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::{Config, Error};

/// One drive on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drive {
    /// Number of the drive, which grows by at least 1 from one drive to the next.
    pub number: u32,
    /// Folder of the drive.
    pub folder: PathBuf,
    /// Paths of the files of the drive, in the order in which they were written.
    pub files: Vec<PathBuf>,
    /// Total size of the files of the drive in bytes.
    pub bytes: u64,
    /// Time of the last write to any of the files, in seconds of Unix time; 0 without files.
    pub written_at: i64,
}

/// Returns the drives of a black box, the oldest first; none if the folder does not exist.
///
/// # Errors
/// When a folder cannot be read.
pub fn list(root: &Path) -> Result<Vec<Drive>, Error> {
    let mut drives = Vec::new();
    for (number, folder) in numbered(root, number_of_drive)? {
        drives.push(read(number, folder)?);
    }
    Ok(drives)
}

/// Returns the drive in this folder; `None` if its name is not that of a drive, or it has no files.
///
/// # Errors
/// When it cannot be read.
pub fn one(folder: &Path) -> Result<Option<Drive>, Error> {
    let number = folder.file_name().and_then(|name| number_of_drive(name.to_str()?));
    let Some(number) = number else { return Ok(None) };
    let drive = read(number, folder.to_path_buf())?;
    Ok((!drive.files.is_empty()).then_some(drive))
}

/// Creates the folder of all drives if it is missing; only its owner can read it.
pub(crate) fn make(root: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(at(root))
}

/// Creates the folder of the next drive, with a number above `after` and above those of all
/// existing drives, and returns both; only its owner can read it.
pub(crate) fn create(root: &Path, after: u32) -> Result<(u32, PathBuf), Error> {
    make(root)?;
    let newest = numbered(root, number_of_drive)?.last().map_or(0, |(number, _)| *number);
    take(root, newest.max(after))
}

/// Creates the folder with the first free number after `newest`.
fn take(root: &Path, newest: u32) -> Result<(u32, PathBuf), Error> {
    let mut number = newest.saturating_add(1);
    loop {
        let folder = root.join(format!("{DRIVE}{number:06}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => {
                sync_folder(root).map_err(at(root))?;
                return Ok((number, folder));
            }
            // Another guard that records into the same black box has just created this folder.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {
                number += 1;
            }
            Err(source) => return Err(Error::Disk { path: folder, source }),
        }
    }
}

/// Returns the path of a part of a drive.
pub(crate) fn part(folder: &Path, part: u32) -> PathBuf {
    folder.join(format!("{PART}{part:03}.{EXTENSION}"))
}

/// Creates a file that must not exist yet, and syncs the entry in its folder; only its owner can
/// read it.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    path.parent().map_or(Ok(()), sync_folder)?;
    Ok(file)
}

/// Returns the number of the oldest drive to keep under the settings, if older ones exist; `None`
/// if all are kept. The newest drive is always kept.
pub(crate) fn kept_from(config: &Config, unix_seconds: i64) -> Result<Option<u32>, Error> {
    let drives = list(&config.folder)?;
    let days = i64::try_from(config.keep_days).unwrap_or(i64::MAX);
    let age_max = if days == 0 { i64::MAX } else { days.saturating_mul(SECONDS_A_DAY) };
    let bytes_max = if config.keep_mib == 0 { u64::MAX } else { config.keep_mib << 20 };
    let mut bytes: u64 = drives.iter().map(|drive| drive.bytes).sum();
    let mut kept_from = None;
    for pair in drives.windows(2) {
        let is_old = unix_seconds.saturating_sub(pair[0].written_at) > age_max;
        if !is_old && bytes <= bytes_max {
            break;
        }
        bytes -= pair[0].bytes;
        kept_from = Some(pair[1].number);
    }
    Ok(kept_from)
}

/// Deletes the drives with numbers below `number`; returns how many.
pub(crate) fn delete_below(root: &Path, number: u32) -> Result<usize, Error> {
    let all = numbered(root, number_of_drive)?;
    let old: Vec<_> = all.into_iter().filter(|(drive, _)| *drive < number).collect();
    for (_, folder) in &old {
        fs::remove_dir_all(folder).map_err(at(folder))?;
    }
    Ok(old.len())
}

fn read(number: u32, folder: PathBuf) -> Result<Drive, Error> {
    let files: Vec<PathBuf> =
        numbered(&folder, number_of_part)?.into_iter().map(|(_, file)| file).collect();
    let mut drive = Drive { number, folder, files, bytes: 0, written_at: 0 };
    for file in &drive.files {
        let about = fs::metadata(file).map_err(at(file))?;
        drive.bytes += about.len();
        drive.written_at = drive.written_at.max(about.mtime());
    }
    Ok(drive)
}

/// Returns the numbered entries of a folder, the lowest first; none if it does not exist.
fn numbered(
    folder: &Path,
    number: impl Fn(&str) -> Option<u32>,
) -> Result<Vec<(u32, PathBuf)>, Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(at(folder))?,
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry.map_err(at(folder))?;
        if let Some(number) = entry.file_name().to_str().and_then(&number) {
            all.push((number, entry.path()));
        }
    }
    all.sort();
    Ok(all)
}

fn number_of_drive(name: &str) -> Option<u32> {
    name.strip_prefix(DRIVE)?.parse().ok()
}

/// Returns the number of the part by the file's name; `None` if it is not that of a part.
pub fn part_of(file: &Path) -> Option<u32> {
    number_of_part(file.file_name()?.to_str()?)
}

fn number_of_part(name: &str) -> Option<u32> {
    name.strip_prefix(PART)?.strip_suffix(EXTENSION)?.strip_suffix('.')?.parse().ok()
}

/// Syncs a folder's entries to the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn at(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Disk { path: path.to_path_buf(), source }
}

const DRIVE: &str = "drive-";
const PART: &str = "part-";
const EXTENSION: &str = "mcap";
const SECONDS_A_DAY: i64 = 86_400;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Creates a drive of this many MiB.
    fn drive(root: &Path, mib: usize) -> u32 {
        let (number, folder) = create(root, 0).unwrap();
        let mut file = create_file(&part(&folder, 1)).unwrap();
        file.write_all(&vec![0; mib << 20]).unwrap();
        number
    }

    fn numbers(root: &Path) -> Vec<u32> {
        list(root).unwrap().into_iter().map(|drive| drive.number).collect()
    }

    #[test]
    fn drives_are_numbered_and_nothing_is_written_over() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(numbers(&root.path().join("none")), [0; 0]);
        assert_eq!((drive(root.path(), 0), drive(root.path(), 0)), (1, 2));
        fs::create_dir(root.path().join("drive-000041")).unwrap();
        fs::create_dir(root.path().join("notes")).unwrap();
        assert_eq!(drive(root.path(), 0), 42);
        let newest = list(root.path()).unwrap().pop().unwrap();
        assert!(create_file(&newest.files[0]).is_err(), "it exists");
        assert_eq!(one(&newest.folder).unwrap(), Some(newest));
        assert_eq!(one(root.path()).unwrap(), None);
    }

    #[test]
    fn two_that_record_into_one_black_box_number_their_drives_apart() {
        let root = tempfile::tempdir().unwrap();
        // The first two both saw an empty folder.
        let taken = [0, 0, 1].map(|newest| take(root.path(), newest).unwrap().0);
        assert_eq!((taken, numbers(root.path())), ([1, 2, 3], vec![1, 2, 3]));
    }

    #[test]
    fn only_their_owner_can_read_them() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().join("box");
        drive(&root, 0);
        let drive = list(&root).unwrap().pop().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(
            (mode(&root), mode(&drive.folder), mode(&drive.files[0])),
            (0o700, 0o700, 0o600)
        );
    }

    #[test]
    fn the_oldest_go_by_size_and_by_age_and_never_the_newest() {
        let root = tempfile::tempdir().unwrap();
        let config = Config {
            folder: root.path().to_path_buf(),
            keep_mib: 0,
            keep_days: 0,
            ..Config::default()
        };
        for _ in 0..4 {
            drive(root.path(), 1);
        }
        let now = list(root.path()).unwrap()[0].written_at;
        let prune = |config: &Config, now| {
            let kept_from = kept_from(config, now).unwrap();
            kept_from.map_or(0, |number| delete_below(root.path(), number).unwrap())
        };
        assert_eq!(prune(&config, now + 1_000 * SECONDS_A_DAY), 0, "all are kept");
        assert_eq!(prune(&Config { keep_mib: 3, ..config.clone() }, now), 1, "the newest counts");
        assert_eq!(numbers(root.path()), [2, 3, 4]);
        let week = Config { keep_days: 7, ..config };
        assert_eq!(prune(&week, now + 6 * SECONDS_A_DAY), 0);
        assert_eq!(prune(&week, now + 8 * SECONDS_A_DAY), 2);
        assert_eq!((numbers(root.path()), drive(root.path(), 0)), (vec![4], 5));
        assert_eq!(create(root.path(), 7).unwrap().0, 8, "behind what is known to have been");
    }
}
