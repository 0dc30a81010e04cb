//! `tautline blackbox`: the contents of a black box.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tautline_blackbox::drives::{self, Drive};
use tautline_blackbox::folder::{Folder, Place as At};
use tautline_blackbox::recording::{End, Format, Verdict};
use tautline_blackbox::{Note, Recording, Topic, replay, utc};
use tautline_transport::crypto::PublicKey;

/// Read a black box: its drives, the guard's decisions, and whether it is unchanged
#[derive(Debug, Args)]
pub(crate) struct Blackbox {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the drives
    List(Place),
    /// Show every transition of the guard, with its cause and numbers
    Show(Place),
    /// Show the other facts of each drive: vehicle, person, network, machine, system
    Facts(Place),
    /// Verify that nothing was changed, removed or moved, and who signed it
    Verify {
        #[command(flatten)]
        place: Place,
        /// Public key of the machine, as `tautline keys show` prints it [default: any]
        #[arg(long, value_name = "KEY")]
        key: Option<PublicKey>,
    },
    /// Run the guard on the recorded input, and compare its decisions
    Replay(Place),
}

#[derive(Debug, Args)]
struct Place {
    /// Folder of a black box, or of one of its drives
    folder: PathBuf,
    /// Print one line of JSON per row
    #[arg(long)]
    json: bool,
}

impl Blackbox {
    /// Prints the requested part; fails if a verification or replay finds a difference.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.action {
            Action::List(place) => list(&place),
            Action::Show(place) => show(&place),
            Action::Facts(place) => facts(&place),
            Action::Verify { place, key } => verify(&place, key),
            Action::Replay(place) => replay_all(&place),
        }
    }
}

impl Place {
    /// Prints `head` and calls `each` with every file, the oldest first. `head` is left out if it
    /// is empty, or if rows are printed as JSON.
    fn each(
        &self,
        head: &str,
        mut each: impl FnMut(&Drive, &Path, &Recording),
    ) -> anyhow::Result<()> {
        let drives = self.drives()?;
        if !head.is_empty() {
            self.print_head(head);
        }
        for drive in drives {
            for file in &drive.files {
                each(&drive, file, &Recording::read(file)?);
            }
        }
        Ok(())
    }

    fn drives(&self) -> anyhow::Result<Vec<Drive>> {
        let drives = match drives::one(&self.folder)? {
            Some(drive) => vec![drive],
            None => drives::list(&self.folder)?,
        };
        ensure!(!drives.is_empty(), "{} holds no drive", self.folder.display());
        Ok(drives)
    }

    /// Prints a row as a line of JSON if that was requested, otherwise in the form of `text`.
    fn print(&self, row: &Value, text: impl FnOnce(&Value) -> String) {
        let line = if self.json { row.to_string() } else { text(row) };
        answer!("{line}");
    }

    fn print_head(&self, head: &str) {
        if !self.json {
            self.print(&Value::Null, |_| head.to_owned());
        }
    }
}

fn list(place: &Place) -> anyhow::Result<()> {
    let head =
        "drive  part  from                      to                        stops       bytes  end";
    let (mut total, mut rate) = (0, None);
    place.each(head, |drive, file, recording| {
        let records = recording.records();
        let bytes = std::fs::metadata(file).map_or(0, |about| about.len());
        total += bytes;
        rate = bytes_per_hour(recording, bytes).or(rate);
        let when = |record: Option<&_>| {
            record.map(|record: &tautline_blackbox::recording::Record| utc(record.unix_nanos))
        };
        let stops = transitions(recording).filter(|body| is_stop(&body["transition"])).count();
        let row = json!({
            "drive": drive.number,
            "file": file,
            "from": when(records.first()),
            "to": when(records.last()),
            "stops": stops,
            "bytes": bytes,
            "bytes_per_hour": bytes_per_hour(recording, bytes),
            "end": end_of(recording.verdict()),
        });
        place.print(&row, |row| {
            format!(
                "{:>5}  {:<4}  {:<24}  {:<24}  {:>5}  {:>10}  {}",
                drive.number,
                part_of(file),
                text(&row["from"]),
                text(&row["to"]),
                stops,
                row["bytes"],
                text(&row["end"])
            )
        });
    })?;
    let note = Note::read(&place.folder).ok().flatten();
    place.print_head(&usage(total, rate, note.as_ref()));
    Ok(())
}

/// Returns a sentence about the space that a black box uses: of its quota, if there is one, and how
/// long the quota lasts at the newest file's `rate` in bytes per hour, if known.
fn usage(total: u64, rate: Option<f64>, note: Option<&Note>) -> String {
    let mut said = format!("{:.1} MiB", total as f64 / MIB);
    let quota = note.map(|note| note.keep_mib).filter(|mib| *mib > 0);
    if let Some(mib) = quota {
        said.push_str(&format!(" of {mib} MiB (keep_mib), then the oldest drives are deleted"));
    }
    if let Some(days) = note.map(|note| note.keep_days).filter(|days| *days > 0) {
        said.push_str(&format!("; each after {days} days (keep_days)"));
    }
    if let Some(rate) = rate {
        said.push_str(&format!("; the newest wrote {:.1} MB an hour", rate / 1e6));
        if let Some(mib) = quota {
            let hours = mib as f64 * MIB / rate;
            said.push_str(&format!(", of which the quota holds {hours:.0} hours"));
        }
    }
    said
}

/// Returns the rate at which a file was written, in bytes per hour; `None` if it covers one second
/// or less.
fn bytes_per_hour(recording: &Recording, bytes: u64) -> Option<f64> {
    let (first, last) = (recording.records().first()?, recording.records().last()?);
    let seconds = last.unix_nanos.saturating_sub(first.unix_nanos) as f64 / 1e9;
    (seconds > 1.0).then(|| bytes as f64 * 3_600.0 / seconds)
}

fn show(place: &Place) -> anyhow::Result<()> {
    let head = "drive  time (UTC)                from       to         cause                      value      limit   m/s  loop ms  stop";
    place.each(head, |drive, _, recording| {
        for record in recording.records() {
            if record.topic != Topic::Transition {
                continue;
            }
            let body = recording.body(record);
            let what = &body["transition"];
            let row = json!({
                "drive": drive.number,
                "utc": utc(record.unix_nanos),
                "tick": body["tick"],
                "from": what["from"],
                "to": what["to"],
                "cause": what["cause"],
                "value": what["value"],
                "limit": what["limit"],
                "stop": what["stop"],
                "speed": body["speed"],
                "loop_age_ms": body["loop_age_ms"],
                "command_age_ms": body["command_age_ms"],
                "speed_bound": body["speed_bound"],
                "place": body["machine"]["place"],
                "position": body["machine"]["position"],
                "demand": body["demand"],
                "applied": body["applied"],
            });
            place.print(&row, |row| {
                format!(
                    "{:>5}  {}  {:<9}  {:<9}  {:<20}  {:>10}  {:>9}  {:>4}  {:>7}  {}",
                    drive.number,
                    text(&row["utc"]),
                    text(&row["from"]),
                    text(&row["to"]),
                    text(&row["cause"]),
                    amount(&row["value"]),
                    amount(&row["limit"]),
                    number(&row["speed"], 1),
                    number(&row["loop_age_ms"], 0),
                    row["stop"]
                )
            });
        }
    })
}

fn facts(place: &Place) -> anyhow::Result<()> {
    place.each("drive  time (UTC)                about     fact", |drive, _, recording| {
        for record in recording.records() {
            let Topic::Fact(about) = record.topic else { continue };
            let row = json!({
                "drive": drive.number,
                "utc": utc(record.unix_nanos),
                "about": format!("{about:?}").to_lowercase(),
                "fact": recording.body(record)["fact"],
            });
            place.print(&row, |row| {
                let (at, about) = (text(&row["utc"]), text(&row["about"]));
                format!("{:>5}  {at}  {about:<8}  {}", drive.number, row["fact"])
            });
        }
    })
}

fn verify(place: &Place, key: Option<PublicKey>) -> anyhow::Result<()> {
    let (mut broken, mut folder) = (0, Folder::default());
    let one = drives::one(&place.folder)?.map(|drive| drive.number);
    place.drives()?.iter().for_each(|drive| folder.take_drive(drive.number));
    place.each("", |drive, file, recording| {
        let verdict = recording.verdict();
        let foreign = match (&key, &verdict.key) {
            (Some(key), Some(known)) => key.to_string() != *known,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let at = At { drive: drive.number, part: drives::part_of(file).unwrap_or_default() };
        let misplaced = folder.take(at, recording);
        broken += u32::from(!recording.is_right() || foreign || misplaced.is_some());
        let row = json!({
            "drive": drive.number,
            "file": file,
            "records": verdict.records,
            "sealed": verdict.sealed,
            "key": verdict.key,
            "is_other_key": foreign,
            "unsigned": verdict.unsigned,
            "misplaced": misplaced.as_ref().map(ToString::to_string),
            "end": end_of(verdict),
        });
        place.print(&row, |_| {
            let mut said = format!(
                "drive {}, {}: {} records, {} signed by {}; {}",
                drive.number,
                part_of(file),
                verdict.records,
                verdict.sealed,
                verdict.key.as_deref().unwrap_or("nobody"),
                end_of(verdict)
            );
            if foreign {
                said.push_str("; NOT signed by the key that was given");
            }
            if let Some(misplaced) = &misplaced {
                said.push_str(&format!("; WRONG: {misplaced}"));
            }
            if verdict.unsigned > 0 {
                let unsigned = verdict.unsigned;
                said.push_str(&format!("; {unsigned} records behind these are signed by nobody"));
            }
            if verdict.format == Format::First {
                said.push_str("; first format: its header, schemas and channels are not signed");
            }
            said
        });
    })?;
    let faults = match one {
        Some(number) => folder.faults_within(number),
        None => folder.faults(&Note::read(&place.folder)),
    };
    for fault in &faults {
        let row = json!({ "fault": fault.to_string() });
        place.print(&row, |_| format!("WRONG: {fault}"));
    }
    if key.is_none() {
        place.print_head("compare the key with what `tautline keys show` prints of the machine's");
    }
    if broken > 0 || !faults.is_empty() {
        let faults = faults.len();
        bail!(
            "{broken} of the files are not as they were written; {faults} faults of all together"
        );
    }
    Ok(())
}

fn replay_all(place: &Place) -> anyhow::Result<()> {
    let mut first = None;
    place.each("", |drive, file, recording| {
        let end = &recording.verdict().end;
        let replayed = replay(recording);
        let row = json!({
            "drive": drive.number,
            "file": file,
            "steps": replayed.same,
            "gaps": replayed.gaps,
            "difference": replayed.difference.as_ref().map(ToString::to_string),
            "end": end_of(recording.verdict()),
        });
        place.print(&row, |_| {
            let mut said = format!(
                "drive {}, {}: {} steps decided the same, {} times after a gap",
                drive.number,
                part_of(file),
                replayed.same,
                replayed.gaps
            );
            if let Some(difference) = &replayed.difference {
                said.push_str(&format!("; then {difference}"));
            }
            if let End::Broken(fault) = end {
                said.push_str(&format!("; up to {fault}"));
            }
            said
        });
        if first.is_none() {
            first = replayed.difference;
        }
    })?;
    match first {
        Some(difference) => Err(anyhow::anyhow!("{difference}")).context("not the same decisions"),
        None => Ok(()),
    }
}

fn transitions(recording: &Recording) -> impl Iterator<Item = Value> {
    let of = recording.records().iter().filter(|record| record.topic == Topic::Transition);
    of.map(|record| recording.body(record))
}

fn is_stop(transition: &Value) -> bool {
    transition["to"] == "Manoeuvre" && transition["from"] != "Manoeuvre"
}

fn end_of(verdict: &Verdict) -> String {
    match &verdict.end {
        End::Closed => "closed".to_owned(),
        End::Open => {
            "not closed: power was cut, it is still written, or its end is missing".to_owned()
        }
        End::Broken(fault) => format!("BROKEN at {fault}"),
    }
}

fn part_of(file: &Path) -> String {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    name.trim_start_matches("part-").to_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn number(value: &Value, digits: usize) -> String {
    value.as_f64().map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Returns a number as text: without decimals if it is an integer, else with two; `-` if there is
/// none.
fn amount(value: &Value) -> String {
    let is_whole = value.as_f64().is_some_and(|value| value.fract() == 0.0);
    number(value, if is_whole { 0 } else { 2 })
}

const MIB: f64 = 1_048_576.0;
