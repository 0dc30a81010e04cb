//! Chromium's decoder, through WebCodecs as on the operator's page.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Returns whether Chromium is installed.
pub(crate) fn is_there() -> bool {
    Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// Decodes streams of equal length. Returns, for each stream after the first, the sum of squared
/// luma differences to the first stream for each picture.
///
/// # Errors
/// If the program cannot be run, or does not show every picture within two minutes.
pub(crate) fn errors(streams: &[Vec<Vec<u8>>]) -> Result<Vec<Vec<u64>>> {
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let page = folder.path().join("page.html");
    // A file: page cannot read other files.
    fs::write(&page, PAGE.replace("STREAMS", &serde_json::to_string(&in_hexadecimal(streams))?))?;
    let mut browser = Command::new(PROGRAM)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .arg("--enable-logging=stderr")
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("chromium cannot be started")?;
    let told = told(&mut browser);
    browser.kill()?;
    browser.wait()?;
    let errors: Vec<Vec<u64>> = serde_json::from_str(&told?)?;
    let wanted = streams.first().map_or(0, Vec::len);
    let is_whole = errors.iter().all(|stream| stream.len() == wanted);
    ensure!(errors.len() + 1 == streams.len() && is_whole, "Chromium's pictures are missing");
    Ok(errors)
}

/// Waits for the result that the page prints to its console, and returns it; an error if the page
/// reports a failure, or ends. The page has its own timeout.
fn told(browser: &mut Child) -> Result<String> {
    let log = BufReader::new(browser.stderr.take().context("it is piped")?);
    let told = log.lines().map_while(Result::ok).find_map(|line| {
        let told = line.split_once(BEGIN)?.1.split_once(END)?.0;
        Some(told.to_owned())
    });
    let told = told.context("Chromium ended before it had decoded everything")?;
    match told.strip_prefix("failed: ") {
        Some(why) => bail!("Chromium says: {why}"),
        None => Ok(told),
    }
}

fn in_hexadecimal(streams: &[Vec<Vec<u8>>]) -> Vec<Vec<String>> {
    let unit = |unit: &Vec<u8>| unit.iter().map(|byte| format!("{byte:02x}")).collect();
    streams.iter().map(|units| units.iter().map(unit).collect()).collect()
}

const PROGRAM: &str = "chromium";
const PAGE: &str = include_str!("chromium.html");
/// Start of the page's result on its console; chromium.html has it too.
const BEGIN: &str = "<<decoded ";
/// End of the page's result on its console; chromium.html has it too.
const END: &str = ">>";
