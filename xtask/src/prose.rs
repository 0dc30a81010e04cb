//! Plain English in comments, pages and names of tests: sentences with a main clause, short lines.

use crate::source::{Language, Source};

/// Lists fragments, and lines and names of tests that are too long, by line.
pub(crate) fn faults(source: &Source) -> Vec<String> {
    let mut faults: Vec<(usize, String)> = Vec::new();
    for (line, sentence) in fragments(source) {
        let beginning: String = sentence.chars().take(40).collect();
        faults.push((line, format!("a clause alone is no sentence: \"{beginning}\"")));
    }
    for (line, name) in long_names(source) {
        let what = format!("{name}: a test's name has at most {NAME_MAX} characters");
        faults.push((line, what));
    }
    for (line, columns) in long_lines(source) {
        faults.push((line, format!("{columns} columns, over {COLUMNS_MAX}")));
    }
    faults.sort();
    faults.into_iter().map(|(line, what)| source.fault(line, &what)).collect()
}

/// Returns every sentence that begins as a subordinate clause and asks nothing, with its line.
///
/// Examples: "What the queue holds." and "Whether the link lives." Some have a main clause at the
/// end ("What is late is dropped"); they are refused too, because they need a second reading.
pub(crate) fn fragments(source: &Source) -> Vec<(usize, String)> {
    if source.path == OWN {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut paragraph = Paragraph::default();
    for (index, line) in lines(source).into_iter().enumerate() {
        match line {
            Line::Begins(text) => {
                found.extend(paragraph.fragments());
                paragraph = Paragraph::default();
                paragraph.add(index + 1, &text);
            }
            Line::GoesOn(text) => paragraph.add(index + 1, &text),
            Line::NoProse => {
                found.extend(paragraph.fragments());
                paragraph = Paragraph::default();
            }
        }
    }
    found.extend(paragraph.fragments());
    found.extend(said_fragments(source));
    found.sort();
    found
}

/// Returns the fragments in the strings of Rust, which become messages, titles and notes.
fn said_fragments(source: &Source) -> Vec<(usize, String)> {
    if source.language != Language::Rust {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut paragraph = Paragraph::default();
    for (index, line) in source.strings().into_iter().enumerate() {
        // A quotation mark begins each string.
        for (place, part) in line.split('"').enumerate() {
            if place > 0 || line.is_empty() {
                found.extend(paragraph.fragments());
                paragraph = Paragraph::default();
            }
            let part = part.trim_end_matches('\\');
            if !part.trim().is_empty() {
                paragraph.add(index + 1, part);
            }
        }
    }
    found.extend(paragraph.fragments());
    found
}

/// Returns every line of prose that is too long, with its columns.
pub(crate) fn long_lines(source: &Source) -> Vec<(usize, usize)> {
    if source.language == Language::Other {
        return Vec::new();
    }
    let columns = source.text.lines().map(|line| line.chars().count()).enumerate();
    let prose = columns.zip(lines(source)).filter(|(_, line)| line.is_prose());
    let long = prose.filter(|((_, columns), _)| *columns > COLUMNS_MAX);
    long.map(|((index, columns), _)| (index + 1, columns)).collect()
}

/// Returns the tests of Rust whose names are too long, with their lines.
pub(crate) fn long_names(source: &Source) -> Vec<(usize, String)> {
    if source.language != Language::Rust {
        return Vec::new();
    }
    let mut is_test = false;
    let mut found = Vec::new();
    for (index, line) in source.code().iter().enumerate() {
        let line = line.trim();
        match line.split("fn ").nth(1) {
            _ if line.is_empty() => {}
            _ if line.starts_with("#[") => is_test |= line.contains("test"),
            Some(rest) => {
                let name = rest.split('(').next().unwrap_or_default();
                if is_test && name.len() > NAME_MAX {
                    found.push((index + 1, name.to_owned()));
                }
                is_test = false;
            }
            None => is_test = false,
        }
    }
    found
}

/// One line of a file, as prose.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// The first line of a paragraph or of an item of a list.
    Begins(String),
    /// A further line of the same paragraph.
    GoesOn(String),
    /// Code, a heading, a row of a table, a fenced block, or nothing.
    NoProse,
}

impl Line {
    fn is_prose(&self) -> bool {
        *self != Self::NoProse
    }
}

/// Consecutive lines of prose, joined, with the lines of the file that they come from.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// Offset in `text` at which each line begins, and its number in the file; ascending.
    starts: Vec<(usize, usize)>,
}

impl Paragraph {
    fn add(&mut self, line: usize, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.starts.push((self.text.len(), line));
        self.text.push_str(text.trim());
    }

    fn fragments(&self) -> Vec<(usize, String)> {
        let sentences = sentences(&self.text).into_iter().filter(|(_, said)| is_fragment(said));
        let line = |offset| self.starts.partition_point(|(start, _)| *start <= offset) - 1;
        sentences.map(|(offset, said)| (self.starts[line(offset)].1, said.to_owned())).collect()
    }
}

/// Splits text into sentences, each with its offset in bytes.
fn sentences(text: &str) -> Vec<(usize, &str)> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (offset, end) in text.match_indices(['.', '!', '?']) {
        // A title in bold ends with its stars.
        let behind = text[offset + end.len()..].trim_start_matches('*');
        let mut next = behind.trim_start().chars();
        let begins = next.next().is_some_and(|c| c.is_uppercase() || "`\"*[".contains(c));
        if behind.starts_with(' ') && begins {
            sentences.push((start, &text[start..offset + end.len()]));
            start = text.len() - behind.trim_start().len();
        }
    }
    sentences.push((start, &text[start..]));
    sentences
}

/// Returns whether a sentence begins as a subordinate clause. A title in bold is no sentence.
fn is_fragment(sentence: &str) -> bool {
    if sentence.starts_with("**") {
        return false;
    }
    let sentence = sentence.trim_matches(|c: char| c.is_whitespace() || "*_\"".contains(c));
    let begins = |with: &&str| {
        let rest = sentence.strip_prefix(*with);
        rest.is_some_and(|rest| rest.starts_with([' ', ',']))
    };
    !sentence.ends_with(['?', ':']) && CLAUSES.iter().any(begins)
}

/// Returns the lines of a file as prose.
fn lines(source: &Source) -> Vec<Line> {
    let (texts, is_page) = match source.language {
        Language::Rust => (rust(source), false),
        Language::TypeScript => (typescript(&source.text), false),
        Language::Markdown => {
            (source.text.lines().map(|line| Some(line.to_owned())).collect(), true)
        }
        Language::Other if source.path.ends_with(".fbs") => (typescript(&source.text), false),
        Language::Other => (hashed(&source.text), false),
    };
    let mut lines = Vec::new();
    let (mut is_fenced, mut was_prose) = (false, false);
    for text in texts {
        let text = text.unwrap_or_default();
        let said = text.trim();
        let is_fence = said.starts_with("```");
        let is_apart = is_fence
            || is_fenced
            || said.is_empty()
            || said.starts_with(['#', '|', '<'])
            || (is_page && !was_prose && text.starts_with("    "))
            || is_link(item(said));
        is_fenced ^= is_fence;
        let item = item(said);
        let line = match () {
            () if is_apart => Line::NoProse,
            () if item.len() < said.len() || !was_prose => Line::Begins(item.to_owned()),
            () => Line::GoesOn(said.to_owned()),
        };
        was_prose = line.is_prose();
        lines.push(line);
    }
    lines
}

/// Returns an item of a list without its bullet or number; other lines are returned unchanged.
fn item(said: &str) -> &str {
    let bullet = said.strip_prefix("- ").or_else(|| said.strip_prefix("* "));
    let number = || {
        let (number, rest) = said.split_once(". ")?;
        (!number.is_empty() && number.bytes().all(|c| c.is_ascii_digit())).then_some(rest)
    };
    bullet.or_else(number).unwrap_or(said)
}

/// Returns whether a line is only an address or a link, which cannot be broken.
fn is_link(said: &str) -> bool {
    let is_inline = said.ends_with(')') && said.matches("](").count() == 1;
    said.starts_with("http") || (said.starts_with('[') && (is_inline || said.contains("]: ")))
}

/// Returns the comment of each line that has no code, and `None` for each line with code.
fn rust(source: &Source) -> Vec<Option<String>> {
    let code = source.code();
    let comments = source.comments().into_iter().enumerate();
    let alone = comments.map(|(index, comment)| {
        let is_alone = code.get(index).is_some_and(|code| code.trim().is_empty());
        is_alone.then(|| comment.trim_start_matches(['/', '!', '*', ' ']).to_owned())
    });
    alone.collect()
}

fn typescript(text: &str) -> Vec<Option<String>> {
    let comments = text.lines().map(|line| {
        let line = line.trim_start();
        let is_comment = line.starts_with("//") || line.starts_with("/*") || line.starts_with("* ");
        is_comment.then(|| line.trim_start_matches(['/', '*', ' ']).replace("*/", ""))
    });
    comments.collect()
}

/// Returns the comment of each line of a script, of settings or of a Makefile.
fn hashed(text: &str) -> Vec<Option<String>> {
    let comments = text.lines().map(|line| line.trim_start().strip_prefix("# "));
    comments.map(|comment| comment.map(str::to_owned)).collect()
}

/// Beginnings of a subordinate clause.
const CLAUSES: [&str; 12] = [
    "What",
    "Whatever",
    "Whether",
    "Who",
    "Whoever",
    "Whose",
    "Of which",
    "That which",
    "That of",
    "How",
    "So long",
    "As many",
];
/// Maximum characters of a test's name.
const NAME_MAX: usize = 60;
/// Maximum columns of a line of prose, the same as rustfmt's for code.
const COLUMNS_MAX: usize = 100;
/// This file, whose sentences are not checked because its tests need bad samples.
const OWN: &str = "xtask/src/prose.rs";

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let faults = faults(&Source::new(path, text));
        faults.into_iter().map(|fault| fault.replace(&format!("{path}:"), "")).collect()
    }

    #[test]
    fn clauses_alone_are_named_at_the_line_where_they_begin() {
        let text = "/// What the queue holds.\nstruct A;\n/// The queue. Of which\n/// nothing is known.\n\
                    fn a() {}\n// - Whether it lives.\n";
        assert_eq!(
            found("crates/fec/src/a.rs", text),
            [
                "1: a clause alone is no sentence: \"What the queue holds.\"",
                "3: a clause alone is no sentence: \"Of which nothing is known.\"",
                "6: a clause alone is no sentence: \"Whether it lives.\"",
            ]
        );
        assert_eq!(found("docs/a.md", "It is so.\nWhoever holds it\nwaits.\n").len(), 1);
        assert_eq!(found("console/src/a.ts", "/** How long it lasts. */\nlet a;\n").len(), 1);
        assert_eq!(found("a.fbs", "/// That of a relay.\n").len(), 1);
        assert_eq!(found("Makefile", "# What it needs.\nall: # What\n").len(), 1);
    }

    #[test]
    fn questions_headings_tables_code_and_main_clauses_are_not() {
        let right = "## What it is\n\nWhat is it?\nThe link says what it holds; whether it lives.\n\n\
                     | What | Who |\n\n```\nWhat a day.\n```\n\n    What it prints.\n";
        assert_eq!(found("docs/a.md", right), [""; 0]);
        assert_eq!(found("docs/a.md", "- **Links.** What is left waits.\n").len(), 1);
        let code = "let a = \"What\"; // Whether it is.\n/// Whatsoever.\nfn b() {}\n";
        assert_eq!(found("crates/fec/src/a.rs", code), [""; 0]);
        let said = "a(\"It is so. \\\n  What is left waits.\", \"Whether\");\n";
        assert_eq!(found("crates/fec/src/a.rs", said).len(), 1);
    }

    #[test]
    fn long_names_of_tests_are_named_and_those_of_others_are_not() {
        let long = "a".repeat(61);
        let text = format!(
            "#[test]\n#[ignore]\nfn {long}() {{}}\nfn {long}() {{}}\n#[test]\nfn a() {{}}\n"
        );
        let what = format!("3: {long}: a test's name has at most 60 characters");
        assert_eq!(found("crates/fec/src/a.rs", &text), [what]);
    }

    #[test]
    fn lines_of_prose_over_100_columns_are_named_and_others_not() {
        let long = "word ".repeat(21);
        let text =
            format!("{long}\n\n| {long} |\n\n```\n{long}\n```\nhttps://{}\n", "a".repeat(100));
        assert_eq!(found("docs/a.md", &text), ["1: 105 columns, over 100"]);
        let text = format!("// {long}\nlet a = \"{long}\";\n");
        assert_eq!(found("crates/fec/src/a.rs", &text), ["1: 108 columns, over 100"]);
    }
}
