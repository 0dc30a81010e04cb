//! Runs the cells of a matrix, with one file each, and resumes an interrupted run.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::boot::{self, Host};
use crate::cell::{Cell, Load};
use crate::clock;
use crate::edition::EDITION;
use crate::measures::{Outcome, Shown};
use crate::schedule::Schedule;
use crate::video::{Codec, Video};

/// Videos of the cells, each prepared once.
#[derive(Debug, Default)]
pub(crate) struct Videos(BTreeMap<(Codec, u32), Video>);

/// Runs those of `cells` that have no file in `folder`, and returns all outcomes.
///
/// # Errors
/// If a cell failed, after all others have run; the next run repeats it.
pub(crate) fn run(cells: &[Cell], folder: &Path, host: &Host) -> Result<Vec<Outcome>> {
    fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
    let begin = clock::now();
    let mut videos = Videos::default();
    let (mut outcomes, mut failed, mut ran) = (Vec::new(), Vec::new(), 0_u64);
    for (done, cell) in cells.iter().enumerate() {
        let file = file(folder, cell);
        if let Some(outcome) = read(&file, cell)? {
            outcomes.push(outcome);
            continue;
        }
        match run_one(cell, host, &mut videos) {
            Ok(outcome) => {
                write(&file, &outcome)?;
                outcomes.push(outcome);
            }
            Err(error) => {
                println!("{}: {error:#}", cell.name());
                failed.push(cell.name());
            }
        }
        ran += 1;
        if ran.is_multiple_of(SAID_EVERY) {
            let seconds = (clock::now() - begin) as f64 / 1e9;
            let (done, all) = (done + 1, cells.len());
            println!("{done} of {all} cells, {:.1} s each", seconds / ran as f64);
        }
    }
    match failed.as_slice() {
        [] => Ok(outcomes),
        names => bail!("{} cells failed: {}", names.len(), names.join(", ")),
    }
}

/// Returns the outcomes of these cells that are in `folder`.
pub(crate) fn read_all(cells: &[Cell], folder: &Path) -> Result<Vec<Outcome>> {
    let outcomes = cells.iter().map(|cell| read(&file(folder, cell), cell));
    Ok(outcomes.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Runs one cell.
///
/// # Errors
/// If the guest failed, nothing arrived, or the kernel's counters contradict the result.
pub(crate) fn run_one(cell: &Cell, host: &Host, videos: &mut Videos) -> Result<Outcome> {
    let (video, schedule) = match cell.load {
        Load::Constant(rate) => (None, Schedule::constant(rate, cell.seconds)),
        Load::Video(codec) => {
            let video = videos.get(codec, cell.seconds)?;
            (Some(video), video.schedule().clone())
        }
    };
    let (told, log) = host.run(cell, &schedule)?;
    let mut outcome =
        Outcome::new(*cell, &schedule, &told, &log).context("not two packets came")?;
    outcome.shown = video.map(|video| Shown::of(video, &log)).transpose()?;
    match outcome.doubt() {
        None => Ok(outcome),
        Some(doubt) => bail!("{doubt}"),
    }
}

impl Videos {
    fn get(&mut self, codec: Codec, seconds: u32) -> Result<&Video> {
        Ok(match self.0.entry((codec, seconds)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Video::prepare(codec, seconds, &boot::video())?),
        })
    }
}

fn read(file: &Path, cell: &Cell) -> Result<Option<Outcome>> {
    let Ok(text) = fs::read_to_string(file) else { return Ok(None) };
    let outcome: Outcome = serde_json::from_str(&text)
        .with_context(|| format!("{} is no outcome: remove it", file.display()))?;
    Ok((outcome.cell == *cell && outcome.edition == EDITION).then_some(outcome))
}

/// Writes a temporary file first, so that an interrupted run leaves no partial file.
fn write(file: &Path, outcome: &Outcome) -> Result<()> {
    let half = file.with_extension("half");
    fs::write(&half, serde_json::to_string_pretty(outcome)? + "\n")?;
    fs::rename(&half, file).with_context(|| format!("cannot write {}", file.display()))
}

fn file(folder: &Path, cell: &Cell) -> PathBuf {
    folder.join(format!("{}.json", cell.name()))
}

const SAID_EVERY: u64 = 20;
