//! `tautline lab`: command lines and their results.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::process::{Command, Output};

fn lab(arguments: &[&str]) -> Output {
    let mut tautline = Command::new(env!("CARGO_BIN_EXE_tautline"));
    tautline.arg("lab").args(arguments).env_remove("TAUTLINE_CONFIG").output().unwrap()
}

/// Runs a command that must fail, and returns its single line of output.
fn complaint(arguments: &[&str]) -> String {
    let output = lab(arguments);
    assert!(!output.status.success(), "{arguments:?} was accepted");
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(words.lines().count(), 1, "not one line: {words}");
    words
}

#[test]
fn the_list_names_every_experiment_and_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let output = lab(&["list", "--out", folder.path().to_str().unwrap()]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("key "), "{text}");
    for experiment in tautline_lab::papers::all() {
        let line = text.lines().find(|line| line.starts_with(&format!("{} ", experiment.key)));
        let line = line.unwrap_or_else(|| panic!("{} is not listed", experiment.key));
        assert!(line.contains(experiment.source) && line.ends_with(experiment.title), "{line}");
    }
}

#[test]
fn a_run_leaves_numbers_plots_and_rows_and_a_page_shows_them() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let out_text = out.to_str().unwrap();
    let output = lab(&["run", "lte-fig-2", "--quick", "--out", out_text]);
    let rows = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(rows.contains("gain at 0.95, simulated") && rows.contains("within"), "{rows}");
    for file in ["rows.csv", "latency.csv", "fig-2.svg"] {
        assert!(out.join("lte-fig-2").join(file).is_file(), "{file}");
    }

    // An interrupted run continues: its results are reused, those of another kind are not.
    let again = |seed| {
        let run = ["run", "lte-fig-2", "timing-reaction", "--quick", "--resume"];
        let output = lab(&[&run[..], &["--seed", seed, "--out", out_text]].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let other = again("2");
    assert!(other.contains(" of 2, lte-fig-2: ") && !other.contains("taken over"), "{other}");
    let same = again("2");
    assert_eq!(same.matches("taken over").count(), 2, "{same}");

    let output = lab(&["report", "--out", out_text]);
    assert!(output.status.success());
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("[LTE] Fig. 2") && page.contains("src=\"data:image/svg+xml,"));
}

#[test]
fn a_committed_measurement_is_labelled_and_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = lab(&["run", "timing-reaction", "lte-fig-2", "--quick", "--out", out]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let words = String::from_utf8(output.stdout).unwrap();
    let of =
        |key: &str| words.split("\n\n").find(|part| part.contains(&format!(", {key}: "))).unwrap();
    let (measured, read) = (of("lte-fig-2"), of("timing-reaction"));
    assert!(!measured.contains("Not judged.") && measured.contains("within"), "{measured}");
    assert!(read.contains("`make bench-messages` measured on 20"), "{read}");
    assert!(read.contains("Not judged.") && !read.contains("within"), "{read}");

    let list = String::from_utf8(lab(&["list", "--out", out]).stdout).unwrap();
    let line = |key: &str| list.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("timing-reaction").contains(" read, of 20"), "{list}");
    assert!(line("lte-fig-2 ").contains(" within "), "{list}");
    assert!(line("lte-fig-3 ").contains(" -  "), "{list}");
}

#[test]
fn reference_values_of_the_streaming_code_can_be_asked_for() {
    let output = lab(&["theory", "--l", "4", "--loss", ".15"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let words = String::from_utf8(output.stdout).unwrap();
    let line = |name: &str| words.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("load, l e").contains(" 0.6 "), "{words}");
    assert!(line("busy time, E[S]").contains(" intervals "), "{words}");
    assert!(line("in-order delay, 95 %").contains(" slots "), "{words}");

    let output = lab(&["theory", "--l", "4", "--loss", ".1", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mean = json["delay_mean_slots"].as_f64().unwrap();
    assert!((mean - 1.05807042).abs() < 1e-7, "{json}");

    let words = complaint(&["theory", "--l", "4", "--loss", ".25"]);
    assert!(words.contains("their product must be below 1"), "{words}");
    let words = complaint(&["theory", "--l", "4", "--loss", "-1"]);
    assert!(words.contains("an erasure rate of -1 is not in 0 <= rate < 1"), "{words}");
    let words = complaint(&["theory", "--l", "4", "--loss", "0.1", "--share", "1"]);
    assert!(words.contains("cannot be had from a code rate of 0.75"), "{words}");
}

#[test]
fn a_sweep_of_packet_sizes_leaves_its_bins_and_recommends() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("mtu");
    let few = ["--sizes", "150,1200", "--rounds", "1", "--seconds", "6", "--units", "60"];
    let arguments = [&["mtu", "--preset", "lte"], &few[..], &["--out", out.to_str().unwrap()]];
    let output = lab(&arguments.concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let words = String::from_utf8(output.stdout).unwrap();
    assert!(words.contains("below 250 ms") && words.contains("\nuse "), "{words}");
    for file in ["bins-up.csv", "bins-up.svg", "bins-down.csv", "bins-down.svg"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    assert!(complaint(&["mtu", "--link", "no/such.toml"]).contains("no/such.toml"));
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, seed: &str| {
        let out = folder.path().join(name);
        let arguments = ["run", "lte-fig-2", "--quick", "--seed", seed, "--out"];
        assert!(lab(&[&arguments[..], &[out.to_str().unwrap()]].concat()).status.success());
        fs::read(out.join("lte-fig-2/latency.csv")).unwrap()
    };
    assert_eq!(read("first", "7"), read("second", "7"));
    assert_ne!(read("first", "7"), read("third", "8"));
}

#[test]
fn a_mistyped_key_is_answered_with_similar_ones() {
    let words = complaint(&["run", "lte-table2"]);
    assert!(
        words.contains("there is no experiment lte-table2; near it are lte-table-2"),
        "{words}"
    );
    let words = complaint(&["run", "nothing-like-it"]);
    assert!(words.contains("`tautline lab list` lists them"), "{words}");
}

#[test]
fn an_unwritable_folder_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("occupied");
    fs::write(&file, "a file").unwrap();
    let words = complaint(&["run", "lte-fig-2", "--quick", "--out", file.to_str().unwrap()]);
    assert!(words.contains("occupied"), "{words}");
}

#[test]
fn a_report_of_nothing_says_how_to_get_something() {
    let folder = tempfile::tempdir().unwrap();
    let words = complaint(&["report", "--out", folder.path().to_str().unwrap()]);
    assert!(words.contains("tautline lab run"), "{words}");
}
