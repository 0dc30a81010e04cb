//! A clip through the whole system, and its recording in another decoder.

use std::path::Path;
use std::process::{Command, Output};

use crate::tries::tried;

/// Runs a program to its end.
fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}; ./setup ffmpeg installs ffmpeg"))
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("a plain path").to_owned()
}

/// Returns the number after `label` in the printed figures.
fn figure(figures: &str, label: &str) -> f64 {
    let line = figures.lines().find_map(|line| line.strip_prefix(label));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {label}: {figures}"))
}

#[test]
fn a_recording_over_a_clean_link_equals_the_clip_and_plays() {
    tried(|| {
        records_the_clip("1280x720", 1280, [112, 128, 112, 128, 112, 128]);
    });
}

/// Records a clip of 500 rows: the last 4 are no complete macroblock, and the last strip contains
/// exactly them all the same.
#[test]
fn a_clip_of_another_size_comes_through_at_its_own() {
    tried(|| {
        records_the_clip("640x500", 640, [80, 80, 96, 80, 80, 84]);
    });
}

fn records_the_clip(size: &str, width: usize, heights: [usize; 6]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clip = path(folder.path(), "clip.mp4");
    let source = format!("testsrc2=size={size}:rate=12:duration=2");
    let encode = ["-v", "error", "-f", "lavfi", "-i", &source, "-pix_fmt", "yuv420p", &clip];
    let made = run("ffmpeg", &encode);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    let record = path(folder.path(), "record");
    let lab = [
        "lab",
        "clip",
        "--clip",
        &clip,
        "--links",
        "direct",
        "--seconds",
        "5",
        "--record",
        &record,
    ];
    let measured = run(env!("CARGO_BIN_EXE_tautline"), &lab);
    let words = String::from_utf8_lossy(&measured.stderr);
    assert!(measured.status.success(), "{words}");
    let figures = String::from_utf8_lossy(&measured.stdout);
    println!("{figures}");
    // A busy machine may skip pictures; those it sends must arrive, and look like the originals.
    // Twelve pictures per second leave half of its time free.
    assert!(figure(&figures, "slices in time") > 50.0, "{figures}");
    // All pictures on time have a mean of 52 dB; with half of the slices late, about 35 dB remain.
    assert!(figure(&figures, "luma PSNR, mean") > 35.0, "{figures}");

    for (strip, height) in heights.into_iter().enumerate() {
        let file = path(Path::new(&record), &format!("strip-{strip}.h264"));
        let decoded = run("ffmpeg", &["-v", "error", "-i", &file, "-f", "null", "-"]);
        let complaints = String::from_utf8_lossy(&decoded.stderr);
        assert!(decoded.status.success() && complaints.is_empty(), "{file}: {complaints}");
        let entries = ["-v", "error", "-count_frames", "-show_entries"];
        let stream = ["stream=codec_name,width,height,nb_read_frames", "-of", "csv=p=0", &file];
        let probed = run("ffprobe", &[&entries[..], &stream[..]].concat());
        let probed = String::from_utf8_lossy(&probed.stdout);
        let (format, pictures) = probed.trim().rsplit_once(',').expect("four fields");
        assert_eq!(format, format!("h264,{width},{height}"));
        assert!(pictures.parse::<u32>().expect("a count") > 25, "{probed}");
    }
}
