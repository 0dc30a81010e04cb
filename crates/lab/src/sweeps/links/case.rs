//! Impairments of the links in a set, in addition to their own.

use std::fmt;

use tautline_sim::link::{Jitter, Pair};
use tautline_sim::preset::{self, Carrier};
use tautline_units::{Duration, Instant};

use super::drive::Drive;
use super::trail::Cut;

/// One kind of impairment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    /// None in addition to the links' own.
    Plain,
    /// One link, which depends on the seed, is cut for two seconds in the middle.
    Blackout,
    /// The delay of one link, which depends on the seed, varies between 100 and about 1200 ms, both
    /// ways.
    Swing,
    /// The links alternate between modems of two carriers in the countryside. Each carrier's links
    /// fail together, and occasionally all do.
    Carriers,
}

impl Case {
    /// All cases.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Blackout, Self::Swing, Self::Carriers];

    /// Returns the name in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Blackout => "blackout",
            Self::Swing => "swing",
            Self::Carriers => "carriers",
        }
    }

    /// Applies this case to a run.
    pub fn befall(self, drive: &mut Drive) {
        let count = drive.links.len().max(1);
        let chosen = drive.seed as usize % count;
        let middle = Instant::ZERO + drive.length / 2;
        match self {
            Self::Plain => {}
            Self::Blackout => {
                drive.cut(Cut { link: chosen, from: middle, to: middle + BLACKOUT });
            }
            Self::Swing => {
                if let Some(pair) = drive.links.get_mut(chosen) {
                    swing(pair);
                }
            }
            Self::Carriers => {
                let carriers = [Carrier::A, Carrier::B].into_iter().cycle();
                for (pair, carrier) in drive.links.iter_mut().zip(carriers) {
                    let shared = preset::lte_countryside(carrier);
                    pair.up.common = shared.up.common;
                    pair.down.common = shared.down.common;
                }
            }
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Makes a link's delay vary: 100 ms plus the absolute value of a process, 1100 ms at 2.75 sigma.
fn swing(pair: &mut Pair) {
    for direction in [&mut pair.up, &mut pair.down] {
        direction.delay_ms = 100.0;
        direction.jitter = Some(Jitter { sigma_ms: 400.0, tau_ms: 1_000.0 });
    }
}

const BLACKOUT: Duration = Duration::from_secs(2);
