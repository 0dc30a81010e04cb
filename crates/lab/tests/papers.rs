//! Quick runs of every experiment in the registry: rows are within tolerance, and files are
//! readable.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::Path;

use tautline_lab::experiment::{Experiment, Isolation, Row, Run, Tolerance};
use tautline_lab::record::{Origin, Record};
use tautline_lab::{papers, report};
use tautline_net::clock::Clock;
use tautline_units::Instant;

#[test]
fn every_experiment_holds_and_leaves_files_that_can_be_read() {
    let out = tempfile::tempdir().unwrap();
    let mut faults = Vec::new();
    for experiment in papers::all() {
        let record = run(experiment, out.path());
        let read = Record::read(out.path(), experiment.key).unwrap().unwrap();
        assert_eq!(format!("{read:?}"), format!("{record:?}"), "read as it was written");
        let (key, judged) = (experiment.key, record.judged().count());
        let is_timed = record.rows.iter().any(|row| row.is_clocked);
        assert!(
            experiment.is_timed() || !is_timed,
            "{key} measures time, and its isolation denies it"
        );
        let needs_processes = experiment.isolation == Isolation::Processes;
        match &record.origin {
            // Rows that depend only on the processor are judged on processors of known speed.
            Origin::Measured { .. } => assert!(
                judged > 0 || record.rows.iter().all(|row| row.is_clocked),
                "{key} judges nothing"
            ),
            Origin::Committed(measurement) => assert!(
                judged == 0 || measurement.is_reproducible,
                "{key} judges what another machine measured"
            ),
            Origin::Skipped(_) => {
                assert!(needs_processes, "{key}: {}", record.origin);
                continue;
            }
        }
        assert!(!needs_processes, "{key} needs no processes any more");
        check_files(&out.path().join(key), &record);
        check_tolerances(&record);
        // A committed row out of tolerance is shown in its record and in the report; this run did
        // not measure it.
        if matches!(record.origin, Origin::Measured { .. }) {
            faults.extend(record.out_of_tolerance().cloned());
        }
    }
    assert!(faults.is_empty(), "out of tolerance: {faults:#?}");

    report::write(out.path(), papers::all()).unwrap();
    let page = fs::read_to_string(out.path().join(report::FILE)).unwrap();
    for Experiment { key, .. } in papers::all() {
        let command = Record::read(out.path(), key).unwrap().unwrap().command();
        assert!(page.contains(&format!("id=\"{key}\"")) && page.contains(&command), "{key}");
    }
    for beyond in ["src=\"http", "href=\"http", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(beyond), "the page needs more than itself: {beyond}");
    }
}

fn run(experiment: &Experiment, out: &Path) -> Record {
    let (run, clock) = (Run::silent(true, 1), Clock::start());
    let outcome = (experiment.run)(&run).unwrap_or_else(|e| panic!("{}: {e:#}", experiment.key));
    let took = clock.now().since(Instant::ZERO);
    Record::write(out, experiment, &run, outcome, took).unwrap()
}

fn check_files(folder: &Path, record: &Record) {
    for table in record.tables.iter().map(String::as_str).chain(["rows"]) {
        let mut reader = csv::Reader::from_path(folder.join(format!("{table}.csv"))).unwrap();
        let columns = reader.headers().unwrap().len();
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert!(columns > 1 && !lines.is_empty(), "{}: {table} is empty", record.key);
    }
    for plot in &record.plots {
        let svg = fs::read_to_string(folder.join(format!("{}.svg", plot.name))).unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        assert_eq!(document.root_element().tag_name().name(), "svg");
    }
}

/// Checks that every tolerance has a reason, and a factor of at most two unless the machine's clock
/// measured the row.
///
/// The factor limits the deviation from a true value. It does not apply to a requirement, whose
/// author chooses the limit: such a row must use `asked`, without a further tolerance.
fn check_tolerances(record: &Record) {
    for row in &record.rows {
        let Row { tolerance, reason, .. } = row;
        assert_eq!(*tolerance == Tolerance::None, reason.is_empty(), "{}: {row:?}", record.key);
        let has_width = matches!(*tolerance, Tolerance::Relative(_) | Tolerance::Absolute(_));
        assert!(row.asked.is_none() || !has_width, "{}: a bar has one side: {row:?}", record.key);
        let is_tight = row.looseness().is_none_or(|factor| factor <= LOOSEST);
        assert!(is_tight || row.is_clocked, "{}: too loose: {row:?}", record.key);
    }
}

/// Maximum factor in a quick run for a row that does not measure time.
const LOOSEST: f64 = 2.0 + 1e-9;
