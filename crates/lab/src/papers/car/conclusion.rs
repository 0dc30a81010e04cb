//! The paper's conclusion: what should carry the video, and what the sender that it asks for does.

use anyhow::Result;

use super::transports::{said, sure};
use super::videos::{Line, Videos, lacking, notes};
use crate::experiment::{Experiment, Findings, Outcome, Row, Run, Table};
use crate::notation::number;
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "car-conclusion",
    title: "What should carry the video: quality in time, and what it costs",
    source: "[CAR] 5",
    run,
};

/// Shows for each network which transport has the best picture in time, and where one that takes no more of the
/// network is better than Tautline.
fn run(_: &Run<'_>) -> Result<Outcome> {
    let videos = Videos::read()?;
    let lines = videos.lines(|_| true);
    if lines.is_empty() {
        return Ok(lacking());
    }
    let columns = [
        "codec",
        "network",
        "transport",
        "psnr_30_ms_db",
        "psnr_db",
        "frozen_30_ms_share",
        "owd_p99_ms",
        "network_bytes_per_byte",
        "better_at_no_more_bytes_30_ms",
        "better_at_no_more_bytes",
    ];
    let mut table = Table::new("conclusion", columns);
    let mut rows = Vec::new();
    let mut networks: Vec<Vec<&Line>> = Vec::new();
    for line in lines {
        match networks.iter_mut().find(|network| network[0].shares_network_with(line)) {
            Some(network) => network.push(line),
            None => networks.push(vec![line]),
        }
    }
    for network in &networks {
        for line in network {
            let names = |better: Vec<&Line>| {
                let names: Vec<&str> = better.iter().map(|it| said(&it.transport)).collect();
                names.join("; ")
            };
            table.push([
                line.codec.as_str().into(),
                line.network().into(),
                said(&line.transport).into(),
                line.psnr_in_time_db.into(),
                line.psnr_db.into(),
                line.frozen_in_time_share.into(),
                line.owd_p99_ms.into(),
                line.network_bytes_per_byte.into(),
                names(better(network, line, IN_TIME)).into(),
                names(better(network, line, PATIENT)).into(),
            ]);
        }
        rows.extend(best(network));
        let own = network.iter().filter(|line| line.transport.starts_with("tautline"));
        rows.extend(
            own.flat_map(|own| [beaten(network, own, IN_TIME), beaten(network, own, PATIENT)]),
        );
    }
    let mut notes = notes();
    notes.push(
        "`frames timed` is the sender that the paper asks for: over TCP with 4 KB unsent at most, a picture whose 200 ms are over is \
         left out and the next one begun. `streams reset` is the same over QUIC, where what is lost of it is not repeated \
         either. Better means a mean higher by more than both intervals together."
            .to_owned(),
    );
    let (tables, plots) = (vec![table], vec![plot(&videos)]);
    Ok(Outcome::committed(videos.measurement, Findings { tables, plots, rows, notes }))
}

/// A figure of quality: its name, its value and its interval.
struct Figure {
    said: &'static str,
    of: fn(&Line) -> (f64, f64),
}

const IN_TIME: Figure =
    Figure { said: "30 ms", of: |line| (line.psnr_in_time_db, line.psnr_in_time_ci) };
const PATIENT: Figure = Figure { said: "no limit", of: |line| (line.psnr_db, line.psnr_ci) };

impl Line {
    fn shares_network_with(&self, other: &Self) -> bool {
        (&self.codec, self.power_dbm, self.rtt_ms) == (&other.codec, other.power_dbm, other.rtt_ms)
            && self.loss_percent == other.loss_percent
    }

    fn network(&self) -> String {
        match self.power_dbm {
            Some(dbm) => format!("wireless at {dbm} dBm"),
            None => format!("{} % lost, {} ms round trip", self.loss_percent, self.rtt_ms),
        }
    }
}

/// Returns those with a better picture than `line`, beyond chance, that take no more of the network.
fn better<'a>(network: &[&'a Line], line: &Line, figure: Figure) -> Vec<&'a Line> {
    let (own, own_ci) = (figure.of)(line);
    let is = |other: &&&Line| {
        let (value, ci) = (figure.of)(other);
        value > own + own_ci + ci + LEAST_DB
            && other.network_bytes_per_byte <= line.network_bytes_per_byte
    };
    network.iter().filter(is).copied().collect()
}

fn best(network: &[&Line]) -> Option<Row> {
    let of = |line: &&&Line| (line.psnr_in_time_db * 1e4) as i64;
    let best = network.iter().max_by_key(of)?;
    let what = format!("best in 30 ms, {}, {}", best.codec, best.network());
    let note = format!(
        "{}, {}; {} bytes on the network a byte",
        said(&best.transport),
        sure(best.psnr_in_time_ci, best.seeds),
        number(best.network_bytes_per_byte)
    );
    Some(Row::new(what, "dB", best.psnr_in_time_db).note(note))
}

fn beaten(network: &[&Line], own: &Line, figure: Figure) -> Row {
    let name = said(&own.transport);
    let what = format!("{name}, {}, {}, {}", figure.said, own.codec, own.network());
    let row = Row::new(what, "dB", (figure.of)(own).0);
    let cost = format!("{} bytes a byte", number(own.network_bytes_per_byte));
    let value = figure.of;
    let better = better(network, own, figure);
    if better.is_empty() {
        return row.note(format!("none is better at no more bytes; {cost}"));
    }
    let name = |line: &&Line| {
        let bytes = number(line.network_bytes_per_byte);
        format!("{} {} dB at {bytes}", said(&line.transport), number(value(line).0))
    };
    let names: Vec<String> = better.iter().map(name).collect();
    row.note(format!("{cost}; better at no more: {}", names.join(", ")))
}

/// Draws quality in time over what it takes of the network, at the paper's loss.
fn plot(videos: &Videos) -> Plot {
    let title = "PSNR within 30 ms over bytes on the network, MPEG-2, 1.5 % lost, 20 ms round trip";
    let [x, y] = [Axis::linear("bytes on the network a byte"), Axis::linear("PSNR, dB")];
    let lines = videos.lines(|line| {
        (line.codec.as_str(), line.rtt_ms, line.power_dbm) == ("mpeg2", 20, None)
            && line.loss_percent == 1.5
    });
    let point = |line: &&Line| {
        let at = vec![(line.network_bytes_per_byte, line.psnr_in_time_db)];
        Series::points(said(&line.transport).to_owned(), at)
    };
    Plot::new("conclusion", title, x, y).with_all(lines.iter().map(point))
}

/// Less is not seen.
const LEAST_DB: f64 = 0.1;
