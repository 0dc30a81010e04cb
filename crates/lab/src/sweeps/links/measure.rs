//! Measures by which a run is judged.

use std::collections::BTreeMap;

use tautline_scenario::measure::{
    Unit, delays_ms, gaps, longest_gap, millis, quantile, within as units_within,
};
use tautline_transport::rate::Cause;
use tautline_units::{Duration, Instant};

use super::trail::{Cut, Trail, WARM_UP};

/// Measures of one run, after its warm-up of two seconds.
///
/// A unit belongs to the instant of its sending. It is on time if it was delivered within the
/// deadline in world time; the clocks of the two ends do not matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// Payload of the units on time per second, Mbit/s.
    pub goodput_mbps: f64,
    /// 5th percentile of the goodput over whole seconds, Mbit/s.
    pub goodput_p5_mbps: f64,
    /// Goodput of each whole second, Mbit/s.
    pub goodput_by_second_mbps: Vec<f64>,
    /// Share of the offered units that were not on time, refused ones included.
    pub missed: f64,
    /// Units offered.
    pub offered: u64,
    /// Share of the offered units that the session refused.
    pub refused: f64,
    /// Share of the time with a zero budget, in which no unit was offered.
    pub paused: f64,
    /// Bytes on the wire in the media's direction, IP and UDP headers included, divided by the
    /// payload of the units on time.
    pub overhead: f64,
    /// Delay of the delivered units, in time or not: 50, 95, 99 and 100 %, ms.
    pub delay_ms: [f64; 4],
    /// Longest time without a unit on time, ms.
    pub gap_ms: f64,
    /// Share of the time in which the picture was frozen. Six successive units make a picture. The
    /// time between two complete pictures is a freeze if it exceeds three usual intervals, and one
    /// interval by 150 ms (the rule of WebRTC's statistic `freezeCount`).
    pub frozen: f64,
    /// Datagrams sent on each link in the media's direction.
    pub datagrams: Vec<u64>,
    /// Share of the datagrams sent in the media's direction that the links dropped.
    pub dropped: f64,
    /// Share of the datagrams sent in the media's direction that the links marked.
    pub marked: f64,
    /// Delay of a datagram above its link's minimum, its own transmission time included: the 99th
    /// percentile per link, ms, without links on which none arrived. Empty if datagrams are not
    /// tracked.
    pub queueing_p99_ms: Vec<f64>,
    /// Limiting causes of the first link's rate, as shares of the time.
    pub causes: BTreeMap<Cause, f64>,
    /// 99th percentile of the delay of commands, in the other direction, ms.
    pub command_p99_ms: f64,
    /// Longest time without a command, ms.
    pub command_gap_ms: f64,
    /// Reaction to the first cut of a link; `None` if there was none.
    pub outage: Option<Outage>,
    /// Digest of all events, equal for equal runs.
    pub digest: u64,
}

/// A session's reaction to the loss of one link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// Time from the cut to the last media datagram sent on that link before its return, ms; NaN if
    /// the link was not in use, 0 if none was sent.
    pub notice_ms: f64,
    /// Time from the link's return until it carries half of its rate in the second before the cut,
    /// over 100 ms, in ms. If that did not happen, the time until the end of the run; NaN if the
    /// link was not in use.
    pub recover_ms: f64,
    /// Number of units missed among those sent from one deadline after the cut until the return.
    pub missed_beyond: u64,
}

/// Computes the measures of a run.
pub(super) fn of(trail: &Trail) -> Measures {
    let (from, to) = (Instant::ZERO + WARM_UP, Instant::ZERO + trail.length);
    let seconds = to.since(from).as_secs_f64();
    let within = |at: Instant| (from..to).contains(&at);
    let mut windows = vec![0_u64; seconds as usize];
    let (mut offered, mut refused, mut missed, mut payload) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut delays = Vec::new();
    for unit in units_within(&trail.units, from..to) {
        offered += 1;
        refused += u64::from(unit.offered.accepted.is_none());
        delays.extend(unit.delay().map(millis));
        match unit.on_time(trail.deadline) {
            Some(_) => {
                payload += unit.offered.bytes.get();
                let second = unit.offered.at.since(from).as_secs() as usize;
                if let Some(window) = windows.get_mut(second) {
                    *window += unit.offered.bytes.get();
                }
            }
            None => missed += 1,
        }
    }
    let mut rates: Vec<f64> = windows.iter().map(|bytes| *bytes as f64 * 8.0 / 1e6).collect();
    let by_second = rates.clone();
    let given: u64 = trail.carried.iter().map(|carried| carried.datagrams).sum();
    let dropped: u64 = trail.carried.iter().map(|carried| carried.dropped).sum();
    let marked: u64 = trail.carried.iter().map(|carried| carried.marked).sum();
    let looks: u64 = trail.causes.values().sum();
    let wire: u64 = trail.carried.iter().map(|c| c.bytes.get() + c.datagrams * HEADERS).sum();
    let pauses = trail.pauses.iter().filter(|at| within(**at)).count() as u64;
    let came = |command: &&Unit| command.received.is_some_and(|received| within(received.at));
    let mut command_ms = delays_ms(trail.commands.iter().filter(came));
    let commands = trail.commands.iter().filter_map(|command| command.received);
    let on_time = trail.units.iter().filter_map(|unit| unit.on_time(trail.deadline));
    let share = |count: u64, of: u64| if of == 0 { 0.0 } else { count as f64 / of as f64 };
    Measures {
        goodput_mbps: payload as f64 * 8.0 / 1e6 / seconds,
        goodput_p5_mbps: quantile(&mut rates, 0.05),
        goodput_by_second_mbps: by_second,
        missed: share(missed, offered),
        offered,
        refused: share(refused, offered),
        paused: share(pauses, pauses + offered),
        overhead: wire as f64 / payload as f64,
        delay_ms: [0.5, 0.95, 0.99, 1.0].map(|q| quantile(&mut delays, q)),
        gap_ms: millis(longest_gap(on_time, from..to)),
        frozen: frozen(trail, from, to),
        datagrams: trail.carried.iter().map(|carried| carried.datagrams).collect(),
        dropped: share(dropped, given),
        marked: share(marked, given),
        queueing_p99_ms: queueing_p99_ms(trail),
        causes: trail.causes.iter().map(|(cause, count)| (*cause, share(*count, looks))).collect(),
        command_p99_ms: quantile(&mut command_ms, 0.99),
        command_gap_ms: millis(longest_gap(commands.map(|received| received.at), from..to)),
        outage: trail.cut.map(|cut| outage(trail, cut)),
        digest: trail.digest,
    }
}

fn outage(trail: &Trail, cut: Cut) -> Outage {
    let of_link = || trail.departures.iter().filter(|d| d.media && usize::from(d.link) == cut.link);
    let carried = |from: Instant, to: Instant| -> u64 {
        of_link().filter(|d| (from..to).contains(&d.at)).map(|d| d.bytes.get()).sum()
    };
    let before = carried(cut.from - FORMER, cut.from) as f64 / FORMER.as_secs_f64();
    let last = of_link().rev().find(|d| (cut.from..cut.to).contains(&d.at));
    let end = Instant::ZERO + trail.length;
    let mut at = cut.to + CARRIES;
    while at < end && (carried(at - CARRIES, at) as f64) < before / 2.0 * CARRIES.as_secs_f64() {
        at += STEP;
    }
    let beyond = cut.from + trail.deadline..cut.to;
    let missed =
        units_within(&trail.units, beyond).filter(|unit| unit.on_time(trail.deadline).is_none());
    let in_use = before > 0.0;
    let notice_ms = last.map_or(0.0, |last| millis(last.at.since(cut.from)));
    Outage {
        notice_ms: if in_use { notice_ms } else { f64::NAN },
        recover_ms: if in_use { millis(at.since(cut.to)) } else { f64::NAN },
        missed_beyond: missed.count() as u64,
    }
}

fn queueing_p99_ms(trail: &Trail) -> Vec<f64> {
    let mut transits = vec![Vec::new(); trail.carried.len()];
    for passage in trail.passages() {
        let transit = passage.arrived.map(|arrived| millis(arrived.since(passage.at)));
        if let Some(of_link) = transits.get_mut(usize::from(passage.link)) {
            of_link.extend(transit);
        }
    }
    let followed = transits.into_iter().filter(|of_link| !of_link.is_empty());
    let p99 = followed.map(|mut of_link: Vec<f64>| {
        let least = of_link.iter().copied().fold(f64::INFINITY, f64::min);
        quantile(&mut of_link, 0.99) - least
    });
    p99.collect()
}

/// Returns the share of the time from `from` to `to` in freezes, as [`Measures::frozen`] defines
/// them.
fn frozen(trail: &Trail, from: Instant, to: Instant) -> f64 {
    let usual = Duration::from_nanos(1_000_000_000 * PICTURE_UNITS as u64)
        / u32::try_from(trail.units_per_second.max(1)).unwrap_or(u32::MAX);
    let bound = (usual * 3).max(usual + Duration::from_millis(150));
    let whole = trail.units.chunks_exact(PICTURE_UNITS).filter_map(|picture| {
        let came = picture.iter().map(|unit| unit.on_time(trail.deadline));
        came.collect::<Option<Vec<Instant>>>()?.into_iter().max()
    });
    let frozen = gaps(whole, from..to).into_iter().filter(|gap| *gap > bound);
    frozen.map(|gap| gap.as_secs_f64()).sum::<f64>() / to.since(from).as_secs_f64()
}

/// Number of units of a picture: six slices.
const PICTURE_UNITS: usize = 6;
/// Bytes of the IPv4 (20) and UDP (8) headers that a link counts with each datagram.
const HEADERS: u64 = 28;
/// Length of the interval before a cut over which the link's rate is measured.
const FORMER: Duration = Duration::from_secs(1);
/// Length of an interval after a cut in which a link must be given half of its former rate to count
/// as carrying again.
const CARRIES: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(10);
