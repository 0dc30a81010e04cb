//! Compiles the shim between Rust and libx264 if the feature `x264` is enabled.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "x264")]
    {
        println!("cargo::rerun-if-changed=src/pictures/x264/shim.c");
        cc::Build::new()
            .file("src/pictures/x264/shim.c")
            .warnings(true)
            .compile("tautline_x264_shim");
        println!("cargo::rustc-link-lib=x264");
    }
}
