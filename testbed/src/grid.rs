//! Which cells are measured, in which order.

use crate::cell::Cell;
use crate::transport::Transport;

/// The paper's, in thousands of bytes a second.
const RATES: [u32; 4] = [450, 700, 1200, 2000];
/// The paper's.
const LOSSES: [f64; 3] = [0.4, 1.5, 5.0];
/// The paper tells none; the one of the reference comes first.
const RTTS: [u32; 3] = [20, 60, 2];
const SEEDS: u64 = 5;
/// At this rate today's transports are measured too.
const RATE_OF_TODAY: u32 = 1200;
const OWN: [Transport; 2] = [Transport::Tautline, Transport::TautlineTwo];
const TODAY: [Transport; 3] = [Transport::Cubic, Transport::Bbr, Transport::SctpPartial];

/// Returns every cell: the paper's transports and Tautline at every rate, loss and round trip, those
/// of today at one rate; what is stopped early is whole for the round trips that it has.
pub(crate) fn whole(seconds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for rtt_ms in RTTS {
        for transport in Transport::papers().into_iter().chain(OWN) {
            cells.extend(cells_of(transport, &RATES, rtt_ms, SEEDS, seconds));
        }
        for transport in TODAY {
            cells.extend(cells_of(transport, &[RATE_OF_TODAY], rtt_ms, SEEDS, seconds));
        }
    }
    cells
}

/// Returns a part of it that takes minutes: one rate, one round trip, two seeds.
pub(crate) fn quick(seconds: u32) -> Vec<Cell> {
    let all = Transport::papers().into_iter().chain(OWN).chain(TODAY);
    all.flat_map(|transport| cells_of(transport, &[RATE_OF_TODAY], RTTS[0], 2, seconds)).collect()
}

fn cells_of(
    transport: Transport,
    rates: &[u32],
    rtt_ms: u32,
    seeds: u64,
    seconds: u32,
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for rate_kbyte_per_s in rates.iter().copied() {
        for loss_percent in LOSSES {
            let cell =
                |seed| Cell { transport, rate_kbyte_per_s, loss_percent, rtt_ms, seed, seconds };
            cells.extend((1..=seeds).map(cell));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_cell_stands_twice() {
        let cells = whole(20);
        let names: BTreeSet<String> = cells.iter().map(Cell::name).collect();
        assert_eq!((cells.len(), names.len()), (1935, 1935));
        assert!(quick(20).iter().all(|cell| names.contains(&cell.name())));
    }
}
