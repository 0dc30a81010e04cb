//! Parallel guests, all of which see the same paths.
//!
//! A guest sees the path of its folder, which must therefore be the same for all. Each worker is a
//! process of this program in its own mount namespace, in which its own folder is mounted at that
//! path.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

use crate::host_folder::FOLDER;

/// A worker's share of the cells: every `count`th, starting at `place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    place: u32,
    count: u32,
}

impl Share {
    /// Returns the index of the worker, from 0.
    pub(crate) fn place(self) -> u32 {
        self.place
    }

    /// Returns this worker's cells, in order.
    pub(crate) fn of<T: Copy>(self, cells: &[T]) -> Vec<T> {
        cells.iter().copied().skip(self.place as usize).step_by(self.count as usize).collect()
    }
}

impl FromStr for Share {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (place, count) = text.split_once('/').context("a share is PLACE/COUNT")?;
        let share = Self { place: place.parse()?, count: count.parse()? };
        ensure!(share.place < share.count, "a share's place is below its count");
        Ok(share)
    }
}

/// Runs this program again, with its arguments, as `count` workers, and waits until all have ended.
///
/// # Errors
/// If namespaces cannot be created, or cells failed; their workers have reported which.
pub(crate) fn run(count: u32) -> Result<()> {
    fs::create_dir_all(FOLDER).with_context(|| format!("cannot make {FOLDER}"))?;
    let start = |place| start(place, count);
    let workers = (0..count).map(start).collect::<Result<Vec<Child>>>()?;
    let mut failed = 0;
    for mut worker in workers {
        failed += u32::from(!worker.wait()?.success());
    }
    match failed {
        0 => Ok(()),
        _ => bail!("{failed} of {count} workers failed; with JOBS=1 no namespaces are needed"),
    }
}

fn start(place: u32, count: u32) -> Result<Child> {
    let folder = PathBuf::from(format!("{FOLDER}-{place}"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut command = Command::new("unshare");
    // Other users become root in a user namespace.
    command.arg(if rustix::process::geteuid().is_root() { "-m" } else { "-rm" });
    command.args(["--propagation", "private", "sh", "-c", BOUND, "sh"]).arg(folder).arg(FOLDER);
    command.arg(std::env::current_exe()?).args(std::env::args_os().skip(1));
    command.args(["--share", &format!("{place}/{count}")]);
    command.spawn().context("unshare does not start: it is of the package util-linux")
}

const BOUND: &str = r#"mount --bind "$1" "$2" && shift 2 && exec "$@""#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_every_cell_once() {
        let cells: Vec<u32> = (0..11).collect();
        let mut all = Vec::new();
        for place in ["0/3", "1/3", "2/3"] {
            all.extend(place.parse::<Share>().unwrap().of(&cells));
        }
        all.sort_unstable();
        assert_eq!(all, cells);
        for wrong in ["", "1", "3/3", "0/0", "a/2", "-1/2"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
