//! The complete system as processes of this program: the simulated camera's pictures, sent from a
//! vehicle to an operator over four emulated links.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use super::rig::RATE;
use crate::experiment::{Outcome, Run};
use crate::pictures::clip::{self, Figures};
use crate::pictures::footage::{Footage, Size};

/// Drives for some time and returns the comparison of the received pictures with those sent; if a
/// prerequisite is missing, the outcome of a skipped experiment instead. The last drive of the
/// process is reused for a run of the same seed that is as quick.
///
/// # Errors
/// If a process ends early, or nothing arrives.
pub(super) fn driven(run: &Run<'_>) -> Result<Result<Figures, Outcome>> {
    let mut kept = DRIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let of = (run.quick, run.seed);
    if let Some((_, figures)) = kept.as_ref().filter(|(drive, _)| *drive == of) {
        return Ok(Ok(figures.clone()));
    }
    let figures = drive(run)?;
    if let Ok(figures) = &figures {
        *kept = Some((of, figures.clone()));
    }
    Ok(figures)
}

fn drive(run: &Run<'_>) -> Result<Result<Figures, Outcome>> {
    let program = std::env::current_exe().context("this program's own file is not known")?;
    if program.file_stem().is_none_or(|stem| stem != PROGRAM) {
        return Ok(Err(Outcome::skipped(
            "the program that vehicle, operator and links are processes of",
            "`tautline lab run lte` is it",
        )));
    }
    if Command::new("ffmpeg").arg("-version").stdout(Stdio::null()).status().is_err() {
        return Ok(Err(Outcome::skipped("ffmpeg, which makes a video of it", "`./setup ffmpeg`")));
    }
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let [video, record] = ["seen.mp4", "record"].map(|name| folder.path().join(name));
    let seconds = run.choose(4, 10);
    run.progress(0, 3, "what the camera sees");
    let count = (seconds + BEGINNING) * RATE;
    let footage = Footage::simulated(Size::HD, RATE, count as usize, run.seed)?;
    footage.with_noise(run.seed)?.write(&video)?;
    run.progress(1, 3, "vehicle, links and operator");
    let driven = Command::new(&program)
        .args(["lab", "clip", "--links", "lte-driving", "--seconds", &seconds.to_string()])
        .args(["--seed", &run.seed.to_string(), "--clip"])
        .arg(&video)
        .arg("--record")
        .arg(&record)
        .stdin(Stdio::null())
        .output()
        .context("this program cannot be started anew")?;
    if !driven.status.success() {
        bail!("{}", String::from_utf8_lossy(&driven.stderr).trim_end());
    }
    run.progress(2, 3, "comparison");
    clip::compare(&video, &record).map(Ok)
}

/// Returns notes for the reader of a drive's figures.
pub(super) fn notes() -> Vec<String> {
    vec![
        "Switchboard, guard, car, vehicle, operator and four emulated LTE links while driving (round trip about \
         50 ms; the paper's mean is 46), each a process of this program on this machine: the \
         processors serve both ends and the links."
            .to_owned(),
        "Decompression is openh264's, by the processor's time, not the browser's.".to_owned(),
    ]
}

/// The last drive, keyed by quickness and seed.
static DRIVEN: Mutex<Option<((bool, u64), Figures)>> = Mutex::new(None);
/// File name of this program.
const PROGRAM: &str = "tautline";
/// Seconds for all processes to start and to end.
const BEGINNING: u32 = 6;
