//! What is done to the links of a set beside what they do by themselves.

use std::fmt;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_sim::link::{Jitter, Pair};
use tautline_units::{Duration, Instant};

use super::drive::{Cut, Drive};

/// Is one kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    /// None but the links' own.
    Plain,
    /// One link, another with each seed, is cut for two seconds in the middle.
    Blackout,
    /// One link's delay wanders between 100 and about 1200 ms, both ways.
    Swing,
    /// Every other link, as modems of one carrier, is cut for half a second at the same instants,
    /// about every ten seconds.
    Carriers,
}

impl Case {
    /// Every case.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Blackout, Self::Swing, Self::Carriers];

    /// The name in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Blackout => "blackout",
            Self::Swing => "swing",
            Self::Carriers => "carriers",
        }
    }

    /// Does to a run what this case is.
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
            Self::Carriers => common_cuts(drive),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Lets a link's delay wander: 100 ms and the absolute value of a process, 1100 ms at 2.75 sigma.
fn swing(pair: &mut Pair) {
    for direction in [&mut pair.up, &mut pair.down] {
        direction.delay_ms = 100.0;
        direction.jitter = Some(Jitter { sigma_ms: 400.0, tau_ms: 1_000.0 });
    }
}

fn common_cuts(drive: &mut Drive) {
    let mut rng = ChaCha8Rng::seed_from_u64(drive.seed);
    rng.set_stream(CUTS_STREAM);
    let end = Instant::ZERO + drive.length;
    let mut from = Instant::ZERO + Duration::from_millis(rng.random_range(3_000..9_000));
    while from + COMMON_CUT < end {
        for link in (0..drive.links.len()).step_by(2) {
            drive.cut(Cut { link, from, to: from + COMMON_CUT });
        }
        from += Duration::from_millis(rng.random_range(6_000..14_000));
    }
}

const BLACKOUT: Duration = Duration::from_secs(2);
const COMMON_CUT: Duration = Duration::from_millis(500);
const CUTS_STREAM: u64 = 1 << 41;
