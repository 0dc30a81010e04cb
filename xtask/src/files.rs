//! Rules for whole files: how long they may be, and how modules are laid out.

use crate::source::{Language, Source};

/// Lists what is wrong with a file of code as a whole: its name, or over [`LINES_MAX`] lines. Files
/// of other languages have no faults.
pub(crate) fn faults(source: &Source) -> Vec<String> {
    let path = &source.path;
    if !matches!(source.language, Language::Rust | Language::TypeScript) {
        return Vec::new();
    }
    let mut faults = Vec::new();
    if path.ends_with("/mod.rs") {
        faults.push(format!("{path}: write foo.rs next to foo/ instead of foo/mod.rs"));
    }
    let lines = source.text.lines().count();
    if lines > LINES_MAX {
        faults.push(format!("{path}: {lines} lines, over {LINES_MAX}: it is two nouns"));
    }
    faults
}

const LINES_MAX: usize = 800;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_over_800_lines_is_named_and_so_is_a_mod_rs() {
        let long = Source::new("crates/fec/src/long.rs", "//\n".repeat(801));
        assert_eq!(faults(&long), ["crates/fec/src/long.rs: 801 lines, over 800: it is two nouns"]);
        let right = Source::new("crates/fec/src/right.rs", "//\n".repeat(800));
        assert_eq!(faults(&right), [""; 0]);
        assert_eq!(faults(&Source::new("crates/fec/src/block/mod.rs", "")).len(), 1);
        assert_eq!(faults(&Source::new("docs/long.md", "-\n".repeat(801))), [""; 0]);
    }
}
