//! Commands that this binary was built without.

use anyhow::bail;
use clap::Args;

/// A command's arguments, whatever they are, in a build without it.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Missing {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

impl Missing {
    /// Says how to build a binary that has it.
    ///
    /// # Errors
    /// Always: that is the answer.
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
    fn whatever_is_asked_of_it_is_answered_in_one_line_that_tells_how_to_build_it() {
        for arguments in [&["lab"][..], &["lab", "run", "all", "--quick"], &["lab", "--help"]] {
            let missing = Command::try_parse_from(arguments).unwrap().missing;
            let words = missing.run("lab", "quorum").unwrap_err().to_string();
            assert!(words.ends_with("--package tautline --features quorum"), "{words}");
            assert_eq!(words.lines().count(), 1, "{words}");
        }
    }
}
