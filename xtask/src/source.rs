//! The repository's files that the rules apply to, split into code and comments.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// One text file of the repository.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path from the repository's root.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) language: Language,
}

/// Language of a file, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    TypeScript,
    Markdown,
    Other,
}

/// Returns every hand-written text file that git tracks or would track. Files of data and deleted
/// files are left out.
///
/// # Errors
/// If git fails.
pub(crate) fn all() -> Result<Vec<Source>> {
    let files = listed()?;
    let mut sources = Vec::new();
    for path in files.lines().filter(|path| is_by_hand(path)) {
        // Skip binary files and files deleted from the disk.
        if let Ok(text) = std::fs::read_to_string(path) {
            sources.push(Source::new(path, text));
        }
    }
    Ok(sources)
}

/// Returns the path of every file that git tracks or would track and that exists.
///
/// # Errors
/// If git fails.
pub(crate) fn paths() -> Result<BTreeSet<String>> {
    let files = listed()?;
    let there = files.lines().filter(|path| Path::new(path).exists());
    Ok(there.map(str::to_owned).collect())
}

fn listed() -> Result<String> {
    let files = Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).output()?;
    String::from_utf8(files.stdout).context("git ls-files")
}

impl Source {
    pub(crate) fn new(path: &str, text: impl Into<String>) -> Self {
        let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
        let language = match extension {
            Some("rs") => Language::Rust,
            Some("ts" | "mjs") => Language::TypeScript,
            Some("md") => Language::Markdown,
            Some(_) | None => Language::Other,
        };
        Self { path: path.to_owned(), text: text.into(), language }
    }

    /// Formats a fault at a line (from 1), as compilers do.
    pub(crate) fn fault(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }

    /// Returns the lines of Rust without comments, character literals and string contents.
    pub(crate) fn code(&self) -> Vec<String> {
        parted(&self.text).0
    }

    /// Returns the comments of Rust, line by line; other lines are empty.
    pub(crate) fn comments(&self) -> Vec<String> {
        parted(&self.text).1
    }

    /// Returns the contents of Rust's strings, line by line; other lines are empty.
    pub(crate) fn strings(&self) -> Vec<String> {
        parted(&self.text).2
    }
}

fn is_by_hand(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    !is_generated(path) && !NO_PROSE.iter().any(|end| name.ends_with(end))
}

/// Returns whether the file at `path` has been generated, or is the text of a licence.
pub(crate) fn is_generated(path: &str) -> bool {
    GENERATED.iter().any(|part| path.contains(part))
}

/// Path parts of generated files and of the texts of licences.
const GENERATED: [&str; 7] = [
    "guard/src/frame/layout.rs",
    "/generated/",
    "console/src/message/",
    "schemas/rate_cause.fbs",
    "bench/codecs/sbe_lidar/",
    "bench/codecs/foreign/",
    "LICENSE-",
];

/// File name endings of data files.
const NO_PROSE: [&str; 10] = [
    ".lock",
    "package-lock.json",
    ".csv",
    ".svg",
    ".png",
    ".bin",
    ".snap",
    ".hex",
    ".txt",
    "-regressions",
];

/// State of the scanner of Rust, at a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    /// Nesting depth.
    BlockComment(usize),
    String,
    /// Number of `#` at its end.
    RawString(usize),
}

/// Splits Rust's text into lines of code, of comments and of the contents of strings.
fn parted(text: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
    let characters: Vec<char> = text.chars().collect();
    let mut state = State::Code;
    let [mut code, mut comments, mut strings] = [const { String::new() }; 3].map(|it| vec![it]);
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        let rest = &characters[at..];
        let starts = |with: &str| with.chars().enumerate().all(|(i, c)| rest.get(i) == Some(&c));
        let mut taken = 1;
        if character == '\n' {
            code.push(String::new());
            comments.push(String::new());
            strings.push(String::new());
            if state == State::LineComment {
                state = State::Code;
            }
            at += 1;
            continue;
        }
        match state {
            State::Code if starts("//") => state = State::LineComment,
            State::Code if starts("/*") => (state, taken) = (State::BlockComment(1), 2),
            State::Code if character == '"' => state = State::String,
            State::Code if is_raw_string(&characters, at) => {
                let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
                (state, taken) = (State::RawString(hashes), hashes + 2);
            }
            State::Code if character == '\'' => taken = quoted(rest),
            State::Code => last(&mut code).push(character),
            State::LineComment => {}
            State::BlockComment(depth) if starts("*/") => {
                taken = 2;
                state = if depth == 1 { State::Code } else { State::BlockComment(depth - 1) };
            }
            State::BlockComment(depth) if starts("/*") => {
                (state, taken) = (State::BlockComment(depth + 1), 2);
            }
            State::BlockComment(_) => {}
            // An escaped end of line is still the end of a line.
            State::String if character == '\\' && rest.get(1) != Some(&'\n') => taken = 2,
            State::String if character == '"' => state = State::Code,
            State::String => {}
            State::RawString(hashes) => {
                if character == '"' && rest[1..].iter().take_while(|c| **c == '#').count() >= hashes
                {
                    (state, taken) = (State::Code, hashes + 1);
                }
            }
        }
        if matches!(state, State::LineComment | State::BlockComment(_)) {
            last(&mut comments).extend(&rest[..taken.min(rest.len())]);
        }
        if matches!(state, State::String | State::RawString(_)) {
            last(&mut strings).extend(&rest[..taken.min(rest.len())]);
        }
        at += taken;
    }
    (code, comments, strings)
}

fn last(lines: &mut [String]) -> &mut String {
    lines.last_mut().expect("there is a first line")
}

/// Returns whether a raw string begins here: `r"`, `r#"`, and not the end of a name.
fn is_raw_string(characters: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| characters[before]);
    let within_name = before.is_some_and(|c| c != 'b' && (c.is_alphanumeric() || c == '_'));
    let mut rest = characters[at..].iter();
    rest.next() == Some(&'r') && !within_name && rest.find(|c| **c != '#') == Some(&'"')
}

/// Returns the number of characters of the literal that begins with an apostrophe, or 1 for a
/// lifetime's apostrophe.
fn quoted(rest: &[char]) -> usize {
    match rest {
        [_, '\\', ..] => rest.iter().skip(3).position(|c| *c == '\'').map_or(1, |end| end + 4),
        [_, _, '\'', ..] => 3,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comments_and_strings_are_separated() {
        let text = "let a = \"// \\\" b\"; // c\nlet d = 'e'; /* f /* g */\nh */ i::<'j>('\\n');\n\
                    r#\"k \" l\"# m \"n \\\no\" p";
        let (code, comments, strings) = parted(text);
        assert_eq!(code, ["let a = ; ", "let d = ; ", " i::<j>();", " m ", " p"]);
        assert_eq!(comments, ["// c", "/* f /* g */", "h ", "", ""]);
        assert_eq!(strings, ["\"// \\\" b", "", "", "r#\"k \" l\"n \\", "o"]);
    }

    #[test]
    fn generated_code_and_data_are_not_looked_at() {
        assert!(is_by_hand("crates/fec/src/block.rs"));
        for path in ["crates/message/src/generated/a.rs", "Cargo.lock", "console/src/message/a.ts"]
        {
            assert!(!is_by_hand(path), "{path}");
        }
    }
}
