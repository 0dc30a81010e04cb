//! Fingerprints of files, by which a plain test checks whether generated code is current.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Lists every file under `folders` of `root` with its fingerprint, one per line, sorted by path.
///
/// # Errors
/// Any error from reading the folders and files.
pub(crate) fn list(root: &Path, folders: &[&str]) -> io::Result<String> {
    let mut files = Vec::new();
    for folder in folders {
        walk(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut lines = String::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap_or(&file).display();
        lines.push_str(&format!("{:016x}  {path}\n", fnv1a(&fs::read(&file)?)));
    }
    Ok(lines)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the 64-bit FNV-1a hash: it distinguishes old generated code from current, but does not
/// protect against tampering.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
