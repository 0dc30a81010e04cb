//! Figures of one cell, computed from its log.

use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::air;
use crate::cell::Cell;
use crate::clock;
use crate::edition::{self, EDITION};
use crate::guest::Told;
use crate::log::{Arrival, Log};
use crate::packet::Packet;
use crate::schedule::Schedule;
use crate::video::{Quality, Video};

/// One cell and its results, as stored in its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) cell: Cell,
    pub(crate) measures: Measures,
    /// Packets offered by the application.
    pub(crate) offered: u64,
    /// Packets accepted by the transport.
    pub(crate) sent: u64,
    /// Bytes sent by the sending end's interfaces, including IP and Ethernet headers; packets
    /// dropped by NetEm are not counted.
    pub(crate) forward_bytes: u64,
    /// Bytes sent by the receiving end's interfaces, counted likewise.
    pub(crate) backward_bytes: u64,
    /// Name and value of the sending end's packet counter of the transport's own protocol.
    pub(crate) own: (String, u64),
    /// Digest of the log.
    pub(crate) digest: String,
    /// Picture quality, if the packets were a video's.
    pub(crate) shown: Option<Shown>,
    /// Packets abandoned by the application before the transport.
    #[serde(default)]
    pub(crate) abandoned: u64,
    /// Results of the wireless network, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wireless: Option<Wireless>,
    /// Edition of the testbed ([`EDITION`]).
    #[serde(default = "edition::first")]
    pub(crate) edition: u32,
}

/// Results specific to a wireless network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wireless {
    /// The model's counters of the packets towards the receiver.
    pub(crate) air: air::Told,
    /// Packets with a bit error that reached the receiving application, or its authentication.
    pub(crate) damaged: u64,
    /// Packets received in each second of the offered duration, from the first arrival on.
    pub(crate) by_second: Vec<u64>,
}

/// Quality of a received video.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// Quality if the receiver waits for every packet that arrives at all.
    pub(crate) patient: Quality,
    /// Quality if it waits no longer than [`PLAYOUT`] after the minimum one-way delay.
    pub(crate) in_time: Quality,
}

/// Measurements at the receiving application.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measures {
    pub(crate) received: u64,
    /// Payload received from the first arrival to the last, the first packet excluded, per second.
    pub(crate) throughput_kbyte_per_s: f64,
    /// Mean absolute difference between each interarrival time and the interval between the due
    /// times.
    pub(crate) jitter_ms: f64,
    /// Standard deviation of the interarrival times.
    pub(crate) interarrival_sd_ms: f64,
    /// Minimum one-way delay from a packet's due time to its arrival; the percentiles follow.
    pub(crate) owd_min_ms: f64,
    pub(crate) owd_p50_ms: f64,
    pub(crate) owd_p95_ms: f64,
    pub(crate) owd_p99_ms: f64,
}

impl Outcome {
    pub(crate) fn new(cell: Cell, schedule: &Schedule, told: &Told, log: &Log) -> Option<Self> {
        let (name, own) = told.sender.own(cell.transport);
        let bytes = |counters: &crate::counters::Counters, device: &str| {
            let of = |link| counters.get(&format!("{device}{link}.sent_bytes"));
            (0..cell.transport.links()).map(of).sum()
        };
        Some(Self {
            cell,
            measures: Measures::of(log)?,
            offered: schedule.packets().into(),
            sent: told.sent,
            forward_bytes: bytes(&told.sender, "va"),
            backward_bytes: bytes(&told.receiver, "vb"),
            own: (name.to_owned(), own),
            digest: format!("{:016x}", log.digest()),
            shown: None,
            abandoned: told.abandoned,
            wireless: told.air.map(|air| Wireless {
                air,
                damaged: told.damaged,
                by_second: by_second(log, cell.seconds),
            }),
            edition: EDITION,
        })
    }

    /// Returns a reason to distrust this outcome: more packets arrived than were sent, or than the
    /// counters explain. It returns `None` if there is no reason.
    pub(crate) fn doubt(&self) -> Option<String> {
        let Self { own: (name, own), measures: Measures { received, .. }, sent, .. } = self;
        // TCP segments may contain a few bytes more than a packet.
        let least = received * 9 / 10;
        if *own < least {
            Some(format!("{received} packets came, but {name} counts {own}"))
        } else if received > sent {
            Some(format!("{received} packets came of {sent}"))
        } else {
            None
        }
    }
}

impl Shown {
    /// Returns the quality of the video from the packets in `log`, which are put in order first.
    pub(crate) fn of(video: &Video, log: &Log) -> Result<Self> {
        let delay = |it: &Arrival| it.at_nanos.saturating_sub(it.packet.due_nanos);
        let least = log.arrivals.iter().map(delay).min().unwrap_or_default();
        let numbers = |within: u64| {
            let came = log.arrivals.iter().filter(|it| delay(it) - least <= within);
            let mut numbers: Vec<u32> = came.map(|it| it.packet.number).collect();
            numbers.sort_unstable();
            numbers
        };
        let (all, in_time) = (numbers(u64::MAX), numbers(clock::nanos(PLAYOUT)));
        let patient = video.quality(&all)?;
        let in_time = if in_time == all { patient } else { video.quality(&in_time)? };
        Ok(Self { patient, in_time })
    }
}

impl Measures {
    /// Returns the figures, if at least two packets arrived, at different times.
    pub(crate) fn of(log: &Log) -> Option<Self> {
        let arrivals = &log.arrivals;
        let (first, last) = (arrivals.first()?, arrivals.last()?);
        let span_nanos = last.at_nanos.checked_sub(first.at_nanos).filter(|span| *span > 0)?;
        let gaps = arrivals.windows(2).map(|pair| {
            let came = ms(pair[1].at_nanos) - ms(pair[0].at_nanos);
            (came, came - (ms(pair[1].packet.due_nanos) - ms(pair[0].packet.due_nanos)))
        });
        let gaps: Vec<(f64, f64)> = gaps.collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().map(|(came, _)| came).sum::<f64>() / count;
        let variance = gaps.iter().map(|(came, _)| (came - mean).powi(2)).sum::<f64>() / count;
        let jitter = gaps.iter().map(|(_, off)| off.abs()).sum::<f64>() / count;
        let delays = arrivals.iter().map(|it| it.at_nanos.saturating_sub(it.packet.due_nanos));
        let mut delays: Vec<u64> = delays.collect();
        delays.sort_unstable();
        let percentile = |share: f64| {
            let rank = (share * delays.len() as f64).ceil() as usize;
            ms(delays[rank.clamp(1, delays.len()) - 1])
        };
        // Bytes per nanosecond equal gigabytes per second.
        let bytes = (arrivals.len() - 1) * Packet::BYTES;
        Some(Self {
            received: arrivals.len() as u64,
            throughput_kbyte_per_s: bytes as f64 * 1e6 / span_nanos as f64,
            jitter_ms: jitter,
            interarrival_sd_ms: variance.sqrt(),
            owd_min_ms: percentile(0.0),
            owd_p50_ms: percentile(0.5),
            owd_p95_ms: percentile(0.95),
            owd_p99_ms: percentile(0.99),
        })
    }
}

/// Returns the packets received in each second of the offered duration, counted from the first
/// arrival.
fn by_second(log: &Log, seconds: u32) -> Vec<u64> {
    let mut counts = vec![0; seconds as usize];
    let first = log.arrivals.first().map_or(0, |arrival| arrival.at_nanos);
    for arrival in &log.arrivals {
        let second = (arrival.at_nanos - first) / 1_000_000_000;
        if let Some(count) = counts.get_mut(second as usize) {
            *count += 1;
        }
    }
    counts
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// The paper's play-out limit, beyond the minimum one-way delay.
const PLAYOUT: Duration = Duration::from_millis(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_log() {
        let mut log = Log::default();
        assert_eq!(Measures::of(&log), None);
        // Due every 10 ms, with delays of 5 ms, then 7, 5, 7 ..
        for number in 0..101 {
            let due_nanos = 1_000_000_000 + u64::from(number) * 10_000_000;
            let delay = if number % 2 == 0 { 5_000_000 } else { 7_000_000 };
            log.push(Packet { number, due_nanos }, due_nanos + delay);
        }
        let measures = Measures::of(&log).unwrap();
        assert_eq!(measures.received, 101);
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-6, "{value}");
        near(measures.throughput_kbyte_per_s, 132.8);
        near(measures.jitter_ms, 2.0);
        near(measures.interarrival_sd_ms, 2.0);
        near(measures.owd_min_ms, 5.0);
        near(measures.owd_p50_ms, 5.0);
        near(measures.owd_p95_ms, 7.0);
    }
}
