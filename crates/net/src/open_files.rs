//! The limit of a process's open files, of which every connection takes one.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit. Call it at the start of a process.
///
/// Many systems start processes with a soft limit of 1,024 and a far higher hard limit, for old
/// programs that wait by `select`.
///
/// # Errors
/// When the system refuses; the former limit remains.
pub fn raise_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return Ok(());
    }
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}

/// Returns how many files this process may have open at once.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns the share `1 / parts` of the files that this process may have open, between `least` and
/// `most`.
pub(crate) fn share(parts: u64, least: usize, most: usize) -> usize {
    usize::try_from(limit() / parts).unwrap_or(most).clamp(least, most)
}

/// Returns the remedy if `error` means that no further file can be opened, else nothing.
pub(crate) fn remedy(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => format!(
            "; this process may open {}: raise it by LimitNOFILE of its unit, or `ulimit -Hn`",
            limit()
        ),
        Some(Errno::NFILE) => "; the whole system may open no more: raise fs.file-max".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_files_stays_within_its_bounds() {
        assert_eq!(share(u64::MAX, 8, 256), 8);
        assert_eq!(share(1, 1, 2), 2);
        assert!(share(4, 1, usize::MAX) <= usize::try_from(limit()).unwrap_or(usize::MAX) / 4);
    }

    #[test]
    fn only_a_lack_of_files_has_the_remedy() {
        let remedy = |errno: Errno| remedy(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert!(remedy(Errno::MFILE).contains("LimitNOFILE"));
        assert!(remedy(Errno::NFILE).contains("fs.file-max"));
        assert_eq!(remedy(Errno::CONNABORTED), "");
    }
}
