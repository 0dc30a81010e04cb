//! Table 3 and Fig. 5: video quality by each transport.

use anyhow::Result;
use serde::Deserialize;

use super::transports::{drawn_interval, names, ordered, said, sure};
use crate::experiment::{Experiment, Findings, Isolation, Measurement, Outcome, Row, Run, Table};
use crate::notation::number;
use crate::plot::{Axis, Plot, Series};

pub(crate) const TABLE_3: Experiment = Experiment {
    key: "car-table-3",
    title: "PSNR of a video by each transport, on a wire and wireless",
    source: "[CAR] Table 3",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run: table_3,
};

/// Compares the paper's twelve figures for a wire and its six for a wireless network with ours.
fn table_3(_: &Run<'_>) -> Result<Outcome> {
    let videos = Videos::read()?;
    let lines = videos.lines(|line| {
        line.codec == PAPERS_CODEC && line.loss_percent == PAPERS_LOSS && line.power_dbm.is_none()
    });
    if lines.is_empty() {
        return Ok(lacking());
    }
    let mut rows = Vec::new();
    for line in &lines {
        let Line { transport, rtt_ms, seeds, .. } = line;
        let published = PUBLISHED.iter().find(|it| it.here == transport);
        for (limit, measured, ci, published) in [
            ("no limit", line.psnr_db, line.psnr_ci, published.map(|it| it.wire)),
            ("30 ms", line.psnr_in_time_db, line.psnr_in_time_ci, published.map(|it| it.buffered)),
        ] {
            let what = format!("{}, {limit}, {rtt_ms} ms round trip", said(transport));
            let row = Row::new(what, "dB", measured);
            let row = row.note(sure(ci, *seeds));
            rows.push(published.map_or(row.clone(), |published| row.published(published)));
        }
    }
    rows.extend(wireless(&videos));
    for rtt_ms in videos.rtts() {
        rows.extend(orders(&videos, rtt_ms));
        rows.extend(moved(&videos, rtt_ms));
    }
    rows.extend(wireless_orders(&videos));
    let tables = vec![table(&videos)];
    let plots = vec![
        published_plot(&videos),
        plot(&videos, "psnr", "PSNR within 30 ms, dB", |it| {
            (it.psnr_in_time_db, it.psnr_in_time_ci)
        }),
    ];
    let mut notes = notes();
    notes.extend(ODDITIES.map(str::to_owned));
    Ok(Outcome::committed(videos.measurement, Findings { tables, plots, rows, notes }))
}

pub(crate) const FIG_5: Experiment = Experiment {
    key: "car-fig-5",
    title: "SSIM of a video by each transport",
    source: "[CAR] Fig. 5",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run: fig_5,
};

/// Shows the structural similarity at every loss; the paper's figure has no readable numbers.
fn fig_5(_: &Run<'_>) -> Result<Outcome> {
    let videos = Videos::read()?;
    let lines = videos.lines(|line| line.codec == PAPERS_CODEC && line.power_dbm.is_none());
    if lines.is_empty() {
        return Ok(lacking());
    }
    let mut rows = Vec::new();
    for line in &lines {
        let Line { transport, loss_percent, rtt_ms, seeds, .. } = line;
        let place = format!("{}, {loss_percent} % lost, {rtt_ms} ms", said(transport));
        let (ssim, in_time) = (line.ssim, line.ssim_in_time);
        let note = |ci: f64, frozen: f64| {
            format!("{}; {} % of the pictures frozen", sure(ci, *seeds), number(frozen * 100.0))
        };
        rows.push(
            Row::new(format!("{place}, no limit"), "", ssim)
                .note(note(line.ssim_ci, line.frozen_share)),
        );
        rows.push(
            Row::new(format!("{place}, 30 ms"), "", in_time)
                .note(note(line.ssim_in_time_ci, line.frozen_in_time_share)),
        );
    }
    let tables = vec![table(&videos)];
    let plots = vec![
        plot(&videos, "ssim", "SSIM, no limit", |it| (it.ssim, it.ssim_ci)),
        plot(&videos, "ssim-30-ms", "SSIM, play-out limit of 30 ms", |it| {
            (it.ssim_in_time, it.ssim_in_time_ci)
        }),
    ];
    Ok(Outcome::committed(videos.measurement, Findings { tables, plots, rows, notes: notes() }))
}

/// All lines of the testbed's committed table of videos.
pub(super) struct Videos {
    lines: Vec<Line>,
    pub(super) measurement: Measurement,
}

/// One transport, codec, loss and round-trip time: means over seeds, and half widths of the 95 %
/// confidence intervals. `in_time` is with a play-out limit of 30 ms after the minimum one-way
/// delay.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Line {
    pub(super) transport: String,
    pub(super) codec: String,
    pub(super) loss_percent: f64,
    pub(super) rtt_ms: u64,
    /// Received power in the wireless network, which has its own losses and delays; `None` on a
    /// wire.
    pub(super) power_dbm: Option<i64>,
    pub(super) seeds: u64,
    pub(super) received_share: f64,
    pub(super) psnr_db: f64,
    pub(super) psnr_ci: f64,
    pub(super) ssim: f64,
    pub(super) ssim_ci: f64,
    pub(super) frozen_share: f64,
    pub(super) psnr_in_time_db: f64,
    pub(super) psnr_in_time_ci: f64,
    pub(super) ssim_in_time: f64,
    pub(super) ssim_in_time_ci: f64,
    pub(super) frozen_in_time_share: f64,
    pub(super) owd_p50_ms: f64,
    pub(super) owd_p99_ms: f64,
    pub(super) network_bytes_per_byte: f64,
}

impl Videos {
    /// Reads the committed table.
    ///
    /// # Errors
    /// If it is malformed.
    pub(super) fn read() -> Result<Self> {
        let (measurement, lines) = Measurement::read(FILE, "make transports", MADE, MEASURED)?;
        // Measured in virtual time.
        Ok(Self { lines, measurement: measurement.reproducible() })
    }

    /// Returns a transport's line for the paper's codec on a wire with the paper's loss; `None` if
    /// it was not measured.
    fn wire(&self, transport: &str, rtt_ms: u64) -> Option<&Line> {
        self.lines.iter().find(|line| {
            (line.transport.as_str(), line.codec.as_str()) == (transport, PAPERS_CODEC)
                && (line.loss_percent, line.rtt_ms) == (PAPERS_LOSS, rtt_ms)
                && line.power_dbm.is_none()
        })
    }

    /// Returns a transport's line for the paper's codec in the paper's wireless network; `None` if
    /// it was not measured.
    fn air(&self, transport: &str) -> Option<&Line> {
        self.lines.iter().find(|line| {
            (line.transport.as_str(), line.codec.as_str()) == (transport, PAPERS_CODEC)
                && line.power_dbm == Some(PAPERS_POWER_DBM)
        })
    }

    /// Returns the round-trip times measured at the paper's loss, the shortest first.
    fn rtts(&self) -> Vec<u64> {
        let is = |line: &&Line| line.power_dbm.is_none() && line.loss_percent == PAPERS_LOSS;
        let rtts = self.lines.iter().filter(is).map(|line| line.rtt_ms);
        rtts.collect::<std::collections::BTreeSet<u64>>().into_iter().collect()
    }

    /// Returns the lines that satisfy `is`, in the order of the table.
    pub(super) fn lines(&self, is: impl Fn(&Line) -> bool) -> Vec<&Line> {
        self.lines.iter().filter(|line| is(line)).collect()
    }
}

/// Returns the outcome of an experiment that needs videos, if none is committed.
pub(super) fn lacking() -> Outcome {
    Outcome::skipped(
        "the committed measurement has no video",
        "`make transports` measures it, in hours; it takes up where it stopped.",
    )
}

fn table(videos: &Videos) -> Table {
    let columns = [
        "transport",
        "codec",
        "loss_percent",
        "rtt_ms",
        "power_dbm",
        "seeds",
        "received_share",
        "psnr_db",
        "ssim",
        "frozen_share",
        "psnr_30_ms_db",
        "ssim_30_ms",
        "frozen_30_ms_share",
        "owd_p50_ms",
        "owd_p99_ms",
        "network_bytes_per_byte",
    ];
    let mut table = Table::new("videos", columns);
    for line in videos.lines(|_| true) {
        table.push([
            said(&line.transport).into(),
            line.codec.as_str().into(),
            line.loss_percent.into(),
            line.rtt_ms.into(),
            line.power_dbm.map(|dbm| dbm as f64).into(),
            line.seeds.into(),
            line.received_share.into(),
            line.psnr_db.into(),
            line.ssim.into(),
            line.frozen_share.into(),
            line.psnr_in_time_db.into(),
            line.ssim_in_time.into(),
            line.frozen_in_time_share.into(),
            line.owd_p50_ms.into(),
            line.owd_p99_ms.into(),
            line.network_bytes_per_byte.into(),
        ]);
    }
    table
}

/// Returns the rows of the wireless network at -35 dBm with cross traffic.
fn wireless(videos: &Videos) -> Vec<Row> {
    let is = |line: &Line| line.codec == PAPERS_CODEC && line.power_dbm == Some(PAPERS_POWER_DBM);
    let mut rows = Vec::new();
    for line in videos.lines(is) {
        let published = PUBLISHED.iter().find(|it| it.here == line.transport);
        let what = |limit| format!("{}, wireless at -35 dBm, {limit}", said(&line.transport));
        let row = Row::new(what("no limit"), "dB", line.psnr_db);
        let row = row.note(sure(line.psnr_ci, line.seeds));
        rows.push(published.map_or(row.clone(), |published| row.published(published.wireless)));
        let row = Row::new(what("30 ms"), "dB", line.psnr_in_time_db);
        rows.push(row.note(sure(line.psnr_in_time_ci, line.seeds)));
    }
    rows
}

/// Returns a row with a transport's figure less that of UDP, each given with its published value.
/// It is judged only by the sign of the paper's difference, which is of another video.
fn order(place: &str, one: (&Line, f64), udp: (&Line, f64), pick: fn(&Line) -> (f64, f64)) -> Row {
    let ((line, published), (udp, udp_published)) = (one, udp);
    let ((value, ci), (udp_value, udp_ci)) = (pick(line), pick(udp));
    let what = format!("{} less UDP, {place}", said(&line.transport));
    let difference = published - udp_published;
    let row = Row::new(what, "dB", value - udp_value).published(difference);
    let paper = "the paper's own difference, of another video, has that sign";
    ordered(row, ci + udp_ci, line.seeds.min(udp.seeds), difference, paper)
}

fn orders(videos: &Videos, rtt_ms: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let Some(udp) = videos.wire("udp", rtt_ms) else { return rows };
    for it in &PUBLISHED[1..] {
        let Some(line) = videos.wire(it.here, rtt_ms) else { continue };
        let place = |limit: &str| format!("{limit}, {rtt_ms} ms round trip");
        let [one, other] = [PUBLISHED[0].wire, PUBLISHED[0].buffered];
        let patient = |line: &Line| (line.psnr_db, line.psnr_ci);
        let in_time = |line: &Line| (line.psnr_in_time_db, line.psnr_in_time_ci);
        rows.push(order(&place("no limit"), (line, it.wire), (udp, one), patient));
        rows.push(order(&place("30 ms"), (line, it.buffered), (udp, other), in_time));
    }
    rows
}

fn wireless_orders(videos: &Videos) -> Vec<Row> {
    let mut rows = Vec::new();
    let Some(udp) = videos.air("udp") else { return rows };
    for it in &PUBLISHED[1..] {
        let Some(line) = videos.air(it.here) else { continue };
        let patient = |line: &Line| (line.psnr_db, line.psnr_ci);
        let place = "wireless at -35 dBm, no limit";
        rows.push(order(place, (line, it.wireless), (udp, PUBLISHED[0].wireless), patient));
    }
    rows
}

/// Returns a row for each measured transport of the paper with the change of its PSNR by a limit of
/// 30 ms. In the paper the limit changes only TCP's figures, and improves them.
fn moved(videos: &Videos, rtt_ms: u64) -> Vec<Row> {
    let rows = PUBLISHED.iter().filter_map(|it| {
        let line = videos.wire(it.here, rtt_ms)?;
        let what = format!("{}: what 30 ms move, {rtt_ms} ms round trip", said(it.here));
        let row = Row::new(what, "dB", line.psnr_in_time_db - line.psnr_db);
        let row = row.published(it.buffered - it.wire);
        let note = "the paper's other figure is without a buffer, ours without a limit: one cannot move up here";
        let row = row.note(note);
        Some(match it.here {
            "udp" => row.by_construction("nothing of UDP comes late over a wire without a queue"),
            _ => row,
        })
    });
    rows.collect()
}

/// Plots the paper's eighteen figures next to ours, at a round-trip time of 20 ms.
fn published_plot(videos: &Videos) -> Plot {
    let [x, y] = [Axis::linear("").range(0.0, 7.0), Axis::linear("PSNR, dB")];
    let title = "Table 3: 1 UDP, 2 Reno, 3 large windows, 4 Westwood, 5 DCCP, 6 SCTP";
    let bars = |label: &str, of: &dyn Fn(&Published) -> Option<f64>| {
        let at = |(place, it): (usize, &Published)| Some((place as f64 + 1.0, of(it)?));
        Series::bars(label, PUBLISHED.iter().enumerate().filter_map(at).collect())
    };
    let wire = |it: &Published| videos.wire(it.here, RTT_MS);
    let series = [
        bars("wire", &|it| Some(wire(it)?.psnr_db)).colour(0),
        bars("wire, 30 ms", &|it| Some(wire(it)?.psnr_in_time_db)).colour(2),
        bars("wireless", &|it| Some(videos.air(it.here)?.psnr_db)).colour(4),
        bars("wire, published", &|it| Some(it.wire)).published(),
        bars("30 ms, published", &|it| Some(it.buffered)).published(),
        bars("wireless, published", &|it| Some(it.wireless)).published(),
    ];
    Plot::new("table-3", title, x, y).with_all(series)
}

/// Plots the figure `of` of each transport in [`DRAWN`] over the loss, for the paper's codec on a
/// wire with a round-trip time of 20 ms.
fn plot(videos: &Videos, name: &str, y: &str, of: fn(&Line) -> (f64, f64)) -> Plot {
    let title = format!("{y}, MPEG-2, round trip of {RTT_MS} ms");
    let (x, y) = (Axis::linear("lost, %").range(0.0, 5.5), Axis::linear(y));
    let mut plot = Plot::new(name, &title, x, y);
    for transport in names().filter(|name| DRAWN.contains(&name.here)) {
        let lines = videos.lines(|line| {
            (line.transport.as_str(), line.rtt_ms) == (transport.here, RTT_MS)
                && line.power_dbm.is_none()
                && line.codec == PAPERS_CODEC
        });
        let curve: Vec<_> = lines.iter().map(|line| (line.loss_percent, of(line).0)).collect();
        if !curve.is_empty() {
            let reaches = lines.iter().map(|line| drawn_interval(of(line).1, line.seeds)).collect();
            plot = plot.with(Series::marked(transport.said, curve).with_intervals(reaches));
        }
    }
    plot
}

/// Returns notes for the reader of these figures.
pub(super) fn notes() -> Vec<String> {
    vec![
        "Ten seconds of the simulated windscreen camera, 640x368 at 25 pictures/s, MPEG-2 of constant quality in \
         packets of seven packets of TS, spread evenly between two pictures; held against the pictures that were \
         taken, not those that were sent, so that nothing gets above what coding leaves."
            .to_owned(),
        "A picture that does not come is shown as the one before it. With the limit, a packet that comes more than \
         30 ms after the least one-way delay of the run is lost."
            .to_owned(),
        "Transports of Linux 6.1 and the session of Tautline in User Mode Linux, in virtual time: computing costs \
         nothing. The paper tells neither its video nor its round trip."
            .to_owned(),
    ]
}

/// PSNR of one transport in the paper's Table 3, dB.
pub(super) struct Published {
    pub(super) here: &'static str,
    /// PSNR on a wire with 1.5 % loss, without a buffer, dB.
    wire: f64,
    /// PSNR on a wire with 1.5 % loss, with a buffer of 30 ms, dB.
    pub(super) buffered: f64,
    /// PSNR in the wireless network at -35 dBm, dB.
    wireless: f64,
}

pub(super) const PUBLISHED: [Published; 6] = [
    Published { here: "udp", wire: 24.28, buffered: 24.28, wireless: 32.84 },
    Published { here: "reno", wire: 23.91, buffered: 24.04, wireless: 25.92 },
    Published { here: "reno-large", wire: 24.93, buffered: 28.11, wireless: 24.56 },
    Published { here: "westwood", wire: 24.58, buffered: 30.88, wireless: 37.67 },
    Published { here: "dccp", wire: 23.69, buffered: 23.69, wireless: 20.28 },
    Published { here: "sctp", wire: 14.97, buffered: 14.97, wireless: 24.23 },
];
const ODDITIES: [&str; 2] = [
    "In the paper a buffer of 30 ms moves the variants of TCP only: UDP's, DCCP's and SCTP's figures are the same to \
     the last digit, although SCTP repeats what is lost as TCP does. It does not say how it streams without a buffer, \
     where its TCP is no better than UDP; here no limit means that every packet is waited for.",
    "In the paper Westwood in the wireless network, 37.67 dB, beats UDP there by 5 dB and itself on a wire by 7: what \
     is repeated by the radio itself is lost to none, and its text says that TCP and UDP hardly differ.",
];
/// Transports that are plotted: more lines would be indistinguishable.
const DRAWN: [&str; 8] =
    ["udp", "reno", "reno-large", "westwood", "dccp", "sctp", "tautline", "tautline-two"];
const PAPERS_CODEC: &str = "mpeg2";
const PAPERS_LOSS: f64 = 1.5;
/// Round-trip time of the plots.
const RTT_MS: u64 = 20;
const PAPERS_POWER_DBM: i64 = -35;
const MEASURED: &str = include_str!("videos.csv");
const MADE: &str = include_str!("transports.machine.json");
/// Path of the committed table, shown to the reader of the report.
const FILE: &str = "crates/lab/src/papers/car/videos.csv";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_committed_can_be_read_and_named() {
        let videos = Videos::read().unwrap();
        for line in videos.lines(|_| true) {
            assert!(names().any(|name| name.here == line.transport), "{line:?}");
            assert!((0.0..=1.0).contains(&line.frozen_share), "{line:?}");
            assert!(line.frozen_share <= line.frozen_in_time_share + 1e-9, "{line:?}");
        }
    }
}
