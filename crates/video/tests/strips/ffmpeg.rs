//! Checks of streams with ffmpeg.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::process::Command;

/// Decodes `stream` with ffmpeg, and asserts that it prints nothing and returns `pictures`
/// pictures.
pub(crate) fn check(stream: &[u8], pictures: usize) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("strip.h264");
    std::fs::write(&file, stream).unwrap();
    let run = |before: &[&str], after: &[&str]| {
        let output = Command::new("ffmpeg")
            .args(["-v", "error"])
            .args(before)
            .arg("-i")
            .arg(&file)
            .args(after)
            .output()
            .expect("needs ffmpeg: ./setup ffmpeg");
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        output.stdout
    };
    run(&[], &["-f", "null", "-"]);
    let low_delay = ["-flags", "low_delay", "-threads", "1"];
    let lines = run(&low_delay, &["-fps_mode", "passthrough", "-f", "framecrc", "-"]);
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(lines.lines().filter(|line| !line.starts_with('#')).count(), pictures);
}
