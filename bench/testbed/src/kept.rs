//! Merging of a committed table with a new one that has fewer cells.
//!
//! An old line is kept if the new table has no line of its kind, or one with fewer seeds, and if
//! its [`EDITION`] is the current one. All others are removed, and the removal is reported.

use std::cmp::Reverse;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::edition::EDITION;
use crate::summary::{Line, VideoLine, WirelessLine, write};
use crate::transport::Transport;
use crate::video::Codec;

/// A line of a table.
pub(crate) trait Kept: Serialize + DeserializeOwned + Clone {
    /// The measured configuration without the length of its runs, in the order of the tables.
    type Kind: Ord;
    /// Returns the measured configuration.
    fn kind(&self) -> Self::Kind;
    /// Returns the testbed's edition, the duration of the runs in seconds, and the number of seeds.
    fn weight(&self) -> (u32, u32, usize);
}

/// Summary of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Lines measured now.
    pub(crate) new: usize,
    /// Old lines kept.
    pub(crate) kept: usize,
    /// Old lines replaced by a new one of their kind.
    pub(crate) replaced: usize,
    /// Old lines removed because another edition measured them.
    pub(crate) outdated: usize,
}

/// Writes a table: `new`, merged with the existing file if `keep`.
///
/// # Errors
/// If the existing file is not such a table, or cannot be written.
pub(crate) fn update<T: Kept>(new: &[T], file: &Path, keep: bool) -> Result<Told> {
    let before = if keep { read(file)? } else { Vec::new() };
    let (lines, told) = merged(new, &before);
    write(&lines, file)?;
    Ok(told)
}

/// Reads a table; a missing file is an empty table.
pub(crate) fn read<T: Kept>(file: &Path) -> Result<Vec<T>> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let lines = csv::Reader::from_path(file)?.into_deserialize().collect::<Result<_, csv::Error>>();
    lines.with_context(|| format!("{} is no table of this testbed", file.display()))
}

fn merged<T: Kept>(new: &[T], before: &[T]) -> (Vec<T>, Told) {
    let mut lines = new.to_vec();
    let mut told = Told::default();
    for old in before {
        let (edition, seconds, seeds) = old.weight();
        if edition != EDITION {
            told.outdated += 1;
            continue;
        }
        match lines.iter_mut().find(|line| line.kind() == old.kind()) {
            None => {
                lines.push(old.clone());
                told.kept += 1;
            }
            // The same duration with more seeds: the new line is a subset of the old one.
            Some(line) if (line.weight().1, line.weight().2) < (seconds, seeds) => {
                *line = old.clone();
                told.kept += 1;
            }
            Some(_) => told.replaced += 1,
        }
    }
    told.new = lines.len() - told.kept;
    lines.sort_by_key(Kept::kind);
    (lines, told)
}

impl Kept for Line {
    type Kind = (Transport, u32, u32, u32);

    fn kind(&self) -> Self::Kind {
        let Self { transport, rate_kbyte_per_s, loss_percent, rtt_ms, .. } = self;
        (*transport, *rtt_ms, permille(*loss_percent), *rate_kbyte_per_s)
    }

    fn weight(&self) -> (u32, u32, usize) {
        (self.edition, self.seconds, self.seeds)
    }
}

impl Kept for VideoLine {
    type Kind = (Transport, Option<Reverse<i32>>, u32, u32, Codec);

    fn kind(&self) -> Self::Kind {
        let Self { transport, codec, loss_percent, rtt_ms, power_dbm, .. } = self;
        (*transport, power_dbm.map(Reverse), *rtt_ms, permille(*loss_percent), *codec)
    }

    fn weight(&self) -> (u32, u32, usize) {
        (self.edition, self.seconds, self.seeds)
    }
}

impl Kept for WirelessLine {
    type Kind = (Transport, Reverse<i32>, bool, u32);

    fn kind(&self) -> Self::Kind {
        let Self { transport, rate_kbyte_per_s, power_dbm, disturbed, .. } = self;
        (*transport, Reverse(*power_dbm), *disturbed, *rate_kbyte_per_s)
    }

    fn weight(&self) -> (u32, u32, usize) {
        (self.edition, self.seconds, self.seeds)
    }
}

fn permille(percent: f64) -> u32 {
    (percent * 10.0).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a line with the given weight.
    fn line(rate_kbyte_per_s: u32, edition: u32, seconds: u32, seeds: usize) -> WirelessLine {
        let zero = "udp,0,-35,true,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";
        let head = "transport,rate_kbyte_per_s,power_dbm,disturbed,seeds,seconds,received_share,\
            throughput_kbyte_per_s,throughput_ci,jitter_ms,owd_p50_ms,owd_p99_ms,owd_p99_ci,\
            network_bytes_per_byte,dropped_queue_share,lost_share,damaged_share,damaged,damaged_came,\
            second_p10,second_p25,second_p50,second_p75,second_p90";
        let text = format!("{head}\n{zero}\n");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let line: WirelessLine = reader.deserialize().next().unwrap().unwrap();
        assert_eq!(line.edition, 1, "of a table of before there were editions");
        WirelessLine { rate_kbyte_per_s, edition, seconds, seeds, ..line }
    }

    #[test]
    fn a_line_goes_only_for_a_better_one_or_another_edition() {
        let new =
            [line(1000, EDITION, 20, 1), line(2000, EDITION, 20, 3), line(4000, EDITION, 20, 1)];
        let before = [
            line(500, EDITION, 5, 1),
            line(1000, EDITION, 20, 3),
            line(2000, EDITION, 20, 2),
            line(3000, EDITION + 1, 20, 5),
            line(4000, EDITION, 5, 5),
        ];
        let (lines, told) = merged(&new, &before);
        let seen = |line: &WirelessLine| (line.rate_kbyte_per_s, line.seconds, line.seeds);
        let seen: Vec<_> = lines.iter().map(seen).collect();
        assert_eq!(seen, [(500, 5, 1), (1000, 20, 3), (2000, 20, 3), (4000, 20, 1)]);
        assert_eq!(told, Told { new: 2, kept: 2, replaced: 2, outdated: 1 });
    }

    #[test]
    fn a_table_rewritten_without_cells_stays_byte_identical() {
        let folder = std::env::temp_dir().join(format!("testbed-kept-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("wireless.csv");
        let new = [line(1000, EDITION, 20, 1), line(2000, EDITION, 20, 3)];
        assert_eq!(update(&new, &file, true).unwrap().new, 2);
        let first = std::fs::read(&file).unwrap();
        assert_eq!(update::<WirelessLine>(&[], &file, true).unwrap().kept, 2);
        assert_eq!(std::fs::read(&file).unwrap(), first);
        assert_eq!(update(&new[..1], &file, false).unwrap(), Told { new: 1, ..Told::default() });
        assert_ne!(std::fs::read(&file).unwrap(), first);
        std::fs::write(&file, "no,table\n1,2\n").unwrap();
        let error = update(&new, &file, true).unwrap_err().to_string();
        assert!(error.contains("wireless.csv is no table"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
