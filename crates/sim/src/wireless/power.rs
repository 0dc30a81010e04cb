use serde::{Deserialize, Serialize};
use strum::VariantArray;
use tautline_units::{Bitrate, Duration};

use super::config::Config;

/// Power that the station receives from the access point, as in [CAR].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// -20 dBm: the station is 10 cm away.
    Near,
    /// -35 dBm: about 5 m away.
    Middle,
    /// -60 dBm: about 20 m away, outside the car.
    Far,
}

impl Power {
    /// Returns the power in dBm.
    pub fn dbm(self) -> i32 {
        match self {
            Self::Near => -20,
            Self::Middle => -35,
            Self::Far => -60,
        }
    }

    /// Returns the variant with this received power; `None` if the paper has none.
    pub fn of_dbm(dbm: i32) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|power| power.dbm() == dbm)
    }

    /// Returns the network at this power, without other stations.
    ///
    /// Two parameters are fitted to two numbers of the paper's Table 1 at each power: the overhead
    /// to UDP's throughput at 1328 bytes, the collisions to TCP's. The queue size is the paper's.
    /// The paper's average loss is .4 %, up to 1.5 % on a bad channel; its worst share of bit
    /// errors is .18 %, and no other is stated. Their dependence on the power is our choice. So are
    /// the rates between which the distant radio switches; the paper says only that each second
    /// differs.
    pub fn config(self) -> Config {
        let mbps = |rates: &[u64]| rates.iter().copied().map(Bitrate::from_mbps).collect();
        let (overhead_micros, bitrates, collisions, loss, damage) = match self {
            Self::Near => (111, mbps(&[54]), 0.11, 0.003, 0.000_2),
            Self::Middle => (114, mbps(&[54]), 0.13, 0.005, 0.000_5),
            Self::Far => (112, mbps(&[54, 36]), 0.22, 0.015, 0.001_8),
        };
        Config {
            overhead: Duration::from_micros(overhead_micros),
            bitrates,
            coherence: Duration::from_millis(250),
            collisions,
            loss,
            damage,
            queue_packets: 120,
            disturbance: None,
        }
    }
}
