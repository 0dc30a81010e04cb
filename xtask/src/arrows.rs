//! The dependencies between crates that the table of rooms in ARCHITECTURE.md permits.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// Permitted dependencies of each room, by the names of rooms, for instance "units".
pub(crate) type Arrows<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// Parses the permitted dependencies from ARCHITECTURE.md's table of rooms: its last column, by its
/// first. "-" stands for none and "all" for every room.
///
/// # Errors
/// If the page has no such table.
pub(crate) fn allowed(architecture: &str) -> Result<Arrows<'_>> {
    let rows = architecture.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let rooms: Vec<Vec<&str>> = cells.collect();
    let mut arrows = Arrows::new();
    for cells in &rooms {
        let [room, .., uses] = cells[..] else { continue };
        let uses = match uses {
            "-" => Vec::new(),
            "all" => rooms.iter().map(|cells| cells[0]).collect(),
            // A room may be followed by a restriction in parentheses.
            some => some.split(',').filter_map(|used| used.split_whitespace().next()).collect(),
        };
        arrows.insert(room, uses);
    }
    (!arrows.is_empty()).then_some(arrows).context("ARCHITECTURE.md has no table of rooms")
}

/// Lists dependencies that `allowed` lacks, permitted ones that are unused, crates without a row,
/// and rows without a crate. Dependencies of tests alone are permitted, but count as used.
///
/// # Errors
/// If `metadata` is not in the form of `cargo metadata`.
pub(crate) fn faults(metadata: &serde_json::Value, allowed: &Arrows<'_>) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut faults = Vec::new();
    let mut rooms = Vec::new();
    for package in packages {
        let name = room(package["name"].as_str().context("a package without a name")?);
        rooms.push(name);
        let uses = match (allowed.get(name), name) {
            (Some(uses), _) => uses.as_slice(),
            (None, "xtask") => &[],
            // The testbed is not a room: no crate depends on it, and it may use any.
            (None, "testbed") => continue,
            (None, _) => {
                faults.push(format!("crate {name} has no row in ARCHITECTURE.md"));
                continue;
            }
        };
        let mut used = Vec::new();
        for dependency in package["dependencies"].as_array().context("no dependencies")? {
            let Some(to) = dependency["name"].as_str().filter(|d| d.starts_with("tautline")) else {
                continue;
            };
            let for_tests = dependency["kind"].as_str() == Some("dev");
            if !for_tests && !uses.contains(&room(to)) {
                faults.push(format!("{name} may not depend on {}: see ARCHITECTURE.md", room(to)));
            }
            used.push(room(to));
        }
        // A room that may use all may leave some unused.
        let in_vain = uses.iter().filter(|to| !uses.contains(&name) && !used.contains(to));
        faults.extend(in_vain.map(|to| format!("ARCHITECTURE.md: {name} does not use {to}")));
    }
    let gone = allowed.keys().filter(|room| !rooms.contains(room));
    faults.extend(gone.map(|room| format!("ARCHITECTURE.md has a row {room}, which is no crate")));
    Ok(faults)
}

/// Returns the folder name of a crate; that of the binary is cli.
fn room(package: &str) -> &str {
    match package {
        "tautline" => "cli",
        package => package.strip_prefix("tautline-").unwrap_or(package),
    }
}

/// Beginning of the header of the table of rooms.
const HEAD: &str = "| room |";

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "
| room | owns | may use |
|---|---|---|
| units | bit/s | - |
| fec | codes | units |
| net | sockets | units, fec (kernels only) |
| old | dust | - |
| cli | the binary | all |

| # | stage |";

    #[test]
    fn the_table_lists_the_allowed_dependencies() {
        let arrows = allowed(TABLE).unwrap();
        assert_eq!(arrows["units"], Vec::<&str>::new());
        assert_eq!(arrows["net"], ["units", "fec"]);
        assert_eq!(arrows["cli"], ["units", "fec", "net", "old", "cli"]);
        assert_eq!(arrows.len(), 5);
        assert!(allowed("no table").is_err());
    }

    #[test]
    fn forbidden_dependencies_and_wrong_rows_are_named() {
        let metadata = serde_json::json!({"packages": [
            {"name": "tautline-units", "dependencies": []},
            {"name": "tautline-fec", "dependencies": [{"name": "tautline-net", "kind": null}]},
            {"name": "tautline-net", "dependencies": [{"name": "tautline-units", "kind": null}]},
            {"name": "tautline", "dependencies": [{"name": "tautline-fec", "kind": null}]},
            {"name": "tautline-new", "dependencies": []},
            {"name": "xtask", "dependencies": [{"name": "tautline-fec", "kind": "dev"}]},
            {"name": "testbed", "dependencies": [{"name": "tautline-net", "kind": null}]},
        ]});
        let found = faults(&metadata, &allowed(TABLE).unwrap()).unwrap();
        let expected = [
            "fec may not depend on net: see ARCHITECTURE.md",
            "ARCHITECTURE.md: fec does not use units",
            "ARCHITECTURE.md: net does not use fec",
            "crate new has no row in ARCHITECTURE.md",
            "ARCHITECTURE.md has a row old, which is no crate",
        ];
        assert_eq!(found, expected);
    }
}
