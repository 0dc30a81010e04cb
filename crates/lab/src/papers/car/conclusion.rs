//! The paper's conclusion: the best transport for the video, and the sender that it asks for.

use anyhow::Result;

use super::transports::{SEEDS_LEAST, drawn_interval, names, said, sure};
use super::videos::{Line, PUBLISHED, Videos, lacking, notes};
use crate::experiment::{Experiment, Findings, Isolation, Outcome, Row, Run, Table};
use crate::notation::number;
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "car-conclusion",
    title: "Transports for the video: quality in time, and its cost",
    source: "[CAR] 5",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run,
};

/// Lists, for each network, the transport with the best picture in time, and those that are better
/// than Tautline without using more of the network.
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
        rows.extend(best(network, IN_TIME));
        rows.extend(best(network, PATIENT));
        let own = network.iter().filter(|line| line.transport.starts_with("tautline"));
        rows.extend(
            own.flat_map(|own| [beaten(network, own, IN_TIME), beaten(network, own, PATIENT)]),
        );
    }
    let mut notes = notes();
    notes.push(
        "`frames timed` is the sender that the paper asks for: over TCP with 4 KB unsent at most, a picture whose 200 ms are over is \
         left out and the next one begun. `streams reset` is the same over QUIC, where what is lost of it is not repeated \
         either. Better means a mean higher by more than .1 dB and the interval of the difference; of fewer than three seeds by \
         the mean alone, which is shown and not judged."
            .to_owned(),
    );
    let (tables, plots) = (vec![table.shown("All videos, by network")], plots(&networks));
    Ok(Outcome::committed(videos.measurement, Findings { tables, plots, rows, notes }))
}

/// A measure of picture quality: its name, and a function from a line to its value in dB with the
/// half width of the value's 95 % confidence interval.
#[derive(Clone, Copy)]
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

    /// Returns whether the paper's Table 3 covers this network.
    fn is_of_table_3(&self) -> bool {
        (self.codec.as_str(), self.loss_percent, self.power_dbm) == ("mpeg2", 1.5, None)
    }

    fn network(&self) -> String {
        match self.power_dbm {
            Some(dbm) => format!("wireless at {dbm} dBm"),
            None => format!("{} % lost, {} ms round trip", self.loss_percent, self.rtt_ms),
        }
    }
}

/// Returns the lines with a better picture than `line` that do not use more of the network. Better
/// is by more than [`LEAST_DB`] and the interval of the difference; the interval is left out if
/// either has fewer than three seeds.
fn better<'a>(network: &[&'a Line], line: &Line, figure: Figure) -> Vec<&'a Line> {
    let (own, own_ci) = (figure.of)(line);
    let is = |other: &&&Line| {
        let (value, ci) = (figure.of)(other);
        // Interval of the difference; none for few seeds.
        let interval = match line.seeds.min(other.seeds) < SEEDS_LEAST {
            true => 0.0,
            false => own_ci.hypot(ci),
        };
        value > own + interval + LEAST_DB
            && other.network_bytes_per_byte <= line.network_bytes_per_byte
    };
    network.iter().filter(is).copied().collect()
}

fn best(network: &[&Line], figure: Figure) -> Option<Row> {
    let of = |line: &&&Line| ((figure.of)(line).0 * 1e4) as i64;
    // Among equals, the one with the fewest bytes.
    let cost = |line: &&&Line| -(line.network_bytes_per_byte * 1e4) as i64;
    let best = network.iter().max_by_key(|line| (of(line), cost(line)))?;
    let what = format!("best, {}, {}, {}", figure.said, best.codec, best.network());
    let (value, ci) = (figure.of)(best);
    let note = format!(
        "{}, {}; {} bytes on the network a byte",
        said(&best.transport),
        sure(ci, best.seeds),
        number(best.network_bytes_per_byte)
    );
    Some(Row::new(what, "dB", value).note(note))
}

/// Returns a row with the number of other transports that have a better picture at no more bytes
/// than `own`; the requirement is none. Not judged if a transport has too few seeds.
fn beaten(network: &[&Line], own: &Line, figure: Figure) -> Row {
    let name = said(&own.transport);
    let better = better(network, own, figure);
    let what = format!(
        "better than {name} at no more bytes, {}, {}, {}",
        figure.said,
        own.codec,
        own.network()
    );
    let value = figure.of;
    let row = Row::new(what, "", better.len() as f64);
    let others = network.iter().filter(|it| it.transport != own.transport).count();
    let cost = format!(
        "{name} {} dB at {} bytes a byte; {others} others",
        number(value(own).0),
        number(own.network_bytes_per_byte)
    );
    let named = |line: &&Line| {
        let bytes = number(line.network_bytes_per_byte);
        format!("{} {} dB at {bytes}", said(&line.transport), number(value(line).0))
    };
    let names: Vec<String> = better.iter().map(named).collect();
    let row = row.note(match names.is_empty() {
        true => cost,
        false => format!("{cost}; better: {}", names.join(", ")),
    });
    if network.iter().any(|line| line.seeds < SEEDS_LEAST) {
        return row;
    }
    row.asked(0.0).at_most(1.0).because(
        "no transport is to have a better picture at the same or fewer bytes, by more than .1 dB and the interval of the \
         difference",
    )
}

/// Plots quality in time over network usage, for each network; the packets' delays are in
/// `car-delay`.
fn plots(networks: &[Vec<&Line>]) -> Vec<Plot> {
    let plot = |(number, network): (usize, &Vec<&Line>)| {
        let first = network[0];
        let title = format!(
            "PSNR within 30 ms over bytes, {}, {}; two links are beyond",
            first.codec,
            first.network()
        );
        // Range for one link; two use about twice as much. Lost packets are not counted: plain UDP
        // has less than it sends.
        let x = Axis::linear("bytes on the network a byte of video").range(0.95, 1.25);
        let y = Axis::linear("PSNR, dB").range(10.0, 50.0);
        let point = |line: &&Line| {
            let at = vec![(line.network_bytes_per_byte, line.psnr_in_time_db)];
            let place = names().position(|name| name.here == line.transport).unwrap_or_default();
            let series = Series::points(said(&line.transport).to_owned(), at).colour(place);
            series.with_intervals(vec![drawn_interval(line.psnr_in_time_ci, line.seeds)])
        };
        let published = PUBLISHED.iter().filter(|_| first.is_of_table_3()).map(|it| {
            let at = network.iter().find(|line| line.transport == it.here);
            at.map(|line| (line.network_bytes_per_byte, it.buffered))
        });
        let published: Vec<(f64, f64)> = published.flatten().collect();
        let mut plot = Plot::new(&format!("conclusion-{number}"), &title, x, y);
        plot = plot.with_all(network.iter().map(point));
        match published.is_empty() {
            true => plot,
            false => {
                plot.with(Series::points("published, 30 ms, at our bytes", published).published())
            }
        }
    };
    networks.iter().enumerate().map(plot).collect()
}

/// Difference of PSNR, in dB, up to which two videos count as equally good: the smallest visible
/// one.
const LEAST_DB: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict;

    fn line(transport: &str, psnr_in_time_db: f64, network_bytes_per_byte: f64) -> Line {
        let text = "transport,codec,loss_percent,rtt_ms,power_dbm,seeds,received_share,psnr_db,psnr_ci,ssim,ssim_ci,\
             frozen_share,psnr_in_time_db,psnr_in_time_ci,ssim_in_time,ssim_in_time_ci,frozen_in_time_share,\
             owd_p50_ms,owd_p99_ms,network_bytes_per_byte\n\
             udp,mpeg2,1.5,20,,3,1,45,0.1,1,0,0,40,0.5,1,0,0,10,20,1.0\n";
        let line: Line =
            csv::Reader::from_reader(text.as_bytes()).deserialize().next().unwrap().unwrap();
        Line { transport: transport.to_owned(), psnr_in_time_db, network_bytes_per_byte, ..line }
    }

    #[test]
    fn only_better_pictures_at_no_more_bytes_beat_tautline() {
        let own = line("tautline", 40.0, 1.1);
        let judged = |others: &[Line]| {
            let network: Vec<&Line> = [&own].into_iter().chain(others).collect();
            beaten(&network, &own, IN_TIME)
        };
        let row =
            judged(&[line("bbr", 42.0, 1.1), line("cubic", 43.0, 1.0), line("udp", 45.0, 1.2)]);
        assert_eq!((row.measured, row.verdict()), (2.0, Verdict::Out));
        assert!(row.note.contains("TCP BBR 42 dB at 1.1, TCP Cubic 43 dB at 1"), "{}", row.note);
        let row = judged(&[line("bbr", 40.7, 1.1), line("mptcp", 45.0, 2.0)]);
        assert_eq!(
            row.verdict(),
            Verdict::Within,
            "within the interval of the difference, or for more: {row:?}"
        );
        let few = Line { seeds: 1, ..line("bbr", 45.0, 1.0) };
        let row = judged(&[few]);
        assert_eq!(
            (row.measured, row.verdict()),
            (1.0, Verdict::Shown),
            "one seed is shown, not judged"
        );
    }
}
