//! docs/settings.md: a table of the settings of each command, which the code fills in.
//!
//! serde gives the names of a file's settings and their choices, clap the flags, the types the
//! defaults. The error for a value out of bounds gives bounds and unit. The docs of a field or a
//! flag say what it is for. `make settings` writes the page; without it, it is compared.

mod file;
mod flags;
mod rows;

use std::fmt::Write;
use std::path::Path;

use toml::Table;

use file::FILES;
use flags::{clap_command, commands, flags_of, help, is_flag_of, parse_flag};
use rows::{Bounds, Row, has, is_number, is_real, leaf, put, rows, value};

#[test]
fn the_page_of_settings_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (_, after) = page.split_once(END).expect("the page has the mark of the tables' end");
    let right = format!("{HEAD}{}{END}{after}", tables());
    if std::env::var_os("TAUTLINE_GENERATE").is_some() {
        std::fs::write(&path, right).unwrap();
        return;
    }
    let differs = page.lines().zip(right.lines()).find(|(page, right)| page != right);
    let is_same = page == right;
    assert!(is_same, "docs/settings.md is not what the code says: make settings; {differs:?}");
}

#[test]
fn every_number_has_bounds() {
    let commands = commands();
    let flags = commands.iter().flat_map(|command| flags_without_settings(command));
    let unbounded = FILES.iter().flat_map(rows).chain(flags);
    let unbounded = unbounded.filter(|row| row.values == NUMBER && !row.name.ends_with("seed"));
    let names: Vec<String> = unbounded.map(|row| row.name).collect();
    assert_eq!(names, [""; 0]);
}

#[test]
fn bounds_are_kept_and_what_is_beyond_is_refused() {
    let mut tried_count = 0;
    for file in FILES {
        let rows = rows(file);
        for row in &rows {
            let Some(bounds) = &row.bounds else { continue };
            let set = |text: &str, number: f64| {
                let mut table: Table = text.parse().unwrap();
                put(&mut table, &row.name, value(row, number));
                (file.check)(&table.to_string()).map_err(|error| format!("{error:#}"))
            };
            let step = if is_real(&row.rust) { bounds.max.abs() * 1e-3 + 1e-6 } else { 1.0 };
            let has_below = is_number(&row.rust) || bounds.min > 0.0;
            for beyond in [has_below.then_some(bounds.min - step), Some(bounds.max + step)] {
                let Some(beyond) = beyond else { continue };
                let error = set(&row.file, beyond).expect_err(&row.name);
                assert!(error.contains(leaf(&row.name)), "{} = {beyond}: {error}", row.name);
            }
            for end in [bounds.min, bounds.max] {
                // Some settings must not exceed others: all are at their ends then.
                let all_at = |pick: fn(&Bounds) -> f64| {
                    let mut table: Table = row.file.parse().unwrap();
                    for other in &rows {
                        let Some(bounds) = &other.bounds else { continue };
                        let is_here = other.file == row.file || has(&table, &other.name);
                        if is_here && is_number(&other.rust) {
                            put(&mut table, &other.name, value(other, pick(bounds)));
                        }
                    }
                    table.to_string()
                };
                let texts = [row.file.clone(), all_at(|it| it.min), all_at(|it| it.max)];
                let faults: Vec<_> = texts.iter().filter_map(|text| set(text, end).err()).collect();
                // Products of a turning machine's settings are limited: a pair is named then.
                let is_limited = |fault: &String| {
                    let mut lines = fault.lines().filter(|line| line.contains(": "));
                    lines.all(|line| line.contains(" must be at most guard."))
                };
                let is_taken = faults.len() < texts.len() || faults.iter().any(is_limited);
                assert!(is_taken, "{} = {end}: {faults:?}", row.name);
            }
            tried_count += 1;
        }
    }
    assert!(tried_count > 100, "{tried_count}");
}

#[test]
fn bounds_of_flags_are_kept_and_what_is_beyond_is_refused() {
    let mut tried_count = 0;
    for command in commands() {
        for row in flags_without_settings(&command) {
            // A flag of another command's setting has that one's type, and is checked with it.
            let (Some(bounds), true) = (&row.bounds, row.rust.is_empty()) else { continue };
            let parsed = |number: f64| parse_flag(&command, &row.name, &number.to_string());
            for beyond in [bounds.min - 1.0, bounds.max + 1.0] {
                let error = parsed(beyond).expect_err(&row.name);
                assert!(error.contains(&row.name), "{error}");
            }
            for end in [bounds.min, bounds.max] {
                let refused = parsed(end).err().filter(|error| error.contains("invalid value"));
                assert_eq!(refused, None, "{} = {end}", row.name);
            }
            tried_count += 1;
        }
    }
    assert!(tried_count > 3, "{tried_count}");
}

#[test]
fn help_of_a_flag_says_default_and_bounds_of_its_setting() {
    let mut faults = Vec::new();
    for file in FILES {
        for row in rows(file) {
            let command = clap_command(&[file.command]);
            let flag = command.get_arguments().find(|flag| is_flag_of(flag, &row.name));
            let Some(flag) = flag else { continue };
            let (at, help) = (format!("{} {}", file.command, row.name), help(flag));
            let told = help.split_once("[default: ").map(|(_, told)| told.trim_end_matches(']'));
            let is_plain = !["none", "required", "false"].contains(&row.default.as_str());
            if is_plain && !row.rust.starts_with("Vec<") {
                let default = row.default.trim_matches('`');
                faults.extend((told != Some(default)).then(|| format!("{at}: {default}: {help}")));
            }
            if let (Some(Bounds { min, max, .. }), true) = (&row.bounds, is_number(&row.rust)) {
                let bounds = format!("{min} to {max}");
                faults.extend((!help.contains(&bounds)).then(|| format!("{at}: {bounds}: {help}")));
            }
        }
    }
    assert_eq!(faults, [""; 0]);
}

/// Returns the tables of all commands.
fn tables() -> String {
    let mut text = String::new();
    for command in commands() {
        let file = FILES.iter().find(|file| file.command == command.join(" "));
        let (settings, flags) =
            (file.map(rows).unwrap_or_default(), flags_without_settings(&command));
        if settings.is_empty() && flags.is_empty() {
            continue;
        }
        writeln!(text, "## tautline {}\n", command.join(" ")).unwrap();
        let (shared, own): (Vec<_>, Vec<_>) =
            settings.into_iter().partition(|row| row.name.starts_with("transport."));
        table(&mut text, &own, &flags);
        if !shared.is_empty() {
            text.push_str("## transport of vehicle and operator\n\n");
            table(&mut text, &shared, &[]);
        }
    }
    text
}

/// Returns the flags of a command that are not settings of its file.
fn flags_without_settings(command: &[String]) -> Vec<Row> {
    let file = FILES.iter().find(|file| file.command == command.join(" "));
    let settings = file.map(rows).unwrap_or_default();
    let mut flags = flags_of(command);
    flags.retain(|flag| !settings.iter().any(|row| row.flag.as_ref() == Some(&flag.name)));
    flags
}

/// Writes a table of settings, and of flags that are none.
fn table(text: &mut String, settings: &[Row], flags: &[Row]) {
    let has_file = !settings.is_empty();
    text.push_str(match has_file {
        true => "| setting | flag | values | default | |\n|---|---|---|---|---|\n",
        false => "| flag | values | default | |\n|---|---|---|---|\n",
    });
    for Row { name, flag, values, default, docs, .. } in settings.iter().chain(flags) {
        let flag = match (has_file, flag.is_some()) {
            (false, _) => "",
            (true, true) => " -- |",
            (true, false) => " |",
        };
        writeln!(text, "| `{name}` |{flag} {values} | {default} | {docs} |").unwrap();
    }
    text.push('\n');
}

/// Text in the column of values for a number without bounds.
const NUMBER: &str = "number";

const HEAD: &str = "\
# Settings

`make settings` writes all but the last section from the code. A setting without `--` has no flag;
a flag has `-` for `_`, and that of a list lacks the `s`. [Start](start.md#how-settings-work) has
the rules of files and `--config`, `--help` the environment variables and the measuring commands
`lab` and `probe`.

";
const END: &str = "<!-- end of what make settings writes -->\n";
