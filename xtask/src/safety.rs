//! Rules for docs/safety.md: each test that it names exists at the stated place.

use std::collections::BTreeMap;

use crate::source::{Language, Source};

/// Lists the tests that are named in the last cell of a table row of `page` but are not in
/// `sources`.
///
/// A cell names a place, by the word that the page defines in bold, and tests there in backquotes;
/// two dots at the end match any rest. A path may also follow as a place: "`test` in
/// `crates/a/src/b.rs`". A path alone is a test by itself.
pub(crate) fn faults(page: &Source, sources: &[Source]) -> Vec<String> {
    let places = places(&page.text);
    let mut faults = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        for (place, test) in named(line, &places) {
            let is_there = match place {
                _ if test.contains(".rs") => sources.iter().any(|source| source.path == test),
                Some(path) => sources
                    .iter()
                    .any(|source| source.path.starts_with(path) && has_test(source, test)),
                None => false,
            };
            if !is_there {
                faults.push(page.fault(index + 1, &format!("there is no test `{test}`")));
            }
        }
    }
    faults
}

/// Returns the paths of places, by the words in bold that define them: "**stops**, **age** in
/// `crates/guard/src`".
fn places(page: &str) -> BTreeMap<&str, &str> {
    let mut places = BTreeMap::new();
    let mut words = Vec::new();
    // Every second piece is bold; a path follows the words that it belongs to.
    for (index, piece) in page.split("**").enumerate() {
        if index % 2 == 1 {
            words.push(piece);
            continue;
        }
        let after = piece.trim_start().strip_prefix("in").map(str::trim_start);
        let path = after.and_then(|after| after.strip_prefix('`')?.split('`').next());
        if let Some(path) = path {
            places.extend(words.drain(..).map(|word| (word, path)));
        }
    }
    places
}

/// Returns the tests in the last cell of a table line, each with the path of its place. The path is
/// `None` if no word in bold or path states the place.
fn named<'a>(line: &'a str, places: &BTreeMap<&str, &'a str>) -> Vec<(Option<&'a str>, &'a str)> {
    let Some(row) = line.strip_prefix("| ") else { return Vec::new() };
    let Some(cell) = row.trim_end().trim_end_matches('|').rsplit(" | ").next() else {
        return Vec::new();
    };
    let mut place = None;
    let mut named: Vec<(Option<&'a str>, &'a str)> = Vec::new();
    let mut before = "";
    for (index, piece) in cell.split('`').enumerate() {
        let last = named.last_mut().filter(|_| before.trim() == "in");
        if let (1, Some(last)) = (index % 2, last) {
            *last = (Some(piece), last.1);
        } else if index % 2 == 1 {
            named.push((place, piece));
        } else {
            before = piece;
            let mut words = piece.split(|c: char| !c.is_alphanumeric());
            place =
                words.rfind(|word| places.contains_key(word)).map(|word| places[word]).or(place);
        }
    }
    named
}

fn has_test(source: &Source, test: &str) -> bool {
    match source.language {
        Language::Rust => source.text.contains(&format!("fn {test}(")),
        Language::TypeScript => {
            let (name, end) = match test.strip_suffix("..") {
                Some(begin) => (begin.trim_end(), ""),
                None => (test, "QUOTE"),
            };
            ["'", "`", "\""].iter().any(|quote| {
                let name = format!("({quote}{name}{}", end.replace("QUOTE", quote));
                source.text.replace("\\'", "'").contains(&name)
            })
        }
        Language::Markdown | Language::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_not_where_the_page_says_is_named() {
        let sources = [
            Source::new("crates/guard/src/tests.rs", "#[test]\nfn it_stops() {}\n"),
            Source::new("console/e2e/a.test.mjs", "test('it\\'s seen', x);\ntest(`in ${n} m`, x);"),
        ];
        let page = |row: &str| {
            let head = "**stops**, **age** in\n`crates/guard/src`, **browser** in `console/e2e`.\n";
            Source::new("docs/safety.md", format!("{head}| cause | `not this` | {row} |\n"))
        };
        let right = [
            "stops `it_stops`",
            "age `it_stops`; browser `it's seen`, `in ..`",
            "`crates/guard/src/tests.rs`",
            "`it_stops` in `crates/guard/src/tests.rs`, stops `it_stops`",
            "-",
        ];
        for row in right {
            assert_eq!(faults(&page(row), &sources), [""; 0], "{row}");
        }
        for row in [
            "stops `it_stop`",
            "browser `it_stops`",
            "`it_stops`",
            "`it_stops` in `crates/fec/src`",
        ] {
            assert_eq!(faults(&page(row), &sources).len(), 1, "{row}");
        }
    }
}
