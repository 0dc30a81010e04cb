//! Words that docs/glossary.md refuses, in names and in text.
//!
//! A word in code font in the last column of its table is refused in every form (`heal` refuses
//! "healed" and `healing_period`). A word with a capital is refused only as the name of a type in
//! Rust. Words in that column without code font depend on the sentence and are left to readers.

use crate::source::{Language, Source};

/// A word, or a phrase of several, and what is said in its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    words: Vec<String>,
    instead: String,
    /// As the name of a type, exactly so.
    is_type: bool,
}

/// A place where a refused word is right.
struct Exception {
    /// The beginning of the path.
    place: &'static str,
    /// The word in its first form; "" for any.
    word: &'static str,
}

/// Returns what the glossary's table refuses.
pub(crate) fn refused(glossary: &str) -> Vec<Refused> {
    let mut all = Vec::new();
    for line in glossary.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (Some(instead), Some(never), true) = (cells.first(), cells.last(), cells.len() > 2)
        else {
            continue;
        };
        // Every second part stands between backticks.
        for phrase in never.split('`').skip(1).step_by(2) {
            let is_type = phrase.starts_with(|c: char| c.is_ascii_uppercase());
            let words = if is_type { vec![phrase.to_owned()] } else { words(phrase) };
            all.push(Refused { words, instead: (*instead).to_owned(), is_type });
        }
    }
    all
}

/// Names every line that says a refused word where no exception allows it.
pub(crate) fn faults(source: &Source, refused: &[Refused]) -> Vec<String> {
    let mut faults = Vec::new();
    let code = if source.language == Language::Rust { source.code() } else { Vec::new() };
    for (index, line) in source.text.lines().enumerate() {
        let said = words(line);
        let code = code.get(index).map_or("", String::as_str);
        let names = || code.split(|c: char| !c.is_alphanumeric() && c != '_');
        for refused in refused {
            let is_said = if refused.is_type {
                names().any(|name| name == refused.words[0])
            } else {
                said.windows(refused.words.len()).any(|said| refused.is(said))
            };
            if is_said && !is_excepted(&source.path, &refused.words.join(" ")) {
                let Refused { words, instead, .. } = refused;
                let what = format!("say {instead}, not {}", words.join(" "));
                faults.push(source.fault(index + 1, &what));
            }
        }
    }
    faults
}

impl Refused {
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
        | snapshot | what is observed | - | `Seen`, `tally` |\n";

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
    fn other_words_are_not() {
        let right = "// Health; over a pass; what was seen; hurt.\nlet seen = overpass;\n";
        assert_eq!(lines("crates/video/src/a.rs", right), [""; 0]);
        assert_eq!(lines("docs/decisions/0001-a.md", "It heals."), [""; 0]);
    }
}
