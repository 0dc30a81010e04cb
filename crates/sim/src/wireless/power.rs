use serde::{Deserialize, Serialize};
use strum::VariantArray;
use tautline_units::{Bitrate, Duration};

use super::Config;

/// How much of the access point's power the station receives, as [CAR] has it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// -20 dBm: the station 10 cm away.
    Near,
    /// -35 dBm: some 5 m away.
    Middle,
    /// -60 dBm: some 20 m away, outside of the car.
    Far,
}

impl Power {
    /// Returns the power, dBm.
    pub fn dbm(self) -> i32 {
        match self {
            Self::Near => -20,
            Self::Middle => -35,
            Self::Far => -60,
        }
    }

    /// Returns the one of so many dBm, if the paper has it.
    pub fn of_dbm(dbm: i32) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|power| power.dbm() == dbm)
    }

    /// Returns the network at this power, nobody else in it.
    ///
    /// Fitted to the paper's Table 1, two numbers of it by two at each power: the overhead to UDP's throughput at 1328
    /// bytes, the collisions to TCP's. The queue is the paper's. Its average loss is .4 %, and up to 1.5 % where the channel is
    /// bad; its bit errors are .18 % where they are worst, and untold elsewhere. How these go with the power is ours,
    /// as are the rates between which the radio goes far away, where the paper says that each second differs.
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
