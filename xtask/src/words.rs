//! Words that docs/glossary.md refuses, in names and in text.
//!
//! A word in code font in the last column of its table is refused in every form (`heal` refuses
//! "healed" and `healing_period`). A word with a capital is refused only as the name of a type in
//! Rust. Words in that column without code font depend on the sentence and are left to readers.
//!
//! Idioms, in the table under their own heading, are refused exactly as they stand there and only
//! in text: comments, pages, and strings of more than one word.

use crate::source::{Language, Source};

/// A refused word or phrase, and its replacement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    words: Vec<String>,
    instead: String,
    kind: Kind,
}

/// Place in which a word is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Names and text, in any form.
    Word,
    /// Names of types, exactly so.
    Type,
    /// Text, exactly so, even across lines.
    Idiom,
}

/// A place where a refused word is right.
struct Exception {
    /// Beginning of the path, from the repository's root.
    place: &'static str,
    /// The refused word or phrase as the glossary lists it; "" for any.
    word: &'static str,
}

/// Returns the words and phrases in code font that the glossary's tables refuse.
pub(crate) fn refused(glossary: &str) -> Vec<Refused> {
    let mut all = Vec::new();
    let mut heading = "";
    for line in glossary.lines() {
        if line.starts_with('#') {
            heading = line;
        }
        if !line.starts_with("| ") {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (Some(instead), Some(never), true) = (cells.first(), cells.last(), cells.len() > 2)
        else {
            continue;
        };
        // Every second part stands between backticks.
        for phrase in never.split('`').skip(1).step_by(2) {
            let kind = match phrase.chars().next() {
                _ if heading == IDIOMS => Kind::Idiom,
                Some('A'..='Z') => Kind::Type,
                _ => Kind::Word,
            };
            let words = if kind == Kind::Type { vec![phrase.to_owned()] } else { words(phrase) };
            all.push(Refused { words, instead: (*instead).to_owned(), kind });
        }
    }
    all
}

/// Lists every line with a refused word that no exception allows, and every idiom.
pub(crate) fn faults(source: &Source, refused: &[Refused]) -> Vec<String> {
    let mut faults = idioms(source, refused);
    let code = if source.language == Language::Rust { source.code() } else { Vec::new() };
    for (index, line) in source.text.lines().enumerate() {
        let said = words(line);
        let code = code.get(index).map_or("", String::as_str);
        let names = || code.split(|c: char| !c.is_alphanumeric() && c != '_');
        for refused in refused {
            let is_said = match refused.kind {
                Kind::Type => names().any(|name| name == refused.words[0]),
                Kind::Word => said.windows(refused.words.len()).any(|said| refused.is(said)),
                Kind::Idiom => false,
            };
            if is_said && !is_excepted(&source.path, &refused.words.join(" ")) {
                faults.push(refused.fault(source, index + 1));
            }
        }
    }
    faults
}

/// Lists every line at which an idiom begins, except in the files that quote them.
fn idioms(source: &Source, refused: &[Refused]) -> Vec<String> {
    if OWN.iter().any(|place| source.path.starts_with(place)) {
        return Vec::new();
    }
    let said = text(source);
    let mut faults = Vec::new();
    for refused in refused.iter().filter(|refused| refused.kind == Kind::Idiom) {
        for said in said.windows(refused.words.len()) {
            let is_said = refused.words.iter().zip(said).all(|(word, (_, said))| word == said);
            if is_said {
                faults.push(refused.fault(source, said[0].0));
            }
        }
    }
    faults
}

/// Returns the words of a file's text in small letters, each with its line; "" between paragraphs.
fn text(source: &Source) -> Vec<(usize, String)> {
    let lines: Vec<String> = match source.language {
        Language::Rust => {
            let strings = source.strings().into_iter();
            let strings =
                strings.map(|it| if it.trim().contains(' ') { it } else { String::new() });
            let lines = source.comments().into_iter().zip(strings);
            lines.map(|(comment, string)| format!("{string} {comment}")).collect()
        }
        _ => source.text.lines().map(str::to_owned).collect(),
    };
    let mut said = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let of_line = line.split_whitespace().filter(|it| !COMMENT_MARKS.contains(it));
        let before = said.len();
        said.extend(of_line.map(|it| (index + 1, word(it))));
        if said.len() == before {
            said.push((index + 1, String::new()));
        }
    }
    said
}

/// Returns a word without punctuation, in small letters; names in code font or capitals stay so.
fn word(said: &str) -> String {
    let said = said.trim_matches(|c: char| ".,;:!?()[]\"'*".contains(c));
    let is_name = said.chars().skip(1).any(char::is_uppercase);
    if is_name { said.to_owned() } else { said.to_lowercase() }
}

impl Refused {
    fn fault(&self, source: &Source, line: usize) -> String {
        let what = format!("say {}, not {}", self.instead, self.words.join(" "));
        source.fault(line, &what)
    }

    fn is(&self, said: &[String]) -> bool {
        self.words.iter().zip(said).all(|(word, said)| is_form_of(said, word))
    }
}

fn is_excepted(path: &str, word: &str) -> bool {
    let applies =
        |e: &Exception| path.starts_with(e.place) && (e.word.is_empty() || e.word == word);
    EXCEPTIONS.iter().any(applies)
}

/// Returns whether `said` is `word` itself, its plural, or a verb's or an adjective's usual form.
fn is_form_of(said: &str, word: &str) -> bool {
    if said == word {
        return true;
    }
    let stem = word.strip_suffix('e').unwrap_or(word);
    let ends = ["s", "es", "ed", "ing", "able", "er", "ers"];
    let many = word.strip_suffix('y').is_some_and(|stem| said.strip_prefix(stem) == Some("ies"));
    let of = |stem: &str| said.strip_prefix(stem).is_some_and(|end| ends.contains(&end));
    many || of(word) || of(stem)
}

/// Splits a line into words in small letters; names with `_` or capitals within are several.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for character in line.chars() {
        if !character.is_alphabetic() || (was_small && character.is_uppercase()) {
            words.push(String::new());
        }
        if character.is_alphabetic() {
            words.last_mut().expect("never empty").extend(character.to_lowercase());
        }
        was_small = character.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Heading of the table of idioms in docs/glossary.md.
const IDIOMS: &str = "## Idioms";
/// Files that quote idioms to refuse them.
const OWN: [&str; 2] = ["docs/glossary.md", "xtask/src/words.rs"];
const COMMENT_MARKS: [&str; 7] = ["//", "///", "//!", "/*", "/**", "*", "#"];

const EXCEPTIONS: &[Exception] = &[
    // It refuses them.
    Exception { place: "docs/glossary.md", word: "" },
    // Each is of its day, and says what was called how then.
    Exception { place: "docs/decisions/", word: "" },
    // It lists them by their names.
    Exception { place: "docs/SUMMARY.md", word: "" },
    Exception { place: "CHANGELOG.md", word: "" },
    // Its tests need bad samples.
    Exception { place: "xtask/src/", word: "" },
    // So the crate `reed-solomon-simd` calls its functions.
    Exception { place: "bench/peers/src/block/reed_solomon_simd.rs", word: "shard" },
    // A machine within a machine, as the field has it.
    Exception { place: "bench/testbed/", word: "guest" },
    // So Arrow calls its table.
    Exception { place: "bench/codecs/src/codec/arrow.rs", word: "batch" },
];

#[cfg(test)]
mod tests {
    use super::*;

    const GLOSSARY: &str = "| say | means | in the field | never |\n|---|---|---|---|\n\
        | loss recovery | after a loss | the same | `heal`, hurt |\n\
        | picture interval | every n-th | frame decimation | `pass over` |\n\
        | snapshot | what is observed | - | `Seen`, `tally` |\n\n## Idioms\n\n\
        | say | means | not |\n|---|---|---|\n| recently | - | `of late`, `beside` |\n";

    fn lines(path: &str, text: &str) -> Vec<String> {
        let found = faults(&Source::new(path, text), &refused(GLOSSARY));
        found.iter().map(|fault| fault.split(':').skip(1).collect()).collect()
    }

    #[test]
    fn refused_words_are_found_in_text_and_names_in_any_form() {
        let bad = "// It healed.\nlet healing_period = 1;\nstruct HealPlan;\nself.pass_over();\n\
                   // Pictures passed over.\nenum Seen {}\n// tallies\n";
        assert_eq!(
            lines("crates/video/src/a.rs", bad),
            [
                "1 say loss recovery, not heal",
                "2 say loss recovery, not heal",
                "3 say loss recovery, not heal",
                "4 say picture interval, not pass over",
                "5 say picture interval, not pass over",
                "6 say snapshot, not Seen",
                "7 say snapshot, not tally",
            ]
        );
    }

    #[test]
    fn idioms_are_found_in_text_even_across_lines() {
        let bad = "/// Lost of\n/// late.\nlet a = \"b beside {}\";\n// (Beside it)\n";
        let of_late = "say recently, not of late";
        let beside = "say recently, not beside";
        assert_eq!(
            lines("crates/video/src/a.rs", bad),
            [format!("1 {of_late}"), format!("3 {beside}"), format!("4 {beside}")]
        );
        assert_eq!(lines("setup", "# Of\n# late\n"), [format!("1 {of_late}")]);
        assert_eq!(lines("docs/a.md", "It is beside it.\n"), [format!("1 {beside}")]);
    }

    #[test]
    fn names_and_other_paragraphs_are_no_idioms() {
        let right = "let beside = \"beside\"; // `beside`, --beside\n/// Of\n\n/// late.\n";
        assert_eq!(lines("crates/video/src/a.rs", right), [""; 0]);
        assert_eq!(lines("console/src/a.ts", "const BESIDE = 1;\n"), [""; 0]);
    }

    #[test]
    fn other_words_are_not() {
        let right = "// Health; over a pass; what was seen; hurt.\nlet seen = overpass;\n";
        assert_eq!(lines("crates/video/src/a.rs", right), [""; 0]);
        assert_eq!(lines("docs/decisions/0001-a.md", "It heals."), [""; 0]);
    }
}
