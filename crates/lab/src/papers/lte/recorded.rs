//! Recorded links for streams of slices and packets, if they are stored next to the repository.

use std::path::Path;

use anyhow::Result;

use crate::experiment::Run;
use crate::sweeps::links::set::Set;

/// Recorded links, or a note for the reader why there are none.
#[derive(Debug)]
pub(super) struct Recorded {
    /// Sets of links that are used together; empty in a quick run, and if no recordings are stored.
    pub(super) sets: Vec<Set>,
    /// Reason why there are no recordings; `None` if there are.
    pub(super) none: Option<String>,
}

impl Recorded {
    /// Reads every recording as a separate link.
    ///
    /// # Errors
    /// For a file that is missing although others exist, or is not a recording.
    pub(super) fn singles(run: &Run<'_>) -> Result<Self> {
        Self::where_kept(run, Set::single_recordings)
    }

    /// Reads sets of one, two, three and four links; each adds one link to the previous set.
    ///
    /// # Errors
    /// As [`Self::singles`].
    pub(super) fn growing(run: &Run<'_>) -> Result<Self> {
        Self::where_kept(run, |folder| {
            let one = Set::single_recordings(folder)?.into_iter().take(1);
            let several = Set::recorded(folder)?.into_iter().take(LINKS_MOST - 1);
            Ok(one.chain(several).collect())
        })
    }

    /// Returns a note for the reader about these links.
    pub(super) fn note(&self) -> String {
        if let Some(none) = &self.none {
            return none.clone();
        }
        let largest = self.sets.iter().max_by_key(|set| set.len());
        let links: Vec<&str> = largest.into_iter().flat_map(Set::link_names).collect();
        format!(
            "Recorded links are unlike each other; several are the first of {}. Under the two-state control the \
             source sends what they carry. Not judged: the paper's modems were others.",
            links.join(", ")
        )
    }

    fn where_kept(run: &Run<'_>, read: impl Fn(&Path) -> Result<Vec<Set>>) -> Result<Self> {
        let folder = Path::new(RECORDINGS);
        if run.quick || !folder.exists() {
            let none =
                "Left out: recordings, in a quick run and where ../shared/data/links is not there.";
            return Ok(Self { sets: Vec::new(), none: Some(none.to_owned()) });
        }
        Ok(Self { sets: read(folder)?, none: None })
    }
}

/// Returns a set's name in rows: a single link by its name, several by their number.
pub(super) fn name_of(set: &Set) -> String {
    match set.len() {
        1 => format!("recorded, {}", set.name),
        count => format!("recorded, {count} links"),
    }
}

/// Measured duration of a recording, s.
pub(super) const SECONDS: u64 = 100;
/// Maximum number of links, as in the paper.
const LINKS_MOST: usize = 4;
/// Folder of the recordings: outside the repository, which contains no recordings of others.
const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/links");
