use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Bitrate;

use super::common::Common;
use super::interval::{Handover, Outage};
use super::replay::Replay;
use crate::error::{Error, within, wrong};
use crate::trace::Trace;

/// Parameters of one direction of a link.
///
/// People write it in TOML, so each field name contains its unit. Exactly one of `rate_mbps` and
/// `trace` is given; everything else has a default, most of them "none".
///
/// ```toml
/// rate_mbps = 8.0                              # mean capacity, Mbit/s
/// swing = { sigma = 0.25, tau_ms = 80.0 }      # the capacity's swings round that mean
/// queue_bytes = 300000                         # drop-tail queue in front of it
/// delay_ms = 20.0                              # propagation, one way
/// jitter = { sigma_ms = 2.0, tau_ms = 1000.0 } # |AR(1)| on top of it
/// retransmission = { probability = 0.1, delay_ms = 8.0 }
/// handover = { step_ms = 300.0, every_s = [10.0, 30.0] }
/// outage_losing = { every_s = 60.0, mean_ms = 60.0 }
/// outage_holding = { every_s = 120.0, mean_ms = 500.0 }
/// steps = [{ at_s = 30.0, rate_mbps = 1.0 }]   # the capacity from then on
/// policer = { rate_mbps = 4.0, burst_bytes = 32000 }
/// cubic = { rtt_ms = 30.0, from_s = 5.0 }      # another's bulk data in the same queue
/// bbr = [{ rtt_ms = 30.0, from_s = 5.0 }]      # the same by another rule, as many as there are
/// l4s = { threshold_ms = 0.8, range_ms = 0.4 } # marks ECT(1) packets that wait
/// loss = 0.001                                 # share of packets lost independently
/// burst_loss = { enter = 0.001, leave = 0.25, loss = 0.8 }
/// # recorded round trips on top of delay_ms, with the recording's losses and holds
/// recording = { file = "drive.csv.gz", operator = "b", start_s = 0.0 }
/// # what this link has in common with all that name it: here, all modems of one carrier
/// common = [{ name = "carrier b", outage_holding = { every_s = 80.0, mean_ms = 3400.0 } }]
/// reorder = false                              # may jitter change the order?
/// overhead_bytes = 28                          # IP and UDP headers
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Mean capacity in Mbit/s (10^6 bit/s), headers included. `None` if `trace` gives the
    /// capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mbps: Option<f64>,
    /// Variation of the capacity around `rate_mbps`; `None` for a constant capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swing: Option<Swing>,
    /// Capacities that replace `rate_mbps`, each from its start time on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Recorded capacity that replaces `rate_mbps`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceRate>,
    /// Queue size in bytes, headers included; a packet that does not fit is dropped.
    #[serde(default = "default_queue_bytes")]
    pub queue_bytes: u64,
    /// Propagation delay in ms, one way.
    #[serde(default)]
    pub delay_ms: f64,
    /// Varying delay on top of `delay_ms`, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Delay of the radio's own retransmissions, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmission: Option<Retransmission>,
    /// Handovers, during which packets are held in the queue; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// Outages in which packets leaving the queue are lost; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_losing: Option<Outage>,
    /// Outages in which the capacity is zero and packets are held in the queue, with the settings
    /// of `outage_losing`; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_holding: Option<Outage>,
    /// A carrier's policer in front of the queue, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policer: Option<Policer>,
    /// A CUBIC flow of another sender in the queue, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cubic: Option<Cubic>,
    /// BBR flows of other senders in the queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bbr: Vec<Bbr>,
    /// ECN marking at a low queue delay, for ECT(1) packets only; `None` for no marking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l4s: Option<L4s>,
    /// Probability that a packet is lost independently.
    #[serde(default)]
    pub loss: f64,
    /// Losses in bursts; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_loss: Option<BurstLoss>,
    /// Recorded round trips, replayed: delay, losses and holds; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Replay>,
    /// Interruptions and dips shared with every other link that has an entry of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub common: Vec<Common>,
    /// True if a packet with less jitter may overtake one with more. Radio links keep the order.
    #[serde(default)]
    pub reorder: bool,
    /// Bytes added to each packet's length. 28 is the size of the IPv4 and UDP headers that a real
    /// link carries.
    #[serde(default = "default_overhead_bytes")]
    pub overhead_bytes: u64,
    /// MTU, `overhead_bytes` included; a larger packet is dropped and counted; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u64>,
}

/// Random variation of a capacity: its logarithm is an Ornstein-Uhlenbeck process.
///
/// The mean of the capacity stays `rate_mbps`. Source: reference/multilink-and-rate.md, Link model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swing {
    /// Standard deviation of the logarithm. 0.25 is a factor of 1.28 either way.
    pub sigma: f64,
    /// Time constant of the capacity's logarithm in ms.
    pub tau_ms: f64,
}

/// A change of the capacity at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Start time of the new capacity in s, not before that of the previous step.
    pub at_s: f64,
    /// Capacity from `at_s` on in Mbit/s, headers included.
    pub rate_mbps: f64,
}

/// A token bucket without a queue: packets above its rate are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate of the tokens in Mbit/s, headers included.
    pub rate_mbps: f64,
    /// Size of the bucket, which a pause fills: bytes that then pass at any rate.
    pub burst_bytes: u64,
}

/// A bulk TCP flow with CUBIC that shares the link's queue and loses packets only there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cubic {
    /// Round-trip time of the flow in ms, without queueing.
    pub rtt_ms: f64,
    /// Start time of the flow in s.
    #[serde(default)]
    pub from_s: f64,
    /// End time of the flow in s; `None` for no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
}

/// A bulk TCP flow with BBRv1 that shares the link's queue and loses packets only there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bbr {
    /// Round-trip time of the flow in ms, without queueing.
    pub rtt_ms: f64,
    /// Start time of the flow in s.
    #[serde(default)]
    pub from_s: f64,
    /// End time of the flow in s; `None` for no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
}

/// Marking ramp of an L4S queue: no marks up to the threshold, all packets above threshold plus
/// range.
///
/// Between the two, the marking probability rises linearly. With at most 1,500 bytes in the queue
/// nothing is marked. Source: [RFC9332], appendix A, which also gives the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L4s {
    /// Queue delay up to which nothing is marked, in ms.
    #[serde(default = "default_threshold_ms")]
    pub threshold_ms: f64,
    /// Width of the ramp to probability 1, in ms.
    #[serde(default = "default_range_ms")]
    pub range_ms: f64,
}

impl Default for L4s {
    fn default() -> Self {
        Self { threshold_ms: default_threshold_ms(), range_ms: default_range_ms() }
    }
}

/// A looped capacity recording in the Mahimahi format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceRate {
    /// Path of the trace. A relative path is resolved by [`Config::load_files`].
    pub file: PathBuf,
    /// Factor on the bytes of each delivery opportunity.
    #[serde(default = "default_rate_factor")]
    pub rate_factor: f64,
    /// Start offset in the trace, in s.
    #[serde(default)]
    pub start_s: f64,
    /// Period of the loop in s; `None` for the last line's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_s: Option<f64>,
    /// The content of `file`; `None` until it is loaded.
    #[serde(skip)]
    pub trace: Option<Arc<Trace>>,
}

/// Varying delay: the absolute value of a first-order autoregressive process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// Standard deviation of the process in ms (the mean delay added is 0.8 of it).
    pub sigma_ms: f64,
    /// Time constant of the process in ms.
    pub tau_ms: f64,
}

/// Retransmissions by the radio (HARQ): each round adds a delay, and may be followed by another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retransmission {
    /// Probability of the first round, and of each further one after it.
    pub probability: f64,
    /// Delay of one round in ms.
    pub delay_ms: f64,
}

/// Two-state Markov loss (Gilbert-Elliott), one step per packet.
///
/// The share of packets lost is `loss * enter / (enter + leave)`; a burst lasts `1 / leave`
/// packets in the mean. Losses outside bursts are the link's own `loss`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstLoss {
    /// Probability that a burst begins at a packet.
    pub enter: f64,
    /// Probability that a burst ends at a packet.
    pub leave: f64,
    /// Share of packets lost within a burst.
    #[serde(default = "default_burst_loss")]
    pub loss: f64,
}

impl TraceRate {
    fn validate(&self) -> Result<(), Error> {
        within("trace.rate_factor", self.rate_factor, 0.01, 100.0)?;
        within("trace.start_s", self.start_s, 0.0, 86_400.0)?;
        self.period_s.map_or(Ok(()), |period| within("trace.period_s", period, 0.001, 86_400.0))
    }

    fn load(&mut self, folder: &Path) -> Result<(), Error> {
        if self.trace.is_some() {
            return Ok(());
        }
        self.validate()?;
        let path = folder.join(&self.file);
        let text =
            std::fs::read(&path).map_err(|cause| Error::TraceFile { path: path.clone(), cause })?;
        let period = self.period_s.map(Duration::from_secs_f64);
        let trace = Trace::parse(&text, period)
            .map_err(|cause| Error::TraceText { path: path.clone(), cause })?;
        self.trace = Some(Arc::new(trace));
        Ok(())
    }
}

impl Config {
    /// Returns the configuration of a link of constant `rate`, without delay or loss, with the
    /// default queue.
    pub fn of_rate(rate: Bitrate) -> Self {
        Self { rate_mbps: Some(rate.as_f64() / 1e6), ..Self::empty() }
    }

    /// Returns the configuration of a link that follows `trace`, without delay or loss, with the
    /// default queue.
    pub fn of_trace(trace: Arc<Trace>) -> Self {
        let trace = TraceRate {
            file: PathBuf::from("(in memory)"),
            rate_factor: default_rate_factor(),
            start_s: 0.0,
            period_s: None,
            trace: Some(trace),
        };
        Self { trace: Some(trace), ..Self::empty() }
    }

    /// Returns this configuration with a propagation delay of `delay`.
    pub fn with_delay(self, delay: Duration) -> Self {
        Self { delay_ms: delay.as_secs_f64() * 1e3, ..self }
    }

    fn empty() -> Self {
        Self {
            rate_mbps: None,
            swing: None,
            steps: Vec::new(),
            trace: None,
            queue_bytes: default_queue_bytes(),
            delay_ms: 0.0,
            jitter: None,
            retransmission: None,
            handover: None,
            outage_losing: None,
            outage_holding: None,
            policer: None,
            cubic: None,
            bbr: Vec::new(),
            l4s: None,
            loss: 0.0,
            burst_loss: None,
            recording: None,
            common: Vec::new(),
            reorder: false,
            overhead_bytes: default_overhead_bytes(),
            mtu_bytes: None,
        }
    }

    /// Reads the files of the trace and of the recording that are named and not loaded yet.
    /// Relative paths are resolved against `folder`.
    ///
    /// # Errors
    /// [`Error::TraceFile`], [`Error::TraceText`], [`Error::RecordingFile`] and
    /// [`Error::RecordingText`], all with the path; [`Error::Field`] for an invalid time.
    pub fn load_files(&mut self, folder: &Path) -> Result<(), Error> {
        if let Some(rate) = &mut self.trace {
            rate.load(folder)?;
        }
        if let Some(replay) = &mut self.recording {
            replay.load(folder)?;
        }
        Ok(())
    }

    /// Returns the mean capacity, before any steps; `None` for a trace that is not loaded, and with
    /// neither a rate nor a trace.
    pub fn bitrate_mean(&self) -> Option<Bitrate> {
        match (&self.trace, self.rate_mbps) {
            (Some(rate), _) => {
                rate.trace.as_ref().map(|trace| trace.bitrate_mean().scale(rate.rate_factor))
            }
            (None, Some(mbps)) => Some(Bitrate::from_bps((mbps * 1e6).round() as u64)),
            (None, None) => None,
        }
    }

    /// Checks every field against its range, and the fields that exclude or need each other.
    ///
    /// # Errors
    /// [`Error::Field`] for the first field that is out of range, missing or excluded by another
    /// one.
    pub fn validate(&self) -> Result<(), Error> {
        self.validate_rate()?;
        self.validate_delay()?;
        self.validate_gates()?;
        super::common::validate(&self.common)?;
        if let Some(replay) = &self.recording {
            replay.validate()?;
        }
        share("loss", self.loss)?;
        if let Some(burst) = &self.burst_loss {
            share("burst_loss.enter", burst.enter)?;
            share("burst_loss.loss", burst.loss)?;
            within("burst_loss.leave", burst.leave, 1e-9, 1.0)?;
        }
        Ok(())
    }

    fn validate_rate(&self) -> Result<(), Error> {
        match (self.rate_mbps, &self.trace) {
            (None, None) => return Err(wrong("rate_mbps", "none", "give rate_mbps or trace")),
            (Some(mbps), Some(_)) => {
                return Err(wrong("rate_mbps", mbps, "give rate_mbps or trace, not both"));
            }
            (Some(mbps), None) => {
                within("rate_mbps", mbps, 0.01, 1e5)?;
            }
            (None, Some(trace)) => {
                trace.validate()?;
            }
        }
        if let Some(swing) = &self.swing {
            if self.trace.is_some() {
                return Err(wrong("swing", "given", "a trace swings by itself: leave it out"));
            }
            within("swing.sigma", swing.sigma, 0.0, 2.0)?;
            within("swing.tau_ms", swing.tau_ms, 1.0, 3.6e6)?;
        }
        if !self.steps.is_empty() && (self.trace.is_some() || self.swing.is_some()) {
            return Err(wrong("steps", "given", "they need a rate_mbps that does not swing"));
        }
        for step in &self.steps {
            within("steps.at_s", step.at_s, 0.0, 86_400.0)?;
            within("steps.rate_mbps", step.rate_mbps, 0.01, 1e5)?;
        }
        if let Some(pair) = self.steps.windows(2).find(|pair| pair[1].at_s < pair[0].at_s) {
            return Err(wrong("steps.at_s", pair[1].at_s, "must not be before the step above it"));
        }
        self.validate_others()?;
        let queue = self.queue_bytes;
        within("queue_bytes", queue as f64, 1.0, 64e6)?;
        let drains_in_s = self.bitrate_mean().map(|rate| queue as f64 * 8.0 / rate.as_f64());
        if drains_in_s.is_some_and(|seconds| seconds > 600.0) {
            return Err(wrong("queue_bytes", queue, "takes over ten minutes at this rate"));
        }
        within("overhead_bytes", self.overhead_bytes as f64, 0.0, 1e3)?;
        self.mtu_bytes.map_or(Ok(()), |mtu| within("mtu_bytes", mtu as f64, 100.0, 65_535.0))
    }

    fn validate_others(&self) -> Result<(), Error> {
        if let Some(policer) = &self.policer {
            within("policer.rate_mbps", policer.rate_mbps, 0.01, 1e5)?;
            within("policer.burst_bytes", policer.burst_bytes as f64, 1_500.0, 64e6)?;
        }
        if let Some(cubic) = &self.cubic {
            within("cubic.rtt_ms", cubic.rtt_ms, 1.0, 1e4)?;
            within("cubic.from_s", cubic.from_s, 0.0, 86_400.0)?;
            if let Some(until) = cubic.until_s {
                within("cubic.until_s", until, 0.0, 1e6)?;
                not_before("cubic.until_s", until, cubic.from_s)?;
            }
        }
        for bbr in &self.bbr {
            within("bbr.rtt_ms", bbr.rtt_ms, 1.0, 1e4)?;
            within("bbr.from_s", bbr.from_s, 0.0, 86_400.0)?;
            if let Some(until) = bbr.until_s {
                within("bbr.until_s", until, 0.0, 1e6)?;
                not_before("bbr.until_s", until, bbr.from_s)?;
            }
        }
        if let Some(l4s) = &self.l4s {
            within("l4s.threshold_ms", l4s.threshold_ms, 0.0, 1e3)?;
            within("l4s.range_ms", l4s.range_ms, 0.0, 1e3)?;
        }
        Ok(())
    }

    fn validate_delay(&self) -> Result<(), Error> {
        within("delay_ms", self.delay_ms, 0.0, 6e4)?;
        if let Some(jitter) = &self.jitter {
            within("jitter.sigma_ms", jitter.sigma_ms, 0.0, 1e4)?;
            within("jitter.tau_ms", jitter.tau_ms, 1.0, 3.6e6)?;
        }
        if let Some(round) = &self.retransmission {
            within("retransmission.probability", round.probability, 0.0, 0.9)?;
            within("retransmission.delay_ms", round.delay_ms, 0.0, 1e4)?;
        }
        Ok(())
    }

    fn validate_gates(&self) -> Result<(), Error> {
        if let Some(handover) = &self.handover {
            let [from, to] = handover.every_s;
            within("handover.every_s", from, 0.1, 1e6)?;
            within("handover.every_s", to, 0.1, 1e6)?;
            if to < from {
                return Err(wrong("handover.every_s", to, "must not be below the first"));
            }
            within("handover.step_ms", handover.step_ms, 0.001, 0.9e9)?;
            if handover.step_ms > from * 1e3 * 0.9 {
                let rule = "must be at most nine tenths of the shortest time between two";
                return Err(wrong("handover.step_ms", handover.step_ms, rule));
            }
        }
        let losing = ["outage_losing.every_s", "outage_losing.mean_ms"];
        let holding = ["outage_holding.every_s", "outage_holding.mean_ms"];
        let [losing, holding] = [(&self.outage_losing, losing), (&self.outage_holding, holding)]
            .map(|(outage, names)| outage.map_or(Ok(()), |outage| outage.validate(names)));
        losing.and(holding)
    }
}

fn not_before(field: &'static str, until: f64, from: f64) -> Result<(), Error> {
    if until < from { Err(wrong(field, until, "must not be before from_s")) } else { Ok(()) }
}

fn share(field: &'static str, value: f64) -> Result<(), Error> {
    within(field, value, 0.0, 1.0)
}

/// Returns the default queue size, 256 ms at 8 Mbit/s: modems buffer a few hundred milliseconds.
const fn default_queue_bytes() -> u64 {
    256_000
}

/// Returns the bytes of IPv4 (20) and UDP (8) headers.
const fn default_overhead_bytes() -> u64 {
    28
}

const fn default_rate_factor() -> f64 {
    1.0
}

/// Returns the threshold that [RFC9332] recommends as `minTh`.
const fn default_threshold_ms() -> f64 {
    0.8
}

/// Returns the width of the ramp that [RFC9332] recommends as `range`.
const fn default_range_ms() -> f64 {
    0.4
}

/// Returns 1: by default, all packets in a burst are lost (Gilbert's original model).
const fn default_burst_loss() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        match toml::from_str::<Config>(text) {
            Ok(config) => config.validate().expect_err("out of range").to_string(),
            Err(error) => error.message().to_string(),
        }
    }

    #[test]
    fn every_part_can_be_written_in_toml() {
        let text = r#"
            rate_mbps = 8.0
            swing = { sigma = 0.25, tau_ms = 80.0 }
            queue_bytes = 300000
            delay_ms = 20.0
            jitter = { sigma_ms = 2.0, tau_ms = 1000.0 }
            retransmission = { probability = 0.1, delay_ms = 8.0 }
            handover = { step_ms = 300.0, every_s = [10.0, 30.0] }
            outage_losing = { every_s = 60.0, mean_ms = 60.0 }
            outage_holding = { every_s = 120.0, mean_ms = 500.0 }
            policer = { rate_mbps = 4.0, burst_bytes = 32000 }
            cubic = { rtt_ms = 30.0, from_s = 5.0, until_s = 60.0 }
            bbr = [{ rtt_ms = 30.0 }, { rtt_ms = 60.0, from_s = 5.0, until_s = 60.0 }]
            l4s = { threshold_ms = 1.0, range_ms = 0.0 }
            loss = 0.001
            burst_loss = { enter = 0.001, leave = 0.25, loss = 0.8 }
            recording = { file = "drive.csv", operator = "b", start_s = 4.0, interval_s = 1.0 }
            common = [{ name = "carrier b", outage_losing = { every_s = 9.0, mean_ms = 60.0 } }]
            reorder = false
            overhead_bytes = 28
            mtu_bytes = 1400
        "#;
        let config: Config = toml::from_str(text).expect("well formed");
        config.validate().expect("in range");
        let again: Config =
            toml::from_str(&toml::to_string(&config).expect("writable")).expect("well formed");
        assert_eq!(config, again);
    }

    #[test]
    fn errors_name_the_field() {
        assert_eq!(error("delay_ms = 1.0"), "rate_mbps = none: give rate_mbps or trace");
        assert_eq!(error("rate_mbps = 0.0"), "rate_mbps = 0: must be 0.01 to 100000 Mbit/s");
        assert_eq!(error("rate_mbps = nan"), "rate_mbps = NaN: must be 0.01 to 100000 Mbit/s");
        assert_eq!(error("rate_mbps = 1.0\nloss = 1.5"), "loss = 1.5: must be 0 to 1");
        assert_eq!(
            error("rate_mbps = 1.0\nhandover = { step_ms = 300.0, every_s = [30.0, 10.0] }"),
            "handover.every_s = 10: must not be below the first"
        );
        assert!(error("rate_mbs = 1.0").starts_with("unknown field `rate_mbs`"));
    }

    #[test]
    fn a_missing_trace_is_reported_with_its_path() {
        let mut config: Config = toml::from_str("trace = { file = 'no/such.pps' }").expect("toml");
        let error = config.load_files(Path::new("/nowhere")).expect_err("no such file");
        assert!(error.to_string().starts_with("cannot read the trace /nowhere/no/such.pps: "));
    }
}
