//! Commands that are not in this build.

use anyhow::bail;
use clap::Args;

/// Arguments, of any form, of a command that is not in this build.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Missing {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

impl Missing {
    /// Fails with the command line that builds a binary with the command.
    ///
    /// # Errors
    /// Always: the error says how to build it.
    pub(crate) fn run(self, command: &str, feature: &str) -> anyhow::Result<()> {
        bail!(
            "`tautline {command}` is not in this binary: \
             cargo build --release --package tautline --features {feature}"
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        missing: Missing,
    }

    #[test]
    fn every_request_to_a_missing_feature_says_how_to_build_it() {
        for arguments in [&["lab"][..], &["lab", "run", "all", "--quick"], &["lab", "--help"]] {
            let missing = Command::try_parse_from(arguments).unwrap().missing;
            let words = missing.run("lab", "quorum").unwrap_err().to_string();
            assert!(words.ends_with("--package tautline --features quorum"), "{words}");
            assert_eq!(words.lines().count(), 1, "{words}");
        }
    }
}
