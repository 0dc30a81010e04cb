//! Aggregation over seeds, per transport, rate, loss and round-trip time: means and confidence
//! intervals.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::air::Air;
use crate::cell::Load;
use crate::edition::{self, EDITION};
use crate::measures::{Outcome, Shown, Wireless};
use crate::packet::Packet;
use crate::transport::Transport;
use crate::video::Codec;

/// One line of the table that the lab reads. `_ci` is half the width of the 95 % confidence
/// interval of the mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) transport: Transport,
    pub(crate) rate_kbyte_per_s: u32,
    pub(crate) loss_percent: f64,
    pub(crate) rtt_ms: u32,
    pub(crate) seeds: usize,
    pub(crate) seconds: u32,
    /// Share of the offered packets that arrived.
    pub(crate) received_share: f64,
    pub(crate) throughput_kbyte_per_s: f64,
    pub(crate) throughput_ci: f64,
    pub(crate) jitter_ms: f64,
    pub(crate) jitter_ci: f64,
    pub(crate) interarrival_sd_ms: f64,
    pub(crate) interarrival_sd_ci: f64,
    pub(crate) owd_p50_ms: f64,
    pub(crate) owd_p50_ci: f64,
    pub(crate) owd_p95_ms: f64,
    pub(crate) owd_p95_ci: f64,
    pub(crate) owd_p99_ms: f64,
    pub(crate) owd_p99_ci: f64,
    /// Bytes on the links in both directions, divided by the payload received.
    pub(crate) network_bytes_per_byte: f64,
    /// Share of the offered packets that the application abandoned before the transport.
    pub(crate) abandoned_share: f64,
    /// Edition of the testbed ([`EDITION`]).
    #[serde(default = "edition::first")]
    pub(crate) edition: u32,
}

/// One line of the table of constant rates in the paper's wireless network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WirelessLine {
    pub(crate) transport: Transport,
    pub(crate) rate_kbyte_per_s: u32,
    pub(crate) power_dbm: i32,
    /// True if a flow of another sender shared it.
    pub(crate) disturbed: bool,
    pub(crate) seeds: usize,
    pub(crate) seconds: u32,
    pub(crate) received_share: f64,
    pub(crate) throughput_kbyte_per_s: f64,
    pub(crate) throughput_ci: f64,
    pub(crate) jitter_ms: f64,
    pub(crate) owd_p50_ms: f64,
    pub(crate) owd_p99_ms: f64,
    pub(crate) owd_p99_ci: f64,
    pub(crate) network_bytes_per_byte: f64,
    /// Share of the packets towards the receiver that were dropped at the access point's full
    /// queue.
    pub(crate) dropped_queue_share: f64,
    /// Share of the packets towards the receiver that were lost in the air.
    pub(crate) lost_share: f64,
    /// Share of the packets towards the receiver that were damaged by a bit error.
    pub(crate) damaged_share: f64,
    /// Packets towards the receiver that were damaged by a bit error, over all seeds.
    pub(crate) damaged: u64,
    /// Damaged packets that reached the receiving application; if sealed, those that failed
    /// authentication.
    pub(crate) damaged_came: u64,
    /// 10th percentile of the kB received in a second, over the seconds of all seeds; four more
    /// percentiles follow.
    pub(crate) second_p10: f64,
    pub(crate) second_p25: f64,
    pub(crate) second_p50: f64,
    pub(crate) second_p75: f64,
    pub(crate) second_p90: f64,
    /// Edition of the testbed ([`EDITION`]).
    #[serde(default = "edition::first")]
    pub(crate) edition: u32,
}

/// One line of the table of videos; `_in_time` is with a play-out limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VideoLine {
    pub(crate) transport: Transport,
    pub(crate) codec: Codec,
    pub(crate) loss_percent: f64,
    pub(crate) rtt_ms: u32,
    /// Power of the wireless network, if it replaces the wire; it has its own losses and delays.
    pub(crate) power_dbm: Option<i32>,
    pub(crate) seeds: usize,
    pub(crate) seconds: u32,
    pub(crate) received_share: f64,
    pub(crate) psnr_db: f64,
    pub(crate) psnr_ci: f64,
    pub(crate) ssim: f64,
    pub(crate) ssim_ci: f64,
    /// Share of missing pictures if the receiver waits for every packet that arrives at all.
    pub(crate) frozen_share: f64,
    pub(crate) psnr_in_time_db: f64,
    pub(crate) psnr_in_time_ci: f64,
    pub(crate) ssim_in_time: f64,
    pub(crate) ssim_in_time_ci: f64,
    pub(crate) frozen_in_time_share: f64,
    pub(crate) owd_p50_ms: f64,
    pub(crate) owd_p99_ms: f64,
    /// Bytes on the links in both directions, divided by the bytes of the video.
    pub(crate) network_bytes_per_byte: f64,
    /// Edition of the testbed ([`EDITION`]).
    #[serde(default = "edition::first")]
    pub(crate) edition: u32,
}

/// Mean of a few runs, with the spread needed to bound a further run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    pub(crate) deviation: f64,
    pub(crate) count: usize,
}

impl Mean {
    pub(crate) fn of(values: &[f64]) -> Self {
        let count = values.len();
        let value = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
        let deviation = if count < 2 { 0.0 } else { (squares / (count - 1) as f64).sqrt() };
        Self { value, deviation, count }
    }

    /// Returns half the width of the 95 % confidence interval of the mean; 0 for a single run.
    pub(crate) fn half_width(&self) -> f64 {
        let t = quantile(&T_975, self.count);
        t * self.deviation / (self.count as f64).sqrt()
    }

    /// Returns the distance from the mean within which another run falls with a probability of
    /// 0.99; 0 for a single run.
    pub(crate) fn reach(&self) -> f64 {
        let t = quantile(&T_995, self.count);
        t * self.deviation * (1.0 + 1.0 / self.count as f64).sqrt()
    }
}

/// Returns the lines of constant rates over wires, in the order of the transports.
pub(crate) fn lines(outcomes: &[Outcome]) -> Vec<Line> {
    grouped(outcomes, |outcomes| match outcomes[0].cell.air {
        None => Some(line(outcomes, outcomes[0].cell.rate()?)),
        Some(_) => None,
    })
}

/// Returns the lines of constant rates in the wireless network, in the order of the transports.
pub(crate) fn wireless_lines(outcomes: &[Outcome]) -> Vec<WirelessLine> {
    grouped(outcomes, |outcomes| {
        let cell = outcomes[0].cell;
        Some(wireless_line(outcomes, cell.air?, cell.rate()?))
    })
}

/// Returns the lines of videos, in the order of the transports.
pub(crate) fn video_lines(outcomes: &[Outcome]) -> Vec<VideoLine> {
    grouped(outcomes, |outcomes| match outcomes[0].cell.load {
        Load::Video(codec) => Some(video_line(outcomes, codec)),
        Load::Constant(_) => None,
    })
}

fn grouped<T>(outcomes: &[Outcome], line: impl Fn(&[&Outcome]) -> Option<T>) -> Vec<T> {
    let key = |outcome: &Outcome| {
        let cell = outcome.cell;
        let loss_permille = (cell.loss_percent * 10.0).round() as u32;
        (cell.transport, cell.air, cell.rtt_ms, loss_permille, cell.load, cell.seconds)
    };
    let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
    sorted.sort_by_key(|outcome| (key(outcome), outcome.cell.seed));
    sorted.chunk_by(|one, other| key(one) == key(other)).filter_map(line).collect()
}

/// Writes the lines as CSV.
pub(crate) fn write(lines: &[impl Serialize], file: &Path) -> Result<()> {
    let cannot = || format!("cannot write {}", file.display());
    let mut writer = csv::Writer::from_path(file).with_context(cannot)?;
    lines.iter().try_for_each(|line| writer.serialize(line))?;
    writer.flush().with_context(cannot)
}

fn line(outcomes: &[&Outcome], rate_kbyte_per_s: u32) -> Line {
    let mean = |value: fn(&Outcome) -> f64| mean(outcomes, value);
    let cell = outcomes[0].cell;
    let (throughput_kbyte_per_s, throughput_ci) = mean(|it| it.measures.throughput_kbyte_per_s);
    let (jitter_ms, jitter_ci) = mean(|it| it.measures.jitter_ms);
    let (interarrival_sd_ms, interarrival_sd_ci) = mean(|it| it.measures.interarrival_sd_ms);
    let (owd_p50_ms, owd_p50_ci) = mean(|it| it.measures.owd_p50_ms);
    let (owd_p95_ms, owd_p95_ci) = mean(|it| it.measures.owd_p95_ms);
    let (owd_p99_ms, owd_p99_ci) = mean(|it| it.measures.owd_p99_ms);
    Line {
        transport: cell.transport,
        rate_kbyte_per_s,
        loss_percent: cell.loss_percent,
        rtt_ms: cell.rtt_ms,
        seeds: outcomes.len(),
        seconds: cell.seconds,
        received_share: mean(received_share).0,
        throughput_kbyte_per_s,
        throughput_ci,
        jitter_ms,
        jitter_ci,
        interarrival_sd_ms,
        interarrival_sd_ci,
        owd_p50_ms,
        owd_p50_ci,
        owd_p95_ms,
        owd_p95_ci,
        owd_p99_ms,
        owd_p99_ci,
        network_bytes_per_byte: mean(|it| network_bytes_per(it, it.measures.received)).0,
        abandoned_share: mean(|it| it.abandoned as f64 / it.offered as f64).0,
        edition: EDITION,
    }
}

fn wireless_line(outcomes: &[&Outcome], air: Air, rate_kbyte_per_s: u32) -> WirelessLine {
    let mean = |value: fn(&Outcome) -> f64| mean(outcomes, value);
    let cell = outcomes[0].cell;
    let (throughput_kbyte_per_s, throughput_ci) = mean(|it| it.measures.throughput_kbyte_per_s);
    let (owd_p99_ms, owd_p99_ci) = mean(|it| it.measures.owd_p99_ms);
    let did = outcomes.iter().filter_map(|it| it.wireless.as_ref());
    let sum = |of: fn(&Wireless) -> u64| did.clone().map(of).sum::<u64>();
    let share = |of| rounded(sum(of) as f64 / sum(|it| it.air.pushed).max(1) as f64);
    let mut seconds: Vec<u64> = did.clone().flat_map(|it| it.by_second.iter().copied()).collect();
    seconds.sort_unstable();
    let percentile = |share: f64| {
        let rank = (share * seconds.len() as f64).ceil() as usize;
        let packets = seconds.get(rank.max(1) - 1).copied().unwrap_or_default();
        rounded(packets as f64 * Packet::BYTES as f64 / 1e3)
    };
    WirelessLine {
        transport: cell.transport,
        rate_kbyte_per_s,
        power_dbm: air.power.dbm(),
        disturbed: air.disturbed,
        seeds: outcomes.len(),
        seconds: cell.seconds,
        received_share: mean(received_share).0,
        throughput_kbyte_per_s,
        throughput_ci,
        jitter_ms: mean(|it| it.measures.jitter_ms).0,
        owd_p50_ms: mean(|it| it.measures.owd_p50_ms).0,
        owd_p99_ms,
        owd_p99_ci,
        network_bytes_per_byte: mean(|it| network_bytes_per(it, it.measures.received)).0,
        dropped_queue_share: share(|it| it.air.dropped_queue),
        lost_share: share(|it| it.air.lost),
        damaged_share: share(|it| it.air.damaged),
        damaged: sum(|it| it.air.damaged),
        damaged_came: sum(|it| it.damaged),
        second_p10: percentile(0.1),
        second_p25: percentile(0.25),
        second_p50: percentile(0.5),
        second_p75: percentile(0.75),
        second_p90: percentile(0.9),
        edition: EDITION,
    }
}

fn video_line(outcomes: &[&Outcome], codec: Codec) -> VideoLine {
    let mean = |value: fn(&Outcome) -> f64| mean(outcomes, value);
    let of = |which: fn(&Shown) -> f64| {
        let values: Vec<f64> =
            outcomes.iter().filter_map(|it| it.shown.as_ref()).map(which).collect();
        let mean = Mean::of(&values);
        (rounded(mean.value), rounded(mean.half_width()))
    };
    let cell = outcomes[0].cell;
    let (psnr_db, psnr_ci) = of(|it| it.patient.psnr_db);
    let (ssim, ssim_ci) = of(|it| it.patient.ssim);
    let (psnr_in_time_db, psnr_in_time_ci) = of(|it| it.in_time.psnr_db);
    let (ssim_in_time, ssim_in_time_ci) = of(|it| it.in_time.ssim);
    VideoLine {
        transport: cell.transport,
        codec,
        loss_percent: cell.loss_percent,
        rtt_ms: cell.rtt_ms,
        power_dbm: cell.air.map(|air| air.power.dbm()),
        seeds: outcomes.len(),
        seconds: cell.seconds,
        received_share: mean(received_share).0,
        psnr_db,
        psnr_ci,
        ssim,
        ssim_ci,
        frozen_share: of(|it| it.patient.frozen_share).0,
        psnr_in_time_db,
        psnr_in_time_ci,
        ssim_in_time,
        ssim_in_time_ci,
        frozen_in_time_share: of(|it| it.in_time.frozen_share).0,
        owd_p50_ms: mean(|it| it.measures.owd_p50_ms).0,
        owd_p99_ms: mean(|it| it.measures.owd_p99_ms).0,
        network_bytes_per_byte: mean(|it| network_bytes_per(it, it.offered)).0,
        edition: EDITION,
    }
}

/// Returns the mean of a value over the outcomes, and half the width of its 95 % confidence
/// interval.
fn mean(outcomes: &[&Outcome], value: impl Fn(&Outcome) -> f64) -> (f64, f64) {
    let values: Vec<f64> = outcomes.iter().map(|outcome| value(outcome)).collect();
    let mean = Mean::of(&values);
    (rounded(mean.value), rounded(mean.half_width()))
}

fn received_share(outcome: &Outcome) -> f64 {
    outcome.measures.received as f64 / outcome.offered as f64
}

/// Returns the bytes in both directions divided by the payload of `packets` packets.
fn network_bytes_per(outcome: &Outcome, packets: u64) -> f64 {
    let bytes = outcome.forward_bytes + outcome.backward_bytes;
    bytes as f64 / (packets * Packet::BYTES as u64) as f64
}

/// Rounds to the four decimals of the file; a run's figures are not more exact.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Returns the quantile for `count` runs: 0 for a single run, and that of six for more than six.
fn quantile(quantiles: &[f64; 5], count: usize) -> f64 {
    match count {
        0 | 1 => 0.0,
        // Beyond the table, the last value is conservative.
        _ => quantiles[(count - 2).min(quantiles.len() - 1)],
    }
}

/// Quantiles of Student's t distribution at 0.975, for two to six runs.
const T_975: [f64; 5] = [12.706, 4.303, 3.182, 2.776, 2.571];
/// Quantiles of Student's t distribution at 0.995, for two to six runs.
const T_995: [f64; 5] = [63.657, 9.925, 5.841, 4.604, 4.032];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_know_how_sure_they_are() {
        let mean = Mean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((mean.value, mean.count), (3.0, 5));
        assert!((mean.deviation - 2.5_f64.sqrt()).abs() < 1e-12);
        assert!((mean.half_width() - 1.963).abs() < 1e-3);
        assert!((mean.reach() - 7.974).abs() < 1e-3);
        assert_eq!(Mean::of(&[7.0]).half_width(), 0.0);
    }
}
