//! Functions that take bytes: every public one has a fuzz target or a property test, by [`FILE`].

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::source::{Language, Source};

/// The list of all functions that take bytes, with their tests.
pub(crate) const FILE: &str = "xtask/parsers.toml";

/// The content of [`FILE`].
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// Functions that read untrusted bytes; private ones may be listed too.
    #[serde(default)]
    parser: Vec<Parser>,
    /// Functions that take only bytes of this process.
    #[serde(default)]
    ours: Vec<Ours>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parser {
    file: String,
    function: String,
    /// `fuzz TARGET`, or `PATH TEST` of a property test.
    by: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ours {
    file: String,
    functions: Vec<String>,
    /// Origin of the bytes, as an explanation for readers; not blank.
    why: String,
}

/// Prints every function that takes bytes, and its tests.
///
/// # Errors
/// If one has no test, or the list names something that does not exist.
pub(crate) fn run(sources: &[Source]) -> Result<()> {
    let manifest = read(sources)?;
    for Parser { file, function, by } in &manifest.parser {
        println!("{file} {function}: {}", by.join(", "));
    }
    for Ours { file, functions, why } in &manifest.ours {
        println!("{file} {}: not of others: {why}", functions.join(", "));
    }
    let faults = faults(sources)?;
    if faults.is_empty() { Ok(()) } else { bail!("{}", faults.join("\n")) }
}

/// Lists public functions that take bytes and have no test, and entries of the list that do not
/// exist.
///
/// # Errors
/// If the list is missing or malformed.
pub(crate) fn faults(sources: &[Source]) -> Result<Vec<String>> {
    let manifest = read(sources)?;
    let text_of = |path: &str| {
        let found = sources.iter().find(|source| source.path == path);
        found.map(|source| source.text.as_str())
    };
    let listed: Vec<(&str, &str)> = {
        let parsers = manifest.parser.iter().map(|it| (&*it.file, &*it.function));
        let ours = manifest.ours.iter();
        let ours = ours.flat_map(|it| it.functions.iter().map(|name| (&*it.file, &**name)));
        parsers.chain(ours).collect()
    };
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| is_looked_at(source)) {
        for (line, function) in taking_bytes(source) {
            if !listed.contains(&(&source.path, &function)) {
                let what = format!(
                    "`{function}` takes bytes: name in {FILE} the fuzz target or the property test that tries it"
                );
                faults.push(source.fault(line, &what));
            }
        }
    }
    for (index, (file, function)) in listed.iter().enumerate() {
        let is_there = text_of(file).is_some_and(|text| has_function(text, function));
        if !is_there {
            faults.push(format!("{FILE}: {file} has no function `{function}`"));
        }
        if listed[..index].contains(&(file, function)) {
            faults.push(format!("{FILE}: {file} `{function}` stands there twice"));
        }
    }
    for Parser { file, function, by } in &manifest.parser {
        if by.is_empty() {
            faults.push(format!("{FILE}: {file} `{function}`: nothing tries it"));
        }
        let missing = by.iter().filter(|by| !is_trial(by, text_of));
        faults.extend(missing.map(|by| {
            format!("{FILE}: {file} `{function}`: there is no fuzz target or property test `{by}`")
        }));
    }
    let unfounded = manifest.ours.iter().filter(|ours| ours.why.trim().is_empty());
    faults.extend(unfounded.map(|ours| format!("{FILE}: {}: say whose bytes they are", ours.file)));
    Ok(faults)
}

fn read(sources: &[Source]) -> Result<Manifest> {
    let found = sources.iter().find(|source| source.path == FILE);
    let text = &found.with_context(|| format!("there is no {FILE}"))?.text;
    toml::from_str(text).context(FILE)
}

/// Returns whether `by` names a fuzz target that is built, or a property test that exists.
fn is_trial<'a>(by: &str, text_of: impl Fn(&str) -> Option<&'a str>) -> bool {
    match by.split_once(' ') {
        Some(("fuzz", target)) => {
            let is_built = text_of("fuzz/Cargo.toml")
                .is_some_and(|text| text.contains(&format!("name = \"{target}\"")));
            is_built && text_of(&format!("fuzz/fuzz_targets/{target}.rs")).is_some()
        }
        Some((path, test)) => text_of(path)
            .is_some_and(|text| within_proptest(text).any(|text| has_function(text, test))),
        None => false,
    }
}

/// Returns the content of each `proptest! { .. }` in a file's text.
fn within_proptest(text: &str) -> impl Iterator<Item = &str> {
    text.split("proptest! {").skip(1).map(|rest| {
        // The macro's closing brace is in the first column.
        let end = rest.find("\n}").unwrap_or(rest.len());
        &rest[..end]
    })
}

fn has_function(text: &str, name: &str) -> bool {
    ["(", "<"].iter().any(|next| text.contains(&format!("fn {name}{next}")))
}

fn is_looked_at(source: &Source) -> bool {
    let path = &source.path;
    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
    source.language == Language::Rust
        && path.starts_with("crates/")
        && path.contains("/src/")
        && !is_test
}

/// Returns the lines (from 1) and names of a file's `pub` functions that take bytes to read.
/// Functions in or below its module of tests are left out.
fn taking_bytes(source: &Source) -> Vec<(usize, String)> {
    let lines = source.code();
    let is_test = |pair: &[String]| pair[0].trim() == "#[cfg(test)]" && pair[1].starts_with("mod ");
    let end = lines.windows(2).position(is_test).unwrap_or(lines.len());
    let mut found = Vec::new();
    for (index, line) in lines[..end].iter().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("pub ") else { continue };
        let Some((before, _)) = rest.split_once("fn ") else { continue };
        if !before.split_whitespace().all(|word| ["const", "async", "unsafe"].contains(&word)) {
            continue;
        }
        let text = lines[index..end.min(index + SIGNATURE_LINES_MAX)].join(" ");
        let Some((_, signature)) = text.split_once("fn ") else { continue };
        let end = signature.find(['{', ';']).unwrap_or(signature.len());
        let signature = &signature[..end];
        let name = signature.split(['(', '<']).next().unwrap_or_default().trim();
        let takes = signature.split("->").next().unwrap_or_default();
        if has_bytes(takes) {
            found.push((index + 1, name.to_owned()));
        }
    }
    found
}

/// Returns whether parameters, with their generic bounds, include bytes to read.
fn has_bytes(parameters: &str) -> bool {
    let words: String = parameters.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = words.replace("&mut Vec<u8>", "");
    BYTES.iter().any(|bytes| plain.contains(bytes))
        || plain.match_indices("[u8]").any(|(at, _)| is_read(&plain[..at]))
}

/// Returns whether the text before `[u8]` makes it a shared reference: it ends with `&`, or with
/// `&` and a lifetime.
fn is_read(before: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let rest = before.trim_end().trim_end_matches(is_name);
    let word = before[rest.len()..].trim_end();
    rest.ends_with('&') && word != "mut"
}

/// Parts of a signature that show a parameter of bytes to read, besides `&[u8]`.
const BYTES: [&str; 8] = [
    "Vec<u8>",
    ": Bytes",
    "<Bytes>",
    "AsRef<[u8]>",
    "impl Read",
    "impl BufRead",
    ": Read",
    ": BufRead",
];
/// Number of lines within which a signature must end.
const SIGNATURE_LINES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_functions_that_take_bytes_are_found() {
        let text = "pub fn a(bytes: &[u8]) {}\n    pub const fn b<'a>(\n        &self,\n        bytes: &'a [u8],\n    ) -> u8 {\n\
                    pub fn c(out: &mut Vec<u8>) {}\npub fn d(to: &mut [u8]) -> Vec<u8> {}\npub(crate) fn e(b: &[u8]) {}\n\
                    fn f(b: &[u8]) {}\npub fn g(b: Vec<u8>) {}\npub fn h<R: BufRead>(r: R) {}\npub async fn i(r: impl Read) {}\n\
                    // pub fn j(b: &[u8])\npub fn k(b: Option<Bytes>) {}\n#[cfg(test)]\nmod tests {\n    pub fn l(b: &[u8]) {}\n}\n";
        let found = taking_bytes(&Source::new("crates/a/src/b.rs", text));
        let names: Vec<&str> = found.iter().map(|(_, name)| &**name).collect();
        assert_eq!(names, ["a", "b", "g", "h", "i", "k"]);
        assert_eq!(found[1].0, 2);
    }

    #[test]
    fn functions_without_a_test_and_stale_entries_are_named() {
        let parser = |by: &str| {
            format!("[[parser]]\nfile = \"crates/a/src/b.rs\"\nfunction = \"a\"\nby = [{by}]\n")
        };
        let with = |manifest: &str| {
            let tests =
                "proptest! {\n    fn any_bytes(b: Vec<u8>) {}\n}\n#[test]\nfn one_case() {}\n";
            let sources = [
                Source::new("crates/a/src/b.rs", "pub fn a(bytes: &[u8]) {}\n"),
                Source::new("crates/a/src/b/tests.rs", tests),
                Source::new("fuzz/Cargo.toml", "name = \"t\"\nname = \"gone\"\n"),
                Source::new("fuzz/fuzz_targets/t.rs", ""),
                Source::new(FILE, manifest),
            ];
            faults(&sources).unwrap()
        };
        for right in ["\"fuzz t\"", "\"crates/a/src/b/tests.rs any_bytes\""] {
            assert_eq!(with(&parser(right)), [""; 0], "{right}");
        }
        for wrong in [
            "",
            "\"fuzz u\"",
            "\"fuzz gone\"",
            "\"crates/a/src/b/tests.rs one_case\"",
            "\"crates/a/src/b/tests.rs any\"",
            "\"any_bytes\"",
        ] {
            assert_eq!(with(&parser(wrong)).len(), 1, "{wrong}");
        }
        assert_eq!(with("").len(), 1, "nothing tries it");
        let gone = parser("\"fuzz t\"") + &parser("\"fuzz t\"").replace("\"a\"", "\"z\"");
        assert_eq!(with(&gone), [format!("{FILE}: crates/a/src/b.rs has no function `z`")]);
        let ours = |why: &str| {
            format!(
                "[[ours]]\nfile = \"crates/a/src/b.rs\"\nfunctions = [\"a\"]\nwhy = \"{why}\"\n"
            )
        };
        assert_eq!(with(&ours("it wrote them")), [""; 0]);
        assert_eq!(with(&ours("")).len(), 1);
        assert_eq!(with(&(parser("\"fuzz t\"") + &ours("it wrote them"))).len(), 1, "both");
    }
}
