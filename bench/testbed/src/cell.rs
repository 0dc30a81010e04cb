//! One cell of the matrix: a transport, its load, and the network.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::air::Air;
use crate::transport::Transport;
use crate::video::Codec;

/// Parameters of one run. The same cell yields the same result, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) transport: Transport,
    pub(crate) load: Load,
    /// Percentage of packets lost towards the receiver, independently of each other.
    pub(crate) loss_percent: f64,
    pub(crate) rtt_ms: u32,
    pub(crate) seed: u64,
    /// Duration for which packets are offered.
    pub(crate) seconds: u32,
    /// The paper's wireless network, which replaces the wire and has its own losses and delays;
    /// `None` for a wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) air: Option<Air>,
}

/// Load of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Load {
    /// Packets at equal intervals, in kB/s.
    Constant(u32),
    /// Packets of a video.
    Video(Codec),
}

impl Cell {
    /// Returns a unique name for files.
    pub(crate) fn name(&self) -> String {
        let Self { transport, load, loss_percent, rtt_ms, seed, seconds, air } = self;
        let load = match load {
            Load::Constant(rate) => rate.to_string(),
            Load::Video(Codec::Mpeg2) => "mpeg2".to_owned(),
            Load::Video(Codec::H264) => "h264".to_owned(),
        };
        match air {
            None => format!("{transport}_{load}_{loss_percent}_{rtt_ms}_{seconds}s_{seed}"),
            Some(Air { power, disturbed }) => {
                let alone = if *disturbed { "disturbed" } else { "alone" };
                format!("{transport}_{load}_{}dBm_{alone}_{seconds}s_{seed}", power.dbm())
            }
        }
    }

    /// Returns the rate of a constant load in kB/s; `None` for a video.
    pub(crate) fn rate(&self) -> Option<u32> {
        match self.load {
            Load::Constant(rate) => Some(rate),
            Load::Video(_) => None,
        }
    }

    /// Returns the duration for which packets are offered.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }
}

#[cfg(test)]
mod tests {
    use tautline_sim::wireless::Power;

    use super::*;

    #[test]
    fn cells_have_distinct_names() {
        let cell = Cell {
            transport: Transport::UdpLite,
            load: Load::Constant(450),
            loss_percent: 5.0,
            rtt_ms: 20,
            seed: 1,
            seconds: 10,
            air: None,
        };
        let lossless = Cell { loss_percent: 0.4, ..cell };
        let video = Cell { load: Load::Video(Codec::Mpeg2), ..cell };
        assert_eq!(cell.name(), "udp-lite_450_5_20_10s_1");
        assert_eq!(lossless.name(), "udp-lite_450_0.4_20_10s_1");
        assert_eq!(video.name(), "udp-lite_mpeg2_5_20_10s_1");
        let air = Air { power: Power::Middle, disturbed: true };
        let wireless = Cell { air: Some(air), ..cell };
        assert_eq!(wireless.name(), "udp-lite_450_-35dBm_disturbed_10s_1");
    }
}
