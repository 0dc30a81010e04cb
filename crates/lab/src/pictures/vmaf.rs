//! VMAF, if the installed ffmpeg has it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tautline_video::Picture;

/// Returns whether the installed ffmpeg has VMAF.
pub(crate) fn is_installed() -> bool {
    let filters = Command::new("ffmpeg").args(["-v", "error", "-filters"]).output();
    filters.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(" libvmaf "))
}

/// Returns the mean VMAF of `shown` against `captured`; 100 is the best.
pub(crate) fn of(shown: &[Picture], captured: &[Picture]) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let [shown_file, captured_file] =
        ["shown.yuv", "captured.yuv"].map(|name| folder.path().join(name));
    write(&shown_file, shown)?;
    write(&captured_file, captured)?;
    let size = shown.first().map(|picture| format!("{}x{}", picture.width(), picture.height()));
    let size = size.context("no pictures")?;
    let raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", &size, "-i"];
    let log = folder.path().join("vmaf.json");
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error"])
        .args(raw)
        .arg(&shown_file)
        .args(raw)
        .arg(&captured_file)
        .args(["-lavfi", &format!("libvmaf=log_fmt=json:log_path={}", log.display())])
        .args(["-f", "null", "-"])
        .stdin(Stdio::null())
        .output()
        .context("ffmpeg cannot be started")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ffmpeg's libvmaf failed: {words}");
    mean(&std::fs::read_to_string(&log)?).context("libvmaf's log has no mean")
}

fn mean(log: &str) -> Option<f64> {
    let log: serde_json::Value = serde_json::from_str(log).ok()?;
    log["pooled_metrics"]["vmaf"]["mean"].as_f64()
}

fn write(path: &Path, pictures: &[Picture]) -> Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for picture in pictures {
        for plane in [picture.luma(), picture.cb(), picture.cr()] {
            file.write_all(plane)?;
        }
    }
    Ok(file.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs an ffmpeg with libvmaf; make unit runs it where there is one"]
    fn equal_pictures_score_the_best() {
        let pictures = vec![Picture::new(192, 192).unwrap(); 3];
        assert!(of(&pictures, &pictures).unwrap() > 95.0);
    }

    #[test]
    fn the_mean_is_found_in_the_log() {
        let log = r#"{"pooled_metrics": {"vmaf": {"min": 90.1, "mean": 93.25}}}"#;
        assert_eq!(mean(log), Some(93.25));
        assert_eq!(mean("{}"), None);
        assert_eq!(mean("no json"), None);
    }
}
