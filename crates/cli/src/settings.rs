//! Settings from flags, environment variables and one TOML file, in this order of precedence.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::de::DeserializeOwned;
use tautline_net::settings::Faults;
use tautline_net::unavailable::Refused;
use tautline_transport::crypto::Identity;

use crate::keys;

/// Reads a TOML file, or returns the defaults without a file.
pub(crate) fn load<T: DeserializeOwned + Default>(file: Option<&Path>) -> anyhow::Result<T> {
    file.map_or_else(|| Ok(T::default()), read)
}

/// Reads settings from a TOML file; an unreadable or invalid file counts as invalid settings.
pub(crate) fn read<T: DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let text = tautline_net::file::read_text(file)
        .with_context(|| format!("cannot read configuration {}", file.display()));
    let text = right(text)?;
    right(toml::from_str(&text).map_err(|error| one_line(file, &text, &error)))
}

/// Error of invalid settings: only a person can correct them, so the process ends with [`WRONG`].
#[derive(Debug)]
struct Wrong(String);

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

/// Passes a value on; marks an error as one of invalid settings.
///
/// # Errors
/// Returns the same error text in one line, marked so that [`is_wrong`] finds it.
pub(crate) fn right<T>(value: anyhow::Result<T>) -> anyhow::Result<T> {
    value.map_err(|error| Wrong(format!("{error:#}")).into())
}

/// Reads the secret key at `file`, and returns it if `settings`, the result of the settings' check,
/// is no error either.
///
/// # Errors
/// Returns every fault of the settings and of the key, marked as one of invalid settings.
pub(crate) fn checked(settings: anyhow::Result<()>, file: &Path) -> anyhow::Result<Identity> {
    let mut faults = Faults::default();
    faults.of(settings);
    let identity = faults.of(keys::read(file));
    right(faults.finish())?;
    Ok(identity.expect("a key without a fault was read"))
}

/// Returns whether a process ended because of its settings, rather than for a cause that waiting
/// may remove.
pub(crate) fn is_wrong(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<Refused>();
    error.is::<Wrong>() || refused.is_some_and(|refused| !refused.comes_by_itself())
}

/// Exit code for invalid settings, the same as for an invalid command line.
pub(crate) const WRONG: u8 = 2;

/// Resolves relative paths of a file's settings, including defaults, against the folder of the
/// file; without a file they stay as they are.
pub(crate) fn beside<'a>(file: Option<&Path>, paths: impl IntoIterator<Item = &'a mut PathBuf>) {
    let Some(folder) = file.and_then(Path::parent) else { return };
    for path in paths {
        *path = folder.join(&*path);
    }
}

/// Overrides a setting with the flag's value, if the flag was given.
pub(crate) fn set<T>(setting: &mut T, flag: Option<T>) {
    if let Some(value) = flag {
        *setting = value;
    }
}

/// Returns a TOML error as `FILE:LINE: error`, for a terminal.
fn one_line(file: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let line = error
        .span()
        .map_or(1, |span| 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count());
    let what = error.message().replace('\n', "; ");
    anyhow::anyhow!("{}:{line}: {what}", file.display())
}

#[cfg(test)]
mod page;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Config {
        #[expect(dead_code, reason = "only parsed")]
        name: String,
    }

    /// Returns the names of a file's settings.
    fn names_of<T: DeserializeOwned>() -> Vec<String> {
        let error = toml::from_str::<toml::Table>("no_such_setting = 1")
            .map_err(|error| error.to_string())
            .and_then(|table| table.try_into::<T>().map_err(|error| error.to_string()));
        let words = error.err().expect("an unknown setting is refused");
        let (_, known) = words.split_once("expected").expect("the known ones are named");
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// Asserts that each flag of a command is a setting of the same name, and that a list's flag
    /// has both names.
    fn assert_alike<C: clap::Args, T: DeserializeOwned>() {
        let names = names_of::<T>();
        let command = C::augment_args(clap::Command::new("tautline"));
        for flag in command.get_arguments() {
            let Some(long) = flag.get_long() else { continue };
            if ["config", "stats-every"].contains(&long) {
                continue;
            }
            let setting = long.replace('-', "_");
            assert!(names.contains(&setting), "--{long}: no setting {setting}: {names:?}");
            let list = format!("{setting}s");
            if names.contains(&list) && matches!(flag.get_action(), clap::ArgAction::Append) {
                let aliases = flag.get_all_aliases().unwrap_or_default();
                let plural = format!("{long}s");
                assert!(aliases.contains(&plural.as_str()), "--{plural} is not taken: {aliases:?}");
            }
        }
    }

    #[test]
    fn flags_and_settings_share_names_and_both_accept_lists() {
        assert_alike::<crate::vehicle::Vehicle, tautline_vehicle::Config>();
        assert_alike::<crate::operator::Operator, tautline_operator::Config>();
        assert_alike::<crate::switchboard::Switchboard, tautline_switchboard::Config>();
        assert_alike::<crate::relay::Relay, tautline_relay::Config>();
    }

    #[test]
    fn paths_in_a_file_are_relative_to_its_folder() {
        let seen = |file: Option<&str>, path: &str| {
            let mut path = PathBuf::from(path);
            beside(file.map(Path::new), [&mut path]);
            path
        };
        assert_eq!(seen(Some("/etc/tautline/a.toml"), "a.key"), Path::new("/etc/tautline/a.key"));
        assert_eq!(seen(Some("/etc/tautline/a.toml"), "/run/a.key"), Path::new("/run/a.key"));
        assert_eq!(seen(Some("a.toml"), "a.key"), Path::new("a.key"));
        assert_eq!(seen(None, "a.key"), Path::new("a.key"));
    }

    #[test]
    fn a_malformed_file_is_reported_by_its_line() {
        let file = std::env::temp_dir().join(format!("tautline-settings-{}", std::process::id()));
        std::fs::write(&file, "name = \"a\"\nnmae = 3\n").unwrap();
        let error = load::<Config>(Some(&file)).unwrap_err().to_string();
        std::fs::remove_file(&file).unwrap();
        assert!(error.contains(":2: unknown field `nmae`"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
