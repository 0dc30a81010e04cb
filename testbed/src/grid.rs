//! Which cells are measured, in which order.

use crate::cell::{Cell, Load};
use crate::transport::Transport;
use crate::video::Codec;

/// The paper's, in thousands of bytes a second.
const RATES: [u32; 4] = [450, 700, 1200, 2000];
/// The paper's.
const LOSSES: [f64; 3] = [0.4, 1.5, 5.0];
/// The paper tells none; the one of the reference comes first.
const RTTS: [u32; 3] = [20, 60, 2];
/// The paper's codec at every round trip.
const VIDEOS: [Load; 2] = [Load::Video(Codec::Mpeg2), Load::Video(Codec::H264)];
/// The paper's.
const LOSS_OF_VIDEO: f64 = 1.5;
/// Of which the testbed holds every picture in memory.
const VIDEO_SECONDS: u32 = 10;
const SEEDS: u64 = 5;
const SEEDS_OF_QUICK: u64 = 2;
/// Of constant rates at this one today's transports are measured too.
const LOAD_OF_TODAY: Load = Load::Constant(1200);
const OWN: [Transport; 2] = [Transport::Tautline, Transport::TautlineTwo];
const TODAY: [Transport; 3] = [Transport::Cubic, Transport::Bbr, Transport::SctpPartial];

/// Returns every cell: the paper's transports and Tautline at every rate, loss and round trip, those
/// of today at one rate, and each a video; what is stopped early is whole for the round trips and
/// seeds that it has.
pub(crate) fn whole(seconds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for rtt_ms in RTTS {
        for seed in 1..=SEEDS {
            for transport in Transport::papers().into_iter().chain(OWN) {
                cells.extend(cells_of(
                    transport,
                    &RATES.map(Load::Constant),
                    rtt_ms,
                    seed,
                    seconds,
                ));
            }
            for transport in TODAY {
                cells.extend(cells_of(transport, &[LOAD_OF_TODAY], rtt_ms, seed, seconds));
            }
            for transport in Transport::papers().into_iter().chain(OWN).chain(TODAY) {
                let videos: &[Load] = if rtt_ms == RTTS[0] { &VIDEOS } else { &VIDEOS[..1] };
                cells.extend(cells_of(transport, videos, rtt_ms, seed, VIDEO_SECONDS));
            }
        }
    }
    cells
}

/// Returns a part of it that takes minutes: one rate, one round trip, two seeds, and the paper's codec
/// at the loss of its Table 3.
pub(crate) fn quick(seconds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for seed in 1..=SEEDS_OF_QUICK {
        let all = || Transport::papers().into_iter().chain(OWN).chain(TODAY);
        for transport in all() {
            cells.extend(cells_of(transport, &[LOAD_OF_TODAY], RTTS[0], seed, seconds));
        }
        for transport in all() {
            let mut videos = cells_of(transport, &VIDEOS[..1], RTTS[0], seed, VIDEO_SECONDS);
            videos.retain(|cell| cell.loss_percent == LOSS_OF_VIDEO);
            cells.extend(videos);
        }
    }
    cells
}

fn cells_of(
    transport: Transport,
    loads: &[Load],
    rtt_ms: u32,
    seed: u64,
    seconds: u32,
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for load in loads.iter().copied() {
        cells.extend(LOSSES.map(|loss_percent| Cell {
            transport,
            load,
            loss_percent,
            rtt_ms,
            seed,
            seconds,
        }));
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
        assert_eq!((cells.len(), names.len()), (2715, 2715));
        assert!(quick(20).iter().all(|cell| names.contains(&cell.name())));
    }
}
