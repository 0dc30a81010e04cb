//! Rules for links and paths in pages: their targets exist.
//!
//! - A relative link of a page leads to a file or folder of the repository, its anchor to a
//!   heading.
//! - A source file in a code span (`sender/block.rs`) exists: from the repository's root, as the
//!   end of a path, or below `src` of the room that comes first (`transport/sender/block.rs`).
//! - A page of docs that any file names exists, and docs/SUMMARY.md lists every page of docs.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Language, Source};

/// Names every link, source file and page of docs without a target; `paths` are all paths of the
/// repository.
pub(crate) fn faults(sources: &[Source], paths: &BTreeSet<String>) -> Vec<String> {
    let pages = || sources.iter().filter(|source| source.language == Language::Markdown);
    let anchors = pages().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut faults = Vec::new();
    for page in pages() {
        for (line, text) in prose(&page.text) {
            for target in targets(text) {
                if let Some(what) = leads_nowhere(page, target, paths, &anchors) {
                    faults.push(page.fault(line, &what));
                }
            }
            if HISTORY.iter().any(|history| page.path.starts_with(history)) {
                continue;
            }
            for path in source_paths(text) {
                if !is_there(&path, paths) {
                    faults.push(page.fault(line, &format!("there is no source file {path}")));
                }
            }
        }
        if page.path.starts_with("docs/") && page.path != SUMMARY {
            let listed = sources.iter().find(|source| source.path == SUMMARY);
            let link = format!("]({})", &page.path["docs/".len()..]);
            if listed.is_some_and(|summary| !summary.text.contains(&link)) {
                faults.push(format!("{}: {SUMMARY} does not list it", page.path));
            }
        }
    }
    for source in sources.iter().filter(|source| !source.path.starts_with("xtask/src/")) {
        for (index, line) in source.text.lines().enumerate() {
            for page in named_pages(line).filter(|page| !paths.contains(*page)) {
                faults.push(source.fault(index + 1, &format!("there is no page {page}")));
            }
        }
    }
    faults
}

/// Returns the lines of a page outside fenced code, with their numbers from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (!is_fence && !is_fenced).then_some((index + 1, line))
    })
}

/// Returns the targets of a line's links and images; those in code spans are none.
fn targets(line: &str) -> Vec<&str> {
    let spans = line.split('`').step_by(2);
    let links = spans.flat_map(|text| text.split("](").skip(1));
    links.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

/// Returns a message if the link `target` of `page` leads to no file, folder or heading. Web and
/// mail addresses are not checked.
fn leads_nowhere(
    page: &Source,
    target: &str,
    paths: &BTreeSet<String>,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { page.path.clone() } else { resolved(&page.path, file)? };
    let below = format!("{path}/");
    let is_folder = || paths.range(below.clone()..).next().is_some_and(|p| p.starts_with(&below));
    if !paths.contains(&path) && !is_folder() {
        return Some(format!("there is no {path}, to which the link {target} leads"));
    }
    let has_anchor = anchor.is_empty()
        || anchors.get(path.as_str()).is_none_or(|anchors| anchors.contains(anchor));
    (!has_anchor).then(|| format!("{path} has no heading #{anchor}"))
}

/// Returns a link's path from the repository's root, or `None` if it leads out of that.
fn resolved(page: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(page) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor(heading.trim());
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(numbered).find(|it| !anchors.contains(it));
        anchors.extend(free);
    }
    anchors
}

fn anchor(heading: &str) -> String {
    // Of a link only its text counts.
    let pieces = heading.split("](").enumerate().map(|(index, piece)| match index {
        0 => piece,
        _ => piece.split_once(')').map_or("", |(_, after)| after),
    });
    let text: String = pieces.collect::<String>().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the source files that a line's code spans name. `{a,b}.rs` names two files; `NAME.rs` is
/// a placeholder and names none.
fn source_paths(line: &str) -> Vec<String> {
    let spans = line.split('`').skip(1).step_by(2);
    let is_path = |span: &&str| {
        let is_source = SOURCE_ENDS.iter().any(|end| span.ends_with(end) && span.len() > end.len());
        let is_plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "_-./{},".contains(c));
        let is_placeholder =
            |part: &str| part.len() > 1 && !part.contains(|c: char| !c.is_ascii_uppercase());
        is_source
            && is_plain
            && !span.starts_with('.')
            && !span.split(['/', '.']).any(is_placeholder)
    };
    spans.filter(is_path).flat_map(expanded).collect()
}

/// Returns the paths that a path with braces stands for: `a/{b,c}.rs` gives `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?)));
    let Some((head, (choices, tail))) = parts else { return vec![path.to_owned()] };
    choices.split(',').flat_map(|choice| expanded(&format!("{head}{choice}{tail}"))).collect()
}

fn is_there(path: &str, paths: &BTreeSet<String>) -> bool {
    let end = format!("/{path}");
    let of_room = path.split_once('/').map(|(room, rest)| format!("crates/{room}/src/{rest}"));
    paths.contains(path)
        || of_room.is_some_and(|path| paths.contains(&path))
        || paths.iter().any(|known| known.ends_with(&end))
}

/// Returns the paths in `docs/` with the ending `.md` that a line contains.
fn named_pages(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("docs/").filter_map(|(start, _)| {
        let is_whole = !line[..start].ends_with(|c: char| c.is_alphanumeric() || "/_-".contains(c));
        let rest = &line[start..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let page = rest[..end].trim_end_matches('.');
        (is_whole && page.ends_with(".md")).then_some(page)
    })
}

const SUMMARY: &str = "docs/SUMMARY.md";
/// Pages about a past state, whose code spans may name files that are gone.
const HISTORY: [&str; 2] = ["docs/decisions/", "CHANGELOG.md"];
const SOURCE_ENDS: [&str; 5] = [".rs", ".ts", ".mjs", ".py", ".fbs"];

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 6] = [
        "README.md",
        "docs/SUMMARY.md",
        "docs/a.md",
        "crates/transport/src/sender/block.rs",
        "crates/transport/src/sender.rs",
        "console/src/acts.ts",
    ];

    fn faults_of(page: &str, text: &str) -> Vec<String> {
        let sources = [
            Source::new("docs/SUMMARY.md", "- [A](a.md)"),
            Source::new(page, text),
            Source::new(
                "docs/a.md",
                "# A `b` (c)\n## A\n## A\n```\n# not\n```\n## See [it](a.md)\n",
            ),
        ];
        faults(&sources, &PATHS.map(str::to_owned).into())
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named() {
        for right in [
            "[a](docs/a.md), [a](docs/a.md#a-b-c), [a](docs/a.md#a-1)",
            "[a](docs/a.md#see-it), [docs](docs/), [b](#here)\n# Here",
            "[web](https://example.org/a.md), `[code](b.md)`",
            "```\n[code](b.md)\n```",
        ] {
            assert_eq!(faults_of("README.md", right), [""; 0], "{right}");
        }
        for (wrong, what) in [
            ("[a](a.md)", "README.md:1: there is no a.md, to which the link a.md leads"),
            ("\n[a](docs/a.md#not)", "README.md:2: docs/a.md has no heading #not"),
            ("[a](#gone)", "README.md:1: README.md has no heading #gone"),
        ] {
            assert_eq!(faults_of("README.md", wrong), [what]);
        }
    }

    #[test]
    fn a_source_file_that_does_not_exist_is_named() {
        for right in [
            "`sender/block.rs`, `crates/transport/src/sender.rs`, `transport/sender.rs`",
            "`acts.ts`, `transport/{sender,sender/block}.rs`",
            "`rate/NAME.rs`, `src/*.rs`, sender/gone.rs, `.rs`",
        ] {
            assert_eq!(faults_of("README.md", right), [""; 0], "{right}");
        }
        for (wrong, path) in [
            ("`sender/protect.rs`", "sender/protect.rs"),
            ("`transport/{sender,gone}.rs`", "transport/gone.rs"),
            ("`ender.rs`", "ender.rs"),
        ] {
            let what = format!("README.md:1: there is no source file {path}");
            assert_eq!(faults_of("README.md", wrong), [what]);
        }
        assert_eq!(faults_of("CHANGELOG.md", "`sender/protect.rs`"), [""; 0]);
    }

    #[test]
    fn a_page_that_is_not_there_or_not_listed_is_named() {
        assert_eq!(faults_of("crates/a/src/b.rs", "// docs/a.md has it.\n"), [""; 0]);
        assert_eq!(
            faults_of("crates/a/src/b.rs", "\n// See docs/b.md."),
            ["crates/a/src/b.rs:2: there is no page docs/b.md"]
        );
        assert_eq!(faults_of("docs/b.md", "# B"), ["docs/b.md: docs/SUMMARY.md does not list it"]);
    }
}
