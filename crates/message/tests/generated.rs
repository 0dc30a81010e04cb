//! The committed files are those that `generate/` last wrote, from the present schemas.
//!
//! Compares fingerprints only. `cargo run --manifest-path crates/message/generate/Cargo.toml --
//! --check` runs flatc itself.

use std::fs;
use std::path::Path;

#[path = "../generate/src/fingerprint.rs"]
mod fingerprint;

#[test]
fn generated_code_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [
        "crates/message/schemas",
        "crates/message/src/generated",
        "console/src/message",
        "crates/message/bfbs",
    ];
    let found = fingerprint::list(&root, &folders).unwrap();
    let recorded =
        fs::read_to_string(root.join("crates/message/generate/fingerprints.txt")).unwrap();
    let (flatc, recorded) = recorded.split_once('\n').unwrap();
    assert_eq!(flatc, "flatc 25.12.19");
    assert!(
        found == recorded,
        "run: cargo run --manifest-path crates/message/generate/Cargo.toml\n\
         found:\n{found}\nrecorded:\n{recorded}"
    );
}

#[test]
fn flatc_and_the_crate_that_reads_its_code_are_of_one_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
    assert!(lock.contains("name = \"flatbuffers\"\nversion = \"25.12.19\"\n"));
}
