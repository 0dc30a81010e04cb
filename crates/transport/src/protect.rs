//! Coding of units: settings, and the number of packets of units without repair.

use serde::{Deserialize, Serialize};
use tautline_units::{Bitrate, Bounded, ByteCount};

use crate::error::ConfigError;
use crate::setting::rate_within;
use crate::wire::Prefix;

/// Parameters of the erasure code that protects media units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Code by which repair packets are made.
    pub code: Code,
    /// Target share of units that may miss their deadline.
    pub miss_target: f64,
    /// Minimum media budget while links may carry media, however unreliable, as far as their rates
    /// allow it: a bad minute still yields a picture.
    #[serde(rename = "floor_kbps", with = "crate::setting::kbps")]
    pub floor: Bitrate,
}

/// Code by which repair packets of media units are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The block code: each unit is a block of its own.
    Block,
    /// The streaming code: each repair packet protects all source packets that may be missing.
    /// Units are cut into the minimum number of source packets. Beyond the code rate, repair
    /// packets are sent when reports request them, if `retransmit` is set:
    /// docs/decisions/0011-streaming-on-the-wire.md.
    Stream,
}

impl Default for Config {
    fn default() -> Self {
        Self { code: Code::Block, miss_target: 0.005, floor: Bitrate::from_kbps(400) }
    }
}

impl Config {
    /// Checks every field.
    ///
    /// # Errors
    /// [`ConfigError`] with the name of the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        Bounded::new("protect.miss_target", self.miss_target, 1e-4..=0.2).check()?;
        rate_within("protect.floor_kbps", self.floor, 0)
    }
}

/// The packets of a unit: k source packets of equal length, n packets in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Number of source packets (k).
    pub source_count: usize,
    /// Number of source and repair packets together (n).
    pub packet_count: usize,
    /// Length of each packet's symbol, in bytes.
    pub symbol_bytes: usize,
}

/// Plans a unit of a capped channel: the minimum number of packets, no repair.
///
/// # Errors
/// The length of the largest unit that can be planned, if this one is larger.
pub fn plan_parts(unit_bytes: usize, symbol_bytes_max: usize) -> Result<Plan, ByteCount> {
    plan(unit_bytes, symbol_bytes_max, PARTS_MAX)
}

/// Plans a command: the minimum number of packets, no repair; the links are its redundancy.
///
/// # Errors
/// The length of the largest command that can be planned, if this one is larger.
pub fn plan_copies(unit_bytes: usize, symbol_bytes_max: usize) -> Result<Plan, ByteCount> {
    plan(unit_bytes, symbol_bytes_max, COMMAND_SOURCE_MAX)
}

fn plan(unit_bytes: usize, symbol_bytes_max: usize, most: usize) -> Result<Plan, ByteCount> {
    let content = unit_bytes.saturating_add(Prefix::BYTES);
    let source_count = content.div_ceil(symbol_bytes_max);
    if source_count > most {
        return Err(ByteCount::new((most * symbol_bytes_max - Prefix::BYTES) as u64));
    }
    let symbol_bytes = content.div_ceil(source_count);
    Ok(Plan { source_count, packet_count: source_count, symbol_bytes })
}

/// Maximum number of packets of a command. A copy goes over every link, so large units belong on
/// the media channel.
const COMMAND_SOURCE_MAX: usize = 16;
/// Maximum number of packets of a unit of a capped channel: 46 kB of telemetry in small packets.
const PARTS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_packet() {
        let plan = plan_copies(60, 119).unwrap();
        assert_eq!(plan, Plan { source_count: 1, packet_count: 1, symbol_bytes: 68 });
        assert_eq!(plan_copies(2_000, 119), Err(ByteCount::new(16 * 119 - 8)));
    }
}
