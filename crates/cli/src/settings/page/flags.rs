//! Flags of a command, one line each.

use clap::{ArgAction, CommandFactory};

use super::NUMBER;
use super::file::FILES;
use super::rows::{Bounds, Row, rows, short};

/// Returns the commands of the binary that is shipped, with their own commands.
pub(super) fn commands() -> Vec<Vec<String>> {
    let tautline = crate::Tautline::command();
    let mut commands = Vec::new();
    let shipped = tautline.get_subcommands().filter(|it| !MEASURING.contains(&it.get_name()));
    for command in shipped {
        let name = command.get_name().to_owned();
        commands.push(vec![name.clone()]);
        let own = command.get_subcommands();
        commands.extend(own.map(|own| vec![name.clone(), own.get_name().to_owned()]));
    }
    commands
}

pub(super) fn clap_command<S: AsRef<str>>(names: &[S]) -> clap::Command {
    let mut tautline = crate::Tautline::command();
    tautline.build();
    names.iter().fold(tautline, |command, name| {
        command.find_subcommand(name.as_ref()).expect("clap has the command").clone()
    })
}

/// Returns the flags of a command, and its arguments without a flag.
pub(super) fn flags_of(names: &[String]) -> Vec<Row> {
    let command = clap_command(names);
    let own = |argument: &&clap::Arg| {
        let is_inherited = names.len() > 1 && argument.is_global_set();
        let is_set = matches!(argument.get_action(), ArgAction::SetTrue);
        !is_inherited
            && argument.get_id() != "config"
            && !argument.is_hide_set()
            && (is_set || argument.get_action().takes_values())
    };
    command.get_arguments().filter(own).map(|argument| flag(names, argument)).collect()
}

/// Returns the line of a flag.
fn flag(names: &[String], argument: &clap::Arg) -> Row {
    let help = help(argument);
    let value = argument.get_value_names().and_then(|names| names.first());
    let value =
        value.map_or_else(|| argument.get_id().to_string().to_uppercase(), ToString::to_string);
    let name = argument.get_long().map_or_else(|| value.clone(), |long| format!("--{long}"));
    let choices: Vec<_> = argument.get_possible_values();
    let choices: Vec<_> = choices.iter().map(|choice| format!("`{}`", choice.get_name())).collect();
    let mut row = Row {
        flag: name.starts_with("--").then(|| name.clone()),
        rust: String::new(),
        values: format!("`{value}`"),
        bounds: None,
        default: "none".into(),
        docs: String::new(),
        file: String::new(),
        name,
    };
    let setting = SETTINGS_OF_OTHERS.iter().find(|(flag, ..)| *flag == row.name);
    let setting =
        setting.filter(|_| ["demo", "can", "init", "enroll"].contains(&names[0].as_str()));
    let is_number = parse_flag(names, &row.name, "x").is_err_and(|error| {
        row.name.starts_with("--") && NO_NUMBER.iter().any(|words| error.contains(words))
    });
    if let Some((_, command, setting)) = setting {
        let file = FILES.iter().find(|file| file.command == *command).expect("it has a file");
        let other = rows(file).into_iter().find(|row| row.name == *setting).expect("it is there");
        (row.values, row.bounds, row.rust) = (other.values, other.bounds, other.rust);
        row.default = other.default;
    } else if matches!(argument.get_action(), ArgAction::SetTrue) {
        row.values = "switch".into();
        row.default = "off".into();
    } else if !choices.is_empty() {
        row.values = choices.join(", ");
    } else if is_number {
        row.bounds = bounds_of_flag(names, &row.name, &help);
        let error = parse_flag(names, &row.name, "x").expect_err("no number");
        let choices = error.rsplit_once("must be ").and_then(|(_, told)| told.lines().next());
        row.values = choices.unwrap_or(NUMBER).to_owned();
        row.values = row.bounds.as_ref().map_or(row.values, Bounds::text);
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|it| it.display()).collect();
    let defaults = defaults.iter().map(|default| marked(&default.to_string())).collect::<Vec<_>>();
    let told = help.split_once("[default: ").map(|(_, told)| told.trim_end_matches(']'));
    let is_own = told.is_some_and(|told| told != row.default.trim_matches('`'));
    if argument.is_required_set() {
        row.default = "required".into();
    } else if !defaults.is_empty() && row.default != "off" {
        row.default = defaults.join(", ");
    } else if let (Some(told), true) = (told, is_own) {
        row.default = told.to_owned();
    }
    let unit = row.bounds.as_ref().map_or("", |bounds| &bounds.unit);
    let range = row.bounds.as_ref().map(|it| format!(", {} to {}", it.min, it.max));
    let docs = range.map_or_else(|| help.clone(), |range| help.replace(&range, ""));
    // The column of values has the choices.
    let choice = row.values.split(',').next().unwrap_or_default().trim_matches('`');
    let docs = docs.split_once(&format!(": {choice}")).map_or(docs.as_str(), |(docs, _)| docs);
    row.docs = short(docs, unit);
    row
}

/// Returns a default in Markdown: a text as code.
fn marked(default: &str) -> String {
    if default.parse::<f64>().is_ok() { default.into() } else { format!("`{default}`") }
}

/// Returns the bounds of clap's own error for a flag.
fn bounds_of_flag(names: &[String], flag: &str, help: &str) -> Option<Bounds> {
    let error = parse_flag(names, flag, "4000000000").err()?;
    let of_clap = error.rsplit_once(" is not in ");
    let (_, told) = of_clap.or_else(|| error.rsplit_once("must be "))?;
    let line = told.lines().next()?.replace("..=", " to ");
    let (min, max) = line.split_once(" to ")?;
    let max = max.split(' ').next()?;
    let unit = UNITS.iter().find(|(words, _)| help.contains(words)).map_or("", |(_, unit)| unit);
    Some(Bounds { min: min.parse().ok()?, max: max.parse().ok()?, unit: unit.to_owned() })
}

pub(super) fn parse_flag(names: &[String], flag: &str, value: &str) -> Result<(), String> {
    let words = ["tautline".to_owned()].into_iter().chain(names.iter().cloned());
    let words = words.chain([format!("{flag}={value}")]);
    let parsed = crate::Tautline::command().try_get_matches_from(words);
    parsed.map(|_| ()).map_err(|error| error.to_string())
}

pub(super) fn help(argument: &clap::Arg) -> String {
    argument.get_help().map(ToString::to_string).unwrap_or_default()
}

/// Returns whether a flag sets a setting, or adds to the list of that name. A flag with a default
/// of its own does not.
pub(super) fn is_flag_of(flag: &clap::Arg, setting: &str) -> bool {
    let name = flag.get_long().unwrap_or_default().replace('-', "_");
    let is_added = matches!(flag.get_action(), ArgAction::Append);
    let is_named = setting == name || is_added && setting == format!("{name}s");
    let is_switch = matches!(flag.get_action(), ArgAction::SetTrue);
    is_named && (is_switch || flag.get_default_values().is_empty())
}

/// Commands that measure: not in the shipped binary.
const MEASURING: [&str; 2] = ["lab", "probe"];
/// Flags that write a setting of another command's file.
const SETTINGS_OF_OTHERS: [(&str, &str, &str); 9] = [
    ("--pictures-per-second", "vehicle", "pictures_per_second"),
    ("--encoder", "vehicle", "encoder"),
    ("--loss-recovery", "vehicle", "loss_recovery"),
    ("--refresh-period", "vehicle", "refresh_period"),
    ("--references", "vehicle", "references"),
    ("--after-pause", "vehicle", "after_pause"),
    ("--control-timeout-ms", "machine", "control_timeout_ms"),
    ("--mass-kg", "guard", "guard.machine.mass_kg"),
    ("--speed-max", "guard", "guard.envelope.speed_max_m_per_s"),
];
/// Words in the errors with which flags refuse `x`: a flag whose error has one of them takes a
/// number.
const NO_NUMBER: [&str; 4] = ["invalid digit", "invalid float", "how many links", "must be "];
/// Words in the help of a flag, and the unit that they stand for.
const UNITS: [(&str, &str); 2] = [("seconds", "s"), ("of links", "links")];
