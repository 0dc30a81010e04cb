//! Circles of imports, in every library and program. The parts of a module are its own file and
//! each child with everything below it; no part may use another that uses it, directly or through
//! further parts.
//!
//! A path leads to the file that defines its item, through all re-exports. A path that only names a
//! module uses nothing. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

/// One file of a crate, with its imports.
#[derive(Debug, Default)]
struct File {
    path: String,
    /// Names of the modules that it declares as files.
    children: BTreeSet<String>,
    /// Names of the items and macros that it defines at its top level.
    items: BTreeSet<String>,
    /// Paths imported by `use`, as written, by their names in this file.
    names: BTreeMap<String, Path>,
    /// Every path in its code, as written, those of `use` included.
    paths: Vec<Path>,
}

/// Segments of a path or of a module's path; empty for the root.
type Path = Vec<String>;
/// Files of a crate by their modules.
type Files = BTreeMap<Path, File>;

/// Lists the imports that form circles, in every library and program.
pub(crate) fn faults(sources: &[Source]) -> Vec<String> {
    let roots = sources.iter().filter_map(|source| source.path.rsplit_once('/'));
    let roots = roots.filter(|(_, name)| ["lib.rs", "main.rs"].contains(name));
    let folders = roots.map(|(folder, _)| folder).filter(|folder| folder.contains("/src"));
    let folders: BTreeSet<&str> = folders.collect();
    folders.into_iter().flat_map(|folder| below(folder, sources)).collect()
}

fn below(folder: &str, sources: &[Source]) -> Vec<String> {
    let files = files(folder, sources);
    files.keys().flat_map(|module| within(module, &files)).collect()
}

/// Lists one import for each pair of parts of `module` that is in a circle.
fn within(module: &Path, files: &Files) -> Vec<String> {
    let part = |of: &Path| {
        let below = of.strip_prefix(module.as_slice())?;
        Some(below.first().map_or(String::new(), String::clone))
    };
    let mut arrows: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (from, file) in files {
        let Some(part_from) = part(from) else { continue };
        for to in file.paths.iter().filter_map(|path| resolve(from, path, files, 0)) {
            if let Some(part_to) = part(&to).filter(|part_to| *part_to != part_from) {
                let what = format!("{} uses {}", file.path, files[&to].path);
                arrows.entry(part_from.clone()).or_default().entry(part_to).or_insert(what);
            }
        }
    }
    // A part that is not used, or uses no other, is in no circle.
    loop {
        let before = arrows.values().map(BTreeMap::len).sum::<usize>();
        let users: BTreeSet<String> = arrows.keys().cloned().collect();
        let used: BTreeSet<String> = arrows.values().flat_map(|to| to.keys().cloned()).collect();
        arrows.retain(|from, to| {
            to.retain(|to, _| users.contains(to));
            used.contains(from) && !to.is_empty()
        });
        if arrows.values().map(BTreeMap::len).sum::<usize>() == before {
            break;
        }
    }
    let whats = arrows.into_values().flat_map(BTreeMap::into_values);
    whats
        .map(|what| format!("{what}: a circle among the parts of {}", files[module].path))
        .collect()
}

/// Returns the module whose file defines what `path` leads to from `module`. It returns `None` if
/// that is outside of this crate, if the path only names a module, or after [`DEPTH_MAX`]
/// re-exports.
fn resolve(module: &Path, path: &[String], files: &Files, depth: usize) -> Option<Path> {
    let (first, rest) = path.split_first()?;
    let parent = || module.split_last().map(|(_, parent)| parent.to_vec());
    match first.as_str() {
        "crate" => return resolve(&Vec::new(), rest, files, depth),
        "self" => return resolve(module, rest, files, depth),
        "super" => return resolve(&parent()?, rest, files, depth),
        _ => {}
    }
    let file = files.get(module)?;
    if file.items.contains(first) || first == "*" {
        return Some(module.clone());
    }
    if file.children.contains(first) {
        return resolve(
            &[module.as_slice(), std::slice::from_ref(first)].concat(),
            rest,
            files,
            depth,
        );
    }
    // A name may lead to itself, where a crate has a module of that name.
    let name = file.names.get(first).filter(|_| depth < DEPTH_MAX)?;
    resolve(module, &[name.as_slice(), rest].concat(), files, depth + 1)
}

/// Reads the files below a folder's lib.rs or main.rs, by their modules; files that are declared
/// for tests alone are left out.
fn files(folder: &str, sources: &[Source]) -> Files {
    let mut files = Files::new();
    for source in sources {
        let below = source.path.strip_prefix(folder).and_then(|path| path.strip_prefix('/'));
        let Some(name) = below.and_then(|below| below.strip_suffix(".rs")) else { continue };
        let module = match name {
            "lib" | "main" => Path::new(),
            name => name.split('/').map(str::to_owned).collect(),
        };
        files.insert(module, read(source));
    }
    let declares = |parent: &[String], child: &String| {
        files.get(parent).is_some_and(|parent| parent.children.contains(child))
    };
    let is_declared =
        |module: &Path| (0..module.len()).all(|at| declares(&module[..at], &module[at]));
    let declared: BTreeSet<Path> = files.keys().filter(|at| is_declared(at)).cloned().collect();
    files.retain(|module, _| declared.contains(module));
    files
}

fn read(source: &Source) -> File {
    let words = without_tests(words(&source.code().join("\n")));
    let mut file = File { path: source.path.clone(), ..File::default() };
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let (mut depth, mut at) = (0, 0);
    while at < words.len() {
        match word(at) {
            "{" => depth += 1,
            "}" => depth -= 1,
            "mod" if word(at + 2) == ";" => {
                file.children.insert(words[at + 1].clone());
            }
            "use" => {
                let mut found = Vec::new();
                at = uses(&words, at + 1, &Path::new(), &mut found);
                for (mut path, name) in found {
                    if path.last().is_some_and(|last| last == "self") {
                        path.pop();
                    }
                    file.names.extend(name.map(|name| (name, path.clone())));
                    file.paths.push(path);
                }
                continue;
            }
            kind if depth == 0 && ITEMS.contains(&kind) => {
                file.items.insert(word(at + 1).to_owned());
            }
            "macro_rules" => {
                file.items.insert(word(at + 2).to_owned());
            }
            first if is_name(first) && word(at + 1) == "::" => {
                let mut path = vec![first.to_owned()];
                while word(at + 1) == "::" && is_name(word(at + 2)) {
                    path.push(word(at + 2).to_owned());
                    at += 2;
                }
                file.paths.push(path);
            }
            _ => {}
        }
        at += 1;
    }
    file
}

/// Reads one tree of a `use` that begins at `words[at]`, below the path `before`. It returns the
/// index after it, and adds each path with its name in the file (`None` for a glob) to `found`.
fn uses(
    words: &[String],
    mut at: usize,
    before: &Path,
    found: &mut Vec<(Path, Option<String>)>,
) -> usize {
    let mut path = before.clone();
    loop {
        match words.get(at).map_or(";", String::as_str) {
            "{" => {
                at += 1;
                while !matches!(words.get(at).map_or("}", String::as_str), "}") {
                    at = uses(words, at, &path, found);
                    at += usize::from(words.get(at).is_some_and(|word| word == ","));
                }
                return at + 1;
            }
            "::" => at += 1,
            "as" => {
                found.push((path, words.get(at + 1).cloned()));
                return at + 2;
            }
            "*" => {
                path.push("*".to_owned());
                found.push((path, None));
                return at + 1;
            }
            name if is_name(name) => {
                path.push(name.to_owned());
                at += 1;
            }
            _ => {
                let name = path.iter().rev().find(|name| *name != "self").cloned();
                found.push((path, name));
                return at;
            }
        }
    }
}

/// Splits code into names, `::`, and other single characters; white space is left out.
fn words(code: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for character in code.chars() {
        let goes_on = match character {
            ':' => before == ':' && words.last().is_some_and(|word| word == ":"),
            _ => is_of_name(character) && is_of_name(before),
        };
        match words.last_mut() {
            Some(word) if goes_on => word.push(character),
            _ if character.is_whitespace() => {}
            _ => words.push(character.to_string()),
        }
        before = character;
    }
    words
}

/// Returns the words without each `#[cfg(test)]` and the item after it.
fn without_tests(words: Vec<String>) -> Vec<String> {
    let mut left: Vec<String> = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        left.push(word);
        if left.ends_with(&TEST.map(str::to_owned)) {
            left.truncate(left.len() - TEST.len());
            let mut depth = 0;
            words.find(|word| {
                depth += i32::from(word == "{") - i32::from(word == "}");
                depth == 0 && matches!(word.as_str(), "}" | ";")
            });
        }
    }
    left
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| is_of_name(c) && !c.is_ascii_digit()) && word != "as"
}

const ITEMS: [&str; 9] =
    ["struct", "enum", "trait", "type", "fn", "const", "static", "union", "mod"];
const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
/// Maximum number of re-exports that [`resolve`] follows in a row.
const DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let path = |name| format!("crates/transport/src/{name}.rs");
        let sources = files.iter().map(|(name, text)| Source::new(&path(name), *text));
        let sources: Vec<Source> = sources.collect();
        let faults = faults(&sources);
        faults.iter().map(|fault| fault.replace("crates/transport/src/", "")).collect()
    }

    #[test]
    fn a_parent_and_a_child_that_use_each_other_are_named() {
        let parent = "mod part;\nuse part::Part;\nstruct Whole { part: Part }\n";
        let circle = [
            "whole.rs uses whole/part.rs: a circle among the parts of whole.rs",
            "whole/part.rs uses whole.rs: a circle among the parts of whole.rs",
        ];
        for child in [
            "use super::Whole;\nstruct Part;\n",
            "struct Part;\nfn of(whole: &crate::whole::Whole) {}\n",
            "use super::*;\nstruct Part;\n",
            "use crate::{whole::{self, part as own}};\nstruct Part { of: whole::Whole }\n",
        ] {
            let files = [("lib", "mod whole;\n"), ("whole", parent), ("whole/part", child)];
            assert_eq!(found(&files), circle, "{child}");
        }
    }

    #[test]
    fn cycles_through_re_exports_and_submodules_are_named() {
        let files = [
            ("lib", "mod a;\nmod b;\npub use b::B;\n"),
            ("a", "mod deep;\npub struct A;\n"),
            ("a/deep", "use crate::B;\n"),
            ("b", "pub use self::c::B;\nmod c;\n"),
            ("b/c", "use crate::a::A;\npub struct B(A);\n"),
        ];
        let expected = [
            "a/deep.rs uses b/c.rs: a circle among the parts of lib.rs",
            "b/c.rs uses a.rs: a circle among the parts of lib.rs",
        ];
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn tests_comments_and_other_crates_make_no_cycle() {
        let files = [
            ("lib", "mod a;\nmod b;\n"),
            ("a", "use crate::b::{self, B};\nuse b_of_others::B as Other;\npub struct A(B);\n"),
            (
                "b",
                "// crate::a::A\nuse crate::a;\npub struct B;\n#[cfg(test)]\nuse crate::a::A;\n\
                 #[cfg(test)]\nmod tests {\n    use crate::a::A;\n    fn f() {}\n}\n",
            ),
            ("b/tests", "use crate::a::A;\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
