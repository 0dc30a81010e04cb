//! Fig. 13: times of reading and coding slices, with one encoder and with two in turn.

use anyhow::Result;
use tautline_units::{Bitrate, Duration, Instant};
use tautline_video::Layout;

use super::rig::{self, Behind, Passage, Rig};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::pictures::coding::{quantile, sorted};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-fig-13",
    title: "Reading and coding slices in time, one encoder and two in turn",
    source: "[LTE] Fig. 13",
    isolation: Isolation::Alone,
    mutation: Mutation::Named("readout"),
    run,
};

/// Runs camera and encoders in real time, with one worker and with two.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let footage = rig::footage(run)?;
    let pictures = run.choose(30, 600);
    let bitrate = run.choose(Bitrate::from_kbps(1_000), Bitrate::from_mbps(10));
    let mut findings = Findings { tables: vec![table()], ..Findings::default() };
    for (done, workers) in [1, 2].into_iter().enumerate() {
        run.progress(done as u64, 2, &format!("{workers} at work"));
        let rig = Rig {
            backend: rig::BACKEND,
            workers,
            strips: Layout::STRIP_COUNT,
            bitrate,
            pictures,
            behind: Behind::Nothing,
        };
        let watched = rig.watch(&footage)?;
        let passages = rig::settled(&watched.passages);
        for passage in passages {
            list(&mut findings.tables[0], workers, passage);
        }
        findings.plots.push(diagram(workers, passages));
        findings.rows.extend(rows(run, workers, passages));
    }
    findings.notes = vec![
        format!(
            "{} at 60 pictures a second, {} pictures of {}x{}, {} Mbit/s, on a machine that does \
             other things too. The paper's encoders took up to two slices' time each, which is why \
             it needed two; where a slice is coded within the time of reading the next, one worker \
             is as fast, and the second is there for slices that take longer.",
            rig::BACKEND,
            pictures,
            footage.pictures[0].width(),
            footage.pictures[0].height(),
            bitrate.as_f64() / 1e6
        ),
        "A buffer is in use from the first row that is read into it until its slice is coded."
            .to_owned(),
    ];
    Ok(Outcome::Measured(findings))
}

fn rows(run: &Run<'_>, workers: usize, passages: &[Passage]) -> Vec<Row> {
    let ms = |of: &dyn Fn(&Passage) -> Duration| {
        sorted(passages.iter().map(|passage| of(passage).as_secs_f64() * 1e3))
    };
    let latency = ms(&Passage::latency);
    let reading = ms(&|passage| passage.read_at.since(passage.captured_at));
    let coding = ms(&|passage| passage.encoded_at.since(passage.begun_at));
    let named = |what: &str| format!("{what}, {workers} at work");
    let slower = run.choose(10.0, 1.0);
    let (usual, most) = buffers(passages);
    let published_buffers = if workers == 1 { 3.0 } else { 2.0 };
    vec![
        Row::new(named("reading a slice, p50"), "ms", quantile(&reading, 0.5))
            .published(1e3 / 60.0 / Layout::STRIP_COUNT as f64)
            .by_construction("the simulated sensor reads at this pace")
            .clocked(),
        Row::new(named("coding a slice, p50"), "ms", quantile(&coding, 0.5)),
        Row::new(named("coding a slice, p99"), "ms", quantile(&coding, 0.99))
            .published(2e3 / 60.0 / Layout::STRIP_COUNT as f64)
            .at_most(slower)
            .because(rig::SLOWER)
            .clocked(),
        Row::new(named("first row to slice, p50"), "ms", quantile(&latency, 0.5))
            .published(8.3)
            .at_most(slower)
            .because(rig::SLOWER)
            .clocked(),
        Row::new(named("first row to slice, p99"), "ms", quantile(&latency, 0.99)).published(8.3),
        Row::new(named("buffers in use, 99 % of the time at most"), "", usual as f64)
            .published(published_buffers)
            .at_most(slower)
            .because(rig::SLOWER)
            .clocked(),
        Row::new(named("most buffers in use"), "", most as f64)
            .published(published_buffers)
            .note("Not judged: one moment in which the machine does something else decides it."),
    ]
}

/// Returns the number of slices in memory at once: not exceeded for 99 % of the time, and the
/// maximum.
fn buffers(passages: &[Passage]) -> (usize, usize) {
    let begin = |passage: &Passage| (passage.captured_at, 1_i32);
    let end = |passage: &Passage| (passage.encoded_at, -1_i32);
    let mut changes: Vec<(Instant, i32)> =
        passages.iter().flat_map(|passage| [begin(passage), end(passage)]).collect();
    changes.sort_unstable();
    let mut in_use = 0_i32;
    // Time spent at each level.
    let mut times = vec![Duration::ZERO; passages.len() + 1];
    let mut since = changes.first().map_or(Instant::ZERO, |(at, _)| *at);
    for (at, change) in changes {
        times[in_use.unsigned_abs() as usize] += at.since(since);
        (in_use, since) = (in_use + change, at);
    }
    let all: Duration = times.iter().sum();
    let most = times.iter().rposition(|time| !time.is_zero()).unwrap_or(0);
    let mut until = Duration::ZERO;
    let usual = times.iter().position(|time| {
        until += *time;
        until >= all.mul_f64(0.99)
    });
    (usual.unwrap_or(most), most)
}

/// Plots when the slices of the first two pictures are read, wait and are coded.
fn diagram(workers: usize, passages: &[Passage]) -> Plot {
    let shown = &passages[..passages.len().min(2 * Layout::STRIP_COUNT)];
    let start = shown.first().map_or(Instant::ZERO, |passage| passage.captured_at);
    let at = |instant: Instant| instant.since(start).as_secs_f64() * 1e3;
    // The first line is at the top.
    let line = |number: usize| (workers + 1 - number) as f64;
    let reading = shown.iter().map(|p| (at(p.captured_at), at(p.read_at), line(0)));
    let waiting = shown.iter().map(|p| (at(p.read_at), at(p.begun_at), line(1 + p.worker)));
    let mut coding: Vec<Series> = Vec::new();
    for worker in 0..workers {
        let of = shown.iter().filter(|passage| passage.worker == worker);
        let spans = of.map(|p| (at(p.begun_at), at(p.encoded_at), line(1 + worker)));
        coding.push(Series::spans(format!("encoder {}", worker + 1), spans));
    }
    let name = format!("timing-{workers}");
    let title = match workers {
        1 => "One encoder: twelve slices",
        _ => "Two encoders in turn: twelve slices",
    };
    let y = Axis::linear("line: sensor above, encoders below").range(0.5, workers as f64 + 1.5);
    Plot::new(&name, title, Axis::linear("ms"), y)
        .with(Series::spans("sensor reads", reading))
        .with(Series::spans("slice waits", waiting))
        .with_all(coding)
}

fn table() -> Table {
    let columns = [
        "workers",
        "picture",
        "strip",
        "worker",
        "captured_us",
        "read_us",
        "begun_us",
        "encoded_us",
        "bytes",
    ];
    Table::new("slices", columns)
}

fn list(table: &mut Table, workers: usize, passage: &Passage) {
    let times = [passage.captured_at, passage.read_at, passage.begun_at, passage.encoded_at];
    let [captured, read, begun, encoded] = times.map(|at| at.as_micros().into());
    table.push([
        workers.into(),
        u64::from(passage.picture).into(),
        passage.strip.into(),
        passage.worker.into(),
        captured,
        read,
        begun,
        encoded,
        passage.bytes.len().into(),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_counted_over_time() {
        let at = |from: u64, to: u64| Passage {
            picture: 0,
            strip: 0,
            worker: 0,
            captured_at: Instant::from_micros(from),
            read_at: Instant::from_micros(from),
            begun_at: Instant::from_micros(from),
            encoded_at: Instant::from_micros(to),
            decoded_at: None,
            bytes: [0_u8].as_slice().into(),
        };
        let passages: Vec<Passage> =
            (0..100).map(|slice| at(slice * 100, slice * 100 + 90)).collect();
        assert_eq!(buffers(&passages), (1, 1));
        let overlapping: Vec<Passage> =
            (0..100).map(|slice| at(slice * 100, slice * 100 + 150)).collect();
        assert_eq!(buffers(&overlapping), (2, 2));
        let once = [passages, vec![at(5_000, 5_010)]].concat();
        assert_eq!(buffers(&once), (1, 2));
    }
}
