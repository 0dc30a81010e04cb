//! The cells to measure, in order.

use strum::VariantArray;
use tautline_sim::wireless::Power;

use crate::air::Air;
use crate::cell::{Cell, Load};
use crate::transport::Transport;
use crate::video::Codec;

/// Rates of the paper, in kB/s.
const RATES: [u32; 4] = [450, 700, 1200, 2000];
/// Loss rates of the paper, in percent.
const LOSSES: [f64; 3] = [0.4, 1.5, 5.0];
/// Loss rate of the paper's Fig. 3 and Table 3.
const LOSS_OF_FIGURES: f64 = 1.5;
/// Round-trip times in ms. The paper states none; that of the independent measurement comes first.
const RTTS: [u32; 3] = [20, 60, 2];
const MPEG2: Load = Load::Video(Codec::Mpeg2);
const H264: Load = Load::Video(Codec::H264);
/// Length of a video in seconds, limited because the testbed keeps every picture in memory.
const VIDEO_SECONDS: u32 = 10;
const SEEDS: u64 = 5;
/// Number of seeds that run first, enough for a confidence interval; the others come later.
const SEEDS_AT_FIRST: u64 = 3;
const SEEDS_OF_QUICK: u64 = 2;
/// The only constant load at which today's transports are also measured.
const LOAD_OF_TODAY: Load = Load::Constant(1200);
const OWN: [Transport; 2] = [Transport::Tautline, Transport::TautlineTwo];
const TODAY: [Transport; 9] = [
    Transport::Cubic,
    Transport::Bbr,
    Transport::SctpPartial,
    Transport::Mptcp,
    Transport::CubicTimed,
    Transport::BbrTimed,
    Transport::QuicStreams,
    Transport::QuicStreamsBbr,
    Transport::QuicDatagrams,
];
/// Load above the channel's capacity, as in the paper's Table 1.
const SATURATING: Load = Load::Constant(5000);
const SATURATED_BY: [Transport; 2] = [Transport::Udp, Transport::RenoLarge];
/// Duration of constant rates in the wireless network in seconds. The paper used 300; nothing in
/// the model lasts longer than a quarter of a second.
const AIR_SECONDS: u32 = 10;
/// Rates of the paper's Fig. 1 in kB/s, up to the saturation of the channel and above it.
const RATES_OF_FIG_1: [u32; 8] = [1000, 2000, 3000, 3800, 4200, 4400, 4700, 5000];
/// Power of the paper's Fig. 4 and Table 3.
const POWER_OF_FIGURES: Power = Power::Middle;
/// Load of the paper's Fig. 4.
const LOAD_OF_FIG_4: Load = Load::Constant(2000);
/// Transports that are compared under bit errors.
const LITE: [Transport; 3] = [Transport::Udp, Transport::UdpLite, Transport::UdpLiteSealed];

/// Returns all cells.
///
/// The order makes a partial run useful. The paper's own tables and figures come first, with one
/// seed, then its other losses and today's transports. Further seeds, all seeds of the paper's own,
/// H.264 and further round-trip times follow.
pub(crate) fn whole(seconds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for seeds in [1..=1, 2..=SEEDS_AT_FIRST, SEEDS_AT_FIRST + 1..=SEEDS] {
        seeds.clone().for_each(|seed| cells.extend(figures(seed, seconds)));
        seeds.clone().for_each(|seed| cells.extend(losses(RTTS[0], seed, seconds)));
    }
    for seed in 1..=SEEDS {
        cells.extend(h264(seed));
        RTTS[1..].iter().for_each(|rtt_ms| cells.extend(losses(*rtt_ms, seed, seconds)));
    }
    each_once(cells)
}

/// Returns a part that takes minutes: one rate, one round-trip time, two seeds, and the paper's
/// codec at the loss of its Table 3.
pub(crate) fn quick(seconds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for seed in 1..=SEEDS_OF_QUICK {
        for transport in on_wires() {
            cells.extend(cells_of(transport, LOAD_OF_TODAY, RTTS[0], seed, seconds));
        }
        for transport in on_wires() {
            cells.push(wire(transport, MPEG2, LOSS_OF_FIGURES, RTTS[0], seed, VIDEO_SECONDS));
        }
    }
    cells
}

fn on_wires() -> impl Iterator<Item = Transport> {
    Transport::papers().into_iter().chain(OWN).chain(TODAY)
}

/// Returns the transports that a single-channel wireless network can carry.
fn on_air() -> impl Iterator<Item = Transport> {
    on_wires().filter(|transport| transport.links() == 1)
}

/// Returns the cells of the paper's tables and figures.
fn figures(seed: u64, seconds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    // Fig. 3 and Table 2.
    for transport in Transport::papers().into_iter().chain(OWN) {
        let of = |rate| wire(transport, Load::Constant(rate), LOSS_OF_FIGURES, 20, seed, seconds);
        cells.extend(RATES.map(of));
    }
    // Table 3, both parts.
    for transport in on_wires() {
        cells.push(wire(transport, MPEG2, LOSS_OF_FIGURES, RTTS[0], seed, VIDEO_SECONDS));
    }
    for transport in on_air() {
        cells.push(air(transport, MPEG2, POWER_OF_FIGURES, true, seed, VIDEO_SECONDS));
    }
    // Table 1.
    for power in Power::VARIANTS.iter().copied() {
        let of = |transport| air(transport, SATURATING, power, false, seed, AIR_SECONDS);
        cells.extend(SATURATED_BY.map(of));
    }
    // Fig. 1.
    for power in [Power::Near, Power::Middle] {
        let of = |rate| air(Transport::Udp, Load::Constant(rate), power, false, seed, AIR_SECONDS);
        cells.extend(RATES_OF_FIG_1.map(of));
    }
    // Fig. 4.
    for transport in on_air() {
        cells.push(air(transport, LOAD_OF_FIG_4, POWER_OF_FIGURES, true, seed, AIR_SECONDS));
    }
    cells.extend(LITE.map(|it| air(it, LOAD_OF_TODAY, Power::Far, true, seed, AIR_SECONDS)));
    cells
}

/// Returns every rate of the paper's transports and of Tautline at every loss, one rate of today's
/// transports, and the videos of all of them.
fn losses(rtt_ms: u32, seed: u64, seconds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for transport in Transport::papers().into_iter().chain(OWN) {
        for rate in RATES {
            cells.extend(cells_of(transport, Load::Constant(rate), rtt_ms, seed, seconds));
        }
    }
    for transport in TODAY {
        cells.extend(cells_of(transport, LOAD_OF_TODAY, rtt_ms, seed, seconds));
    }
    for transport in on_wires() {
        cells.extend(cells_of(transport, MPEG2, rtt_ms, seed, VIDEO_SECONDS));
    }
    cells
}

fn h264(seed: u64) -> Vec<Cell> {
    let cells = on_wires().flat_map(|it| cells_of(it, H264, RTTS[0], seed, VIDEO_SECONDS));
    cells.collect()
}

fn cells_of(
    transport: Transport,
    load: Load,
    rtt_ms: u32,
    seed: u64,
    seconds: u32,
) -> [Cell; LOSSES.len()] {
    LOSSES.map(|loss| wire(transport, load, loss, rtt_ms, seed, seconds))
}

fn wire(
    transport: Transport,
    load: Load,
    loss_percent: f64,
    rtt_ms: u32,
    seed: u64,
    seconds: u32,
) -> Cell {
    Cell { transport, load, loss_percent, rtt_ms, seed, seconds, air: None }
}

fn air(
    transport: Transport,
    load: Load,
    power: Power,
    disturbed: bool,
    seed: u64,
    seconds: u32,
) -> Cell {
    let air = Some(Air { power, disturbed });
    Cell { transport, load, loss_percent: 0.0, rtt_ms: 0, seed, seconds, air }
}

/// Returns the cells without duplicates, each at its first place.
fn each_once(cells: Vec<Cell>) -> Vec<Cell> {
    let mut names = std::collections::BTreeSet::new();
    cells.into_iter().filter(|cell| names.insert(cell.name())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_cell_of_the_parts_stands_in_the_whole_once() {
        let cells = whole(20);
        let names: BTreeSet<String> = cells.iter().map(Cell::name).collect();
        assert_eq!(cells.len(), names.len());
        assert!(quick(20).iter().all(|cell| names.contains(&cell.name())));
        assert!(figures(5, 20).iter().all(|cell| names.contains(&cell.name())));
        // Ten transports at four rates, nine others at one, and nineteen videos, each at three
        // losses.
        assert_eq!(losses(20, 1, 20).len(), (40 + 9 + 19) * 3);
    }

    #[test]
    fn the_papers_figures_come_first() {
        let first = each_once(figures(1, 20));
        assert_eq!(whole(20)[..first.len()], first);
    }
}
