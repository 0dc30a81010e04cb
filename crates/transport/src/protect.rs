//! Number of packets per unit, and how many of them are repair.

use serde::Deserialize;
use tautline_units::{Bitrate, ByteCount};

use crate::error::ConfigError;
use crate::setting::check;
use crate::wire::Prefix;

/// Coding of media units: at a fixed code rate ([LTE]), or as computed by the schedule `quantile`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Code; default block.
    pub code: Code,
    /// Minimum number of source packets, so that even a small unit spreads over the links; 1 to 64,
    /// default 4 ([LTE] Fig. 15).
    pub source_count_min: usize,
    /// Minimum symbol bytes. A unit too small to fill that many packets with this many bytes each
    /// gets fewer packets, at least two; 0 to 500, default 64. Below it our overhead and IP's
    /// exceed the unit's bytes, and a slow link carries little else ([LLMLNCL] keeps packets above
    /// 500).
    pub symbol_bytes_min: usize,
    /// Ratio of source packets to all packets, above 0.05 to 1; default 0.5: 4 of 8, the minimum
    /// that survives the loss of one of two links.
    ///
    /// This and the two fields above apply to all schedules except `quantile`.
    pub code_rate: f64,
    /// Target share of units that may miss their deadline, for `quantile`; 0.0001 to 0.2, default
    /// 0.005.
    pub miss_target: f64,
    /// Minimum budget of `quantile` while a link is up, however unreliable, so that a bad minute
    /// still yields a picture; default 400 kbit/s.
    #[serde(rename = "floor_kbps", deserialize_with = "crate::setting::kbps")]
    pub floor: Bitrate,
}

/// Name of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A separate block for each unit.
    Block,
    /// The streaming code: each repair packet protects all source packets that may be missing.
    /// Units are cut into the minimum number of source packets. Beyond the code rate, repair
    /// packets are sent when reports request them, if `retransmit` is set:
    /// docs/decisions/0011-streaming-on-the-wire.md.
    Stream,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            code: Code::Block,
            source_count_min: 4,
            symbol_bytes_min: 64,
            code_rate: 0.5,
            miss_target: 0.005,
            floor: Bitrate::from_kbps(400),
        }
    }
}

impl Config {
    /// Returns the minimum number of source packets for a unit of `unit_bytes`.
    pub fn source_count_for(&self, unit_bytes: usize) -> usize {
        if self.code == Code::Stream {
            return 1;
        }
        let filled = unit_bytes.saturating_add(Prefix::BYTES) / self.symbol_bytes_min.max(1);
        filled.clamp(self.source_count_min.min(2), self.source_count_min)
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`ConfigError`] with the name of the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check("protect.code_rate", (0.05..=1.0).contains(&self.code_rate), || {
            format!("{} is not within 0.05 to 1", self.code_rate)
        })?;
        let k = self.source_count_min;
        check("protect.source_count_min", (1..=64).contains(&k), || {
            format!("{k} is not within 1 to 64")
        })?;
        check("protect.miss_target", (1e-4..=0.2).contains(&self.miss_target), || {
            format!("{} is not within 0.0001 to 0.2", self.miss_target)
        })?;
        let least = self.symbol_bytes_min;
        check("protect.symbol_bytes_min", least <= 500, || {
            format!("{least} is not within 0 to 500")
        })?;
        check("protect.source_count_min", packet_count(k, self.code_rate) <= PACKETS_MAX, || {
            format!("{k} source packets at this code rate make more than {PACKETS_MAX} packets")
        })
    }
}

/// The packets of a unit: k source packets of equal length, n packets in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// k.
    pub source_count: usize,
    /// n.
    pub packet_count: usize,
    /// Bytes of each packet's symbol.
    pub symbol_bytes: usize,
}

/// Plans a media unit of `unit_bytes` for packets that carry `symbol_bytes_max`.
///
/// # Errors
/// The largest unit that can be planned, if this one is larger.
pub fn plan_media(
    config: &Config,
    unit_bytes: usize,
    symbol_bytes_max: usize,
) -> Result<Plan, ByteCount> {
    let least = config.source_count_for(unit_bytes);
    plan(unit_bytes, symbol_bytes_max, least, config.code_rate, MEDIA_SOURCE_MAX)
}

/// Plans a media unit of `unit_bytes` under the streaming code, for source packets that carry
/// `payload_bytes_max`. `repair_count` maps the number of source packets to that of repair packets.
///
/// # Errors
/// The largest unit that can be planned, if this one is larger.
pub(crate) fn plan_stream(
    unit_bytes: usize,
    payload_bytes_max: usize,
    repair_count: impl FnOnce(usize) -> usize,
) -> Result<Plan, ByteCount> {
    let plan = plan(unit_bytes, payload_bytes_max, 1, 1.0, MEDIA_SOURCE_MAX)?;
    Ok(Plan { packet_count: plan.source_count + repair_count(plan.source_count), ..plan })
}

/// Plans a unit of a capped channel: the minimum number of packets, no repair.
///
/// # Errors
/// The largest unit that can be planned, if this one is larger.
pub fn plan_parts(unit_bytes: usize, symbol_bytes_max: usize) -> Result<Plan, ByteCount> {
    plan(unit_bytes, symbol_bytes_max, 1, 1.0, PARTS_MAX)
}

/// Plans a command: the minimum number of packets, no repair; the links are its redundancy.
///
/// # Errors
/// The largest unit that can be planned, if this one is larger.
pub fn plan_copies(unit_bytes: usize, symbol_bytes_max: usize) -> Result<Plan, ByteCount> {
    plan(unit_bytes, symbol_bytes_max, 1, 1.0, COMMAND_SOURCE_MAX)
}

fn plan(
    unit_bytes: usize,
    symbol_bytes_max: usize,
    source_count_min: usize,
    code_rate: f64,
    source_count_max: usize,
) -> Result<Plan, ByteCount> {
    let content = unit_bytes.saturating_add(Prefix::BYTES);
    let source_count = content.div_ceil(symbol_bytes_max).max(source_count_min);
    let packet_count = packet_count(source_count, code_rate);
    if source_count > source_count_max || packet_count > PACKETS_MAX {
        let most = (1..=source_count_max)
            .rev()
            .find(|k| self::packet_count(*k, code_rate) <= PACKETS_MAX)
            .unwrap_or(1);
        return Err(ByteCount::new((most * symbol_bytes_max - Prefix::BYTES) as u64));
    }
    Ok(Plan { source_count, packet_count, symbol_bytes: content.div_ceil(source_count) })
}

fn packet_count(source_count: usize, code_rate: f64) -> usize {
    // The small term keeps 3 / 0.3 at 10.
    (source_count as f64 / code_rate - 1e-9).ceil() as usize
}

/// GF(2^8) has room for 256 packets in a block.
const PACKETS_MAX: usize = 256;
/// k is one byte on the wire.
const MEDIA_SOURCE_MAX: usize = 255;
/// A copy goes over every link: large units belong on the media channel.
const COMMAND_SOURCE_MAX: usize = 16;
/// Maximum packets of a unit with a cap: 46 kB of telemetry in small packets.
const PARTS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_unit_becomes_four_of_eight() {
        let plan = plan_media(&Config::default(), 1_392, 1_169).unwrap();
        assert_eq!(plan, Plan { source_count: 4, packet_count: 8, symbol_bytes: 350 });
        let tiny = plan_media(&Config::default(), 120, 1_169).unwrap();
        assert_eq!(tiny, Plan { source_count: 2, packet_count: 4, symbol_bytes: 64 });
        let empty = plan_media(&Config::default(), 0, 1_169).unwrap();
        assert_eq!(empty, Plan { source_count: 2, packet_count: 4, symbol_bytes: 4 });
    }

    #[test]
    fn a_large_unit_has_as_many_packets_as_it_needs_up_to_256() {
        let config = Config::default();
        let plan = plan_media(&config, 128 * 1_169 - 8, 1_169).unwrap();
        assert_eq!((plan.source_count, plan.packet_count, plan.symbol_bytes), (128, 256, 1_169));
        let most = ByteCount::new(128 * 1_169 - 8);
        assert_eq!(plan_media(&config, 128 * 1_169 - 7, 1_169), Err(most));
        assert_eq!(plan_media(&config, usize::MAX, 1_169), Err(most));
    }

    #[test]
    fn a_command_is_one_packet() {
        let plan = plan_copies(60, 119).unwrap();
        assert_eq!(plan, Plan { source_count: 1, packet_count: 1, symbol_bytes: 68 });
        assert_eq!(plan_copies(2_000, 119), Err(ByteCount::new(16 * 119 - 8)));
    }
}
