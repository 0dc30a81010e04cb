//! The arrows between crates: which room may use which.

use anyhow::{Context, Result};

/// Names every arrow between crates that [`ARROWS`] does not allow.
pub(crate) fn faults(metadata: &serde_json::Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut faults = Vec::new();
    for package in packages {
        let name = room(package["name"].as_str().context("a package without a name")?);
        let Some(allowed) = ARROWS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to) else {
            faults.push(format!("crate {name} has no entry in xtask's ARROWS"));
            continue;
        };
        for dependency in package["dependencies"].as_array().context("no dependencies")? {
            let Some(to) = dependency["name"].as_str().filter(|d| d.starts_with("tautline")) else {
                continue;
            };
            let for_tests = dependency["kind"].as_str() == Some("dev");
            if !for_tests && !allowed.contains(&room(to)) {
                faults.push(format!("{name} may not depend on {}: see ARCHITECTURE.md", room(to)));
            }
        }
    }
    Ok(faults)
}

fn room(package: &str) -> &str {
    package.strip_prefix("tautline-").unwrap_or(package)
}

/// Which room may use which.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("fec", &[]),
    ("guard", &["units"]),
    ("message", &["units"]),
    ("transport", &["units", "fec"]),
    ("video", &["units"]),
    ("sim", &["units"]),
    ("scenario", &["units", "transport", "sim"]),
    ("testtrack", &["units", "message", "guard", "video"]),
    ("net", &["units", "message", "transport", "sim"]),
    ("quorum", &["units", "message"]),
    ("vehicle", &["units", "guard", "net", "transport", "video", "message"]),
    ("operator", &["units", "net", "transport", "video", "message"]),
    ("switchboard", &["units", "net", "transport", "message"]),
    (
        "lab",
        &[
            "units",
            "fec",
            "message",
            "quorum",
            "transport",
            "scenario",
            "sim",
            "net",
            "operator",
            "vehicle",
            "video",
            "testtrack",
        ],
    ),
    (
        "tautline",
        &[
            "units",
            "fec",
            "guard",
            "message",
            "transport",
            "video",
            "sim",
            "testtrack",
            "net",
            "vehicle",
            "operator",
            "switchboard",
            "quorum",
            "lab",
        ],
    ),
    ("xtask", &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_arrow_is_named() {
        let metadata = serde_json::json!({"packages": [
            {"name": "tautline-fec", "dependencies": [{"name": "tautline-net", "kind": null}]},
            {"name": "tautline-video", "dependencies": [{"name": "tautline-units", "kind": null}]},
        ]});
        let found = faults(&metadata).unwrap();
        assert_eq!(found, ["fec may not depend on net: see ARCHITECTURE.md"]);
    }
}
