//! Finds Debian's ISA-L, links it, and passes its version to the program.

use std::path::Path;
use std::process::{Command, exit};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let library = Command::new("cc").arg("-print-file-name=libisal.so").output();
    let library = library.map(|found| String::from_utf8_lossy(&found.stdout).trim().to_owned());
    // If the library is missing, the compiler returns the bare name.
    let Some(library) = library.ok().filter(|path| Path::new(path).is_absolute()) else {
        println!("cargo::error=ISA-L is missing: run ./setup isal (Debian's package libisal-dev)");
        exit(1);
    };
    println!("cargo::rerun-if-changed={library}");
    println!("cargo::rustc-link-lib=dylib=isal");
    // The link target contains the version: libisal.so -> libisal.so.2.0.30 is release 2.30.
    let target = std::fs::canonicalize(&library).ok();
    let file = target.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let version = file.as_deref().and_then(|name| name.strip_prefix("libisal.so.2.0."));
    let version = version.map_or_else(|| "of unknown version".to_owned(), |n| format!("2.{n}"));
    println!("cargo::rustc-env=ISAL_VERSION={version}");
}
