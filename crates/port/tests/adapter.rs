//! Runs the Python adapter's own tests.

use std::path::Path;
use std::process::Command;

#[test]
fn the_adapter_in_python_passes_its_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../adapters/python");
    let tested = Command::new("python3")
        .args(["-B", "-m", "unittest", "test_adapter"])
        .current_dir(folder)
        .output()
        .expect("python3 is there: ./setup installs it");
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
}
