//! Files that must survive a crash.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Replaces `file` by one that holds `bytes`: at every moment, also of a kill or a power cut, it is the old one or
/// the new one. The new one is on the disk when this returns.
///
/// It is written beside `file`, under the same name with `.new` behind it.
///
/// # Errors
/// When `file` names no file, or one of both cannot be written.
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

/// Removes `file`, on the disk too when this returns.
///
/// # Errors
/// When it cannot be removed, or is not there.
pub fn remove(file: &Path) -> io::Result<()> {
    std::fs::remove_file(file)?;
    sync_folder(file)
}

/// Writes to the disk which names the folder of `file` has.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_whatever_a_killed_process_left_beside_it() {
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
    fn what_names_no_file_is_refused() {
        assert!(replace(Path::new("/"), b"").is_err());
        assert!(replace(Path::new("/no/such/folder/file"), b"").is_err());
    }
}
