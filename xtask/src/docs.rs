//! Rules for docs: how they begin, and what they cite.

use std::collections::BTreeSet;

use crate::source::{Language, Source};

/// Returns the keys that docs/papers.md explains: the first cells of its table.
pub(crate) fn keys(papers: &str) -> BTreeSet<String> {
    let first_cells = papers.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    first_cells.flat_map(cited).collect()
}

/// Names docs that begin with "Is", docs of functions that do not begin with a verb, docs of types
/// and constants that do, and keys of sources that docs/papers.md does not have.
pub(crate) fn faults(source: &Source, keys: &BTreeSet<String>) -> Vec<String> {
    let comments = match source.language {
        Language::Rust => source.comments(),
        Language::TypeScript | Language::Markdown => {
            source.text.lines().map(str::to_owned).collect()
        }
        Language::Other => return Vec::new(),
    };
    let code = if source.language == Language::Rust { source.code() } else { Vec::new() };
    let mut faults = Vec::new();
    let mut was_doc = false;
    for (index, comment) in comments.iter().enumerate() {
        let doc = doc(comment);
        let item = || code.get(index..).filter(|_| is_outer(comment)).and_then(keyword);
        let is_wrong = |doc| match item() {
            _ if begins_with_is(doc) => true,
            Some("fn") => !begins_with_verb(doc),
            Some(item) if TYPES.contains(&item) || is_constant(item) => begins_as_a_function(doc),
            Some(_) | None => false,
        };
        if !was_doc && doc.is_some_and(is_wrong) {
            let rule = "docs begin with a noun phrase (a type, a constant) or a verb (a function)";
            faults.push(source.fault(index + 1, rule));
        }
        was_doc = doc.is_some();
        let prose = match source.language {
            Language::TypeScript => comment_of(comment),
            Language::Rust | Language::Markdown | Language::Other => comment,
        };
        for key in cited(prose).filter(|key| !keys.contains(key)) {
            faults.push(source.fault(index + 1, &format!("docs/papers.md has no [{key}]")));
        }
    }
    faults
}

/// Returns the text of a line of docs, after `///`, `//!` or TypeScript's `/**`; `None` if the line
/// begins with none of them.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rust = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
    rust.or_else(|| line.strip_prefix("/**")).map(str::trim_start)
}

/// Returns whether a line of docs is about the item below it.
fn is_outer(line: &str) -> bool {
    line.trim_start().starts_with("///")
}

fn begins_with_is(doc: &str) -> bool {
    doc.split_whitespace().next() == Some("Is")
}

/// Returns whether docs begin with a verb of the third person ("Returns .."), or with a section ("#
/// Safety").
fn begins_with_verb(doc: &str) -> bool {
    let first = doc.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let is_verb = first.len() > 2 && first.ends_with('s') && !NO_VERBS.contains(&first);
    doc.starts_with("# ") || (is_verb && first.starts_with(char::is_uppercase))
}

/// Returns whether docs of a type begin with a word that is a verb and hardly ever a noun.
fn begins_as_a_function(doc: &str) -> bool {
    let first = doc.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    VERBS.split_whitespace().any(|verb| verb == first)
}

/// Returns whether the word that stands where `fn` does for a function is a constant's name.
fn is_constant(word: &str) -> bool {
    word.strip_suffix(':').is_some_and(|name| !name.contains(|c: char| c.is_ascii_lowercase()))
}

/// Keywords of types, and of items documented like types.
const TYPES: [&str; 6] = ["struct", "enum", "union", "trait", "type", "static"];

/// Verbs of the third person that docs of types are likely to begin with. Words that are also the
/// plural of a noun (counts, measures, steps) are left out.
const VERBS: &str = "Accepts Adds Allows Applies Asks Becomes Begins Brings Builds Carries Collects \
    Contains Creates Decides Decodes Defines Describes Does Draws Encodes Follows Gives Handles Has Holds \
    Implements Keeps Knows Lets Makes Opens Provides Puts Reads Receives Represents Returns Says Sends \
    Takes Tells Writes";

/// Words that end as verbs of the third person do, and are none.
const NO_VERBS: [&str; 9] =
    ["Always", "Bytes", "Its", "Packets", "Pixels", "Rows", "Slices", "This", "Units"];

/// Returns the keyword that the first code in `lines` declares an item with, for instance `fn`. For
/// a constant it returns the name, with its colon. It returns `None` for a test, whose name says
/// what it shows.
fn keyword(lines: &[String]) -> Option<&str> {
    let mut lines = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    let item = lines.find_map(|line| match line.strip_prefix("#[") {
        Some(attribute) if attribute.contains("test") => Some(""),
        Some(_) => None,
        None => Some(line),
    });
    item?.split_whitespace().find(|word| !BEFORE.contains(word))
}

/// Words that may precede that keyword.
const BEFORE: [&str; 6] = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe"];

/// Returns the comment on a line of TypeScript, or "" if it has none.
fn comment_of(line: &str) -> &str {
    if line.trim_start().starts_with(['*', '/']) {
        return line;
    }
    line.split_once("//").map_or("", |(_, comment)| comment)
}

/// Returns the keys in square brackets of a line, `[RFC8681]` for instance; links are none.
fn cited(line: &str) -> impl Iterator<Item = String> {
    let opened = line.split('[').skip(1);
    opened.filter_map(|rest| {
        let (key, after) = rest.split_once(']')?;
        let is_key = key.len() >= 3
            && key.starts_with(|c: char| c.is_ascii_uppercase())
            && key.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-');
        (is_key && !after.starts_with(['(', '[', ':'])).then(|| key.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPERS: &str = "| key | source |\n|---|---|\n| [LTE] | A. Belogolovy [STREAM] |\n";

    fn faults_of(path: &str, text: &str) -> Vec<String> {
        faults(&Source::new(path, text), &keys(PAPERS))
    }

    #[test]
    fn docs_that_begin_with_is_are_named() {
        let bad = "/// Is a block.\nstruct Block;\n//! Is one.\n/// A block that\n/// Is long.\n// Is it?\n";
        let found = faults_of("crates/fec/src/block.rs", bad);
        let lines: Vec<&str> = found.iter().filter_map(|fault| fault.split(':').nth(1)).collect();
        assert_eq!(lines, ["1", "3"], "{found:?}");
        assert_eq!(faults_of("console/src/clock.ts", "/** Is a clock. */\n").len(), 1);
    }

    #[test]
    fn docs_of_functions_begin_with_a_verb() {
        let bad = "/// The number.\npub(crate) const fn get() {}\n/// Whether it is.\n#[inline]\n\
                   fn is() {}\n/// As a block.\nasync fn of() {}\n";
        let found = faults_of("crates/fec/src/block.rs", bad);
        let lines: Vec<&str> = found.iter().filter_map(|fault| fault.split(':').nth(1)).collect();
        assert_eq!(lines, ["1", "3", "6"], "{found:?}");
        let right = "/// Returns it,\n/// whole.\nfn a() {}\n/// # Safety\nunsafe fn b() {}\n\
                     /// The reason.\n#[test]\nfn c() {}\n/// A block.\nstruct D;\n";
        assert!(faults_of("crates/fec/src/block.rs", right).is_empty());
    }

    #[test]
    fn docs_of_types_and_constants_do_not_begin_with_a_verb() {
        let bad = "/// Holds a block.\n#[derive(Debug)]\npub(crate) struct Block;\n/// Represents one.\n\
                   enum A {}\n/// Keeps them apart.\nconst SEED_STRIDE: u64 = 3;\n";
        let found = faults_of("crates/fec/src/block.rs", bad);
        let lines: Vec<&str> = found.iter().filter_map(|fault| fault.split(':').nth(1)).collect();
        assert_eq!(lines, ["1", "4", "6"], "{found:?}");
        let right = "/// Counts of drops, by name.\nstruct A {\n    /// Takes the best link.\n    b: u8,\n}\n\
                     /// What holds a block.\ntrait C {}\n/// Whether it is one.\nconst D: bool = true;\n";
        assert!(faults_of("crates/fec/src/block.rs", right).is_empty());
    }

    #[test]
    fn keys_that_the_list_of_sources_lacks_are_named() {
        let text = "/// As [LTE] and [RFC9999] say; [`ROWS_MAX`], [A](b).\nlet a = TABLE[INDEX];\n";
        let found = faults_of("crates/fec/src/block.rs", text);
        assert_eq!(found, ["crates/fec/src/block.rs:1: docs/papers.md has no [RFC9999]"]);
        assert_eq!(faults_of("docs/lab.md", "Fig. 8 of [UGV]").len(), 1);
        assert_eq!(faults_of("console/src/a.ts", "const a = b[INDEX]; // after [UGV]").len(), 1);
    }
}
