//! The tables in docs/transports.md and README.md, written from the committed ones.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::expected::{self, LOSSES, RATES};
use crate::summary::{Line, VideoLine};
use crate::transport::Transport;
use crate::video::Codec;

/// Replaces the text between the two markers of a page with `text`.
///
/// # Errors
/// If the page cannot be read or written, or has no markers.
pub(crate) fn put(file: &Path, text: &str) -> Result<()> {
    let page = fs::read_to_string(file).with_context(|| format!("no page {}", file.display()))?;
    let page = replaced(&page, text)
        .with_context(|| format!("{} has no lines {BEGIN} and {END}", file.display()))?;
    fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))
}

fn replaced(page: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{text}\n{END}{after}"))
}

/// Returns the result table: the quality of each transport for the paper's video at its loss. For
/// every network it also lists the best transport, and those better than Tautline at no more bytes.
pub(crate) fn answer(lines: &[VideoLine]) -> String {
    let mut text = String::from(
        "| MPEG-2, 1.5 % lost, 20 ms round trip | PSNR within 30 ms, dB | no limit, dB | p99, ms | bytes a byte | seeds |\n\
         |---|---|---|---|---|---|\n",
    );
    let mut first: Vec<&VideoLine> = lines.iter().filter(|line| is_of_figures(line)).collect();
    first.sort_by(|one, other| other.psnr_in_time_db.total_cmp(&one.psnr_in_time_db));
    for line in first {
        text += &format!(
            "| {} | {} | {} | {:.0} | {:.3} | {} |\n",
            line.transport,
            mean(line.psnr_in_time_db, line.psnr_in_time_ci),
            mean(line.psnr_db, line.psnr_ci),
            line.owd_p99_ms,
            line.network_bytes_per_byte,
            line.seeds
        );
    }
    text += "\nThe best of each network, of several as good the one of the fewest bytes; and who shows a better\n\
             picture than Tautline at no more bytes than it takes, by more than .1 dB and the interval of the\n\
             difference; of fewer than three seeds, which have none, by its mean alone, with a question mark.\n\n\
             | network | best within 30 ms | best, no limit | better than `tautline` | better than `tautline-two` |\n\
             |---|---|---|---|---|\n";
    for network in networks(lines) {
        text += &format!(
            "| {} | {} | {} | {} | {} |\n",
            network_of(network[0]),
            best(&network, IN_TIME),
            best(&network, PATIENT),
            better(&network, Transport::Tautline),
            better(&network, Transport::TautlineTwo)
        );
    }
    text
}

/// Returns the throughput at each rate with a round-trip time of 20 ms, next to the independent
/// measurement.
pub(crate) fn throughput(lines: &[Line]) -> String {
    let mut text = String::from(
        "| kB/s, 20 ms, ours (the other's) | 450 | 700 | 1200 | 2000 | seeds |\n|---|---|---|---|---|---|\n",
    );
    let of = |transport, rate, loss| {
        lines.iter().find(|line| {
            (line.transport, line.rate_kbyte_per_s) == (transport, rate)
                && (line.loss_percent, line.rtt_ms) == (loss, 20)
        })
    };
    for transport in
        Transport::papers().into_iter().chain([Transport::Tautline, Transport::TautlineTwo])
    {
        for loss in LOSSES {
            let found = RATES.map(|rate| of(transport, rate, loss));
            let Some(seeds) = found.iter().flatten().map(|line| line.seeds).min() else { continue };
            let cells = RATES.iter().zip(found).map(|(rate, line)| {
                let ours = line.map_or_else(
                    || "-".to_owned(),
                    |line| format!("{:.0}", line.throughput_kbyte_per_s),
                );
                match expected::throughput(transport, *rate, loss) {
                    Some(theirs) => format!("{ours} ({theirs:.0})"),
                    None => ours,
                }
            });
            let cells: Vec<String> = cells.collect();
            text += &format!("| {transport}, {loss} % | {} | {seeds} |\n", cells.join(" | "));
        }
    }
    text
}

type Figure = fn(&VideoLine) -> (f64, f64);

const IN_TIME: Figure = |line| (line.psnr_in_time_db, line.psnr_in_time_ci);
const PATIENT: Figure = |line| (line.psnr_db, line.psnr_ci);

fn is_of_figures(line: &VideoLine) -> bool {
    (line.codec, line.loss_percent, line.rtt_ms, line.power_dbm) == (Codec::Mpeg2, 1.5, 20, None)
}

fn networks(lines: &[VideoLine]) -> Vec<Vec<&VideoLine>> {
    let mut networks: Vec<Vec<&VideoLine>> = Vec::new();
    for line in lines {
        match networks.iter_mut().find(|network| network_of(network[0]) == network_of(line)) {
            Some(network) => network.push(line),
            None => networks.push(vec![line]),
        }
    }
    networks
}

fn network_of(line: &VideoLine) -> String {
    let codec = match line.codec {
        Codec::Mpeg2 => "MPEG-2",
        Codec::H264 => "H.264",
    };
    match line.power_dbm {
        Some(dbm) => format!("{codec}, wireless at {dbm} dBm"),
        None => format!("{codec}, {} % lost, {} ms", line.loss_percent, line.rtt_ms),
    }
}

fn best(network: &[&VideoLine], figure: Figure) -> String {
    let tenth = |line: &VideoLine| (figure(line).0 * 10.0).round() as i64;
    let cost = |line: &VideoLine| -(line.network_bytes_per_byte * 1e4) as i64;
    let best = network.iter().max_by_key(|line| (tenth(line), cost(line)));
    best.map_or_else(String::new, |line| format!("{} {:.1}", line.transport, figure(line).0))
}

fn better(network: &[&VideoLine], own: Transport) -> String {
    let Some(own) = network.iter().find(|line| line.transport == own) else {
        return "not measured".to_owned();
    };
    let names = |figure: Figure| {
        let is = |other: &&&VideoLine| {
            let difference = figure(other).0 - figure(own).0;
            difference > LEAST_DB + interval(own, other, figure).unwrap_or(0.0)
                && other.network_bytes_per_byte <= own.network_bytes_per_byte
        };
        let name = |other: &&VideoLine| {
            let mark = if interval(own, other, figure).is_none() { "?" } else { "" };
            format!("{}{mark}", other.transport)
        };
        let names: Vec<String> = network.iter().filter(is).map(name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!("30 ms: {}; no limit: {}", names(IN_TIME), names(PATIENT))
}

/// Returns half the width of the confidence interval of the difference; `None` if either line has
/// too few seeds.
fn interval(one: &VideoLine, other: &VideoLine, figure: Figure) -> Option<f64> {
    let enough = one.seeds.min(other.seeds) >= SEEDS_LEAST;
    enough.then(|| figure(one).1.hypot(figure(other).1))
}

fn mean(value: f64, half_width: f64) -> String {
    if half_width < 0.05 { format!("{value:.1}") } else { format!("{value:.1} ± {half_width:.1}") }
}

/// Smallest difference in PSNR that counts, in dB, because it is visible.
const LEAST_DB: f64 = 0.1;
/// Minimum seeds of a comparison: with two, the interval is as wide as twelve deviations.
const SEEDS_LEAST: usize = 3;
const BEGIN: &str = "<!-- written by make transports -->";
const END: &str = "<!-- end -->";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept;

    #[test]
    fn the_pages_say_what_the_committed_tables_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let car = root.join("crates/lab/src/papers/car");
        let videos = kept::read::<VideoLine>(&car.join("videos.csv")).unwrap();
        let lines = kept::read::<Line>(&car.join("transports.csv")).unwrap();
        for (file, text) in [
            ("docs/transports.md", answer(&videos)),
            ("bench/testbed/README.md", throughput(&lines)),
        ] {
            let page = fs::read_to_string(root.join(file)).unwrap();
            let anew = replaced(&page, &text).unwrap();
            assert!(
                page == anew,
                "{file} is of other tables: make transports TABLE=1 writes it anew"
            );
        }
    }

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter");
        assert_eq!(
            replaced(&page, "new\n").unwrap(),
            format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter")
        );
        assert_eq!(replaced("no marks", "new"), None);
    }
}
