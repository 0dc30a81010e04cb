//! Files that must survive a crash, and files that nobody else may read.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, ensure};

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

/// Refuses a secret key that others than the owner of its file may read or change.
///
/// `input` is what was opened at `file`: what is looked at is what is read.
///
/// # Errors
/// One line that says so, and what mends it.
pub fn refuse_readable_by_others(input: &File, file: &Path) -> anyhow::Result<()> {
    let metadata = input.metadata().with_context(|| format!("key file {}", file.display()))?;
    let mode = metadata.permissions().mode() & 0o777;
    ensure!(
        mode & 0o077 == 0,
        "others may read or change key file {0} (mode {mode:04o}): `chmod 600 {0}`",
        file.display()
    );
    Ok(())
}

/// Writes to the disk which names the folder of `file` has.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

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
