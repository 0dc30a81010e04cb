//! Builds the codecs in other languages whose tools are installed, and reports what the others
//! lack.
//!
//! `CODEC_X` is empty if X is part of the program; otherwise it contains the reason.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=foreign");
    println!("cargo::rerun-if-changed=schemas");
    println!("cargo::rerun-if-env-changed=PATH");
    let mut linked = false;
    for (codec, feature, build) in CODECS {
        println!("cargo::rustc-check-cfg=cfg({codec})");
        let built = match env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())) {
            Some(_) => build(),
            None => Err(format!("feature {feature}")),
        };
        if built.is_ok() {
            println!("cargo::rustc-cfg={codec}");
            linked |= matches!(*feature, "c" | "cpp");
        }
        let lacks = built.err().unwrap_or_default();
        println!("cargo::rustc-env=CODEC_{}={lacks}", codec.to_uppercase());
    }
    println!("cargo::rustc-check-cfg=cfg(foreign)");
    if linked {
        println!("cargo::rustc-cfg=foreign");
    }
}

/// Success, or the text of what is missing: a tool or library with its Debian package, or a tool's
/// success.
type Built = Result<(), String>;

/// Name, cargo feature, and build function of a codec in another language.
type Codec = (&'static str, &'static str, fn() -> Built);

const CODECS: &[Codec] = &[
    ("colfer", "c", colfer),
    ("lcm", "c", lcm),
    ("fastcdr", "cpp", fast_cdr),
    ("cyclone", "cpp", cyclone),
    ("protobuf", "cpp", protobuf),
    ("colfer_go", "go", colfer_go),
    ("protobuf_java", "java", protobuf_java),
];

fn colfer() -> Built {
    compile("colfer", &["foreign/colfer/Colfer.c".into()], &[])
}

fn lcm() -> Built {
    library("lcm", "liblcm-dev")?;
    let out = directory("lcm");
    let [c, headers] = ["--c-cpath", "--c-hpath"].map(|option| (option, &out));
    let mut generate = Command::new("lcm-gen");
    generate.arg("-c").arg(c.0).arg(c.1).arg(headers.0).arg(headers.1).arg("schemas/lidar.lcm");
    run(generate, "liblcm-bin")?;
    let files = ["info", "point", "cloud"].map(|name| out.join(format!("lidar_{name}_t.c")));
    compile("lcm", &files, &[&out])?;
    link("lcm");
    Ok(())
}

fn fast_cdr() -> Built {
    library("fastcdr", "libfastcdr-dev")?;
    compile("fastcdr", &[], &[])?;
    link("fastcdr");
    Ok(())
}

fn cyclone() -> Built {
    library("ddsc", "cyclonedds-dev")?;
    let out = directory("cyclone");
    let mut generate = Command::new("idlc");
    generate.current_dir(&out).arg(here().join("schemas/lidar.idl"));
    run(generate, "cyclonedds-tools")?;
    compile("cyclone", &[out.join("lidar.c")], &[&out])?;
    link("ddsc");
    Ok(())
}

fn protobuf() -> Built {
    library("protobuf", "libprotobuf-dev")?;
    let out = directory("protobuf");
    let mut generate = Command::new("protoc");
    generate.arg("--cpp_out").arg(&out).args(["-Ischemas", "lidar.proto"]);
    run(generate, "protobuf-compiler")?;
    compile("protobuf", &[out.join("lidar.pb.cc")], &[&out])?;
    link("protobuf");
    Ok(())
}

fn colfer_go() -> Built {
    let program = directory("go").join("colfer");
    let mut go = Command::new("go");
    go.current_dir("foreign/go").args(["build", "-o"]).arg(&program).arg(".");
    // Go's cache is private to this build.
    go.env("GOCACHE", directory("go-cache")).env("GOFLAGS", "-mod=readonly");
    run(go, "golang-go")?;
    println!("cargo::rustc-env=COLFER_GO={}", program.display());
    Ok(())
}

fn protobuf_java() -> Built {
    let library = Path::new("/usr/share/java/protobuf.jar");
    if !library.exists() {
        return Err("Debian's libprotobuf-java".into());
    }
    let (sources, classes) = (directory("java"), directory("java-classes"));
    let mut generate = Command::new("protoc");
    generate.arg("--java_out").arg(&sources).args(["-Ischemas", "lidar.proto"]);
    run(generate, "protobuf-compiler")?;
    let mut javac = Command::new("javac");
    javac.args(["-nowarn", "-d"]).arg(&classes).arg("-cp").arg(library);
    javac
        .arg(sources.join("Lidar.java"))
        .args(["foreign/java/Main.java", "foreign/java/Codec.java"]);
    run(javac, "default-jdk-headless")?;
    let path = env::join_paths([classes.as_path(), library]).map_err(|error| error.to_string())?;
    println!("cargo::rustc-env=PROTOBUF_JAVA={}", path.display());
    Ok(())
}

/// Compiles `foreign/NAME.cpp` and its generated files.
#[cfg(any(feature = "c", feature = "cpp"))]
fn compile(name: &str, generated: &[PathBuf], headers: &[&Path]) -> Built {
    let (c, cpp): (Vec<_>, Vec<_>) =
        generated.iter().partition(|path| path.extension().is_some_and(|end| end == "c"));
    let mut shared = cc::Build::new();
    shared.includes(headers).include("foreign").warnings(false).opt_level(3).cargo_warnings(false);
    let mut adapter = shared.clone();
    adapter.cpp(true).std("c++17").file(format!("foreign/{name}.cpp")).files(cpp);
    let failed = |error: cc::Error| format!("a C++ compiler that builds it: {error}");
    // The adapter comes first in link order: it needs symbols of the other.
    adapter.try_compile(&format!("codec_{name}")).map_err(failed)?;
    if !c.is_empty() {
        shared.files(c).try_compile(&format!("codec_{name}_c")).map_err(failed)?;
    }
    Ok(())
}

#[cfg(not(any(feature = "c", feature = "cpp")))]
fn compile(_: &str, _: &[PathBuf], _: &[&Path]) -> Built {
    Err("features c or cpp".into())
}

/// Checks that the linker finds a library; for a missing one, the compiler returns the bare name.
fn library(name: &str, package: &str) -> Built {
    let file = format!("lib{name}.so");
    let found = Command::new("cc").arg(format!("-print-file-name={file}")).output();
    let found = found.map_err(|_| "a C compiler".to_owned())?;
    match String::from_utf8_lossy(&found.stdout).trim() == file {
        true => Err(format!("Debian's {package}")),
        false => Ok(()),
    }
}

fn link(name: &str) {
    println!("cargo::rustc-link-lib=dylib={name}");
}

/// Runs a tool of the given Debian package.
fn run(mut tool: Command, package: &str) -> Built {
    let name = tool.get_program().to_string_lossy().into_owned();
    match tool.output() {
        Err(_) => Err(format!("{name} (Debian's {package})")),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("{name} to succeed: {}", first_line(&said)))
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns a folder in this build's output, which it creates.
fn directory(name: &str) -> PathBuf {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where")).join(name);
    std::fs::create_dir_all(&out).expect("cargo's own directory can be written");
    out
}

fn here() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where"))
}
