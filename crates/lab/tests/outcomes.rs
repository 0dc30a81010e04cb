//! Results that a run did not measure are marked in its record, its list and the report, and are
//! never judged.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::time::Duration;

use tautline_lab::experiment::{
    Experiment, Findings, Isolation, Measurement, Mutation, Outcome, Row, Run, Skipped, Table,
    Verdict,
};
use tautline_lab::machine::Machine;
use tautline_lab::plot::{Axis, Plot, Series};
use tautline_lab::record::{Origin, Record};
use tautline_lab::report;

const MEASURED: Experiment = Experiment {
    key: "measured",
    title: "Twice what was published",
    source: "[LTE] I",
    isolation: Isolation::Shared,
    mutation: Mutation::Spared("not in the registry"),
    run: |_| Ok(Outcome::Measured(findings())),
};

const COMMITTED: Experiment = Experiment {
    key: "committed",
    title: "The same, of another day",
    source: "[LTE] II",
    isolation: Isolation::Shared,
    mutation: Mutation::Spared("not in the registry"),
    run: |_| Ok(Outcome::committed(measurement(), findings())),
};

const REPEATED: Experiment = Experiment {
    key: "repeated",
    title: "The same, where any machine measures the same",
    source: "[LTE] II",
    isolation: Isolation::Shared,
    mutation: Mutation::Spared("not in the registry"),
    run: |_| {
        let measurement = Measurement { is_reproducible: true, ..measurement() };
        Ok(Outcome::committed(measurement, findings()))
    },
};

const SKIPPED: Experiment = Experiment {
    key: "skipped",
    title: "A quantity that nobody could measure",
    source: "[LTE] III",
    isolation: Isolation::Shared,
    mutation: Mutation::Spared("not in the registry"),
    run: |_| Ok(Outcome::skipped("no <modem> is here", "Buy one.")),
};

/// Returns findings with a row out of its tolerance.
fn findings() -> Findings {
    let mut table = Table::new("delay", ["case", "delay_ms"]);
    table.push(["only".into(), 20.0.into()]);
    let plot = Plot::new("delay", "Delay", Axis::linear("case"), Axis::linear("ms"))
        .with(Series::marked("here", vec![(1.0, 20.0), (2.0, 21.0)]));
    let rows = vec![Row::new("delay", "ms", 20.0).published(10.0).within(0.1)];
    Findings { tables: vec![table], plots: vec![plot], rows, notes: vec!["A note.".to_owned()] }
}

fn measurement() -> Measurement {
    Measurement {
        file: "figures/delay.csv".to_owned(),
        command: "make delay".to_owned(),
        machine: Machine { processor: "Abacus 9".to_owned(), kernel: None },
        date: "2026-02-03".to_owned(),
        is_reproducible: false,
    }
}

fn run(experiment: &Experiment, out: &std::path::Path) -> Record {
    let run = Run::silent(true, 1);
    let record =
        Record::write(out, experiment, &run, (experiment.run)(&run).unwrap(), TOOK).unwrap();
    assert_eq!(Record::read(out, experiment.key).unwrap().unwrap(), record);
    record
}

const TOOK: Duration = Duration::from_millis(1_500);

#[test]
fn a_record_names_the_machine_that_measured() {
    let out = tempfile::tempdir().unwrap();
    let measured = run(&MEASURED, out.path());
    assert_eq!(measured.origin, Origin::Measured { machine: Machine::here() });
    assert_eq!((measured.judged().count(), measured.out_of_tolerance().count()), (1, 1));
    assert_eq!((measured.summary().as_str(), measured.seconds), ("0 of 1 within", 1.5));

    let committed = run(&COMMITTED, out.path());
    assert_eq!(committed.origin, Origin::Committed(measurement()));
    let json = fs::read_to_string(out.path().join("committed/result.json")).unwrap();
    assert!(json.contains("\"processor\": \"Abacus 9\""), "{json}");
    assert!(!json.contains(&Machine::here().processor), "of another machine: {json}");
}

#[test]
fn committed_rows_are_shown_and_never_judged() {
    let out = tempfile::tempdir().unwrap();
    let record = run(&COMMITTED, out.path());
    assert_eq!(record.rows[0].verdict(), Verdict::Shown);
    assert_eq!((record.judged().count(), record.out_of_tolerance().count()), (0, 0));
    assert_eq!(record.summary(), "read, of 2026-02-03");
    assert_eq!(record.command(), "make delay");
    let csv = fs::read_to_string(out.path().join("committed/rows.csv")).unwrap();
    assert!(csv.contains("delay,ms,10,,,20,,,-,"), "{csv}");
}

#[test]
fn a_reproducible_measurement_is_read_and_judged() {
    let out = tempfile::tempdir().unwrap();
    let record = run(&REPEATED, out.path());
    assert_eq!(record.summary(), "0 of 1 within, read, of 2026-02-03");
    report::write(out.path(), [REPEATED].iter()).unwrap();
    let page = fs::read_to_string(out.path().join(report::FILE)).unwrap();
    assert!(page.contains("1 of 1 judged rows are out of tolerance."), "{page}");
    assert!(
        page.contains("1 read from committed measurements that any machine repeats."),
        "{page}"
    );
    assert!(page.contains("Any machine measures the same.</p>"), "{page}");
    assert!(page.contains("✗ out") && !page.contains("Not judged."), "{page}");
}

#[test]
fn a_skipped_experiment_records_its_remedy() {
    let out = tempfile::tempdir().unwrap();
    let record = run(&SKIPPED, out.path());
    let skipped =
        Skipped { missing: "no <modem> is here".to_owned(), remedy: "Buy one.".to_owned() };
    assert_eq!(record.origin, Origin::Skipped(skipped));
    assert_eq!(record.summary(), "skipped");
    assert!(record.rows.is_empty() && record.tables.is_empty() && record.plots.is_empty());
}

#[test]
fn the_report_gives_each_outcome_its_own_look() {
    let out = tempfile::tempdir().unwrap();
    let all = [MEASURED, COMMITTED, SKIPPED];
    all.iter().for_each(|experiment| drop(run(experiment, out.path())));
    report::write(out.path(), all.iter()).unwrap();
    let page = fs::read_to_string(out.path().join(report::FILE)).unwrap();
    assert!(page.contains("1 of 1 judged rows are out of tolerance."), "{page}");
    assert!(page.contains("1 read from committed measurements, not judged."), "{page}");
    assert!(page.contains("1 skipped, because something is missing."), "{page}");
    for (key, look, words) in [
        (
            "committed",
            "banner read",
            "Read from figures/delay.csv, which `make delay` measured on \
          2026-02-03: Abacus 9, kernel not recorded. Not judged.",
        ),
        ("skipped", "banner skipped", "Skipped: no &lt;modem&gt; is here. Buy one."),
    ] {
        let section = page.split("<section id=\"").find(|part| part.starts_with(key)).unwrap();
        assert!(section.contains(&format!("<p class=\"{look}\">{words}</p>")), "{section}");
        assert!(!section.contains("within") && !section.contains("✗ out"), "{section}");
    }
}
