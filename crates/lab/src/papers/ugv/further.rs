//! Measurements that the paper leaves open: 300 bytes from the vehicle, and a moving vehicle. Also
//! its assumption that smaller messages are faster.

use anyhow::{Context, Result};
use tautline_units::{Bitrate, ByteCount};

use super::bins::{fitted, size};
use super::gate::gate_alone;
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run};
use crate::sweeps::packet_size::sweep::Sweep;
use crate::sweeps::packet_size::{self, CHOSEN_BY, Trial};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "ugv-further",
    title: "300 bytes from the vehicle, a vehicle that drives, and messages of several sizes",
    source: "[UGV] Conclusions",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("packet-sizes"),
    run,
};

/// Performs the measurements that the paper recommends, over the links fitted to its Table 1.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let sweep = fitted(run);
    let progress = |part: u64| {
        move |done: u64, total: u64, what: &str| {
            run.progress(part * total + done, PARTS * total, what);
        }
    };
    let from_vehicle =
        sweep.trials(&[size(300, 400), size(400, 400), size(500, 400)], progress(0))?;
    let driving = Sweep { rate_max: DRIVING, ..sweep.clone() };
    let driven = driving.trials(&[size(400, 400)], progress(1))?;
    let regardless = |sweep: &Sweep| Sweep { transport: gate_alone(), ..sweep.clone() };
    let heedless = [
        regardless(&sweep).trials(&[size(400, 400)], progress(2))?,
        regardless(&driving).trials(&[size(400, 400)], progress(3))?,
    ]
    .concat();
    let mut messages = Vec::new();
    for (part, bytes) in (4..).zip(MESSAGES) {
        let sweep = Sweep { message_bytes: ByteCount::new(bytes), ..sweep.clone() };
        messages.extend(sweep.trials(&[size(400, 400)], progress(part))?);
    }
    let mut rows = size_rows(&from_vehicle)?;
    rows.extend(driving_rows(&from_vehicle[1], &driven[0], &heedless)?);
    rows.extend(message_rows(&messages));
    let up = |size: packet_size::Size| size.up.get() as f64;
    let title = "Messages in time, 400 B to the vehicle";
    Ok(Outcome::Measured(Findings {
        rows,
        tables: vec![
            packet_size::table("from-the-vehicle", &from_vehicle),
            packet_size::table("driving", &[&driven[..], &heedless[..]].concat()),
            packet_size::table("messages", &messages),
        ],
        plots: vec![packet_size::plot(
            "from-the-vehicle",
            title,
            &from_vehicle,
            "bytes from the vehicle",
            up,
        )],
        notes: vec![format!(
            "The links of `ugv-table-1`, messages of {} bytes but where it is said; {} rounds of {} s. Driving: as the \
             view changes, pictures take up to {} instead of {}. With the gate alone the rate is fixed above both, and nothing \
             heeds what the link carries; Tautline's pictures get smaller where the link has no room.",
            sweep.message_bytes.get(),
            sweep.rounds,
            sweep.length.as_secs(),
            DRIVING,
            sweep.rate_max,
        )],
    }))
}

/// Returns rows that judge 300 bytes from the vehicle, the size that the paper suggests, and 500:
/// the share of messages in time must be that with 400 bytes, and the overhead of 300 bytes must
/// exceed that of 500.
fn size_rows(trials: &[Trial]) -> Result<Vec<Row>> {
    let [of_300, of_400, of_500] = trials else { unreachable!("three sizes") };
    let within = |trial: &Trial| share(trial);
    let row = |name: &str, trial: &Trial| -> Result<Row> {
        let gain = 100.0 * (within(trial)? - within(of_400)?);
        let what = format!("{name} from the vehicle less 400 B: share below 250 ms, end to end");
        Ok(Row::new(what, "points", gain)
            .reference(0.0)
            .within_absolute(2.0)
            .because("set by hand: the packets of the video are not in the way of the messages"))
    };
    let video = |trial: &Trial| trial.total().overhead_share().unwrap_or(f64::NAN);
    Ok(vec![
        row("300 B", of_300)?.note("The paper recommends to measure it, to see that 400 B are best."),
        row("500 B", of_500)?,
        Row::new("overhead of 300 B from the vehicle over that of 500 B", "", video(of_300) / video(of_500))
            .asked(1.1)
            .at_least(1.0)
            .because("set by hand: headers of packets of 300 B are a tenth more of all bytes' overhead at least"),
    ])
}

fn driving_rows(standing: &Trial, driving: &Trial, heedless: &[Trial]) -> Result<Vec<Row>> {
    let [before, after] = heedless else { unreachable!("standing and driving") };
    let mean = |trial: &Trial| trial.total().vehicle.mean_ms();
    let points = |a: &Trial, b: &Trial| -> Result<f64> { Ok(100.0 * (share(a)? - share(b)?)) };
    Ok(vec![
        Row::new(
            "Tautline, driving less standing: share below 250 ms, end to end",
            "points",
            points(driving, standing)?,
        )
        .reference(0.0)
        .within_absolute(3.0)
        .because("set by hand: outages are few, and what the pictures take more is theirs to give")
        .note("The paper: driving could have an impact on the latency."),
        Row::new(
            "gate alone, driving over standing: mean delay from the vehicle to the switchboard",
            "",
            mean(after) / mean(before),
        )
        .asked(1.5)
        .at_least(1.0)
        .because("set by hand: half as long again and more is an impact")
        .note("Nothing heeds what the link carries."),
        Row::new("Tautline, driving over standing: the same", "", mean(driving) / mean(standing))
            .asked(1.5)
            .at_most(1.0)
            .because("set by hand: less than half as long again"),
    ])
}

/// Returns rows that judge the paper's statement that "smaller messages can be shown to pass
/// quicker than larger ones".
fn message_rows(trials: &[Trial]) -> Vec<Row> {
    let mean = |trial: &Trial| trial.total().end_to_end.mean_ms();
    let mut rows = Vec::new();
    for (bytes, pair) in MESSAGES[1..].iter().zip(trials.windows(2)) {
        rows.push(
            Row::new(
                format!("messages of {bytes} B less the next smaller: mean delay"),
                "ms",
                mean(&pair[1]) - mean(&pair[0]),
            )
            .asked(1.0)
            .at_least(1.0)
            .because("set by hand: their bytes take 4 ms of the vehicle's link at least")
            .note("The paper: smaller messages pass quicker."),
        );
    }
    rows
}

fn share(trial: &Trial) -> Result<f64> {
    let shares = trial.total().end_to_end.shares().context("no messages from end to end")?;
    Ok(shares[CHOSEN_BY])
}

/// Message sizes in bytes: a command, a few packets of 400, many.
const MESSAGES: [u64; 3] = [60, 1_000, 4_000];
/// Rate of the pictures while the view changes; the link carries 1200 kbit/s.
const DRIVING: Bitrate = Bitrate::from_kbps(1_300);
const PARTS: u64 = 4 + MESSAGES.len() as u64;
