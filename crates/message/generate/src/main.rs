//! Generates the code of the message schemas with the matching flatc: Rust, TypeScript, and the
//! binary schemas for MCAP files.
//!
//! `cargo run --manifest-path crates/message/generate/Cargo.toml` writes it; with `-- --check` it
//! writes nothing and fails if the committed files differ. The crate `flatc-fork` builds flatc from
//! source (needs cmake and a C++ compiler).

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

mod fingerprint;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => write(),
        ["--check"] => check(),
        _ => Err("usage: tautline-message-generate [--check]".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Paths from the repository's root and their contents.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn write() -> Result<(), Box<dyn Error>> {
    let root = repository();
    for folder in WRITTEN {
        match fs::remove_dir_all(root.join(folder)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    for (path, bytes) in generate(&root)? {
        let path = root.join(path);
        fs::create_dir_all(path.parent().ok_or("a file without a folder")?)?;
        fs::write(path, bytes)?;
    }
    let list = fingerprint::list(&root, &fingerprinted())?;
    fs::write(root.join(FINGERPRINTS), format!("flatc {FLATC_VERSION}\n{list}"))?;
    Ok(())
}

fn check() -> Result<(), Box<dyn Error>> {
    let root = repository();
    let list = fingerprint::list(&root, &fingerprinted())?;
    let mut stale = Vec::new();
    if fs::read_to_string(root.join(FINGERPRINTS))? != format!("flatc {FLATC_VERSION}\n{list}") {
        stale.push(FINGERPRINTS.to_owned());
    }
    for (path, bytes) in generate(&root)? {
        if fs::read(root.join(&path)).ok().as_ref() != Some(&bytes) {
            stale.push(path.display().to_string());
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not what the schemas produce: {}\nrun: cargo run --manifest-path \
         crates/message/generate/Cargo.toml",
        stale.join(", ")
    )
    .into())
}

fn generate(root: &Path) -> Result<Files, Box<dyn Error>> {
    expect_version()?;
    let scratch = std::env::temp_dir().join(format!("tautline-message-{}", std::process::id()));
    let outcome = generate_in(root, &scratch);
    // Leftover temporary files are harmless.
    let _ = fs::remove_dir_all(&scratch);
    outcome
}

fn generate_in(root: &Path, scratch: &Path) -> Result<Files, Box<dyn Error>> {
    let mut files = Files::new();
    let mut schemas = Vec::new();
    for entry in fs::read_dir(root.join(SCHEMAS))? {
        schemas.push(entry?.path());
    }
    schemas.sort();

    // One run per schema: flatc would otherwise carry one schema's types into the next one's file.
    for schema in &schemas {
        flatc(&["--rust", "--include-prefix", "generated"], &scratch.join("rust"), schema)?;
    }
    for entry in fs::read_dir(scratch.join("rust"))? {
        let entry = entry?;
        // flatc looks for an included schema's types next to its namespace, not within it.
        let text = fs::read_to_string(entry.path())?;
        let text = text.replace("_generated::*;", &format!("_generated::{NAMESPACE}::*;"));
        files.insert(Path::new(RUST).join(entry.file_name()), text.into_bytes());
    }

    for schema in &schemas {
        conform(root, schema)?;
        flatc(
            &["--binary", "--schema", "--bfbs-comments", "--bfbs-builtins"],
            &scratch.join("bfbs"),
            schema,
        )?;
    }
    for entry in fs::read_dir(scratch.join("bfbs"))? {
        let entry = entry?;
        files.insert(Path::new(BFBS).join(entry.file_name()), fs::read(entry.path())?);
    }

    for schema in CONSOLE_SCHEMAS {
        let schema = root.join(SCHEMAS).join(schema);
        flatc(&["--ts", "--ts-omit-entrypoint"], &scratch.join("ts"), &schema)?;
    }
    for entry in fs::read_dir(scratch.join("ts").join(NAMESPACE))? {
        let entry = entry?;
        let text = fs::read_to_string(entry.path())?;
        // The folder represents the namespace.
        let text = text.replace(&format!("'../{NAMESPACE}/"), "'./");
        files.insert(Path::new(TYPESCRIPT).join(entry.file_name()), text.into_bytes());
    }
    Ok(files)
}

/// Fails unless the schema is a compatible later version of the frozen one, if there is one.
fn conform(root: &Path, schema: &Path) -> Result<(), Box<dyn Error>> {
    let frozen = root.join(FROZEN).join(schema.file_name().ok_or("a schema without a name")?);
    if !frozen.exists() {
        return Ok(());
    }
    let status = Command::new(flatc_fork::flatc())
        .args(["--binary", "--schema", "--conform"])
        .arg(&frozen)
        .arg("-o")
        .arg(std::env::temp_dir())
        .arg(schema)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} is not a later version of {}", schema.display(), frozen.display()).into())
    }
}

fn fingerprinted() -> Vec<&'static str> {
    [SCHEMAS].into_iter().chain(WRITTEN).collect()
}

fn flatc(options: &[&str], output: &Path, schema: &Path) -> Result<(), Box<dyn Error>> {
    let status = Command::new(flatc_fork::flatc())
        .args(options)
        .arg("-o")
        .arg(output)
        .arg(schema)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("flatc refuses {}", schema.display()).into())
    }
}

fn expect_version() -> Result<(), Box<dyn Error>> {
    let output = Command::new(flatc_fork::flatc()).arg("--version").output()?;
    let version = String::from_utf8(output.stdout)?;
    if version.trim() == format!("flatc version {FLATC_VERSION}") {
        return Ok(());
    }
    Err(format!("flatc {FLATC_VERSION} is needed, this is {}", version.trim()).into())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Version of the crate `flatbuffers` that reads the generated code.
const FLATC_VERSION: &str = "25.12.19";
const NAMESPACE: &str = "tautline";
const SCHEMAS: &str = "crates/message/schemas";
const RUST: &str = "crates/message/src/generated";
const TYPESCRIPT: &str = "console/src/message";
const BFBS: &str = "crates/message/bfbs";
const WRITTEN: [&str; 3] = [RUST, TYPESCRIPT, BFBS];
/// Schemas of the first version, with which the present ones must be compatible.
const FROZEN: &str = "crates/message/tests/evolution/schemas";
const FINGERPRINTS: &str = "crates/message/generate/fingerprints.txt";
/// Schemas that the browser reads and writes; the control plane is not among them.
const CONSOLE_SCHEMAS: [&str; 10] = [
    "command.fbs",
    "description.fbs",
    "drop_count.fbs",
    "link_action.fbs",
    "operator_status.fbs",
    "rate_cause.fbs",
    "snapshot.fbs",
    "telemetry.fbs",
    "values.fbs",
    "video_feedback.fbs",
];
